//! Xylem on packet sockets against the kernel's own stack at the other end of a cable: streams and datagrams with and
//! without offloads, over one queue and several, behind an impaired link, and for users who are not root.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}

use kernel::place::{KERNEL, answer, ask, at_kernel, at_xylem, content, graph, skipped};
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use xylem::catalogue;
use xylem_graph::link::LinkModel;
use xylem_host::device::{Device, Impaired, PacketDevice};
use xylem_host::namespace::{Level, Namespace, privilege};
use xylem_host::net as x;
use xylem_host::packet::{PacketOptions, PacketSocket};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::veth;

const PROGRAM: &str = env!("CARGO_BIN_EXE_xylem");
const PATIENCE: Duration = Duration::from_secs(60);
/// Lengths of streams around a segment, a large message and beyond.
const LENGTHS: [usize; 7] = [1, 1447, 1448, 1449, 65_535, 65_536, 8 << 20];

/// A kernel host, and packet sockets in another namespace at the other end of its cable.
fn cable(test: &str, options: PacketOptions) -> Option<(Namespace, Namespace, PacketSocket)> {
    let privilege = privilege();
    if privilege.level != Level::Root {
        skipped(test, &privilege.reason);
        return None;
    }
    let create = || Namespace::create().expect("root makes namespaces");
    let (kernel, ours) = (create(), create());
    let (far, near) = veth::join((&kernel, "kernel"), (&ours, "xylem")).expect("root may");
    far.add_address(IpAddr::V4(KERNEL), 24).expect("root may");
    for end in [&far, &near] {
        end.set_up(true).expect("root may");
    }
    assert!(far.wait_until_running(Duration::from_secs(20)).expect("it is there"));
    assert!(near.wait_until_running(Duration::from_secs(20)).expect("it is there"));
    let open = || PacketSocket::open("xylem", options).unwrap_or_else(|error| panic!("{error}"));
    let socket = ours.enter(open).expect("root enters");
    Some((kernel, ours, socket))
}

fn stack(device: impl Device + 'static) -> Stack {
    let builder = Stack::builder().graph(graph()).catalogue(catalogue::builtin()).shell(Shell::Thread);
    builder.device(device).build().unwrap_or_else(|error| panic!("{error}"))
}

/// Streams of these lengths, asked by the kernel and asked by Xylem.
fn streams(kernel: &Namespace, stack: &Stack, lengths: &[usize]) {
    let listener = x::TcpListener::bind_on(stack, at_xylem(7)).expect("the port is free");
    let ours = kernel.enter(|| std::net::TcpListener::bind(at_kernel(7)).expect("the port is free"));
    let ours = ours.expect("root enters");
    thread::scope(|scope| {
        scope.spawn(|| lengths.iter().for_each(|_| answer(listener.accept().expect("a connection").0)));
        scope.spawn(|| lengths.iter().for_each(|_| answer(ours.accept().expect("a connection").0)));
        for (seed, &length) in lengths.iter().enumerate() {
            let connect = || std::net::TcpStream::connect(at_xylem(7)).expect("Xylem listens");
            let stream = kernel.enter(connect).expect("root enters");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            ask(stream, &content(length, seed as u64));
            let stream = x::TcpStream::connect_on(stack, at_kernel(7)).expect("the kernel listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            ask(stream, &content(length, 100 + seed as u64));
        }
    });
}

#[test]
fn streams_and_datagrams_cross_both_ways() {
    let test = "streams_and_datagrams_cross_both_ways";
    for (queues, bypass) in [(1, false), (4, false), (1, true)] {
        let options = PacketOptions { queues, bypass, ..PacketOptions::default() };
        let Some((kernel, _ours, socket)) = cable(test, options) else { return };
        let stack = stack(PacketDevice::new(socket).expect("the interface is there"));
        streams(&kernel, &stack, &LENGTHS);
        let echo = x::UdpSocket::bind_on(&stack, at_xylem(9)).expect("the port is free");
        let socket = kernel.enter(|| std::net::UdpSocket::bind(at_kernel(0)).expect("a port")).expect("root enters");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let mut buffer = vec![0; 70_000];
        for size in [0, 1, 1472, 1473, 9000, 65_507] {
            let bytes = content(size, size as u64);
            socket.send_to(&bytes, at_xylem(9)).expect("it is near");
            let (length, from) = echo.recv_from(&mut buffer).expect("a datagram");
            echo.send_to(&buffer[..length], from).expect("there is room");
            let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("{size} bytes: {error}"));
            assert!(buffer[..length] == bytes, "{size} bytes came back as {length}");
        }
        let drops = stack.device(0).expect("there is one").drops();
        assert!(drops.iter().all(|(_, count)| *count == 0), "{queues} queues: {drops:?}");
    }
}

#[test]
fn behind_an_impaired_link_frames_are_whole_and_streams_survive() {
    let test = "behind_an_impaired_link_frames_are_whole_and_streams_survive";
    let Some((kernel, _ours, socket)) = cable(test, PacketOptions::default()) else { return };
    let device = PacketDevice::new(socket).expect("the interface is there").without_offloads();
    let model: LinkModel = "loss=1% duplicate=1% corrupt=0.5% delay=200us".parse().expect("a model");
    let stack = stack(Impaired::new(device, &model, 7).expect("within its limits"));
    streams(&kernel, &stack, &[1449, 1 << 20]);
}

/// A command that runs as an ordinary user, or `None` if this test cannot become one.
fn as_nobody(test: &str) -> Option<(tempfile::TempDir, Command)> {
    if privilege().level != Level::Root {
        skipped(test, "needs root to become an ordinary user");
        return None;
    }
    // The program may stand where an ordinary user may not read.
    let folder = tempfile::tempdir().expect("a directory");
    let program = folder.path().join("xylem");
    std::fs::copy(PROGRAM, &program).expect("the disk has room");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("it is ours");
    let mut command = Command::new(program);
    command.uid(65_534).gid(65_534);
    // Whether ordinary users may make user namespaces here is found out by one.
    let tried = Command::new("unshare").args(["--user", "--map-root-user", "--net", "true"]).uid(65_534).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        skipped(test, "ordinary users may not make user namespaces here");
        return None;
    }
    Some((folder, command))
}

#[test]
fn an_ordinary_user_serves_in_a_namespace_of_his_own_and_is_told_how_to_reach_it() {
    let test = "an_ordinary_user_serves_in_a_namespace_of_his_own_and_is_told_how_to_reach_it";
    let Some((_folder, mut command)) = as_nobody(test) else { return };
    let arguments = ["serve", "--device", "packet:x0", "--address", "10.81.0.9/24", "--json", "echo@7"];
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
    let ran: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!((&ran["device"]["kind"], &ran["device"]["made"]), (&"packet".into(), &true.into()));
    let told = format!("--user --net --target {} COMMAND", child.id());
    assert!(ran["notes"][0].as_str().is_some_and(|note| note.contains(&told)), "{ran}");
    let namespace = Namespace::open(format!("/proc/{}/ns/net", child.id())).expect("it runs");
    let echoed = namespace.enter(|| {
        let mut stream = std::net::TcpStream::connect("10.81.0.9:7").expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(b"nobody").expect("it reads");
        let mut bytes = [0; 6];
        std::io::Read::read_exact(&mut stream, &mut bytes).expect("it answers");
        bytes
    });
    assert_eq!(&echoed.expect("root enters"), b"nobody");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .expect("it runs");
    assert_eq!(child.wait().expect("it was started").code(), Some(0));
}

#[test]
fn what_an_ordinary_user_may_not_is_said_with_the_mend() {
    let test = "what_an_ordinary_user_may_not_is_said_with_the_mend";
    for (arguments, words) in [
        (&["wire", "lo", "eth0"][..], &["expected an Ethernet"][..]),
        (&["serve", "--device", "packet:lo", "--address", "10.81.0.9/24", "echo@7"], &["expected an Ethernet"]),
    ] {
        let Some((_folder, mut command)) = as_nobody(test) else { return };
        let output = command.args(arguments).output().expect("the program starts");
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
}

#[test]
fn an_address_of_the_kernels_is_refused_with_the_mend() {
    let test = "an_address_of_the_kernels_is_refused_with_the_mend";
    let Some((kernel, _ours, _socket)) = cable(test, PacketOptions::default()) else { return };
    let address = format!("{KERNEL}/24");
    for (arguments, words) in [
        (
            &["--device", "packet:kernel", "--address", &address, "echo@7"][..],
            &["that the kernel does not have", "ip address del", "dev kernel"][..],
        ),
        (&["--device", "packet:typo", "--address", "10.78.0.9/24", "echo@7"], &["`typo`", "ip link add typo"]),
        (&["--device", "tap:x", "--queues", "2", "--address", "10.78.0.9/24", "echo@7"], &["--queues", "got 2"]),
        (&["--device", "packet:kernel", "--queues", "99", "--address", "10.78.0.9/24", "echo@7"], &["1 to 64, got 99"]),
    ] {
        let mut command = kernel.command(PROGRAM).expect("a descriptor");
        let output = command.arg("serve").args(arguments).output().expect("the program starts");
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
}
