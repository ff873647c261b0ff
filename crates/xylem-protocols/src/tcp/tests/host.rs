//! A host of the tests: one TCP over a linker that opens nothing but a plain session, with its connections and what
//! their application has seen. It is what an instance is, in a hundred lines.

use crate::tcp::{TcpConfig, TcpProtocol};
use smallvec::SmallVec;
use std::net::IpAddr;
use xylem_core::opening::{EnableWish, Enabled};
use xylem_core::*;
use xylem_wire::{Header, Port};

/// A session that does nothing, so that TCP stands on something and batches meet a seam.
struct Plain;

impl Session for Plain {
    fn pop(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        Verdict::Pass
    }
    fn push(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        Verdict::Pass
    }
}

struct Below(Facts);

impl Linker for Below {
    fn open_below(
        &mut self,
        _lower: usize,
        participants: Participants,
        _random: &mut Random,
        _record: Option<&mut Record>,
    ) -> Result<Opened, OpenError> {
        let mut opened = Opened { facts: Some(self.0.clone()), participants, ..Opened::default() };
        opened.sessions.push(Box::new(Plain));
        Ok(opened)
    }
}

struct Nothing;

impl EnableLinker for Nothing {
    fn enable_below(&mut self, _lower: usize, wish: EnableWish, _: &mut Random) -> Result<Enabled, EnableError> {
        Ok(Enabled { participants: wish.participants, bindings: SmallVec::new() })
    }
}

/// One connection and its application.
pub struct Connection {
    pub path: Option<Path>,
    pub received: Vec<u8>,
    pub events: Vec<Event>,
    /// Bytes received and not credited.
    pub unread: usize,
    /// Whether what is received is credited at once.
    pub reads: bool,
    /// How often `writable` was said.
    pub writable: usize,
    /// Urgent bytes among the received.
    pub urgent: usize,
    /// Questions, advice and whatever else went down.
    pub advice: Vec<Control>,
}

/// A segment that a host sent or got.
pub enum Logged {
    Sent(Vec<u8>),
    Arrived(Vec<u8>),
}

pub struct Host {
    /// What went over its wire, if anybody wants to know.
    pub log: Option<Vec<Logged>>,
    pub protocol: TcpProtocol,
    pub facts: Facts,
    pub connections: Vec<Connection>,
    pub drops: Drops,
    pub out: Outbox,
    pub random: Random,
    /// What goes on the wire: whole messages, checksums not completed.
    pub sent: Vec<Message>,
    /// Whether messages that stand for several segments are cut before they go.
    pub cuts: bool,
    pub enables: Vec<Option<Enabled>>,
    pub accepts: bool,
}

pub const MTU: usize = 1500 - 20;

pub fn facts(local: IpAddr, remote: IpAddr) -> Facts {
    Facts { mtu: MTU, segment_max: 65_515, headroom: 34, local: Some(local), remote: Some(remote), number: 6 }
}

impl Host {
    pub fn new(config: TcpConfig, seed: u64, local: IpAddr, remote: IpAddr) -> Host {
        let mut random = Random::seeded(seed);
        let pool = Pool::new(16_384, 64);
        Host {
            log: None,
            protocol: TcpProtocol::new(config, &mut random),
            facts: facts(local, remote),
            connections: Vec::new(),
            drops: Drops::default(),
            out: Outbox::new(Instant::ZERO, random.child(), pool),
            random,
            sent: Vec::new(),
            cuts: true,
            enables: Vec::new(),
            accepts: true,
        }
    }

    pub fn local(&self) -> IpAddr {
        self.facts.local.unwrap()
    }

    pub fn remote(&self) -> IpAddr {
        self.facts.remote.unwrap()
    }

    /// Participants of a connection of this host.
    pub fn participants(&self, local: Option<u16>, remote: u16) -> Participants {
        Participants::internet((Some(self.local()), local.map(Port)), (self.remote(), Port(remote)))
    }

    pub fn open(&mut self, now: Instant, local: Option<u16>, remote: u16) -> Result<usize, OpenError> {
        let participants = self.participants(local, remote);
        self.make(now, participants, None, None)
    }

    pub fn import(&mut self, now: Instant, local: u16, remote: u16, record: &mut Record) -> Result<usize, OpenError> {
        let participants = self.participants(Some(local), remote);
        self.make(now, participants, None, Some(record))
    }

    pub fn make(
        &mut self,
        now: Instant,
        participants: Participants,
        enable: Option<EnableId>,
        record: Option<&mut Record>,
    ) -> Result<usize, OpenError> {
        let id = PathId { index: self.connections.len() as u32, generation: 0 };
        let mut below = Below(self.facts.clone());
        let mut stream = self.random.child();
        let mut opening = Opening::new(id, participants, now, &mut stream, &mut below);
        opening.enable = enable;
        opening.record = record;
        let offered = self.protocol.open(&mut opening)?;
        let path = Path::new(opening.finish(offered), self.random.child());
        self.connections.push(Connection {
            path: Some(path),
            received: Vec::new(),
            events: Vec::new(),
            unread: 0,
            reads: true,
            writable: 0,
            urgent: 0,
            advice: Vec::new(),
        });
        Ok(self.connections.len() - 1)
    }

    pub fn listen(&mut self, port: u16, backlog: usize) -> Result<usize, EnableError> {
        self.listen_early(port, backlog, 0)
    }

    /// As [`listen`](Host::listen), for `early` connections at once that bring data with their SYN.
    pub fn listen_early(&mut self, port: u16, backlog: usize, early: usize) -> Result<usize, EnableError> {
        let id = EnableId { index: self.enables.len() as u32, generation: 0 };
        let participants = Participants { local: [Part::Port(Port(port))].into(), ..Participants::default() };
        let mut nothing = Nothing;
        let wish = EnableWish { participants, wild: false, backlog, shared: false };
        let mut enabling = Enabling::new(id, wish, &mut self.random, &mut nothing);
        enabling.early_max = early;
        self.protocol.open_enable(&mut enabling)?;
        self.enables.push(Some(enabling.finish()));
        Ok(self.enables.len() - 1)
    }

    /// A segment arrives.
    pub fn arrive(&mut self, now: Instant, mut message: Message) {
        if let Some(log) = &mut self.log {
            log.push(Logged::Arrived(message.to_vec()));
        }
        self.out.now = now;
        let mut view = View::new(&mut message, now);
        view.participants = Participants::new([Part::Host(self.local())], [Part::Host(self.remote())]);
        let verdict = self.protocol.demux(&mut view, &mut self.out);
        let participants = std::mem::take(&mut view.participants);
        self.collect(None);
        match verdict {
            Demux::Path(id) => self.pop(now, id.index as usize, message),
            Demux::Open(enable) if self.accepts => match self.make(now, participants, Some(enable), None) {
                Ok(index) => self.pop(now, index, message),
                Err(OpenError::NoEmbryo | OpenError::Full(_)) => self.drops.count(&opening::NO_EMBRYO),
                Err(error) => panic!("a passive open failed: {error}"),
            },
            Demux::Open(_) | Demux::Keep => {}
            Demux::Drop(reason) => self.drops.count(reason),
            other => panic!("TCP has no use for {other:?}"),
        }
    }

    fn pop(&mut self, now: Instant, index: usize, mut message: Message) {
        self.verb(now, index, |path, out| path.pop(&mut message, out));
    }

    /// Several segments of one connection arrive together.
    pub fn pop_batch(&mut self, now: Instant, index: usize, messages: Vec<Message>) {
        let mut batch = Batch::default();
        messages.into_iter().for_each(|message| batch.add(message));
        self.verb(now, index, |path, out| path.pop_batch(&mut batch, out));
    }

    /// Runs a verb of a connection's path and takes up what it did.
    pub fn verb<R: Default>(
        &mut self,
        now: Instant,
        index: usize,
        verb: impl FnOnce(&mut Path, &mut Outbox) -> R,
    ) -> R {
        self.out.now = now;
        let Some(mut path) = self.connections[index].path.take() else { return R::default() };
        let result = verb(&mut path, &mut self.out);
        self.connections[index].path = Some(path);
        self.collect(Some(index));
        while self.connections[index].reads && self.connections[index].unread > 0 {
            let bytes = std::mem::take(&mut self.connections[index].unread);
            let Some(mut path) = self.connections[index].path.take() else { break };
            path.credit(bytes, &mut self.out);
            self.connections[index].path = Some(path);
            self.collect(Some(index));
        }
        result
    }

    pub fn credit(&mut self, now: Instant, index: usize, bytes: usize) {
        self.connections[index].unread -= bytes;
        self.verb(now, index, |path, out| path.credit(bytes, out));
    }

    /// Pushes as much of `bytes` as there is room for; returns how much.
    pub fn push(&mut self, now: Instant, index: usize, bytes: &[u8]) -> usize {
        let Some(path) = &self.connections[index].path else { return 0 };
        let count = path.room().min(bytes.len()).min(60_000);
        if count == 0 {
            return 0;
        }
        let mut message = Message::from_bytes(&bytes[..count]);
        let taken = self.verb(now, index, |path, out| path.push(&mut message, out));
        if taken { count } else { 0 }
    }

    pub fn set(&mut self, now: Instant, index: usize, setting: Setting) {
        let handled = self.verb(now, index, |path, out| Some(path.control(&mut Control::Set(setting), out)));
        assert_eq!(handled, Some(Handled::Yes), "{setting:?}");
    }

    /// Those below report something.
    pub fn hear(&mut self, now: Instant, index: usize, mut control: Control) {
        let handled = self.verb(now, index, |path, out| Some(path.control(&mut control, out)));
        assert_eq!(handled, Some(Handled::Yes), "{control:?}");
    }

    pub fn close(&mut self, now: Instant, index: usize) {
        self.verb(now, index, |path, out| path.close(out));
    }

    pub fn status(&mut self, now: Instant, index: usize) -> Status {
        let mut question = Control::Question(Question::Status, None);
        let _ = self.verb(now, index, |path, out| Some(path.control(&mut question, out)));
        match question {
            Control::Question(_, Some(Answer::Status(status))) => *status,
            _ => Status { state: "GONE", ..Status::default() },
        }
    }

    pub fn state(&mut self, now: Instant, index: usize) -> &'static str {
        self.status(now, index).state
    }

    /// When something is due next.
    pub fn deadline(&self) -> Option<Instant> {
        let paths = self.connections.iter().filter_map(|connection| connection.path.as_ref());
        paths.fold(self.protocol.deadline(), |soonest, path| time::earlier(soonest, path.deadline()))
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Instant) {
        self.out.now = now;
        if self.protocol.deadline().is_some_and(|at| at <= now) {
            self.protocol.timeout(&mut self.out);
            self.collect(None);
        }
        for index in 0..self.connections.len() {
            let deadline = self.connections[index].path.as_ref().and_then(Path::deadline);
            if deadline.is_some_and(|at| at <= now) {
                self.verb(now, index, |path, out| path.timeout(out));
            }
        }
    }

    /// Empties the outbox.
    fn collect(&mut self, index: Option<usize>) {
        let down: Vec<Message> = self.out.drain_down().collect();
        for message in down {
            let path = index.and_then(|index| self.connections[index].path.as_ref());
            let segments = match path {
                Some(path) if self.cuts => cut(path, message),
                _ => vec![message],
            };
            if let Some(log) = &mut self.log {
                log.extend(segments.iter().map(|segment| Logged::Sent(segment.to_vec())));
            }
            self.sent.extend(segments);
        }
        let replies: Vec<Reply> = self.out.drain_replies().collect();
        for reply in replies {
            assert_eq!(reply.participants.remote.find_host(), Some(self.remote()));
            self.sent.push(reply.message);
        }
        for reason in self.out.drain_dropped() {
            self.drops.count(reason);
        }
        let levels = self.out.take_levels();
        let linger = self.out.take_linger();
        self.out.take_credit();
        let Some(index) = index else { return };
        let connection = &mut self.connections[index];
        connection.writable += usize::from(levels.writable);
        for message in self.out.drain_up() {
            connection.unread += message.len();
            connection.urgent += if message.attributes.urgent { message.len() } else { 0 };
            connection.received.extend(message.to_vec());
        }
        for control in self.out.drain_told() {
            if let Control::Event(event) = control {
                connection.events.push(event);
            }
        }
        for mut advice in self.out.drain_advice().collect::<Vec<_>>() {
            // What no session takes the protocols are offered.
            let _ = self.protocol.control(&mut advice, &mut self.out);
            connection.advice.push(advice);
        }
        if levels.finished {
            connection.path = None;
            if let Some(entry) = linger {
                assert_eq!(self.protocol.linger(&entry, self.out.now), Handled::Yes);
            }
        }
    }
}

/// What the device's edge does with a message that stands for several segments.
pub fn cut(path: &Path, mut message: Message) -> Vec<Message> {
    let size = usize::from(message.attributes.segment_size);
    let length = crate::tcp::segment::read_header(&mut message).unwrap().header_length();
    let payload = message.len() - length;
    if size == 0 || payload <= size {
        return vec![message];
    }
    let bytes = message.to_vec();
    let count = payload.div_ceil(size);
    let pieces = (0..count).map(|index| {
        let (offset, length_of_piece) = (index * size, size.min(payload - index * size));
        let piece = Piece { index, offset, length: length_of_piece, last: index + 1 == count };
        let mut headers = bytes[..length].to_vec();
        assert_eq!(path.cut(&mut headers, &piece), length);
        headers.extend(&bytes[length + offset..][..length_of_piece]);
        let mut message_of_piece = Message::from_bytes(&headers);
        message_of_piece.attributes.checksum = message.attributes.checksum;
        message_of_piece.attributes.ecn_capable = message.attributes.ecn_capable;
        message_of_piece
    });
    pieces.collect()
}
