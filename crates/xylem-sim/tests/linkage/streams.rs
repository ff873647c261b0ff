//! Records over streams over the toy network, without an instance: two hosts whose one path is linked as a test wants it,
//! and a lossy link between them. The transcript holds every frame with its time and everything either end was told.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use xylem_core::path::EnableId;
use xylem_core::{
    Control, Demux, Duration, EnableLinker, EnableWish, Enabled, Enabling, End, Event, Facts, Instant, Leaf, Linker,
    Message, OpenError, Opened, Opening, Outbox, Part, Participants, Path, PathId, Pool, Protocol, Random, Record,
    Reply, Session, Setting, View,
};
use xylem_protocols::toy::HostNumber;
use xylem_protocols::toy::network::NetworkProtocol;
use xylem_protocols::toy::record::RecordProtocol;
use xylem_protocols::toy::stream::StreamProtocol;
use xylem_wire::Port;

/// Links sessions, lowest first, into one.
pub type Linkage = fn(Vec<Box<dyn Session>>) -> Box<dyn Session>;

/// A frame on the link: when it arrives, its number, at which host, its bytes.
type Flying = (Instant, u64, usize, Vec<u8>);

const PORT: Port = Port(80);
const PATH: PathId = PathId { index: 1, generation: 0 };
const ENABLE: EnableId = EnableId { index: 1, generation: 0 };
const MTU: usize = 300;

/// The protocols of one host, topmost first, and where in them an open has come.
struct Below<'h> {
    protocols: &'h [Box<dyn Protocol>],
    at: usize,
    now: Instant,
    passive: Option<Participants>,
}

impl Linker for Below<'_> {
    fn open_below(
        &mut self,
        _lower: usize,
        participants: Participants,
        random: &mut Random,
        _record: Option<&mut Record>,
    ) -> Result<Opened, OpenError> {
        let at = self.at + 1;
        let Some(protocol) = self.protocols.get(at) else {
            let facts = Facts { mtu: MTU, segment_max: MTU, headroom: 0, local: None, remote: None, number: 0 };
            let leaf = Leaf { end: End::Device(0), way: Default::default() };
            return Ok(Opened { leaves: [leaf].into_iter().collect(), facts: Some(facts), ..Opened::default() });
        };
        // The stream is where an open turns passive.
        let passive = if at == STREAM { self.passive.take() } else { None };
        let enable = passive.is_some().then_some(ENABLE);
        let mut nested = Below { at, passive: self.passive.clone(), ..*self };
        let mut opening = Opening::new(PATH, passive.unwrap_or(participants), self.now, random, &mut nested);
        opening.enable = enable;
        opening.number = 6;
        let facts = protocol.open(&mut opening)?;
        Ok(opening.finish(facts))
    }
}

/// The stream's place in a host's protocols.
const STREAM: usize = 1;

struct Nothing;

impl EnableLinker for Nothing {
    fn enable_below(&mut self, _: usize, _: EnableWish, _: &mut Random) -> Result<Enabled, xylem_core::EnableError> {
        unreachable!("the stream keeps the enable itself")
    }
}

struct Host {
    protocols: Vec<Box<dyn Protocol>>,
    path: Option<Path>,
    bindings: Vec<xylem_core::Binding>,
    out: Outbox,
    random: Random,
    linkage: Linkage,
    to_send: Vec<Vec<u8>>,
    sent: usize,
    send_closed: bool,
    peer_closed: bool,
    closed: bool,
    frames: Vec<Vec<u8>>,
}

impl Host {
    fn new(number: u32, linkage: Linkage, to_send: Vec<Vec<u8>>, random: &mut Random) -> Host {
        let protocols: Vec<Box<dyn Protocol>> = vec![
            Box::new(RecordProtocol),
            Box::new(StreamProtocol::new(random)),
            Box::new(NetworkProtocol::new(HostNumber(number))),
        ];
        Host {
            protocols,
            path: None,
            bindings: Vec::new(),
            out: Outbox::new(Instant::ZERO, random.child(), Pool::new(512, 1)),
            random: random.child(),
            linkage,
            to_send,
            sent: 0,
            send_closed: false,
            peer_closed: false,
            closed: false,
            frames: Vec::new(),
        }
    }

    fn listen(&mut self) {
        let participants = Participants::new([Part::Number(2), Part::Port(PORT)], []);
        let wish = EnableWish { participants, wild: false, backlog: 4, shared: false };
        let mut nothing = Nothing;
        let mut enabling = Enabling::new(ENABLE, wish, &mut self.random, &mut nothing);
        self.protocols[STREAM].open_enable(&mut enabling).expect("nobody listens yet");
        self.bindings.extend(enabling.finish().bindings);
    }

    fn open(&mut self, participants: Participants, passive: bool) {
        let passive = passive.then(|| participants.clone());
        let mut below = Below { protocols: &self.protocols, at: 0, now: self.out.now, passive };
        let mut opening = Opening::new(PATH, participants, self.out.now, &mut self.random, &mut below);
        let facts = self.protocols[0].open(&mut opening).expect("the only path of a host opens");
        let mut opened = opening.finish(facts);
        self.bindings.extend(opened.bindings.drain(..));
        let session = (self.linkage)(std::mem::take(&mut opened.sessions));
        self.path = Some(Path::of(session, End::Device(0), self.random.child()));
    }

    /// A frame from the link: demultiplexed, and popped if it is for the path.
    fn arrive(&mut self, frame: &[u8], log: &mut Vec<String>) {
        let mut message = Message::from_bytes(frame);
        let mut view = View::new(&mut message, self.out.now);
        let mut found = self.protocols[STREAM + 1].demux(&mut view, &mut self.out);
        if let Demux::Up(_) = found {
            found = self.protocols[STREAM].demux(&mut view, &mut self.out);
        }
        let participants = view.participants.clone();
        match found {
            Demux::Path(_) => {}
            Demux::Open(_) => self.open(participants, true),
            Demux::Drop(reason) => {
                log.push(format!("demux drops: {reason}"));
                message = Message::default();
            }
            _ => message = Message::default(),
        }
        let replies: Vec<Reply> = self.out.drain_replies().collect();
        replies.into_iter().for_each(|reply| self.reply(reply));
        if let (Some(path), false) = (&mut self.path, message.is_empty()) {
            path.pop(&mut message, &mut self.out);
            self.carry(log);
        }
    }

    fn reply(&mut self, reply: Reply) {
        let mut below = Below { protocols: &self.protocols, at: STREAM, now: self.out.now, passive: None };
        let opened = below.open_below(0, reply.participants, &mut self.random, None).expect("a reply finds its way");
        let mut message = reply.message;
        for mut session in opened.sessions.into_iter().rev() {
            let _passes = session.push(&mut message, &mut self.out);
        }
        self.frames.push(message.to_vec());
    }

    /// What a verb of the path has left, until nothing is left and nothing is due.
    fn carry(&mut self, log: &mut Vec<String>) {
        loop {
            self.frames.extend(self.out.drain_down().map(|message| message.to_vec()));
            let mut credit = 0;
            for message in self.out.drain_up() {
                credit += message.len();
                log.push(format!("raised {:?} end {}", message.to_vec(), message.attributes.end_of_message));
            }
            for control in self.out.drain_told() {
                self.peer_closed |= control == Control::Event(Event::PeerClosed);
                log.push(format!("told {control:?}"));
            }
            log.extend(self.out.drain_dropped().map(|reason| format!("dropped {reason}")));
            let (levels, _, _) = (self.out.take_levels(), self.out.take_credit(), self.out.take_linger());
            if levels.writable {
                log.push("writable".into());
            }
            if levels.finished {
                log.push("finished".into());
                self.path = None;
                return;
            }
            let Some(path) = &mut self.path else { return };
            if credit > 0 {
                path.credit(credit, &mut self.out);
            } else if path.deadline().is_some_and(|deadline| deadline <= self.out.now) {
                path.timeout(&mut self.out);
            } else if let Some(record) = self.to_send.get(self.sent)
                && path.room() >= record.len().max(1)
            {
                self.sent += 1;
                let taken = path.push(&mut Message::from_bytes(record), &mut self.out);
                log.push(format!("pushed {taken}"));
            } else if self.sent == self.to_send.len() && !self.send_closed {
                self.send_closed = true;
                let _answered = path.control(&mut Control::Set(Setting::SendClosed), &mut self.out);
            } else if self.peer_closed && self.send_closed && !self.closed {
                self.closed = true;
                path.close(&mut self.out);
            } else {
                return;
            }
        }
    }
}

/// One conversation; returns its transcript, and whether both paths came to their end.
pub fn converse(seed: u64, linkage: Linkage) -> (Vec<String>, bool) {
    let mut random = Random::seeded(seed);
    let mut texts = || {
        let count = random.below(6);
        let text = |_| {
            let mut record = vec![0; random.below(3000) as usize];
            random.fill(&mut record);
            record
        };
        (0..count).map(text).collect::<Vec<Vec<u8>>>()
    };
    let (mine, yours) = (texts(), texts());
    let mut hosts = [Host::new(1, linkage, mine, &mut random), Host::new(2, linkage, yours, &mut random)];
    let loss = random.below(150_000) as u32;
    let mut link = random.child();
    let mut log = Vec::new();
    let mut air: BinaryHeap<Reverse<Flying>> = BinaryHeap::new();
    let mut sent = 0;
    let mut now = Instant::ZERO;
    hosts[1].listen();
    hosts[0].open(Participants::new([Part::Number(1)], [Part::Number(2), Part::Port(PORT)]), false);
    hosts[0].carry(&mut log);
    for _ in 0..20_000 {
        for (index, host) in hosts.iter_mut().enumerate() {
            for frame in host.frames.drain(..) {
                log.push(format!("{now:?} host {index} sends {frame:?}"));
                sent += 1;
                if !link.chance_per_million(loss) {
                    let at = now + Duration::from_micros(1 + link.below(20_000));
                    air.push(Reverse((at, sent, 1 - index, frame)));
                }
            }
        }
        let deadline = |host: &Host| {
            let path = host.path.as_ref().and_then(Path::deadline);
            xylem_core::time::earlier(path, host.protocols[STREAM].deadline())
        };
        let soonest = xylem_core::time::earlier(deadline(&hosts[0]), deadline(&hosts[1]));
        let arrival = air.peek().map(|Reverse((at, ..))| *at);
        let Some(next) = xylem_core::time::earlier(soonest, arrival) else { break };
        now = now.max(next);
        hosts.iter_mut().for_each(|host| host.out.now = now);
        if arrival.is_some_and(|at| at <= now) {
            let Reverse((_, _, to, frame)) = air.pop().expect("it was seen a moment ago");
            hosts[to].arrive(&frame, &mut log);
        }
        for host in &mut hosts {
            if host.protocols[STREAM].deadline().is_some_and(|deadline| deadline <= now) {
                host.protocols[STREAM].timeout(&mut host.out);
                let replies: Vec<Reply> = host.out.drain_replies().collect();
                replies.into_iter().for_each(|reply| host.reply(reply));
            }
            host.carry(&mut log);
        }
    }
    for host in &hosts {
        if let Some(path) = &host.path {
            log.push(format!("left with {:?}", path.export().as_bytes()));
        }
    }
    let over = hosts.iter().all(|host| host.path.is_none());
    (log, over)
}
