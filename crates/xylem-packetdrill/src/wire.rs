//! The device whose other end is the script: packets without a link header, in and out, one at a time and in order, each
//! that leaves with the time it left at.

use crate::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use xylem_core::{Instant, Message, Pool};
use xylem_graph::instance::DeviceFacts;
use xylem_host::clock::Clock;
use xylem_host::device::{Alarm, Device};

/// The most packets that wait on either side; one more is lost.
pub(crate) const PACKETS_MAX: usize = 4096;

/// What both ends share. It outlives the stacks of a run.
#[derive(Default)]
pub(crate) struct Wire {
    arriving: Mutex<VecDeque<Vec<u8>>>,
    leaving: Mutex<VecDeque<(Instant, Vec<u8>)>>,
}

impl Wire {
    /// A packet for the stack; false if too many wait.
    pub fn send(&self, packet: Vec<u8>) -> bool {
        let mut arriving = lock(&self.arriving);
        let has_room = arriving.len() < PACKETS_MAX;
        if has_room {
            arriving.push_back(packet);
        }
        has_room
    }

    /// The next packet of the stack, and when it left.
    pub fn receive(&self) -> Option<(Instant, Vec<u8>)> {
        lock(&self.leaving).pop_front()
    }
}

/// The stack's end.
pub(crate) struct WireEnd {
    wire: Arc<Wire>,
    mtu: u16,
    clock: OnceLock<Clock>,
}

impl WireEnd {
    pub fn new(wire: Arc<Wire>, mtu: u16) -> WireEnd {
        WireEnd { wire, mtu, clock: OnceLock::new() }
    }
}

impl Device for WireEnd {
    fn facts(&self) -> DeviceFacts {
        DeviceFacts {
            name: "script".into(),
            frame_max: self.mtu.into(),
            checksum_offload: false,
            segment_offload: false,
        }
    }

    fn receive(&self, _pool: &Pool) -> Option<Message> {
        lock(&self.wire.arriving).pop_front().map(|packet| Message::from_bytes(&packet))
    }

    fn transmit(&self, frame: &mut Message) -> bool {
        let left = self.clock.get().map_or(Instant::ZERO, Clock::now);
        let mut leaving = lock(&self.wire.leaving);
        let has_room = leaving.len() < PACKETS_MAX;
        if has_room {
            leaving.push_back((left, frame.to_vec()));
        }
        has_room
    }

    fn is_ready(&self) -> bool {
        !lock(&self.wire.arriving).is_empty()
    }

    fn attach(&self, _alarm: Alarm, clock: Clock) {
        // A second stack would have an end of its own.
        assert!(self.clock.set(clock).is_ok(), "this end of the wire has a stack already");
    }
}
