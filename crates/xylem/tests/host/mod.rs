//! What the tests of stacks share: a catalogue, graphs of two hosts, stacks over a wire, bytes that cannot be mistaken.
#![allow(dead_code, reason = "each test takes what it needs")]

pub mod content;

use std::net::SocketAddr;
use std::time::Duration;
use xylem_graph::instance::Limits;
use xylem_host::device::{Device, WireDevice};
use xylem_host::shell::Shell;
use xylem_host::stack::{Builder, Stack};

/// Where the left and the right host of every test live.
pub const LEFT: &str = "10.0.0.1";
pub const RIGHT: &str = "10.0.0.2";

/// The graph of one host, as it comes with the program, but for a gateway: with its address and more options of TCP.
pub fn graph(address: &str, tcp: &str) -> String {
    let text = xylem::graphs::text("host").expect("it comes with the program");
    let more = if tcp.is_empty() { String::new() } else { format!(", {tcp}") };
    let text = text.replace(", gateway = \"10.0.0.1\"", "").replace("10.0.0.2/24", &format!("{address}/24"));
    text.replace("congestion = cubic", &format!("congestion = cubic{more}"))
}

/// A stack of one host, to be given a shell.
pub fn host(address: &str, device: impl Device + 'static) -> Builder {
    host_with(address, "", device)
}

/// The same with options of TCP.
pub fn host_with(address: &str, tcp: &str, device: impl Device + 'static) -> Builder {
    let limits = Limits { paths: 4096, enables: 256, small_buffers: 16_384, large_buffers: 512 };
    let seed = u64::from(address.bytes().last().expect("an address is not empty"));
    Stack::builder()
        .graph(graph(address, tcp))
        .catalogue(xylem::catalogue::builtin())
        .device(device)
        .limits(limits)
        .seed(seed)
}

/// Two hosts on a wire.
pub fn pair(shell: Shell) -> (Stack, Stack) {
    pair_with(shell, "")
}

/// Two hosts on a wire, with options of TCP.
pub fn pair_with(shell: Shell, tcp: &str) -> (Stack, Stack) {
    let (left, right) = WireDevice::pair();
    let build = |builder: Builder| builder.shell(shell).build().unwrap_or_else(|error| panic!("{error}"));
    (build(host_with(LEFT, tcp, left)), build(host_with(RIGHT, tcp, right)))
}

/// The right host's port.
pub fn right(port: u16) -> SocketAddr {
    SocketAddr::new(RIGHT.parse().expect("an address"), port)
}

/// Fails the test if it takes longer than a test may.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waits) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = work();
        let _ = done.send(());
        result
    });
    match waits.recv_timeout(limit) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the test did not end within {limit:?}"),
        // Done, or panicked: the join tells.
        _ => thread.join().unwrap_or_else(|reason| std::panic::resume_unwind(reason)),
    }
}
