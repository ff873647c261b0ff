//! Two sessions stacked are a session. This is the linker: it carries messages between an upper and a lower session, so
//! that neither calls the other, and it is the same code whether the two are boxed at run time ([`Chain`]) or typed at
//! compile time ([`Stack`]). What an upper session sends passes the lower one in order, each message with all that it
//! causes before the next: therefore stacking is associative, down to the order of frames.

use crate::batch::Batch;
use crate::control::{Control, Handled};
use crate::message::Message;
use crate::outbox::{Levels, Outbox};
use crate::record::Record;
use crate::session::{Piece, Session, Verdict};
use crate::stage::Sealed;
use crate::time::{Instant, earlier};
use std::ops::Range;

/// An upper session on a lower one, joined when the program is compiled.
#[derive(Debug)]
pub struct Stack<U, L> {
    /// The one nearer the application.
    pub upper: U,
    /// The one nearer the wire.
    pub lower: L,
}

/// Sessions on each other, top first, joined when a graph is composed. One dynamic call a layer.
pub struct Chain(Box<[Box<dyn Session>]>);

impl Chain {
    /// A chain of `sessions`, top first.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(sessions: Vec<Box<dyn Session>>) -> Chain {
        assert!(!sessions.is_empty(), "a chain needs a session");
        Chain(sessions.into_boxed_slice())
    }
}

/// The two ends of one seam, seen from the linker.
struct Seam<'a, U: ?Sized, L: ?Sized> {
    upper: &'a mut U,
    lower: &'a mut L,
}

/// What one verb of the lower session left for the upper one. It is counted off when the verb returns, since what the
/// upper session leaves comes to lie behind it in the same lanes and is for others.
struct Risen {
    up: Range<usize>,
    told: Range<usize>,
    levels: Levels,
}

/// What one verb of the upper session left for the lower one; see [`Risen`].
struct Sunk {
    down: Range<usize>,
    advice: Range<usize>,
    credit: usize,
    finished: bool,
}

impl<U: Session + ?Sized, L: Session + ?Sized> Seam<'_, U, L> {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let (verdict, risen) = self.lower_verb(out, |lower, out| lower.pop(message, out));
        let verdict = match verdict {
            Verdict::Pass => self.upper_verb(out, |upper, out| upper.pop(message, out)),
            other => other,
        };
        if let Some(risen) = risen {
            self.rise(risen, out);
        }
        verdict
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        // Room is asked before the upper session has changed anything, so that a refusal undoes nothing.
        if self.lower.room() < message.len() {
            return Verdict::Refuse;
        }
        // What passes goes before what was sent besides, as it does where a path has one session only.
        let (verdict, sunk) = self.upper_alone(out, |upper, out| upper.push(message, out));
        let verdict = match verdict {
            Verdict::Pass => self.push_lower(message, out),
            other => other,
        };
        if let Some(sunk) = sunk {
            self.sink(sunk, out);
        }
        verdict
    }

    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        self.upper_verb(out, |upper, out| upper.credit(bytes, out));
    }

    fn timeout(&mut self, out: &mut Outbox) {
        self.lower_verb_and_rise(out, |lower, out| lower.timeout(out));
        self.upper_verb(out, |upper, out| upper.timeout(out));
    }

    /// A control from outside. Questions and settings come from above, everything else from below.
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        if control.travels_down() {
            match self.upper_verb(out, |upper, out| upper.control(control, out)) {
                Handled::Yes => Handled::Yes,
                Handled::No => {
                    let handled = self.control_lower(control, out);
                    self.pass_answer(control, out);
                    handled
                }
            }
        } else {
            match self.control_lower(control, out) {
                Handled::Yes => Handled::Yes,
                Handled::No => self.upper_verb(out, |upper, out| upper.control(control, out)),
            }
        }
    }

    fn close(&mut self, out: &mut Outbox) {
        self.upper_verb(out, |upper, out| upper.close(out));
    }

    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        let mark = out.mark();
        let ((), risen) = self.lower_verb(out, |lower, out| lower.pop_batch(batch, out));
        batch.merge(self.upper);
        batch.each(out, |message, out| self.upper_verb(out, |upper, out| upper.pop(message, out)));
        if let Some(risen) = risen {
            self.rise(risen, out);
        }
        batch.take_raised(mark, out);
    }

    /// Runs a verb of the upper session and carries what it did to the lower one.
    #[inline]
    fn upper_verb<R>(&mut self, out: &mut Outbox, verb: impl FnOnce(&mut U, &mut Outbox) -> R) -> R {
        let (result, sunk) = self.upper_alone(out, verb);
        if let Some(sunk) = sunk {
            self.sink(sunk, out);
        }
        result
    }

    /// Runs a verb of the upper session and counts off what it left, if anything.
    #[inline]
    fn upper_alone<R>(&mut self, out: &mut Outbox, verb: impl FnOnce(&mut U, &mut Outbox) -> R) -> (R, Option<Sunk>) {
        let (mark, room, effects) = (out.mark(), out.room_bytes(), out.effects());
        let (credit, levels) = (out.take_credit(), out.take_levels());
        out.begin(room.min(self.lower.room()));
        let result = verb(self.upper, out);
        out.begin(room);
        if out.effects() == effects {
            out.restore_credit(credit);
            out.set_levels(levels);
            return (result, None);
        }
        let (its_credit, its_levels) = (out.take_credit(), out.take_levels());
        out.restore_credit(credit);
        out.set_levels(Levels { writable: levels.writable | its_levels.writable, ..levels });
        let (down, advice) = (out.down_since(mark), out.advice_since(mark));
        (result, Some(Sunk { down, advice, credit: its_credit, finished: its_levels.finished }))
    }

    /// Carries down what a verb of the upper session has left.
    fn sink(&mut self, sunk: Sunk, out: &mut Outbox) {
        for slot in sunk.down {
            if let Some(mut message) = out.take_down(slot) {
                let place = out.reserve_down();
                match self.push_lower(&mut message, out) {
                    Verdict::Pass => out.fill_down(place, message),
                    Verdict::Keep => {}
                    Verdict::Drop(reason) => out.dropped(reason),
                    Verdict::Refuse => panic!("a session sent more than the room it was told"),
                }
            }
        }
        for slot in sunk.advice {
            if let Some(mut control) = out.take_advice(slot) {
                match self.control_lower(&mut control, out) {
                    Handled::No => out.pass_advice(control),
                    Handled::Yes => self.answer(control, out),
                }
            }
        }
        if sunk.credit > 0 {
            self.lower_verb_and_rise(out, |lower, out| lower.credit(sunk.credit, out));
        }
        if sunk.finished {
            self.lower_verb_and_rise(out, |lower, out| lower.close(out));
        }
    }

    /// A question that was answered below goes back to its asker before the asker's next message.
    fn answer(&mut self, control: Control, out: &mut Outbox) {
        if let Control::Question(_, Some(answer)) = control {
            let mut control = Control::Answer(answer);
            if self.upper_verb(out, |upper, out| upper.control(&mut control, out)) == Handled::No {
                out.pass_told(control);
            }
        }
    }

    /// An answer passes the upper session on its way to an asker above it, who gets what that one makes of it.
    fn pass_answer(&mut self, control: &mut Control, out: &mut Outbox) {
        let Control::Question(_, answer) = control else { return };
        let Some(given) = answer.take() else { return };
        let mut control = Control::Answer(given);
        if self.upper_verb(out, |upper, out| upper.control(&mut control, out)) == Handled::No
            && let Control::Answer(given) = control
        {
            *answer = Some(given);
        }
    }

    /// Carries up what a verb of the lower session has left.
    fn rise(&mut self, risen: Risen, out: &mut Outbox) {
        for slot in risen.up {
            if let Some(mut message) = out.take_up(slot) {
                let place = out.reserve_up();
                match self.upper_verb(out, |upper, out| upper.pop(&mut message, out)) {
                    Verdict::Pass => out.fill_up(place, message),
                    Verdict::Keep => {}
                    Verdict::Drop(reason) => out.dropped(reason),
                    Verdict::Refuse => panic!("a pop was refused: only a push may be"),
                }
            }
        }
        for slot in risen.told {
            if let Some(mut control) = out.take_told(slot)
                && self.upper_verb(out, |upper, out| upper.control(&mut control, out)) == Handled::No
            {
                out.pass_told(control);
            }
        }
        if risen.levels.writable {
            let handled = self.upper_verb(out, |upper, out| upper.control(&mut Control::Writable, out));
            if handled == Handled::No {
                out.writable();
            }
        }
        if risen.levels.finished {
            out.finish();
        }
    }

    fn push_lower(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.lower_verb_and_rise(out, |lower, out| lower.push(message, out))
    }

    fn control_lower(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.lower_verb_and_rise(out, |lower, out| lower.control(control, out))
    }

    #[inline]
    fn lower_verb_and_rise<R>(&mut self, out: &mut Outbox, verb: impl FnOnce(&mut L, &mut Outbox) -> R) -> R {
        let (result, risen) = self.lower_verb(out, verb);
        if let Some(risen) = risen {
            self.rise(risen, out);
        }
        result
    }

    /// Runs a verb of the lower session and counts off what it left, if anything. The levels it sets are the seam's to
    /// interpret.
    #[inline]
    fn lower_verb<R>(&mut self, out: &mut Outbox, verb: impl FnOnce(&mut L, &mut Outbox) -> R) -> (R, Option<Risen>) {
        let (mark, levels, effects) = (out.mark(), out.take_levels(), out.effects());
        out.begin(out.room_bytes());
        let result = verb(self.lower, out);
        out.begin(out.room_bytes());
        if out.effects() == effects {
            out.set_levels(levels);
            return (result, None);
        }
        let its_levels = out.take_levels();
        out.set_levels(levels);
        (result, Some(Risen { up: out.up_since(mark), told: out.told_since(mark), levels: its_levels }))
    }
}

/// The same verb for a lone session and for a seam.
macro_rules! linked {
    ($sessions:expr, $session:ident => $verb:expr) => {
        match $sessions {
            [only] => {
                let $session = only;
                $verb
            }
            [top, rest @ ..] => {
                let mut $session = Seam { upper: &mut **top, lower: rest };
                $verb
            }
            [] => unreachable!("a chain has a session"),
        }
    };
}

impl Session for [Box<dyn Session>] {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        linked!(self, session => session.pop(message, out))
    }
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        linked!(self, session => session.push(message, out))
    }
    fn room(&self) -> usize {
        self.iter().map(|session| session.room()).min().unwrap_or(usize::MAX)
    }
    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        linked!(self, session => session.credit(bytes, out));
    }
    fn deadline(&self) -> Option<Instant> {
        self.iter().fold(None, |soonest, session| earlier(soonest, session.deadline()))
    }
    fn timeout(&mut self, out: &mut Outbox) {
        linked!(self, session => session.timeout(out));
    }
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        linked!(self, session => session.control(control, out))
    }
    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        self.iter().rev().fold(0, |at, session| at + session.cut(&mut headers[at..], piece))
    }
    fn merge(&mut self, held: &mut Message, next: &mut Message) -> bool {
        self.last_mut().is_some_and(|lowest| lowest.merge(held, next))
    }
    fn sealed(&mut self, message: &mut Message, results: &Sealed) {
        self.iter_mut().for_each(|session| session.sealed(message, results));
    }
    fn export(&self, record: &mut Record) {
        self.iter().for_each(|session| session.export(record));
    }
    fn may_rest(&self) -> bool {
        self.iter().all(|session| session.may_rest())
    }
    fn close(&mut self, out: &mut Outbox) {
        linked!(self, session => session.close(out));
    }
    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        linked!(self, session => session.pop_batch(batch, out));
    }
}

impl Session for Chain {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.0.pop(message, out)
    }
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.0.push(message, out)
    }
    fn room(&self) -> usize {
        self.0.room()
    }
    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        self.0.credit(bytes, out);
    }
    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }
    fn timeout(&mut self, out: &mut Outbox) {
        self.0.timeout(out);
    }
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.0.control(control, out)
    }
    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        self.0.cut(headers, piece)
    }
    fn merge(&mut self, held: &mut Message, next: &mut Message) -> bool {
        self.0.merge(held, next)
    }
    fn sealed(&mut self, message: &mut Message, results: &Sealed) {
        self.0.sealed(message, results);
    }
    fn export(&self, record: &mut Record) {
        self.0.export(record);
    }
    fn may_rest(&self) -> bool {
        self.0.may_rest()
    }
    fn close(&mut self, out: &mut Outbox) {
        self.0.close(out);
    }
    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        self.0.pop_batch(batch, out);
    }
}

impl<U: Session, L: Session> Stack<U, L> {
    fn seam(&mut self) -> Seam<'_, U, L> {
        Seam { upper: &mut self.upper, lower: &mut self.lower }
    }
}

impl<U: Session, L: Session> Session for Stack<U, L> {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.seam().pop(message, out)
    }
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.seam().push(message, out)
    }
    fn room(&self) -> usize {
        self.upper.room().min(self.lower.room())
    }
    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        self.seam().credit(bytes, out);
    }
    fn deadline(&self) -> Option<Instant> {
        earlier(self.upper.deadline(), self.lower.deadline())
    }
    fn timeout(&mut self, out: &mut Outbox) {
        self.seam().timeout(out);
    }
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.seam().control(control, out)
    }
    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        let lower = self.lower.cut(headers, piece);
        lower + self.upper.cut(&mut headers[lower..], piece)
    }
    fn merge(&mut self, held: &mut Message, next: &mut Message) -> bool {
        self.lower.merge(held, next)
    }
    fn sealed(&mut self, message: &mut Message, results: &Sealed) {
        self.upper.sealed(message, results);
        self.lower.sealed(message, results);
    }
    fn export(&self, record: &mut Record) {
        self.upper.export(record);
        self.lower.export(record);
    }
    fn may_rest(&self) -> bool {
        self.upper.may_rest() && self.lower.may_rest()
    }
    fn close(&mut self, out: &mut Outbox) {
        self.seam().close(out);
    }
    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        self.seam().pop_batch(batch, out);
    }
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
