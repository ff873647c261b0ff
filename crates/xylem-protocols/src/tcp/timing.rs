//! Time passes: what is due, and what a connection waits for. A late call does no harm, and neither does one for no reason.

use super::congestion::Loss;
use super::fast_open::EARLY_WAIT;
use super::session::{Owed, TcpSession};
use super::state::{Origin, State};
use xylem_core::time::earlier;
use xylem_core::{Control, Event, Instant, Outbox};

impl TcpSession {
    /// When something is due next.
    pub(super) fn soonest(&self) -> Option<Instant> {
        let mut soonest = earlier(self.wake, self.retransmission.deadline);
        soonest = earlier(soonest, self.recovery.deadline());
        soonest = earlier(soonest, self.congestion.deadline());
        if let Owed::By(at) = self.owed {
            soonest = earlier(soonest, Some(at));
        }
        soonest = earlier(soonest, self.give_up_at());
        soonest = earlier(soonest, self.state_ends_at());
        earlier(soonest, self.keep_alive_at())
    }

    /// Does what is due.
    pub(super) fn pass_time(&mut self, out: &mut Outbox) {
        let now = out.now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.wake) {
            self.wake = None;
            self.resume(out);
            self.send.queue.shrink();
            self.receive.shrink();
            self.recovery.shrink();
        }
        if matches!(self.owed, Owed::By(at) if at <= now) {
            self.owed = Owed::Now;
        }
        if is_due(self.give_up_at()) {
            self.give_up(out);
        }
        // Before the retransmission timer, which a probe of the tail puts off.
        if let Some(wait) = self.recovery.take_due(now) {
            self.recovery_is_due(wait, out);
        }
        if is_due(self.retransmission.deadline) {
            self.retransmission_is_due(out);
        }
        if is_due(self.state_ends_at()) {
            self.become_closed();
        }
        if is_due(self.keep_alive_at()) {
            self.keep_alive_is_due(out);
        }
    }

    /// Goes on with what the last verb had to leave.
    fn resume(&mut self, out: &mut Outbox) {
        let is_unsent = !self.send.is_outstanding();
        match self.state {
            State::SynSent if is_unsent => self.send_syn(out),
            State::SynSent | State::SynReceived(_) => {}
            State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait { .. }
            | State::Closed => self.advance(out),
        }
    }

    /// When the retransmission timer has gone off (RFC 6298, section 5.4 to 5.7).
    fn retransmission_is_due(&mut self, out: &mut Outbox) {
        self.retransmission.deadline = None;
        self.retransmission.attempts = self.retransmission.attempts.saturating_add(1);
        let is_opening = matches!(self.state, State::SynSent | State::SynReceived(_));
        let is_closed_window = self.send.window == 0 && !is_opening;
        if u32::from(self.retransmission.attempts) == self.config.trouble_after && !is_closed_window {
            // R1 (RFC 9293, MUST-20, SHLD-9, MUST-47).
            out.advise(Control::Doubted);
            out.tell(Control::Event(Event::InTrouble));
        }
        match self.state {
            // RFC 9293, MUST-22.
            State::SynSent | State::SynReceived(_) => self.send_syn(out),
            State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                // Into a window narrower than a segment nothing would go again: the sender's avoidance of silly windows
                // holds it back. What the window takes goes as a probe does.
                let is_narrow = self.send.window < self.sizes.segment;
                if is_closed_window || is_narrow || !self.send.is_outstanding() {
                    if !is_closed_window {
                        // What a narrow window takes may be too large for the path all the same.
                        self.path_timed_out(out);
                    }
                    self.probe(out);
                    return;
                }
                let again = self.retransmission.attempts > 1;
                let in_flight = self.send.in_flight();
                let news = self.recovery.timed_out(again, self.retransmission.smoothed(), out.now);
                // What is lost goes again from the oldest byte on; the window decides how fast (RFC 5681, section 3.1).
                self.congestion.rate.lost(news.lost);
                self.congestion.timed_out(&Loss { now: out.now, in_flight, bytes: news.lost }, again);
                self.ecn.reduced(self.send.highest);
                self.early_timed_out(out);
                self.path_timed_out(out);
            }
            State::TimeWait { .. } | State::Closed => {}
        }
    }

    /// When waiting for the peer ends (R2: RFC 9293, MUST-20, MUST-21, MUST-23, SHLD-11; RFC 5482).
    fn give_up_at(&self) -> Option<Instant> {
        let usual = match self.state {
            State::SynReceived(Origin::Early) => EARLY_WAIT,
            State::SynSent | State::SynReceived(_) => self.config.open_give_up_after,
            State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck => self.config.give_up_after,
            State::TimeWait { .. } | State::Closed => return None,
        };
        let after = self.user_timeout().unwrap_or(usual);
        self.send.is_outstanding().then(|| self.retransmission.progress_at + after)
    }

    fn give_up(&mut self, out: &mut Outbox) {
        if !matches!(self.state, State::SynSent | State::SynReceived(_)) {
            self.send_reset(out);
        }
        self.finish_with(Event::TimedOut, out);
    }

    /// When the state ends by itself.
    fn state_ends_at(&self) -> Option<Instant> {
        match self.state {
            State::FinWait2 { until } => until,
            State::TimeWait { until } => Some(until),
            State::SynSent
            | State::SynReceived(_)
            | State::Established
            | State::FinWait1
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::Closed => None,
        }
    }

    /// When a peer that says nothing is probed (RFC 9293, MUST-24 to MUST-28).
    fn keep_alive_at(&self) -> Option<Instant> {
        let is_open = match self.state {
            State::Established | State::CloseWait | State::FinWait2 { .. } => true,
            State::SynSent
            | State::SynReceived(_)
            | State::FinWait1
            | State::Closing
            | State::LastAck
            | State::TimeWait { .. }
            | State::Closed => false,
        };
        // What is outstanding is probing enough.
        let is_idle = is_open && !self.send.is_outstanding() && !self.send.has_more();
        let rare = self.rare.as_ref().filter(|_| is_idle)?;
        let idle = rare.keep_alive?;
        let wait = if rare.probes == 0 { idle } else { self.config.keep_alive_interval };
        Some(self.quiet_since + wait)
    }

    fn keep_alive_is_due(&mut self, out: &mut Outbox) {
        if u32::from(self.rare().probes) >= self.config.keep_alive_probes {
            self.give_up(out);
            return;
        }
        // RFC 9293, SHLD-12: no data, and a number the peer has had, so that it must answer. One for which there is no
        // buffer is as good as lost on the way.
        self.send_bare(self.send.unacknowledged - 1, out);
        let probes = &mut self.rare().probes;
        *probes = probes.saturating_add(1);
        self.quiet_since = out.now;
    }

    /// The peer has been heard of.
    pub(super) fn heard(&mut self, now: Instant) {
        self.quiet_since = now;
        if let Some(rare) = &mut self.rare {
            rare.probes = 0;
        }
    }
}
