//! Devices as a stack sees them: something that yields frames and takes frames. A TAP, packet sockets, an in-process wire and a device
//! behind an impaired link are told apart by nobody above; each says in its facts what it does to frames by itself.

mod alarm;
pub(crate) mod cut;
mod impaired;
mod offload;
mod packet;
mod tap;
mod wire;

pub use alarm::Alarm;
pub use impaired::Impaired;
pub use packet::{PacketDevice, PacketDrops};
pub use tap::{TapDevice, TapDeviceError};
pub use wire::{WIRE_FRAME_MAX, WIRE_FRAMES_MAX, WireDevice};

use crate::clock::Clock;
use std::os::fd::BorrowedFd;
use xylem_core::{Instant, Message, Pool};
use xylem_graph::instance::DeviceFacts;

/// The bottom anchor of a stack. Frames are received by one thread at a time and transmitted by several.
pub trait Device: Send + Sync {
    /// What it offers. The same for as long as it lives.
    fn facts(&self) -> DeviceFacts;

    /// The next frame that has arrived, in a buffer of `pool`; `None` if none is there. Never waits.
    fn receive(&self, pool: &Pool) -> Option<Message>;

    /// Sends a frame, link header first. False if the device takes no more at the moment; the frame is gone then. Never
    /// waits.
    fn transmit(&self, frame: &mut Message) -> bool;

    /// What becomes readable when a frame arrives, for a device of the kernel's.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether a frame is there that no descriptor tells of; asked before its stack sleeps.
    fn is_ready(&self) -> bool {
        false
    }

    /// When it wants to be received from though nothing arrives (a delayed frame is due). A change to an earlier time
    /// rings the alarm.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// What it has lost on the way in so far, the kernel's losses for it included: reasons and counts. What it could not
    /// send its stack counts itself.
    fn drops(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The stack that will use it: a device without a descriptor rings `alarm` when a frame arrives, and tells the time
    /// by `clock`. Called once, before everything but the facts.
    fn attach(&self, _alarm: Alarm, _clock: Clock) {}
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn facts(&self) -> DeviceFacts {
        (**self).facts()
    }
    fn receive(&self, pool: &Pool) -> Option<Message> {
        (**self).receive(pool)
    }
    fn transmit(&self, frame: &mut Message) -> bool {
        (**self).transmit(frame)
    }
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }
    fn is_ready(&self) -> bool {
        (**self).is_ready()
    }
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
    fn drops(&self) -> Vec<(&'static str, u64)> {
        (**self).drops()
    }
    fn attach(&self, alarm: Alarm, clock: Clock) {
        (**self).attach(alarm, clock);
    }
}
