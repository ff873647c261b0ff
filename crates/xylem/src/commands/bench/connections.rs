//! Connections, one after the other: connect, a request, a response of as many bytes, close. The client closes first and
//! keeps each in TIME-WAIT, so that it needs a port a connection; there are more ports than connections. A connection
//! that cannot be made fails the whole.

use super::end::Meter;
use super::network::{Network, frames_between, patiently, read_least, write_all};
use super::order::{Order, Outcome, server_at};
use super::samples::Samples;
use std::io;
use std::time::Instant;

/// The first byte of the request that is the last one.
const LAST: u8 = 0xff;

/// The end that connects, asks, and closes.
///
/// # Errors
/// A connection could not be made, broke, or had no whole response.
pub fn client<N: Network>(network: &N, order: &Order, meter: Meter) -> io::Result<Outcome> {
    let mut samples = Samples::default();
    let mut request = vec![0xa5; order.bytes];
    let mut response = vec![0; order.bytes];
    let begun = Instant::now();
    let (counted_from, until) = (begun + order.warm_up(), begun + order.span());
    let (mut made, mut strays) = (0, 0);
    let mut connection = |made: &mut usize, first: Option<u8>| {
        request[0] = first.unwrap_or((*made % usize::from(LAST)) as u8);
        *made += 1;
        let mut stream = network.connect(server_at())?;
        write_all(&mut stream, &request)?;
        let count = read_least(&mut stream, &mut response, order.bytes)?;
        if count < order.bytes {
            let message = format!("connection {made}: expected {} bytes of response, got {count}", order.bytes);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        strays += u64::from(request != response);
        Ok(())
    };
    let mut before = begun;
    // Half of the connections at most before those that count.
    while before < counted_from && made < order.connections / 2 {
        connection(&mut made, None)?;
        before = Instant::now();
    }
    let (counted, processor, frames) = (before, meter.read(), network.frames());
    // One at least, as with round trips.
    while (before < until || samples.count() == 0) && made < order.connections {
        connection(&mut made, None)?;
        let after = Instant::now();
        let room = samples.add(after - before);
        before = after;
        if !room {
            break;
        }
    }
    let cpu_seconds = meter.read() - processor;
    let frames = frames_between(frames, network.frames());
    connection(&mut made, Some(LAST))?;
    let operations = samples.count();
    let seconds = (before - counted).as_secs_f64();
    Ok(Outcome { operations, seconds, cpu_seconds, latency: samples.latency(), strays, frames, ..Outcome::default() })
}

/// The end that accepts, answers, and closes when the client has.
///
/// # Errors
/// A connection broke.
pub fn server<N: Network>(network: &N, listener: &N::Listener, order: &Order, meter: Meter) -> io::Result<Outcome> {
    let mut request = vec![0; order.bytes];
    let mut operations = 0;
    let (begun, processor, frames) = (Instant::now(), meter.read(), network.frames());
    loop {
        let mut stream = patiently(|| network.accept(listener))?;
        let count = read_least(&mut stream, &mut request, order.bytes)?;
        write_all(&mut stream, &request[..count])?;
        read_least(&mut stream, &mut [0], 1)?;
        operations += 1;
        if request[0] == LAST {
            let cpu_seconds = meter.read() - processor;
            let frames = frames_between(frames, network.frames());
            return Ok(Outcome {
                operations,
                seconds: begun.elapsed().as_secs_f64(),
                cpu_seconds,
                frames,
                ..Outcome::default()
            });
        }
    }
}
