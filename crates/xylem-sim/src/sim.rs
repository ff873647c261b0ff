//! The simulation itself: hosts, links, traffic, and the loop that jumps from one event to the next.

use crate::event::EventHash;
use crate::host::Host;
use crate::traffic::{Progress, Traffic};
use std::collections::BTreeMap;
use std::time::Duration;
use xylem_core::Instant;
use xylem_core::time::earlier;
use xylem_graph::instance::Wake;
use xylem_graph::link::{Link, LinkCounters, LinkModel, LinkModelError};

/// Names a host of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

/// A device of a host: where a link is plugged in.
pub type Plug = (HostId, u16);

/// Both directions of a cable.
struct Cable {
    ends: [Plug; 2],
    /// `links[0]` carries from `ends[0]` to `ends[1]`.
    links: [Link<Vec<u8>>; 2],
}

/// See the module's text.
pub struct Sim {
    now: Instant,
    seed: u64,
    hosts: Vec<Host>,
    cables: Vec<Cable>,
    plugged: BTreeMap<Plug, (usize, usize)>,
    traffic: Vec<Box<dyn Traffic>>,
    hash: EventHash,
    /// Frames sent by devices into which nothing is plugged.
    unplugged: u64,
    watch: Option<Watch>,
}

/// Whoever looks at every frame.
pub type Watch = Box<dyn FnMut(&Sight<'_>)>;

/// A frame that leaves or reaches a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight<'a> {
    /// When.
    pub now: Instant,
    /// Which host.
    pub host: HostId,
    /// By which of its devices.
    pub device: u16,
    /// It reaches the host; otherwise it leaves it.
    pub arrives: bool,
    /// The frame.
    pub frame: &'a [u8],
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All traffic is done.
    Done,
    /// Something is not, and nothing will happen any more.
    Stuck,
    /// The time was up first.
    TimeUp,
}

impl Sim {
    /// A simulation without hosts. Everything random in it comes from `seed`.
    pub fn new(seed: u64) -> Sim {
        Sim {
            now: Instant::ZERO,
            seed,
            hosts: Vec::new(),
            cables: Vec::new(),
            plugged: BTreeMap::new(),
            traffic: Vec::new(),
            hash: EventHash::default(),
            unplugged: 0,
            watch: None,
        }
    }

    /// The seed for the next thing that needs one: each gets its own.
    pub fn seed_for(&self, what: u64) -> u64 {
        let mut random = xylem_core::Random::seeded(self.seed ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next()
    }

    /// Adds a host.
    pub fn add(&mut self, host: Host) -> HostId {
        self.hosts.push(host);
        HostId(self.hosts.len() - 1)
    }

    /// Joins two devices by a cable of this model, the same in both directions, each with its own random stream.
    ///
    /// # Errors
    /// The first value of the model outside its limits.
    ///
    /// # Panics
    /// If one of the devices has a cable already.
    pub fn join(&mut self, one: Plug, other: Plug, model: &LinkModel) -> Result<(), LinkModelError> {
        let number = self.cables.len();
        let seeds = [self.seed_for(1 + 2 * number as u64), self.seed_for(2 + 2 * number as u64)];
        let link = |seed| Link::new(model.clone(), model.random(seed));
        let cable = Cable { ends: [one, other], links: [link(seeds[0])?, link(seeds[1])?] };
        for (end, plug) in cable.ends.iter().enumerate() {
            let before = self.plugged.insert(*plug, (number, end));
            assert!(before.is_none(), "device {} of host {} has a cable already", plug.1, plug.0.0);
        }
        self.cables.push(cable);
        Ok(())
    }

    /// Shows every frame that leaves or reaches a host from now on. Looking changes nothing.
    pub fn watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Adds traffic.
    pub fn drive(&mut self, traffic: impl Traffic + 'static) {
        self.traffic.push(Box::new(traffic));
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A host.
    pub fn host(&mut self, id: HostId) -> &mut Host {
        &mut self.hosts[id.0]
    }

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// All traffic, in the order it was added.
    pub fn traffic(&self) -> impl Iterator<Item = &dyn Traffic> {
        self.traffic.iter().map(|traffic| &**traffic)
    }

    /// The counters of every cable, both directions.
    pub fn link_counters(&self) -> impl Iterator<Item = ([Plug; 2], [LinkCounters; 2])> + '_ {
        self.cables.iter().map(|cable| (cable.ends, [cable.links[0].counters(), cable.links[1].counters()]))
    }

    /// The hash over all events so far.
    pub fn hash(&self) -> &EventHash {
        &self.hash
    }

    /// Frames sent by devices into which nothing is plugged.
    pub fn unplugged(&self) -> u64 {
        self.unplugged
    }

    /// Pulls a cable, or puts it back.
    pub fn pull(&mut self, cable: usize, pulled: bool) {
        for link in &mut self.cables[cable].links {
            link.set_down(pulled);
        }
    }

    /// Changes the model of one direction of a cable for what is sent from now on: 0 from the end that was named first when
    /// it was joined, 1 back. What is on the way arrives as it would have.
    ///
    /// # Errors
    /// The first value of the model outside its limits; the old model stays in force.
    pub fn change(&mut self, cable: usize, direction: usize, model: LinkModel) -> Result<(), LinkModelError> {
        self.cables[cable].links[direction].change(model)
    }

    /// Goes to the next thing that happens and through all of that time, but no further than to `until`: for whoever looks
    /// or meddles in between. `false`: nothing happens until then, and it is then now.
    pub fn step(&mut self, until: Instant) -> bool {
        match self.next().filter(|at| *at <= until) {
            Some(at) => {
                self.now = self.now.max(at);
                self.serve();
                true
            }
            None => {
                self.now = self.now.max(until);
                false
            }
        }
    }

    /// Runs until all traffic is done, nothing can happen any more, or `span` has passed.
    pub fn run(&mut self, span: Duration) -> Outcome {
        let end = self.now + span;
        loop {
            self.serve();
            if self.traffic.iter().all(|traffic| traffic.progress() != Progress::Going) {
                return Outcome::Done;
            }
            match self.next() {
                None => return Outcome::Stuck,
                Some(at) if at > end => {
                    self.now = end;
                    return Outcome::TimeUp;
                }
                Some(at) => self.now = self.now.max(at),
            }
        }
    }

    /// Runs for `span`, whatever happens.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.serve();
            match self.next() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
        }
        self.now = end;
    }

    /// Everything that happens at the present time.
    fn serve(&mut self) {
        loop {
            self.deliver();
            let mut busy = false;
            for index in 0..self.hosts.len() {
                self.hosts[index].at(self.now);
                if self.hosts[index].is_due(self.now) {
                    self.hosts[index].turn();
                    busy = true;
                }
                self.collect(index);
            }
            for traffic in &mut self.traffic {
                if traffic.progress() == Progress::Going {
                    busy |= traffic.step(self.now, &mut self.hosts);
                }
            }
            for index in 0..self.hosts.len() {
                self.collect(index);
            }
            let due = self.hosts.iter().any(|host| host.is_due(self.now));
            let arrived = self.next_arrival().is_some_and(|at| at <= self.now);
            if !busy && !due && !arrived {
                return;
            }
        }
    }

    /// Frames that are due go to their hosts, in the order of the cables.
    fn deliver(&mut self) {
        for cable in &mut self.cables {
            for direction in [0, 1] {
                let (host, device) = cable.ends[1 - direction];
                while let Some(frame) = cable.links[direction].receive(self.now) {
                    self.hash.arrived(self.now, host.0, device, &frame);
                    if let Some(watch) = &mut self.watch {
                        watch(&Sight { now: self.now, host, device, arrives: true, frame: &frame });
                    }
                    self.hosts[host.0].deliver(device, frame);
                }
            }
        }
    }

    /// A frame that reaches a device now, from whoever else is on its link: a station that runs no graph, and means harm.
    pub fn inject(&mut self, (host, device): Plug, frame: Vec<u8>) {
        self.hash.arrived(self.now, host.0, device, &frame);
        if let Some(watch) = &mut self.watch {
            watch(&Sight { now: self.now, host, device, arrives: true, frame: &frame });
        }
        self.hosts[host.0].deliver(device, frame);
    }

    /// Frames that a host has sent go onto its cables.
    fn collect(&mut self, index: usize) {
        for (device, frame) in self.hosts[index].take_sent() {
            self.hash.sent(self.now, index, device, &frame);
            if let Some(watch) = &mut self.watch {
                watch(&Sight { now: self.now, host: HostId(index), device, arrives: false, frame: &frame });
            }
            match self.plugged.get(&(HostId(index), device)) {
                Some(&(cable, end)) => {
                    self.cables[cable].links[end].send(self.now, frame);
                }
                None => self.unplugged += 1,
            }
        }
    }

    fn next_arrival(&self) -> Option<Instant> {
        let links = self.cables.iter().flat_map(|cable| &cable.links);
        links.fold(None, |soonest, link| earlier(soonest, link.next()))
    }

    /// When something happens next.
    fn next(&self) -> Option<Instant> {
        let wake = |host: &Host| match host.wake {
            _ if host.is_due(self.now) => Some(self.now),
            Wake::Now => Some(self.now),
            Wake::At(at) => Some(at),
            Wake::Never => None,
        };
        let hosts = self.hosts.iter().fold(None, |soonest, host| earlier(soonest, wake(host)));
        let going = self.traffic.iter().filter(|traffic| traffic.progress() == Progress::Going);
        let traffic = going.fold(None, |soonest, traffic| earlier(soonest, traffic.next()));
        earlier(earlier(hosts, self.next_arrival()), traffic)
    }
}
