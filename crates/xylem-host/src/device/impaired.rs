//! A device behind an impaired link: what the stack sends passes one link before the device sends it, and what the device
//! receives passes another before the stack sees it. A real link carries frames of at most its MTU and whole checksums,
//! so this device's facts promise no offloads; open a TAP without offloads below it, or a packet device without.

use super::{Alarm, Device};
use crate::clock::Clock;
use crate::lock;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, OnceLock};
use xylem_core::time::earlier;
use xylem_core::{Checksum, Instant, Message, Pool};
use xylem_graph::instance::DeviceFacts;
use xylem_graph::link::{Frame, LINK_HEADER_BYTES, Link, LinkCounters, LinkModel, LinkModelError};

/// See the module's text.
pub struct Impaired<D> {
    device: D,
    facts: DeviceFacts,
    links: Mutex<Links>,
    shell: OnceLock<(Alarm, Clock)>,
}

struct Links {
    leaving: Link<Carried>,
    arriving: Link<Carried>,
}

impl<D: Device> Impaired<D> {
    /// `device` behind a link of this model in each direction, with random streams from `seed` (or the model's own).
    ///
    /// # Errors
    /// The first value of the model outside its limits.
    pub fn new(device: D, model: &LinkModel, seed: u64) -> Result<Impaired<D>, LinkModelError> {
        let [leaving, arriving] = Link::both_ways([model, model], seed)?;
        let links = Links { leaving, arriving };
        let mut facts = device.facts();
        facts.frame_max = facts.frame_max.min(model.mtu + LINK_HEADER_BYTES);
        facts.checksum_offload = false;
        facts.segment_offload = false;
        Ok(Impaired { device, facts, links: Mutex::new(links), shell: OnceLock::new() })
    }

    /// What the links did: for frames that leave, and for frames that arrive.
    pub fn counters(&self) -> (LinkCounters, LinkCounters) {
        let links = lock(&self.links);
        (links.leaving.counters(), links.arriving.counters())
    }

    /// Pulls the cable or puts it back.
    pub fn set_down(&self, down: bool) {
        let mut links = lock(&self.links);
        links.leaving.set_down(down);
        links.arriving.set_down(down);
    }

    /// The device itself.
    pub fn device(&self) -> &D {
        &self.device
    }

    fn now(&self) -> Instant {
        self.shell.get().expect("a stack attaches a device before it uses it").1.now()
    }

    /// Hands what has come to the end of the leaving link to the device.
    fn send_due(&self, links: &mut Links, now: Instant) {
        while let Some(Carried(mut frame)) = links.leaving.receive(now) {
            self.device.transmit(&mut frame);
        }
    }
}

impl<D: Device> Device for Impaired<D> {
    fn facts(&self) -> DeviceFacts {
        self.facts.clone()
    }

    fn receive(&self, pool: &Pool) -> Option<Message> {
        let now = self.now();
        let mut links = lock(&self.links);
        self.send_due(&mut links, now);
        while let Some(mut frame) = self.device.receive(pool) {
            // In case the other end leaves the checksum to the wire: this is the wire.
            frame.complete_checksum();
            frame.attributes.checksum = Checksum::None;
            links.arriving.send(now, Carried(frame));
        }
        links.arriving.receive(now).map(|Carried(frame)| frame)
    }

    fn transmit(&self, frame: &mut Message) -> bool {
        let now = self.now();
        let mut frame = std::mem::take(frame);
        // Who receives it has to look: bits may flip on the way.
        frame.attributes.checksum = Checksum::None;
        let mut links = lock(&self.links);
        let before = links.leaving.next();
        links.leaving.send(now, Carried(frame));
        self.send_due(&mut links, now);
        let sooner = links.leaving.next().is_some_and(|next| before.is_none_or(|before| next < before));
        drop(links);
        if sooner && let Some((alarm, _)) = self.shell.get() {
            alarm.ring();
        }
        // A cable tells its sender nothing.
        true
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.device.descriptor()
    }

    fn is_ready(&self) -> bool {
        self.device.is_ready()
    }

    fn drops(&self) -> Vec<(&'static str, u64)> {
        self.device.drops()
    }

    fn deadline(&self) -> Option<Instant> {
        let links = lock(&self.links);
        earlier(earlier(links.leaving.next(), links.arriving.next()), self.device.deadline())
    }

    fn attach(&self, alarm: Alarm, clock: Clock) {
        self.device.attach(alarm.clone(), clock.clone());
        assert!(self.shell.set((alarm, clock)).is_ok(), "{}: the device has a stack already", self.facts.name);
    }
}

/// A message on a link.
struct Carried(Message);

impl Frame for Carried {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn duplicate(&self) -> Carried {
        let mut copy = Message::from_bytes(&self.0.to_vec());
        copy.attributes = self.0.attributes.clone();
        Carried(copy)
    }

    fn flip_bit(&mut self, bit: usize) {
        // Its bytes may be shared with the sender's queue, whose copy stays right.
        let mut copy = self.duplicate();
        let bytes = copy.0.front_mut(bit / 8 + 1).expect("the bit lies within the frame");
        bytes[bit / 8] ^= 1 << (bit % 8);
        *self = copy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::WireDevice;
    use std::thread;
    use std::time::Duration;

    fn attached(model: &str) -> (WireDevice, Impaired<WireDevice>, Alarm) {
        let (far, near) = WireDevice::pair();
        let device = Impaired::new(near, &model.parse().expect("a model"), 1).expect("within its limits");
        let alarm = Alarm::new().expect("a descriptor is free");
        device.attach(alarm.clone(), Clock::start());
        (far, device, alarm)
    }

    #[test]
    fn a_frame_is_late_in_both_directions_and_the_sleeper_is_told_when() {
        let (far, device, alarm) = attached("delay=20ms");
        let pool = Pool::new(1, 1);
        assert!(!device.facts().checksum_offload && !device.facts().segment_offload);
        alarm.lie_down();
        assert!(device.transmit(&mut Message::from_bytes(&[1; 60])));
        assert!(alarm.waker().rest(), "who sleeps for ever must learn of the new deadline");
        assert!(device.receive(&pool).is_none() && far.receive(&pool).is_none());
        let due = device.deadline().expect("a frame is on the way");
        thread::sleep(Duration::from_millis(25));
        assert!(device.now() >= due);
        assert!(far.transmit(&mut Message::from_bytes(&[2; 60])));
        assert!(device.receive(&pool).is_none(), "it has only just set out");
        assert_eq!(far.receive(&pool).expect("it was due").to_vec(), [1; 60]);
        thread::sleep(Duration::from_millis(25));
        assert_eq!(device.receive(&pool).expect("it is due").to_vec(), [2; 60]);
        assert_eq!(device.deadline(), None);
    }

    #[test]
    fn a_flipped_bit_is_the_receivers_only_and_has_no_good_word() {
        let (far, device, _alarm) = attached("corrupt=100%");
        let mut frame = Message::from_bytes(&[7; 100]);
        frame.attributes.checksum = Checksum::Verified;
        let kept = frame.share();
        assert!(device.transmit(&mut frame));
        let arrived = far.receive(&Pool::new(1, 1)).expect("it is not lost");
        assert_eq!(kept.to_vec(), [7; 100], "the sender's bytes were changed");
        let flipped: u32 = arrived.to_vec().iter().map(|byte| (byte ^ 7).count_ones()).sum();
        assert_eq!((flipped, arrived.attributes.checksum), (1, Checksum::None));
        assert_eq!(device.counters().0.corrupted, 1);
    }

    #[test]
    fn a_pulled_cable_carries_nothing() {
        let (far, device, _alarm) = attached("");
        device.set_down(true);
        assert!(device.transmit(&mut Message::from_bytes(&[1; 60])), "a cable tells its sender nothing");
        assert!(far.receive(&Pool::new(1, 1)).is_none());
        device.set_down(false);
        assert!(device.transmit(&mut Message::from_bytes(&[1; 60])));
        assert!(far.receive(&Pool::new(1, 1)).is_some());
    }
}
