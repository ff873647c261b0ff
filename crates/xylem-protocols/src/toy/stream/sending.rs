//! The sending half: bytes that wait for their turn, for the window, or for the peer's acknowledgment. Everything from
//! the oldest byte not acknowledged is kept in one message, and a segment is a part of it.

use super::wait;
use serde::{Deserialize, Serialize};
use xylem_core::{Instant, Message};
use xylem_wire::SequenceNumber;

/// The most bytes kept, sent or not.
pub const SEND_MAX: usize = 16 * 1024;
/// How often the same is sent before the peer is given up.
pub const TRIES_MAX: u32 = 12;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Sending {
    /// From `oldest` on.
    queue: Message,
    /// The oldest position not acknowledged.
    pub oldest: SequenceNumber,
    /// The next position to send.
    pub next: SequenceNumber,
    /// Behind the last position ever sent.
    most: SequenceNumber,
    /// The peer takes positions before this one.
    edge: SequenceNumber,
    /// The application has closed this direction: a position behind the queue says so.
    pub closing: bool,
    pub closed: bool,
    timer: Option<Instant>,
    tries: u32,
}

/// What another instance needs to go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SendingState {
    queue: Vec<u8>,
    oldest: SequenceNumber,
    most: SequenceNumber,
    edge: SequenceNumber,
    closing: bool,
    closed: bool,
}

/// What the timer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// All that was sent is to be sent again.
    Resend,
    /// The window is shut: the peer is to be asked.
    Probe,
    /// The peer does not answer any more.
    GiveUp,
}

impl Sending {
    /// A half whose first byte has the position `first`, and to which the peer has opened `window` bytes.
    pub fn new(first: SequenceNumber, window: u16) -> Sending {
        Sending {
            queue: Message::default(),
            oldest: first,
            next: first,
            most: first,
            edge: first + u32::from(window),
            closing: false,
            closed: false,
            timer: None,
            tries: 0,
        }
    }

    /// Goes on from elsewhere; what is in flight there is sent again in time.
    pub fn resume(state: SendingState) -> Sending {
        let mut sending = Sending::new(state.oldest, 0);
        sending.queue = if state.queue.is_empty() { Message::default() } else { Message::from_bytes(&state.queue) };
        (sending.most, sending.edge) = (state.most, state.edge);
        (sending.closing, sending.closed) = (state.closing, state.closed);
        // The clock of another instance says nothing here: a timeout that comes early is harmless.
        sending.timer = Some(Instant::ZERO);
        sending
    }

    pub fn state(&self) -> SendingState {
        let Sending { oldest, most, edge, closing, closed, .. } = *self;
        SendingState { queue: self.queue.to_vec(), oldest, most, edge, closing, closed }
    }

    /// Bytes that may be added.
    pub fn room(&self) -> usize {
        SEND_MAX.saturating_sub(self.queue.len())
    }

    /// Adds bytes behind the others.
    pub fn add(&mut self, message: Message) {
        self.queue.append(message);
    }

    /// The next segment's content and whether the close goes with it; `None` if there is nothing to send now.
    pub fn segment(&mut self, length_max: usize) -> Option<(SequenceNumber, Message, bool)> {
        let offset = self.next.since(self.oldest).max(0) as usize;
        let unsent = self.queue.len().saturating_sub(offset);
        let window = self.edge.since(self.next).max(0) as usize;
        let length = unsent.min(window).min(length_max);
        let closes = self.closing && !self.closed && length == unsent && offset <= self.queue.len();
        if length == 0 && !closes {
            return None;
        }
        let mut content = self.queue.share();
        content.trim_front(offset.min(self.queue.len()));
        content.truncate(length);
        let at = self.next;
        self.next += length as u32 + u32::from(closes);
        self.most = self.most.later(self.next);
        Some((at, content, closes))
    }

    /// Starts the timer if something waits and it does not run.
    pub fn watch(&mut self, now: Instant) {
        let waits = self.next != self.oldest || !self.queue.is_empty() || (self.closing && !self.closed);
        if !waits {
            self.timer = None;
        } else if self.timer.is_none() {
            self.timer = Some(now + wait(self.tries));
        }
    }

    /// The peer wants `position` next and takes `window` bytes. Says whether the queue has become shorter.
    pub fn acknowledged(&mut self, position: SequenceNumber, window: u16) -> bool {
        if position.is_before(self.oldest) || position.is_after(self.most) {
            return false;
        }
        let edge = position + u32::from(window);
        if edge.is_after(self.edge) {
            self.edge = edge;
            self.tries = 0;
        }
        let count = position.since(self.oldest) as usize;
        if count == 0 {
            return false;
        }
        // The position behind the last byte is the close.
        self.closed |= count > self.queue.len();
        let bytes = count.min(self.queue.len());
        self.queue.trim_front(bytes);
        self.oldest = position;
        self.next = self.next.later(position);
        (self.timer, self.tries) = (None, 0);
        bytes > 0
    }

    /// The peer has answered a probe.
    pub fn alive(&mut self) {
        self.tries = 0;
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// What is due, if the timer has run out.
    pub fn due(&mut self, now: Instant) -> Due {
        if self.timer.is_none_or(|timer| timer > now) {
            return Due::Nothing;
        }
        self.timer = None;
        if self.tries >= TRIES_MAX {
            return Due::GiveUp;
        }
        self.tries += 1;
        let in_flight = self.next != self.oldest;
        self.next = self.oldest;
        let shut = self.edge == self.oldest && !self.queue.is_empty();
        if shut && !in_flight { Due::Probe } else { Due::Resend }
    }
}
