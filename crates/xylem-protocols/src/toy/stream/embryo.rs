//! Embryos: handshakes of which the last message has not come. They belong to their enable, which has a bounded number of
//! them, and are small: no path is made for who may never come back.

use super::{Key, StreamHeader, wait};
use std::collections::BTreeMap;
use xylem_core::{EnableId, Instant, Participants};
use xylem_wire::SequenceNumber;

/// How often the answer to an opening is sent.
pub const EMBRYO_TRIES_MAX: u32 = 6;
/// The most embryos of all enables together.
pub const EMBRYOS_MAX: usize = 4096;

/// One half-open stream.
#[derive(Clone, Debug)]
pub(super) struct Embryo {
    pub enable: EnableId,
    /// From whom to whom, as the layer below knows them.
    pub participants: Participants,
    /// Our first position.
    pub ours: SequenceNumber,
    /// The peer's.
    pub its: SequenceNumber,
    /// What the peer takes at first.
    pub window: u16,
    tries: u32,
    again: Instant,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Embryos(BTreeMap<Key, Embryo>);

impl Embryos {
    /// The embryo of `key`, made if there is none or the peer has begun anew; `None` if its enable has too many.
    pub fn entry(&mut self, key: Key, opening: &StreamHeader, fresh: Embryo, limit: usize) -> Option<&Embryo> {
        let known = self.0.get(&key).is_some_and(|embryo| embryo.its == opening.sequence);
        if !known {
            let of_enable = self.0.values().filter(|embryo| embryo.enable == fresh.enable).count();
            if !self.0.contains_key(&key) && (of_enable >= limit || self.0.len() >= EMBRYOS_MAX) {
                return None;
            }
            self.0.insert(key, fresh);
        }
        self.0.get(&key)
    }

    pub fn find(&self, key: &Key) -> Option<&Embryo> {
        self.0.get(key)
    }

    pub fn take(&mut self, key: &Key) -> Option<Embryo> {
        self.0.remove(key)
    }

    /// When the first wants to be answered again.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.values().map(|embryo| embryo.again).min()
    }

    /// The embryos whose answer is to be sent again; those that were answered often enough go.
    pub fn due(&mut self, now: Instant) -> Vec<(Key, Embryo)> {
        self.0.retain(|_, embryo| embryo.again > now || embryo.tries < EMBRYO_TRIES_MAX);
        let due = self.0.iter_mut().filter(|(_, embryo)| embryo.again <= now);
        let due = due.map(|(key, embryo)| {
            embryo.again = now + wait(embryo.tries);
            embryo.tries += 1;
            (*key, embryo.clone())
        });
        due.collect()
    }
}

impl Embryo {
    /// What begins with this opening.
    pub fn new(
        enable: EnableId,
        participants: Participants,
        ours: SequenceNumber,
        opening: &StreamHeader,
        now: Instant,
    ) -> Embryo {
        let (its, window) = (opening.sequence, opening.window);
        Embryo { enable, participants, ours, its, window, tries: 1, again: now + wait(0) }
    }

    /// The answer to the opening.
    pub fn answer(&self, key: Key) -> StreamHeader {
        StreamHeader {
            source: key.local,
            destination: key.remote,
            sequence: self.ours,
            acknowledgement: self.its + 1,
            window: super::RECEIVE_MAX as u16,
            opens: true,
            acknowledges: true,
            ..StreamHeader::default()
        }
    }
}
