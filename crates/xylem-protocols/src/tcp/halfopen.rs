//! What becomes of half-open connections: a SYN makes an embryo, which answers it, again and again if need be, until the
//! last message of the handshake makes a path of it (RFC 9293, sections 3.10.7.2 and 3.10.7.4, SYN-RECEIVED).

use super::config::TcpConfig;
use super::cookie::{self, CookieUse};
use super::demux::{answer_with_reset, reply};
use super::drops;
use super::early::Early;
use super::ecn::{Ecn, EcnUse};
use super::embryo::Embryo;
use super::enables::Listener;
use super::ends::Ends;
use super::fast_open::Worth;
use super::options::{Offer, announced_segment_size, on_syn};
use super::protocol::{TcpProtocol, lock, stand};
use super::segment::{Answer, Segment};
use super::session::TcpSession;
use super::timestamps::Clock;
use std::sync::atomic::Ordering;
use xylem_core::{Demux, Duration, EnableId, Facts, Instant, OpenError, Opening, Outbox};
use xylem_wire::{SequenceNumber, TcpFlags, TcpOptions};

impl TcpProtocol {
    /// A segment for a half-open connection.
    pub(super) fn to_embryo(&self, embryo: &Embryo, segment: &Segment, ends: &Ends, out: &mut Outbox) -> Demux {
        if segment.has(TcpFlags::RST) {
            // RFC 5961 3.2-2: only with the number that is expected.
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
        if embryo.early {
            lock(&self.embryos).forget_early(ends);
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
        let early = self.early_of(listener, segment, ends, out.now);
        let wants_cookie = self.wants_cookie(listener);
        if wants_cookie && beyond.is_none() {
            return self.answer_with_cookie(listener, segment, &offer, ends, out);
        }
        let mut embryo = self.embryo(listener.id, initial, segment, offer, out.now);
        (embryo.early, embryo.grants) = early;
        let added = if wants_cookie {
            // A cookie cannot begin where the old numbers end. Whoever comes again has been here before.
            lock(&self.embryos).add_proven(*ends, embryo, listener.backlog).then_some(false)
        } else {
            lock(&self.embryos).add(*ends, embryo, listener.backlog)
        };
        match added {
            None => return Demux::Drop(&drops::EMBRYOS_FULL),
            Some(true) => out.dropped(&drops::EMBRYO_EVICTED),
            Some(false) => {}
        }
        if beyond.is_some() {
            lock(&self.time_waits).remove(ends);
        }
        if embryo.early {
            // The path takes the data, and answers.
            return Demux::Open(listener.id);
        }
        reply(&self.syn_ack(&embryo, ends, out.now), ends, out);
        Demux::Keep
    }

    /// Whether the data of a SYN may be taken at once, and whether its answer grants a cookie (RFC 7413, section 4.1.2).
    fn early_of(&self, listener: Listener, segment: &Segment, ends: &Ends, now: Instant) -> (bool, bool) {
        let Some(cookie) = segment.fast_open.filter(|_| self.config.fast_open.is_server()) else {
            return (false, false);
        };
        let Some(pending) = lock(&self.early).get(&listener.id).cloned() else { return (false, false) };
        if cookie.is_empty() {
            return (false, true);
        }
        let worth = self.granting.judge(ends, &cookie, now);
        // Too many that have proven nothing yet: data has to wait for the end of the handshake, as it always did.
        let early = worth != Worth::Wrong && segment.payload > 0 && pending.has_room(now);
        (early, worth != Worth::Right)
    }

    fn announced(&self) -> u16 {
        announced_segment_size(&self.config, self.mtu.load(Ordering::Relaxed))
    }

    fn wants_cookie(&self, listener: Listener) -> bool {
        match self.config.syn_cookies {
            CookieUse::Off => false,
            CookieUse::Overflow => !lock(&self.embryos).has_room(listener.id, listener.backlog),
            CookieUse::Always => true,
        }
    }

    /// Answers a SYN and remembers nothing of it. Its data, if it has any, comes again.
    fn answer_with_cookie(
        &self,
        listener: Listener,
        segment: &Segment,
        offer: &Offer,
        ends: &Ends,
        out: &mut Outbox,
    ) -> Demux {
        let initial = self.cookies.bake(ends, segment.sequence, offer.segment_size, out.now);
        let embryo = self.embryo(listener.id, initial, segment, *offer, out.now);
        let mut answer = self.syn_ack(&embryo, ends, out.now);
        if let Some(timestamps) = &mut answer.options.timestamps {
            timestamps.value = cookie::stamp(timestamps.value, offer);
        } else {
            // What cannot come back cannot be agreed upon.
            answer.options.window_scale = None;
            answer.options.sack_permitted = false;
            answer.flags = answer.flags.without(TcpFlags::ECE);
        }
        reply(&answer, ends, out);
        Demux::Drop(&drops::COOKIE)
    }

    /// An acknowledgment that fits nothing we remember, for an enable: it may bring a cookie back. The segment that
    /// completes a handshake may be lost; the one behind it, with data, does as well while it begins where that one did.
    pub(super) fn cookie_returned(
        &self,
        listener: Listener,
        segment: &Segment,
        ends: &Ends,
        out: &mut Outbox,
    ) -> Option<Demux> {
        if segment.has(TcpFlags::SYN) {
            return None;
        }
        let (peer, initial) = (segment.sequence - 1, segment.acknowledgment - 1);
        let size = self.cookies.taste(ends, peer, initial, out.now)?;
        let mut offer = cookie::offer(segment, size);
        // The settings may have changed the offer already when the cookie was made; they never add to it.
        offer.window_scale = offer.window_scale.filter(|_| self.config.window_scaling);
        offer.timestamp = offer.timestamp.filter(|_| self.config.timestamps);
        offer.selective &= self.config.selective_acknowledgments;
        offer.ecn &= self.config.ecn != EcnUse::Off;
        let mut embryo = self.embryo(listener.id, initial, segment, offer, out.now);
        embryo.peer = peer;
        // It has shown that it is there: room is made for it beyond what SYNs may fill, until its path is made, now.
        if !lock(&self.embryos).has_proven_room(listener.id, listener.backlog) {
            return Some(Demux::Drop(&drops::EMBRYOS_FULL));
        }
        if !self.cookies.spend(ends, peer, initial) {
            return None;
        }
        if lock(&self.embryos).add_proven(*ends, embryo, listener.backlog) {
            Some(Demux::Open(listener.id))
        } else {
            Some(Demux::Drop(&drops::EMBRYOS_FULL))
        }
    }

    /// An embryo that begins now.
    fn embryo(&self, enable: EnableId, initial: SequenceNumber, syn: &Segment, offer: Offer, now: Instant) -> Embryo {
        let due = now + self.embryo_wait(0);
        Embryo::new(enable, initial, syn.sequence, offer, syn.window, self.announced(), due)
    }

    fn syn_ack(&self, embryo: &Embryo, ends: &Ends, now: Instant) -> Answer {
        let clock = Clock::new(self.beginnings.clock_offset(ends)).value(now);
        Answer {
            sequence: embryo.initial,
            acknowledgment: embryo.peer + 1,
            flags: TcpFlags::SYN | TcpFlags::ACK | Ecn::on_answer(embryo.offer.ecn),
            window: TcpConfig::buffer(self.config.receive_buffer).min(u32::from(u16::MAX)) as u16,
            urgent: 0,
            options: TcpOptions {
                fast_open: embryo.grants.then(|| self.granting.grant(ends, now)),
                ..on_syn(&self.config, embryo.announced, clock, Some(&embryo.offer))
            },
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
        let pending = embryo.early.then(|| lock(&self.early).get(&embryo.enable).cloned()).flatten();
        let ticket = pending.and_then(|pending| pending.take(opening.now));
        if embryo.early && ticket.is_none() {
            // Others were faster. The embryo stays, and answers as any other when its time comes.
            return Err(OpenError::Full("connections that bring data early"));
        }
        lock(&self.embryos).remove(&ends);
        let clock = Clock::new(self.beginnings.clock_offset(&ends));
        let mut session = TcpSession::passive(self.config.clone(), ends, facts, &embryo, clock, opening.now);
        if let Some(ticket) = ticket {
            let renewal = embryo.grants.then(|| self.granting.grant(&ends, opening.now));
            session.expect_early(Early::Taken { ticket, syn: embryo.peer, renewal });
        }
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
