//! A host for tests: the protocols of this crate in a small graph, with a linker that does what an instance does, in the
//! plainest way. Frames are lists of bytes, time is set by the test, and everything that happens is written down.

mod frames;
mod host;
pub mod linker;

pub use frames::*;
pub use host::{Host, Setup};
