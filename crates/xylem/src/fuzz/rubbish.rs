//! What a station that means harm sends without end: random bytes, frames that get far, and frames of others again, as they
//! were or with a byte changed. The Internet checksum sees any one byte that is changed (RFC 1071), so none of it may make a
//! difference to anybody else's conversation.

use super::{Aim, frame};
use std::collections::VecDeque;
use xylem_core::Random;
use xylem_wire::{EtherType, EthernetHeader, Header};

/// So many frames of others are remembered.
const OVERHEARD_MAX: usize = 64;
/// The longest random frame in bytes.
const RANDOM_BYTES_MAX: u64 = 1514;

/// How many frames of each sort there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Random bytes, to the host.
    pub random: u64,
    /// Headers that are right where it matters, with something random in or behind them.
    pub made: u64,
    /// Frames of others, as they were.
    pub replayed: u64,
    /// Frames of others with a byte changed.
    pub changed: u64,
}

impl Counts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.random + self.made + self.replayed + self.changed
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct Rubbish {
    random: Random,
    aim: Aim,
    overheard: VecDeque<Vec<u8>>,
    counts: Counts,
}

impl Rubbish {
    /// Rubbish from a seed.
    pub fn new(seed: u64, aim: Aim) -> Rubbish {
        Rubbish { random: Random::seeded(seed), aim, overheard: VecDeque::new(), counts: Counts::default() }
    }

    /// Somebody else has sent this frame. ARP is not remembered: it has no checksum, and whoever speaks for another host is
    /// believed (RFC 826), which is the link's weakness and not the host's.
    pub fn overhear(&mut self, frame: &[u8]) {
        if EthernetHeader::parse(frame).is_ok_and(|header| header.kind == EtherType::ARP) || frame.is_empty() {
            return;
        }
        if self.overheard.len() == OVERHEARD_MAX {
            self.overheard.pop_front();
        }
        self.overheard.push_back(frame.to_vec());
    }

    /// What there was so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The next frame.
    pub fn make(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let old = self.overheard.get(random.below(OVERHEARD_MAX as u64) as usize);
        match (random.below(8), old) {
            (0 | 1, _) => {
                self.counts.random += 1;
                let mut bytes = vec![0; random.below(RANDOM_BYTES_MAX + 1) as usize];
                random.fill(&mut bytes);
                let to = self.aim.to.1.0;
                bytes.iter_mut().zip(to).for_each(|(byte, to)| *byte = to);
                bytes
            }
            (2, Some(old)) => {
                self.counts.replayed += 1;
                old.clone()
            }
            (3, Some(old)) => {
                self.counts.changed += 1;
                let mut bytes = old.clone();
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 + random.below(255) as u8;
                bytes
            }
            _ => {
                self.counts.made += 1;
                frame(random, &self.aim)
            }
        }
    }
}
