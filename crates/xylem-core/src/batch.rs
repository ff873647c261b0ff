//! A batch: the messages that arrived together for one path. One dynamic call a layer a batch instead of one a message;
//! the order within it is the order of arrival, and messages that say no more than one would are merged on the way.

use crate::message::Message;
use crate::outbox::{Mark, Outbox};
use crate::session::{Session, Verdict};
use std::collections::VecDeque;

/// Messages on their way up through one path, in order.
#[derive(Debug, Default)]
pub struct Batch(VecDeque<Message>);

impl Batch {
    /// The most messages one batch holds.
    pub const LIMIT: usize = 64;

    /// Adds a message behind the others.
    pub fn add(&mut self, message: Message) {
        self.0.push_back(message);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all messages out, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.0.drain(..)
    }

    /// Pops every message through one session that stands alone.
    pub(crate) fn through<S: Session + ?Sized>(&mut self, session: &mut S, out: &mut Outbox) {
        self.each(out, |message, out| {
            out.begin(out.room_bytes());
            session.pop(message, out)
        });
    }

    /// Shows every message to `pop`; what passes and what is raised stays, in order.
    pub(crate) fn each(&mut self, out: &mut Outbox, mut pop: impl FnMut(&mut Message, &mut Outbox) -> Verdict) {
        for _ in 0..self.0.len() {
            let mut message = self.0.pop_front().expect("as many as were counted are there");
            let mark = out.mark();
            match pop(&mut message, out) {
                Verdict::Pass => self.0.push_back(message),
                Verdict::Keep => {}
                Verdict::Drop(reason) => out.dropped(reason),
                Verdict::Refuse => panic!("a pop was refused: only a push may be"),
            }
            self.take_raised(mark, out);
        }
    }

    /// Takes what has been raised since `mark` in behind the others.
    pub(crate) fn take_raised(&mut self, mark: Mark, out: &mut Outbox) {
        self.0.extend(out.drain_up_since(mark));
    }

    /// Lets `session` merge neighbours.
    pub(crate) fn merge<S: Session + ?Sized>(&mut self, session: &mut S) {
        // What has been looked at lies behind what has not, so the first one meets nobody.
        for index in 0..self.0.len() {
            let mut next = self.0.pop_front().expect("as many as were counted are there");
            let merged = index > 0 && self.0.back_mut().is_some_and(|held| session.merge(held, &mut next));
            if !merged {
                self.0.push_back(next);
            }
        }
    }
}
