//! A segment arrives (RFC 9293, section 3.10.7): the tests in their order, state by state. What cannot be is dropped with
//! a reason; what may come from somebody else is challenged rather than believed (RFC 5961).

use super::drops;
use super::ecn::EcnUse;
use super::gather;
use super::options::Offer;
use super::receive::Place;
use super::segment::Segment;
use super::session::{Owed, TcpSession};
use super::state::{Origin, State};
use xylem_core::{Checksum, Control, Event, Message, Outbox, Verdict};
use xylem_wire::TcpFlags;

/// Duplicate acknowledgments for one message that came out of order, however many segments it stands for: so many tell a
/// loss (RFC 5681, section 3.2).
const DUPLICATES_MAX: usize = 3;

impl TcpSession {
    /// What becomes of a segment and its data, which `message` holds.
    pub(super) fn arrive(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        match self.state {
            State::Closed => {
                self.answer_with_reset(segment, out);
                Verdict::Drop(&drops::CLOSED)
            }
            State::SynSent => self.arrive_in_syn_sent(segment, message, out),
            State::SynReceived(_)
            | State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait { .. } => self.arrive_in_window(segment, message, out),
        }
    }

    /// RFC 9293, section 3.10.7.3.
    fn arrive_in_syn_sent(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        let acknowledges = segment.has(TcpFlags::ACK);
        // With data in our SYN the answer may acknowledge some of it or none (RFC 7413, section 4.1.3).
        let is_possible = segment.acknowledgment.is_after(self.send.unacknowledged)
            && segment.acknowledgment.is_at_or_before(self.send.highest);
        if acknowledges && !is_possible || !self.send.is_outstanding() {
            self.answer_with_reset(segment, out);
            return Verdict::Drop(&drops::BAD_HANDSHAKE);
        }
        if segment.has(TcpFlags::RST) {
            if !acknowledges {
                return Verdict::Drop(&drops::DOUBTFUL_RESET);
            }
            self.finish_with(Event::Refused, out);
            return Verdict::Drop(&drops::RESET);
        }
        if !segment.has(TcpFlags::SYN) {
            return Verdict::Drop(&drops::BAD_HANDSHAKE);
        }
        self.heard(out.now);
        self.receive.begin(segment.sequence, self.window_of_syn());
        let mut offer = Offer::of(segment, &self.config, &self.ends);
        // Where both began at once, both must have asked.
        offer.ecn &= self.config.ecn == EcnUse::On;
        self.agree(&offer, out.now);
        self.send.begin_window(segment.sequence, segment.acknowledgment, segment.window);
        if !acknowledges {
            // Both ends began at once (RFC 9293, MUST-10): our SYN goes again, now with an acknowledgment.
            self.state = State::SynReceived(Origin::Active);
            self.retransmission.deadline = None;
            self.send_syn(out);
            return Verdict::Keep;
        }
        self.judge_early(segment, out);
        self.progress(segment, out);
        self.opened(out);
        self.owe(Owed::Now);
        // Data with the SYN begins behind it; what there is to do has been done with the SYN itself.
        let rest = Segment { sequence: segment.sequence + 1, flags: segment.flags.without(TcpFlags::SYN), ..*segment };
        self.take_contents(&rest, message, out)
    }

    /// RFC 9293, section 3.10.7.4, with the tests of RFC 5961 and RFC 7323.
    fn arrive_in_window(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        if self.is_our_syn(segment) {
            return self.arrive_our_syn(segment, message, out);
        }
        let segment = &self.without_known_syn(segment);
        let is_reset = segment.has(TcpFlags::RST);
        // Resets need no timestamp (RFC 7323 5.2-2); else one that is missing (RFC 7323 3.2-3) or old (RFC 7323 5.3-R1)
        // drops the segment.
        if self.clock.agreed && !is_reset {
            if segment.timestamps.is_none() {
                if segment.has(TcpFlags::SYN) {
                    // A peer that has forgotten us may have forgotten its clock too, and must be told (RFC 5961 4.2).
                    self.challenge(out.now);
                    return Verdict::Drop(&drops::DOUBTFUL_SYN);
                }
                return Verdict::Drop(&drops::NO_TIMESTAMP);
            }
            if self.clock.is_old(segment, out.now) {
                self.challenge(out.now);
                return Verdict::Drop(&drops::OLD_TIMESTAMP);
            }
        }
        if !self.receive.accepts(segment) {
            return self.decline(segment, out);
        }
        if is_reset {
            return self.arrive_reset(segment, out);
        }
        self.heard(out.now);
        if segment.has(TcpFlags::SYN) {
            // RFC 5961 4.2.
            self.challenge(out.now);
            return Verdict::Drop(&drops::DOUBTFUL_SYN);
        }
        if !segment.has(TcpFlags::ACK) {
            return Verdict::Drop(&drops::NO_ACKNOWLEDGMENT);
        }
        let (acknowledged, before) = (self.receive.acknowledged, self.before());
        if let Err(reason) = self.acknowledge(segment, out) {
            return Verdict::Drop(reason);
        }
        // Only now, though RFC 7323, section 4.3, has it earlier: a clock that is believed of whoever cannot even name what
        // is acknowledged makes the peer's own segments look old.
        self.clock.see(segment, acknowledged, out.now);
        self.hear_echo(segment, before, out);
        self.take_contents(segment, message, out)
    }

    /// Both ends began at once, and the peer's SYN comes again with the acknowledgment of ours: what is news is the
    /// acknowledgment (RFC 9293, MUST-10 and figure 8).
    fn without_known_syn(&self, segment: &Segment) -> Segment {
        let is_known = self.state == State::SynReceived(Origin::Active)
            && segment.has(TcpFlags::SYN | TcpFlags::ACK)
            && !segment.has(TcpFlags::RST)
            && segment.sequence + 1 == self.receive.next;
        if !is_known {
            return *segment;
        }
        Segment { sequence: segment.sequence + 1, flags: segment.flags.without(TcpFlags::SYN), ..*segment }
    }

    /// The segment is outside of the window: resets are ignored, everything else is answered with where we stand. What
    /// the peer repeats must be answered however often it comes; what somebody else could send is answered so many times.
    fn decline(&mut self, segment: &Segment, out: &Outbox) -> Verdict {
        if segment.has(TcpFlags::RST) {
            // RFC 5961 3.2-1.
            return Verdict::Drop(&drops::OUTSIDE_WINDOW);
        }
        if matches!(self.state, State::TimeWait { .. }) && segment.has(TcpFlags::FIN) {
            self.enter_time_wait(out.now);
        }
        let is_known = segment.end().is_at_or_before(self.receive.next);
        if segment.length() == 0 || segment.has(TcpFlags::SYN) {
            // RFC 5961 4.2: a SYN wherever it stands.
            self.challenge(out.now);
        } else {
            if is_known && self.receive.was_in_window(segment.sequence) {
                // Our acknowledgment was lost, and the peer has sent again. Echoing its first try would tell it a round
                // trip as long as its timeout, and so a longer timeout, and so on.
                self.clock.see(segment, self.receive.acknowledged, out.now);
            }
            if is_known && segment.payload > 0 {
                self.receive.note_doubled(segment.sequence, segment.sequence + segment.payload);
            }
            self.owe(Owed::Alone(1));
        }
        Verdict::Drop(if is_known { &drops::DUPLICATE } else { &drops::OUTSIDE_WINDOW })
    }

    /// A reset inside the window counts only with exactly the number we expect (RFC 5961 3.2-2; elsewhere RFC 5961 3.2-3).
    /// What data it brings is not looked at (RFC 9293, SHLD-2).
    fn arrive_reset(&mut self, segment: &Segment, out: &mut Outbox) -> Verdict {
        if let State::TimeWait { .. } = self.state {
            // RFC 1337: a late reset must not end the wait.
            return Verdict::Drop(&drops::TIME_WAIT);
        }
        if segment.sequence != self.receive.next {
            if self.receive.is_in_window(segment.sequence) {
                self.challenge(out.now);
            }
            return Verdict::Drop(&drops::DOUBTFUL_RESET);
        }
        self.end_early(true, out);
        match self.state {
            State::SynReceived(Origin::Active) => self.finish_with(Event::Refused, out),
            State::SynReceived(Origin::Passive | Origin::Early)
            | State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::SynSent => self.finish_with(Event::Reset, out),
            // Both sides were done with it; only the answer to our FIN is missing.
            State::Closing | State::LastAck if self.send.queue.len() > 0 => self.finish_with(Event::Reset, out),
            State::Closing | State::LastAck | State::TimeWait { .. } | State::Closed => self.become_closed(),
        }
        Verdict::Drop(&drops::RESET)
    }

    /// The acknowledgment has been dealt with: urgent pointer, data and FIN remain.
    pub(super) fn take_contents(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        if !self.state.receives() {
            if segment.payload == 0 {
                return Verdict::Keep;
            }
            self.owe(Owed::Now);
            return Verdict::Drop(if self.state == State::Closed { &drops::CLOSED } else { &drops::AFTER_FIN });
        }
        if segment.has(TcpFlags::URG) && self.receive.note_urgent(segment.sequence + u32::from(segment.urgent)) {
            // RFC 9293, MUST-30, MUST-31, MUST-32.
            out.tell(Control::Event(Event::Urgent));
        }
        if self.closed && segment.end().is_after(self.receive.next) && segment.payload > 0 {
            // RFC 9293, SHLD-3; RFC 2525, section 2.17: nobody will read it, and the peer shall know.
            self.abort(out);
            return Verdict::Drop(&drops::RECEIVE_CLOSED);
        }
        self.receive.note_fin(segment);
        let verdict = if segment.payload > 0 { self.take_data(segment, message, out) } else { Verdict::Keep };
        self.advance(out);
        if segment.payload == 0 && self.receive.fin.is_some() {
            // The end came before what lies in front of it.
            self.owe(Owed::Alone(1));
        }
        verdict
    }

    /// Puts the segment's data where it belongs.
    fn take_data(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        let pieces = gather::pieces(message, segment.payload as usize);
        let size = u32::from(message.attributes.segment_size).min(segment.payload);
        self.receive.measure(size.max(segment.payload.div_ceil(pieces as u32)));
        let begin = segment.sequence.later(self.receive.next);
        message.attributes.urgent = self.receive.urgent.is_some_and(|end| begin.is_before(end));
        message.attributes.checksum = Checksum::Verified;
        let fills_hole = !self.receive.early.is_empty();
        let is_cut = (segment.sequence + segment.payload).is_after(self.receive.edge);
        match self.receive.place(segment, message, self.config.early_pieces_max) {
            Place::Next if !self.receive.takes(message) => {
                self.owe(Owed::Alone(1));
                Verdict::Drop(&drops::CRUMBS)
            }
            Place::Next => {
                self.note_marks(segment, message);
                self.receive.hand_up(message.len() as u32);
                if fills_hole || is_cut || self.receive.owes_acknowledgment() {
                    // RFC 9293, SHLD-19; RFC 5681, section 4.2.
                    self.owe(Owed::Now);
                } else {
                    self.owe(Owed::By(out.now + self.config.acknowledgment_delay));
                }
                if self.receive.discards { Verdict::Drop(&drops::RECEIVE_CLOSED) } else { Verdict::Pass }
            }
            Place::Early => {
                // RFC 9293, MAY-13.
                self.note_marks(segment, message);
                // One that says what has come is enough; without that, as many tell a loss.
                let count = if self.recovery.selective { 1 } else { pieces.min(DUPLICATES_MAX) };
                self.owe(Owed::Alone(count as u8));
                Verdict::Keep
            }
            Place::Known => {
                self.owe(Owed::Alone(1));
                Verdict::Drop(&drops::DUPLICATE)
            }
            Place::Outside => {
                self.owe(Owed::Alone(1));
                Verdict::Drop(&drops::OUTSIDE_WINDOW)
            }
            Place::Full => {
                self.owe(Owed::Alone(1));
                Verdict::Drop(&drops::EARLY_FULL)
            }
        }
    }

    /// Hands up what has become next, as far as there is room above, and then the peer's FIN.
    pub(super) fn advance(&mut self, out: &mut Outbox) {
        while self.receive.early.is_ready(self.receive.next) {
            if out.room_above() == 0 {
                self.wake_at(out.now);
                return;
            }
            let Some(message) = self.receive.early.take(self.receive.next) else { break };
            if message.is_empty() {
                out.dropped(&drops::DUPLICATE);
                continue;
            }
            self.receive.hand_up(message.len() as u32);
            self.owe(Owed::Now);
            if !self.receive.discards {
                out.raise(message);
            }
        }
        if self.state.receives() && self.receive.take_fin() {
            self.peer_closed(out);
        }
    }

    /// The peer's FIN is next, and taken.
    fn peer_closed(&mut self, out: &mut Outbox) {
        self.owe(Owed::Now);
        self.receive.early.clear();
        match self.state {
            State::Established => self.state = State::CloseWait,
            // Had our FIN been acknowledged, by this segment or before, the state would be FIN-WAIT-2.
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 { .. } => self.enter_time_wait(out.now),
            State::SynSent
            | State::SynReceived(_)
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait { .. }
            | State::Closed => unreachable!("a FIN is taken only where the peer may send"),
        }
        out.tell(Control::Event(Event::PeerClosed));
    }

    /// The handshake is over.
    pub(super) fn opened(&mut self, out: &mut Outbox) {
        let told = self.state == State::SynReceived(Origin::Early);
        if !told {
            // What went with our SYN and was not taken goes again as if for the first time.
            (self.send.next, self.send.highest) = (self.send.unacknowledged, self.send.unacknowledged);
            out.tell(Control::Event(Event::Opened));
        }
        self.end_early(false, out);
        self.state = if self.send.fin { State::FinWait1 } else { State::Established };
    }
}
