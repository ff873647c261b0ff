//! The client's end of a channel: one call at a time, asked again until the reply comes or patience ends.

use super::header::{CallKind, put, take};
use super::{CONTENT_MAX, CallHeader, FIRST_WAIT, NOT_AWAITED, OUT_OF_TURN, TOO_LARGE, TRIES_MAX, WAIT_MAX};
use serde::{Deserialize, Serialize};
use xylem_core::{Control, Duration, Event, Handled, Instant, Message, Outbox, Record, Session, Verdict};
use xylem_wire::Header;

/// What of a client another instance needs to go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ClientState {
    /// The number of the last call.
    sequence: u32,
    /// The request that waits for its reply, without header, and how often it was sent.
    waiting: Option<(Vec<u8>, u32)>,
    /// Whether anything was ever asked.
    asked: bool,
}

impl ClientState {
    /// Numbers begin with the clock, in units of 2^16 ns: a channel that is opened again goes on above where it was, as
    /// long as it makes fewer than 15 000 calls a second.
    pub fn starting(now: Instant) -> ClientState {
        ClientState { sequence: (now.as_nanos() >> 16) as u32, waiting: None, asked: false }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct CallClient {
    channel: u32,
    /// The number by which the trunk below knows this protocol.
    upper: u32,
    content_max: usize,
    sequence: u32,
    asked: bool,
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// With its header.
    request: Message,
    tries: u32,
    again: Instant,
}

fn wait(tries: u32) -> Duration {
    (FIRST_WAIT * 2u32.saturating_pow(tries.min(8))).min(WAIT_MAX)
}

impl CallClient {
    pub fn new(channel: u32, upper: u32, content_max: usize, state: ClientState) -> CallClient {
        let ClientState { sequence, waiting, asked } = state;
        let waiting = waiting.map(|(content, tries)| {
            let mut request = Message::from_bytes(&content);
            put(&mut request, channel, sequence, CallKind::Request);
            // Asked again at once: a timeout that comes early is harmless, and the reply may have gone astray.
            Waiting { request, tries, again: Instant::ZERO }
        });
        CallClient { channel, upper, content_max, sequence, asked, waiting }
    }

    fn send(&self, mut message: Message, out: &mut Outbox) {
        message.attributes.upper = self.upper;
        out.push(message);
    }
}

impl Session for CallClient {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let header = match take(message) {
            Ok(header) => header,
            Err(reason) => return Verdict::Drop(reason),
        };
        let awaited = self.waiting.is_some() && header.sequence == self.sequence && header.kind == CallKind::Reply;
        if !awaited || header.channel != self.channel {
            return Verdict::Drop(&NOT_AWAITED);
        }
        self.waiting = None;
        message.attributes.end_of_message = true;
        out.writable();
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if self.waiting.is_some() {
            // An empty request is never larger than the room: nothing but this refuses it.
            return if message.is_empty() { Verdict::Drop(&OUT_OF_TURN) } else { Verdict::Refuse };
        }
        if message.len() > self.content_max {
            return Verdict::Drop(&TOO_LARGE);
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.asked = true;
        put(message, self.channel, self.sequence, CallKind::Request);
        message.attributes.upper = self.upper;
        self.waiting = Some(Waiting { request: message.share(), tries: 1, again: out.now + wait(0) });
        Verdict::Pass
    }

    fn room(&self) -> usize {
        if self.waiting.is_some() { 0 } else { usize::MAX }
    }

    fn deadline(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|waiting| waiting.again)
    }

    fn timeout(&mut self, out: &mut Outbox) {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.again <= out.now) else { return };
        if waiting.tries >= TRIES_MAX {
            self.waiting = None;
            out.tell(Control::Event(Event::TimedOut));
            return out.finish();
        }
        waiting.again = out.now + wait(waiting.tries);
        waiting.tries += 1;
        let request = waiting.request.share();
        self.send(request, out);
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
        record.put(&false);
        let waiting = self.waiting.as_ref().map(|waiting| {
            let content = waiting.request.to_vec().split_off(CallHeader::LEN);
            (content, waiting.tries)
        });
        record.put(&ClientState { sequence: self.sequence, waiting, asked: self.asked });
    }

    fn close(&mut self, out: &mut Outbox) {
        if self.asked
            && let Some(mut goodbye) = out.message()
        {
            put(&mut goodbye, self.channel, self.sequence, CallKind::Goodbye);
            self.send(goodbye, out);
        }
        out.finish();
    }
}
