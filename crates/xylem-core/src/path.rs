//! A path: the sessions of one conversation, top to bottom, as one movable value. It owns its sessions, none is shared
//! between conversations, so it needs no locks and no counts and goes from thread to thread as it is.

use crate::batch::Batch;
use crate::control::{Control, Handled};
use crate::message::Message;
use crate::opening::{Binding, Opened};
use crate::outbox::Outbox;
use crate::participants::Participants;
use crate::random::Random;
use crate::record::Record;
use crate::session::{Piece, Session, Verdict};
use crate::stack::Chain;
use crate::time::Instant;
use arrayvec::ArrayVec;
use smallvec::SmallVec;

/// Names a path of an instance. A stale name finds nothing: the generation differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId {
    /// Its place in the instance's table.
    pub index: u32,
    /// How often the place has been used before.
    pub generation: u32,
}

/// Names an enable of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnableId {
    /// Its place in the instance's table.
    pub index: u32,
    /// How often the place has been used before.
    pub generation: u32,
}

/// The most nodes of a graph one above the other.
pub const HEIGHT_MAX: usize = 12;

/// Where a path ends below, and the way up from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// What it ends at.
    pub end: End,
    /// The nodes of the graph from the end upward, as far as they belong to this leaf alone: a message that has climbed
    /// them came in by this leaf.
    pub way: ArrayVec<u8, HEIGHT_MAX>,
}

/// What a path ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A device of the instance.
    Device(u16),
    /// Another path.
    Trunk(PathId),
}

/// See the module's text.
pub struct Path {
    session: Box<dyn Session>,
    /// Where it ends below, leaf by leaf.
    pub leaves: SmallVec<[Leaf; 1]>,
    /// Who converses.
    pub participants: Participants,
    random: Random,
    bindings: SmallVec<[Binding; 1]>,
}

impl Path {
    /// A path of what an open has made, drawing randomness from `random`.
    ///
    /// # Panics
    /// If no protocol left a session.
    pub fn new(mut opened: Opened, random: Random) -> Path {
        opened.sessions.reverse();
        Path {
            session: Box::new(Chain::new(opened.sessions)),
            leaves: opened.leaves,
            participants: opened.participants,
            random,
            bindings: opened.bindings,
        }
    }

    /// A path of one session, perhaps a fused one.
    pub fn of(session: impl Session + 'static, end: End, random: Random) -> Path {
        Path {
            session: Box::new(session),
            leaves: SmallVec::from_buf([Leaf { end, way: ArrayVec::new() }]),
            participants: Participants::default(),
            random,
            bindings: SmallVec::new(),
        }
    }

    /// Pops a message, leaving an empty one behind; what passes is raised in the outbox before anything else that is
    /// raised.
    pub fn pop(&mut self, message: &mut Message, out: &mut Outbox) {
        self.verb(out, |session, out| {
            let place = out.reserve_up();
            match session.pop(message, out) {
                Verdict::Pass => out.fill_up(place, std::mem::take(message)),
                Verdict::Keep => {}
                Verdict::Drop(reason) => out.dropped(reason),
                Verdict::Refuse => panic!("a pop was refused: only a push may be"),
            }
        });
    }

    /// Pops a batch; what goes on upward is raised in the outbox.
    pub fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        self.verb(out, |session, out| {
            session.pop_batch(batch, out);
            for message in batch.drain() {
                let place = out.reserve_up();
                out.fill_up(place, message);
            }
        });
    }

    /// Pushes a message, leaving an empty one behind; `false` if it was refused and is still the caller's.
    #[must_use]
    pub fn push(&mut self, message: &mut Message, out: &mut Outbox) -> bool {
        self.verb(out, |session, out| {
            let place = out.reserve_down();
            let verdict = session.push(message, out);
            match verdict {
                Verdict::Pass => out.fill_down(place, std::mem::take(message)),
                Verdict::Keep => {}
                Verdict::Drop(reason) => out.dropped(reason),
                Verdict::Refuse => return false,
            }
            true
        })
    }

    /// Bytes that may be pushed now.
    pub fn room(&self) -> usize {
        self.session.room()
    }

    /// The application has consumed `bytes` of what was raised.
    pub fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        self.verb(out, |session, out| session.credit(bytes, out));
    }

    /// When `timeout` wants to be called next.
    pub fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    /// Time has passed.
    pub fn timeout(&mut self, out: &mut Outbox) {
        self.verb(out, |session, out| session.timeout(out));
    }

    /// A control from outside.
    pub fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.verb(out, |session, out| session.control(control, out))
    }

    /// The application has closed.
    pub fn close(&mut self, out: &mut Outbox) {
        self.verb(out, |session, out| session.close(out));
    }

    /// Cuts the headers of one piece; returns how many bytes they are.
    pub fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        self.session.cut(headers, piece)
    }

    /// All that another instance needs to go on (see `Opening::record`).
    pub fn export(&self) -> Record {
        let mut record = Record::default();
        self.session.export(&mut record);
        record
    }

    /// Whether it may come to rest: it has no deadline, its sessions are all in their records, and no other path has a
    /// part in it.
    pub fn may_rest(&self) -> bool {
        let alone = self.leaves.iter().all(|leaf| matches!(leaf.end, End::Device(_)));
        alone && self.session.deadline().is_none() && self.session.may_rest()
    }

    /// Comes to rest: of its sessions only the record stays, and its keys stay held.
    pub fn rest(mut self) -> Resting {
        let mut record = Record::default();
        self.participants.write(&mut record);
        record.put(&self.random.next());
        self.session.export(&mut record);
        Resting { record: record.into_bytes().into_boxed_slice(), _bindings: self.bindings }
    }

    /// Frees the keys before the path itself goes, so that its successor can take them (a path that moves).
    pub fn release(&mut self) {
        self.bindings.clear();
    }

    /// Runs a verb with the path's own random stream.
    fn verb<R>(&mut self, out: &mut Outbox, verb: impl FnOnce(&mut dyn Session, &mut Outbox) -> R) -> R {
        std::mem::swap(&mut out.random, &mut self.random);
        out.begin(usize::MAX);
        let result = verb(&mut *self.session, out);
        std::mem::swap(&mut out.random, &mut self.random);
        result
    }
}

/// A path at rest: a conversation in which nothing happens, kept in some hundred bytes. Its keys are held, so that what
/// arrives finds it; whoever finds it opens it again from its record, as on arrival in another instance, and lets this go
/// when the path that goes on holds the keys.
pub struct Resting {
    record: Box<[u8]>,
    _bindings: SmallVec<[Binding; 1]>,
}

impl Resting {
    /// Who converses, the random stream to go on with, and the record to open from.
    pub fn read(&self) -> (Participants, Random, Record) {
        let mut record = Record::from_bytes(self.record.to_vec());
        let whole = "a path at rest wrote this record itself";
        let participants = Participants::read(&mut record).expect(whole);
        let seed: u64 = record.take("the seed of a random stream").expect(whole);
        (participants, Random::seeded(seed), record)
    }
}
