//! A stack on a TAP against the kernel's own sockets, in a network namespace that goes with the test.

mod host;

use host::content::{receive, send};
use host::{RIGHT, host, right, within};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use xylem_host::device::{Device, Impaired, TapDevice};
use xylem_host::interface::Interface;
use xylem_host::namespace::{Level, Namespace, privilege};
use xylem_host::net::{TcpListener, TcpStream, UdpSocket};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};

const LIMIT: Duration = Duration::from_secs(25);
/// The kernel's address; the stack has [`RIGHT`].
const KERNEL: &str = "10.0.0.1";

/// A namespace with a TAP whose kernel side has an address; `None` if the test cannot run here.
fn cable(test: &str, options: TapOptions) -> Option<(Namespace, Tap)> {
    let reason = match privilege() {
        privilege if privilege.level != Level::Root => privilege.reason,
        _ => match std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
            Err(error) => format!("/dev/net/tun: {error}"),
            Ok(_) => String::new(),
        },
    };
    if !reason.is_empty() {
        assert!(std::env::var_os("CI").is_none(), "{test} could not run: {reason}");
        eprintln!("SKIPPED: {test}: {reason}");
        return None;
    }
    let namespace = Namespace::create().expect("root makes namespaces");
    let tap = namespace
        .enter(|| {
            let tap = Tap::open("tap0", options).expect("root makes TAPs");
            let kernel: IpAddr = KERNEL.parse().expect("an address");
            tap.kernel_side().add_address(kernel, 24).expect("root may");
            tap.kernel_side().set_up(true).expect("root may");
            tap
        })
        .expect("root enters");
    Some((namespace, tap))
}

fn stack(device: impl Device + 'static, shell: Shell) -> Stack {
    host(RIGHT, device).shell(shell).build().unwrap_or_else(|error| panic!("{error}"))
}

fn kernel(port: u16) -> SocketAddr {
    SocketAddr::new(KERNEL.parse().expect("an address"), port)
}

/// Sends what it receives back, until the end; half of the kernel's side of these tests.
fn echo(mut stream: impl Read + Write) {
    let mut buffer = vec![0; 256 << 10];
    loop {
        match stream.read(&mut buffer).expect("the peer ends in order") {
            0 => return,
            count => stream.write_all(&buffer[..count]).expect("the peer reads"),
        }
    }
}

#[test]
fn the_kernel_is_client_and_server_in_every_shell() {
    for shell in [Shell::Thread, Shell::Spin, Shell::Inline] {
        within(LIMIT, move || {
            let test = "the_kernel_is_client_and_server_in_every_shell";
            let Some((namespace, tap)) = cable(test, TapOptions::default()) else { return };
            let stack = stack(TapDevice::new(tap).expect("it is there"), shell);
            // The kernel as the server. Sockets belong to the namespace they are opened in, whoever uses them.
            let server = namespace.enter(|| std::net::TcpListener::bind(kernel(7))).expect("root").expect("free");
            let served = thread::spawn(move || echo(server.accept().expect("a client").0));
            let mut stream = TcpStream::connect_on(&stack, kernel(7)).expect("the kernel listens");
            for size in [1, 100, 1460, 5000, 100_000] {
                let bytes: Vec<u8> = (0..size).map(|at| (at * 13) as u8).collect();
                stream.write_all(&bytes).expect("open");
                let mut back = vec![0; size];
                stream.read_exact(&mut back).expect("open");
                assert!(back == bytes, "{shell:?}, {size} bytes");
            }
            stream.shutdown(Shutdown::Write).expect("open");
            assert_eq!(stream.read(&mut [0; 1]).expect("ends in order"), 0);
            served.join().expect("no panic");
            // And as the client.
            let listener = TcpListener::bind_on(&stack, right(8)).expect("free");
            let served = thread::spawn(move || echo(listener.accept().expect("a client").0));
            let client = namespace.enter(|| std::net::TcpStream::connect(right(8))).expect("root");
            let mut client = client.expect("the stack listens");
            client.write_all(b"from the kernel").expect("open");
            let mut back = [0; 15];
            client.read_exact(&mut back).expect("open");
            assert_eq!(&back, b"from the kernel", "{shell:?}");
            drop(client);
            served.join().expect("no panic");
            // Inline nobody answers the kernel while nobody waits here.
            if shell != Shell::Inline {
                let refused = namespace.enter(|| std::net::TcpStream::connect(right(9))).expect("root");
                assert_eq!(refused.expect_err("nobody listens").kind(), std::io::ErrorKind::ConnectionRefused);
            }
        });
    }
}

#[test]
fn megabytes_cross_in_long_messages_both_ways() {
    const TOTAL: usize = 64 << 20;
    within(LIMIT, || {
        let test = "megabytes_cross_in_long_messages_both_ways";
        let Some((namespace, tap)) = cable(test, TapOptions::default()) else { return };
        let stack = stack(TapDevice::new(tap).expect("it is there"), Shell::Thread);
        let server = namespace.enter(|| std::net::TcpListener::bind(kernel(7))).expect("root").expect("free");
        let (results, all) = mpsc::channel();
        let before = stack.reading();
        thread::scope(|scope| {
            let results = &results;
            scope.spawn(move || {
                let (stream, _) = server.accept().expect("a client");
                let got = receive(&stream);
                results.send(("kernel got", got)).expect("somebody collects");
                let digest = send(&stream, 2, TOTAL, 128 << 10);
                results.send(("kernel sent", (digest, TOTAL))).expect("somebody collects");
            });
            let stream = TcpStream::connect_on(&stack, kernel(7)).expect("the kernel listens");
            let digest = send(&stream, 1, TOTAL, 128 << 10);
            stream.shutdown(Shutdown::Write).expect("open");
            let middle = stack.reading();
            results.send(("stack sent", (digest, TOTAL))).expect("somebody collects");
            let got = receive(&stream);
            results.send(("stack got", got)).expect("somebody collects");
            let after = stack.reading();
            let out = middle.frames_out - before.frames_out;
            let back = after.frames_in - middle.frames_in;
            let segments = (TOTAL / 1448) as u64;
            // A message carries at most 45 segments of 1448 bytes; ten on average show that they are long.
            assert!(out < segments / 10, "{out} frames went out for {segments} segments");
            assert!(back < segments / 10, "{back} frames came in for {segments} segments");
        });
        drop(results);
        let found: std::collections::BTreeMap<_, _> = all.iter().collect();
        assert_eq!(found["stack sent"], found["kernel got"]);
        assert_eq!(found["kernel sent"], found["stack got"]);
        // The kernel looks for IPv6 neighbours that this graph does not have, and where this process has to wait for a
        // processor it probes the tail of what was answered late. All else that came was wanted.
        let reading = stack.reading();
        let again = reading.drops.of(&xylem_protocols::tcp::drops::DUPLICATE);
        let unwanted = reading.drops.total() - reading.drops.of(&xylem_core::drop::linker::NO_UPPER) - again;
        assert_eq!(unwanted, 0, "{:?}", reading.drops);
        assert!(again * 50 <= reading.frames_in, "{again} of {} frames came again", reading.frames_in);
    });
}

#[test]
fn datagrams_cross_with_the_kernel() {
    within(LIMIT, || {
        let Some((namespace, tap)) = cable("datagrams_cross_with_the_kernel", TapOptions::default()) else { return };
        let stack = stack(TapDevice::new(tap).expect("it is there"), Shell::Thread);
        let ours = UdpSocket::bind_on(&stack, right(5)).expect("free");
        let theirs = namespace.enter(|| std::net::UdpSocket::bind(kernel(6))).expect("root").expect("free");
        theirs.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        ours.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        let mut buffer = vec![0; 70_000];
        for size in [0, 1, 1472, 1473, 30_000, 65_507] {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 11) as u8).collect();
            ours.send_to(&bytes, kernel(6)).expect("a way");
            let (count, from) = theirs.recv_from(&mut buffer).unwrap_or_else(|error| panic!("{size} bytes: {error}"));
            assert!(from == right(5) && buffer[..count] == bytes, "{size} bytes to the kernel");
            theirs.send_to(&bytes, right(5)).expect("a way");
            let (count, from) = ours.recv_from(&mut buffer).unwrap_or_else(|error| panic!("{size} bytes: {error}"));
            assert!(from == kernel(6) && buffer[..count] == bytes, "{size} bytes from the kernel");
        }
    });
}

#[test]
fn an_impaired_cable_delays_loses_and_still_delivers() {
    const TOTAL: usize = 1 << 20;
    within(LIMIT, || {
        let options = TapOptions { offloads: false, ..TapOptions::default() };
        let Some((namespace, tap)) = cable("an_impaired_cable_delays_loses_and_still_delivers", options) else {
            return;
        };
        let model =
            "delay=2ms jitter=200us loss=0.5% duplicate=0.5% reorder=0.5% corrupt=0.2%".parse().expect("a model");
        let device = Impaired::new(TapDevice::new(tap).expect("it is there"), &model, 7).expect("within its limits");
        let stack = stack(device, Shell::Thread);
        let server = namespace.enter(|| std::net::TcpListener::bind(kernel(7))).expect("root").expect("free");
        let served = thread::spawn(move || {
            let (stream, _) = server.accept().expect("a client");
            let got = receive(&stream);
            let digest = send(&stream, 2, TOTAL, 32 << 10);
            (got, digest)
        });
        let start = Instant::now();
        let stream = TcpStream::connect_on(&stack, kernel(7)).expect("the kernel listens");
        assert!(start.elapsed() >= Duration::from_millis(4), "a round trip takes twice the delay");
        let digest = send(&stream, 1, TOTAL, 32 << 10);
        stream.shutdown(Shutdown::Write).expect("open");
        let back = receive(&stream);
        let (got, sent) = served.join().expect("no panic");
        assert_eq!(got, (digest, TOTAL));
        assert_eq!(back, (sent, TOTAL));
    });
}

#[test]
fn a_namespace_has_only_what_the_test_made() {
    let Some((namespace, tap)) = cable("a_namespace_has_only_what_the_test_made", TapOptions::default()) else {
        return;
    };
    let name = tap.name();
    drop(tap);
    let gone = namespace.enter(|| Interface::open(&name).is_err()).expect("root");
    assert!(gone, "the TAP stays behind the test");
}
