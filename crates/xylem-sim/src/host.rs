//! A simulated host: an instance, its only shepherd, and a port that stands for the hardware. Its world's clock is the
//! simulator's; frames leave as plain bytes, as they would on a wire, and arrive in buffers of the host's own pool.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use xylem_core::pool::SMALL;
use xylem_core::{HEADROOM, Instant, Message, Pool};
use xylem_graph::build::{Catalogue, build, device_edges};
use xylem_graph::file::{Graph, check, report};
use xylem_graph::instance::{DeviceFacts, Hosting, Instance, Limits, Shepherd, Wake, World};
use xylem_graph::link::LINK_HEADER_BYTES;

/// See the module's text.
pub struct Host {
    /// Its name in the scenario.
    pub name: String,
    /// What it runs.
    pub instance: Instance,
    pub(crate) shepherd: Shepherd,
    pub(crate) port: Port,
    pub(crate) wake: Wake,
}

impl Hosting for Host {
    fn asking<R>(&mut self, ask: impl FnOnce(&Instance, &dyn World, &mut Shepherd) -> R) -> R {
        self.ask(|instance, port, shepherd| ask(instance, port, shepherd))
    }
}

/// The largest frame in bytes of a simulated device that nobody says more of: 1500 bytes and a link header.
pub const FRAME_MAX: usize = 1500 + LINK_HEADER_BYTES;

/// The hardware of a host.
pub struct Port {
    now: Cell<Instant>,
    inbound: RefCell<VecDeque<(u16, Vec<u8>)>>,
    outbound: RefCell<Vec<(u16, Vec<u8>)>>,
    pool: Pool,
    /// Frames that found no buffer.
    missed: Cell<u64>,
}

impl Host {
    /// A host that runs `instance`.
    pub fn new(name: impl Into<String>, instance: Instance) -> Host {
        let shepherd = instance.shepherd();
        let port = Port {
            now: Cell::new(Instant::ZERO),
            inbound: RefCell::default(),
            outbound: RefCell::default(),
            pool: instance.pool().clone(),
            missed: Cell::new(0),
        };
        Host { name: name.into(), instance, shepherd, port, wake: Wake::Now }
    }

    /// A host that runs a graph, over plain devices of [`FRAME_MAX`] bytes.
    ///
    /// # Errors
    /// What is wrong with the graph, in words.
    pub fn of(name: impl Into<String>, graph: &Graph, catalogue: &Catalogue, seed: u64) -> Result<Host, String> {
        let name = name.into();
        let problems = check(graph, catalogue);
        if !problems.is_empty() {
            return Err(report(&name, &problems));
        }
        let edges = device_edges(graph);
        let devices = edges.iter().map(|edge| DeviceFacts::plain(edge.node.clone(), FRAME_MAX)).collect();
        Ok(Host::new(name, build(graph, catalogue, devices, Limits::default(), seed)?))
    }

    /// Runs `ask` with what an application needs to ask something of the instance.
    pub fn ask<R>(&mut self, ask: impl FnOnce(&Instance, &Port, &mut Shepherd) -> R) -> R {
        let result = ask(&self.instance, &self.port, &mut self.shepherd);
        self.wake = self.instance.wake();
        result
    }

    /// Turns until nothing is left to do at this time.
    pub(crate) fn turn(&mut self) {
        loop {
            self.wake = self.instance.turn(&self.port, &mut self.shepherd);
            if self.wake != Wake::Now && self.port.inbound.borrow().is_empty() {
                return;
            }
        }
    }

    pub(crate) fn at(&self, now: Instant) {
        self.port.now.set(now);
    }

    pub(crate) fn deliver(&self, device: u16, frame: Vec<u8>) {
        self.port.inbound.borrow_mut().push_back((device, frame));
    }

    pub(crate) fn take_sent(&self) -> Vec<(u16, Vec<u8>)> {
        self.port.outbound.take()
    }

    /// Whether it wants a turn at `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        !self.port.inbound.borrow().is_empty()
            || match self.wake {
                Wake::Now => true,
                Wake::At(at) => at <= now,
                Wake::Never => false,
            }
    }

    /// Frames that found no buffer when they arrived.
    pub fn missed(&self) -> u64 {
        self.port.missed.get()
    }
}

impl World for Port {
    fn now(&self) -> Instant {
        self.now.get()
    }

    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize) {
        let mut inbound = self.inbound.borrow_mut();
        while arrivals.len() < limit {
            let Some((device, frame)) = inbound.pop_front() else { return };
            match in_buffers(&self.pool, &frame) {
                Some(message) => arrivals.push((device, message)),
                None => self.missed.set(self.missed.get() + 1),
            }
        }
    }

    fn transmit(&self, device: u16, frame: &mut Message) -> bool {
        self.outbound.borrow_mut().push((device, frame.to_vec()));
        true
    }
}

/// A frame in buffers of the pool: a small one if it fits, else its front in a small one and the rest in a large one.
fn in_buffers(pool: &Pool, frame: &[u8]) -> Option<Message> {
    let mut small = pool.take(SMALL)?;
    let front = frame.len().min(SMALL - HEADROOM);
    small[HEADROOM..HEADROOM + front].copy_from_slice(&frame[..front]);
    let mut message = Message::from_buffer(small, HEADROOM, HEADROOM + front);
    let rest = &frame[front..];
    if !rest.is_empty() {
        let mut large = pool.take(rest.len())?;
        large[..rest.len()].copy_from_slice(rest);
        message.append_slice(xylem_core::Slice::new(large.share(), 0, rest.len()));
    }
    Some(message)
}
