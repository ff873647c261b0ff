//! Two hosts and the link between them, in virtual time.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use xylem_core::time::earlier;
use xylem_core::{Duration, Instant, Message, Pool, Random};
use xylem_graph::instance::{Instance, Shepherd, Wake, World};

/// How bad the link is, in both directions. Rates are in a million.
#[derive(Clone, Copy, Debug)]
pub struct Badness {
    pub lose: u32,
    pub repeat: u32,
    pub spoil: u32,
    pub delay_min: Duration,
    /// Above `delay_min`, so that frames overtake each other.
    pub jitter: Duration,
    /// Nothing arrives from then on.
    pub dead_from: Option<Instant>,
}

impl Badness {
    /// A link that loses nothing and keeps the order.
    pub fn none() -> Badness {
        Badness {
            lose: 0,
            repeat: 0,
            spoil: 0,
            delay_min: Duration::from_millis(1),
            jitter: Duration::ZERO,
            dead_from: None,
        }
    }

    /// A link of which each seed has another.
    ///
    /// `better` times better than the worst.
    pub fn of(random: &mut Random, better: u32) -> Badness {
        let mut rate = |most: u64| random.below(most) as u32 / better;
        Badness {
            lose: rate(150_000),
            repeat: rate(100_000),
            spoil: rate(50_000),
            delay_min: Duration::from_micros(u64::from(rate(20_000))),
            jitter: Duration::from_micros(u64::from(rate(40_000))),
            dead_from: None,
        }
    }
}

/// The world of one host: its clock and its only device.
pub struct Port {
    now: Cell<Instant>,
    inbound: RefCell<VecDeque<Message>>,
    outbound: RefCell<Vec<Vec<u8>>>,
}

impl World for Port {
    fn now(&self) -> Instant {
        self.now.get()
    }
    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize) {
        let mut inbound = self.inbound.borrow_mut();
        let count = inbound.len().min(limit);
        arrivals.extend(inbound.drain(..count).map(|frame| (0, frame)));
    }
    fn transmit(&self, _device: u16, frame: &mut Message) -> bool {
        self.outbound.borrow_mut().push(frame.to_vec());
        true
    }
}

/// A host.
pub struct Host {
    pub instance: Instance,
    pub shepherd: Shepherd,
    pub port: Port,
}

impl Host {
    fn new(instance: Instance) -> Host {
        let shepherd = instance.shepherd();
        let port = Port { now: Cell::default(), inbound: RefCell::default(), outbound: RefCell::default() };
        Host { instance, shepherd, port }
    }

    /// A frame in a buffer of the host's own pool, as a device would have filled it.
    fn arrive(&self, frame: &[u8]) {
        if let Some(message) = pooled(self.instance.pool(), frame) {
            self.port.inbound.borrow_mut().push_back(message);
        }
    }

    fn turn(&mut self) -> Wake {
        loop {
            let wake = self.instance.turn(&self.port, &mut self.shepherd);
            if wake != Wake::Now && self.port.inbound.borrow().is_empty() {
                return wake;
            }
        }
    }

    /// What is still there that should have gone: paths of conversations, deadlines, buffers.
    pub fn leftovers(&self) -> (usize, usize, (usize, usize)) {
        let paths = self.instance.path_count() - self.instance.kept_path_count();
        (paths, self.instance.deadline_count(), self.instance.reading().buffers_held)
    }
}

/// A message of `bytes` in a pool's buffer.
pub fn pooled(pool: &Pool, bytes: &[u8]) -> Option<Message> {
    let mut buffer = pool.take(xylem_core::HEADROOM + bytes.len())?;
    let end = xylem_core::HEADROOM + bytes.len();
    buffer[xylem_core::HEADROOM..end].copy_from_slice(bytes);
    Some(Message::from_buffer(buffer, xylem_core::HEADROOM, end))
}

/// A frame on the link: when it arrives, its number, at which host, its bytes.
type Flying = (Instant, u64, usize, Vec<u8>);

/// Two hosts and a link. Hosts may be moved to: the second index of a frame is where it goes.
pub struct Pair {
    pub hosts: Vec<Host>,
    pub now: Instant,
    badness: Badness,
    random: Random,
    air: BinaryHeap<Reverse<Flying>>,
    sent: u64,
    /// Which host a frame sent by this host goes to.
    pub routes: Vec<usize>,
}

impl Pair {
    /// These hosts; each sends to the one its route names.
    pub fn new(instances: impl IntoIterator<Item = Instance>, badness: Badness, random: Random) -> Pair {
        let hosts: Vec<Host> = instances.into_iter().map(Host::new).collect();
        let routes = (0..hosts.len()).map(|index| usize::from(index == 0)).collect();
        Pair { hosts, now: Instant::ZERO, badness, random, air: BinaryHeap::new(), sent: 0, routes }
    }

    /// Serves what happens now, lets `application` act, and goes on to the next event, until the application is done
    /// (`true`) or `span` has passed or nothing happens any more (`false`).
    pub fn run(&mut self, span: Duration, mut application: impl FnMut(&mut Pair, bool) -> bool) -> bool {
        let end = self.now + span;
        let mut stalled = false;
        loop {
            let wake = self.serve();
            let done = application(self, stalled);
            let wake = earlier(wake, self.serve());
            if done {
                return true;
            }
            let next = earlier(wake, self.air.peek().map(|Reverse((at, ..))| *at));
            match next {
                Some(next) if next <= end => {
                    stalled = false;
                    self.now = self.now.max(next);
                }
                Some(_) => return false,
                // Applications that dawdle are given one more chance when nothing else would happen.
                None if stalled => return false,
                None => stalled = true,
            }
        }
    }

    /// Lets time pass until nothing happens any more, or `span` has passed.
    pub fn settle(&mut self, span: Duration) {
        self.run(span, |_, _| false);
    }

    /// From now on host `to` is where host `from` was: what is on its way, or has arrived and was not looked at, goes
    /// there.
    pub fn redirect(&mut self, from: usize, to: usize) {
        for route in &mut self.routes {
            if *route == from {
                *route = to;
            }
        }
        let air = std::mem::take(&mut self.air);
        let moved =
            |Reverse((at, number, host, frame))| Reverse((at, number, if host == from { to } else { host }, frame));
        self.air = air.into_iter().map(moved).collect();
        let arrived: Vec<Message> = self.hosts[from].port.inbound.borrow_mut().drain(..).collect();
        for frame in arrived {
            self.hosts[to].arrive(&frame.to_vec());
        }
    }

    fn serve(&mut self) -> Option<Instant> {
        let mut wake;
        loop {
            while let Some(Reverse((at, ..))) = self.air.peek()
                && *at <= self.now
            {
                let Reverse((_, _, to, frame)) = self.air.pop().expect("it was seen a moment ago");
                self.hosts[to].arrive(&frame);
            }
            wake = None;
            for index in 0..self.hosts.len() {
                self.hosts[index].port.now.set(self.now);
                if let Wake::At(at) = self.hosts[index].turn() {
                    // The wheel counts in ticks: what it calls due at once may be a tick away.
                    wake = earlier(wake, Some(at.max(self.now + Duration::from_nanos(1))));
                }
                self.carry(index);
            }
            if self.air.peek().is_none_or(|Reverse((at, ..))| *at > self.now) {
                return wake;
            }
        }
    }

    fn carry(&mut self, from: usize) {
        let frames = self.hosts[from].port.outbound.take();
        for mut frame in frames {
            let Badness { lose, repeat, spoil, delay_min, jitter, dead_from } = self.badness;
            if dead_from.is_some_and(|dead| dead <= self.now) || self.random.chance_per_million(lose) {
                continue;
            }
            if self.random.chance_per_million(spoil) {
                let at = self.random.below(frame.len() as u64) as usize;
                frame[at] ^= 1 + self.random.below(255) as u8;
            }
            let copies = 1 + u32::from(self.random.chance_per_million(repeat));
            for _ in 0..copies {
                let late = Duration::from_nanos(self.random.below(jitter.as_nanos() as u64 + 1));
                let at = self.now + delay_min + late + Duration::from_nanos(1);
                self.sent += 1;
                self.air.push(Reverse((at, self.sent, self.routes[from], frame.clone())));
            }
        }
    }
}
