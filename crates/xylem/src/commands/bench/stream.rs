//! A stream of bytes from the client to the server, for some time, counted where it arrives. The bytes follow from their
//! place in the stream, and the receiver compares a sample of every read with what should stand there.

use super::end::Meter;
use super::network::{Network, frames_between, patiently, read_least, write_all};
use super::order::{Order, Outcome, server_at};
use std::io::{self, ErrorKind, Read};
use std::time::Instant;
use xylem_core::Random;

/// The bytes at either end of a read that are compared.
const SAMPLE_BYTES: usize = 16;

/// The seed of the content.
const SEED: u64 = 1991;

/// After so many bytes the content repeats itself: a prime, so that no buffer or segment has a whole number of them and
/// a piece in the wrong place is seen.
const PERIOD_BYTES: usize = 65_521;

/// The content, so long that a write or a read can begin anywhere in its period.
pub(super) struct Content(Vec<u8>);

impl Content {
    /// Content of which up to `write_bytes` are taken at once.
    pub fn new(write_bytes: usize) -> Content {
        let mut period = vec![0; PERIOD_BYTES];
        Random::seeded(SEED).fill(&mut period);
        Content(period.iter().copied().cycle().take(PERIOD_BYTES + write_bytes).collect())
    }

    /// `count` bytes from this place of the stream on.
    pub fn at(&self, place: u64, count: usize) -> &[u8] {
        let from = (place % PERIOD_BYTES as u64) as usize;
        &self.0[from..from + count]
    }

    /// Whether a sample of `bytes` is what stands at this place of the stream.
    pub fn is_right(&self, place: u64, bytes: &[u8]) -> bool {
        let sample = SAMPLE_BYTES.min(bytes.len());
        let rest = bytes.len() - sample;
        bytes[..sample] == *self.at(place, sample) && bytes[rest..] == *self.at(place + rest as u64, sample)
    }
}

/// The end that sends.
///
/// # Errors
/// The connection could not be made, or broke.
pub fn client<N: Network>(network: &N, order: &Order, meter: Meter) -> io::Result<Outcome> {
    let content = Content::new(order.bytes);
    let mut stream = network.connect(server_at())?;
    let begun = Instant::now();
    let (processor, frames, until) = (meter.read(), network.frames(), begun + order.span());
    let mut bytes = 0;
    while Instant::now() < until {
        write_all(&mut stream, content.at(bytes, order.bytes))?;
        bytes += order.bytes as u64;
    }
    network.finish(&stream)?;
    // The peer closes when it has read everything: until then a stack without a thread of its own needs this one.
    read_least(&mut stream, &mut [0], 1)?;
    let cpu_seconds = meter.read() - processor;
    let frames = frames_between(frames, network.frames());
    Ok(Outcome { bytes, frames, seconds: begun.elapsed().as_secs_f64(), cpu_seconds, ..Outcome::default() })
}

/// The end that receives, and counts.
///
/// # Errors
/// The connection broke, or ended before anything was counted.
pub fn server<N: Network>(network: &N, listener: &N::Listener, order: &Order, meter: Meter) -> io::Result<Outcome> {
    let content = Content::new(order.bytes);
    let mut buffer = vec![0; order.bytes];
    let mut stream = patiently(|| network.accept(listener))?;
    let mut place = 0;
    let mut outcome = Outcome::default();
    let mut read = |stream: &mut N::Stream, outcome: &mut Outcome| {
        let count = match patiently(|| stream.read(&mut buffer)) {
            // A stack that is gone has nothing to say, and what arrived has been counted.
            Err(error) if error.kind() == ErrorKind::NotConnected => 0,
            answer => answer?,
        };
        outcome.strays += u64::from(!content.is_right(place, &buffer[..count]));
        place += count as u64;
        io::Result::Ok(count)
    };
    let mut count = read(&mut stream, &mut outcome)?;
    let counted_from = Instant::now() + order.warm_up();
    while count > 0 && Instant::now() < counted_from {
        count = read(&mut stream, &mut outcome)?;
    }
    let (begun, processor, frames) = (Instant::now(), meter.read(), network.frames());
    let mut last = begun;
    while count > 0 {
        count = read(&mut stream, &mut outcome)?;
        outcome.bytes += count as u64;
        if count > 0 {
            last = Instant::now();
        }
    }
    outcome.cpu_seconds = meter.read() - processor;
    outcome.frames = frames_between(frames, network.frames());
    outcome.seconds = (last - begun).as_secs_f64();
    if outcome.bytes == 0 {
        return Err(io::Error::new(
            ErrorKind::UnexpectedEof,
            "expected a stream that outlasts its warm-up, got its end",
        ));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_in_its_place_is_right_and_elsewhere_or_changed_is_not() {
        let content = Content::new(1000);
        let place = 5 * PERIOD_BYTES as u64 - 300;
        let mut bytes = content.at(place, 1000).to_vec();
        assert!(content.is_right(place, &bytes));
        assert!(!content.is_right(place + 1, &bytes) && !content.is_right(place + 65_536, &bytes));
        assert!(content.is_right(place + PERIOD_BYTES as u64, &bytes), "the content repeats itself");
        for spoilt in [0, 999] {
            bytes[spoilt] ^= 1;
            assert!(!content.is_right(place, &bytes), "byte {spoilt}");
            bytes[spoilt] ^= 1;
        }
        assert!(content.is_right(place, &[]), "nothing is nowhere wrong");
    }
}
