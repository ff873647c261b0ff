//! What the tests of the laws on toys share: hosts that run toy graphs, a link between two of them that is as bad as a
//! test wants it, and applications that remember what was said to them. Time is virtual and everything is seeded, so a
//! seed that fails fails again.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod end;
pub mod fault;
pub mod graph;
pub mod pair;
pub mod talk;
