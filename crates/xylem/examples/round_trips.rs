//! How long a round trip takes: this stack on a TAP against the kernel's sockets on a veth pair, in one run. It says
//! something only on an idle machine: `cargo run --release -p xylem --example round_trips`, as root.

#[path = "../tests/host/mod.rs"]
mod host;

use host::{LEFT, RIGHT, host, right};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use xylem_host::device::TapDevice;
use xylem_host::interface::Interface;
use xylem_host::namespace::Namespace;
use xylem_host::net::{TcpListener, TcpStream};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};

const ROUNDS: usize = 20_000;

/// The median and the 99th percentile of round trips of one byte.
fn round_trips(mut stream: impl Read + Write) -> (Duration, Duration) {
    let mut byte = [0; 1];
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS + ROUNDS / 10 {
        let start = Instant::now();
        stream.write_all(&byte).expect("open");
        stream.read_exact(&mut byte).expect("open");
        if round >= ROUNDS / 10 {
            times.push(start.elapsed());
        }
    }
    times.sort();
    (times[ROUNDS / 2], times[ROUNDS * 99 / 100])
}

fn echo(mut stream: impl Read + Write) {
    let mut byte = [0; 1];
    while matches!(stream.read(&mut byte), Ok(1)) {
        stream.write_all(&byte).expect("open");
    }
}

fn address(text: &str, port: u16) -> SocketAddr {
    SocketAddr::new(text.parse().expect("an address"), port)
}

fn give(interface: &Interface, text: &str) {
    let address: IpAddr = text.parse().expect("an address");
    interface.add_address(address, 24).expect("root may");
    interface.set_up(true).expect("root may");
}

fn kernel_over_veth() -> (Duration, Duration) {
    let (one, other) = (Namespace::create().expect("root"), Namespace::create().expect("root"));
    let holder = other.command("sleep").expect("a command").arg("30").spawn();
    let mut holder = holder.expect("a process that holds the namespace");
    let script = format!("ip link add left type veth peer name right netns {}", holder.id());
    let made = one.command("sh").expect("a command").args(["-c", &script]).status().expect("ip runs");
    assert!(made.success());
    one.enter(|| give(&Interface::open("left").expect("made"), LEFT)).expect("root");
    other.enter(|| give(&Interface::open("right").expect("made"), RIGHT)).expect("root");
    let listener = other.enter(|| std::net::TcpListener::bind(right(7))).expect("root").expect("free");
    let served = thread::spawn(move || {
        let stream = listener.accept().expect("a client").0;
        stream.set_nodelay(true).expect("open");
        echo(stream);
    });
    let stream = one.enter(|| std::net::TcpStream::connect(right(7))).expect("root").expect("it listens");
    stream.set_nodelay(true).expect("open");
    let result = round_trips(&stream);
    drop(stream);
    served.join().expect("no panic");
    holder.kill().expect("it sleeps");
    holder.wait().expect("it was killed");
    result
}

fn stack_over_tap(shell: Shell, spin: Duration, server: bool) -> (Duration, Duration) {
    let namespace = Namespace::create().expect("root");
    let tap = namespace.enter(|| {
        let tap = Tap::open("tap0", TapOptions::default()).expect("root makes TAPs");
        give(tap.kernel_side(), LEFT);
        tap
    });
    let device = TapDevice::new(tap.expect("root")).expect("it is there");
    let stack: Stack = host(RIGHT, device).shell(shell).spin(spin).build().unwrap_or_else(|error| panic!("{error}"));
    if server {
        let listener = TcpListener::bind_on(&stack, right(7)).expect("free");
        let served = thread::spawn(move || {
            let stream = listener.accept().expect("a client").0;
            stream.set_nodelay(true).expect("open");
            echo(stream);
        });
        let stream = namespace.enter(|| std::net::TcpStream::connect(right(7))).expect("root").expect("it listens");
        stream.set_nodelay(true).expect("open");
        let result = round_trips(&stream);
        drop(stream);
        served.join().expect("no panic");
        return result;
    }
    let listener = namespace.enter(|| std::net::TcpListener::bind(address(LEFT, 7))).expect("root").expect("free");
    let served = thread::spawn(move || {
        let stream = listener.accept().expect("a client").0;
        stream.set_nodelay(true).expect("open");
        echo(stream);
    });
    let stream = TcpStream::connect_on(&stack, address(LEFT, 7)).expect("it listens");
    stream.set_nodelay(true).expect("open");
    let result = round_trips(&stream);
    drop(stream);
    stack.drain(Duration::from_secs(1));
    served.join().expect("no panic");
    result
}

fn main() {
    let tools = Command::new("ip").arg("-V").output();
    assert!(tools.is_ok_and(|output| output.status.success()), "needs ip(8)");
    let (kernel, kernel_tail) = kernel_over_veth();
    println!("veth  kernel               median {kernel:?}, 99 % {kernel_tail:?}");
    let long = Duration::from_millis(100);
    for (name, shell, spin) in [
        ("inline, looking", Shell::Inline, long),
        ("inline, sleeping", Shell::Inline, Duration::ZERO),
        ("spin, looking", Shell::Spin, long),
        ("spin", Shell::Spin, Duration::ZERO),
        ("thread", Shell::Thread, Duration::ZERO),
    ] {
        for server in [false, true] {
            let (median, tail) = stack_over_tap(shell, spin, server);
            let ratio = median.as_secs_f64() / kernel.as_secs_f64();
            let role = if server { "server" } else { "client" };
            println!("tap   {name:16} {role}  median {median:?}, 99 % {tail:?}; tap/veth {ratio:.2}");
        }
    }
}
