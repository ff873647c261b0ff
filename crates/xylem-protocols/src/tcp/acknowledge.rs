//! A segment's acknowledgment (RFC 9293, section 3.10.7.4, fifth check; RFC 5681; RFC 6582): whether it can be true, what
//! it frees, what it says about losses and the peer's window, and what state follows.

use super::congestion::{Loss, Progress};
use super::drops;
use super::recovery::Step;
use super::segment::{Answer, Segment};
use super::session::TcpSession;
use super::state::State;
use xylem_core::{Control, DropReason, Duration, Instant, Outbox};
use xylem_wire::TcpFlags;

/// Those below hear at most so often that the peer is alive: neighbours count in tens of seconds (RFC 4861, section 10).
const CONFIRM_EVERY: Duration = Duration::from_secs(1);

impl TcpSession {
    /// Takes an acceptable segment's acknowledgment and window.
    ///
    /// # Errors
    /// The reason to drop the segment: it acknowledges what cannot be.
    pub(super) fn acknowledge(&mut self, segment: &Segment, out: &mut Outbox) -> Result<(), &'static DropReason> {
        let acknowledgment = segment.acknowledgment;
        if let State::SynReceived(_) = self.state {
            if !self.completes_handshake(segment) {
                self.answer_with_reset(segment, out);
                return Err(&drops::BAD_ACKNOWLEDGMENT);
            }
            self.progress(segment, out);
            self.opened(out);
            self.take_window(segment);
            return Ok(());
        }
        // RFC 5961, section 5.2 (RFC 9293, MAY-12): neither of the future nor of long ago.
        let ago = self.send.unacknowledged.since(acknowledgment);
        if acknowledgment.is_after(self.send.highest) || ago > self.send.window_max.max(1) as i32 {
            self.challenge(out.now);
            return Err(&drops::BAD_ACKNOWLEDGMENT);
        }
        if ago > 0 {
            return Ok(());
        }
        if ago < 0 {
            self.progress(segment, out);
        } else if self.is_duplicate(segment) {
            self.duplicate(out);
        }
        self.take_window(segment);
        if self.send.window == 0 && !self.closed {
            // The peer answers, so it is there (RFC 9293, MUST-37, SHLD-17). What the application has left behind is not
            // probed for ever.
            self.retransmission.progress_at = out.now;
        }
        self.after_acknowledgment(out.now);
        Ok(())
    }

    /// Whether the segment acknowledges our SYN, which is all that was sent.
    fn completes_handshake(&self, segment: &Segment) -> bool {
        segment.acknowledgment.is_after(self.send.unacknowledged)
            && segment.acknowledgment.is_at_or_before(self.send.highest)
    }

    fn take_window(&mut self, segment: &Segment) {
        let window = self.offered(segment);
        let was = self.send.window;
        if self.send.take_window(segment.sequence, segment.acknowledgment, window) && was == 0 {
            // The probing is over; what waits goes out at once, with a fresh timer.
            self.retransmission.deadline = None;
            self.retransmission.attempts = 0;
        }
    }

    /// The window a segment offers, in bytes (RFC 7323, section 2.3; REC-1 of RFC 9293).
    fn offered(&self, segment: &Segment) -> u32 {
        u32::from(segment.window) << self.send.scale
    }

    /// RFC 5681, section 2: what counts as a duplicate acknowledgment.
    fn is_duplicate(&self, segment: &Segment) -> bool {
        let in_flight = self.send.in_flight() > 0 && self.send.window > 0;
        in_flight && segment.length() == 0 && self.offered(segment) == self.send.window
    }

    fn duplicate(&mut self, out: &mut Outbox) {
        let (unacknowledged, highest) = (self.send.unacknowledged, self.send.highest);
        if self.recovery.duplicate(unacknowledged, highest, self.sizes.segment) == Step::Enter {
            // What limited transmit added beyond the window does not count as flight (RFC 5681, section 3.2, step 2).
            let in_flight = self.send.in_flight().min(self.congestion.window());
            self.congestion.lost(&Loss { now: out.now, in_flight, bytes: self.sizes.segment.min(in_flight) });
            self.ecn.reduced(self.send.highest);
            self.send_oldest_again(out);
        }
    }

    /// New data, or our SYN or FIN, is acknowledged.
    pub(super) fn progress(&mut self, segment: &Segment, out: &mut Outbox) {
        let acknowledgment = segment.acknowledgment;
        let bytes = acknowledgment.since(self.send.unacknowledged) as u32;
        let in_flight = self.send.in_flight();
        let syn_was_lost = self.send.first.is_after(self.send.unacknowledged) && self.retransmission.attempts > 0;
        self.send.acknowledge(acknowledgment);
        let echo = self.clock.round_trip(segment, out.now);
        self.retransmission.acknowledged(acknowledgment, echo, out.now);
        if syn_was_lost {
            self.retransmission.opened(true);
        }
        let step = self.recovery.progress(acknowledgment, bytes, self.sizes.segment);
        if step != (Step::Again { first: false }) {
            self.retransmission.deadline = None;
        }
        match step {
            Step::Go => {
                let limited = self.is_window_used(in_flight);
                self.congestion.acknowledged(&Progress { limited, ..Progress::in_order(out.now, bytes, in_flight) });
            }
            Step::Again { .. } => self.send_oldest_again(out),
            Step::Leave => self.congestion.recovered(self.send.in_flight(), out.now),
            Step::Enter => unreachable!("new data acknowledged is no loss"),
        }
        self.confirm(out);
        self.wake_writer(out);
    }

    /// Whether `in_flight` bytes were as much as the congestion window let out, or in slow start, whose window runs ahead,
    /// half of it.
    fn is_window_used(&self, in_flight: u32) -> bool {
        let window = self.congestion.window();
        let used = if window < self.congestion.threshold() {
            in_flight.saturating_mul(2)
        } else {
            in_flight.saturating_add(2 * self.sizes.segment)
        };
        used >= window
    }

    /// Tells those below that the peer is there.
    fn confirm(&mut self, out: &mut Outbox) {
        if out.now.since(self.confirmed_at) >= CONFIRM_EVERY {
            self.confirmed_at = out.now;
            out.advise(Control::Confirmed);
        }
    }

    /// Where our FIN is acknowledged, the next state follows.
    fn after_acknowledgment(&mut self, now: Instant) {
        if !self.send.fin_is_acknowledged() {
            return;
        }
        match self.state {
            State::FinWait1 => {
                let until = self.closed.then(|| now + self.config.orphan_wait);
                self.state = State::FinWait2 { until };
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.become_closed(),
            State::SynSent
            | State::SynReceived(_)
            | State::Established
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::TimeWait { .. }
            | State::Closed => {}
        }
    }

    /// The reset that answers a segment as if there were no connection.
    pub(super) fn answer_with_reset(&mut self, segment: &Segment, out: &mut Outbox) {
        if let Some(answer) = segment.answering_reset() {
            self.send_answer(&answer, out);
        }
    }

    /// A reset from us: the connection is given up.
    pub(super) fn send_reset(&mut self, out: &mut Outbox) {
        let answer = Answer {
            sequence: self.send.bare_number(),
            acknowledgment: self.receive.next,
            flags: TcpFlags::RST | TcpFlags::ACK,
            ..Answer::default()
        };
        self.send_answer(&answer, out);
    }
}
