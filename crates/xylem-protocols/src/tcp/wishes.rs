//! What the application asks for, and what those below report: settings, half-closes, questions, changed facts and
//! network errors. An error message is believed only if it quotes something in flight (RFC 5927), and ends a connection
//! only before it is open.

use super::config::TcpConfig;
use super::congestion::Start;
use super::session::{Owed, TcpSession};
use super::state::State;
use xylem_core::{
    Answer, Control, Event, Handled, Instant, Message, NetworkError, NetworkErrorKind, Outbox, Question, Setting,
    Status,
};
use xylem_wire::{SequenceNumber, TcpHeader};

impl TcpSession {
    /// Queues what the application pushed.
    pub(super) fn take_from_above(&mut self, message: &mut Message) {
        let is_urgent = message.attributes.urgent;
        self.send.queue.append(message);
        if is_urgent {
            self.send.urgent = Some(self.send.first + self.send.queue.len());
        }
        self.send.starved |= self.send.room() < self.send.budget as usize / 4;
    }

    /// A control has come.
    pub(super) fn hear(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Set(setting) => self.set(*setting, out),
            Control::Question(Question::Status, answer) => {
                *answer = Some(Answer::Status(Box::new(self.status(out.now))));
                Handled::Yes
            }
            Control::Facts(facts) => {
                self.sizes.take(facts);
                self.resize();
                *facts = facts.clone().less(TcpHeader::LENGTH_MAX);
                Handled::No
            }
            Control::NetworkError(error) => self.network_error(*error, out),
            // The link has lost sight of the next hop: hard before the connection is open, soft afterwards, as an error
            // from the network is (RFC 9293, SHLD-25).
            Control::Event(Event::Unreachable) | Control::Answer(Answer::Neighbour { found: false, .. }) => {
                if self.state == State::SynSent {
                    self.finish_with(Event::Unreachable, out);
                } else {
                    out.tell(Control::Event(Event::InTrouble));
                }
                Handled::Yes
            }
            // What was refused below is tried again when this verb ends; whoever is above may have been refused too.
            Control::Writable => Handled::No,
            _ => Handled::No,
        }
    }

    fn set(&mut self, setting: Setting, out: &mut Outbox) -> Handled {
        match setting {
            Setting::NoDelay(no_delay) => self.no_delay = no_delay,
            Setting::KeepAlive(after) => self.set_keep_alive(after),
            Setting::UserTimeout(after) => self.set_user_timeout(after),
            Setting::KeepAliveInterval(interval) => self.rare().own.keep_alive_interval = Some(interval),
            Setting::KeepAliveProbes(probes) => self.rare().own.keep_alive_probes = Some(probes),
            Setting::OpenTries(tries) => self.rare().own.open_tries = Some(tries),
            Setting::SegmentSize(bytes) => self.limit_segment(bytes),
            Setting::EarlyOrNever => self.rare().own.early_or_never = true,
            Setting::Cork(corked) => self.cork(corked, out),
            Setting::ReceiveBuffer(bytes) => {
                (self.receive.buffer, self.receive.is_tuned) = (TcpConfig::buffer(bytes), false);
            }
            Setting::SendBuffer(bytes) => {
                (self.send.budget, self.send.is_tuned) = (TcpConfig::buffer(bytes), false);
                self.wake_writer(out);
            }
            Setting::Congestion(name) => return self.control_congestion_by(name.as_str(), out.now),
            Setting::ReceiveClosed => self.close_receive(out),
            Setting::SendClosed => self.close_send(),
            Setting::Abort => self.abort(out),
            // Those of the network layer, and whatever else there will be, are not ours.
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Another algorithm goes on from the window of the one before, and finds its own way from there.
    fn control_congestion_by(&mut self, name: &str, now: Instant) -> Handled {
        let Some(algorithm) = self.config.algorithms.named(name) else { return Handled::No };
        let start = Start::new(self.sizes.segment, self.config.initial_window_segments, now, self.send.first.0);
        let window = self.congestion.window().max(self.sizes.segment);
        self.congestion.change(algorithm, &Start { window, ..start });
        Handled::Yes
    }

    /// The application will send no more: FIN follows what is queued.
    fn close_send(&mut self) {
        if self.send.fin {
            return;
        }
        match self.state {
            State::SynSent => self.send.fin = true,
            State::SynReceived(_) => self.send.fin = true,
            State::Established => (self.send.fin, self.state) = (true, State::FinWait1),
            State::CloseWait => (self.send.fin, self.state) = (true, State::LastAck),
            State::FinWait1
            | State::FinWait2 { .. }
            | State::Closing
            | State::LastAck
            | State::TimeWait { .. }
            | State::Closed => {}
        }
    }

    /// The application will read no more: what arrives is acknowledged and dropped.
    fn close_receive(&mut self, out: &mut Outbox) {
        self.receive.discards = true;
        self.receive.credit(usize::MAX);
        if self.state.receives() && self.receive.owes_update() {
            self.owe(Owed::Now);
        }
        self.advance(out);
    }

    /// The application is done with both directions (RFC 9293, MAY-1). What it has not read, or what comes later, is
    /// lost, and the peer shall know (SHLD-3; RFC 2525, section 2.17).
    pub(super) fn close_both(&mut self, out: &mut Outbox) {
        self.closed = true;
        match self.state {
            State::SynSent => self.become_closed(),
            State::FinWait2 { .. } if self.receive.unread == 0 => {
                self.state = State::FinWait2 { until: Some(out.now + self.config.orphan_wait) };
            }
            State::SynReceived(_)
            | State::Established
            | State::FinWait1
            | State::FinWait2 { .. }
            | State::CloseWait
            | State::Closing
            | State::LastAck => {
                if self.receive.unread > 0 || !self.receive.early.is_empty() {
                    self.abort(out);
                } else {
                    self.close_send();
                }
            }
            State::TimeWait { .. } | State::Closed => {}
        }
    }

    fn network_error(&mut self, error: NetworkError, out: &mut Outbox) -> Handled {
        let sent = self.send.highest.since(self.send.unacknowledged).max(0) as u32;
        let is_in_flight =
            error.sequence.is_some_and(|number| SequenceNumber(number).is_within(self.send.unacknowledged, sent));
        if !is_in_flight {
            // RFC 5927, section 4.1: who did not see what is in flight did not see the connection.
            return Handled::Yes;
        }
        match error.kind {
            NetworkErrorKind::TooLarge { mtu } => {
                self.path_takes(mtu, out);
                Handled::Yes
            }
            NetworkErrorKind::NetworkUnreachable
            | NetworkErrorKind::HostUnreachable
            | NetworkErrorKind::ProtocolUnreachable
            | NetworkErrorKind::PortUnreachable => {
                // RFC 9293, MUST-54, MUST-56, SHLD-25, SHLD-26: hard before the connection is open, soft afterwards.
                if self.state == State::SynSent {
                    self.finish_with(Event::Unreachable, out);
                } else {
                    out.tell(Control::Event(Event::InTrouble));
                }
                Handled::No
            }
            // Whatever else the network says passes, or means nothing, as a source quench does (RFC 9293, MUST-55, MUST-56).
            _ => Handled::No,
        }
    }

    fn status(&self, now: Instant) -> Status {
        Status {
            state: self.state.name(),
            round_trip: self.retransmission.smoothed(),
            retransmission_timeout: self.retransmission.timeout(&self.config),
            congestion_control: self.congestion.name(),
            congestion_window: self.congestion.window() as usize,
            slow_start_threshold: self.congestion.threshold() as usize,
            in_flight: self.send.highest.since(self.send.unacknowledged).max(0) as usize,
            round_trip_variation: self.retransmission.variation(),
            round_trip_least: self.recovery.shortest(),
            unsent: self.send.unsent() as usize,
            selectively_acknowledged: self.recovery.flight.sacked() as usize,
            timeouts: u32::from(self.retransmission.attempts),
            is_recovering: self.recovery.is_fast(),
            is_timed_out: self.recovery.is_timed_out(),
            segment_size_received: self.receive.largest_segment() as usize,
            segment_size_announced: usize::from(self.sizes.announced),
            mtu: self.sizes.mtu as usize,
            unread: self.receive.unread as usize,
            window: self.receive.window() as usize,
            timestamps: self.clock.option_length() > 0,
            selective: self.recovery.selective,
            window_scales: self.scaled.then_some((self.send.scale, self.receive.scale)),
            keep_alive_probes: u32::from(self.rare.as_ref().map_or(0, |rare| rare.probes)),
            since_sent: now.since(self.sent_at),
            since_heard: now.since(self.quiet_since),
            pipe: self.recovery.in_flight() as usize,
            lost: self.recovery.flight.lost() as usize,
            retransmitted: u64::from(self.retransmission.count),
            segment_size: self.sizes.segment as usize,
            receive_buffer: self.receive.buffer as usize,
            send_buffer: self.send.budget as usize,
            peer_window: self.send.window as usize,
            urgent: self.receive.urgent_ahead() as usize,
            fast_open: self.early_taken,
            ecn: self.ecn.agreed,
            marks: u64::from(self.ecn.marks),
        }
    }
}
