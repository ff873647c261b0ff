//! What goes out for the first time: data as far as the windows allow, acknowledgments that are owed, SYNs and resets. Nothing here
//! sends more than there is room for; what cannot go now goes at a later call, for which a deadline is set.

use super::ecn::Ecn;
use super::regulation::Held;
use super::segment::Answer;
use super::send::{Limits, Piece};
use super::session::{Owed, TcpSession};
use super::state::State;
use super::time_wait::Entry;
use xylem_core::{Control, Duration, Event, Instant, Message, Outbox, time};
use xylem_wire::{Header, SackBlock, SequenceNumber, TcpFlags, TcpHeader, TcpOptions};

/// How long to wait before another try when there was no buffer.
const BUFFER_WAIT: Duration = Duration::from_millis(5);
/// The same where there was no room below. The session below says when there is; this is for one that forgets.
const ROOM_WAIT: Duration = Duration::from_millis(200);

impl TcpSession {
    /// Sends all that may be sent, and sets the timer for the rest.
    pub(super) fn flush(&mut self, out: &mut Outbox) {
        self.congestion.release();
        while let Owed::Alone(count) = self.owed {
            if !self.send_bare(self.send.bare_number(), out) {
                break;
            }
            self.owed = if count > 1 { Owed::Alone(count - 1) } else { Owed::Nothing };
        }
        if self.state.transmits() {
            self.send_queued(out);
        }
        if self.owed == Owed::Now {
            self.send_bare(self.send.bare_number(), out);
        }
        self.arm(out.now);
        self.wait_for_tail(out.now);
        #[cfg(test)]
        self.check();
    }

    /// Sends of the queue what the windows allow.
    fn send_queued(&mut self, out: &mut Outbox) {
        if self.config.restart_after_idle && !self.send.is_outstanding() && self.send.has_more() {
            let (idle, timeout) = (out.now.since(self.sent_at), self.retransmission.timeout(&self.config));
            if idle > timeout {
                // RFC 5681, section 4.1.
                self.congestion.idle(idle, timeout, out.now);
            }
        }
        if self.send_lost(out) {
            self.send_new(out);
        }
        if self.recovery.in_flight() == 0 {
            // New data was to tell whether the timeout was one, and none could go.
            self.recovery.settle();
            self.send_lost(out);
        }
    }

    /// Sends data that was never sent.
    fn send_new(&mut self, out: &mut Outbox) {
        if self.recovery.holds() {
            return;
        }
        self.send_size_probe(out);
        let options = self.clock.option_length();
        while self.recovery.flight.has_room() {
            let (window, governs) = (self.congestion.window(), self.congestion.governs_recovery());
            let limits = Limits {
                allowance: self.recovery.allowance(window, governs),
                segment: self.sizes.segment,
                message: self.sizes.message(options),
                no_delay: self.no_delay,
                corked: self.own().corked,
            };
            let Some(piece) = self.plan_new(&limits, out.now) else { return };
            if !self.send_piece(&piece, out) {
                return;
            }
            // A FIN alone asks nobody.
            #[cfg(test)]
            assert!(
                self.recovery.is_fast() || self.recovery.in_flight() <= window + 1,
                "more than the window went out"
            );
        }
    }

    /// What to send next within `limits` and the pace. If nothing is, the regulation learns why.
    fn plan_new(&mut self, limits: &Limits, now: Instant) -> Option<Piece> {
        let Some(piece) = self.send.plan(limits) else {
            let next = self.send.unsent().min(limits.segment);
            if limits.allowance >= limits.segment {
                self.congestion.held(Held::Application, self.recovery.in_flight());
            } else if limits.allowance < next && self.send.usable_window() >= next {
                self.congestion.held(Held::Window, self.recovery.in_flight());
            }
            return None;
        };
        let pace = self.congestion.pace(limits.segment, self.recovery.in_flight(), now);
        if pace >= piece.length {
            return Some(piece);
        }
        // The pace lets whole segments go, or nothing yet.
        self.send.plan(&Limits { message: pace, ..*limits }).filter(|_| pace > 0)
    }

    /// Sends a part of the queue and moves on behind it. `false`: it could not go now.
    pub(super) fn send_piece(&mut self, piece: &Piece, out: &mut Outbox) -> bool {
        let end = piece.sequence + piece.length + u32::from(piece.fin);
        let is_again = piece.sequence.is_before(self.send.highest);
        let was_outstanding = self.send.is_outstanding();
        let in_flight_before = self.recovery.in_flight();
        if !self.emit_piece(piece, out) {
            return false;
        }
        let bytes = piece.length + u32::from(piece.fin);
        let stamp = self.congestion.sent(bytes, in_flight_before, is_again, out.now);
        if is_again {
            self.retransmission.sent_again(1);
        }
        if !was_outstanding {
            self.retransmission.progress_at = out.now;
        }
        self.sent_at = out.now;
        self.recovery.sent(bytes, stamp, out.now);
        self.send.next = end;
        self.send.highest = self.send.highest.later(end);
        self.send.fin_sent |= piece.fin;
        true
    }

    /// Puts a part of the queue into a message and sends it.
    pub(super) fn emit_piece(&mut self, piece: &Piece, out: &mut Outbox) -> bool {
        let mut flags = TcpFlags::ACK;
        if piece.last && piece.length > 0 {
            // RFC 9293, MUST-61, SHLD-27: the segment that empties the queue.
            flags |= TcpFlags::PSH;
        }
        if piece.fin {
            flags |= TcpFlags::FIN;
        }
        let ahead = self.send.urgent.map_or(0, |end| end.since(piece.sequence).max(0));
        if ahead > 0 {
            flags |= TcpFlags::URG;
        }
        let urgent = ahead.min(i32::from(u16::MAX)) as u16;
        let Some(mut message) = self.message(piece.length as usize, out) else { return false };
        self.send.queue.share(&mut message, self.send.offset(piece.sequence), piece.length);
        if piece.length > self.sizes.segment {
            message.attributes.segment_size = self.sizes.segment as u16;
        }
        // Only new data may be marked: no retransmission and no probe of a closed window (RFC 3168, sections 6.1.5, 6.1.6).
        let is_new = piece.sequence.is_at_or_after(self.send.highest) && self.send.window > 0;
        if is_new && piece.length > 0 && self.ecn.agreed {
            message.attributes.ecn_capable = true;
            flags |= self.ecn.on_data();
        } else {
            flags |= self.ecn.echo();
        }
        let mut answer = Answer { sequence: piece.sequence, flags, urgent, ..self.standing(out.now) };
        if self.recovery.selective {
            // As far as the segment has room: no data makes way for reports (RFC 2018, section 3, wants them on all that
            // acknowledges; what comes out of order is also answered by itself).
            let room = self.sizes.segment.saturating_sub(piece.length) as usize;
            let most = (room.saturating_sub(4) / SackBlock::LEN).min(answer.options.sack_blocks_max());
            if most > 0 {
                answer.options.sack = self.receive.report(most);
            }
        }
        self.emit(&answer, message, out);
        true
    }

    /// Sends an acknowledgment by itself, or a probe of the peer's presence, numbered `sequence`.
    pub(super) fn send_bare(&mut self, sequence: SequenceNumber, out: &mut Outbox) -> bool {
        let Some(message) = self.message(0, out) else { return false };
        let flags = TcpFlags::ACK | self.ecn.echo();
        let mut answer = Answer { sequence, flags, ..self.standing(out.now) };
        if self.recovery.selective {
            answer.options.sack = self.receive.report(answer.options.sack_blocks_max());
        }
        self.emit(&answer, message, out);
        true
    }

    /// Sends our SYN, for the first time or again; with an acknowledgment if the peer's has come.
    pub(super) fn send_syn(&mut self, out: &mut Outbox) {
        let Some(mut message) = self.message(0, out) else { return };
        let has_peers = self.state != State::SynSent;
        let mut flags = TcpFlags::SYN;
        flags |= if has_peers {
            TcpFlags::ACK | Ecn::on_answer(self.ecn.agreed)
        } else {
            Ecn::on_syn(self.config.ecn, self.retransmission.attempts)
        };
        let offer = has_peers.then(|| super::options::Offer {
            segment_size: self.sizes.peer,
            window_scale: self.scaled.then_some(self.send.scale),
            timestamp: self.clock.recent(),
            selective: self.recovery.selective,
            ecn: self.ecn.agreed,
        });
        let clock = self.clock.value(out.now);
        let mut options = super::options::on_syn(&self.config, self.sizes.announced, clock, offer.as_ref());
        options.fast_open = self.renewal();
        let early = if has_peers { 0 } else { self.begin_early(&mut options) };
        self.send.queue.share(&mut message, 0, early);
        let window = self.window_of_syn();
        self.receive.edge = self.receive.edge.later(self.receive.next + window);
        let answer = Answer {
            sequence: self.send.unacknowledged,
            acknowledgment: self.receive.next,
            flags,
            window: window as u16,
            urgent: 0,
            options,
        };
        self.emit(&answer, message, out);
        let end = self.send.unacknowledged + 1;
        if self.send.is_outstanding() {
            self.retransmission.sent_again(1);
        } else {
            self.retransmission.sent(end, out.now);
            self.retransmission.progress_at = out.now;
            if self.state.transmits() {
                // Data may follow before the SYN is acknowledged, which is then the first of what is in flight.
                let stamp = self.congestion.sent(1, 0, false, out.now);
                self.recovery.sent(1, stamp, out.now);
            }
        }
        self.send.next = self.send.next.later(end + early);
        self.send.highest = self.send.highest.later(end + early);
        self.sent_at = out.now;
    }

    /// Sends a header alone, as it is. One that finds no room is not sent: it would only have said something sooner.
    pub(super) fn send_answer(&mut self, answer: &Answer, out: &mut Outbox) {
        if let Some(message) = self.message(0, out) {
            self.emit(answer, message, out);
        }
    }

    /// What stands in every header: where we are and how much we take. What it says is then no longer owed: one
    /// acknowledgment is enough for all that came (RFC 9293, MUST-58).
    fn standing(&mut self, now: Instant) -> Answer {
        if !matches!(self.owed, Owed::Alone(_)) {
            self.owed = Owed::Nothing;
        }
        Answer {
            acknowledgment: self.receive.next,
            window: self.receive.announce(),
            options: TcpOptions { timestamps: self.clock.stamp(now), ..TcpOptions::NONE },
            ..Answer::default()
        }
    }

    /// A message for `payload` bytes, if one may go now; else a later time is set.
    fn message(&mut self, payload: usize, out: &mut Outbox) -> Option<Message> {
        if out.room() == 0 {
            self.wake_at(out.now);
            return None;
        }
        if out.room_bytes() < payload + TcpHeader::LENGTH_MAX {
            self.wake_at(out.now + ROOM_WAIT);
            return None;
        }
        let message = out.message();
        if message.is_none() {
            self.wake_at(out.now + BUFFER_WAIT);
        }
        message
    }

    fn emit(&mut self, answer: &Answer, mut message: Message, out: &mut Outbox) {
        answer.push(&mut message, &self.ends);
        out.push(message);
    }

    /// Owes the peer an acknowledgment, unless a more urgent one is owed already.
    pub(super) fn owe(&mut self, owed: Owed) {
        self.owed = match (self.owed, owed) {
            (Owed::Nothing, new) => new,
            (Owed::By(one), Owed::By(other)) => Owed::By(one.min(other)),
            (Owed::Alone(one), Owed::Alone(other)) => Owed::Alone(one.max(other)),
            (Owed::By(_), new @ (Owed::Now | Owed::Alone(_))) | (Owed::Now, new @ Owed::Alone(_)) => new,
            (old @ Owed::Alone(_), Owed::Now | Owed::By(_)) | (old @ Owed::Now, Owed::Now | Owed::By(_)) => old,
            (old, Owed::Nothing) => old,
        };
    }

    /// Owes an acknowledgment that somebody else may have provoked: so many in a while and no more (RFC 5961 7-1).
    /// The count is the connection's own, so that it tells nothing about others.
    pub(super) fn challenge(&mut self, now: Instant) {
        let (period, most) = (self.config.challenge_period, self.config.challenges_max);
        let rare = self.rare();
        if now.since(rare.challenged_from) >= period {
            (rare.challenged_from, rare.challenges) = (now, 0);
        }
        if rare.challenges < most {
            rare.challenges += 1;
            self.owe(Owed::Alone(1));
        }
    }

    /// Wants to be called at `at`, or earlier.
    pub(super) fn wake_at(&mut self, at: Instant) {
        self.wake = time::earlier(self.wake, Some(at));
    }

    /// There is room again for whoever found too little: told when half of the budget is free.
    pub(super) fn wake_writer(&mut self, out: &mut Outbox) {
        if self.send.starved {
            self.tune_send(out);
        }
        if self.send.starved && self.send.room() >= self.send.budget as usize / 2 {
            self.send.starved = false;
            out.writable();
        }
    }

    /// The retransmission timer runs while something is outstanding (RFC 6298 5.1, RFC 6298 5.2), and while something cannot
    /// be sent (RFC 9293, MUST-36; MUST-60: so that nothing is held back for good).
    fn arm(&mut self, now: Instant) {
        let wants = match self.state {
            State::SynSent | State::SynReceived(_) => self.send.is_outstanding(),
            State::Closed | State::TimeWait { .. } => false,
            State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                // What only the pace, or an echo, holds back will go by itself.
                let is_held = self.congestion.deadline().is_some() || self.recovery.holds();
                self.send.is_outstanding() || (self.send.has_more() && !is_held)
            }
        };
        if !wants {
            self.retransmission.deadline = None;
        } else if self.retransmission.deadline.is_none() {
            self.retransmission.deadline = Some(now + self.retransmission.timeout(&self.config));
        }
    }

    /// The tail is probed if nothing comes back, where the peer would take it.
    fn wait_for_tail(&mut self, now: Instant) {
        let is_open = !matches!(self.state, State::SynReceived(_));
        let takes = self.config.tail_probes && self.state.transmits() && is_open && self.send.window > 0;
        if let Some(timer) = self.retransmission.deadline.filter(|_| takes) {
            self.recovery.wait_for_tail(self.sizes.segment, self.retransmission.smoothed(), timer, now);
        }
    }

    /// Ends the connection with a reset.
    pub(super) fn abort(&mut self, out: &mut Outbox) {
        match self.state {
            State::SynSent | State::TimeWait { .. } | State::Closed => {}
            State::SynReceived(_)
            | State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck => self.send_reset(out),
        }
        self.become_closed();
    }

    /// Ends the connection and says why (RFC 9293, MUST-12).
    pub(super) fn finish_with(&mut self, event: Event, out: &mut Outbox) {
        self.become_closed();
        out.tell(Control::Event(event));
    }

    /// There is no connection any more: nothing is kept, no timer runs.
    pub(super) fn become_closed(&mut self) {
        self.state = State::Closed;
        self.forget();
        self.owed = Owed::Nothing;
    }

    /// Both directions are done: the wait begins, or begins anew (RFC 9293, MUST-13).
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait { until: now + 2 * self.config.segment_lifetime_max };
        self.forget();
    }

    fn forget(&mut self) {
        self.send.give_up();
        self.recovery.clear(self.send.highest);
        self.receive.early.clear();
        self.receive.fin = None;
        self.retransmission.deadline = None;
        self.wake = None;
    }

    /// Once the application has closed and the connection is over, or only waits, the path may go.
    pub(super) fn settle(&mut self, out: &mut Outbox) {
        if !self.closed || self.finished {
            return;
        }
        match self.state {
            State::Closed => {}
            State::TimeWait { until } => {
                let waited = (2 * self.config.segment_lifetime_max).saturating_sub(until.since(out.now));
                let offset = self.clock.offset();
                let (next, expected) = (self.send.highest, self.receive.next);
                let entry = Entry::new(&self.ends, next, expected, self.clock.recent(), offset, waited);
                out.linger(entry.to_record().as_bytes());
            }
            State::SynSent
            | State::SynReceived(_)
            | State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck => return,
        }
        self.finished = true;
        out.finish();
    }
}
