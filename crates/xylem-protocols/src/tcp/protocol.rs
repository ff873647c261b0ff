//! TCP itself: it opens connections, keeps enables with their embryos, finds the path of a segment, and answers segments
//! that belong to nobody (RFC 9293, section 3.10).

use super::config::TcpConfig;
use super::drops;
use super::embryo::{Embryo, Embryos};
use super::ends::{Ends, is_one_host};
use super::isn::Beginnings;
use super::moving::Parts;
use super::options::{Offer, announced_segment_size, on_syn};
use super::segment::{Answer, Quotation, Segment, view_header};
use super::session::TcpSession;
use super::soonest::Soonest;
use super::time_wait::{Entry, TimeWaits};
use super::timestamps::Clock;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::{
    BindError, Binding, Control, Demux, Duration, EnableError, EnableId, Enabling, Endpoint, Facts, Handled, Instant,
    Map, OpenError, Opening, Outbox, Part, PathId, Protocol, Random, Side, View, time,
};
use xylem_wire::{Port, SequenceNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps};

const NAME: &str = "tcp";

/// TCP in one graph. See the module's text and the README beside it.
#[derive(Debug)]
pub struct TcpProtocol {
    config: Arc<TcpConfig>,
    paths: Map<Ends, PathId>,
    enables: Map<(Option<IpAddr>, Port), Listener>,
    beginnings: Beginnings,
    embryos: Arc<Mutex<Embryos>>,
    time_waits: Mutex<TimeWaits>,
    /// The next deadline of each of the two.
    soonest: [Soonest; 2],
    /// The MTU below where there is no path yet.
    mtu: AtomicUsize,
}

/// A standing passive open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    id: EnableId,
    backlog: usize,
}

/// Lets go of an enable's embryos with the enable.
struct Nursery {
    embryos: Arc<Mutex<Embryos>>,
    enable: EnableId,
}

impl Drop for Nursery {
    fn drop(&mut self) {
        lock(&self.embryos).remove_all(self.enable);
    }
}

/// A table whose user panicked is still a table: every change to it is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TcpProtocol {
    /// A TCP with these settings; its secrets are drawn from `random`.
    pub fn new(config: TcpConfig, random: &mut Random) -> TcpProtocol {
        let embryos = Embryos::new(config.embryos_max, random);
        let time_waits = TimeWaits::new(config.time_wait_max, random);
        TcpProtocol {
            soonest: [embryos.soonest(), time_waits.soonest()],
            paths: Map::new(config.connections_max, random),
            enables: Map::new(config.enables_max, random),
            beginnings: Beginnings::new(random),
            embryos: Arc::new(Mutex::new(embryos)),
            time_waits: Mutex::new(time_waits),
            mtu: AtomicUsize::new(config.unopened_mtu),
            config: Arc::new(config),
        }
    }

    /// How many connections are open, half-open and in TIME-WAIT without a path: for tests and tables.
    pub fn counts(&self) -> (usize, usize, usize) {
        (self.paths.len(), lock(&self.embryos).len(), lock(&self.time_waits).len())
    }

    /// Binds the ends of an active open: the port asked for, or any free one.
    fn bind(
        &self,
        opening: &mut Opening<'_>,
        facts: &Facts,
        local: Option<Port>,
        remote: Port,
    ) -> Result<(Ends, Binding), OpenError> {
        let address = facts.local.ok_or(missing("a local address"))?;
        let remote = Endpoint { address: facts.remote.ok_or(missing("a remote address"))?, port: remote };
        let ends = |port| Ends { local: Endpoint { address, port }, remote };
        if !ends(local.unwrap_or(Port::DYNAMIC_FIRST)).are_peers() {
            return Err(OpenError::NotAPeer(remote.address));
        }
        if let Some(port) = local {
            return self.bind_ends(ends(port), opening.path).map(|binding| (ends(port), binding));
        }
        let first = opening.random.below(u64::from(DYNAMIC_PORTS)) as u32;
        for port in dynamic_ports(first) {
            match self.bind_ends(ends(port), opening.path) {
                Err(OpenError::InUse) => {}
                other => return other.map(|binding| (ends(port), binding)),
            }
        }
        Err(OpenError::NoFreePort)
    }

    fn bind_listener(&self, address: Option<IpAddr>, port: Port, listener: Listener) -> Result<Binding, EnableError> {
        self.enables.bind((address, port), listener).map_err(|error| match error {
            BindError::InUse => EnableError::InUse,
            BindError::Full => EnableError::Full("enables_max"),
        })
    }

    fn bind_ends(&self, ends: Ends, path: PathId) -> Result<Binding, OpenError> {
        if lock(&self.time_waits).find(&ends).is_some() {
            return Err(OpenError::InUse);
        }
        self.paths.bind(ends, path).map_err(|error| match error {
            BindError::InUse => OpenError::InUse,
            BindError::Full => OpenError::Full("connections_max"),
        })
    }

    /// An enable's embryo grows up.
    fn open_passive(&self, opening: &mut Opening<'_>, facts: &Facts, ends: Ends) -> Result<(), OpenError> {
        let embryo = lock(&self.embryos).find(&ends).ok_or(OpenError::NoEmbryo)?;
        let binding = self.bind_ends(ends, opening.path)?;
        lock(&self.embryos).remove(&ends);
        let clock = Clock::new(self.beginnings.clock_offset(&ends));
        let session = TcpSession::passive(self.config.clone(), ends, facts, &embryo, clock, opening.now);
        stand(opening, session, ends, binding);
        Ok(())
    }

    /// The enable at `local`, if there is one: the one for this address before the one for all.
    fn listener(&self, local: &Endpoint) -> Option<Listener> {
        self.enables.find(&(Some(local.address), local.port)).or_else(|| self.enables.find(&(None, local.port)))
    }

    /// A segment for a connection in TIME-WAIT. `None`: it opens a new one, whose numbers begin beyond `entry.next`.
    fn in_time_wait(&self, entry: &Entry, segment: &Segment, ends: &Ends, out: &mut Outbox) -> Option<Demux> {
        if segment.has(TcpFlags::RST) {
            // RFC 1337: the wait goes on.
            return Some(Demux::Drop(&drops::TIME_WAIT));
        }
        if entry.is_reopened_by(segment) && self.listener(&ends.local).is_some() {
            lock(&self.time_waits).remove(ends);
            return None;
        }
        if segment.has(TcpFlags::FIN) {
            lock(&self.time_waits).add(*entry, out.now + 2 * self.config.segment_lifetime_max);
        }
        let value = SequenceNumber((out.now.as_millis() as u32).wrapping_add(entry.clock_offset));
        let answer = Answer {
            sequence: entry.next,
            acknowledgment: entry.expected,
            flags: TcpFlags::ACK,
            options: TcpOptions { timestamps: entry.recent.map(|echo| Timestamps { value, echo }), ..TcpOptions::NONE },
            ..Answer::default()
        };
        // An acknowledgment without news is not answered, or two of these would go on for ever.
        if segment.length() > 0 {
            reply(&answer, ends, out);
        }
        Some(Demux::Drop(&drops::TIME_WAIT))
    }

    /// A segment for a half-open connection.
    fn to_embryo(&self, embryo: &Embryo, segment: &Segment, ends: &Ends, out: &mut Outbox) -> Demux {
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
    fn conceive(
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
            flags: TcpFlags::SYN | TcpFlags::ACK,
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
}

/// How many ports there are for those who do not ask for one.
const DYNAMIC_PORTS: u32 = u16::MAX as u32 - Port::DYNAMIC_FIRST.0 as u32 + 1;

/// All of them, beginning with number `first`: a random first choice, then one after the other (RFC 6056, section 3.3.1).
fn dynamic_ports(first: u32) -> impl Iterator<Item = Port> {
    (0..DYNAMIC_PORTS).map(move |step| Port(Port::DYNAMIC_FIRST.0 + ((first + step) % DYNAMIC_PORTS) as u16))
}

fn missing(expected: &'static str) -> OpenError {
    OpenError::MissingParticipant { protocol: NAME, expected }
}

/// Leaves a connection's session and its key.
fn stand(opening: &mut Opening<'_>, session: TcpSession, ends: Ends, binding: Binding) {
    opening.stand(session);
    opening.bind(binding);
    opening.complete(Part::Port(ends.local.port), Part::Port(ends.remote.port));
}

/// Sends a header without a path.
fn reply(answer: &Answer, ends: &Ends, out: &mut Outbox) {
    match out.message() {
        None => out.dropped(&drops::NO_BUFFER),
        Some(mut message) => {
            answer.push(&mut message, ends);
            out.reply(ends.hosts(), message);
        }
    }
}

fn answer_with_reset(segment: &Segment, ends: &Ends, out: &mut Outbox) {
    if let Some(answer) = segment.answering_reset() {
        reply(&answer, ends, out);
    }
}

impl Protocol for TcpProtocol {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let local = opening.participants.local.port().filter(|port| port.0 != 0);
        let remote = opening.participants.remote.port().filter(|port| port.0 != 0).ok_or(missing("a remote port"))?;
        if let Some(host) = opening.participants.remote.find_host().filter(|host| !is_one_host(*host)) {
            // RFC 9293, MUST-46.
            return Err(OpenError::NotAPeer(host));
        }
        let parts = match &mut opening.record {
            Some(record) => Some(Parts::take(record, &self.config)?),
            None => None,
        };
        let facts = opening.below()?;
        let offered = facts.clone().less(TcpHeader::LENGTH_MAX);
        let ends_of = |local: Port| -> Result<Ends, OpenError> {
            Ok(Ends {
                local: Endpoint { address: facts.local.ok_or(missing("a local address"))?, port: local },
                remote: Endpoint { address: facts.remote.ok_or(missing("a remote address"))?, port: remote },
            })
        };
        if let (None, Some(_)) = (&parts, opening.enable) {
            let ends = ends_of(local.ok_or(missing("a local port"))?)?;
            self.open_passive(opening, &facts, ends)?;
            return Ok(offered);
        }
        let (ends, binding) = self.bind(opening, &facts, local, remote)?;
        let session = match parts {
            Some(mut parts) => TcpSession::read(self.config.clone(), ends, &facts, &mut parts, opening.now)?,
            None => {
                let initial = self.beginnings.sequence(&ends, opening.now);
                let clock = Clock::new(self.beginnings.clock_offset(&ends));
                TcpSession::active(self.config.clone(), ends, &facts, initial, clock, opening.now)
            }
        };
        stand(opening, session, ends, binding);
        Ok(offered)
    }

    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        let wished = enabling.participants.local.port().filter(|port| port.0 != 0);
        enabling.participants.remote = Side::default();
        enabling.below(0)?;
        let address = enabling.participants.local.find_host().filter(|host| !host.is_unspecified());
        let listener = Listener { id: enabling.id, backlog: enabling.backlog };
        let port = match wished {
            Some(port) => {
                enabling.bind(self.bind_listener(address, port, listener)?);
                port
            }
            None => {
                let first = enabling.random.below(u64::from(DYNAMIC_PORTS)) as u32;
                let mut bound = None;
                for port in dynamic_ports(first) {
                    match self.bind_listener(address, port, listener) {
                        Err(EnableError::InUse) => {}
                        other => {
                            bound = Some((port, other?));
                            break;
                        }
                    }
                }
                let (port, binding) = bound.ok_or(EnableError::NoFreePort)?;
                enabling.bind(binding);
                port
            }
        };
        enabling.participants.local.push(Part::Port(port));
        enabling.bind(Box::new(Nursery { embryos: self.embryos.clone(), enable: enabling.id }));
        Ok(())
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let Some(header) = view_header(view) else { return Demux::Drop(&drops::MALFORMED) };
        let hosts = (view.participants.local.find_host(), view.participants.remote.find_host());
        let (Some(local), Some(remote)) = hosts else { return Demux::Drop(&drops::MALFORMED) };
        view.participants.local.push(Part::Port(header.destination));
        view.participants.remote.push(Part::Port(header.source));
        let ends = Ends {
            local: Endpoint { address: local, port: header.destination },
            remote: Endpoint { address: remote, port: header.source },
        };
        if let Some(path) = self.paths.find(&ends) {
            return Demux::Path(path);
        }
        if view.message.attributes.broadcast || !ends.are_peers() {
            return Demux::Drop(&drops::NOT_A_PEER);
        }
        // Nothing is answered before the checksum is known to be right.
        let segment = match Segment::view(view, &header, &ends) {
            Ok(segment) => segment,
            Err(reason) => return Demux::Drop(reason),
        };
        let waiting = lock(&self.time_waits).find(&ends);
        if let Some(verdict) = waiting.and_then(|entry| self.in_time_wait(&entry, &segment, &ends, out)) {
            return verdict;
        }
        let embryo = lock(&self.embryos).find(&ends);
        if let Some(embryo) = embryo {
            return self.to_embryo(&embryo, &segment, &ends, out);
        }
        // Another shepherd may have made a path of the embryo since the first look, and it must not be reset.
        if let Some(path) = self.paths.find(&ends) {
            return Demux::Path(path);
        }
        let Some(listener) = self.listener(&ends.local) else {
            answer_with_reset(&segment, &ends, out);
            return Demux::Drop(&drops::NO_CONNECTION);
        };
        // RFC 9293, section 3.10.7.2, in its order: resets, acknowledgments, SYNs, the rest.
        if segment.has(TcpFlags::RST) {
            return Demux::Drop(&drops::NOT_FOR_ENABLE);
        }
        if segment.has(TcpFlags::ACK) {
            answer_with_reset(&segment, &ends, out);
            return Demux::Drop(&drops::NO_CONNECTION);
        }
        if !segment.has(TcpFlags::SYN) || segment.has(TcpFlags::FIN) {
            return Demux::Drop(&drops::NOT_FOR_ENABLE);
        }
        self.conceive(listener, &segment, &ends, waiting.map(|entry| entry.next), out)
    }

    fn control(&self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            self.mtu.store(facts.mtu, Ordering::Relaxed);
        }
        Handled::No
    }

    fn quoted(&self, view: &mut View<'_>, sequence: &mut Option<u32>) -> Demux {
        let hosts = (view.participants.local.find_host(), view.participants.remote.find_host());
        let (Some(local), Some(remote)) = hosts else { return Demux::Drop(&drops::MALFORMED) };
        let Some(quotation) = Quotation::view(view) else { return Demux::Drop(&drops::MALFORMED) };
        let ends = Ends {
            local: Endpoint { address: local, port: quotation.source },
            remote: Endpoint { address: remote, port: quotation.destination },
        };
        *sequence = Some(quotation.sequence.0);
        match self.paths.find(&ends) {
            Some(path) => Demux::Path(path),
            None => Demux::Drop(&drops::NO_CONNECTION),
        }
    }

    fn linger(&self, entry: &[u8], now: Instant) -> Handled {
        let Some(entry) = Entry::from_bytes(entry) else { return Handled::No };
        let whole = 2 * self.config.segment_lifetime_max;
        let left = whole.saturating_sub(Duration::from_millis(u64::from(entry.waited)));
        lock(&self.time_waits).add(entry, now + left);
        Handled::Yes
    }

    fn deadline(&self) -> Option<Instant> {
        let [embryos, time_waits] = &self.soonest;
        time::earlier(embryos.at(), time_waits.at())
    }

    fn timeout(&self, out: &mut Outbox) {
        lock(&self.time_waits).expire(out.now);
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
