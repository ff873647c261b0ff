//! One end of a stream. What arrives changes the two halves; then everything that can be sent is sent, and an
//! acknowledgment is owed or has gone along.

use super::receiving::{Receiving, ReceivingState};
use super::sending::{Due, Sending, SendingState, TRIES_MAX};
use super::{CLOSED, CLOSED_MAX, Key, NOBODY_READS, NOT_ACCEPTABLE, NOT_IN_WINDOW, StreamHeader, lingering, wait};
use serde::{Deserialize, Serialize};
use xylem_core::drop::linker::NO_BUFFER;
use xylem_core::time::earlier;
use xylem_core::{Control, Event, Handled, Instant, Message, Outbox, Record, Session, Setting, Verdict};
use xylem_wire::{Header, SequenceNumber};

/// Where a stream is in its life.
#[derive(Debug)]
enum Phase {
    /// We have asked to open and wait for the answer.
    Opening { tries: u32, again: Instant },
    /// Both halves stand.
    Open,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct StreamSession {
    key: Key,
    content_max: usize,
    phase: Phase,
    sending: Sending,
    receiving: Receiving,
    /// The peer is owed an acknowledgment.
    owes: bool,
    /// More could be sent than one verb may.
    more: bool,
    /// The application has closed: when to stop waiting for the peer.
    closed_until: Option<Instant>,
    over: bool,
}

/// What another instance needs to go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StreamState {
    opening: bool,
    sending: SendingState,
    receiving: ReceivingState,
    application_closed: bool,
}

impl StreamSession {
    /// The end that asks to open, its first position being `first`.
    pub fn active(key: Key, content_max: usize, first: SequenceNumber) -> StreamSession {
        let phase = Phase::Opening { tries: 0, again: Instant::ZERO };
        StreamSession::new(key, content_max, phase, Sending::new(first + 1, 0), Receiving::new(SequenceNumber(0)))
    }

    /// The end that a handshake has opened: our first position, the peer's, and the window it opened to us.
    pub fn passive(
        key: Key,
        content_max: usize,
        first: SequenceNumber,
        its: SequenceNumber,
        window: u16,
    ) -> StreamSession {
        let (sending, receiving) = (Sending::new(first + 1, window), Receiving::new(its + 1));
        StreamSession::new(key, content_max, Phase::Open, sending, receiving)
    }

    /// The end that goes on from another instance.
    pub fn resumed(key: Key, content_max: usize, state: StreamState, now: Instant) -> StreamSession {
        let phase = if state.opening { Phase::Opening { tries: 0, again: now } } else { Phase::Open };
        let (sending, receiving) = (Sending::resume(state.sending), Receiving::resume(state.receiving));
        let mut session = StreamSession::new(key, content_max, phase, sending, receiving);
        session.closed_until = state.application_closed.then(|| now + CLOSED_MAX);
        session.owes = !state.opening;
        session
    }

    fn new(key: Key, content_max: usize, phase: Phase, sending: Sending, receiving: Receiving) -> StreamSession {
        StreamSession {
            key,
            content_max,
            phase,
            sending,
            receiving,
            owes: false,
            more: false,
            closed_until: None,
            over: false,
        }
    }

    /// The header all segments of an open stream begin from.
    fn header(&mut self) -> StreamHeader {
        StreamHeader {
            source: self.key.local,
            destination: self.key.remote,
            sequence: self.sending.next,
            acknowledgement: self.receiving.next,
            window: self.receiving.advertise(),
            acknowledges: true,
            ..StreamHeader::default()
        }
    }

    /// Sends a segment without content.
    fn send_bare(&mut self, header: &StreamHeader, out: &mut Outbox) {
        let Some(mut message) = out.message() else { return out.dropped(&NO_BUFFER) };
        header.put(&mut message);
        out.push(message);
    }

    /// Sends all that may be sent, and the acknowledgment if it is still owed then.
    fn send(&mut self, out: &mut Outbox) {
        if let Phase::Opening { .. } = self.phase {
            return;
        }
        self.more = false;
        loop {
            if out.room() <= 1 {
                // One place is kept for an acknowledgment.
                self.more = true;
                break;
            }
            let Some(content_max) = out.room_bytes().checked_sub(StreamHeader::LEN) else { break };
            let content_max = content_max.min(self.content_max);
            let Some((sequence, mut content, closes)) = self.sending.segment(content_max) else { break };
            let header = StreamHeader { sequence, closes, ..self.header() };
            header.put(&mut content);
            out.push(content);
            self.owes = false;
        }
        self.sending.watch(out.now);
        if std::mem::take(&mut self.owes) {
            let header = self.header();
            self.send_bare(&header, out);
        }
    }

    /// The answer to our opening, or something else that came instead of it.
    fn answered(&mut self, header: &StreamHeader, out: &mut Outbox) -> Verdict {
        let to_us = header.acknowledges && header.acknowledgement == self.sending.oldest;
        if to_us && header.resets {
            out.tell(Control::Event(Event::Refused));
            self.end(out);
            return Verdict::Keep;
        }
        if !to_us || !header.opens {
            return Verdict::Drop(&NOT_ACCEPTABLE);
        }
        self.phase = Phase::Open;
        self.receiving = Receiving::new(header.sequence + 1);
        self.sending.acknowledged(header.acknowledgement, header.window);
        self.owes = true;
        out.tell(Control::Event(Event::Opened));
        self.send(out);
        Verdict::Keep
    }

    /// Hands up what is in order; the first piece takes the place of the message at hand.
    fn hand_up(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let mut verdict = Verdict::Keep;
        while let Some(mut piece) = self.receiving.take() {
            if self.closed_until.is_some() {
                self.receiving.abandon();
                out.dropped(&NOBODY_READS);
                continue;
            }
            piece.attributes = message.attributes.clone();
            if verdict == Verdict::Keep {
                *message = piece;
                verdict = Verdict::Pass;
            } else {
                out.raise(piece);
            }
        }
        if self.receiving.reached_close() {
            out.tell(Control::Event(Event::PeerClosed));
        }
        verdict
    }

    /// Ends if both directions have, and the application too.
    fn end_if_done(&mut self, out: &mut Outbox) {
        if self.closed_until.is_some() && self.sending.closed && self.receiving.closed && !self.over {
            out.linger(&lingering::entry(self.key, self.sending.oldest, self.receiving.next));
            self.end(out);
        }
    }

    fn end(&mut self, out: &mut Outbox) {
        self.over = true;
        out.finish();
    }

    fn reset(&mut self, out: &mut Outbox) {
        if let Phase::Open = self.phase {
            let header = StreamHeader { resets: true, ..self.header() };
            self.send_bare(&header, out);
        }
        self.end(out);
    }
}

impl Session for StreamSession {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let header = match StreamHeader::take(message) {
            Ok(header) => header,
            Err(reason) => return Verdict::Drop(reason),
        };
        if let Phase::Opening { .. } = self.phase {
            return self.answered(&header, out);
        }
        if header.resets {
            // Whoever cannot say what we expect next does not see the stream.
            if header.sequence != self.receiving.next {
                return Verdict::Drop(&NOT_ACCEPTABLE);
            }
            out.tell(Control::Event(Event::Reset));
            self.end(out);
            return Verdict::Keep;
        }
        if header.opens || !header.acknowledges {
            // The answer to our opening came again: our acknowledgment was lost.
            self.owes |= header.opens;
            self.send(out);
            return if header.opens { Verdict::Keep } else { Verdict::Drop(&NOT_ACCEPTABLE) };
        }
        self.sending.alive();
        if self.sending.acknowledged(header.acknowledgement, header.window) {
            out.writable();
        }
        let has_content = !message.is_empty() || header.closes;
        self.owes |= has_content || header.probes;
        let attributes = message.attributes.clone();
        let content = std::mem::take(message);
        message.attributes = attributes;
        let new = has_content && self.receiving.add(header.sequence, content, header.closes);
        let verdict = if new { self.hand_up(message, out) } else { Verdict::Keep };
        self.send(out);
        self.end_if_done(out);
        if has_content && !new { Verdict::Drop(&NOT_IN_WINDOW) } else { verdict }
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if self.sending.closing {
            return Verdict::Drop(&CLOSED);
        }
        if message.len() > self.sending.room() {
            return Verdict::Refuse;
        }
        self.sending.add(std::mem::take(message));
        self.send(out);
        Verdict::Keep
    }

    fn room(&self) -> usize {
        self.sending.room()
    }

    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        if self.closed_until.is_some() {
            return;
        }
        self.receiving.consumed(bytes);
        // Small steps are not worth a segment (the receiver's half of avoiding silly windows).
        if self.receiving.has_news((2 * self.content_max).min(super::RECEIVE_MAX / 2)) {
            self.owes = true;
            self.send(out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let phase = match self.phase {
            Phase::Opening { again, .. } => Some(again),
            Phase::Open if self.more || self.owes => Some(Instant::ZERO),
            Phase::Open => self.sending.deadline(),
        };
        earlier(phase, self.closed_until)
    }

    fn timeout(&mut self, out: &mut Outbox) {
        if self.over {
            return;
        }
        if self.closed_until.is_some_and(|until| until <= out.now) {
            return self.reset(out);
        }
        if let Phase::Opening { tries, again } = &mut self.phase {
            if *again > out.now {
                return;
            }
            if *tries >= TRIES_MAX {
                out.tell(Control::Event(Event::TimedOut));
                return self.end(out);
            }
            *again = out.now + wait(*tries);
            *tries += 1;
            let header = StreamHeader {
                sequence: SequenceNumber(self.sending.oldest.0.wrapping_sub(1)),
                opens: true,
                acknowledges: false,
                window: super::RECEIVE_MAX as u16,
                ..self.header()
            };
            return self.send_bare(&header, out);
        }
        match self.sending.due(out.now) {
            Due::Nothing | Due::Resend => {}
            Due::Probe => {
                let header = StreamHeader { probes: true, ..self.header() };
                self.send_bare(&header, out);
            }
            Due::GiveUp => {
                out.tell(Control::Event(Event::TimedOut));
                return self.reset(out);
            }
        }
        self.send(out);
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Facts(facts) => {
                *facts = facts.clone().less(StreamHeader::LEN);
                self.content_max = facts.mtu;
                Handled::No
            }
            Control::Writable => {
                self.send(out);
                Handled::Yes
            }
            Control::Set(Setting::SendClosed) => {
                self.sending.closing = true;
                self.send(out);
                Handled::Yes
            }
            Control::Set(Setting::Abort) => {
                self.reset(out);
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    fn export(&self, record: &mut Record) {
        record.put(&StreamState {
            opening: matches!(self.phase, Phase::Opening { .. }),
            sending: self.sending.state(),
            receiving: self.receiving.state(),
            application_closed: self.closed_until.is_some(),
        });
    }

    fn close(&mut self, out: &mut Outbox) {
        if let Phase::Opening { .. } = self.phase {
            return self.end(out);
        }
        self.sending.closing = true;
        self.closed_until = Some(out.now + CLOSED_MAX);
        self.receiving.abandon();
        self.send(out);
        self.end_if_done(out);
    }
}
