//! Random streams. Every path has its own, drawn from its host's seed, so that linkage, batching and threads cannot
//! change what a seed means; a real host seeds its first stream from the operating system.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A reproducible stream of random numbers: the same seed gives the same numbers on every machine and version.
///
/// Not for secrets that a peer must not compute (initial sequence numbers use a keyed hash, RFC 6528); good for
/// jitter, identifications and simulated faults.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream that `seed` names. Nearby seeds give unrelated streams.
    pub fn seeded(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A new stream named by this stream's next number: children do not share numbers with their parent.
    pub fn child(&mut self) -> Random {
        Random::seeded(self.next())
    }

    /// The next 64 random bits. (An endless stream is no iterator.)
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`, each as likely as the next (multiply-shift; the bias is below `bound / 2^64`).
    ///
    /// # Panics
    /// If `bound` is zero: there is no such number.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below zero was asked for");
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// True `parts` times in a million.
    pub fn chance_per_million(&mut self, parts: u32) -> bool {
        self.below(1_000_000) < u64::from(parts)
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_stream_and_neighbouring_seeds_differ() {
        let draw = |seed| {
            let mut random = Random::seeded(seed);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(draw(42), draw(42));
        assert_ne!(draw(42), draw(43));
        assert_eq!(draw(0)[0], 0x53175d61490b23df, "the stream is part of every golden hash: it may not change");
    }

    #[test]
    fn a_child_is_another_stream() {
        let mut parent = Random::seeded(1);
        let mut child = parent.child();
        assert_ne!(parent.next(), child.next());
    }

    #[test]
    fn chance_is_about_right() {
        let mut random = Random::seeded(7);
        let hits = (0..100_000).filter(|_| random.chance_per_million(10_000)).count();
        assert!((800..1200).contains(&hits), "1 % of 100 000 came out as {hits}");
    }
}
