//! What goes out again, and what goes out only to provoke an answer: lost data as far as the recovery lets it, the tail
//! when nothing comes back, and what a closed window does not take. Whether something is lost, is `recovery`'s to say.

use super::recovery::Wait;
use super::send::{Limits, Piece};
use super::session::TcpSession;
#[cfg(test)]
use super::state::State;
use xylem_core::{Instant, Outbox};
use xylem_wire::SequenceNumber;

impl TcpSession {
    /// Sends again what is lost, as far as it may go. Says whether nothing of it is left, so that new data has its turn
    /// (RFC 6675 4-NextSeg-2).
    pub(super) fn send_lost(&mut self, out: &mut Outbox) -> bool {
        while let Some((place, bytes)) = self.recovery.next_again() {
            let Some(piece) = self.plan_again(place, bytes, out.now) else { return false };
            if !self.send_again(place, &piece, out) {
                return false;
            }
        }
        true
    }

    /// What of the `bytes` lost at `place` may go now: whole segments, or all that is left, inside of the window as it is
    /// (RFC 9293, SHLD-16).
    fn plan_again(&mut self, place: u64, bytes: u32, now: Instant) -> Option<Piece> {
        let whole = self.piece_at(place, bytes);
        let segment = self.sizes.segment;
        let mut allowance = self.recovery.allowance(self.congestion.window(), self.congestion.governs_recovery());
        if self.recovery.in_flight() == 0 || self.recovery.owes_oldest() {
            // With nothing in the network nothing would ever come back to allow more.
            allowance = allowance.max(segment);
        }
        let edge = self.send.unacknowledged + self.send.window;
        let room = edge.since(whole.sequence).max(0) as u32;
        let most = allowance.min(room).min(self.sizes.message(self.clock.option_length()));
        let most = if most > 0 { most.min(self.congestion.pace(segment, self.recovery.in_flight(), now)) } else { 0 };
        if whole.length <= most {
            return Some(whole);
        }
        let length = most - most % segment;
        (length > 0).then_some(Piece { length, last: false, fin: false, ..whole })
    }

    /// The `bytes` sequence numbers at `place` as a piece of the queue, with the FIN if that is among them.
    fn piece_at(&self, place: u64, bytes: u32) -> Piece {
        let sequence = self.recovery.flight.number(place);
        let data = self.send.fin_number().since(sequence).max(0) as u32;
        let length = bytes.min(data);
        Piece { sequence, length, last: length == data, fin: bytes > data }
    }

    /// Sends a piece of the flight again. `false`: it could not go now.
    fn send_again(&mut self, place: u64, piece: &Piece, out: &mut Outbox) -> bool {
        let in_flight_before = self.recovery.in_flight();
        if !self.emit_piece(piece, out) {
            return false;
        }
        let bytes = piece.length + u32::from(piece.fin);
        let rate = self.congestion.sent(bytes, in_flight_before, true, out.now);
        self.recovery.sent_again(place, bytes, rate, self.stamp(out), out.now);
        self.count_again(piece);
        self.sent_at = out.now;
        true
    }

    fn count_again(&mut self, piece: &Piece) {
        self.retransmission.sent_again(piece.length.div_ceil(self.sizes.segment).max(1));
    }

    /// What stands as our timestamp on segments that go now, if timestamps are agreed.
    fn stamp(&self, out: &Outbox) -> Option<SequenceNumber> {
        self.clock.agreed.then(|| self.clock.value(out.now))
    }

    /// Does what the recovery has waited for.
    pub(super) fn recovery_is_due(&mut self, wait: Wait, out: &mut Outbox) {
        match wait {
            Wait::Tail => self.probe_tail(out),
            // What is new goes when this verb ends.
            Wait::Echo => {}
            Wait::Reordering => {
                let smoothed = self.retransmission.smoothed();
                let news = self.recovery.suspects_are_due(self.sizes.segment, smoothed, out.now);
                self.regulate(&news, out);
            }
        }
    }

    /// Sends one segment beyond what the congestion window allows: a new one, or if there is none or the peer takes none, the
    /// last one again (RFC 8985 7.3-1).
    fn probe_tail(&mut self, out: &mut Outbox) {
        if self.recovery.flight.is_empty() || self.send.window == 0 {
            return;
        }
        let segment = self.sizes.segment;
        let limits = Limits { allowance: segment, segment, message: segment, no_delay: true, corked: false };
        let may_go = self.recovery.flight.has_room() && !self.recovery.holds();
        let new = self.send.plan(&limits).filter(|_| may_go);
        let has_probed = match new {
            Some(piece) => self.send_piece(&piece, out),
            None => {
                let (base, end) = (self.recovery.flight.base(), self.recovery.flight.end());
                let bytes = segment + u32::from(self.send.fin_sent);
                let place = end.saturating_sub(u64::from(bytes)).max(base);
                // No more than a segment, and the FIN.
                let piece = self.piece_at(place, (end - place) as u32);
                self.send_again(place, &piece, out)
            }
        };
        if has_probed {
            self.recovery.probed(new.is_none());
            // The retransmission timer begins anew (RFC 8985 7.3-2).
            self.retransmission.deadline = None;
        }
    }

    /// Probes a peer whose window lets nothing through: with what it lets through, if only that is too little to be sent
    /// otherwise, or else with one byte beyond it (RFC 9293, MUST-36, SHLD-29, SHLD-30).
    pub(super) fn probe(&mut self, out: &mut Outbox) {
        let (sequence, queued) = (self.send.unacknowledged, self.send.queue.len());
        let length = queued.min(self.send.window.max(1)).min(self.sizes.segment);
        let last = length == queued;
        let piece = Piece { sequence, length, last, fin: last && self.send.fin };
        if length == 0 && !piece.fin || !self.emit_piece(&piece, out) {
            return;
        }
        let bytes = length + u32::from(piece.fin);
        let end = sequence + bytes;
        self.count_again(&piece);
        if !self.send.is_outstanding() {
            self.retransmission.progress_at = out.now;
        }
        let again = bytes.min(self.send.in_flight());
        let rate = self.congestion.sent(bytes, self.recovery.in_flight(), again > 0, out.now);
        if again > 0 {
            self.recovery.sent_again(self.recovery.flight.base(), again, rate, self.stamp(out), out.now);
        }
        self.send.highest = self.send.highest.later(end);
        self.send.fin_sent |= piece.fin;
        if self.send.window > 0 && bytes > again {
            self.recovery.sent(bytes - again, rate, out.now);
            self.send.next = end;
        }
    }
}

#[cfg(test)]
impl TcpSession {
    /// Holds the flight against the numbers of the sending half.
    ///
    /// # Panics
    /// If they say different things, or the flight is wrong in itself.
    pub(super) fn check(&self) {
        self.recovery.check();
        let flight = &self.recovery.flight;
        if self.state.transmits() {
            assert_eq!(flight.number(flight.base()), self.send.unacknowledged);
            assert_eq!(flight.number(flight.end()), self.send.next);
        }
        if let State::Closed | State::TimeWait { .. } = self.state {
            assert!(flight.is_empty());
        }
    }
}
