//! What goes wrong between Xylem and the kernel: hosts that are not there, networks without a way, routers that refuse,
//! peers that vanish or start anew, cables that are pulled, paths that become narrower. Every time both sides are told the
//! right thing, and what can go on goes on.

#[allow(dead_code)]
mod kernel {
    pub mod capture;
    pub mod place;
    pub mod streams;
}

use kernel::capture::{Capture, Checksums};
use kernel::place::{Behind, Cable, KERNEL, NOBODY, Plan, XYLEM, at_kernel, at_xylem, graph_with, has, run};
use kernel::streams::{PATIENCE, catch, pour};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
use xylem_graph::file::Value;
use xylem_host::namespace::Namespace;
use xylem_host::net as x;
use xylem_host::stack::Stack;

/// The bytes of a transfer that something happens to.
const BULK: usize = 24 << 20;
/// After so many of them it happens.
const MIDDLE: usize = 4 << 20;
/// How long the trouble lasts where it ends.
const TROUBLE: Duration = Duration::from_millis(700);

/// Asserts that it took no longer than stated. The least is asserted elsewhere, on simulated time.
fn within<T>(what: &str, limit: Duration, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    assert!(begun.elapsed() <= limit, "{what} took {:?} of at most {limit:?}", begun.elapsed());
    result
}

fn milliseconds(milliseconds: u64) -> Value {
    Value::Duration(Duration::from_millis(milliseconds))
}

/// A connection from Xylem to the kernel, both ends in hand.
fn connected(namespace: &Namespace, stack: &Stack, port: u16) -> (x::TcpStream, std::net::TcpStream) {
    let bind = || std::net::TcpListener::bind(at_kernel(port)).expect("the port is free");
    let listener = namespace.enter(bind).expect("root enters");
    let ours = x::TcpStream::connect_on(stack, at_kernel(port)).expect("the kernel listens");
    let (theirs, _) = listener.accept().expect("it is connected");
    theirs.set_read_timeout(Some(PATIENCE)).expect("above zero");
    ours.set_read_timeout(Some(PATIENCE)).expect("above zero");
    ours.set_write_timeout(Some(PATIENCE)).expect("above zero");
    (ours, theirs)
}

/// What a writer is told when what it writes is never acknowledged.
fn error_of_writing(stream: &x::TcpStream) -> ErrorKind {
    let piece = vec![7; 64 << 10];
    let mut stream = stream;
    loop {
        if let Err(error) = stream.write(&piece) {
            return error.kind();
        }
    }
}

/// Resets a connection with nobody hearing of it: as if its host had gone.
fn forget(stream: std::net::TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
    drop(stream);
}

/// The kernel's side passes packets on.
fn become_router(namespace: &Namespace) {
    let write = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("root may");
    namespace.enter(write).expect("root enters");
}

#[test]
fn a_host_that_does_not_exist_is_unreachable_within_the_tries_of_arp() {
    let test = "a_host_that_does_not_exist_is_unreachable_within_the_tries_of_arp";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    let (namespace, stack) = cable.stack();
    let capture = Capture::all(&namespace);
    let nobody = SocketAddr::from((NOBODY, 41_201));
    thread::scope(|scope| {
        // The kernel asks for the same address: Xylem answers for its own only.
        let theirs = move || std::net::TcpStream::connect(nobody).expect_err("nobody is there").kind();
        let namespace = &namespace;
        let theirs = scope.spawn(move || namespace.enter(theirs).expect("root enters"));
        // Three requests a second apart.
        let ours = within("the first", Duration::from_secs(8), || x::TcpStream::connect_on(&stack, nobody));
        assert_eq!(ours.expect_err("nobody is there").kind(), ErrorKind::HostUnreachable);
        // A silent neighbour is not asked again for a while, so this is known at once.
        let again = within("the second", Duration::from_secs(2), || x::TcpStream::connect_on(&stack, nobody));
        assert_eq!(again.expect_err("nobody is there").kind(), ErrorKind::HostUnreachable);
        assert_eq!(theirs.join().expect("it does not panic"), ErrorKind::HostUnreachable);
    });
    // Datagrams to nobody are lost, and the socket is as good as before.
    let socket = x::UdpSocket::bind_on(&stack, at_xylem(41_202)).expect("the port is free");
    socket.send_to(b"anybody?", nobody).expect("a datagram may be lost");
    let bind = || std::net::UdpSocket::bind(at_kernel(41_203)).expect("the port is free");
    let peer = namespace.enter(bind).expect("root enters");
    peer.set_read_timeout(Some(PATIENCE)).expect("above zero");
    socket.send_to(b"somebody?", at_kernel(41_203)).expect("there is room");
    let mut buffer = [0; 64];
    assert_eq!(peer.recv(&mut buffer).expect("it comes"), 9);
    // When the host comes after all, it is found.
    run(&namespace, "ip", &["address", "add", &format!("{NOBODY}/24"), "dev", "xylem0"]);
    let listener = namespace.enter(|| std::net::TcpListener::bind(nobody).expect("the port is free"));
    let listener = listener.expect("root enters");
    let begun = Instant::now();
    while let Err(error) = x::TcpStream::connect_on(&stack, nobody) {
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        assert!(begun.elapsed() < PATIENCE, "it is there and not found");
        thread::sleep(Duration::from_millis(100));
    }
    drop(listener);
    capture.end_well(test, 10, Checksums::Right);
}

#[test]
fn without_a_route_the_caller_is_told_at_once() {
    let test = "without_a_route_the_caller_is_told_at_once";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    let (_namespace, stack) = cable.stack();
    let far: SocketAddr = "192.0.2.1:9".parse().expect("an address");
    let error = within("TCP", Duration::from_secs(1), || x::TcpStream::connect_on(&stack, far));
    assert_eq!(error.expect_err("there is no gateway").kind(), ErrorKind::NetworkUnreachable);
    let socket = x::UdpSocket::bind_on(&stack, at_xylem(0)).expect("a port");
    let error = socket.send_to(b"hello", far).expect_err("there is no gateway");
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
}

#[test]
fn what_a_router_says_is_the_reason_the_caller_gets() {
    let test = "what_a_router_says_is_the_reason_the_caller_gets";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    if !has(test, "ip") {
        return;
    }
    // An unreachable host may come back, so a handshake goes on until it gives up (RFC 9293, MUST-56): here soon.
    let options = [
        ("ip", "gateway", Value::Text(KERNEL.to_string())),
        ("tcp", "open_give_up_after", milliseconds(1500)),
        ("tcp", "rto_initial", milliseconds(300)),
    ];
    let (namespace, stack) = cable.stack_of(graph_with(1500, &options));
    become_router(&namespace);
    // A router says it once a second to a host, whatever it is about; here every host is to be heard of.
    let unlimited = || std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0").expect("root may");
    namespace.enter(unlimited).expect("root enters");
    for (kind, network) in
        [("unreachable", "10.90.1.0/24"), ("prohibit", "10.90.2.0/24"), ("blackhole", "10.90.3.0/24")]
    {
        run(&namespace, "ip", &["route", "add", kind, network]);
    }
    let capture = Capture::all(&namespace);
    let at = |host: [u8; 4]| SocketAddr::from((Ipv4Addr::from(host), 80));
    let rows = [
        // "Host unreachable", "administratively prohibited", and nothing.
        (at([10, 90, 1, 1]), ErrorKind::HostUnreachable),
        (at([10, 90, 2, 1]), ErrorKind::HostUnreachable),
        (at([10, 90, 3, 1]), ErrorKind::TimedOut),
    ];
    thread::scope(|scope| {
        for (to, expected) in rows {
            let stack = &stack;
            scope.spawn(move || {
                let connect = || x::TcpStream::connect_on(stack, to).expect_err("nobody is there").kind();
                let kind = within(&format!("{to}"), Duration::from_secs(10), connect);
                assert_eq!(kind, expected, "{to}");
            });
        }
    });
    capture.end_well(test, 10, Checksums::Right);
}

#[test]
fn a_peer_that_vanishes_in_a_transfer_is_given_up_with_the_right_error() {
    let test = "a_peer_that_vanishes_in_a_transfer_is_given_up_with_the_right_error";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    let kernel_side = cable.kernel_side();
    let options = [
        ("tcp", "give_up_after", milliseconds(2000)),
        ("tcp", "keep_alive_interval", milliseconds(300)),
        ("tcp", "keep_alive_probes", Value::Integer(3)),
    ];
    let (namespace, stack) = cable.stack_of(graph_with(1500, &options));
    // One with the application's patience, one with TCP's own, and one that has nothing to send.
    let (hurried, hurried_peer) = connected(&namespace, &stack, 41_211);
    let (usual, usual_peer) = connected(&namespace, &stack, 41_212);
    let (idle, idle_peer) = connected(&namespace, &stack, 41_213);
    hurried.set_user_timeout(Some(Duration::from_millis(800))).expect("it is open");
    idle.set_keepalive(Some(Duration::from_millis(500))).expect("it is open");
    kernel_side.set_up(false).expect("root may");
    thread::scope(|scope| {
        let limit = Duration::from_secs(8);
        scope.spawn(move || assert_eq!(within("hurried", limit, || error_of_writing(&hurried)), ErrorKind::TimedOut));
        scope.spawn(move || assert_eq!(within("usual", limit, || error_of_writing(&usual)), ErrorKind::TimedOut));
        scope.spawn(move || {
            let read = || (&idle).read(&mut [0; 8]).expect_err("it has gone").kind();
            assert_eq!(within("idle", limit, read), ErrorKind::TimedOut);
        });
    });
    // A new one cannot be made while the cable is out: the neighbour does not answer, or nobody does.
    drop((hurried_peer, usual_peer, idle_peer));
}

#[test]
fn a_namespace_that_goes_takes_no_more_than_its_connections() {
    let test = "a_namespace_that_goes_takes_no_more_than_its_connections";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    let options = [("tcp", "give_up_after", milliseconds(1000)), ("arp", "retry_after", milliseconds(100))];
    let (namespace, stack) = cable.stack_of(graph_with(1500, &options));
    let (ours, theirs) = connected(&namespace, &stack, 41_221);
    // The last that hold it: then the interface is no more.
    drop(theirs);
    drop(namespace);
    let error = within("writing", Duration::from_secs(10), || error_of_writing(&ours));
    let expected = [ErrorKind::TimedOut, ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
    assert!(expected.contains(&error), "{error}");
    let socket = x::UdpSocket::bind_on(&stack, at_xylem(0)).expect("the stack is still there");
    let _lost = socket.send_to(b"anybody?", at_kernel(9));
}

#[test]
fn a_peer_that_started_anew_resets_the_old_connection() {
    let test = "a_peer_that_started_anew_resets_the_old_connection";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    let kernel_side = cable.kernel_side();
    let (namespace, stack) = cable.stack();
    let (ours, theirs) = connected(&namespace, &stack, 41_231);
    let (waiting, waiting_peer) = connected(&namespace, &stack, 41_232);
    kernel_side.set_up(false).expect("root may");
    forget(theirs);
    forget(waiting_peer);
    kernel_side.set_up(true).expect("root may");
    let mut writing = &ours;
    writing.write_all(b"are you there?").expect("there is room");
    let read = || (&ours).read(&mut [0; 8]).expect_err("it is not known there").kind();
    assert_eq!(within("the answer", Duration::from_secs(20), read), ErrorKind::ConnectionReset);
    // Who only waits is not told until it asks.
    waiting.set_keepalive(Some(Duration::from_millis(100))).expect("it is open");
    let read = || (&waiting).read(&mut [0; 8]).expect_err("it is not known there").kind();
    assert_eq!(within("the probe", Duration::from_secs(20), read), ErrorKind::ConnectionReset);
}

#[test]
fn xylem_started_anew_resets_the_kernels_old_connection() {
    let test = "xylem_started_anew_resets_the_kernels_old_connection";
    if !has(test, "ip") || !kernel::place::can_run(test) {
        return;
    }
    let namespace = Namespace::create().expect("root makes namespaces");
    // A TAP that outlives the program behind it.
    run(&namespace, "ip", &["tuntap", "add", "xylem0", "mode", "tap", "vnet_hdr"]);
    run(&namespace, "ip", &["address", "add", &format!("{KERNEL}/24"), "dev", "xylem0"]);
    run(&namespace, "ip", &["link", "set", "xylem0", "up"]);
    let begin = || {
        let mut command = namespace.command(env!("CARGO_BIN_EXE_xylem")).expect("a descriptor");
        let address = format!("{XYLEM}/24");
        command.args(["serve", "--device", "tap:xylem0", "--address", &address, "echo@41241"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut ready = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut ready).expect("a line");
        assert!(ready.starts_with("ready"), "{ready}");
        child
    };
    let mut program = begin();
    let connect = || std::net::TcpStream::connect(at_xylem(41_241)).expect("Xylem listens");
    let mut theirs = namespace.enter(connect).expect("root enters");
    theirs.set_read_timeout(Some(PATIENCE)).expect("above zero");
    theirs.write_all(b"echo").expect("there is room");
    theirs.read_exact(&mut [0; 4]).expect("it answers");
    // The program ends without a word, and begins again.
    program.kill().expect("it runs");
    program.wait().expect("it was started");
    let mut program = begin();
    theirs.write_all(b"are you there?").expect("there is room");
    let read = || theirs.read(&mut [0; 8]).expect_err("it is not known there").kind();
    let error = within("the answer", Duration::from_secs(20), read);
    program.kill().expect("it runs");
    program.wait().expect("it was started");
    assert_eq!(error, ErrorKind::ConnectionReset);
}

/// A transfer each way at the same time; in the middle of it, `trouble`. Everything arrives.
fn transfer_through(namespace: &Namespace, stack: &Stack, port: u16, trouble: impl FnOnce() + Send) {
    let (ours, theirs) = connected(namespace, stack, port);
    let (begun, middle) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            pour(&ours, 1, BULK).expect("the kernel reads");
            ours.shutdown(Shutdown::Write).expect("it is open");
        });
        scope.spawn(|| {
            pour(&theirs, 2, BULK).expect("Xylem reads");
            theirs.shutdown(Shutdown::Write).expect("it is open");
        });
        scope.spawn(|| assert_eq!(catch(&ours, 2).expect("the kernel sends"), BULK));
        scope.spawn(|| {
            let counted = Counted { stream: &theirs, count: 0, middle: Some(begun) };
            assert_eq!(catch(counted, 1).expect("Xylem sends"), BULK);
        });
        middle.recv_timeout(PATIENCE).expect("it comes that far");
        trouble();
    });
}

/// A reader that says when the middle has been reached.
struct Counted<R> {
    stream: R,
    count: usize,
    middle: Option<std::sync::mpsc::Sender<()>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.stream.read(into)?;
        self.count += count;
        if self.count >= MIDDLE
            && let Some(middle) = self.middle.take()
        {
            middle.send(()).expect("somebody waits for it");
        }
        Ok(count)
    }
}

#[test]
fn a_transfer_goes_on_when_the_kernels_interface_was_down() {
    let test = "a_transfer_goes_on_when_the_kernels_interface_was_down";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    let kernel_side = cable.kernel_side();
    let (namespace, stack) = cable.stack();
    transfer_through(&namespace, &stack, 41_251, || {
        kernel_side.set_up(false).expect("root may");
        thread::sleep(TROUBLE);
        kernel_side.set_up(true).expect("root may");
    });
}

#[test]
fn a_transfer_goes_on_when_the_cable_is_put_back() {
    let test = "a_transfer_goes_on_when_the_cable_is_put_back";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    let (namespace, stack, behind): (_, _, Behind) = cable.stack_behind("mtu=1500", 1);
    transfer_through(&namespace, &stack, 41_261, || {
        behind.link().set_down(true);
        thread::sleep(TROUBLE);
        behind.link().set_down(false);
    });
    let (leaving, _) = behind.link().counters();
    assert!(leaving.sent > 0, "nothing crossed the cable: {leaving:?}");
}

#[test]
fn a_transfer_goes_on_when_the_path_becomes_narrower() {
    let test = "a_transfer_goes_on_when_the_path_becomes_narrower";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    if !has(test, "ip") {
        return;
    }
    // Xylem, a router, and a host behind it.
    let options = [("ip", "gateway", Value::Text(KERNEL.to_string()))];
    let (router, stack) = cable.stack_of(graph_with(1500, &options));
    become_router(&router);
    let host = Namespace::create().expect("root makes namespaces");
    xylem_host::veth::join((&router, "far0"), (&host, "far0")).expect("the kernel has veth");
    run(&router, "ip", &["address", "add", "10.79.0.1/24", "dev", "far0"]);
    run(&router, "ip", &["link", "set", "far0", "up"]);
    run(&host, "ip", &["address", "add", "10.79.0.2/24", "dev", "far0"]);
    run(&host, "ip", &["link", "set", "far0", "up"]);
    run(&host, "ip", &["route", "add", "default", "via", "10.79.0.1"]);
    // The capture sees this link too, and its checksums shall be finished there.
    run(&host, "ethtool", &["-K", "far0", "tx", "off"]);
    run(&router, "ethtool", &["-K", "far0", "tx", "off"]);
    let capture = Capture::begin(&router);
    let to: SocketAddr = "10.79.0.2:41271".parse().expect("an address");
    let listener = host.enter(|| std::net::TcpListener::bind(to).expect("the port is free")).expect("root enters");
    let ours = x::TcpStream::connect_on(&stack, to).expect("the host listens");
    let (theirs, _) = listener.accept().expect("it is connected");
    theirs.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let (begun, middle) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            pour(&ours, 1, BULK).expect("the host reads");
            ours.shutdown(Shutdown::Write).expect("it is open");
        });
        scope.spawn(|| {
            let counted = Counted { stream: &theirs, count: 0, middle: Some(begun) };
            assert_eq!(catch(counted, 1).expect("Xylem sends"), BULK);
        });
        middle.recv_timeout(PATIENCE).expect("it comes that far");
        run(&router, "ip", &["link", "set", "far0", "mtu", "900"]);
        run(&host, "ip", &["link", "set", "far0", "mtu", "900"]);
    });
    // A new connection knows it from the start, and datagrams are cut to fit.
    let socket = x::UdpSocket::bind_on(&stack, at_xylem(0)).expect("a port");
    let bind = || std::net::UdpSocket::bind("10.79.0.2:41272").expect("the port is free");
    let peer = host.enter(bind).expect("root enters");
    peer.set_read_timeout(Some(PATIENCE)).expect("above zero");
    socket.send_to(&[5; 3000], "10.79.0.2:41272").expect("there is room");
    let mut buffer = [0; 4000];
    assert_eq!(peer.recv(&mut buffer).expect("it comes"), 3000);
    let transmitted = run(&router, "cat", &["/proc/net/snmp"]);
    let value = |name: &str| snmp(&transmitted, "Ip", name);
    assert!(value("FragFails") > 0, "the router never had to refuse a packet: the path did not become narrower");
    capture.end_well(test, 1000, Checksums::Right);
}

/// A counter of /proc/net/snmp: a line of names, then a line of numbers.
fn snmp(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(&format!("{protocol}: ")));
    let names = lines.next().expect("a line of names").split_whitespace();
    let mut numbers = lines.next().expect("a line of numbers").split_whitespace();
    let place = names.into_iter().position(|word| word == name).expect("the kernel counts it");
    numbers.nth(place).expect("a number for each name").parse().expect("a number")
}

#[test]
fn the_kernel_is_told_by_xylem_as_a_router() {
    let test = "the_kernel_is_told_by_xylem_as_a_router";
    if !has(test, "ip") || !has(test, "ping") || !kernel::place::can_run(test) {
        return;
    }
    let ours = "10.78.0.2/24, 10.79.0.2/24";
    let mut graph = xylem::graphs::builtin("router").expect("it comes with the program");
    graph.set("ip", "address", Value::Text(ours.into())).expect("the node is there");
    graph.set("ip", "routes", Value::Text("10.1.0.0/16 via 10.78.0.9, 10.2.0.0/16 via 10.79.0.9".into())).expect("too");
    graph.set("right", "mtu", Value::Integer(1000)).expect("the node is there");
    let host = |plan: Plan, address: Ipv4Addr| {
        Cable::lay_in(Namespace::create().expect("root makes namespaces"), plan, "xylem0", address)
    };
    let plan = Plan::default().whole();
    let (left, left_device) = host(plan, KERNEL).into_device();
    let (right, right_device) = host(Plan { mtu: 1000, ..plan }, Ipv4Addr::new(10, 79, 0, 1)).into_device();
    run(&left, "ip", &["route", "add", "default", "via", "10.78.0.2"]);
    run(&right, "ip", &["route", "add", "default", "via", "10.79.0.2"]);
    let builder = xylem_host::stack::Stack::builder().graph(graph).catalogue(xylem::catalogue::builtin());
    let _router = builder.device(left_device).device(right_device).build().unwrap_or_else(|error| panic!("{error}"));
    let captures = [Capture::begin(&left), Capture::begin(&right)];
    // It passes on, it counts hops, it says so when they run out.
    let said = run(&left, "ping", &["-c", "3", "-i", "0.01", "-W", "5", "10.79.0.1"]);
    assert!(said.contains("ttl=63") && said.contains(" 0% packet loss"), "{said}");
    let mut command = left.command("ping").expect("a descriptor");
    let output = command.args(["-c", "1", "-t", "1", "-W", "5", "10.79.0.1"]).output().expect("it is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Time to live exceeded"), "{said}");
    // It knows no way to some networks, and nobody answers in others.
    let connect = |to: &str| {
        let to: SocketAddr = to.parse().expect("an address");
        left.enter(|| std::net::TcpStream::connect(to).expect_err("nobody is there").kind()).expect("root enters")
    };
    assert_eq!(connect("192.0.2.1:80"), ErrorKind::NetworkUnreachable);
    assert_eq!(connect("10.79.0.99:80"), ErrorKind::HostUnreachable);
    // The right link is narrower than the left host knows: it is told, and its transfer arrives.
    let to: SocketAddr = "10.79.0.1:41281".parse().expect("an address");
    let listener = right.enter(|| std::net::TcpListener::bind(to).expect("the port is free")).expect("root enters");
    let stream = left.enter(|| std::net::TcpStream::connect(to).expect("it listens")).expect("root enters");
    let (peer, _) = listener.accept().expect("it is connected");
    peer.set_read_timeout(Some(PATIENCE)).expect("above zero");
    // The peer's MSS would hide the narrow link from TCP, so datagrams that must not be cut show it.
    let said = {
        let mut command = left.command("ping").expect("a descriptor");
        let arguments = ["-c", "2", "-M", "do", "-s", "1200", "-W", "5", "10.79.0.1"];
        String::from_utf8_lossy(&command.args(arguments).output().expect("it is installed").stdout).into_owned()
    };
    assert!(said.contains("Frag needed") && said.contains("mtu = 1000"), "{said}");
    let said = run(&left, "ping", &["-c", "2", "-M", "dont", "-s", "1200", "-W", "5", "10.79.0.1"]);
    assert!(said.contains(" 0% packet loss"), "{said}");
    thread::scope(|scope| {
        scope.spawn(|| {
            pour(&stream, 3, MIDDLE).expect("the peer reads");
            stream.shutdown(Shutdown::Write).expect("it is open");
        });
        assert_eq!(catch(&peer, 3).expect("it sends"), MIDDLE);
    });
    for capture in captures {
        capture.end_well(test, 20, Checksums::Right);
    }
}
