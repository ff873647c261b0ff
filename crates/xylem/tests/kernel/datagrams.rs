//! Datagrams to an echo and back, every byte compared, in both directions; and nobody at a port.

use super::place::{at_kernel, at_xylem, content};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use xylem_host::namespace::Namespace;
use xylem_host::net as x;
use xylem_host::stack::Stack;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends datagrams of these sizes to an echo and compares what comes back.
fn ask(
    sizes: &[usize],
    send: impl Fn(&[u8]) -> io::Result<usize>,
    receive: impl Fn(&mut [u8]) -> io::Result<(usize, SocketAddr)>,
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

/// Echoes so many datagrams.
fn answer(
    count: usize,
    receive: impl Fn(&mut [u8]) -> io::Result<(usize, SocketAddr)>,
    send: impl Fn(&[u8], SocketAddr) -> io::Result<usize>,
) {
    let mut buffer = vec![0; 70_000];
    for _ in 0..count {
        let (length, from) = receive(&mut buffer).expect("a datagram");
        send(&buffer[..length], from).expect("there is room");
    }
}

/// A kernel client and an echo on Xylem.
pub fn kernel_asks_xylem(namespace: &Namespace, stack: &Stack, port: u16, sizes: &[usize]) {
    let echo = x::UdpSocket::bind_on(stack, at_xylem(port)).expect("the port is free");
    echo.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let client = || {
        let socket = std::net::UdpSocket::bind(at_kernel(0)).expect("a port");
        socket.set_read_timeout(Some(PATIENCE)).expect("above zero");
        ask(sizes, |bytes| socket.send_to(bytes, at_xylem(port)), |buffer| socket.recv_from(buffer));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            answer(sizes.len(), |buffer| echo.recv_from(buffer), |bytes, to| echo.send_to(bytes, to));
        });
        namespace.enter(client).expect("root enters");
    });
}

/// A client on Xylem and a kernel echo; the client's socket is connected.
pub fn xylem_asks_kernel(namespace: &Namespace, stack: &Stack, port: u16, sizes: &[usize]) {
    let bind = || std::net::UdpSocket::bind(at_kernel(port)).expect("the port is free");
    let echo = namespace.enter(bind).expect("root enters");
    echo.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let socket = x::UdpSocket::bind_on(stack, at_xylem(0)).expect("a port");
    socket.set_read_timeout(Some(PATIENCE)).expect("above zero");
    socket.connect(at_kernel(port)).expect("it is near");
    thread::scope(|scope| {
        scope.spawn(|| {
            answer(sizes.len(), |buffer| echo.recv_from(buffer), |bytes, to| echo.send_to(bytes, to));
        });
        ask(sizes, |bytes| socket.send(bytes), |buffer| socket.recv_from(buffer));
    });
}

/// Nobody listens: both sides are told, over TCP and over UDP.
pub fn closed_ports(namespace: &Namespace, stack: &Stack, port: u16) {
    let refused = |what: &str, kind: ErrorKind| assert_eq!(kind, ErrorKind::ConnectionRefused, "{what}");
    let from_kernel = || {
        let tcp = std::net::TcpStream::connect_timeout(&at_xylem(port), PATIENCE);
        refused("TCP to Xylem", tcp.expect_err("nobody listens").kind());
        let udp = std::net::UdpSocket::bind(at_kernel(0)).expect("a port");
        udp.connect(at_xylem(port)).expect("it is near");
        udp.set_read_timeout(Some(PATIENCE)).expect("above zero");
        udp.send(b"anybody?").expect("there is room");
        refused("UDP to Xylem", udp.recv(&mut [0; 8]).expect_err("nobody listens").kind());
    };
    namespace.enter(from_kernel).expect("root enters");
    let tcp = x::TcpStream::connect_on(stack, at_kernel(port));
    refused("TCP to the kernel", tcp.expect_err("nobody listens").kind());
    let udp = x::UdpSocket::bind_on(stack, at_xylem(0)).expect("a port");
    udp.connect(at_kernel(port)).expect("it is near");
    udp.set_read_timeout(Some(PATIENCE)).expect("above zero");
    udp.send(b"anybody?").expect("there is room");
    refused("UDP to the kernel", udp.recv(&mut [0; 8]).expect_err("nobody listens").kind());
}
