//! Two hosts on a wire, and the calls of tests in short.

use std::io::{IoSlice, IoSliceMut};
use xylem::{catalogue, graphs};
use xylem_graph::file::Value;
use xylem_host::device::WireDevice;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_posix::{Descriptors, Errno, Name, Received};

/// The addresses of the two.
pub const HOSTS: [&str; 2] = ["10.7.0.1", "10.7.0.2"];

pub fn stack(address: &str, device: WireDevice, seed: u64) -> Stack {
    let mut graph = graphs::builtin("point").expect("it comes with Xylem");
    for (option, value) in [("address", format!("{address}/24")), ("gateway", "10.7.0.9".to_owned())] {
        graph.set("ip", option, Value::Text(value)).expect("the option is known");
    }
    let builder = Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).seed(seed);
    builder.shell(Shell::Thread).build().expect("the graph is right")
}

/// Two tables of descriptors, each on its own host.
pub fn pair() -> [Descriptors; 2] {
    let (left, right) = WireDevice::pair();
    [Descriptors::new(stack(HOSTS[0], left, 1), 0), Descriptors::new(stack(HOSTS[1], right, 2), 0)]
}

/// An address as `sockaddr_in`, or `sockaddr_in6` with the host mapped.
pub fn name(host: &str, port: u16, domain: i32) -> Vec<u8> {
    Name::new(format!("{host}:{port}").parse().expect("an address"), domain).as_bytes().to_vec()
}

pub fn v4(host: &str, port: u16) -> Vec<u8> {
    name(host, port, libc::AF_INET)
}

pub fn stream(table: &Descriptors) -> i32 {
    table.socket(libc::AF_INET, libc::SOCK_STREAM, 0).expect("a descriptor is free")
}

pub fn datagrams(table: &Descriptors) -> i32 {
    table.socket(libc::AF_INET, libc::SOCK_DGRAM, 0).expect("a descriptor is free")
}

/// A socket that listens at this port.
pub fn listener(table: &Descriptors, port: u16) -> i32 {
    let descriptor = stream(table);
    table.bind(descriptor, &v4("0.0.0.0", port)).expect("the port is free");
    table.listen(descriptor, 5).expect("it is bound");
    descriptor
}

/// A connection from the first to the second: its two ends.
pub fn connected([left, right]: &[Descriptors; 2], port: u16) -> [i32; 2] {
    let listens = listener(right, port);
    let ours = stream(left);
    left.connect(ours, &v4(HOSTS[1], port)).expect("it listens");
    let (theirs, _) = right.accept(listens, 0).expect("one is in line");
    right.close(listens).expect("it is open");
    [ours, theirs]
}

pub fn read(table: &Descriptors, descriptor: i32, most: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; most];
    let count = table.read(descriptor, &mut [IoSliceMut::new(&mut bytes)])?;
    bytes.truncate(count);
    Ok(bytes)
}

pub fn receive(table: &Descriptors, descriptor: i32, most: usize, flags: i32) -> Result<(Vec<u8>, Received), Errno> {
    let mut bytes = vec![0; most];
    let received = table.receive(descriptor, &mut [IoSliceMut::new(&mut bytes)], flags)?;
    bytes.truncate(received.count.min(most));
    Ok((bytes, received))
}

pub fn write(table: &Descriptors, descriptor: i32, bytes: &[u8]) -> Result<usize, Errno> {
    table.write(descriptor, &[IoSlice::new(bytes)])
}

pub fn send(table: &Descriptors, descriptor: i32, bytes: &[u8], flags: i32) -> Result<usize, Errno> {
    table.send(descriptor, &[IoSlice::new(bytes)], flags, None)
}

pub fn option(table: &Descriptors, descriptor: i32, level: i32, option: i32) -> Result<i32, Errno> {
    let mut value = [0; 4];
    table.getsockopt(descriptor, level, option, &mut value).map(|_| i32::from_ne_bytes(value))
}

pub fn set(table: &Descriptors, descriptor: i32, level: i32, option: i32, value: i32) -> Result<(), Errno> {
    table.setsockopt(descriptor, level, option, &value.to_ne_bytes())
}

/// A socket whose calls do not wait.
pub fn unblock(table: &Descriptors, descriptor: i32) {
    assert_eq!(table.fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK), Ok(0));
}

/// Waits until poll(2) finds one of `events`, and says what it found.
pub fn poll(table: &Descriptors, descriptor: i32, events: i16) -> i16 {
    let mut entries = [xylem_posix::PollEntry { descriptor, events, found: 0 }];
    assert_eq!(table.poll(&mut entries, 20_000), Ok(1), "nothing came in twenty seconds");
    entries[0].found
}
