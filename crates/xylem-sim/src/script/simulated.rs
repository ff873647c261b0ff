//! Our TCP as the subject of scripts: one instance of a graph in virtual time, its link's other end in the runner's hands.
//! The address of the peer is resolved before the script begins, so that scripts are about TCP.

use super::conversation::{Ends, PEER, PREFIX_BITS, SERVER_PORT, SUBJECT};
use super::event::{Arm, Outcome, Verb, Way, Wish};
use super::run::{Subject, Tolerance};
use super::settings::{Setting as Choice, Settings};
use crate::content::Content;
use crate::end::{End, Listener};
use crate::host::Host;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use xylem_core::{
    Answer, Control, EnableWish, Event, Instant, Message, Part, Participants, PathId, Question, Setting, Status,
};
use xylem_graph::build::{Catalogue, build, device_edges};
use xylem_graph::file::{Descriptions, Graph, Value, check, report};
use xylem_graph::instance::{DeviceFacts, Limits, Listening, Wake, Work};
use xylem_graph::link::LINK_HEADER_BYTES;
use xylem_wire::{ArpHeader, ArpOperation, EtherType, EthernetAddress, EthernetHeader, Header, Port};

/// The peer's address on the link.
const PEER_HARDWARE: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 2]);
/// When scripts begin, by the instance's clock: not at its zero, as real hosts do not.
const BEGIN: Duration = Duration::from_secs(1000);
/// What one script may take of an instance.
const LIMITS: Limits = Limits { paths: 64, enables: 16, small_buffers: 4096, large_buffers: 256 };

/// What the application of this connection writes.
pub fn content_written(ends: Ends) -> Content {
    Content(u64::from(ends.subject) << 16 | u64::from(ends.peer))
}

/// What the peer of this connection sends; `other`: bytes that it never should.
pub fn content_sent(ends: Ends, other: bool) -> Content {
    Content(1 << 40 | u64::from(other) << 41 | content_written(ends).0)
}

/// See the module's text.
pub struct Simulated {
    host: Host,
    now: Instant,
    hardware: EthernetAddress,
    sent: VecDeque<Vec<u8>>,
    listener: Arc<Listener>,
    listening: Option<Listening>,
    sockets: BTreeMap<Ends, Socket>,
    /// Which of them have opened and were not accepted yet.
    fresh: BTreeSet<Ends>,
}

/// Why a script cannot be run on a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulatedError {
    /// A setting of the script has no option in the graph.
    NoOption {
        /// The protocol that would have it.
        protocol: &'static str,
        /// The option.
        option: &'static str,
    },
    /// The graph with the script's settings is not one, or is none that scripts can be run on.
    Graph(String),
}

impl fmt::Display for SimulatedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulatedError::NoOption { protocol, option } => write!(out, "`{protocol}` has no option `{option}`"),
            SimulatedError::Graph(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for SimulatedError {}

struct Socket {
    path: PathId,
    end: Arc<End>,
    unread: VecDeque<u8>,
    read: u64,
    written: u64,
}

impl Simulated {
    /// An instance of the usual host's `graph` with a script's settings.
    ///
    /// # Errors
    /// The graph lacks what scripts need, or its TCP a setting.
    pub fn new(graph: &Graph, catalogue: &Catalogue, settings: &Settings) -> Result<Simulated, SimulatedError> {
        let mut graph = graph.clone();
        apply(&mut graph, catalogue, settings)?;
        let problems = check(&graph, catalogue);
        if !problems.is_empty() {
            return Err(SimulatedError::Graph(report("graph", &problems)));
        }
        let mtu = usize::from(settings.mtu);
        let device = |name: &str| DeviceFacts {
            name: name.to_owned(),
            frame_max: mtu + LINK_HEADER_BYTES,
            checksum_offload: false,
            segment_offload: false,
        };
        let devices = device_edges(&graph).iter().map(|edge| device(&edge.node)).collect();
        let instance = build(&graph, catalogue, devices, LIMITS, u64::from(settings.isn));
        let instance = instance.map_err(SimulatedError::Graph)?;
        let mut subject = Simulated {
            host: Host::new("subject", instance),
            now: Instant::ZERO + BEGIN,
            hardware: EthernetAddress::BROADCAST,
            sent: VecDeque::new(),
            listener: Listener::new(),
            listening: None,
            sockets: BTreeMap::new(),
            fresh: BTreeSet::new(),
        };
        subject.meet().map_err(SimulatedError::Graph)?;
        Ok(subject)
    }

    /// Peer and subject learn each other's address on the link.
    fn meet(&mut self) -> Result<(), String> {
        let question = ArpHeader {
            operation: ArpOperation::REQUEST,
            sender_hardware: PEER_HARDWARE,
            sender_protocol: PEER,
            target_hardware: EthernetAddress([0; 6]),
            target_protocol: SUBJECT,
        };
        self.send_arp(&question, EthernetAddress::BROADCAST);
        if self.hardware == EthernetAddress::BROADCAST {
            return Err(format!("nobody has {SUBJECT} on the link; the graph needs `arp`"));
        }
        Ok(())
    }

    fn send_arp(&mut self, header: &ArpHeader, to: EthernetAddress) {
        let mut bytes = [0; ArpHeader::LEN];
        header.build(&mut bytes);
        self.send_frame(EtherType::ARP, to, &bytes);
    }

    fn send_frame(&mut self, kind: EtherType, destination: EthernetAddress, payload: &[u8]) {
        let mut frame = vec![0; EthernetHeader::LEN];
        EthernetHeader { destination, source: PEER_HARDWARE, kind }.build(&mut frame);
        frame.extend_from_slice(payload);
        // One frame a turn: what arrives together may be merged, and scripts are about segments.
        self.host.deliver(0, frame);
        self.turn();
    }

    fn turn(&mut self) {
        self.host.at(self.now);
        self.host.turn();
        self.collect();
    }

    /// Takes what the instance has sent: questions for the peer's address are answered, packets kept.
    fn collect(&mut self) {
        for (_, frame) in self.host.take_sent() {
            let Ok(header) = EthernetHeader::parse(&frame) else { continue };
            let payload = &frame[EthernetHeader::LEN..];
            match header.kind {
                EtherType::IPV4 => self.sent.push_back(payload.to_vec()),
                EtherType::ARP => self.hear_arp(payload),
                _ => {}
            }
        }
    }

    fn hear_arp(&mut self, payload: &[u8]) {
        let Ok(heard) = ArpHeader::parse(payload) else { return };
        self.hardware = heard.sender_hardware;
        if heard.operation == ArpOperation::REQUEST && heard.target_protocol == PEER {
            let answer = ArpHeader {
                operation: ArpOperation::REPLY,
                sender_hardware: PEER_HARDWARE,
                sender_protocol: PEER,
                target_hardware: heard.sender_hardware,
                target_protocol: heard.sender_protocol,
            };
            self.send_arp(&answer, heard.sender_hardware);
        }
    }

    fn node(&self) -> Result<u8, String> {
        self.host.instance.node_of_kind("tcp").ok_or_else(|| "a graph without `tcp`".to_owned())
    }

    fn listen(&mut self, backlog: usize) -> Result<(), String> {
        let participants = Participants::new([Part::Port(Port(SERVER_PORT))], []);
        let wish = EnableWish { participants, wild: false, backlog, shared: false };
        let node = self.node()?;
        let listening = self.host.instance.enable(node, wish, self.listener.clone());
        self.listening = Some(listening.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Takes over all connections that have opened.
    fn gather_opened(&mut self) {
        while let Some(accepted) = self.listener.accept() {
            let peer = accepted.participants.remote.find_port().map_or(0, |port| port.0);
            let ends = Ends { subject: SERVER_PORT, peer };
            self.sockets.insert(ends, Socket::new(accepted.path, accepted.end));
            self.fresh.insert(ends);
        }
    }

    fn connect(&mut self, ends: Ends) -> Result<(), String> {
        let participants = Participants::internet((None, Some(Port(ends.subject))), (PEER.into(), Port(ends.peer)));
        let (node, end) = (self.node()?, End::new());
        let anchor = end.clone();
        self.host.at(self.now);
        let opened =
            self.host.ask(|instance, port, shepherd| instance.open(port, shepherd, node, participants, anchor));
        let path = opened.map_err(|error| error.to_string())?;
        self.sockets.insert(ends, Socket::new(path, end));
        Ok(())
    }

    fn request(&mut self, path: PathId, work: Work) {
        self.host.at(self.now);
        self.host.ask(|instance, port, shepherd| instance.request(port, shepherd, path, work));
    }

    fn status(&mut self, ends: Ends) -> Option<Status> {
        let socket = self.sockets.get(&ends)?;
        let (path, end) = (socket.path, socket.end.clone());
        let told_before = end.state().told.len();
        self.request(path, Work::Control(Control::Question(Question::Status, None)));
        let state = end.state();
        state.told[told_before..].iter().rev().find_map(|told| match told {
            Control::Answer(Answer::Status(status)) => Some((**status).clone()),
            _ => None,
        })
    }

    fn on_socket(&mut self, ends: Ends, verb: &Verb) -> Result<(), String> {
        let socket = self.sockets.get_mut(&ends).ok_or("no connection")?;
        let path = socket.path;
        let work = match verb {
            Verb::Write { bytes, urgent } => return self.write(ends, *bytes, *urgent),
            Verb::Read(bytes) => {
                socket.read(ends, *bytes)?;
                Work::Credit(*bytes)
            }
            Verb::WriteFails if socket.has_ended() => return Ok(()),
            Verb::WriteFails => return Err("it may still write".to_owned()),
            Verb::ReadNothing => return socket.has_nothing(),
            Verb::ReadEnd => return socket.has_read_all(),
            Verb::Told(outcome) => return socket.was_told(*outcome),
            Verb::Close => Work::Close,
            Verb::Shutdown(Way::Write) => Work::Control(Control::Set(Setting::SendClosed)),
            Verb::Shutdown(Way::Read) => Work::Control(Control::Set(Setting::ReceiveClosed)),
            Verb::Abort => {
                self.request(path, Work::Control(Control::Set(Setting::Abort)));
                Work::Close
            }
            Verb::Set(wish) => Work::Control(Control::Set(setting(*wish))),
            Verb::Listen { .. }
            | Verb::ListenNoMore
            | Verb::Accept
            | Verb::AcceptNothing
            | Verb::Connect
            | Verb::Opened { .. } => unreachable!("these have no socket yet"),
        };
        self.request(path, work);
        Ok(())
    }

    fn write(&mut self, ends: Ends, bytes: usize, urgent: bool) -> Result<(), String> {
        let socket = self.sockets.get_mut(&ends).ok_or("no connection")?;
        let room = socket.end.state().room;
        if room < bytes {
            return Err(format!("room for {room} bytes"));
        }
        let mut written = vec![0; bytes];
        content_written(ends).fill(socket.written, &mut written);
        socket.written += bytes as u64;
        let mut message = Message::from_bytes(&written);
        message.attributes.urgent = urgent;
        let path = socket.path;
        self.request(path, Work::Push(message));
        Ok(())
    }
}

impl Subject for Simulated {
    fn arm(&self) -> Arm {
        Arm::Xylem
    }

    /// Timers go off at ticks of the wheel, and some are given in milliseconds.
    fn tolerance(&self) -> Tolerance {
        Tolerance { early: Duration::from_millis(1), late: Duration::from_millis(1) }
    }

    fn now(&self) -> Duration {
        self.now.since(Instant::ZERO + BEGIN)
    }

    fn next(&mut self, until: Duration) -> Result<Option<(Duration, Vec<u8>)>, String> {
        let until = Instant::ZERO + BEGIN + until;
        loop {
            self.host.at(self.now);
            self.collect();
            if let Some(packet) = self.sent.pop_front() {
                return Ok(Some((self.now(), packet)));
            }
            if self.host.is_due(self.now) {
                self.turn();
                continue;
            }
            match self.host.wake {
                Wake::At(at) if at <= until => self.now = at,
                Wake::At(_) | Wake::Never | Wake::Now => {
                    self.now = self.now.max(until);
                    return Ok(None);
                }
            }
        }
    }

    fn deliver(&mut self, packet: &[u8]) -> Result<(), String> {
        self.send_frame(EtherType::IPV4, self.hardware, packet);
        Ok(())
    }

    fn ask(&mut self, ends: Ends, verb: &Verb) -> Result<(), String> {
        self.gather_opened();
        let result = match verb {
            Verb::Listen { backlog } => self.listen(*backlog),
            Verb::ListenNoMore => {
                let listening = self.listening.take().ok_or("it does not listen")?;
                self.host.instance.disable(listening.id);
                Ok(())
            }
            Verb::Accept if self.fresh.remove(&ends) => Ok(()),
            Verb::Accept => Err("no connection has opened".to_owned()),
            Verb::AcceptNothing if self.fresh.is_empty() => Ok(()),
            Verb::AcceptNothing => Err("a connection has opened".to_owned()),
            Verb::Connect => self.connect(ends),
            other => self.on_socket(ends, other),
        };
        self.turn();
        result
    }

    fn look(&mut self, ends: Ends) -> Result<(String, u32), String> {
        Ok(match self.status(ends) {
            None => ("CLOSED".to_owned(), 0),
            Some(status) => {
                let segments = status.congestion_window / status.segment_size.max(1);
                (status.state.to_owned(), u32::try_from(segments).unwrap_or(u32::MAX))
            }
        })
    }
}

impl Socket {
    fn new(path: PathId, end: Arc<End>) -> Socket {
        Socket { path, end, unread: VecDeque::new(), read: 0, written: 0 }
    }

    /// Takes over what has arrived.
    fn gather(&mut self) -> usize {
        let arrived = std::mem::take(&mut self.end.state().arrived);
        for message in &arrived {
            message.slices().for_each(|piece| self.unread.extend(piece));
        }
        self.unread.len()
    }

    fn read(&mut self, ends: Ends, bytes: usize) -> Result<(), String> {
        let there = self.gather();
        if there < bytes {
            return Err(format!("{there} bytes to read"));
        }
        let taken: Vec<u8> = self.unread.drain(..bytes).collect();
        if let Some(at) = content_sent(ends, false).differs(self.read, &taken) {
            return Err(format!("byte {} is not the one sent", at + 1));
        }
        self.read += bytes as u64;
        Ok(())
    }

    fn has_nothing(&mut self) -> Result<(), String> {
        let there = self.gather();
        let state = self.end.state();
        match state.failure() {
            Some(event) => Err(format!("{event:?}")),
            None if there > 0 => Err(format!("{there} bytes to read")),
            None if state.saw(Event::PeerClosed) => Err("the end".to_owned()),
            None => Ok(()),
        }
    }

    fn has_read_all(&mut self) -> Result<(), String> {
        let there = self.gather();
        if there > 0 {
            return Err(format!("{there} bytes to read"));
        }
        if self.end.state().saw(Event::PeerClosed) { Ok(()) } else { Err("nothing yet".to_owned()) }
    }

    fn has_ended(&self) -> bool {
        let state = self.end.state();
        state.gone || state.failure().is_some()
    }

    fn was_told(&self, outcome: Outcome) -> Result<(), String> {
        let state = self.end.state();
        let failure = state.failure();
        let holds = match outcome {
            Outcome::Open => failure.is_none() && state.saw(Event::Opened),
            Outcome::Refused => failure == Some(Event::Refused),
            Outcome::Reset => failure == Some(Event::Reset),
            Outcome::TimedOut => failure == Some(Event::TimedOut),
            Outcome::Unreachable => failure == Some(Event::Unreachable),
            Outcome::Failed => failure.is_some(),
            Outcome::NoError => failure.is_none(),
        };
        if holds { Ok(()) } else { Err(format!("told {:?}", state.told)) }
    }
}

fn setting(wish: Wish) -> Setting {
    match wish {
        Wish::NoDelay(no_delay) => Setting::NoDelay(no_delay),
        Wish::KeepAlive(after) => Setting::KeepAlive(Some(after)),
        Wish::UserTimeout(after) => Setting::UserTimeout(Some(after)),
        Wish::ReceiveBuffer(bytes) => Setting::ReceiveBuffer(bytes),
        Wish::HopLimit(hops) => Setting::HopLimit(hops),
        Wish::TrafficClass(class) => Setting::TrafficClass(class),
    }
}

/// Says a script's settings to the graph's nodes. What a protocol has no option for is left out where the script wants it
/// off, which is then how it is.
fn apply(graph: &mut Graph, catalogue: &Catalogue, settings: &Settings) -> Result<(), SimulatedError> {
    let text = |word: &str| Value::Text(word.to_owned());
    let mut options = vec![
        ("ipv4", "address", text(&format!("{SUBJECT}/{PREFIX_BITS}")), true),
        ("ipv4", "gateway", text(&PEER.to_string()), true),
        ("ethernet", "mtu", Value::Integer(settings.mtu.into()), true),
        ("tcp", "congestion", text(&settings.congestion), true),
        ("tcp", "timestamps", Value::Bool(settings.timestamps), true),
        ("tcp", "window_scaling", Value::Bool(settings.scaling), true),
        ("tcp", "initial_window", Value::Integer(settings.initial_window.into()), true),
        ("tcp", "sack", Value::Bool(settings.sack), settings.sack),
        ("tcp", "ecn", text(settings.ecn.word()), settings.ecn != Choice::Off),
        ("tcp", "syn_cookies", text(cookie_use(settings.cookies)), settings.cookies != Choice::Off),
        ("tcp", "fast_open", text(if settings.fast_open { "both" } else { "off" }), settings.fast_open),
    ];
    if let Some(bytes) = settings.receive_buffer {
        options.push(("tcp", "receive_buffer", Value::Size(bytes.into()), true));
        // It shall not grow: scripts count on it.
        options.push(("tcp", "receive_buffer_max", Value::Size(bytes.into()), false));
    }
    for (protocol, option, value, is_needed) in options {
        let node = graph.nodes.iter().find(|node| &*node.protocol.value == protocol);
        let name = node.map(|node| node.name.value.to_string());
        let is_known = catalogue.description(protocol).is_some_and(|known| known.option(option).is_some());
        match (name, is_known) {
            (Some(name), true) => {
                graph.set(&name, option, value).map_err(|error| SimulatedError::Graph(error.to_string()))?;
            }
            _ if is_needed => return Err(SimulatedError::NoOption { protocol, option }),
            _ => {}
        }
    }
    Ok(())
}

/// When cookies answer SYNs, in the words of TCP's option.
fn cookie_use(choice: Choice) -> &'static str {
    match choice {
        Choice::Off => "off",
        Choice::Passive => "overflow",
        Choice::On => "always",
    }
}
