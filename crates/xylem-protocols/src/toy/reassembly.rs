//! Putting fragments together again: a bounded number of messages that are not yet whole, each with a deadline. Whoever
//! is full gives up the oldest, so that a peer that never finishes cannot keep others out.

use super::fragment::{FRAGMENTS_MAX, FragmentHeader, INCOMPLETE, INCONSISTENT, PUSHED_OUT};
use std::collections::VecDeque;
use xylem_core::{DropReason, Duration, Instant, Message};

/// Messages not yet whole that one table keeps.
pub const PARTIALS_MAX: usize = 8;
/// How long a message may take to become whole.
pub const PARTIAL_TIME: Duration = Duration::from_millis(500);

/// See the module's text. `K` tells the senders apart.
#[derive(Debug)]
pub(super) struct Reassembly<K> {
    partials: VecDeque<Partial<K>>,
}

#[derive(Debug)]
struct Partial<K> {
    key: (K, u32),
    upper: u16,
    pieces: Vec<Option<Message>>,
    missing: usize,
    deadline: Instant,
}

impl<K> Default for Reassembly<K> {
    fn default() -> Reassembly<K> {
        Reassembly { partials: VecDeque::new() }
    }
}

/// What became of one fragment.
#[derive(Debug)]
pub(super) enum Added {
    /// The message is whole: here it is.
    Whole(Message),
    /// More is to come.
    Kept,
    /// More is to come, and an older message was given up for it.
    KeptInPlaceOfAnother(&'static DropReason),
    /// It does not fit to what is there already.
    Refused(&'static DropReason),
}

impl<K: Copy + PartialEq> Reassembly<K> {
    /// Takes one fragment of `sender`, whose header has been taken off.
    pub fn add(&mut self, sender: K, header: &FragmentHeader, piece: Message, now: Instant) -> Added {
        let count = usize::from(header.count);
        let index = usize::from(header.index);
        if count == 0 || count > FRAGMENTS_MAX || index >= count {
            return Added::Refused(&INCONSISTENT);
        }
        if count == 1 {
            return Added::Whole(piece);
        }
        let key = (sender, header.message);
        let mut pushed_out = None;
        let at = match self.partials.iter().position(|partial| partial.key == key) {
            Some(at) => at,
            None => {
                if self.partials.len() >= PARTIALS_MAX {
                    self.partials.pop_front();
                    pushed_out = Some(&PUSHED_OUT);
                }
                let pieces = (0..count).map(|_| None).collect();
                let deadline = now + PARTIAL_TIME;
                self.partials.push_back(Partial { key, upper: header.upper, pieces, missing: count, deadline });
                self.partials.len() - 1
            }
        };
        let partial = &mut self.partials[at];
        if partial.pieces.len() != count || partial.upper != header.upper {
            return Added::Refused(&INCONSISTENT);
        }
        partial.missing -= usize::from(partial.pieces[index].is_none());
        partial.pieces[index] = Some(piece);
        if partial.missing > 0 {
            return pushed_out.map_or(Added::Kept, Added::KeptInPlaceOfAnother);
        }
        let partial = self.partials.remove(at).expect("it was found there");
        let mut whole = Message::default();
        partial.pieces.into_iter().flatten().for_each(|piece| whole.append(piece));
        Added::Whole(whole)
    }

    /// Gives up what has waited too long; says why, once for each message.
    pub fn expire(&mut self, now: Instant) -> impl Iterator<Item = &'static DropReason> {
        let before = self.partials.len();
        self.partials.retain(|partial| partial.deadline > now);
        (self.partials.len()..before).map(|_| &INCOMPLETE)
    }

    /// When the first is given up. They all wait equally long, so it is the oldest.
    pub fn deadline(&self) -> Option<Instant> {
        self.partials.front().map(|partial| partial.deadline)
    }
}
