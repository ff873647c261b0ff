//! The server's end of a channel: shows each request to the application once, and keeps the last reply until the next
//! request proves that it arrived.

use super::header::{CallKind, is_later, put, take};
use super::remembered::Channel;
use super::{CONTENT_MAX, CallHeader, IDLE_MAX, NOT_AWAITED, OLD, OUT_OF_TURN, REPEATED, TOO_LARGE};
use serde::{Deserialize, Serialize};
use xylem_core::{Control, Event, Handled, Instant, Message, Outbox, Record, Session, Verdict};
use xylem_wire::Header;

/// What of a server another instance needs to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ServerState {
    /// The number of the last request that was taken.
    pub last: Option<u32>,
    /// Whether the application has it and has not replied.
    executing: bool,
    /// The last reply, without header.
    reply: Option<Vec<u8>>,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct CallServer {
    peer: u32,
    channel: u32,
    upper: u32,
    content_max: usize,
    last: Option<u32>,
    turn: Turn,
    idle_until: Instant,
    over: bool,
}

/// Whose turn it is.
#[derive(Debug)]
enum Turn {
    /// The client's: nothing was asked yet on this path.
    Client,
    /// The application's.
    Application,
    /// The client's: this was replied, header included.
    Replied(Box<Message>),
}

const ENTRY_MARK: &[u8; 4] = b"call";

/// Reads what a server left with its protocol: peer, channel, number of the last call.
pub(super) fn lingering(entry: &[u8]) -> Option<(u32, u32, u32)> {
    let numbers = entry.strip_prefix(ENTRY_MARK)?;
    let number = |at: usize| numbers.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    Some((number(0)?, number(4)?, number(8)?))
}

impl CallServer {
    pub fn new(
        (peer, channel): Channel,
        upper: u32,
        content_max: usize,
        state: ServerState,
        now: Instant,
    ) -> CallServer {
        let ServerState { last, executing, reply } = state;
        let turn = match (executing, reply, last) {
            (true, _, _) => Turn::Application,
            (false, Some(content), Some(last)) => {
                let mut reply = Message::from_bytes(&content);
                put(&mut reply, channel, last, CallKind::Reply);
                Turn::Replied(Box::new(reply))
            }
            _ => Turn::Client,
        };
        CallServer { peer, channel, upper, content_max, last, turn, idle_until: now + IDLE_MAX, over: false }
    }

    fn request(&mut self, sequence: u32, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.idle_until = out.now + IDLE_MAX;
        match self.last {
            Some(last) if sequence == last => {
                let Turn::Replied(reply) = &mut self.turn else { return Verdict::Drop(&REPEATED) };
                let mut again = reply.share();
                again.attributes.upper = self.upper;
                out.push(again);
                Verdict::Keep
            }
            Some(last) if !is_later(sequence, last) => Verdict::Drop(&OLD),
            _ => {
                self.last = Some(sequence);
                self.turn = Turn::Application;
                message.attributes.end_of_message = true;
                Verdict::Pass
            }
        }
    }

    /// The path ends; the protocol remembers the number of the last call.
    fn end(&mut self, out: &mut Outbox) {
        if let Some(last) = self.last {
            let mut entry = Vec::from(ENTRY_MARK);
            for number in [self.peer, self.channel, last] {
                entry.extend(number.to_be_bytes());
            }
            out.linger(&entry);
        }
        out.finish();
    }
}

impl Session for CallServer {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let header = match take(message) {
            Ok(header) => header,
            Err(reason) => return Verdict::Drop(reason),
        };
        match header.kind {
            CallKind::Request if header.channel == self.channel => self.request(header.sequence, message, out),
            CallKind::Goodbye if self.last == Some(header.sequence) => {
                if !self.over {
                    self.over = true;
                    out.tell(Control::Event(Event::PeerClosed));
                }
                Verdict::Keep
            }
            CallKind::Goodbye => Verdict::Drop(&OLD),
            CallKind::Request | CallKind::Reply | CallKind::Other(_) => Verdict::Drop(&NOT_AWAITED),
        }
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let (Turn::Application, Some(last)) = (&self.turn, self.last) else { return Verdict::Drop(&OUT_OF_TURN) };
        if message.len() > self.content_max {
            return Verdict::Drop(&TOO_LARGE);
        }
        put(message, self.channel, last, CallKind::Reply);
        message.attributes.upper = self.upper;
        self.turn = Turn::Replied(Box::new(message.share()));
        Verdict::Pass
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.idle_until)
    }

    fn timeout(&mut self, out: &mut Outbox) {
        if self.idle_until <= out.now {
            out.tell(Control::Event(Event::TimedOut));
            self.end(out);
        }
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            *facts = facts.clone().less(CallHeader::LEN);
            facts.mtu = facts.mtu.min(CONTENT_MAX);
            self.content_max = facts.mtu;
        }
        Handled::No
    }

    fn export(&self, record: &mut Record) {
        record.put(&true);
        let (executing, reply) = match &self.turn {
            Turn::Client => (false, None),
            Turn::Application => (true, None),
            Turn::Replied(reply) => (false, Some(reply.to_vec().split_off(CallHeader::LEN))),
        };
        record.put(&ServerState { last: self.last, executing, reply });
    }

    fn close(&mut self, out: &mut Outbox) {
        self.end(out);
    }
}
