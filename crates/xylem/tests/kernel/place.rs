//! Where these tests take place: a namespace of their own with a TAP, the kernel's sockets at one end and Xylem at the
//! other. Gone with the test.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use xylem::commands::serve::addressed::{self, Addresses};
use xylem::{catalogue, graphs};
use xylem_graph::file::Graph;
use xylem_graph::link::LinkModel;
use xylem_host::device::{Impaired, TapDevice};
use xylem_host::namespace::{Level, Namespace, privilege};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};

pub const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
pub const XYLEM: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// Says that a test did not run. Where CI is set that is a failure.
pub fn skipped(test: &str, reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{test} could not run: {reason}");
    // Past the harness, which swallows what passing tests print.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {reason}\n").as_bytes());
}

/// A namespace with a TAP, or `None` if the test cannot run here.
pub fn cable(test: &str, offloads: bool) -> Option<(Namespace, Tap)> {
    let privilege = privilege();
    if privilege.level != Level::Root {
        skipped(test, &privilege.reason);
        return None;
    }
    let node = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = node {
        skipped(test, &format!("/dev/net/tun: {error}"));
        return None;
    }
    let namespace = Namespace::create().expect("root makes namespaces");
    let open = || {
        let tap = Tap::open("xylem0", TapOptions { offloads, ..TapOptions::default() }).expect("root makes TAPs");
        tap.kernel_side().add_address(IpAddr::V4(KERNEL), 24).expect("root may");
        tap.kernel_side().set_up(true).expect("root may");
        tap
    };
    let tap = namespace.enter(open).expect("root enters");
    Some((namespace, tap))
}

/// The usual host's graph with the address of these tests.
pub fn graph() -> Graph {
    let mut graph = graphs::builtin("host").expect("it comes with the program");
    let address = Some(format!("{XYLEM}/24").parse().expect("a network"));
    addressed::say(&mut graph, &Addresses { address, ..Addresses::default() }).expect("one node of each");
    graph
}

/// Xylem on the TAP, with offloads.
pub fn stack(tap: Tap) -> Stack {
    let builder = Stack::builder().graph(graph()).catalogue(catalogue::builtin()).shell(Shell::Thread);
    builder.device(TapDevice::new(tap).expect("a descriptor")).build().unwrap_or_else(|error| panic!("{error}"))
}

/// Xylem on the TAP behind a link of this model: nothing is left to the device, every frame is complete.
pub fn stack_behind(tap: Tap, link: &str) -> Stack {
    let model: LinkModel = link.parse().expect("a model");
    let device = Impaired::new(TapDevice::new(tap).expect("a descriptor"), &model, 7).expect("within its limits");
    let builder = Stack::builder().graph(graph()).catalogue(catalogue::builtin()).shell(Shell::Thread);
    builder.device(device).build().unwrap_or_else(|error| panic!("{error}"))
}

pub fn at_xylem(port: u16) -> SocketAddr {
    SocketAddr::from((XYLEM, port))
}

pub fn at_kernel(port: u16) -> SocketAddr {
    SocketAddr::from((KERNEL, port))
}

/// Bytes that differ from place to place and from seed to seed.
pub fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    xylem_core::Random::seeded(seed).fill(&mut bytes);
    bytes
}

/// Reads everything, then answers with its digest and the bytes themselves.
pub fn answer(mut stream: impl Read + Write) {
    use sha2::Digest;
    let mut length = [0; 8];
    stream.read_exact(&mut length).expect("a length");
    let mut bytes = vec![0; u64::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).expect("as many bytes");
    stream.write_all(&sha2::Sha256::digest(&bytes)).expect("the peer reads");
    stream.write_all(&bytes).expect("the peer reads");
}

/// Sends `bytes` to a peer that [`answer`]s, and compares what comes back.
pub fn ask(mut stream: impl Read + Write, bytes: &[u8]) {
    use sha2::Digest;
    stream.write_all(&(bytes.len() as u64).to_be_bytes()).expect("the peer reads");
    stream.write_all(bytes).expect("the peer reads");
    let mut digest = [0; 32];
    stream.read_exact(&mut digest).expect("the peer answers");
    assert_eq!(digest[..], sha2::Sha256::digest(bytes)[..], "{} bytes arrived changed", bytes.len());
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).expect("the peer answers");
    assert!(back == bytes, "{} bytes came back changed", bytes.len());
}
