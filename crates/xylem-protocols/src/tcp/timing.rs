//! Time passes: what is due, and what a connection waits for. A late call does no harm, and neither does one for no reason.

use super::congestion::Loss;
use super::fast_open::EARLY_WAIT;
use super::session::{Owed, TcpSession};
use super::state::{Origin, State};
use xylem_core::{Control, Duration, Event, Instant, Outbox};

/// No instant that comes.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// A connection that was idle for so long gives back the memory of its empty queues when its next timer goes off. None is
/// set for this: one in which nothing happens comes to rest, and keeps no queues at all.
const SHRINK_AFTER: Duration = Duration::from_secs(1);

impl TcpSession {
    /// When something is due next.
    pub(super) fn soonest(&self) -> Option<Instant> {
        // This is asked after every verb, so never is counted as the end of time: eight options compare slowly.
        let owed = if let Owed::By(at) = self.owed { at } else { NEVER };
        let mut soonest = owed;
        for at in [self.wake, self.retransmission.deadline, self.recovery.deadline(), self.congestion.deadline()] {
            soonest = soonest.min(at.unwrap_or(NEVER));
        }
        for at in [self.give_up_at(), self.state_ends_at(), self.keep_alive_at()] {
            soonest = soonest.min(at.unwrap_or(NEVER));
        }
        (soonest != NEVER).then_some(soonest)
    }

    /// Does what is due.
    pub(super) fn pass_time(&mut self, out: &mut Outbox) {
        let now = out.now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.wake) {
            self.wake = None;
            self.resume(out);
        }
        if now.since(self.sent_at) >= SHRINK_AFTER && now.since(self.quiet_since) >= SHRINK_AFTER {
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

    /// When the retransmission timer has gone off (RFC 6298 5.4, RFC 6298 5.5, RFC 6298 5.6).
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
        if self.has_tried_enough() {
            return self.give_up(out);
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
        if !self.send.is_outstanding() {
            return None;
        }
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
        Some(self.retransmission.progress_at + after)
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

    /// When a peer that says nothing is probed (RFC 9293, MAY-5, MUST-24, MUST-25, MUST-26, MUST-27).
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
        let wait = if rare.probes == 0 { idle } else { self.keep_alive_interval() };
        Some(self.quiet_since + wait)
    }

    fn keep_alive_is_due(&mut self, out: &mut Outbox) {
        // RFC 9293, MUST-29.
        if u32::from(self.rare().probes) >= self.keep_alive_probes() {
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
