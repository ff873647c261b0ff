//! A device on whose link somebody else sends too: between the frames that its own device receives it hands over rubbish, as
//! fast as its stack takes it.

use crate::fuzz::{Counts, Rubbish};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::{HEADROOM, Instant, Message, Pool, pool};
use xylem_graph::instance::DeviceFacts;
use xylem_host::clock::Clock;
use xylem_host::device::{Alarm, Device};

/// Who sends the rubbish: shared by the device and whoever turns it on and off.
pub struct Station {
    on: AtomicBool,
    work: Mutex<Work>,
}

struct Work {
    rubbish: Rubbish,
    /// Whose turn it is.
    mine: bool,
}

impl Station {
    /// A station that is silent yet.
    pub fn new(rubbish: Rubbish) -> Arc<Station> {
        Arc::new(Station { on: AtomicBool::new(false), work: Mutex::new(Work { rubbish, mine: false }) })
    }

    /// Sends from now on, or falls silent.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Ordering::Release);
    }

    /// What it has sent so far.
    pub fn counts(&self) -> Counts {
        self.work().rubbish.counts()
    }

    fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Rubbish is rubbish, whoever panicked while it was made.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module's text.
pub struct Shaken<D> {
    device: D,
    station: Arc<Station>,
}

impl<D: Device> Shaken<D> {
    /// `device` with `station` on its link.
    pub fn new(device: D, station: Arc<Station>) -> Shaken<D> {
        Shaken { device, station }
    }
}

impl<D: Device> Device for Shaken<D> {
    fn facts(&self) -> DeviceFacts {
        self.device.facts()
    }

    fn receive(&self, pool: &Pool) -> Option<Message> {
        if !self.station.is_on() {
            return self.device.receive(pool);
        }
        let mut work = self.station.work();
        work.mine = !work.mine;
        if work.mine {
            return in_a_buffer(pool, &work.rubbish.make());
        }
        match self.device.receive(pool) {
            Some(frame) => {
                work.rubbish.overhear(&frame.to_vec());
                Some(frame)
            }
            None => in_a_buffer(pool, &work.rubbish.make()),
        }
    }

    fn transmit(&self, frame: &mut Message) -> bool {
        self.device.transmit(frame)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.device.descriptor()
    }

    fn is_ready(&self) -> bool {
        self.station.is_on() || self.device.is_ready()
    }

    fn deadline(&self) -> Option<Instant> {
        self.device.deadline()
    }

    fn attach(&self, alarm: Alarm, clock: Clock) {
        self.device.attach(alarm, clock);
    }
}

/// A frame in a buffer of the pool, as a device would bring it; `None` if the pool is empty, and then it is lost.
fn in_a_buffer(pool: &Pool, frame: &[u8]) -> Option<Message> {
    let length = frame.len().min(pool::SMALL - HEADROOM);
    let mut buffer = pool.take(pool::SMALL)?;
    buffer[HEADROOM..HEADROOM + length].copy_from_slice(&frame[..length]);
    Some(Message::from_buffer(buffer, HEADROOM, HEADROOM + length))
}
