//! Faults that are planted to show that a law's test would notice: a virtual protocol that, once in its path's life, does
//! something that no session may do.

use std::sync::Arc;
use xylem_core::{Demux, Facts, Message, OpenError, Opening, Outbox, Protocol, Session, Verdict, View};
use xylem_graph::build::Entry;
use xylem_graph::file::{
    DefaultValue, Description, Kind, OptionDescription, OptionKind, Presence, Provides, Role, Slot,
};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the session between is honest.
    None,
    /// One message on its way up vanishes without a word.
    LoseUp,
    /// One message on its way up comes twice.
    RepeatUp,
    /// Two messages on their way up change places.
    SwapUp,
    /// One byte changes on its way up.
    SpoilUp,
    /// One message on its way down vanishes without a word.
    LoseDown,
    /// Credit is not returned.
    ForgetCredit,
    /// The close is not passed on.
    ForgetClose,
    /// A handle on a message's buffers is never let go.
    Leak,
}

/// All faults, each at its own number.
const ALL: [Fault; 9] = [
    Fault::None,
    Fault::LoseUp,
    Fault::RepeatUp,
    Fault::SwapUp,
    Fault::SpoilUp,
    Fault::LoseDown,
    Fault::ForgetCredit,
    Fault::ForgetClose,
    Fault::Leak,
];

/// How a test's catalogue knows the protocol: it stands over a stream or over messages and offers the same.
pub const ENTRY: Entry = Entry {
    description: Description {
        name: "faulty",
        summary: "does, once in a path's life, what no session may do",
        role: Role::Endpoint,
        over: &[Slot::one("lower", &[Kind::STREAM, Kind::MESSAGES])],
        provides: Provides::AsBelow,
        options: &[OptionDescription {
            name: "fault",
            kind: OptionKind::Integer { min: 0, max: ALL.len() as i64 - 1 },
            presence: Presence::Default(DefaultValue::Integer(0)),
            summary: "which",
        }],
        ..Description::PLAIN
    },
    make: |making| {
        let fault = ALL[making.settings.integer("fault").unwrap_or(0) as usize];
        Ok(Some(Arc::new(Faulty(fault))))
    },
};

/// A protocol whose sessions do this.
pub struct Faulty(pub Fault);

impl Protocol for Faulty {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let facts = opening.below()?;
        opening.stand(FaultySession { fault: self.0, popped: 0, pushed: 0, kept: None });
        Ok(facts)
    }
    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        Demux::Up(0)
    }
}

/// Which message of a path suffers.
const WHICH: usize = 3;

struct FaultySession {
    fault: Fault,
    popped: usize,
    pushed: usize,
    kept: Option<Message>,
}

impl Session for FaultySession {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.popped += 1;
        if let Some(kept) = self.kept.take() {
            out.raise(kept);
        }
        if self.popped != WHICH {
            return Verdict::Pass;
        }
        match self.fault {
            Fault::LoseUp => return Verdict::Keep,
            Fault::RepeatUp => out.raise(message.share()),
            Fault::SwapUp => {
                self.kept = Some(std::mem::take(message));
                return Verdict::Keep;
            }
            Fault::SpoilUp => {
                let mut bytes = message.to_vec();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
                let attributes = message.attributes.clone();
                *message = Message::from_bytes(&bytes);
                message.attributes = attributes;
            }
            Fault::Leak => std::mem::forget(message.share()),
            Fault::None | Fault::LoseDown | Fault::ForgetCredit | Fault::ForgetClose => {}
        }
        Verdict::Pass
    }

    fn push(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        self.pushed += 1;
        if self.fault == Fault::LoseDown && self.pushed == WHICH { Verdict::Keep } else { Verdict::Pass }
    }

    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        if self.fault != Fault::ForgetCredit {
            out.credit(bytes);
        }
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.fault != Fault::ForgetClose {
            out.finish();
        }
    }
}
