//! What a stack's shell and its sockets share. It is the world its instance lives in: the clock, the devices, and the
//! alarm that wakes whoever sleeps. Shepherds are lent to the threads that ask something of the instance, so that what
//! an application sends goes out on its own thread.

use crate::clock::Clock;
use crate::device::{Alarm, Device};
use crate::shell::{Seat, Shell, Waiters};
use crossbeam_queue::ArrayQueue;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use xylem_core::{Batch, Instant, Message, PathId, time::earlier};
use xylem_graph::instance::{Instance, Shepherd, Wake, Work, World};

pub(crate) struct Core {
    pub instance: Instance,
    pub devices: Vec<Box<dyn Device>>,
    pub clock: Clock,
    pub shell: Shell,
    /// How long a sleeper looks before it sleeps.
    pub spin: Duration,
    pub alarm: Alarm,
    /// Who runs the turns.
    pub seat: Seat,
    /// Who waits in its sockets, where nobody but them would know.
    pub waiters: Arc<Waiters>,
    pub stopped: AtomicBool,
    /// Frames received so far: who looks in vain knows it by that.
    pub received: AtomicU64,
    /// How many frames the next turn may receive: one more look costs a system call, which a frame that comes alone would
    /// wait for, so turns become longer only while they are full.
    expected: AtomicUsize,
    /// The nodes where sockets open.
    pub tcp: Option<u8>,
    pub udp: Option<u8>,
    /// For the application's thread, of which there is mostly one at a time.
    shepherd: Mutex<Shepherd>,
    /// For the others.
    shepherds: ArrayQueue<Box<Shepherd>>,
}

/// The most idle shepherds a stack keeps for its application's threads.
const SHEPHERDS_MAX: usize = 64;

impl Core {
    pub fn new(
        instance: Instance,
        devices: Vec<Box<dyn Device>>,
        shell: Shell,
        spin: Duration,
        clock: Clock,
    ) -> io::Result<Core> {
        let alarm = Alarm::new()?;
        for device in &devices {
            device.attach(alarm.clone(), clock.clone());
        }
        Ok(Core {
            tcp: instance.node_of_kind("tcp"),
            udp: instance.node_of_kind("udp"),
            seat: Seat::new(instance.shepherd()),
            shepherd: Mutex::new(instance.shepherd()),
            instance,
            devices,
            clock,
            shell,
            spin,
            alarm,
            waiters: Arc::default(),
            stopped: AtomicBool::new(false),
            received: AtomicU64::new(0),
            expected: AtomicUsize::new(1),
            shepherds: ArrayQueue::new(SHEPHERDS_MAX),
        })
    }

    /// Lends a shepherd to the calling thread.
    pub fn with_shepherd<T>(&self, work: impl FnOnce(&mut Shepherd) -> T) -> T {
        if let Ok(mut shepherd) = self.shepherd.try_lock() {
            return work(&mut shepherd);
        }
        let mut shepherd = self.shepherds.pop().unwrap_or_else(|| Box::new(self.instance.shepherd()));
        let result = work(&mut shepherd);
        // With more threads at once than shepherds are kept, the last ones go.
        let _kept = self.shepherds.push(shepherd);
        result
    }

    /// Asks something of a path on the calling thread.
    pub fn request(&self, id: PathId, mut work: Work) {
        self.request_in_place(id, &mut work);
    }

    /// As [`request`](Core::request), for work that lies where it is taken from.
    pub fn request_in_place(&self, id: PathId, work: &mut Work) {
        self.with_shepherd(|shepherd| self.instance.request_in_place(self, shepherd, id, work));
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// When a turn is wanted, the devices' wishes included. Asked behind [`Alarm::lie_down`].
    pub fn wake(&self) -> Wake {
        if self.is_stopped() || self.devices.iter().any(|device| device.is_ready()) {
            return Wake::Now;
        }
        let devices = self.devices.iter().fold(None, |soonest, device| earlier(soonest, device.deadline()));
        match (self.instance.wake(), devices) {
            (Wake::At(instance), devices) => Wake::At(devices.map_or(instance, |devices| devices.min(instance))),
            (Wake::Never, Some(devices)) => Wake::At(devices),
            (wake, _) => wake,
        }
    }
}

impl World for Core {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize) {
        let limit = self.expected.load(Ordering::Relaxed).min(limit);
        // The instance asks again at once when it got as many as it wanted, so the first device cannot keep the others
        // waiting for longer than a batch: the share of each is what is left divided by those that follow.
        for (index, device) in self.devices.iter().enumerate() {
            let share = limit.saturating_sub(arrivals.len()).div_ceil(self.devices.len() - index);
            for _ in 0..share {
                let Some(frame) = device.receive(self.instance.pool()) else { break };
                arrivals.push((index as u16, frame));
            }
        }
        if !arrivals.is_empty() {
            self.received.fetch_add(arrivals.len() as u64, Ordering::Relaxed);
            let next = if arrivals.len() >= limit { (2 * limit).min(Batch::LIMIT) } else { arrivals.len() };
            self.expected.store(next.max(self.devices.len()), Ordering::Relaxed);
        }
    }

    fn transmit(&self, device: u16, frame: &mut Message) -> bool {
        self.devices[usize::from(device)].transmit(frame)
    }

    fn nudge(&self) {
        self.alarm.ring();
    }
}
