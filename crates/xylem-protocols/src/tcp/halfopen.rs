//! What becomes of half-open connections: a SYN makes an embryo, which answers it, again and again if need be, until the
//! last message of the handshake makes a path of it (RFC 9293, sections 3.10.7.2 and 3.10.7.4, SYN-RECEIVED).

use super::config::TcpConfig;
use super::demux::{answer_with_reset, reply};
use super::drops;
use super::ecn::Ecn;
use super::embryo::Embryo;
use super::enables::Listener;
use super::ends::Ends;
use super::options::{Offer, announced_segment_size, on_syn};
use super::protocol::{TcpProtocol, lock, stand};
use super::segment::{Answer, Segment};
use super::session::TcpSession;
use super::timestamps::Clock;
use std::sync::atomic::Ordering;
use xylem_core::{Demux, Duration, Facts, Instant, OpenError, Opening, Outbox};
use xylem_wire::{SequenceNumber, TcpFlags};

impl TcpProtocol {
    /// A segment for a half-open connection.
    pub(super) fn to_embryo(&self, embryo: &Embryo, segment: &Segment, ends: &Ends, out: &mut Outbox) -> Demux {
        if segment.has(TcpFlags::RST) {
            // RFC 5961, section 3: only with the number that is expected.
            if segment.sequence != embryo.peer + 1 {
                return Demux::Drop(&drops::DOUBTFUL_RESET);
            }
            lock(&self.embryos).remove(ends);
            return Demux::Drop(&drops::EMBRYO_RESET);
        }
        if segment.has(TcpFlags::SYN) {
            if segment.sequence == embryo.peer && !segment.has(TcpFlags::ACK) {
                // The peer has not had our answer.
                let stamp = segment.timestamps.map(|timestamps| timestamps.value);
                let renewed = stamp.and_then(|stamp| lock(&self.embryos).renew(ends, stamp));
                reply(&self.syn_ack(renewed.as_ref().unwrap_or(embryo), ends, out.now), ends, out);
            }
            return Demux::Drop(&drops::BAD_HANDSHAKE);
        }
        if !segment.has(TcpFlags::ACK) {
            return Demux::Drop(&drops::NO_ACKNOWLEDGMENT);
        }
        if segment.acknowledgment != embryo.initial + 1 {
            answer_with_reset(segment, ends, out);
            return Demux::Drop(&drops::BAD_HANDSHAKE);
        }
        // The receive window begins behind the peer's SYN; the session judges the rest.
        if !segment.sequence.is_within(embryo.peer + 1, u32::from(u16::MAX)) {
            return Demux::Drop(&drops::OUTSIDE_WINDOW);
        }
        if let (Some(first), Some(timestamps)) = (embryo.offer.timestamp, segment.timestamps) {
            if timestamps.value.is_before(first) {
                return Demux::Drop(&drops::OLD_TIMESTAMP);
            }
        } else if embryo.offer.timestamp.is_some() {
            return Demux::Drop(&drops::NO_TIMESTAMP);
        }
        Demux::Open(embryo.enable)
    }

    /// A SYN for an enable: an embryo comes to be, and answers. Its numbers begin beyond `beyond`.
    pub(super) fn conceive(
        &self,
        listener: Listener,
        segment: &Segment,
        ends: &Ends,
        beyond: Option<SequenceNumber>,
        out: &mut Outbox,
    ) -> Demux {
        let mut initial = self.beginnings.sequence(ends, out.now);
        if let Some(beyond) = beyond.filter(|beyond| initial.is_at_or_before(*beyond)) {
            // RFC 6191, section 2: what the old connection sent must not fit the new one.
            initial = beyond + u32::from(u16::MAX);
        }
        let offer = Offer::of(segment, &self.config, ends);
        let announced = announced_segment_size(&self.config, self.mtu.load(Ordering::Relaxed));
        let due = out.now + self.embryo_wait(0);
        let embryo = Embryo::new(listener.id, initial, segment.sequence, offer, segment.window, announced, due);
        match lock(&self.embryos).add(*ends, embryo, listener.backlog) {
            None => return Demux::Drop(&drops::EMBRYOS_FULL),
            Some(true) => out.dropped(&drops::EMBRYO_EVICTED),
            Some(false) => {}
        }
        reply(&self.syn_ack(&embryo, ends, out.now), ends, out);
        Demux::Keep
    }

    fn syn_ack(&self, embryo: &Embryo, ends: &Ends, now: Instant) -> Answer {
        let clock = Clock::new(self.beginnings.clock_offset(ends)).value(now);
        Answer {
            sequence: embryo.initial,
            acknowledgment: embryo.peer + 1,
            flags: TcpFlags::SYN | TcpFlags::ACK | Ecn::on_answer(embryo.offer.ecn),
            window: TcpConfig::buffer(self.config.receive_buffer).min(u32::from(u16::MAX)) as u16,
            urgent: 0,
            options: on_syn(&self.config, embryo.announced, clock, Some(&embryo.offer)),
        }
    }

    /// How long a SYN-ACK that was sent again `attempts` times waits for its answer.
    fn embryo_wait(&self, attempts: u8) -> Duration {
        let wait = self.config.retransmission_timeout_initial * (1 << attempts.min(16));
        wait.min(self.config.retransmission_timeout_max)
    }

    /// An enable's embryo grows up.
    pub(super) fn open_passive(&self, opening: &mut Opening<'_>, facts: &Facts, ends: Ends) -> Result<(), OpenError> {
        let embryo = lock(&self.embryos).find(&ends).ok_or(OpenError::NoEmbryo)?;
        let binding = self.bind_ends(ends, opening.path)?;
        lock(&self.embryos).remove(&ends);
        let clock = Clock::new(self.beginnings.clock_offset(&ends));
        let session = TcpSession::passive(self.config.clone(), ends, facts, &embryo, clock, opening.now);
        stand(opening, session, ends, binding);
        Ok(())
    }

    /// Sends again the answers that are due, or gives the embryo up.
    pub(super) fn attend_embryos(&self, out: &mut Outbox) {
        // One call answers a bounded number of embryos; the deadline says that there are more.
        for _ in 0..Outbox::LIMIT / 2 {
            let mut embryos = lock(&self.embryos);
            let Some((ends, embryo)) = embryos.due(out.now) else { return };
            let attempts = embryo.attempts.saturating_add(1);
            if u32::from(attempts) > self.config.embryo_retransmissions {
                embryos.remove(&ends);
                out.dropped(&drops::EMBRYO_EXPIRED);
                continue;
            }
            embryos.postpone(&ends, attempts, out.now, self.embryo_wait(attempts));
            drop(embryos);
            reply(&self.syn_ack(&embryo, &ends, out.now), &ends, out);
        }
    }
}
