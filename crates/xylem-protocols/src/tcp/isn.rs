//! Where a connection's numbers begin: a clock and a keyed hash of its ends (RFC 6528; RFC 9293, section 3.4.1). The same pair of ends moves forward with time, and one pair tells nothing about another. The timestamp
//! clock's offset comes from the same source, so that it does not tell how long the host has been up.

use super::ends::Ends;
use siphasher::sip::SipHasher24;
use std::hash::{Hash, Hasher};
use xylem_core::{Instant, Random};
use xylem_wire::SequenceNumber;

/// The secret, and what is made of it.
#[derive(Debug)]
pub(crate) struct Beginnings {
    keys: [(u64, u64); 2],
}

impl Beginnings {
    /// A new secret, which nobody outside can find out (RFC 9293 MUST-9).
    pub fn new(random: &mut Random) -> Beginnings {
        Beginnings { keys: [(random.next(), random.next()), (random.next(), random.next())] }
    }

    /// The initial sequence number of a connection that begins now: the clock ticks every 4 us (RFC 9293 MUST-8, SHLD-1).
    pub fn sequence(&self, ends: &Ends, now: Instant) -> SequenceNumber {
        let ticks = (now.as_nanos() / 4_000) as u32;
        SequenceNumber(self.hash(0, ends).wrapping_add(ticks))
    }

    /// What a connection adds to its millisecond clock (RFC 7323 7.1).
    pub fn clock_offset(&self, ends: &Ends) -> u32 {
        self.hash(1, ends)
    }

    fn hash(&self, key: usize, ends: &Ends) -> u32 {
        let (first, second) = self.keys[key];
        let mut hasher = SipHasher24::new_with_keys(first, second);
        ends.hash(&mut hasher);
        hasher.finish() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::{Duration, Endpoint};
    use xylem_wire::Port;

    /// RFC 9293 MUST-8, SHLD-1, MUST-9; RFC 7323 7.1.
    #[test]
    fn one_pair_moves_with_the_clock_and_tells_nothing_of_others() {
        let beginnings = Beginnings::new(&mut Random::seeded(1));
        let ends =
            |port| Ends { local: Endpoint { port: Port(port), ..Endpoint::default() }, remote: Endpoint::default() };
        let later = Instant::ZERO + Duration::from_secs(1);
        let first = beginnings.sequence(&ends(1), Instant::ZERO);
        assert_eq!(beginnings.sequence(&ends(1), later).since(first), 250_000, "4 us a tick");
        assert!(beginnings.sequence(&ends(2), Instant::ZERO).since(first).unsigned_abs() > 1000);
        let other = Beginnings::new(&mut Random::seeded(2));
        assert_ne!(other.sequence(&ends(1), Instant::ZERO), first, "another secret, other numbers");
        assert_ne!(beginnings.clock_offset(&ends(1)), first.0, "the clock's offset is another number");
    }
}
