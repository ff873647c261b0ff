//! LETTER: datagrams that arrive, once and in order. A letter is numbered, and sent again until its receipt comes back; the
//! next one waits (stop and wait). It stands over UDP, which sums it and finds its path by ports.

use std::sync::Arc;
use xylem_core::*;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{DefaultValue, Description, Kind, OptionDescription, OptionKind, Presence, Provides};
use xylem_graph::file::{Role, Slot, Uppers};
use xylem_wire::{Header, header};

// The header: parsing, building, its length and what tests generate come from this.
header! {
    /// Five bytes in front of each letter, and all there is to a receipt.
    pub struct LetterHeader {
        kind: u8 = Data,
        number: u32 = Data,
    }
}

const LETTER: u8 = 1;
const RECEIPT: u8 = 2;
/// A letter that was sent so often is given up.
const ATTEMPTS_MAX: u32 = 600;

static SHORT: DropReason = DropReason::new("letter", "shorter than its header");
static TWICE: DropReason = DropReason::new("letter", "came before");
static STALE: DropReason = DropReason::new("letter", "not expected");

// The session: one end of one conversation.
#[derive(Default)]
struct LetterSession {
    retry: Duration,
    /// The letter whose receipt is due, when it is sent again, and how often it was sent.
    underway: Option<(Message, Instant, u32)>,
    sent: u32,
    received: u32,
    closing: bool,
}

impl Session for LetterSession {
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if self.underway.is_some() {
            return Verdict::Refuse;
        }
        message.push_header(&LetterHeader { kind: LETTER, number: self.sent });
        self.underway = Some((message.share(), out.now + self.retry, 1));
        Verdict::Pass
    }

    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        match message.pop_header() {
            Err(_) => Verdict::Drop(&SHORT),
            Ok(LetterHeader { kind: LETTER, number }) if number <= self.received => {
                if let Some(mut receipt) = out.message() {
                    receipt.push_header(&LetterHeader { kind: RECEIPT, number });
                    out.push(receipt);
                }
                if number < self.received {
                    return Verdict::Drop(&TWICE);
                }
                self.received += 1;
                Verdict::Pass
            }
            Ok(LetterHeader { kind: RECEIPT, number }) if number == self.sent && self.underway.is_some() => {
                self.underway = None;
                self.sent += 1;
                out.writable();
                self.finish_if_done(out);
                Verdict::Keep
            }
            Ok(_) => Verdict::Drop(&STALE),
        }
    }

    fn room(&self) -> usize {
        if self.underway.is_some() { 0 } else { usize::MAX }
    }

    fn deadline(&self) -> Option<Instant> {
        self.underway.as_ref().map(|(_, again, _)| *again)
    }

    fn timeout(&mut self, out: &mut Outbox) {
        match &mut self.underway {
            Some((_, again, _)) if out.now < *again => {}
            Some((letter, again, attempts)) if *attempts < ATTEMPTS_MAX => {
                (*again, *attempts) = (out.now + self.retry, *attempts + 1);
                out.push(letter.share());
            }
            Some(_) => {
                self.underway = None;
                out.tell(Control::Event(Event::TimedOut));
                out.finish();
            }
            None => {}
        }
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            *facts = facts.clone().less(LetterHeader::LEN);
        }
        Handled::No
    }

    fn close(&mut self, out: &mut Outbox) {
        self.closing = true;
        self.finish_if_done(out);
    }
}

impl LetterSession {
    fn finish_if_done(&self, out: &mut Outbox) {
        if self.closing && self.underway.is_none() {
            out.finish();
        }
    }
}

// The protocol: opens what is below and leaves a session there. UDP takes the participants and names the paths.
struct LetterProtocol {
    retry: Duration,
}

impl Protocol for LetterProtocol {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let facts = opening.below()?;
        opening.stand(LetterSession { retry: self.retry, ..LetterSession::default() });
        Ok(facts.less(LetterHeader::LEN))
    }
}

// What it says of itself, so that a graph file with it can be checked, and how one is made from a node's options.
pub const ENTRY: Entry = Entry {
    description: Description {
        name: "letter",
        summary: "datagrams that arrive, once and in order",
        role: Role::Endpoint,
        over: &[Slot::one("message protocol", &[Kind::MESSAGES])],
        provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::One },
        options: &[OptionDescription {
            name: "retry",
            kind: OptionKind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(60) },
            presence: Presence::Default(DefaultValue::Duration(Duration::from_millis(200))),
            summary: "how long a letter waits for its receipt before it is sent again",
        }],
        ..Description::PLAIN
    },
    make,
};

fn make(making: &mut Making<'_>) -> Made {
    let retry = making.settings.duration("retry").ok_or("expected a time to retry after, got none")?;
    Ok(Some(Arc::new(LetterProtocol { retry })))
}
