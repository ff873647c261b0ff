//! Paths at rest, as an application sees them: it does not. Connections that were idle for a while are records in their
//! instance, and go on as if nothing had been when either side says something, closes or sets an option.

mod host;

use host::{pair_with, right};
use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};
use xylem_graph::instance::AWAKE_MANY;
use xylem_host::net::{TcpListener, TcpStream};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;

/// Enough that they come to rest soon.
const COUNT: usize = AWAKE_MANY + 40;
/// How long anything may take before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(20);

/// `COUNT` connections, both ends in order.
fn connections(left: &Stack, other: &Stack) -> Vec<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind_on(other, right(7)).expect("free");
    let connect = |_| {
        let client = TcpStream::connect_on(left, right(7)).expect("somebody listens");
        let (server, _) = listener.accept().expect("a client");
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            stream.set_nodelay(true).expect("open");
        }
        (client, server)
    };
    (0..COUNT).map(connect).collect()
}

/// Waits until at least `count` paths of `stack` are at rest.
fn rested(stack: &Stack, count: usize) {
    let until = Instant::now() + PATIENCE;
    while stack.instance().resting_count() < count {
        assert!(Instant::now() < until, "{} of {count} came to rest", stack.instance().resting_count());
        thread::sleep(Duration::from_millis(5));
    }
}

fn say(mut from: &TcpStream, mut to: &TcpStream, bytes: &[u8]) {
    let mut heard = vec![0; bytes.len()];
    thread::scope(|scope| {
        scope.spawn(|| from.write_all(bytes).expect("open"));
        to.read_exact(&mut heard).expect("it is said");
    });
    assert!(heard == bytes, "other bytes arrived");
}

#[test]
fn idle_connections_rest_and_go_on_from_either_side() {
    let (left, other) = pair_with(Shell::Thread, "");
    let pairs = connections(&left, &other);
    for round in 0..3_usize {
        rested(&left, COUNT);
        rested(&other, COUNT);
        for (index, (client, server)) in pairs.iter().enumerate() {
            // Short and long, so that windows, scales and numbers all have to be as they were.
            let bytes: Vec<u8> = (0..1 + index * 997 * (round + 1)).map(|at| (at * 31 + index + round) as u8).collect();
            match (index + round) % 2 {
                0 => say(client, server, &bytes),
                _ => say(server, client, &bytes),
            }
        }
    }
    drop(pairs);
    let until = Instant::now() + PATIENCE;
    while left.instance().path_count() > left.instance().kept_path_count() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left.instance().path_count(), left.instance().kept_path_count(), "after the close nothing is left");
    assert_eq!(left.instance().resting_count(), 0);
    assert!(left.drain(PATIENCE) && other.drain(PATIENCE));
}

#[test]
fn what_was_received_and_set_before_the_rest_is_there_after_it() {
    let (left, other) = pair_with(Shell::Thread, "");
    let pairs = connections(&left, &other);
    for (client, server) in &pairs {
        let mut writer = client;
        writer.write_all(b"unread").expect("open");
        // Waits until it is there, without taking it.
        while server.peek(&mut [0; 6]).expect("open") < 6 {}
    }
    rested(&left, COUNT);
    rested(&other, COUNT);
    for (client, server) in &pairs {
        assert_eq!(client.peer_addr().expect("it has one"), right(7), "who converses is known at rest");
        let (mut reader, mut heard) = (server, [0; 6]);
        reader.read_exact(&mut heard).expect("it arrived before");
        assert_eq!(&heard, b"unread");
        say(server, client, b"answer");
    }
    // The end of one side wakes the other.
    rested(&other, COUNT);
    for (client, server) in pairs {
        drop(client);
        let mut server = server;
        assert_eq!(server.read(&mut [0; 1]).expect("it ended in order"), 0);
        let error = loop {
            if let Err(error) = server.write(b"too late") {
                break error.kind();
            }
        };
        assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    }
}
