//! How much may be in flight. One small trait: an algorithm hears of acknowledgments, losses and timeouts, and says a
//! window. When something counts as lost, and what is sent again, is not its business (see `recovery`), so that other
//! algorithms and other ways to find losses can be put beside each other.

mod reno;

pub use reno::NewReno;

use serde::{Deserialize, Serialize};
use xylem_core::{Instant, Record};

/// The algorithms there are (RFC 9293, MUST-19, MAY-18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Algorithm {
    /// RFC 5681 and RFC 6582.
    #[default]
    NewReno,
}

/// What an acknowledgment says to an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes newly acknowledged.
    pub bytes: u32,
    /// Bytes that were in flight before it came.
    pub in_flight: u32,
    /// The time.
    pub now: Instant,
}

/// See the module's text. All windows are bytes.
pub trait CongestionControl: Send + Sync + std::fmt::Debug {
    /// Bytes that may be in flight.
    fn window(&self) -> u32;

    /// The window below which slow start goes on.
    fn threshold(&self) -> u32;

    /// New data was acknowledged, outside of a recovery.
    fn acknowledged(&mut self, progress: &Progress);

    /// A segment was lost with `in_flight` bytes in flight; told once for each recovery.
    fn lost(&mut self, in_flight: u32, now: Instant);

    /// The recovery is over, with `in_flight` bytes in flight.
    fn recovered(&mut self, in_flight: u32);

    /// The retransmission timer went off with `in_flight` bytes in flight; `again`: for the same data as before.
    fn timed_out(&mut self, in_flight: u32, again: bool);

    /// Nothing was sent for longer than a retransmission timeout.
    fn idle(&mut self);

    /// Segments have `bytes` payload bytes from now on.
    fn resize(&mut self, bytes: u32);

    /// Writes its state for its successor elsewhere.
    fn export(&self, record: &mut Record);
}

impl Algorithm {
    /// A new one for segments of `segment` bytes, starting with `initial` of them.
    pub fn begin(self, segment: u32, initial: u32) -> Box<dyn CongestionControl> {
        match self {
            Algorithm::NewReno => Box::new(NewReno::new(segment, initial)),
        }
    }

    /// One that goes on from `record`.
    pub(crate) fn import(self, record: &mut Record) -> Result<Box<dyn CongestionControl>, xylem_core::BadRecord> {
        match self {
            Algorithm::NewReno => Ok(Box::new(record.take::<NewReno>("the state of NewReno")?)),
        }
    }
}
