//! What a server remembers of channels whose paths have gone: the number of the last call, so that a late repetition of
//! a request is not carried out again.

use std::collections::{HashMap, VecDeque};
use xylem_core::{Duration, Instant};

/// How long a number is remembered.
pub const REMEMBERED_TIME: Duration = Duration::from_secs(60);
/// How many are remembered at most; the oldest goes first.
pub const REMEMBERED_MAX: usize = 4096;

/// A channel of a client.
pub(super) type Channel = (u32, u32);

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    last: HashMap<Channel, (u32, Instant)>,
    order: VecDeque<(Instant, Channel)>,
}

impl Remembered {
    /// Remembers `sequence` as the last call of `channel`.
    pub fn put(&mut self, channel: Channel, sequence: u32, now: Instant) {
        let until = now + REMEMBERED_TIME;
        if self.order.len() >= REMEMBERED_MAX {
            self.forget_oldest();
        }
        self.last.insert(channel, (sequence, until));
        self.order.push_back((until, channel));
    }

    /// The last call of `channel`.
    pub fn last(&self, channel: &Channel) -> Option<u32> {
        self.last.get(channel).map(|(sequence, _)| *sequence)
    }

    /// When the oldest is forgotten.
    pub fn deadline(&self) -> Option<Instant> {
        self.order.front().map(|(until, _)| *until)
    }

    /// Forgets what is old enough.
    pub fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((until, channel)) = self.order.pop_front() else { return };
        // A channel that was put again has a newer entry further back, which is the one that counts.
        if self.last.get(&channel).is_some_and(|(_, newest)| *newest == until) {
            self.last.remove(&channel);
        }
    }
}
