//! A peer that means harm and knows its numbers: the input is a program that opens connections in order, both ways, and then
//! sends what is nearly right: numbers off by little, edges of windows, odd flags, options of wrong lengths, data that
//! overlaps, clocks of yesterday, reports of what nobody sent, errors of the network about live connections, in fragments if it likes;
//! time passes, and the application does what it may. Whatever comes: no panic, no more memory than two connections'
//! worth of limits each, what is delivered is what was sent from the beginning on, and whoever comes after it is served.

use super::forge::{Forged, Place, Seen, complaint};
use super::road::Road;
use crate::catalogue;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::pool::{LARGE, SMALL};
use xylem_core::{Acceptor, Anchor, Control, EnableWish, Event, Message, Part, Participants, PathId, Random, Setting};
use xylem_graph::file::{Value, load};
use xylem_graph::instance::{DeviceFacts, Instance, Limits, Listening, Shepherd, Work};
use xylem_wire::*;

const HOST: Place = (Ipv4Addr::new(10, 0, 0, 2), EthernetAddress([2, 0, 0, 0, 0, 2]));
const EVIL: Place = (Ipv4Addr::new(10, 0, 0, 66), EthernetAddress([2, 0, 0, 0, 0, 66]));
const HONEST: Place = (Ipv4Addr::new(10, 0, 0, 1), EthernetAddress([2, 0, 0, 0, 0, 1]));
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);
const SERVED: Port = Port(80);
/// The first port of the peer's connections.
const PORTS: u16 = 5000;

/// Connections of one program, and its steps.
const CONNECTIONS_MAX: usize = 4;
const STEPS_MAX: usize = 300;
/// Either buffer of a connection, in bytes.
const BUFFER: usize = 8192;
/// What may be held besides the connections' buffers: fragments of all steps, headers, neighbours.
const HELD_BESIDES: usize = 1 << 20;
/// Half-open connections, at most.
const BACKLOG: usize = 4;
const MILLISECOND: u64 = 1_000_000;
/// Longer than any deadline.
const QUIET: u64 = 700_000 * MILLISECOND;

/// The program, byte by byte; behind its end everything is zero.
struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Small numbers of either sign, as multiples of 1, 100 or 20 000.
    fn offset(&mut self) -> u32 {
        let (size, count) = (self.byte(), self.byte() as i8);
        let unit = [1, 1, 100, 20_000][usize::from(size % 4)];
        (i32::from(count) * unit) as u32
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

/// What a connection's peer sends at a place: places count from its SYN.
fn content(port: Port, place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ port.0 as u8
}

/// The application's side of a path: it keeps what came, and lets the buffers go.
#[derive(Default)]
struct Ear(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    unread: usize,
    has_ended: bool,
    is_gone: bool,
}

impl Ear {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Anchor for Ear {
    fn deliver(&self, message: Message) {
        let mut heard = self.heard();
        heard.unread += message.len();
        heard.bytes.extend(message.to_vec());
    }

    fn told(&self, control: Control) {
        let ended = [Event::PeerClosed, Event::Reset, Event::Refused, Event::TimedOut, Event::Unreachable];
        if let Control::Event(event) = control {
            self.heard().has_ended |= ended.contains(&event);
        }
    }

    fn gone(&self) {
        self.heard().is_gone = true;
    }
}

/// Who is let in, by its ports.
#[derive(Default)]
struct Door(Mutex<VecDeque<(Port, PathId, Arc<Ear>)>>);

impl Acceptor for Door {
    fn accept(&self, path: PathId, participants: &Participants) -> Option<Arc<dyn Anchor>> {
        let ear = Arc::<Ear>::default();
        let port = participants.remote.find_port()?;
        let mut came = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        came.push_back((port, path, Arc::clone(&ear)));
        Some(ear)
    }

    fn deliver(&self, _message: Message) {}
}

/// A connection as its peer knows it.
struct Connection {
    /// Who its peer is, and the ports.
    peer: Place,
    port: Port,
    host_port: Port,
    /// The number of the peer's SYN.
    first: SequenceNumber,
    /// The place that the peer sends next, if it sends in order.
    next: u64,
    /// What it has sent, by place.
    sent: BTreeMap<u64, u64>,
    /// The number of the host's SYN, once seen, and the number expected next.
    host_first: Option<SequenceNumber>,
    expected: SequenceNumber,
    /// The host has acknowledged the peer's SYN.
    is_known: bool,
    /// The host's last clock, if it has one.
    stamp: Option<SequenceNumber>,
    /// The last frame of the host's.
    last: Option<Vec<u8>>,
    clock: u32,
    window: u16,
    /// The application's end, once there is one.
    end: Option<(PathId, Arc<Ear>)>,
    /// The application reads what comes.
    reads: bool,
    closed: bool,
}

impl Connection {
    fn new(peer: Place, port: Port, first: u32) -> Connection {
        Connection {
            peer,
            port,
            host_port: SERVED,
            first: SequenceNumber(first),
            next: 0,
            sent: BTreeMap::new(),
            host_first: None,
            expected: SequenceNumber(0),
            is_known: false,
            stamp: None,
            last: None,
            clock: 1_000_000,
            window: u16::MAX,
            end: None,
            reads: true,
            closed: false,
        }
    }

    fn ends(&self) -> ((Place, Port), (Place, Port)) {
        ((self.peer, self.port), (HOST, self.host_port))
    }

    /// What would be right to say next.
    fn plain<'a>(&self) -> Forged<'a> {
        let (from, to) = self.ends();
        let sequence = self.first + self.next as u32;
        let acknowledgment = self.expected;
        Forged { sequence, acknowledgment, window: self.window, ..Forged::between(from, to) }
    }

    /// The payload that belongs at a number: what lies before the beginning is nothing that was ever meant.
    fn payload(&self, sequence: SequenceNumber, flags: TcpFlags, count: usize) -> Vec<u8> {
        let syn = i64::from(flags.contains(TcpFlags::SYN));
        let begin = i64::from(sequence.since(self.first)) + syn;
        let byte = |place: i64| if place < 1 { 0xee } else { content(self.port, place as u64) };
        (begin..begin + count as i64).map(byte).collect()
    }

    /// So much went out from a number on.
    fn note(&mut self, sequence: SequenceNumber, flags: TcpFlags, count: usize) {
        let begin = i64::from(sequence.since(self.first)) + i64::from(flags.contains(TcpFlags::SYN));
        let end = begin + count as i64;
        if end > 1 {
            let longest = self.sent.entry(begin.max(1) as u64).or_default();
            *longest = (end as u64).max(*longest);
        }
    }

    /// Places from 1 on of which nothing is missing in what was sent.
    fn whole(&self) -> u64 {
        let reach =
            |reached: u64, (begin, end): (&u64, &u64)| if *begin <= reached { reached.max(*end) } else { reached };
        self.sent.iter().fold(1, reach) - 1
    }

    /// The host has sent this.
    fn hear(&mut self, seen: &Seen, frame: Vec<u8>) {
        let header = &seen.header;
        if header.flags.contains(TcpFlags::SYN) {
            self.host_first = Some(header.sequence);
            self.expected = header.sequence + 1;
        }
        self.is_known |= header.flags.contains(TcpFlags::ACK) && header.acknowledgment == self.first + 1;
        if header.sequence.is_at_or_before(self.expected) {
            self.expected = self.expected.later(header.sequence + seen.length());
        }
        if let Some(timestamps) = seen.options.timestamps {
            self.stamp = Some(timestamps.value);
        }
        self.last = Some(frame);
    }
}

/// The host, and everybody who speaks to it.
struct Town {
    instance: Instance,
    shepherd: Shepherd,
    road: Road,
    door: Arc<Door>,
    listening: Listening,
    connections: Vec<Connection>,
}

/// Runs a program.
///
/// # Panics
/// If one of the promises in the module's text is broken.
pub(super) fn peer(bytes: &[u8]) {
    let mut program = Program(bytes);
    let mut town = Town::new(&mut program);
    for _ in 0..STEPS_MAX {
        if program.0.is_empty() {
            break;
        }
        town.step(&mut program);
        town.look();
        town.judge();
    }
    town.an_honest_one_is_served();
    town.nothing_is_left();
}

impl Town {
    /// A host whose options the program chooses.
    fn new(program: &mut Program<'_>) -> Town {
        let text = include_str!("../../../../graphs/host.graph");
        let mut graph = load(text, &catalogue::builtin()).expect("the graph is right");
        let mut set = |node, option, value| graph.set(node, option, value).expect("the graph has that node");
        set("link0", "address", Value::Text(HOST.1.to_string()));
        for option in ["receive_buffer", "send_buffer"] {
            set("tcp", option, Value::Size(BUFFER as u64));
        }
        let bits = program.byte();
        for (bit, option) in ["sack", "timestamps", "window_scaling"].into_iter().enumerate() {
            set("tcp", option, Value::Bool(bits & 1 << bit == 0));
        }
        let cookies = ["overflow", "off", "always", "overflow"][usize::from(bits >> 3 & 3)];
        let congestion = ["cubic", "reno", "bbr", "cubic"][usize::from(bits >> 5 & 3)];
        set("tcp", "syn_cookies", Value::Text(cookies.into()));
        set("tcp", "congestion", Value::Text(congestion.into()));
        set("tcp", "ecn", Value::Text(["passive", "on"][usize::from(bits >> 7)].into()));
        let device = DeviceFacts::plain("fuzz", 1514);
        let limits = Limits { paths: 64, enables: 4, small_buffers: 2048, large_buffers: 64 };
        let made = xylem_graph::build::build(&graph, &catalogue::builtin(), vec![device], limits, 7);
        let instance = made.expect("the graph is right");
        let door = Arc::<Door>::default();
        let wish = EnableWish {
            participants: Participants::new([Part::Port(SERVED)], []),
            wild: false,
            backlog: BACKLOG,
            shared: false,
        };
        let tcp = instance.node_of_kind("tcp").expect("the graph has one");
        let listening = instance.enable(tcp, wish, door.clone()).expect("nobody else listens");
        let (shepherd, road) = (instance.shepherd(), Road::new(instance.pool().clone()));
        let mut town = Town { instance, shepherd, road, door, listening, connections: Vec::new() };
        for place in [EVIL, HONEST] {
            town.introduce(place);
        }
        town
    }

    /// A neighbour makes itself known.
    fn introduce(&mut self, place: Place) {
        let mut message = Message::from_bytes(&[]);
        message.push_header(&ArpHeader {
            operation: ArpOperation::REQUEST,
            sender_hardware: place.1,
            sender_protocol: place.0,
            target_hardware: EthernetAddress::UNSPECIFIED,
            target_protocol: HOST.0,
        });
        message.push_header(&EthernetHeader { destination: HOST.1, source: place.1, kind: EtherType::ARP });
        self.road.frame(&message.to_vec());
        self.look();
    }

    /// The host does what there is to do, and everybody reads what it has sent; questions for addresses are answered.
    fn look(&mut self) {
        loop {
            self.road.settle(&self.instance, &mut self.shepherd);
            let Some(frame) = self.road.sent() else { break };
            let asks = frame.get(EthernetHeader::LEN..).and_then(|packet| ArpHeader::parse(packet).ok());
            match Seen::read(&frame) {
                Some(seen) => self.hear(&seen, frame),
                None if asks.is_some_and(|arp| arp.target_protocol == EVIL.0 && arp.sender_protocol == HOST.0) => {
                    self.introduce_quietly(EVIL);
                }
                None => {}
            }
        }
        self.welcome();
        self.read();
    }

    fn introduce_quietly(&mut self, place: Place) {
        let mut message = Message::from_bytes(&[]);
        message.push_header(&ArpHeader {
            operation: ArpOperation::REPLY,
            sender_hardware: place.1,
            sender_protocol: place.0,
            target_hardware: HOST.1,
            target_protocol: HOST.0,
        });
        message.push_header(&EthernetHeader { destination: HOST.1, source: place.1, kind: EtherType::ARP });
        self.road.frame(&message.to_vec());
    }

    fn hear(&mut self, seen: &Seen, frame: Vec<u8>) {
        let (port, peer, from) = (seen.header.destination, seen.ip.destination, seen.header.source);
        let of = |connection: &&mut Connection| connection.port == port && connection.peer.0 == peer;
        if let Some(connection) = self.connections.iter_mut().find(of) {
            if connection.host_first.is_none() {
                connection.host_port = from;
            }
            connection.hear(seen, frame);
        }
    }

    fn welcome(&mut self) {
        let came = std::mem::take(&mut *self.door.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (port, path, ear) in came {
            let of = |connection: &&mut Connection| connection.port == port;
            match self.connections.iter_mut().find(of) {
                Some(connection) if connection.end.is_none() => connection.end = Some((path, ear)),
                // A second connection between the same ends, when the first has gone: it is let go.
                _ => self.ask(path, Work::Close),
            }
        }
    }

    fn read(&mut self) {
        let mut read = Vec::new();
        for connection in self.connections.iter().filter(|connection| connection.reads) {
            if let Some((path, ear)) = &connection.end {
                read.push((*path, std::mem::take(&mut ear.heard().unread)));
            }
        }
        for (path, count) in read.into_iter().filter(|(_, count)| *count > 0) {
            self.ask(path, Work::Credit(count));
        }
    }

    fn ask(&mut self, path: PathId, work: Work) {
        self.instance.request(&self.road, &mut self.shepherd, path, work);
    }

    /// One step of the program.
    fn step(&mut self, program: &mut Program<'_>) {
        let (what, which) = (program.byte(), program.byte());
        if self.connections.is_empty() || what % 16 == 0 {
            return self.open(program, which);
        }
        let index = usize::from(which) % self.connections.len();
        match what % 16 {
            1 => self.accept_the_handshake(index),
            2 | 3 => self.send(index, TcpFlags::ACK, 1 + usize::from(program.byte()) * 4),
            4 => self.send(index, TcpFlags::ACK | [TcpFlags::FIN, TcpFlags::PSH][usize::from(program.byte() % 2)], 0),
            5..=9 => self.send_nearly(index, program),
            10 => {
                let milliseconds = 1 << (program.byte() % 18);
                self.road.wait(&self.instance, &mut self.shepherd, milliseconds * MILLISECOND);
            }
            11 => self.complain(index, program),
            12 => self.apply(index, program),
            13 => {
                self.connections[index].window = program.of(&[0, 1, 100, 1460, u16::MAX]);
                self.send(index, TcpFlags::ACK, 0);
            }
            14 => {
                if let Some(frame) = self.connections[index].last.clone() {
                    // Its own words come back to it.
                    self.road.frame(&frame);
                }
            }
            _ => {
                let connection = &mut self.connections[index];
                connection.clock += u32::from(program.byte()) << 4;
            }
        }
    }

    /// A connection begins: the peer sends its SYN, or the application opens and the peer will answer.
    fn open(&mut self, program: &mut Program<'_>, which: u8) {
        if self.connections.len() >= CONNECTIONS_MAX {
            return;
        }
        let port = Port(PORTS + self.connections.len() as u16);
        let first = program.of(&[0, 1_000_000, 0x7fff_fff0, u32::MAX - 3]);
        let mut connection = Connection::new(EVIL, port, first);
        if which % 4 == 3 {
            let ear = Arc::<Ear>::default();
            let tcp = self.instance.node_of_kind("tcp").expect("the graph has one");
            let participants = Participants::internet((None, None), (EVIL.0.into(), port));
            let (world, shepherd) = (&self.road, &mut self.shepherd);
            if let Ok(path) = self.instance.open(world, shepherd, tcp, participants, ear.clone()) {
                connection.end = Some((path, ear));
                self.connections.push(connection);
            }
            return;
        }
        self.connections.push(connection);
        let index = self.connections.len() - 1;
        self.send_syn(index, TcpFlags::SYN, program);
    }

    fn send_syn(&mut self, index: usize, flags: TcpFlags, program: &mut Program<'_>) {
        let connection = &mut self.connections[index];
        let bits = program.byte();
        let mut said = TcpOptions { mss: Some([1460, 536, 64, 0][usize::from(bits & 3)]), ..TcpOptions::NONE };
        said.sack_permitted = bits & 4 != 0;
        said.window_scale = (bits & 8 != 0).then_some(bits >> 4);
        said.window_scale = said.window_scale.map(|shift| shift.min(TcpOptions::WINDOW_SCALE_MAX));
        if bits & 16 != 0 {
            let (value, echo) = (SequenceNumber(connection.clock), connection.stamp.unwrap_or_default());
            said.timestamps = Some(Timestamps { value, echo });
        }
        let mut options = [0; TcpHeader::OPTIONS_MAX];
        let length = said.build(&mut options);
        let plain = Forged { sequence: connection.first, ..connection.plain() };
        let frame = Forged { flags, options: &options[..length], ..plain }.frame();
        connection.next = 1;
        self.road.frame(&frame);
    }

    /// The peer does its part of the handshake.
    fn accept_the_handshake(&mut self, index: usize) {
        if self.connections[index].next == 0 {
            if self.connections[index].host_first.is_some() {
                self.send_syn(index, TcpFlags::SYN | TcpFlags::ACK, &mut Program(&[4 | 16]));
            }
        } else {
            self.send(index, TcpFlags::ACK, 0);
        }
    }

    /// The peer sends what is right and next.
    fn send(&mut self, index: usize, flags: TcpFlags, count: usize) {
        let connection = &mut self.connections[index];
        if connection.next == 0 {
            return;
        }
        connection.clock += 1;
        let plain = connection.plain();
        let payload = connection.payload(plain.sequence, flags, count);
        let (options, length) = connection.usual_options();
        connection.note(plain.sequence, flags, count);
        connection.next += count as u64 + u64::from(flags.contains(TcpFlags::FIN));
        let frame = Forged { flags, payload: &payload, options: &options[..length], ..plain }.frame();
        self.road.frame(&frame);
    }

    /// The peer sends what is nearly right.
    fn send_nearly(&mut self, index: usize, program: &mut Program<'_>) {
        let connection = &mut self.connections[index];
        let (plain, flags) = (connection.plain(), TcpFlags(program.byte()));
        // Most have an acknowledgment: without one there is little to look at.
        let flags = if !program.byte().is_multiple_of(4) { flags | TcpFlags::ACK } else { flags };
        let sequence = match program.byte() % 4 {
            0 => connection.first,
            1 => plain.sequence + 8192,
            _ => plain.sequence,
        } + program.offset();
        // Another SYN before the connection is open would be another connection, of other numbers.
        let is_other = flags.contains(TcpFlags::SYN) && !(connection.is_known && connection.end.is_some());
        let sequence = if is_other { connection.first } else { sequence };
        let acknowledgment = match program.byte() % 4 {
            0 => connection.host_first.unwrap_or_default(),
            _ => plain.acknowledgment,
        } + program.offset();
        let count = usize::from(program.byte()) * usize::from(1 + program.byte() % 5);
        let payload = connection.payload(sequence, flags, count);
        let window = program.of(&[0, 1, 500, 1460, 8192, u16::MAX]);
        let urgent = if flags.contains(TcpFlags::URG) { u16::from(program.byte()) * 7 } else { 0 };
        let (options, length) = connection.odd_options(program, acknowledgment);
        connection.note(sequence, flags, count);
        let ecn = program.of(&[Ecn::NotCapable, Ecn::Capable0, Ecn::Experienced]);
        let options = &options[..length];
        let forged =
            Forged { flags, sequence, acknowledgment, window, urgent, payload: &payload, options, ecn, ..plain };
        let units = program.byte();
        let frames = if units.is_multiple_of(4) {
            forged.fragments(u16::from(units / 4), u16::from(units))
        } else {
            vec![forged.frame()]
        };
        frames.iter().for_each(|frame| self.road.frame(frame));
    }

    /// A router, or who says so, complains about something that the host has sent, or about what it never did.
    fn complain(&mut self, index: usize, program: &mut Program<'_>) {
        let connection = &self.connections[index];
        let (from, to) = connection.ends();
        let about = match (&connection.last, program.byte() % 2) {
            (Some(frame), 0) => frame.clone(),
            _ => Forged { sequence: connection.expected + program.offset(), ..Forged::between(to, from) }.frame(),
        };
        let kind = program.of(&[
            IcmpKind::UNREACHABLE,
            IcmpKind::UNREACHABLE,
            IcmpKind::TIME_EXCEEDED,
            IcmpKind::SOURCE_QUENCH,
        ]);
        let (code, word) = (program.byte() % 16, u32::from(program.byte()) * 8);
        self.road.frame(&complaint(ROUTER, EVIL.1, kind, code, word, &about));
    }

    /// The application does something.
    fn apply(&mut self, index: usize, program: &mut Program<'_>) {
        let connection = &mut self.connections[index];
        let Some((path, _)) = connection.end.clone().filter(|_| !connection.closed) else { return };
        let (what, more) = (program.byte() % 8, program.byte());
        let set = |setting| Work::Control(Control::Set(setting));
        let work = match what {
            0..=2 => Work::Push(Message::from_bytes(&vec![more; usize::from(more) * 8 + 1])),
            3 => {
                connection.reads = !connection.reads;
                return;
            }
            4 => set(Setting::SendClosed),
            5 => set(Setting::ReceiveBuffer(BUFFER - usize::from(more) * 16)),
            6 if more.is_multiple_of(4) => {
                connection.closed = true;
                Work::Close
            }
            _ => set(Setting::NoDelay(more.is_multiple_of(2))),
        };
        self.ask(path, work);
    }

    /// What must hold after every step.
    fn judge(&mut self) {
        for connection in &self.connections {
            let Some((_, ear)) = &connection.end else { continue };
            let heard = ear.heard();
            let whole = connection.whole();
            assert!(heard.bytes.len() as u64 <= whole, "{} bytes delivered, {whole} sent", heard.bytes.len());
            let wrong = (1..).zip(&heard.bytes).find(|(place, byte)| content(connection.port, *place) != **byte);
            assert_eq!(wrong, None, "port {} was delivered what was not sent there", connection.port.0);
        }
        let (small, large) = self.instance.reading().buffers_held;
        let held = small * SMALL + large * LARGE;
        // A send buffer, and twice a receive buffer for what came early.
        let most = (CONNECTIONS_MAX + 1) * 3 * BUFFER + HELD_BESIDES;
        assert!(held <= most, "{held} bytes in buffers, {most} at most");
        assert!(self.instance.path_count() <= 64);
    }

    /// Somebody else comes: the handshake, a hundred bytes each way, and the end of it.
    fn an_honest_one_is_served(&mut self) {
        self.connections.push(Connection::new(HONEST, Port(40_000), 77));
        let index = self.connections.len() - 1;
        // What is half-open may fill the backlog; whoever is not answered at once tries again, as everybody does.
        for wait in [1, 1000, 2000, 4000, 8000, 60_000] {
            self.introduce(HONEST);
            self.send_syn(index, TcpFlags::SYN, &mut Program(&[0]));
            self.look();
            if self.connections[index].host_first.is_some() {
                break;
            }
            self.road.wait(&self.instance, &mut self.shepherd, wait * MILLISECOND);
        }
        assert!(self.connections[index].host_first.is_some(), "an honest SYN is not answered");
        self.send(index, TcpFlags::ACK | TcpFlags::PSH, 100);
        self.look();
        self.judge();
        let end = self.connections[index].end.clone();
        let (path, ear) = end.expect("an honest connection is not let in");
        assert_eq!(ear.heard().bytes.len(), 100, "an honest connection is not heard");
        let before = self.connections[index].expected;
        self.ask(path, Work::Push(Message::from_bytes(&[7; 100])));
        self.look();
        assert_eq!(self.connections[index].expected.since(before), 100, "an honest connection is not answered");
        self.send(index, TcpFlags::ACK | TcpFlags::FIN, 0);
        self.look();
        assert!(ear.heard().has_ended, "the end is not heard");
    }

    /// The applications let go, the peer falls silent, and after a while nothing is left.
    fn nothing_is_left(&mut self) {
        let ends: Vec<PathId> = self.connections.iter().filter_map(|one| one.end.as_ref().map(|end| end.0)).collect();
        for path in ends {
            self.ask(path, Work::Control(Control::Set(Setting::Abort)));
            self.ask(path, Work::Close);
        }
        self.instance.disable(self.listening.id);
        self.look();
        self.road.wait(&self.instance, &mut self.shepherd, QUIET);
        self.look();
        self.road.wait(&self.instance, &mut self.shepherd, QUIET);
        while self.road.sent().is_some() {}
        let is_gone = |connection: &Connection| connection.end.as_ref().is_none_or(|(_, ear)| ear.heard().is_gone);
        assert!(self.connections.iter().all(is_gone), "a connection has not gone");
        let reading = self.instance.reading();
        assert_eq!(reading.buffers_held, (0, 0), "buffers are left behind: {reading:?}");
        assert_eq!(self.instance.path_count(), self.instance.kept_path_count(), "paths are left behind");
    }
}

impl Connection {
    /// The options of every segment, where clocks are told.
    fn usual_options(&self) -> ([u8; TcpHeader::OPTIONS_MAX], usize) {
        let mut options = [0; TcpHeader::OPTIONS_MAX];
        let echo = self.stamp;
        let timestamps = echo.map(|echo| Timestamps { value: SequenceNumber(self.clock), echo });
        let length = TcpOptions { timestamps, ..TcpOptions::NONE }.build(&mut options);
        (options, length)
    }

    /// Options that are odd: clocks of another time, reports of what is not there, lengths that cannot be.
    fn odd_options(
        &self,
        program: &mut Program<'_>,
        acknowledgment: SequenceNumber,
    ) -> ([u8; TcpHeader::OPTIONS_MAX], usize) {
        let (mut options, length) = self.usual_options();
        let mut said = TcpOptions::NONE;
        match program.byte() % 8 {
            0..3 => return (options, length),
            3 => return (options, 0),
            4 => {
                let (value, echo) = (SequenceNumber(self.clock) + program.offset(), self.stamp.unwrap_or_default());
                said.timestamps = Some(Timestamps { value, echo: echo + program.offset() });
            }
            5 | 6 => {
                let echo = self.stamp;
                said.timestamps = echo.map(|echo| Timestamps { value: SequenceNumber(self.clock), echo });
                for _ in 0..1 + program.byte() % 3 {
                    let left = acknowledgment + program.offset();
                    said.sack.push(SackBlock { left, right: left + program.offset() });
                }
            }
            _ => {
                let count = usize::from(program.byte() % 10) * 4;
                options[..count].fill_with(|| program.byte());
                return (options, count);
            }
        }
        let length = said.build(&mut options);
        (options, length)
    }
}

/// A program that opens and talks, with something random now and then.
pub(super) fn sample(random: &mut Random) -> Vec<u8> {
    let mut program = vec![random.next() as u8];
    let is_active = random.below(3) == 0;
    // Open, shake hands twice (the second is an acknowledgment), some data.
    program.extend([0, if is_active { 3 } else { 0 }, random.next() as u8, random.next() as u8]);
    program.extend([1, 0, 1, 0, 2, 0, random.next() as u8]);
    for _ in 0..random.below(40) {
        program.push(random.below(16) as u8);
        program.push(random.below(2) as u8);
        for _ in 0..random.below(14) {
            program.push(random.next() as u8);
        }
    }
    program
}
