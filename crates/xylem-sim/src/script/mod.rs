//! Packet scripts: a file says what an application does, what a peer on the link sends, and exactly what the TCP under test
//! must send and when. The same file runs against our TCP in virtual time ([`Simulated`]) and against any other stack that
//! somebody makes a [`Subject`] of, such as the kernel's (law 7).
//!
//! The format is described in `docs/wire-scripts.md`; `Display` prints a script back in it.
//!
//! | file | what |
//! | --- | --- |
//! | `event.rs`, `segment.rs` | what lines say, as values |
//! | `words.rs`, `read.rs`, `read_segment.rs` | from text to values |
//! | `print.rs` | and back |
//! | `packet.rs` | a segment as bytes on the wire, and bytes as a segment |
//! | `conversation.rs` | what is known of one connection: from where its numbers count |
//! | `compare.rs` | whether what was sent is what was to be sent |
//! | `run.rs` | a script runs against a subject |
//! | `simulated.rs` | our TCP as a subject |

mod compare;
mod conversation;
mod event;
mod packet;
mod print;
mod read;
mod read_segment;
mod run;
mod segment;
mod settings;
mod simulated;
mod words;

#[cfg(test)]
mod tests;

pub use conversation::{Ends, PEER, PREFIX_BITS, SERVER_PORT, SUBJECT};
pub use event::{Arm, Event, Fact, Line, Opener, Outcome, Report, ReportKind, Verb, Way, When, Wish};
pub use packet::MTU_USUAL;
pub use read::parse;
pub use run::{Failure, Run, Subject, Tolerance, run};
pub use segment::{Extent, Flaw, OptionWish, Place, Segment, Stamp};
pub use settings::{Setting, Settings};
pub use simulated::{Simulated, SimulatedError, content_sent, content_written};

use xylem_graph::file::Located;

/// The longest script in bytes.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Most lines of a script that say events.
pub const LINES_MAX: usize = 1000;

/// A packet script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What it shows, in a line.
    pub why: String,
    /// The rules it shows, each an RFC's number and a label or section of it.
    pub rfc: Vec<String>,
    /// What differs from the usual settings.
    pub settings: Settings,
    /// What it claims about our TCP.
    pub xylem: Claim,
    /// What it claims about the kernel's.
    pub linux: Claim,
    /// What happens.
    pub lines: Vec<Located<Line>>,
}

/// What a script claims about one stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// It does what the script says.
    #[default]
    Same,
    /// It is not tried, for this reason.
    Skip(String),
    /// It does otherwise, for this reason. One that does the same after all is a failure too.
    Differs(String),
}

impl Script {
    /// What it claims about a stack.
    pub fn claim(&self, arm: Arm) -> &Claim {
        match arm {
            Arm::Xylem => &self.xylem,
            Arm::Linux => &self.linux,
        }
    }
}
