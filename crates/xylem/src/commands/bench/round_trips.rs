//! Round trips: a request and a response of as many bytes on one connection, one after the other. Every response is
//! compared with its request, which carries a number: a response to an earlier one would halve the times it is part of.

use super::end::Meter;
use super::network::{Network, frames_between, patiently, read_least, write_all};
use super::order::{Order, Outcome, server_at};
use super::samples::Samples;
use std::io;
use std::time::Instant;

/// The bytes of a request's number; shorter requests carry its lowest bytes.
const NUMBER_BYTES: usize = 8;

/// The end that asks.
///
/// # Errors
/// The connection could not be made, or broke.
pub fn client<N: Network>(network: &N, order: &Order, meter: Meter) -> io::Result<Outcome> {
    let mut samples = Samples::default();
    let mut stream = network.connect(server_at())?;
    let mut request = vec![0xa5; order.bytes];
    // One byte more than a response has, so that one too many is seen.
    let mut response = vec![0; order.bytes + 1];
    // The handshake is no part of it: a first round trip before the clock starts.
    let mut strays = round_trip(&mut stream, 0, &mut request, &mut response)?;
    network.send_at_once(&stream)?;
    let begun = Instant::now();
    let (counted_from, until) = (begun + order.warm_up(), begun + order.span());
    let (mut before, mut number) = (begun, 0_u64);
    while before < counted_from {
        number += 1;
        strays += round_trip(&mut stream, number, &mut request, &mut response)?;
        before = Instant::now();
    }
    let (counted, processor, frames) = (before, meter.read(), network.frames());
    // One at least: where a pause took all of the time, its figure says so, and none would leave a hole in the medians.
    while before < until || samples.count() == 0 {
        number += 1;
        strays += round_trip(&mut stream, number, &mut request, &mut response)?;
        // One look at the clock a round trip: the end of one is the beginning of the next.
        let after = Instant::now();
        let room = samples.add(after - before);
        before = after;
        if !room {
            break;
        }
    }
    let cpu_seconds = meter.read() - processor;
    let frames = frames_between(frames, network.frames());
    drop(stream);
    let operations = samples.count();
    let seconds = (before - counted).as_secs_f64();
    Ok(Outcome { operations, seconds, cpu_seconds, latency: samples.latency(), strays, frames, ..Outcome::default() })
}

/// One round trip: 1 if the response was not the one to this request.
fn round_trip<S: io::Read + io::Write>(
    stream: &mut S,
    number: u64,
    request: &mut [u8],
    response: &mut [u8],
) -> io::Result<u64> {
    let stamped = NUMBER_BYTES.min(request.len());
    request[..stamped].copy_from_slice(&number.to_le_bytes()[..stamped]);
    write_all(stream, request)?;
    let count = read_least(stream, response, request.len())?;
    if count < request.len() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("expected {} bytes of response {number}, got {count} and the end", request.len()),
        ));
    }
    Ok(u64::from(response[..count] != *request))
}

/// The end that answers.
///
/// # Errors
/// The connection broke.
pub fn server<N: Network>(network: &N, listener: &N::Listener, order: &Order, meter: Meter) -> io::Result<Outcome> {
    let mut stream = patiently(|| network.accept(listener))?;
    network.send_at_once(&stream)?;
    let (begun, processor, frames) = (Instant::now(), meter.read(), network.frames());
    let mut request = vec![0; order.bytes];
    let mut operations = 0;
    while read_least(&mut stream, &mut request, order.bytes)? == order.bytes {
        write_all(&mut stream, &request)?;
        operations += 1;
    }
    let cpu_seconds = meter.read() - processor;
    let frames = frames_between(frames, network.frames());
    Ok(Outcome { operations, seconds: begun.elapsed().as_secs_f64(), cpu_seconds, frames, ..Outcome::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::connections;
    use crate::commands::bench::order::{Side, Sockets, Task, Waiting};
    use rustix::time::ClockId;
    use std::collections::VecDeque;
    use std::io::{Cursor, Read, Write};
    use std::net::SocketAddr;

    /// Answers from a script.
    struct Script(Cursor<Vec<u8>>);

    impl Read for Script {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Script {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            Ok(from.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_late_answer_and_one_byte_too_many_are_strays() {
        let (mut request, mut response) = (vec![0; 1], vec![0; 2]);
        let mut ask = |number, script: &[u8]| {
            round_trip(&mut Script(Cursor::new(script.to_vec())), number, &mut request, &mut response)
        };
        assert_eq!(ask(7, &[7]).expect("an answer"), 0);
        assert_eq!(ask(7, &[6]).expect("an answer"), 1);
        assert_eq!(ask(7, &[7, 8]).expect("an answer"), 1);
        assert_eq!(ask(256 + 7, &[7]).expect("an answer"), 0);
        assert!(ask(7, &[]).is_err());
    }

    /// A network on which every byte comes back.
    struct Echo;

    impl Network for Echo {
        type Listener = ();
        type Stream = VecDeque<u8>;

        fn listen(&self, _: SocketAddr) -> io::Result<()> {
            Ok(())
        }
        fn accept(&self, (): &()) -> io::Result<VecDeque<u8>> {
            Ok(VecDeque::new())
        }
        fn connect(&self, _: SocketAddr) -> io::Result<VecDeque<u8>> {
            Ok(VecDeque::new())
        }
        fn send_at_once(&self, _: &VecDeque<u8>) -> io::Result<()> {
            Ok(())
        }
        fn finish(&self, _: &VecDeque<u8>) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_repetition_whose_time_was_lost_to_a_pause_has_an_operation_all_the_same() {
        let order = Order {
            task: Task::Rr,
            side: Side::Client,
            sockets: Sockets::Kernel,
            waiting: Waiting::Spin,
            bytes: 1,
            // It is over when it begins.
            seconds: 0.0,
            connections: 1,
            processors: [None; 3],
        };
        let outcome = client(&Echo, &order, Meter(ClockId::ThreadCPUTime)).expect("every byte comes back");
        assert_eq!((outcome.operations, outcome.strays), (1, 0));
        assert!(outcome.latency.is_some());
        let outcome = connections::client(&Echo, &order, Meter(ClockId::ThreadCPUTime)).expect("as before");
        assert_eq!((outcome.operations, outcome.strays), (1, 0));
        assert!(outcome.latency.is_some());
    }
}
