//! Xylem's TCP against the kernel's over the options both have: each combination of what either side is told, in both
//! directions, with the bytes compared and what was agreed upon asked of both. A few combinations run always; with
//! `XYLEM_EVERY_COMBINATION=1` all of them do. What cannot run here says SKIPPED, and fails where CI is set.

mod kernel {
    #[allow(dead_code)] // The other tests against the kernel use the rest.
    pub mod place;
}

use kernel::place::{XYLEM, answer, ask, at_kernel, at_xylem, cable, content};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::Duration;
use xylem::catalogue;
use xylem_host::device::TapDevice;
use xylem_host::namespace::Namespace;
use xylem_host::net as x;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::Tap;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Beyond a window that is not scaled, and beyond one large message.
const LENGTH: usize = 300_000;
/// Says that data goes with the SYN (linux/socket.h); rustix has no name for it.
const MSG_FASTOPEN: u32 = 0x2000_0000;

/// What one side is told.
#[derive(Clone, Copy, Debug)]
struct Told {
    timestamps: bool,
    scaling: bool,
    sack: bool,
    /// Off, passive or on.
    ecn: &'static str,
}

const ALL_ON: Told = Told { timestamps: true, scaling: true, sack: true, ecn: "on" };
const ALL_OFF: Told = Told { timestamps: false, scaling: false, sack: false, ecn: "off" };

impl Told {
    /// The words for Xylem's graph.
    fn options(&self) -> String {
        let Told { timestamps, scaling, sack, ecn } = self;
        format!("timestamps = {timestamps}, window_scaling = {scaling}, sack = {sack}, ecn = {ecn}")
    }

    /// Tells the kernel of the namespace the calling thread is in.
    fn tell_kernel(&self) {
        for (name, value) in [("timestamps", self.timestamps), ("window_scaling", self.scaling), ("sack", self.sack)] {
            sysctl(&format!("tcp_{name}"), if value { "1" } else { "0" });
        }
        // ip-sysctl: 0 never, 1 asks and agrees, 2 agrees.
        sysctl(
            "tcp_ecn",
            match self.ecn {
                "on" => "1",
                "passive" => "2",
                _ => "0",
            },
        );
    }

    /// Every one there is, or those that differ from others in one thing.
    fn all() -> Vec<Told> {
        let mut all = Vec::new();
        for bits in 0..8 {
            for ecn in ["off", "passive", "on"] {
                all.push(Told { timestamps: bits & 1 > 0, scaling: bits & 2 > 0, sack: bits & 4 > 0, ecn });
            }
        }
        all
    }
}

/// Sets something of the network namespace the calling thread is in, which must not be the machine's.
fn sysctl(name: &str, value: &str) {
    let ours = std::fs::read_link("/proc/thread-self/ns/net").expect("every thread has one");
    let machine = std::fs::read_link("/proc/self/ns/net").expect("every process has one");
    assert_ne!(ours, machine, "settings of the machine itself are nobody's to change");
    std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// One of the kernel's counters of the namespace the calling thread is in.
fn counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").expect("it is there");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for pair in lines.chunks_exact(2) {
        if let Some(place) = pair[0].iter().position(|known| *known == name) {
            return pair[1][place].parse().expect("a number");
        }
    }
    panic!("the kernel does not count {name}")
}

/// Xylem on the TAP with these options of TCP.
fn stack(tap: Tap, options: &str) -> Stack {
    let text = format!(
        "link0 = ethernet over auto\narp over link0\nip = ipv4 over link0, arp {{ address = \"{XYLEM}/24\" }}\n\
         icmp over ip\nudp over ip\ntcp over ip {{ {options} }}\nsock = sockets over tcp, udp\n"
    );
    let graph = xylem_graph::file::parse(&text).unwrap_or_else(|problem| panic!("{problem:?}"));
    let builder = Stack::builder().graph(graph).catalogue(catalogue::builtin()).shell(Shell::Thread);
    builder.device(TapDevice::new(tap).expect("a descriptor")).build().unwrap_or_else(|error| panic!("{error}"))
}

/// Both directions between one Xylem and one kernel; what must be agreed upon is.
fn converse(test: &str, xylem: Told, kernel: Told) -> bool {
    let Some((namespace, tap)) = cable(test, true) else { return false };
    namespace.enter(|| kernel.tell_kernel()).expect("root enters");
    let stack = stack(tap, &xylem.options());
    let what = format!("{xylem:?} with {kernel:?}");

    let listener = x::TcpListener::bind_on(&stack, at_xylem(7100)).expect("the port is free");
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        let status = stream.status().expect("it is open");
        answer(stream);
        status
    });
    let client = || {
        let stream = std::net::TcpStream::connect(at_xylem(7100)).expect("Xylem listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        ask(stream, &content(LENGTH, 1));
    };
    namespace.enter(client).expect("root enters");
    let passive = server.join().expect("the server does not panic");
    assert_eq!(passive.ecn, kernel.ecn == "on" && xylem.ecn != "off", "{what}: the kernel asks");
    let options = if xylem.timestamps && kernel.timestamps { 12 } else { 0 };
    assert_eq!(passive.segment_size, 1460 - options, "{what}");

    let bind = || std::net::TcpListener::bind(at_kernel(7101)).expect("the port is free");
    let listener = namespace.enter(bind).expect("root enters");
    let server = thread::spawn(move || answer(listener.accept().expect("a connection").0));
    let stream = x::TcpStream::connect_on(&stack, at_kernel(7101)).expect("the kernel listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let active = stream.status().expect("it is open");
    ask(stream, &content(LENGTH, 2));
    server.join().expect("the server does not panic");
    assert_eq!(active.ecn, xylem.ecn == "on" && kernel.ecn != "off", "{what}: Xylem asks");
    assert_eq!(active.segment_size, 1460 - options, "{what}");
    if active.ecn || passive.ecn {
        let marked = namespace.enter(|| counter("InECT0Pkts")).expect("root enters");
        assert!(marked > 0, "{what}: no packet of ours said that it may be marked");
    }
    true
}

#[test]
fn options_are_agreed_upon_pair_by_pair() {
    let test = "options_are_agreed_upon_pair_by_pair";
    if std::env::var_os("XYLEM_EVERY_COMBINATION").is_some() {
        for xylem in Told::all() {
            for kernel in Told::all() {
                if !converse(test, xylem, kernel) {
                    return;
                }
            }
        }
        return;
    }
    let passive = Told { ecn: "passive", ..ALL_ON };
    let one_off = [
        Told { timestamps: false, ..passive },
        Told { scaling: false, ..ALL_ON },
        Told { sack: false, ..passive },
        Told { ecn: "off", ..ALL_ON },
    ];
    let mut pairs = vec![(ALL_ON, ALL_ON), (ALL_OFF, ALL_OFF), (ALL_OFF, ALL_ON), (ALL_ON, ALL_OFF)];
    pairs.extend(one_off.iter().flat_map(|told| [(*told, ALL_ON), (ALL_ON, *told)]));
    for (xylem, kernel) in pairs {
        if !converse(test, xylem, kernel) {
            return;
        }
    }
}

/// A kernel client that sends `data` with its SYN if it can, and reads what comes back.
fn kernel_asks_early(data: &[u8]) -> Vec<u8> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    let to = SocketAddrV4::new(XYLEM, 7200);
    let sent = sendto(&socket, data, SendFlags::from_bits_retain(MSG_FASTOPEN), &to).expect("Xylem listens");
    assert_eq!(sent, data.len());
    let mut stream = std::net::TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut back = vec![0; data.len()];
    stream.read_exact(&mut back).expect("Xylem answers");
    back
}

#[test]
fn fast_open_works_with_the_kernel_both_ways() {
    let Some((namespace, tap)) = cable("fast_open_works_with_the_kernel_both_ways", true) else { return };
    // Client and server, and every listener takes part without saying so.
    let allow = || sysctl("tcp_fastopen", "1027");
    namespace.enter(allow).expect("root enters");
    let stack = stack(tap, "");

    let listener = x::TcpListener::bind_fast_open(&stack, at_xylem(7200), 8, 4).expect("the port is free");
    let server = thread::spawn(move || {
        let echo = |_| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = [0; 500];
            stream.read_exact(&mut bytes).expect("as many bytes");
            stream.write_all(&bytes).expect("the peer reads");
            stream.status().map(|status| status.fast_open).unwrap_or_default()
        };
        (0..3).map(echo).collect::<Vec<bool>>()
    });
    let client = || {
        for round in 0..3 {
            let data = content(500, round);
            assert!(kernel_asks_early(&data) == data, "round {round}");
        }
        counter("TCPFastOpenActive")
    };
    let early = namespace.enter(client).expect("root enters");
    assert_eq!(server.join().expect("the server does not panic"), [false, true, true], "the first asks for a cookie");
    assert_eq!(early, 2, "by the kernel's own count");

    let bind = || std::net::TcpListener::bind(at_kernel(7201)).expect("the port is free");
    let listener = namespace.enter(bind).expect("root enters");
    let server = thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut bytes = [0; 500];
            stream.read_exact(&mut bytes).expect("as many bytes");
            stream.write_all(&bytes).expect("the peer reads");
        }
    });
    let mut early = Vec::new();
    for round in 0..3 {
        let data = content(500, 10 + round);
        let (mut stream, taken) =
            x::TcpStream::connect_with(&stack, at_kernel(7201), &data).expect("the kernel listens");
        assert_eq!(taken, data.len());
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut back = [0; 500];
        stream.read_exact(&mut back).expect("the kernel answers");
        assert!(back[..] == data, "round {round}");
        early.push(stream.status().expect("it is open").fast_open);
    }
    server.join().expect("the server does not panic");
    assert_eq!(early, [false, true, true]);
    let taken = namespace.enter(|| counter("TCPFastOpenPassive")).expect("root enters");
    assert_eq!(taken, 2, "by the kernel's own count");
}

/// A kernel whose backlog is full answers with cookies, and so does Xylem.
#[test]
fn cookies_work_with_the_kernel_both_ways() {
    let Some((namespace, tap)) = cable("cookies_work_with_the_kernel_both_ways", true) else { return };
    // 2: always, whatever the backlog.
    namespace.enter(|| sysctl("tcp_syncookies", "2")).expect("root enters");
    let stack = stack(tap, "syn_cookies = always");
    let exchange = |namespace: &Namespace| {
        let listener = x::TcpListener::bind_on(&stack, at_xylem(7300)).expect("the port is free");
        let server = thread::spawn(move || answer(listener.accept().expect("a connection").0));
        let client = || {
            let stream = std::net::TcpStream::connect(at_xylem(7300)).expect("Xylem listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            ask(stream, &content(LENGTH, 3));
        };
        namespace.enter(client).expect("root enters");
        server.join().expect("the server does not panic");
    };
    exchange(&namespace);
    let bind = || std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 7301)).expect("the port is free");
    let listener = namespace.enter(bind).expect("root enters");
    let server = thread::spawn(move || answer(listener.accept().expect("a connection").0));
    let stream = x::TcpStream::connect_on(&stack, at_kernel(7301)).expect("the kernel listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    ask(stream, &content(LENGTH, 4));
    server.join().expect("the server does not panic");
    let received = namespace.enter(|| counter("SyncookiesRecv")).expect("root enters");
    assert_eq!(received, 1, "by the kernel's own count");
}
