//! A session is one end of one connection at one layer. It never calls its neighbour: it looks at a message, returns a
//! verdict and fills a bounded outbox; the linker (see [`stack`](crate::stack)) carries messages on. So one trait is
//! object-safe and inlinable, nothing is re-entered, and a downward message never turns upward by accident.
//! (Hutchinson and Peterson 1991, section 2; docs/decisions/0001 says why sessions do not call.)

use crate::batch::Batch;
use crate::control::{Control, Handled};
use crate::drop::DropReason;
use crate::message::Message;
use crate::outbox::Outbox;
use crate::record::Record;
use crate::stage::Sealed;
use crate::time::Instant;

/// What becomes of the message a session was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It goes on: to the session above after a pop, to the one below after a push.
    Pass,
    /// The session keeps it, in whole or in part. What is left in the caller's hands is nothing.
    Keep,
    /// It ends here, for this reason. The linker counts it.
    Drop(&'static DropReason),
    /// Push only: there is no room. The caller still has the message, unchanged; `Control::Writable` follows.
    Refuse,
}

/// One end of one connection at one layer. `pop` and `push` are all that a simple protocol writes; every other verb has
/// a default that costs it nothing. Sessions see no clock, thread, socket, lock or random source but the outbox's.
pub trait Session: Send {
    /// A message from below: strip and judge the header. For a session with several lowers,
    /// `message.attributes.branch` says which one it came from.
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict;

    /// A message from above: add the header. A session with several lowers chooses one by setting
    /// `message.attributes.branch`. May refuse only while [`room`](Session::room) is less than the message.
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict;

    /// Bytes that may be pushed now without being refused. It grows only with `Control::Writable`.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Whoever is above has consumed `bytes` of what was popped or raised to it. Credit, not delivery, opens a window.
    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        out.credit(bytes);
    }

    /// When `timeout` wants to be called next; `None` for never. May change only in the course of another verb.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Time has passed. Called at the deadline, later, or for no reason: a late or spurious call does no harm.
    fn timeout(&mut self, _out: &mut Outbox) {}

    /// A fact, an event, advice, a question or an answer; what this session does not handle travels on.
    fn control(&mut self, _control: &mut Control, _out: &mut Outbox) -> Handled {
        Handled::No
    }

    /// Cuts one piece's copy of this session's header, first in `headers`, out of a message that stood for several
    /// segments; returns the header's length. The layers below have done theirs.
    fn cut(&self, _headers: &mut [u8], _piece: &Piece) -> usize {
        0
    }

    /// Takes `next` into `held` if the two popped in a row say no more than one message would. Both still have this
    /// session's header in front. `false` leaves them as they were.
    fn merge(&mut self, _held: &mut Message, _next: &mut Message) -> bool {
        false
    }

    /// The pending stages over this message have run (integrated data pass): put lengths, tags and sums into the header.
    fn sealed(&mut self, _message: &mut Message, _results: &Sealed) {}

    /// Writes all that another instance needs to go on from here (see `Protocol::import`).
    fn export(&self, _record: &mut Record) {}

    /// Whether its record says everything about it, and it waits for nothing: then its path may come to rest, and be a
    /// record until something happens (see [`Path::rest`](crate::Path::rest)).
    fn may_rest(&self) -> bool {
        false
    }

    /// The application has closed. The session ends in its own time, with `out.finish()`.
    fn close(&mut self, out: &mut Outbox) {
        out.finish();
    }

    /// Pops all messages of a batch; what goes on upward is left in it, in order.
    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        batch.through(self, out);
    }
}

/// Which piece of a cut message a header is wanted for. See [`Session::cut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The piece's number, from 0.
    pub index: usize,
    /// Where its payload begins within the payload of the whole, in bytes.
    pub offset: usize,
    /// Its payload's length in bytes.
    pub length: usize,
    /// Whether it is the last one.
    pub last: bool,
}

impl<S: Session + ?Sized> Session for Box<S> {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        (**self).pop(message, out)
    }
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        (**self).push(message, out)
    }
    fn room(&self) -> usize {
        (**self).room()
    }
    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        (**self).credit(bytes, out);
    }
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
    fn timeout(&mut self, out: &mut Outbox) {
        (**self).timeout(out);
    }
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        (**self).control(control, out)
    }
    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        (**self).cut(headers, piece)
    }
    fn merge(&mut self, held: &mut Message, next: &mut Message) -> bool {
        (**self).merge(held, next)
    }
    fn sealed(&mut self, message: &mut Message, results: &Sealed) {
        (**self).sealed(message, results);
    }
    fn export(&self, record: &mut Record) {
        (**self).export(record);
    }
    fn may_rest(&self) -> bool {
        (**self).may_rest()
    }
    fn close(&mut self, out: &mut Outbox) {
        (**self).close(out);
    }
    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        (**self).pop_batch(batch, out);
    }
}
