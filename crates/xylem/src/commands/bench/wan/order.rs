//! What an end of a transfer over the long link is told, and what it answers.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::Duration;

/// The largest receive and send buffer of every stack here, in bytes: eight times what the fastest and longest link
/// holds, so that no buffer but the link's own limits anybody.
pub const BUFFER_BYTES: usize = 32 << 20;

/// Bytes of a small object: a little more than an initial window of ten segments.
pub const OBJECT_BYTES: usize = 16 << 10;

/// How many small objects are under way at a time.
pub const FETCHERS: usize = 4;

/// Small objects that one of them fetches, one after the other, in a repetition.
pub const OBJECTS_EACH: usize = 10;

/// Bytes of one write and one read of the stream.
pub const WRITE_BYTES: usize = 64 << 10;

/// How long a write waits before the sender looks at the clock.
pub const WRITE_WAIT: Duration = Duration::from_millis(50);

/// How long a small object may take; one that takes longer counts as this long.
pub const OBJECT_TIME_MAX: Duration = Duration::from_secs(20);

/// Which end it is: the sender listens and sends what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// It sends the data.
    Sender,
    /// It asks for it.
    Receiver,
}

/// Everything an end has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which end.
    pub side: Side,
    /// The text of Xylem's graph with everything said; `None` for the kernel's sockets.
    pub graph: Option<String>,
    /// The congestion control, by the name that both stacks know.
    pub congestion: String,
    /// Where the sender listens.
    pub at: SocketAddr,
    /// How long the stream lasts, in milliseconds.
    pub stream_ms: u64,
    /// Whether small objects are fetched before the stream.
    pub objects: bool,
}

/// What an end did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Why there is nothing to say.
    pub error: Option<String>,
    /// Bytes of the stream that were read in its time, of the receiver.
    pub bytes: u64,
    /// Reads whose bytes were not those that stand there.
    pub strays: u64,
    /// How long each small object took from connecting to its last byte, in milliseconds.
    pub objects_ms: Vec<f64>,
    /// Small objects that did not arrive.
    pub objects_failed: u64,
    /// Segments of the stream that went again, of the sender.
    pub retransmitted: u64,
    /// Payload bytes of a full segment, of the sender.
    pub segment_size: u64,
    /// What its device asked for and was not given.
    pub notes: Vec<String>,
}

/// A request: how many bytes, or for how long a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// So many bytes, and then the end.
    Object(u32),
    /// A stream for so many milliseconds.
    Stream(u32),
}

impl Request {
    /// Bytes of a request.
    pub const LEN: usize = 5;

    /// As bytes.
    pub fn bytes(self) -> [u8; Request::LEN] {
        let (kind, number) = match self {
            Request::Object(bytes) => (0, bytes),
            Request::Stream(ms) => (1, ms),
        };
        let [a, b, c, d] = number.to_be_bytes();
        [kind, a, b, c, d]
    }

    /// From bytes; `None` if they are no request.
    pub fn read([kind, a, b, c, d]: [u8; Request::LEN]) -> Option<Request> {
        let number = u32::from_be_bytes([a, b, c, d]);
        match kind {
            0 => Some(Request::Object(number)),
            1 => Some(Request::Stream(number)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_from_its_bytes() {
        for request in [Request::Object(16 << 10), Request::Stream(4000)] {
            assert_eq!(Request::read(request.bytes()), Some(request));
        }
        assert_eq!(Request::read([2, 0, 0, 0, 0]), None);
    }
}
