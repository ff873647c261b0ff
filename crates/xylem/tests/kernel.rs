//! Xylem against the kernel's own stack, in namespaces that the tests make: every claim of interoperation is one of these
//! tests. What cannot run here says SKIPPED, and fails where CI is set.

mod kernel {
    pub mod capture;
    pub mod ping;
    pub mod place;
}

use kernel::capture::{Capture, judge};
use kernel::ping::{Pinger, XylemPinger, sizes};
use kernel::place::{KERNEL, answer, ask, at_kernel, at_xylem, cable, content, skipped, stack, stack_behind};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use xylem_host::namespace::Namespace;
use xylem_host::net as x;
use xylem_host::stack::Stack;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lengths of streams around a segment, a large message and beyond.
const LENGTHS: [usize; 8] = [1, 1447, 1448, 1449, 65_535, 65_536, 1 << 20, 16 << 20];

/// A kernel client and a server on Xylem: every length.
fn kernel_asks_xylem(namespace: &Namespace, stack: &Stack, port: u16, lengths: &[usize]) {
    let listener = x::TcpListener::bind_on(stack, at_xylem(port)).expect("the port is free");
    let count = lengths.len();
    let server = thread::spawn(move || {
        for _ in 0..count {
            let (stream, _) = listener.accept().expect("a connection");
            answer(stream);
        }
    });
    let client = || {
        for (seed, length) in lengths.iter().enumerate() {
            let stream = std::net::TcpStream::connect(at_xylem(port)).expect("Xylem listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            ask(stream, &content(*length, seed as u64));
        }
    };
    namespace.enter(client).expect("root enters");
    server.join().expect("the server does not panic");
}

/// A client on Xylem and a kernel server: every length.
fn xylem_asks_kernel(namespace: &Namespace, stack: &Stack, port: u16, lengths: &[usize]) {
    let bind = || std::net::TcpListener::bind(at_kernel(port)).expect("the port is free");
    let listener = namespace.enter(bind).expect("root enters");
    let count = lengths.len();
    let server = thread::spawn(move || {
        for _ in 0..count {
            let (stream, _) = listener.accept().expect("a connection");
            answer(stream);
        }
    });
    for (seed, length) in lengths.iter().enumerate() {
        let stream = x::TcpStream::connect_on(stack, at_kernel(port)).expect("the kernel listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        ask(stream, &content(*length, 100 + seed as u64));
    }
    server.join().expect("the server does not panic");
}

/// Sends datagrams of these sizes to an echo and compares what comes back.
fn datagrams(
    sizes: &[usize],
    send: impl Fn(&[u8]) -> std::io::Result<usize>,
    receive: impl Fn(&mut [u8]) -> std::io::Result<(usize, SocketAddr)>,
) {
    let mut buffer = vec![0; 70_000];
    for (seed, size) in sizes.iter().enumerate() {
        let bytes = content(*size, seed as u64);
        assert_eq!(send(&bytes).expect("there is room"), *size);
        let (length, _) =
            receive(&mut buffer).unwrap_or_else(|error| panic!("{size} bytes did not come back: {error}"));
        assert!(buffer[..length] == bytes, "{size} bytes came back as {length} and changed");
    }
}

/// Datagrams both ways.
fn datagrams_both_ways(namespace: &Namespace, stack: &Stack, port: u16, sizes: &[usize]) {
    let echo = x::UdpSocket::bind_on(stack, at_xylem(port)).expect("the port is free");
    let count = sizes.len();
    let server = thread::spawn(move || {
        let mut buffer = vec![0; 70_000];
        for _ in 0..count {
            let (length, from) = echo.recv_from(&mut buffer).expect("a datagram");
            echo.send_to(&buffer[..length], from).expect("there is room");
        }
    });
    let client = || {
        let socket = std::net::UdpSocket::bind(at_kernel(0)).expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        datagrams(sizes, |bytes| socket.send_to(bytes, at_xylem(port)), |buffer| socket.recv_from(buffer));
    };
    namespace.enter(client).expect("root enters");
    server.join().expect("the server does not panic");

    let bind = || std::net::UdpSocket::bind(at_kernel(port)).expect("the port is free");
    let echo = namespace.enter(bind).expect("root enters");
    let server = thread::spawn(move || {
        let mut buffer = vec![0; 70_000];
        for _ in 0..count {
            let (length, from) = echo.recv_from(&mut buffer).expect("a datagram");
            echo.send_to(&buffer[..length], from).expect("there is room");
        }
    });
    let socket = x::UdpSocket::bind_on(stack, at_xylem(0)).expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    datagrams(sizes, |bytes| socket.send_to(bytes, at_kernel(port)), |buffer| socket.recv_from(buffer));
    server.join().expect("the server does not panic");
}

/// Nobody listens: both sides are told, over TCP and over UDP.
fn closed_ports(namespace: &Namespace, stack: &Stack, port: u16) {
    let refused = |what: &str, kind: ErrorKind| assert_eq!(kind, ErrorKind::ConnectionRefused, "{what}");
    let from_kernel = || {
        let tcp = std::net::TcpStream::connect_timeout(&at_xylem(port), Duration::from_secs(5));
        refused("TCP to Xylem", tcp.expect_err("nobody listens").kind());
        let udp = std::net::UdpSocket::bind(at_kernel(0)).expect("a port");
        udp.connect(at_xylem(port)).expect("it is near");
        udp.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        udp.send(b"anybody?").expect("there is room");
        refused("UDP to Xylem", udp.recv(&mut [0; 8]).expect_err("nobody listens").kind());
    };
    namespace.enter(from_kernel).expect("root enters");
    let tcp = x::TcpStream::connect_on(stack, at_kernel(port));
    refused("TCP to the kernel", tcp.expect_err("nobody listens").kind());
    let udp = x::UdpSocket::bind_on(stack, at_xylem(0)).expect("a port");
    udp.connect(at_kernel(port)).expect("it is near");
    udp.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    udp.send(b"anybody?").expect("there is room");
    refused("UDP to the kernel", udp.recv(&mut [0; 8]).expect_err("nobody listens").kind());
}

#[test]
fn the_kernel_pings_xylem_at_every_size() {
    let Some((namespace, tap)) = cable("the_kernel_pings_xylem_at_every_size", true) else { return };
    let _stack = stack(tap);
    let mut pinger = Pinger::open(&namespace);
    let wrong: Vec<String> = sizes(8).filter_map(|size| pinger.ping(size).err()).take(5).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn xylem_pings_the_kernel_at_every_size() {
    let Some((_namespace, tap)) = cable("xylem_pings_the_kernel_at_every_size", true) else { return };
    let mut pinger = XylemPinger::new(tap);
    let expected = sizes(8).count();
    assert_eq!(pinger.ping(KERNEL, sizes(8)), Ok(expected));
}

#[test]
fn streams_of_every_length_arrive_right_both_ways() {
    let Some((namespace, tap)) = cable("streams_of_every_length_arrive_right_both_ways", true) else { return };
    let stack = stack(tap);
    kernel_asks_xylem(&namespace, &stack, 7001, &LENGTHS);
    xylem_asks_kernel(&namespace, &stack, 7002, &LENGTHS);
}

#[test]
fn datagrams_of_every_size_arrive_right_both_ways() {
    let Some((namespace, tap)) = cable("datagrams_of_every_size_arrive_right_both_ways", true) else { return };
    let stack = stack(tap);
    let sizes: Vec<usize> = (0..=32).chain(sizes(8).filter(|size| *size > 1400)).collect();
    datagrams_both_ways(&namespace, &stack, 7003, &sizes);
}

#[test]
fn closed_ports_refuse_both_ways() {
    let Some((namespace, tap)) = cable("closed_ports_refuse_both_ways", true) else { return };
    closed_ports(&namespace, &stack(tap), 7999);
}

#[test]
fn streams_survive_a_lossy_wire_both_ways() {
    let Some((namespace, tap)) = cable("streams_survive_a_lossy_wire_both_ways", false) else { return };
    let stack = stack_behind(tap, "loss=1% reorder=1% duplicate=1% corrupt=0.5% delay=300us");
    let lengths = [1, 100_000, 2 << 20];
    kernel_asks_xylem(&namespace, &stack, 7004, &lengths);
    xylem_asks_kernel(&namespace, &stack, 7005, &lengths);
}

#[test]
fn everything_on_the_wire_is_well_formed() {
    let test = "everything_on_the_wire_is_well_formed";
    let Some((namespace, tap)) = cable(test, false) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("all.pcap");
    let capture = Capture::begin(&namespace, &file);
    // A perfect link: nothing happens to a frame, but nothing is left to the device either, so that the checksums in
    // the capture are those of the wire.
    let stack = stack_behind(tap, "mtu=1500");
    let mut pinger = Pinger::open(&namespace);
    for size in [0, 1, 1471, 1472, 1473, 2953, 65_507] {
        pinger.ping(size).expect("an answer");
    }
    kernel_asks_xylem(&namespace, &stack, 7006, &LENGTHS[..7]);
    xylem_asks_kernel(&namespace, &stack, 7007, &LENGTHS[..7]);
    datagrams_both_ways(&namespace, &stack, 7008, &[0, 1, 1472, 1473, 65_507]);
    closed_ports(&namespace, &stack, 7998);
    drop(stack);
    let frames = capture.end();
    assert!(frames > 1000, "the capture has {frames} frames only");
    let Some(wrong) = judge(&file) else {
        return skipped(test, "neither tshark nor tcpdump is installed (apt install tshark)");
    };
    assert!(wrong.is_empty(), "{} of {frames} frames are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    // The judge can see: one flipped bit in the last frame is found.
    let mut bytes = std::fs::read(&file).expect("it is there");
    let last = bytes.len() - 3;
    bytes[last] ^= 4;
    std::fs::write(&file, bytes).expect("the disk has room");
    assert_eq!(judge(&file).map(|wrong| wrong.len()), Some(1), "a corrupted frame was not seen");
}
