//! Streams that have ended. The last acknowledgment may be lost, and then the peer asks again: an entry of 20 bytes is
//! enough to answer, and goes after a while.

use super::{Key, StreamHeader};
use std::collections::{BTreeMap, VecDeque};
use xylem_core::{Duration, Instant};
use xylem_wire::{Port, SequenceNumber};

/// How long an ended stream is answered for.
pub const LINGER_TIME: Duration = Duration::from_secs(30);
/// How many are at most; the oldest goes first.
pub const LINGERING_MAX: usize = 4096;

const MARK: &[u8; 4] = b"strm";

/// What a session leaves with its protocol.
pub(super) fn entry(key: Key, ours: SequenceNumber, its: SequenceNumber) -> Vec<u8> {
    let mut entry = Vec::from(MARK);
    entry.extend(key.peer.to_be_bytes());
    entry.extend(key.remote.0.to_be_bytes());
    entry.extend(key.local.0.to_be_bytes());
    entry.extend(ours.0.to_be_bytes());
    entry.extend(its.0.to_be_bytes());
    entry
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    ours: SequenceNumber,
    its: SequenceNumber,
    until: Instant,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    ended: BTreeMap<Key, Ended>,
    order: VecDeque<(Instant, Key)>,
}

/// What is to be done with a segment of a stream that has ended.
#[derive(Debug, PartialEq)]
pub(super) enum Late {
    /// It never was, or it is a new beginning.
    Unknown,
    /// The peer misses our last word: this is it.
    Answer(StreamHeader),
    /// A late copy.
    Ignore,
}

impl Lingering {
    /// Takes in what a session left; `false` if it is not of a stream.
    pub fn put(&mut self, entry: &[u8], now: Instant) -> bool {
        let Some(rest) = entry.strip_prefix(MARK) else { return false };
        let word = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let (Some(peer), Some(ports), Some(ours), Some(its)) = (word(0), word(4), word(8), word(12)) else {
            return false;
        };
        let key = Key { peer, remote: Port((ports >> 16) as u16), local: Port(ports as u16) };
        let until = now + LINGER_TIME;
        if self.order.len() >= LINGERING_MAX {
            self.forget_oldest();
        }
        self.ended.insert(key, Ended { ours: SequenceNumber(ours), its: SequenceNumber(its), until });
        self.order.push_back((until, key));
        true
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.ended.contains_key(key)
    }

    /// Judges a segment with `length` bytes of content.
    pub fn judge(&mut self, key: &Key, header: &StreamHeader, length: usize) -> Late {
        let Some(ended) = self.ended.get(key) else { return Late::Unknown };
        if header.opens && !header.acknowledges {
            // A beginning behind our end is a new stream; one before it is a late copy of the old one's.
            if header.sequence.is_before(ended.its) {
                return Late::Ignore;
            }
            self.ended.remove(key);
            return Late::Unknown;
        }
        if header.resets || !(header.closes || header.probes || header.opens || length > 0) {
            return Late::Ignore;
        }
        Late::Answer(StreamHeader {
            source: key.local,
            destination: key.remote,
            sequence: ended.ours,
            acknowledgement: ended.its,
            acknowledges: true,
            ..StreamHeader::default()
        })
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.order.front().map(|(until, _)| *until)
    }

    pub fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((until, key)) = self.order.pop_front() else { return };
        if self.ended.get(&key).is_some_and(|ended| ended.until == until) {
            self.ended.remove(&key);
        }
    }
}
