//! Building stacks: what goes wrong is said before anything runs; and the process's default stack.

mod host;

use host::{LEFT, graph, host, right};
use std::io::{ErrorKind, Read, Write};
use std::thread;
use xylem_graph::file::load;
use xylem_host::device::WireDevice;
use xylem_host::net::{TcpListener, TcpStream, UdpSocket};
use xylem_host::shell::Shell;
use xylem_host::stack::{BuildError, NO_DEFAULT, Stack};

#[test]
fn what_is_missing_or_wrong_is_said() {
    let error = Stack::builder().build().expect_err("nothing was given");
    assert!(matches!(error, BuildError::NoGraph));
    let builder = || Stack::builder().catalogue(xylem::catalogue::builtin());
    let error = builder().graph("etherweb over auto").build().expect_err("no such protocol").to_string();
    assert!(error.contains("etherweb") && error.contains("graph:1:"), "{error}");
    let error = builder().graph(graph(LEFT, "")).build().expect_err("no device").to_string();
    assert!(error.contains("expected 1 devices, got 0"), "{error}");
    let refuses = |_: &_| Err(std::io::Error::other("no cable"));
    let error = builder().graph(graph(LEFT, "")).devices(refuses).build().expect_err("no device").to_string();
    assert!(error.contains("link0") && error.contains("no cable"), "{error}");
    let read = load(&graph(LEFT, ""), &xylem::catalogue::builtin()).expect("a good graph");
    let stack = builder().graph(read).device(WireDevice::pair().0).build().expect("a good graph");
    assert_eq!(stack.shell(), Shell::Thread);
}

#[test]
fn a_graph_without_a_protocol_has_no_sockets_of_it() {
    let text = "link0 = ethernet over auto\nip = ipv4 over link0 { address = \"10.0.0.1/24\" }\nudp over ip\n";
    let stack =
        Stack::builder().graph(text).catalogue(xylem::catalogue::builtin()).device(WireDevice::pair().0).build();
    let stack = stack.expect("a good graph");
    let error = TcpListener::bind_on(&stack, "0.0.0.0:1").expect_err("no TCP");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("tcp"), "{error}");
    UdpSocket::bind_on(&stack, "0.0.0.0:1").expect("UDP is there");
}

#[test]
fn sockets_without_a_stack_open_on_the_default() {
    let error = TcpListener::bind("0.0.0.0:7").expect_err("no default yet");
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::NotConnected, NO_DEFAULT.to_owned()));
    let (one, other) = WireDevice::pair();
    let (left, server) = (host(LEFT, one).build().expect("good"), host(host::RIGHT, other).build().expect("good"));
    server.make_default();
    let listener = TcpListener::bind("0.0.0.0:7").expect("there is a default");
    left.make_default();
    let served = thread::spawn(move || {
        let mut text = String::new();
        listener.accept().expect("a client").0.read_to_string(&mut text).expect("ends in order");
        text
    });
    let mut stream = TcpStream::connect(right(7)).expect("somebody listens");
    stream.write_all(b"by default").expect("open");
    drop(stream);
    assert_eq!(served.join().expect("no panic"), "by default");
    Stack::forget_default();
    TcpStream::connect(right(7)).expect_err("no default any more");
}
