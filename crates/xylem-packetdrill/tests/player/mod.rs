//! A player of packet scripts for tests: it reads what it needs of packetdrill's language and plays it through the library
//! with a C program in between, which opens the library and calls it as packetdrill does.
//!
//! | file | what |
//! | --- | --- |
//! | `driver.c`, `driver.rs` | the C program, and this program's end of the conversation with it |
//! | `words.rs` | the values that stand in scripts |
//! | `script.rs` | a script's lines |
//! | `packet.rs` | packets as scripts write them, built and compared |
//! | `calls.rs` | system calls as scripts write them, for the driver |
//! | `play.rs` | one script after its clock |

#![allow(dead_code, reason = "each test program uses its part of this")]

pub mod calls;
pub mod driver;
pub mod packet;
pub mod play;
pub mod script;
pub mod words;
