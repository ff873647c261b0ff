//! The fuzz targets: one function for every parser, and one for whole frames into a running instance. The fuzzer's own
//! programs in `fuzz/` call them, and `cargo test` replays the corpora and a seeded sample of mutations through the very
//! same functions.

pub mod forge;
mod frames;
mod peer;
mod road;
mod rubbish;

pub use frames::{Aim, frame};
pub use rubbish::{Counts, Rubbish};

use crate::catalogue;
use clap::Parser;
use road::Road;
use std::net::Ipv4Addr;
use std::sync::Arc;
use xylem_core::{Acceptor, Anchor, EnableWish, Message, Part, Participants, PathId, Random, Record};
use xylem_graph::file::{Value, load};
use xylem_graph::instance::{DeviceFacts, Limits};
use xylem_protocols::toy;
use xylem_wire::*;

/// A fuzz target: its name, which is also its corpus's folder, and what to do with the bytes.
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// Panics, or does not return, exactly when something is wrong.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "ethernet", run: header::<EthernetHeader> },
    Target { name: "arp", run: header::<ArpHeader> },
    Target { name: "ipv4", run: ipv4 },
    Target { name: "ipv6", run: header::<Ipv6Header> },
    Target { name: "icmp", run: icmp },
    Target { name: "udp", run: header::<UdpHeader> },
    Target { name: "tcp", run: tcp },
    Target { name: "vnet", run: header::<VnetHeader> },
    Target { name: "toys", run: toys },
    Target { name: "tcp-options", run: tcp_options },
    Target { name: "cidr", run: cidr },
    Target { name: "ethernet-address", run: ethernet_address },
    Target { name: "command", run: command },
    Target { name: "graph", run: graph },
    Target { name: "link", run: link },
    Target { name: "scenario", run: scenario },
    Target { name: "http", run: http },
    Target { name: "record", run: record },
    Target { name: "frames", run: frames },
    Target { name: "peer", run: peer::peer },
    Target { name: "script", run: script },
];

/// Law 5: what is accepted, built again, parses to the same value.
fn header<H: Header>(bytes: &[u8]) {
    if let Ok(header) = H::parse(bytes) {
        let mut built = vec![0; H::LEN];
        header.build(&mut built);
        built.extend_from_slice(&bytes[H::LEN..]);
        assert_eq!(H::parse(&built).as_ref(), Ok(&header), "built again it means something else");
        assert!(header.header_length() >= H::LEN && header.header_length() <= bytes.len());
    }
}

fn toys(bytes: &[u8]) {
    header::<toy::network::NetworkHeader>(bytes);
    header::<toy::fragment::FragmentHeader>(bytes);
    header::<toy::call::CallHeader>(bytes);
    header::<toy::stream::StreamHeader>(bytes);
    header::<toy::record::RecordHeader>(bytes);
}

fn icmp(bytes: &[u8]) {
    header::<IcmpHeader>(bytes);
    if let Some(body) = bytes.get(IcmpHeader::LEN..) {
        header::<IcmpEcho>(body);
        header::<IcmpUnreachable>(body);
        header::<IcmpTimeExceeded>(body);
        header::<IcmpParameterProblem>(body);
        header::<IcmpRedirect>(body);
    }
}

fn ipv4(bytes: &[u8]) {
    header::<Ipv4Header>(bytes);
    if let Ok(header) = Ipv4Header::parse(bytes) {
        // Each option takes a byte at least, so the walk ends.
        assert!(header.options(bytes).count() <= bytes.len());
        let _ = header.payload_length(bytes.len() - header.header_length());
    }
}

fn tcp(bytes: &[u8]) {
    header::<TcpHeader>(bytes);
    if let Ok(header) = TcpHeader::parse(bytes) {
        tcp_options(header.options(bytes));
    }
}

/// A list of options, selective acknowledgments, cookies and all; at most as long as a header has room for.
fn tcp_options(bytes: &[u8]) {
    if let Ok(options) = TcpOptions::parse(&bytes[..bytes.len().min(TcpHeader::OPTIONS_MAX)]) {
        let mut built = [0; TcpHeader::OPTIONS_MAX];
        if options.length() <= built.len() {
            let length = options.build(&mut built);
            assert_eq!(TcpOptions::parse(&built[..length]), Ok(options), "built again they mean something else");
        }
    }
}

/// A line as somebody types it: read, never run. What a service is asked for by name is read too, but no folder is opened.
fn command(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let words = || text.split_whitespace();
    let _ = crate::cli::Cli::try_parse_from(std::iter::once("xylem").chain(words()));
    for word in words().filter(|word| !word.contains('=')) {
        let _ = crate::commands::serve::wish::Wish::read(word);
    }
}

fn ethernet_address(bytes: &[u8]) {
    if let Some(address) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<EthernetAddress>().ok()) {
        assert_eq!(address.to_string().parse(), Ok(address));
    }
}

fn cidr(bytes: &[u8]) {
    if let Some(cidr) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Cidr>().ok()) {
        assert_eq!(cidr.to_string().parse(), Ok(cidr));
    }
}

/// Law 6: a graph prints to a text that means the same, and printing is a fixed point.
fn graph(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = load(text, &catalogue::builtin());
    if let Ok(graph) = xylem_graph::file::parse(text) {
        let printed = graph.to_string();
        let again = xylem_graph::file::parse(&printed).expect("what is printed can be read");
        assert_eq!(again, graph, "printed, it means something else");
        assert_eq!(again.to_string(), printed, "printing is no fixed point");
    }
}

fn link(bytes: &[u8]) {
    use xylem_graph::link::LinkModel;
    if let Some(model) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<LinkModel>().ok()) {
        assert_eq!(model.to_string().parse().as_ref(), Ok(&model));
    }
}

fn scenario(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = xylem_sim::scenario::parse(text);
    }
}

/// A packet script: what is read prints to a text that means the same, and printing is a fixed point.
fn script(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(script) = xylem_sim::script::parse(text) {
        let printed = script.to_string();
        let again = xylem_sim::script::parse(&printed).unwrap_or_else(|problems| panic!("{problems:?}: {printed}"));
        assert_eq!(again.to_string(), printed, "printing is no fixed point");
    }
}

/// A request's head never claims more bytes than there are.
fn http(bytes: &[u8]) {
    if let Ok(Some((_, length))) = crate::http::head::parse(bytes) {
        assert!(length <= bytes.len());
    }
}

fn record(bytes: &[u8]) {
    let mut record = Record::from_bytes(bytes.to_vec());
    let _ = record.take::<(u32, Option<String>, Vec<u64>)>("anything");
}

/// The host of `graphs/host.graph`, and its neighbour, from which the frames come.
const AIM: Aim = Aim {
    from: (Ipv4Addr::new(10, 0, 0, 1), EthernetAddress([2, 0, 0, 0, 0, 1])),
    to: (Ipv4Addr::new(10, 0, 0, 2), EthernetAddress([2, 0, 0, 0, 0, 2])),
    port: Port(80),
};

/// Whole frames into a running host: each a 16-bit length and its bytes. Nothing may panic, and nothing may be left over
/// once the host has been quiet for ten minutes.
fn frames(bytes: &[u8]) {
    let mut graph =
        load(include_str!("../../../graphs/host.graph"), &catalogue::builtin()).expect("the graph is right");
    graph.set("link0", "address", Value::Text(AIM.to.1.to_string())).expect("the graph has a link");
    let device = DeviceFacts { name: "fuzz".into(), frame_max: 1514, checksum_offload: false, segment_offload: false };
    let limits = Limits { paths: 256, enables: 16, small_buffers: 512, large_buffers: 64 };
    let instance =
        xylem_graph::build::build(&graph, &catalogue::builtin(), vec![device], limits, 7).expect("the graph is right");
    let mut shepherd = instance.shepherd();
    // Somebody listens at the port, so that handshakes go some way.
    let wish = EnableWish {
        participants: Participants::new([Part::Port(AIM.port)], []),
        wild: false,
        backlog: 16,
        shared: false,
    };
    let tcp = instance.node_of_kind("tcp").expect("the graph has one");
    let listening = instance.enable(tcp, wish, Arc::new(Nobody)).expect("nobody else listens");
    let world = Road::new(instance.pool().clone());
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        world.frame(&after[..length]);
        rest = &after[length..];
        world.pass(&instance, &mut shepherd, 1_000_000);
    }
    instance.disable(listening.id);
    for _ in 0..600 {
        world.pass(&instance, &mut shepherd, 1_000_000_000);
    }
    let reading = instance.reading();
    assert_eq!(reading.buffers_held, (0, 0), "buffers are left behind: {reading:?}");
    assert_eq!(instance.path_count(), instance.kept_path_count(), "paths are left behind");
}

/// An application that refuses whoever comes.
struct Nobody;

impl Acceptor for Nobody {
    fn accept(&self, _path: PathId, _participants: &Participants) -> Option<Arc<dyn Anchor>> {
        None
    }
    fn deliver(&self, _message: Message) {}
}

/// Inputs that mean something, for the corpora and as a beginning for mutations: `count` for a target, from a seed.
pub fn samples(target: &str, count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::seeded(seed);
    (0..count).map(|_| sample(target, &mut random)).collect()
}

const SCRIPTS: [&str; 4] = [
    include_str!("../../../tests/wire/tcp/opening/passive.wire"),
    include_str!("../../../tests/wire/tcp/sack/first-hole-filled.wire"),
    include_str!("../../../tests/wire/tcp/icmp/too-large.wire"),
    include_str!("../../../tests/wire/tcp/timestamps/echo-of-last-in-order.wire"),
];

const COMMANDS: [&str; 6] = [
    "graph show host --svg -",
    "graph check host router --help",
    "sim scenarios/ping.sim --seed 7 --trace",
    "serve --device tap:xylem0 --address 10.0.0.2/24 echo@7 discard@9",
    "demo --seed 1 --json",
    "graph combinations --json",
];

fn sample(target: &str, random: &mut Random) -> Vec<u8> {
    match target {
        "ethernet" => built::<EthernetHeader>(random),
        "arp" => built::<ArpHeader>(random),
        "ipv4" => built::<Ipv4Header>(random),
        "ipv6" => built::<Ipv6Header>(random),
        "icmp" => [built::<IcmpHeader>(random), built::<IcmpEcho>(random)].concat(),
        "udp" => built::<UdpHeader>(random),
        "tcp" => built::<TcpHeader>(random),
        "vnet" => built::<VnetHeader>(random),
        "toys" => match random.below(5) {
            0 => built::<toy::network::NetworkHeader>(random),
            1 => built::<toy::fragment::FragmentHeader>(random),
            2 => built::<toy::call::CallHeader>(random),
            3 => built::<toy::stream::StreamHeader>(random),
            _ => built::<toy::record::RecordHeader>(random),
        },
        "tcp-options" => {
            let options = TcpOptions::generate(&mut || random.next());
            let mut bytes = [0; TcpHeader::OPTIONS_MAX];
            let length = options.build(&mut bytes);
            bytes[..length.max(1)].to_vec()
        }
        "command" => COMMANDS[random.below(COMMANDS.len() as u64) as usize].as_bytes().to_vec(),
        "ethernet-address" => EthernetAddress(std::array::from_fn(|_| random.next() as u8)).to_string().into_bytes(),
        "cidr" => format!("10.{}.0.0/{}", random.below(256), random.below(33)).into_bytes(),
        "graph" => include_bytes!("../../../graphs/host.graph").to_vec(),
        "link" => format!("loss={}% delay={}ms", random.below(100), random.below(1000)).into_bytes(),
        "scenario" => include_bytes!("../../../scenarios/lossy-transfer.sim").to_vec(),
        "peer" => peer::sample(random),
        "script" => SCRIPTS[random.below(SCRIPTS.len() as u64) as usize].as_bytes().to_vec(),
        "http" => format!("GET /{} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", random.next(), random.below(99))
            .into_bytes(),
        "record" => {
            let mut record = Record::default();
            record.put(&(random.next() as u32, Some("name".to_owned()), vec![random.next()]));
            record.as_bytes().to_vec()
        }
        "frames" => {
            let count = 1 + random.below(4);
            (0..count).flat_map(|_| with_length(frame(random, &AIM))).collect()
        }
        other => panic!("no target is called {other}"),
    }
}

fn built<H: Header>(random: &mut Random) -> Vec<u8> {
    let header = H::generate(&mut || random.next());
    let mut bytes = vec![0; header.header_length().max(H::LEN)];
    header.build(&mut bytes[..H::LEN]);
    bytes
}

fn with_length(frame: Vec<u8>) -> Vec<u8> {
    let mut bytes = (frame.len() as u16).to_be_bytes().to_vec();
    bytes.extend(frame);
    bytes
}
