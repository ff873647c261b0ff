//! Linkages that are deliberately wrong: an honest one whose outbox is carried over by a linker that loses, reorders or
//! forgets something. The law's check has to notice each of them, and to find nothing wrong with the honest carrier.

use xylem_core::{Batch, Control, Handled, Instant, Message, Outbox, Piece, Random, Record, Session, Verdict};

/// What a linker does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Nothing.
    Nothing,
    /// Messages that one verb sent leave in the other order.
    OrderDown,
    /// Messages that one verb raised arrive in the other order.
    OrderUp,
    /// The last message a verb raised is lost, if it raised several.
    LosesRaised,
    /// The last message a verb sent is lost, if it sent several.
    LosesSent,
    /// Credit is not carried down.
    ForgetsCredit,
    /// A told control is lost.
    ForgetsTold,
    /// Advice is lost.
    ForgetsAdvice,
    /// Drops inside are not counted.
    ForgetsDrops,
    /// The writable level is lost.
    ForgetsWritable,
    /// The finished level is lost.
    ForgetsFinished,
    /// One number too many is drawn from the path's stream.
    DrawsOnceMore,
    /// Time does not pass.
    SwallowsTimeout,
    /// It answers for a control that nobody handled.
    HandlesAll,
}

impl Wrong {
    pub const ALL: [Wrong; 13] = [
        Wrong::OrderDown,
        Wrong::OrderUp,
        Wrong::LosesRaised,
        Wrong::LosesSent,
        Wrong::ForgetsCredit,
        Wrong::ForgetsTold,
        Wrong::ForgetsAdvice,
        Wrong::ForgetsDrops,
        Wrong::ForgetsWritable,
        Wrong::ForgetsFinished,
        Wrong::DrawsOnceMore,
        Wrong::SwallowsTimeout,
        Wrong::HandlesAll,
    ];
}

/// See the module's text.
pub struct Tampered {
    pub inner: Box<dyn Session>,
    pub wrong: Wrong,
}

impl Tampered {
    fn verb<R>(&mut self, out: &mut Outbox, verb: impl FnOnce(&mut dyn Session, &mut Outbox) -> R) -> R {
        let mut private = Outbox::new(out.now, Random::seeded(0), out.pool().clone());
        private.begin(out.room_bytes());
        std::mem::swap(&mut private.random, &mut out.random);
        let result = verb(&mut *self.inner, &mut private);
        std::mem::swap(&mut private.random, &mut out.random);
        let mut down: Vec<Message> = private.drain_down().collect();
        let mut up: Vec<Message> = private.drain_up().collect();
        let levels = private.take_levels();
        match self.wrong {
            Wrong::OrderDown => down.reverse(),
            Wrong::OrderUp => up.reverse(),
            Wrong::LosesRaised if up.len() > 1 => drop(up.pop()),
            Wrong::LosesSent if down.len() > 1 => drop(down.pop()),
            Wrong::DrawsOnceMore => drop(out.random.next()),
            _ => {}
        }
        // What many verbs inside have left is carried over by one: each piece counts as a verb of its own.
        let room = out.room_bytes();
        let again = |out: &mut Outbox| out.begin(room);
        for message in down {
            out.push(message);
            again(out);
        }
        for message in up {
            out.raise(message);
            again(out);
        }
        let credit = private.take_credit();
        if self.wrong != Wrong::ForgetsCredit {
            out.credit(credit);
        }
        let (told, advised): (Vec<Control>, Vec<Control>) =
            (private.drain_told().collect(), private.drain_advice().collect());
        if self.wrong != Wrong::ForgetsTold {
            for control in told {
                out.tell(control);
                again(out);
            }
        }
        if self.wrong != Wrong::ForgetsAdvice {
            for control in advised {
                out.advise(control);
                again(out);
            }
        }
        let drops: Vec<_> = private.drain_dropped().collect();
        if self.wrong != Wrong::ForgetsDrops {
            drops.into_iter().for_each(|reason| out.dropped(reason));
        }
        if levels.writable && self.wrong != Wrong::ForgetsWritable {
            out.writable();
        }
        if levels.finished && self.wrong != Wrong::ForgetsFinished {
            out.finish();
        }
        result
    }
}

impl Session for Tampered {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.verb(out, |session, out| session.pop(message, out))
    }
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.verb(out, |session, out| session.push(message, out))
    }
    fn room(&self) -> usize {
        self.inner.room()
    }
    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        self.verb(out, |session, out| session.credit(bytes, out));
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
    fn timeout(&mut self, out: &mut Outbox) {
        if self.wrong != Wrong::SwallowsTimeout {
            self.verb(out, |session, out| session.timeout(out));
        }
    }
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        let handled = self.verb(out, |session, out| session.control(control, out));
        if self.wrong == Wrong::HandlesAll { Handled::Yes } else { handled }
    }
    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        self.inner.cut(headers, piece)
    }
    fn pop_batch(&mut self, batch: &mut Batch, out: &mut Outbox) {
        self.verb(out, |session, out| session.pop_batch(batch, out));
        match self.wrong {
            Wrong::OrderUp => {
                let messages: Vec<Message> = batch.drain().collect();
                messages.into_iter().rev().for_each(|message| batch.add(message));
            }
            Wrong::LosesRaised => {
                let mut messages: Vec<Message> = batch.drain().collect();
                messages.pop();
                messages.into_iter().for_each(|message| batch.add(message));
            }
            _ => {}
        }
    }
    fn export(&self, record: &mut Record) {
        self.inner.export(record);
    }
    fn close(&mut self, out: &mut Outbox) {
        self.verb(out, |session, out| session.close(out));
    }
}
