//! One request through its layers, with times. Two hosts run the graph in the simulator's manner: the same instance, the
//! same turn, a world of two queues for a wire, in one thread. The real HTTP conversation answers; what each layer took
//! is the time between the probes at its two seams, measured on this machine's clock over many requests.

use super::content::{Content, Shelf};
use super::probe::{Note, Notes, What, probed};
use crate::catalogue;
use crate::commands::serve::addressed::{self, Addresses};
use crate::http::Http;
use crate::net::Stream;
use crate::place::{CLIENT, PREFIX_BITS, SERVER};
use crate::services::{Conversation, SCRATCH_BYTES, Service};
use serde_json::{Value as Json, json};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use xylem_core::{EnableWish, Message, Part, Participants, PathId};
use xylem_graph::build::{build, device_edges};
use xylem_graph::file::Graph;
use xylem_graph::instance::{DeviceFacts, Instance, Limits, Shepherd, Work, World};
use xylem_sim::{End, Listener};
use xylem_wire::{Cidr, Port};

/// Requests before the first that counts.
const WARM_UP: usize = 500;
/// Requests that count.
const COUNTED: usize = 2000;
/// The answer's body, in bytes.
const BODY_BYTES: u64 = 512;
/// How many rounds of the wire may pass before something must have happened.
const ROUNDS_MAX: usize = 200;
/// The port of both ends.
const SERVER_PORT: u16 = 80;
const CLIENT_PORT: u16 = 40_000;

/// One step on the way.
struct Step {
    /// What happened in it.
    name: String,
    /// How long that took, the median of all requests.
    median: Duration,
}

/// The way of one request through the server's host.
pub struct Walk {
    steps: Vec<Step>,
    total: Duration,
    request_bytes: usize,
    answer_bytes: usize,
    /// What one note costs: every step's time has one in it.
    note: Duration,
}

impl Walk {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "One request through its layers: a frame with {} bytes of HTTP comes in, one with {} goes out\n",
            self.request_bytes, self.answer_bytes
        );
        let width = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        let longest = self.steps.iter().map(|step| step.median).max().unwrap_or_default().as_nanos().max(1);
        for step in &self.steps {
            let bar = "#".repeat((40 * step.median.as_nanos()).div_ceil(longest) as usize);
            text.push_str(&format!("  {:<width$} {:>7} ns  {bar}\n", step.name, step.median.as_nanos()));
        }
        text.push_str(&format!(
            "  {:<width$} {:>7} ns  median of {COUNTED} requests, no device; a note costs {} ns and is in each step\n",
            "all",
            self.total.as_nanos(),
            self.note.as_nanos()
        ));
        text
    }

    /// For programs.
    pub fn json(&self) -> Json {
        let step = |step: &Step| json!({ "step": step.name, "nanoseconds": step.median.as_nanos() as u64 });
        json!({
            "requests": COUNTED,
            "request_bytes": self.request_bytes,
            "answer_bytes": self.answer_bytes,
            "steps": self.steps.iter().map(step).collect::<Vec<_>>(),
            "total_nanoseconds": self.total.as_nanos() as u64,
            "note_nanoseconds": self.note.as_nanos() as u64,
        })
    }
}

/// Runs the requests through two hosts of this graph.
///
/// # Errors
/// The graph has no TCP or more than one device, or the request did not come back: then something is broken.
pub fn walk(graph: &Graph) -> io::Result<Walk> {
    let notes = Arc::new(Notes::default());
    let mut client = Host::new(graph, CLIENT, 1, None)?;
    let mut server = Host::new(graph, SERVER, 2, Some(Arc::clone(&notes)))?;
    let content = Content::random(BODY_BYTES, 5)?;
    let shelf = Shelf::new([("small".into(), content)], 0)?;
    let mut pair = Pair::open(&mut client, &mut server, Http::new(Arc::new(shelf)))?;
    let request = format!("GET /small HTTP/1.1\r\nHost: {SERVER}\r\n\r\n").into_bytes();
    let (mut runs, mut taken, mut answer_bytes) = (Vec::with_capacity(COUNTED), Vec::new(), 0);
    for number in 0..WARM_UP + COUNTED {
        notes.arm(number >= WARM_UP);
        answer_bytes = pair.exchange(&request)?;
        notes.arm(false);
        notes.collect(&mut taken);
        if number >= WARM_UP {
            runs.push(steps(&taken, &pair.server.instance));
        }
    }
    let total = median(runs.iter().map(|run| run.iter().map(|(_, span)| *span).sum()).collect());
    // All requests but a few go the same way; those that met a timer on it are left out.
    let shape: Vec<String> = usual(&runs);
    let alike: Vec<_> = runs.iter().filter(|run| run.iter().map(|(name, _)| name).eq(&shape)).collect();
    let step = |(at, name): (usize, &String)| {
        let median = median(alike.iter().map(|run| run[at].1).collect());
        Step { name: name.clone(), median }
    };
    let steps = shape.iter().enumerate().map(step).collect();
    Ok(Walk { steps, total, request_bytes: request.len(), answer_bytes, note: cost_of_a_note(&notes) })
}

/// The steps between the notes of one request, from the frame in to the frame out.
fn steps(notes: &[Note], instance: &Instance) -> Vec<(String, Duration)> {
    let name = |node: usize| instance.nodes()[node].name.as_str();
    let mut steps = Vec::new();
    let begin = notes.iter().position(|note| note.what == What::Received).unwrap_or(0);
    let mut last_push: Option<usize> = None;
    for pair in notes[begin..].windows(2) {
        let span = pair[1].at.duration_since(pair[0].at);
        let step = match pair[1].what {
            // A second frame in is not this request's.
            What::Received => break,
            What::Demultiplexed(node) => format!("{}: demux", name(node)),
            What::Popped(node) => format!("{}: pop", name(node)),
            What::Application => "to the application".into(),
            What::Answered => "HTTP: parse, find, answer".into(),
            What::Pushed(node) => {
                let above = last_push.replace(node);
                above.map_or("into the path".into(), |above| format!("{}: push", name(above)))
            }
            What::Transmitted => last_push.map_or("out".into(), |node| format!("{}: push, and the edge", name(node))),
        };
        steps.push((step, span));
        if pair[1].what == What::Transmitted {
            break;
        }
    }
    steps
}

/// The shape that most runs have.
fn usual(runs: &[Vec<(String, Duration)>]) -> Vec<String> {
    let mut counts = std::collections::BTreeMap::<Vec<&String>, usize>::new();
    for run in runs {
        *counts.entry(run.iter().map(|(name, _)| name).collect()).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(Vec::new(), |(shape, _)| shape.into_iter().cloned().collect())
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// The time between two notes with nothing in between.
fn cost_of_a_note(notes: &Notes) -> Duration {
    let mut taken = Vec::new();
    notes.arm(true);
    (0..200).for_each(|_| notes.take(What::Received));
    notes.arm(false);
    notes.collect(&mut taken);
    median(taken.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect())
}

/// A host on the wire.
struct Host {
    instance: Instance,
    shepherd: Shepherd,
    port: WirePort,
    node: u8,
}

impl Host {
    fn new(graph: &Graph, address: Ipv4Addr, seed: u64, notes: Option<Arc<Notes>>) -> io::Result<Host> {
        let mut graph = graph.clone();
        let address = Cidr::new(address, PREFIX_BITS).map_err(|error| io::Error::other(error.to_string()))?;
        let addresses = Addresses { address: Some(address), mtu: Some(1500), ..Addresses::default() };
        addressed::say(&mut graph, &addresses).map_err(io::Error::other)?;
        let devices = device_edges(&graph).len();
        if devices != 1 {
            return Err(io::Error::other(format!("the demonstration's graph: expected one device, got {devices}")));
        }
        let facts = DeviceFacts { name: "wire".into(), frame_max: 1514, checksum_offload: true, segment_offload: true };
        let built = build(&graph, &catalogue::builtin(), vec![facts], Limits::default(), seed);
        let mut instance = built.map_err(io::Error::other)?;
        if let Some(notes) = &notes {
            instance = probed(&instance, notes, seed);
        }
        let node = instance.node_of_kind("tcp");
        let node = node.ok_or_else(|| io::Error::other("the demonstration's graph: expected a tcp node, got none"))?;
        Ok(Host { shepherd: instance.shepherd(), instance, port: WirePort { notes, ..WirePort::default() }, node })
    }

    fn turn(&mut self) {
        self.instance.turn(&self.port, &mut self.shepherd);
    }

    fn ask(&mut self, path: PathId, work: Work) {
        self.instance.request(&self.port, &mut self.shepherd, path, work);
    }
}

/// One end of the wire, and a clock that stands still within a round.
#[derive(Default)]
struct WirePort {
    now: Cell<u64>,
    arriving: RefCell<VecDeque<Message>>,
    leaving: RefCell<Vec<Message>>,
    notes: Option<Arc<Notes>>,
}

impl World for WirePort {
    fn now(&self) -> xylem_core::Instant {
        xylem_core::Instant::ZERO + Duration::from_nanos(self.now.get())
    }

    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize) {
        let mut arriving = self.arriving.borrow_mut();
        while arrivals.len() < limit {
            let Some(frame) = arriving.pop_front() else { break };
            arrivals.push((0, frame));
        }
        if let Some(notes) = &self.notes
            && !arrivals.is_empty()
        {
            notes.take(What::Received);
        }
    }

    fn transmit(&self, _device: u16, frame: &mut Message) -> bool {
        let mut frame = std::mem::take(frame);
        // A device tells its receiver no more than these two.
        let known = &frame.attributes;
        let attributes = xylem_core::Attributes {
            checksum: known.checksum,
            segment_size: known.segment_size,
            segments: known.segments,
            ..Default::default()
        };
        frame.attributes = attributes;
        self.leaving.borrow_mut().push(frame);
        if let Some(notes) = &self.notes {
            notes.take(What::Transmitted);
        }
        true
    }
}

/// A connection between the two hosts, with HTTP at one end.
struct Pair<'a> {
    client: &'a mut Host,
    server: &'a mut Host,
    client_path: PathId,
    client_end: Arc<End>,
    server_path: PathId,
    server_end: Arc<End>,
    conversation: Box<dyn Conversation>,
    scratch: Vec<u8>,
    notes: Arc<Notes>,
}

impl<'a> Pair<'a> {
    fn open(client: &'a mut Host, server: &'a mut Host, http: Http) -> io::Result<Pair<'a>> {
        let listener = Listener::new();
        let participants = Participants::new([Part::Port(Port(SERVER_PORT))], []);
        let wish = EnableWish { participants, wild: false, backlog: 1, shared: false };
        server.instance.enable(server.node, wish, Arc::clone(&listener) as _).map_err(io::Error::other)?;
        let address = IpAddr::V4(SERVER);
        let ends = Participants::internet((None, Some(Port(CLIENT_PORT))), (address, Port(SERVER_PORT)));
        let client_end = End::new();
        let anchor = Arc::clone(&client_end) as _;
        let Host { instance, port, shepherd, node } = client;
        let client_path =
            instance.open(port, shepherd, *node, ends, anchor).map_err(|error| io::Error::other(error.to_string()))?;
        for _ in 0..ROUNDS_MAX {
            round(client, server);
            if let Some(accepted) = listener.accept() {
                let notes = server.port.notes.clone().unwrap_or_default();
                let peer = SocketAddr::new(IpAddr::V4(CLIENT), CLIENT_PORT);
                return Ok(Pair {
                    client,
                    server,
                    client_path,
                    client_end,
                    server_path: accepted.path,
                    server_end: accepted.end,
                    conversation: http.converse(peer),
                    scratch: vec![0; SCRATCH_BYTES],
                    notes,
                });
            }
        }
        Err(io::Error::other("the connection did not open"))
    }

    /// One request and its answer; the answer's length.
    fn exchange(&mut self, request: &[u8]) -> io::Result<usize> {
        let mut pipe = Pipe::default();
        self.client.ask(self.client_path, Work::Push(Message::from_bytes(request)));
        let mut answer = 0;
        for _ in 0..ROUNDS_MAX {
            round(self.client, self.server);
            let arrived = std::mem::take(&mut self.server_end.state().arrived);
            if !arrived.is_empty() {
                self.notes.take(What::Application);
                let before = pipe.incoming.len();
                arrived.iter().for_each(|message| pipe.incoming.extend(message.to_vec()));
                let credit = pipe.incoming.len() - before;
                let _waits = self.conversation.advance(&mut pipe, &mut self.scratch)?;
                let reply = Message::from_bytes(&std::mem::take(&mut pipe.outgoing));
                self.notes.take(What::Answered);
                if !reply.is_empty() {
                    self.server.ask(self.server_path, Work::Push(reply));
                }
                // As the sockets do it: credit is given after the answer has left.
                self.server.ask(self.server_path, Work::Credit(credit));
            }
            let arrived = std::mem::take(&mut self.client_end.state().arrived);
            if !arrived.is_empty() {
                answer += arrived.iter().map(Message::len).sum::<usize>();
                self.client.ask(self.client_path, Work::Credit(answer));
            }
            if answer >= BODY_BYTES as usize {
                return Ok(answer);
            }
        }
        Err(io::Error::other("the answer did not come"))
    }
}

/// Frames cross the wire once in each direction, and both hosts take a turn.
fn round(client: &mut Host, server: &mut Host) {
    for host in [&*client, &*server] {
        host.port.now.set(host.port.now.get() + 20_000);
    }
    client.turn();
    server.port.arriving.borrow_mut().extend(client.port.leaving.borrow_mut().drain(..));
    server.turn();
    client.port.arriving.borrow_mut().extend(server.port.leaving.borrow_mut().drain(..));
    client.turn();
}

/// A stream in memory.
#[derive(Default)]
struct Pipe {
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.incoming.read(buffer)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Pipe {
    fn is_connected(&self) -> io::Result<bool> {
        Ok(true)
    }
    fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        Ok(())
    }
    fn set_nodelay(&self, _nodelay: bool) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs;

    #[test]
    fn the_walk_passes_every_layer_up_and_down_in_order() {
        let walk = walk(&graphs::builtin("host").expect("it comes with the program")).expect("the answer comes");
        let names: Vec<&str> = walk.steps.iter().map(|step| step.name.as_str()).collect();
        let expected = [
            "link0: demux",
            "ip: demux",
            "tcp: demux",
            "link0: pop",
            "ip: pop",
            "tcp: pop",
            "to the application",
            "HTTP: parse, find, answer",
            "into the path",
            "tcp: push",
            "ip: push",
            "link0: push, and the edge",
        ];
        assert_eq!(names, expected);
        assert!(walk.answer_bytes > BODY_BYTES as usize && !walk.total.is_zero());
        let Walk { steps, total, .. } = &walk;
        let sum: Duration = steps.iter().map(|step| step.median).sum();
        assert!(sum <= 2 * *total, "the steps take {sum:?} together, the whole {total:?}");
    }
}
