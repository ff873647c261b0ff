//! The world an instance lives in: a clock and devices. It has two kinds of implementors, real hosts and the simulator;
//! everything above it is the same code in both.

use xylem_core::{Instant, Message};

/// What a device offers, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its name, for people.
    pub name: String,
    /// The largest frame in bytes, link header included.
    pub frame_max: usize,
    /// It completes partial transport checksums by itself.
    pub checksum_offload: bool,
    /// It cuts messages that stand for several segments by itself.
    pub segment_offload: bool,
}

impl DeviceFacts {
    /// A device that does nothing by itself: every frame is on the link as a real one would be.
    pub fn plain(name: impl Into<String>, frame_max: usize) -> DeviceFacts {
        DeviceFacts { name: name.into(), frame_max, checksum_offload: false, segment_offload: false }
    }
}

/// A clock and devices. Its verbs take `&self`: several shepherds and application threads transmit at once.
pub trait World {
    /// The time.
    fn now(&self) -> Instant;

    /// Puts at most `limit` arrived frames into `arrivals`, each with the number of its device.
    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize);

    /// Sends a frame by a device; `false` if the device takes no more at the moment (the frame is gone).
    fn transmit(&self, device: u16, frame: &mut Message) -> bool;

    /// A deadline earlier than the one the last turn reported has come up: whoever sleeps until then is to be woken.
    fn nudge(&self) {}
}
