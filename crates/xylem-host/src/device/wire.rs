//! A wire inside the process: two ends, a bounded queue of messages in each direction. Nothing is copied or changed on
//! it, so messages that stand for many segments and checksums that are not finished cross as they are; whoever wants a
//! real cable's faults puts an [`Impaired`](super::Impaired) device around an end.

use super::{Alarm, Device, offload};
use crate::clock::Clock;
use crate::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use xylem_core::{Attributes, Message, Pool};
use xylem_graph::instance::DeviceFacts;

/// The most frames that wait at one end of a wire; one more is dropped.
pub const WIRE_FRAMES_MAX: usize = 1024;

/// The largest frame in bytes that a wire carries without its standing for several: 1500 bytes and a link header.
pub const WIRE_FRAME_MAX: usize = 1514;

/// One end of a wire.
pub struct WireDevice {
    name: String,
    frame_max: usize,
    offloads: bool,
    arriving: Arc<Direction>,
    leaving: Arc<Direction>,
}

/// The frames on their way to one end.
#[derive(Default)]
struct Direction {
    frames: Mutex<VecDeque<Message>>,
    alarm: OnceLock<Alarm>,
}

impl WireDevice {
    /// The two ends of a wire whose frames carry at most [`WIRE_FRAME_MAX`] bytes.
    pub fn pair() -> (WireDevice, WireDevice) {
        WireDevice::pair_of(WIRE_FRAME_MAX)
    }

    /// The two ends of a wire whose frames carry at most `frame_max` bytes, link header included.
    pub fn pair_of(frame_max: usize) -> (WireDevice, WireDevice) {
        let (one, other) = (Arc::<Direction>::default(), Arc::<Direction>::default());
        let end = |name: &str, arriving: &Arc<Direction>, leaving: &Arc<Direction>| WireDevice {
            name: name.into(),
            frame_max,
            offloads: true,
            arriving: Arc::clone(arriving),
            leaving: Arc::clone(leaving),
        };
        (end("wire-left", &one, &other), end("wire-right", &other, &one))
    }

    /// The same end, whose stack has to finish checksums and cut messages as for a real cable.
    pub fn without_offloads(self) -> WireDevice {
        WireDevice { offloads: false, ..self }
    }
}

impl Device for WireDevice {
    fn facts(&self) -> DeviceFacts {
        DeviceFacts {
            name: self.name.clone(),
            frame_max: self.frame_max,
            checksum_offload: self.offloads,
            segment_offload: self.offloads,
        }
    }

    fn receive(&self, _pool: &Pool) -> Option<Message> {
        lock(&self.arriving.frames).pop_front()
    }

    fn transmit(&self, frame: &mut Message) -> bool {
        let mut frames = lock(&self.leaving.frames);
        if frames.len() >= WIRE_FRAMES_MAX {
            return false;
        }
        let mut frame = std::mem::take(frame);
        arrive(&mut frame);
        frames.push_back(frame);
        let first = frames.len() == 1;
        drop(frames);
        // Behind another frame there is nothing to ring for: whoever put that one there has.
        if first && let Some(alarm) = self.leaving.alarm.get() {
            alarm.ring();
        }
        true
    }

    fn is_ready(&self) -> bool {
        !lock(&self.arriving.frames).is_empty()
    }

    fn attach(&self, alarm: Alarm, _clock: Clock) {
        // A wire's end belongs to one stack; a second one would not be woken.
        assert!(self.arriving.alarm.set(alarm).is_ok(), "{}: this end of the wire has a stack already", self.name);
    }
}

/// What the receiver knows of a frame: no more than a device would tell it.
fn arrive(frame: &mut Message) {
    let Attributes { checksum, segment_size, .. } = frame.attributes;
    frame.attributes = Attributes { checksum, segment_size, ..Attributes::default() };
    frame.attributes.segments = offload::segments(frame);
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Checksum;

    #[test]
    fn frames_cross_in_order_up_to_the_limit() {
        let (left, right) = WireDevice::pair();
        let pool = Pool::new(1, 1);
        for number in 0..WIRE_FRAMES_MAX {
            assert!(left.transmit(&mut Message::from_bytes(&(number as u32).to_be_bytes())));
        }
        assert!(!left.transmit(&mut Message::from_bytes(b"one more")), "the wire is full");
        assert!(right.is_ready() && !left.is_ready());
        for number in 0..WIRE_FRAMES_MAX {
            let frame = right.receive(&pool).expect("it was sent");
            assert_eq!(frame.to_vec(), (number as u32).to_be_bytes());
        }
        assert!(right.receive(&pool).is_none());
    }

    #[test]
    fn the_receiver_learns_what_a_device_would_tell() {
        let (left, right) = WireDevice::pair();
        let mut frame = Message::from_bytes(b"frame");
        frame.attributes.checksum = Checksum::Verified;
        (frame.attributes.priority, frame.attributes.upper) = (3, 9);
        assert!(left.transmit(&mut frame));
        let frame = right.receive(&Pool::new(1, 1)).expect("it was sent");
        assert_eq!(frame.attributes, Attributes { checksum: Checksum::Verified, ..Attributes::default() });
    }
}
