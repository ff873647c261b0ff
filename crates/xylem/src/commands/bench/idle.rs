//! Connections on which nothing happens: each is made, carries a request and a response, and stays. When all stand, each
//! end reads the memory of its own process, and the kernel's on the whole machine.

use super::network::{Network, patiently, read_least, write_all};
use super::order::{Memory, Order, Outcome, server_at};
use std::io;
use std::time::{Duration, Instant};

/// How long the last acknowledgments and buffers may take to go home before memory is read.
const REST: Duration = Duration::from_millis(200);

/// Descriptors beside those of the connections.
const OTHER_FILES: u64 = 64;

/// The end that connects.
///
/// # Errors
/// A connection could not be made or broke, or this process may not have so many open files.
pub fn client<N: Network>(network: &N, order: &Order) -> io::Result<Outcome> {
    allow_files(order.connections)?;
    let (mut streams, mut bytes) = (Vec::with_capacity(1 + order.connections), vec![0xa5; order.bytes]);
    let (mut begun, mut memory) = (Instant::now(), Memory::before());
    let mut latest = begun;
    for number in 0..=order.connections {
        let mut stream = network.connect(server_at())?;
        write_all(&mut stream, &bytes)?;
        whole(&mut stream, &mut bytes)?;
        streams.push(stream);
        latest = Instant::now();
        if number == 0 {
            // The first brings the program itself into memory, and is none of those counted.
            (begun, memory) = (latest, Memory::before());
        }
    }
    network.settle_briefly(REST);
    memory.read_after();
    // The server reads its own when all stand, and says so on the first of them; until then they stay.
    let first = streams.first_mut().ok_or_else(|| io::Error::other("expected a connection at least, got none"))?;
    whole(first, &mut bytes)?;
    let operations = order.connections as u64;
    let seconds = (latest - begun).as_secs_f64();
    Ok(Outcome { operations, seconds, memory: Some(memory), ..Outcome::default() })
}

/// The end that accepts.
///
/// # Errors
/// As the client.
pub fn server<N: Network>(network: &N, listener: &N::Listener, order: &Order) -> io::Result<Outcome> {
    allow_files(order.connections)?;
    let (mut streams, mut bytes) = (Vec::with_capacity(1 + order.connections), vec![0; order.bytes]);
    let (mut begun, mut memory) = (Instant::now(), Memory::before());
    for number in 0..=order.connections {
        let mut stream = patiently(|| network.accept(listener))?;
        whole(&mut stream, &mut bytes)?;
        write_all(&mut stream, &bytes)?;
        streams.push(stream);
        if number == 0 {
            (begun, memory) = (Instant::now(), Memory::before());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    network.settle_briefly(REST);
    memory.read_after();
    let first = streams.first_mut().ok_or_else(|| io::Error::other("expected a connection at least, got none"))?;
    write_all(first, &bytes)?;
    let operations = order.connections as u64;
    Ok(Outcome { operations, seconds, memory: Some(memory), ..Outcome::default() })
}

/// Fills `bytes` from the stream.
fn whole(stream: &mut impl io::Read, bytes: &mut [u8]) -> io::Result<()> {
    let expected = bytes.len();
    match read_least(stream, bytes, expected)? {
        count if count == expected => Ok(()),
        count => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("expected {expected} bytes on an idle connection, got {count} and the end"),
        )),
    }
}

/// Lets this process have a descriptor a connection.
pub(super) fn allow_files(connections: usize) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).map_err(|error| {
        let got = limit.maximum.unwrap_or(u64::MAX);
        io::Error::other(format!(
            "expected to be allowed {wanted} open files for {connections} connections, got {got} ({error}): raise the \
             limit (ulimit -Hn {wanted}), or ask for fewer (--connections)"
        ))
    })
}

impl Memory {
    fn before() -> Memory {
        let (resident, slab) = (resident_bytes(), slab_bytes());
        Memory { resident_before: resident, slab_before: slab, ..Memory::default() }
    }

    fn read_after(&mut self) {
        (self.resident_after, self.slab_after) = (resident_bytes(), slab_bytes());
    }
}

/// The resident memory of this process (proc_pid_statm(5), the second field, in pages).
pub(super) fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// The kernel's objects on the whole machine (proc_meminfo(5), `Slab`, in KiB).
fn slab_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Slab:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_by_what_is_touched() {
        let mut memory = Memory::before();
        let touched = vec![1_u8; 64 << 20];
        memory.read_after();
        assert!(memory.resident_after - memory.resident_before > 60 << 20, "{memory:?}");
        assert!(memory.slab_before > 0, "{memory:?}");
        drop(touched);
    }
}
