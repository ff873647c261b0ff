//! Several lowers under one session. The session above chooses a branch for what it pushes and is told the branch of what
//! it pops; below, every branch ends in one or more leaves, numbered from left to right over the whole path.

use crate::control::{Control, Handled};
use crate::message::Message;
use crate::outbox::Outbox;
use crate::record::Record;
use crate::session::{Piece, Session, Verdict};
use crate::time::{Instant, earlier};

/// Lowers side by side: itself a session, so it stands below a forking session like any other.
pub struct Branches(Vec<Branch>);

struct Branch {
    session: Box<dyn Session>,
    leaves: u8,
    /// Bytes it has handed up for which no credit came back yet.
    owed: usize,
}

impl Branches {
    /// Branches from left to right, each with the number of its leaves (1 for a plain chain).
    ///
    /// # Panics
    /// If there are none, or more than 255 leaves.
    pub fn new(branches: Vec<(Box<dyn Session>, u8)>) -> Branches {
        assert!(!branches.is_empty(), "a fork needs a branch");
        let leaves: usize = branches.iter().map(|(_, leaves)| usize::from(*leaves)).sum();
        assert!(leaves <= 255, "a path has at most 255 leaves");
        Branches(branches.into_iter().map(|(session, leaves)| Branch { session, leaves, owed: 0 }).collect())
    }

    /// The first leaf of branch `index`.
    fn first_leaf(&self, index: usize) -> u8 {
        self.0[..index].iter().map(|branch| branch.leaves).sum()
    }

    /// Which branch a leaf belongs to, and its number within.
    fn branch_of(&self, mut leaf: u8) -> Option<(usize, u8)> {
        for (index, branch) in self.0.iter().enumerate() {
            if leaf < branch.leaves {
                return Some((index, leaf));
            }
            leaf -= branch.leaves;
        }
        None
    }

    /// Runs a verb of one branch and renames the ends of what it sent: leaves below, its own number above.
    fn verb<R>(&mut self, index: usize, out: &mut Outbox, verb: impl FnOnce(&mut dyn Session, &mut Outbox) -> R) -> R {
        let first = self.first_leaf(index);
        let mark = out.mark();
        let branch = &mut self.0[index];
        let result = verb(&mut *branch.session, out);
        out.rename_since(mark, first, index as u8, &mut branch.owed);
        result
    }
}

impl Session for Branches {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let (index, leaf) =
            self.branch_of(message.attributes.branch).expect("the linker names a leaf that the path has");
        message.attributes.branch = leaf;
        let verdict = self.verb(index, out, |session, out| session.pop(message, out));
        if verdict == Verdict::Pass {
            message.attributes.branch = index as u8;
            self.0[index].owed += message.len();
        }
        verdict
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let index = usize::from(message.attributes.branch);
        assert!(index < self.0.len(), "branch {index} of a session with {} lowers", self.0.len());
        message.attributes.branch = 0;
        let verdict = self.verb(index, out, |session, out| session.push(message, out));
        match verdict {
            Verdict::Pass => message.attributes.branch += self.first_leaf(index),
            _ => message.attributes.branch = index as u8,
        }
        verdict
    }

    fn room(&self) -> usize {
        self.0.iter().map(|branch| branch.session.room()).min().unwrap_or(usize::MAX)
    }

    /// Credit goes to the branches that are owed it, from left to right.
    fn credit(&mut self, mut bytes: usize, out: &mut Outbox) {
        for index in 0..self.0.len() {
            let part = bytes.min(self.0[index].owed);
            self.0[index].owed -= part;
            bytes -= part;
            if part > 0 {
                self.verb(index, out, |session, out| session.credit(part, out));
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.iter().fold(None, |soonest, branch| earlier(soonest, branch.session.deadline()))
    }

    fn timeout(&mut self, out: &mut Outbox) {
        for index in 0..self.0.len() {
            self.verb(index, out, |session, out| session.timeout(out));
        }
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        for index in 0..self.0.len() {
            if self.verb(index, out, |session, out| session.control(control, out)) == Handled::Yes {
                return Handled::Yes;
            }
        }
        Handled::No
    }

    fn cut(&self, _headers: &mut [u8], _piece: &Piece) -> usize {
        panic!("a message that is to be cut was pushed through a fork, which cuts before it branches")
    }

    fn export(&self, record: &mut Record) {
        self.0.iter().for_each(|branch| branch.session.export(record));
    }

    /// Closes every branch; finished when all are.
    fn close(&mut self, out: &mut Outbox) {
        let mut finished = true;
        for index in 0..self.0.len() {
            let levels = out.take_levels();
            self.verb(index, out, |session, out| session.close(out));
            finished &= out.take_levels().finished;
            out.set_levels(levels);
        }
        if finished {
            out.finish();
        }
    }
}

/// A branch without a session of its own, straight to its leaf.
pub(crate) struct Straight;

impl Session for Straight {
    fn pop(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        Verdict::Pass
    }
    fn push(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        Verdict::Pass
    }
}
