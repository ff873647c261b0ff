//! A segment's acknowledgment (RFC 9293, section 3.10.7.4, fifth check; RFC 5681): whether it can be true, what it frees,
//! what it says about losses and the peer's window, and what state follows.

use super::congestion::{Loss, Progress};
use super::drops;
use super::recovery::{Heard, News};
use super::segment::{Answer, Segment};
use super::session::TcpSession;
use super::state::State;
use xylem_core::{Control, DropReason, Duration, Instant, Outbox};
use xylem_wire::{SackBlocks, TcpFlags, TcpOptions};

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
            self.after_acknowledgment(out.now);
            return Ok(());
        }
        // RFC 5961 5.2 (RFC 9293, MAY-12): neither of the future nor of long ago.
        let ago = self.send.unacknowledged.since(acknowledgment);
        if acknowledgment.is_after(self.send.highest) || ago > self.send.window_max.max(1) as i32 {
            self.challenge(out.now);
            return Err(&drops::BAD_ACKNOWLEDGMENT);
        }
        if ago > 0 {
            // What it reports besides may still be news.
            if !segment.sack.is_empty() {
                self.hear_of_losses(segment, false, out);
            }
            return Ok(());
        }
        if ago < 0 {
            self.progress(segment, out);
        } else {
            self.hear_of_losses(segment, self.is_duplicate(segment), out);
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
            // The probing is over, by an update that was perhaps lost before (RFC 9293, MUST-35); what waits goes out at once, with a fresh timer.
            self.retransmission.deadline = None;
            self.retransmission.attempts = 0;
        }
    }

    /// The window a segment offers, in bytes (RFC 7323 2.3-1; RFC 9293, REC-1).
    fn offered(&self, segment: &Segment) -> u32 {
        u32::from(segment.window) << self.send.scale
    }

    /// RFC 5681, section 2: what counts as a duplicate acknowledgment.
    fn is_duplicate(&self, segment: &Segment) -> bool {
        let in_flight = self.send.in_flight() > 0 && self.send.window > 0;
        in_flight && segment.length() == 0 && self.offered(segment) == self.send.window
    }

    /// New data, or our SYN or FIN, is acknowledged.
    pub(super) fn progress(&mut self, segment: &Segment, out: &mut Outbox) {
        let acknowledgment = segment.acknowledgment;
        let is_syn = self.send.first.is_after(self.send.unacknowledged);
        let syn_was_lost = is_syn && self.retransmission.attempts > 0;
        let bytes = acknowledgment.since(self.send.unacknowledged).max(0) as u32;
        self.send.acknowledge(acknowledgment);
        // RFC 6298 5.3: it begins anew where this ends, or RFC 6298 5.2: it stays off.
        self.retransmission.deadline = None;
        let measured = self.hear_of_losses(segment, false, out);
        // Only here, where something new is acknowledged (RFC 7323 4.1).
        let echo = self.clock.round_trip(segment, out.now);
        self.retransmission.acknowledged(acknowledgment, self.send.highest, measured, echo, out.now);
        if syn_was_lost {
            self.retransmission.opened(true);
        }
        if let Some(round_trip) = self.retransmission.smoothed().filter(|_| is_syn) {
            self.recovery.opened(round_trip, out.now);
        }
        self.path_progress(bytes, out.now);
        self.early_progress();
        self.confirm(out);
        self.wake_writer(out);
    }

    /// What the acknowledgment says about what is in flight, and what the congestion control hears of it. Returns the round
    /// trip it measures.
    fn hear_of_losses(&mut self, segment: &Segment, is_duplicate: bool, out: &Outbox) -> Option<Duration> {
        let knows_blocks = self.recovery.selective;
        let heard = Heard {
            acknowledgment: segment.acknowledgment,
            blocks: if knows_blocks { &segment.sack } else { &SackBlocks::NONE },
            is_duplicate,
            echo: self.clock.echo(segment),
            can_try: self.send.unsent() > 0 && self.send.usable_window() >= self.sizes.segment,
            segment: self.sizes.segment,
            smoothed: self.retransmission.smoothed(),
            clock: &self.clock,
            now: out.now,
        };
        let news = self.recovery.hear(&heard, &mut self.congestion.rate);
        self.regulate(&news, out);
        news.round_trip
    }

    /// Tells the congestion control what has come to be known.
    pub(super) fn regulate(&mut self, news: &News, out: &Outbox) {
        let now = out.now;
        // What limited transmit added beyond the window does not count as flight (RFC 5681, section 3.2, step 2).
        let in_flight = news.outstanding_before.min(self.congestion.window());
        let loss = Loss { now, in_flight, bytes: news.lost };
        self.congestion.rate.lost(news.lost);
        if news.is_undone {
            self.congestion.undo();
        }
        if news.has_left {
            self.congestion.recovered(self.recovery.in_flight(), now);
        }
        if news.is_tail_repaired {
            // RFC 8985 7.4: the probe has hidden a loss, which counts all the same.
            self.congestion.lost(&loss);
            self.congestion.recovered(self.recovery.in_flight(), now);
            self.ecn.reduced(self.send.highest);
        }
        if news.has_entered {
            self.path_lost(news.lost);
            self.congestion.lost(&loss);
            self.ecn.reduced(self.send.highest);
            // Reduced once (RFC 6675 5-4.2); what goes again is waited for from now on (RFC 6675 5-4.3).
            self.retransmission.deadline = None;
        }
        // What duplicates only let guess is counted when it is acknowledged.
        if news.acknowledged > 0 || (news.delivered > 0 && self.recovery.selective) {
            let in_order = Progress::in_order(now, news.delivered, news.in_flight_before);
            self.congestion.acknowledged(&Progress {
                acknowledged: news.acknowledged,
                lost: news.lost,
                in_flight: self.recovery.in_flight(),
                round_trip: news.round_trip,
                round_trip_min: self.recovery.shortest(),
                in_recovery: self.recovery.is_fast() || news.has_left,
                smoothed: self.retransmission.smoothed(),
                ..in_order
            });
        }
        self.recovery.regulate(news, self.congestion.threshold(), self.sizes.segment);
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
            // RFC 7323 3.2-2: on a reset too, though nobody needs it there.
            options: TcpOptions { timestamps: self.clock.stamp(out.now), ..TcpOptions::NONE },
            ..Answer::default()
        };
        self.send_answer(&answer, out);
    }
}
