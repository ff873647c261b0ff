//! One seed's two hosts and the link between them: runs the plan, holds everything that happens against the laws, and says
//! what was wrong first.

use super::greed::{self, Greed};
use super::laws::{self, Laws};
use super::meddler::{self, Fault};
use super::plan::{Happening, Plan};
use super::stranger::Stranger;
use super::talk::{Talk, congestion};
use super::wire::Wire;
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use xylem::catalogue;
use xylem::fuzz::forge::{Seen, complaint};
use xylem_core::{Instant, Random, Setting};
use xylem_graph::build::build;
use xylem_graph::file::{Value, load, report};
use xylem_graph::instance::{DeviceFacts, Instance, Limits};
use xylem_graph::link::LINK_HEADER_BYTES;
use xylem_sim::{Host, HostId, Outline, Progress, Sim, Traffic};
use xylem_wire::{
    ArpHeader, ArpOperation, EtherType, EthernetAddress, EthernetHeader, Header, IcmpKind, IpProtocol, Ipv4Header,
};

pub use xylem::fuzz::forge::Place;

/// Where the two hosts stand.
pub const PLACES: [Place; 2] = [
    (Ipv4Addr::new(10, 0, 0, 1), EthernetAddress([2, 0, 0, 0, 0, 1])),
    (Ipv4Addr::new(10, 0, 0, 2), EthernetAddress([2, 0, 0, 0, 0, 2])),
];
/// Who says that packets are too large.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);
/// No conversation takes longer: a quarter of an hour ends one that gets nowhere.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Longer than any deadline: TIME-WAIT, neighbours, chains kept for answers.
const QUIET: Duration = Duration::from_secs(400);
/// More events than any conversation here takes.
const EVENTS_MAX: usize = 3_000_000;
const LIMITS: Limits = Limits { paths: 64, enables: 16, small_buffers: 16_384, large_buffers: 256 };

/// What was planted, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    Nothing,
    Fault(Fault),
    Greed(Greed),
}

/// How a run went that was right.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub seed: u64,
    pub events: usize,
    pub bytes: u64,
    pub meddled: usize,
    pub retransmitted: u64,
    pub marks: u64,
    pub longest_silence: Duration,
    /// Packets that were too large, and of which somebody was told.
    pub complaints: usize,
    /// Nobody could be reached to begin with.
    pub never_opened: bool,
}

/// Everything that looks.
struct Watching {
    talk: Talk,
    wire: Wire,
    laws: [Laws; 2],
    stranger: Stranger,
    /// What was wrong first.
    wrong: Option<String>,
    /// What arrives now is nobody's.
    is_forged: bool,
    /// Frames that were for nobody.
    astray: usize,
    /// The largest frame of each direction, and whether its sender hears of larger ones.
    frame_max: [usize; 2],
    tells: bool,
    too_large: Vec<(usize, Vec<u8>)>,
    /// Everything that is seen is printed.
    traces: bool,
    /// Segments seen when each host was last asked.
    asked_at: [u64; 2],
    run: Run,
}

impl Watching {
    fn note(&mut self, result: Result<(), String>) {
        if let Err(wrong) = result {
            self.wrong.get_or_insert(wrong);
        }
    }

    /// A frame leaves a host or reaches it.
    fn sight(&mut self, now: Instant, host: usize, arrives: bool, frame: &[u8]) {
        let seen = Seen::read(frame);
        if self.traces {
            let way = ["<", ">"][usize::from(arrives)];
            let forged = if arrives && self.is_forged { " forged" } else { "" };
            let what = seen
                .as_ref()
                .map_or_else(|| format!("{} bytes", frame.len()), |seen| self.wire.describe(host, arrives, seen));
            println!("{:>14.6} {way}{host} {what}{forged}", now.as_nanos() as f64 / 1e9);
        }
        if let Some(arp) = arp_in(frame) {
            // A question tells where the one who asks is; one about himself is none.
            let asks = arp.operation == ArpOperation::REQUEST && arp.target_protocol != arp.sender_protocol;
            if arrives || asks {
                self.wire.asks(host, arrives, now);
            }
            return;
        }
        if arrives {
            let to = EthernetHeader::parse(frame).map_or(EthernetAddress::BROADCAST, |header| header.destination);
            if to != PLACES[host].1 && to != EthernetAddress::BROADCAST {
                // A flipped bit in ARP, which nothing guards, has sent it astray (RFC 826).
                self.astray += 1;
                return;
            }
            if let Some(seen) = seen.filter(|_| !self.is_forged) {
                self.wire.arrives(host, &seen, now);
            }
            return;
        }
        match seen {
            Some(seen) => {
                let result = self.wire.leaves(host, &seen, now);
                self.note(result);
                self.stranger.overhear(host, frame, &seen);
            }
            None if is_segment(frame) => self.note(Err(format!("host {host} sent a segment that cannot be read"))),
            None => {}
        }
        if frame.len() > self.frame_max[host] && self.tells {
            self.too_large.push((host, frame.to_vec()));
        }
    }

    /// Whether both connections are open, as far as anybody knows.
    fn is_open(&self) -> bool {
        self.talk.ends.iter().all(|end| end.as_ref().is_some_and(|end| !end.is_gone()))
    }

    /// The connection of each host that has seen segments says how it is doing.
    fn ask(&mut self, hosts: &mut [Host]) {
        for host in [0, 1] {
            let count = self.wire.sides[host].count;
            if std::mem::replace(&mut self.asked_at[host], count) == count {
                continue;
            }
            if let Some(status) = self.talk.status(host, &mut hosts[host]) {
                if self.traces {
                    let (window, threshold) = (status.congestion_window, status.slow_start_threshold);
                    let (pipe, lost, timeout) = (status.pipe, status.lost, status.retransmission_timeout);
                    let of = format!("cwnd {window} ssthresh {threshold} pipe {pipe} lost {lost} rto {timeout:?}");
                    println!("{:>16}{host} {} {of}", "", status.state);
                }
                // In TIME-WAIT and before, nothing more is sent: there is nothing to be regulated.
                if !["SYN-SENT", "SYN-RECEIVED", "CLOSED", "TIME-WAIT"].contains(&status.state) {
                    let is_selective = !(0..2).any(|host| self.talk.plan.lacks(host, "sack"));
                    let acknowledged = self.wire.sides[host].acknowledged;
                    let result = self.laws[host].judge(&status, acknowledged, is_selective);
                    self.note(result.map_err(|wrong| format!("host {host}: {wrong}")));
                }
                self.run.marks = self.run.marks.max(status.marks);
                self.run.retransmitted = self.run.retransmitted.max(status.retransmitted);
            }
            let unread = self.talk.ends[host].as_ref().map_or(0, |end| end.unread());
            let result = laws::memory(&self.talk.plan, host, &hosts[host].instance.reading(), unread);
            self.note(result);
        }
    }

    /// Places of each side that are to be acknowledged.
    fn owed(&self) -> [u64; 2] {
        let cookies = self.talk.plan.has(1, "syn_cookies", "always");
        let of = |host: usize| match &self.talk.ends[host] {
            Some(end) if end.is_gone() => 0,
            Some(end) => 1 + end.pushed + u64::from(end.finished),
            // A SYN that was answered with a cookie is forgotten.
            None => u64::from(self.wire.sides[host].first.is_some() && !cookies),
        };
        [of(0), of(1)]
    }
}

fn is_segment(frame: &[u8]) -> bool {
    let ip = frame.get(EthernetHeader::LEN..).and_then(|packet| Ipv4Header::parse(packet).ok());
    ip.is_some_and(|ip| ip.protocol == IpProtocol::TCP && !ip.is_fragment())
}

fn arp_in(frame: &[u8]) -> Option<ArpHeader> {
    let ethernet = EthernetHeader::parse(frame).ok().filter(|header| header.kind == EtherType::ARP)?;
    ArpHeader::parse(frame.get(ethernet.header_length()..)?).ok()
}

/// The applications as the simulator drives them.
struct Driven(Rc<RefCell<Watching>>);

impl Traffic for Driven {
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool {
        let mut watching = self.0.borrow_mut();
        if watching.wrong.is_some() {
            return false;
        }
        let stepped = watching.talk.step(now, hosts);
        watching.ask(hosts);
        match stepped {
            Ok(is_busy) => is_busy,
            Err(wrong) => {
                watching.wrong.get_or_insert(wrong);
                false
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        let watching = self.0.borrow();
        watching.talk.next()
    }

    fn progress(&self) -> Progress {
        Progress::Going
    }

    fn outline(&self) -> Outline {
        Outline { what: "a talk".into(), how: String::new(), failed: false, bytes: 0, done_at: None }
    }
}

/// A host of `graphs/host.graph`, with somebody between TCP and IP where there is something to be done.
fn instance(plan: &Plan, host: usize, planted: Planted, seed: u64) -> Instance {
    let mut catalogue = catalogue::builtin();
    catalogue.register(meddler::ENTRY);
    greed::ALGORITHMS.iter().for_each(|algorithm| catalogue::add_congestion(&mut catalogue, algorithm));
    let fault = match planted {
        Planted::Fault(fault) if host == 1 => fault,
        _ => Fault::None,
    };
    let mut text = xylem::graphs::text("host").expect("it comes with Xylem").to_owned();
    let is_between = plan.marks_per_million > 0 || fault != Fault::None;
    if is_between {
        let lines = text.lines().map(|line| match line.strip_prefix("tcp") {
            Some(rest) => format!("tcp{}\nmeddler over ip", rest.replacen("over ip", "over meddler", 1)),
            None => line.to_owned(),
        });
        text = lines.collect::<Vec<_>>().join("\n");
    }
    let mut graph = load(&text, &catalogue).unwrap_or_else(|problems| panic!("{}", report("host", &problems)));
    let mut set = |node, option, value| graph.set(node, option, value).expect("the graph has that node");
    set("link0", "address", Value::Text(PLACES[host].1.to_string()));
    set("ip", "address", Value::Text(format!("{}/24", PLACES[host].0)));
    set("ip", "gateway", Value::Text(PLACES[1 - host].0.to_string()));
    for (option, value) in &plan.tcp[host] {
        set("tcp", option, value.clone());
    }
    if let Planted::Greed(greed) = planted {
        set("tcp", "congestion", Value::Text(greed.name().to_owned()));
    }
    if is_between {
        let number = meddler::ALL.iter().position(|one| *one == fault).expect("it is one of them");
        set("meddler", "fault", Value::Integer(number as i64));
        set("meddler", "marks_per_million", Value::Integer(i64::from(plan.marks_per_million)));
    }
    build(&graph, &catalogue, vec![DeviceFacts::plain("wire", 1514)], LIMITS, seed).expect("the graph is right")
}

struct Town {
    sim: Sim,
    watching: Rc<RefCell<Watching>>,
    happenings: std::vec::IntoIter<(Duration, Happening)>,
    next: Option<(Instant, Happening)>,
    random: Random,
    meddles_per_million: u32,
}

/// Runs a plan; `traces`: and prints every frame.
///
/// # Errors
/// What was wrong, in words.
pub fn run(plan: &Plan, planted: Planted, traces: bool) -> Result<Run, String> {
    let mut town = Town::new(plan, planted, traces);
    let mut events = 0;
    let end = Instant::ZERO + PATIENCE;
    while !town.watching.borrow().talk.is_over() {
        let until = town.next.as_ref().map_or(end, |(at, _)| *at);
        let goes_on = town.sim.step(until);
        match town.judge() {
            Err(wrong) if town.is_excused(plan, &wrong) => {
                return Ok(Run { seed: plan.seed, never_opened: true, ..Run::default() });
            }
            Err(wrong) => {
                if traces {
                    let drops = |host: &Host| format!("{}: {:?}", host.name, host.instance.reading().drops);
                    town.sim.hosts().iter().for_each(|host| println!("{}", drops(host)));
                }
                return Err(wrong);
            }
            Ok(()) => {}
        }
        if !goes_on && !town.happens() {
            return Err(format!("it never ends: {:?}", town.watching.borrow().wire));
        }
        town.meddle();
        events += 1;
        if events > EVENTS_MAX {
            return Err(format!("{events} events, and no end"));
        }
    }
    town.finish(plan, events)
}

impl Town {
    fn new(plan: &Plan, planted: Planted, traces: bool) -> Town {
        let mut sim = Sim::new(plan.seed);
        for host in 0..2 {
            let instance = instance(plan, host, planted, sim.seed_for(100 + host as u64));
            sim.add(Host::new(["opener", "listener"][host], instance));
        }
        let plugs = [(HostId(0), 0), (HostId(1), 0)];
        sim.join(plugs[0], plugs[1], &plan.links[0]).expect("within its limits");
        sim.change(0, 1, plan.links[1].clone()).expect("within its limits");
        let watching = Rc::new(RefCell::new(Watching {
            talk: Talk::new(plan),
            wire: Wire::default(),
            laws: Default::default(),
            stranger: Stranger::new(sim.seed_for(7)),
            wrong: None,
            is_forged: false,
            astray: 0,
            frame_max: [1514; 2],
            tells: true,
            too_large: Vec::new(),
            traces,
            asked_at: [0; 2],
            run: Run::default(),
        }));
        let eye = Rc::clone(&watching);
        sim.watch(Box::new(move |sight| {
            eye.borrow_mut().sight(sight.now, sight.host.0, sight.arrives, sight.frame);
        }));
        sim.drive(Driven(Rc::clone(&watching)));
        let happenings = plan.happenings.clone().into_iter();
        let random = Random::seeded(sim.seed_for(8));
        let mut town =
            Town { sim, watching, happenings, next: None, random, meddles_per_million: plan.meddles_per_million };
        town.take_next();
        town
    }

    fn take_next(&mut self) {
        self.next = self.happenings.next().map(|(at, what)| (Instant::ZERO + at, what));
    }

    fn judge(&mut self) -> Result<(), String> {
        let mut watching = self.watching.borrow_mut();
        let (owed, now) = (watching.owed(), self.sim.now());
        if watching.wrong.is_none() {
            let result = watching.wire.judge(owed, now);
            watching.note(result);
        }
        match watching.wrong.take() {
            Some(wrong) => Err(format!("at {:?}: {wrong}", now.since(Instant::ZERO))),
            None => Ok(()),
        }
    }

    /// Whether the conversation could not begin. Of a SYN that was answered with a cookie nothing is known: what overtakes the
    /// end of the handshake is answered with a reset (RFC 9293, section 3.10.7.2). And answers may go astray for a minute.
    fn is_excused(&self, plan: &Plan, wrong: &str) -> bool {
        let is_blind = plan.has(1, "syn_cookies", "always") || self.watching.borrow().astray > 0;
        is_blind && wrong.contains("was told Reset after 0 bytes in")
    }

    /// What was to happen now does; `false` if nothing was.
    fn happens(&mut self) -> bool {
        let Some((_, what)) = self.next.take_if(|(at, _)| *at <= self.sim.now()) else { return false };
        self.take_next();
        match what {
            Happening::Links(links, tells) => {
                let mut watching = self.watching.borrow_mut();
                for (direction, link) in links.into_iter().enumerate() {
                    watching.frame_max[direction] = link.mtu + LINK_HEADER_BYTES;
                    self.sim.change(0, direction, link).expect("within its limits");
                }
                watching.tells = tells;
            }
            Happening::Dark(is_dark) => self.sim.pull(0, is_dark),
            Happening::Buffer(host, bytes) => self.wish(host, Setting::ReceiveBuffer(bytes)),
            Happening::Congestion(host, name) => self.wish(host, congestion(name)),
        }
        true
    }

    fn wish(&mut self, host: usize, setting: Setting) {
        let watching = self.watching.borrow();
        watching.talk.wish(host, self.sim.host(HostId(host)), setting);
    }

    /// Routers say what is too large, and strangers what they like.
    fn meddle(&mut self) {
        let too_large = std::mem::take(&mut self.watching.borrow_mut().too_large);
        for (host, frame) in too_large {
            let mtu = self.watching.borrow().frame_max[host] - LINK_HEADER_BYTES;
            let by = PLACES[1 - host].1;
            self.watching.borrow_mut().run.complaints += 1;
            let frame = complaint(ROUTER, by, IcmpKind::UNREACHABLE, 4, mtu as u32, &frame);
            self.sim.inject((HostId(host), 0), frame);
        }
        if self.meddles_per_million > 0 && self.random.chance_per_million(self.meddles_per_million) {
            let meddling = {
                let mut watching = self.watching.borrow_mut();
                // What is over may begin anew for whoever asks.
                let is_open = watching.is_open();
                let Watching { stranger, wire, .. } = &mut *watching;
                if is_open { stranger.meddle(wire) } else { None }
            };
            if let Some(meddling) = meddling {
                self.watching.borrow_mut().is_forged = !meddling.is_real;
                self.sim.inject((HostId(meddling.host), 0), meddling.frame);
                self.watching.borrow_mut().is_forged = false;
            }
        }
    }

    /// Everybody has gone: after a while nothing is left.
    fn finish(mut self, plan: &Plan, events: usize) -> Result<Run, String> {
        self.watching.borrow_mut().talk.stop(self.sim.host(HostId(1)));
        self.sim.pull(0, false);
        self.sim.pass(QUIET);
        for host in 0..2 {
            let instance = &self.sim.host(HostId(host)).instance;
            let (reading, kept) = (instance.reading(), instance.kept_path_count());
            if reading.buffers_held != (0, 0) || instance.path_count() != kept {
                let (held, paths) = (reading.buffers_held, instance.path_count() - kept);
                return Err(format!("host {host} still has {held:?} buffers and {paths} paths"));
            }
            // One a protocol that looks at the time again and again, whatever came.
            if instance.deadline_count() > instance.nodes().len() {
                return Err(format!("host {host} still waits for {} deadlines", instance.deadline_count()));
            }
        }
        let watching = self.watching.borrow();
        let longest = watching.wire.sides.iter().map(|side| side.longest).max().unwrap_or_default();
        Ok(Run {
            seed: plan.seed,
            events,
            bytes: plan.talks.iter().map(|talks| talks.total).sum(),
            meddled: watching.stranger.sent,
            never_opened: watching.talk.never_opened(),
            longest_silence: longest,
            ..watching.run.clone()
        })
    }
}
