//! The toy stream: bytes, in order, both ways, over a network that loses, repeats, reorders and spoils. A small honest
//! relative of TCP: a handshake of three messages whose half-open part the enable owns, a window opened by credit,
//! retransmission by timeout alone, and a close for each direction. It has no congestion control.
//!
//! | file | what |
//! | --- | --- |
//! | `protocol.rs` | opens, enables, and finds the stream of a segment |
//! | `embryo.rs` | handshakes of which the last message has not come |
//! | `lingering.rs` | streams that have ended, while their last segments may come again |
//! | `session.rs` | one end: what the two halves have in common |
//! | `sending.rs`, `receiving.rs` | the two halves |

mod embryo;
mod header;
mod lingering;
mod protocol;
mod receiving;
mod sending;
mod session;

pub use embryo::{EMBRYO_TRIES_MAX, EMBRYOS_MAX};
pub use header::StreamHeader;
pub use lingering::{LINGER_TIME, LINGERING_MAX};
pub use protocol::StreamProtocol;
pub use receiving::{HELD_MAX, RECEIVE_MAX};
pub use sending::{SEND_MAX, TRIES_MAX};

use xylem_core::record::RECORD_MAX;
use xylem_core::{DropReason, Duration};
use xylem_wire::Port;

const _: () = assert!(SEND_MAX + RECEIVE_MAX + HELD_MAX * 16 + 256 < RECORD_MAX, "a stream moves with all it holds");
const _: () = assert!(RECEIVE_MAX <= u16::MAX as usize, "the window fits its field");

/// How long an end that the application has closed waits for the peer's end.
pub const CLOSED_MAX: Duration = Duration::from_secs(60);
/// The first wait before something is sent again; it doubles each time.
pub const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait.
pub const WAIT_MAX: Duration = Duration::from_secs(2);
/// The most streams of one host.
pub const STREAMS_MAX: usize = 65_536;

/// A stream as one host sees it: the peer's host and port, our port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    peer: u32,
    remote: Port,
    local: Port,
}

/// How long to wait after so many tries.
fn wait(tries: u32) -> Duration {
    (FIRST_WAIT * 2u32.saturating_pow(tries.min(8))).min(WAIT_MAX)
}

/// The segment ends before its header does.
pub static SHORT: DropReason = DropReason::new("stream", "shorter than its header");
/// The segment was spoilt on its way.
pub static SPOILT: DropReason = DropReason::new("stream", "wrong sum");
/// Nobody has this stream.
pub static NO_STREAM: DropReason = DropReason::new("stream", "no such stream");
/// There are too many handshakes.
pub static BACKLOG_FULL: DropReason = DropReason::new("stream", "too many handshakes");
/// The segment is not one this end can be in.
pub static NOT_ACCEPTABLE: DropReason = DropReason::new("stream", "does not fit the state of its stream");
/// The bytes have been received before, or lie beyond the window.
pub static NOT_IN_WINDOW: DropReason = DropReason::new("stream", "nothing in it lies in the window");
/// The application has closed, so nobody reads.
pub static NOBODY_READS: DropReason = DropReason::new("stream", "the application has closed");
/// The application pushed after it had closed.
pub static CLOSED: DropReason = DropReason::new("stream", "pushed after the close");
