//! TCP itself: what one instance of it holds, and the verbs of a protocol. Finding the path of a segment is in `demux`,
//! passive opens in `enables`, and their handshakes in `halfopen` (RFC 9293, section 3.10).

use super::config::TcpConfig;
use super::cookie::{CookieCounts, Cookies};
use super::drops;
use super::early::Early;
use super::embryo::Embryos;
use super::enables::{EarlyLimits, Listener};
use super::ends::{Ends, is_one_host};
use super::fast_open::Granting;
use super::fast_open_cache::{Known, REFUSED_FOR, Servers};
use super::isn::Beginnings;
use super::moving::Parts;
use super::segment::Quotation;
use super::session::TcpSession;
use super::soonest::Soonest;
use super::time_wait::{Entry, TimeWaits};
use super::timestamps::Clock;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::{
    BindError, Binding, Control, Demux, Duration, EnableError, Enabling, Endpoint, Facts, Handled, Instant, Learnt,
    Map, OpenError, Opening, Outbox, Part, PathId, Protocol, Random, View, time,
};
use xylem_wire::{Port, TcpHeader};

const NAME: &str = "tcp";

/// TCP in one graph. See the module's text and the README beside it.
#[derive(Debug)]
pub struct TcpProtocol {
    pub(super) config: Arc<TcpConfig>,
    pub(super) paths: Map<Ends, PathId>,
    pub(super) enables: Map<(Option<IpAddr>, Port), Listener>,
    pub(super) beginnings: Beginnings,
    pub(super) cookies: Cookies,
    pub(super) granting: Granting,
    pub(super) early: Arc<Mutex<EarlyLimits>>,
    servers: Mutex<Servers>,
    pub(super) embryos: Arc<Mutex<Embryos>>,
    pub(super) time_waits: Mutex<TimeWaits>,
    /// The next deadline of each of the two.
    soonest: [Soonest; 2],
    /// The MTU below where there is no path yet.
    pub(super) mtu: AtomicUsize,
}

/// A table whose user panicked is still a table: every change to it is whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
            cookies: Cookies::new(random),
            granting: Granting::new(random),
            early: Arc::default(),
            servers: Mutex::new(Servers::new(random)),
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

    /// How SYN cookies went: for tests and tables.
    pub fn cookie_counts(&self) -> CookieCounts {
        self.cookies.counts()
    }

    /// Binds the ends of an active open: the port asked for, or any free one.
    fn bind(
        &self,
        opening: &mut Opening<'_>,
        facts: &Facts,
        local: Option<Port>,
        remote: Port,
    ) -> Result<(Ends, Binding), OpenError> {
        // The address asked for, or the one the network layer has chosen (RFC 9293, MUST-43, MUST-44).
        let address = facts.local.ok_or(missing("a local address"))?;
        let remote = Endpoint { address: facts.remote.ok_or(missing("a remote address"))?, port: remote };
        let ends = |port| Ends { local: Endpoint { address, port }, remote };
        let ports = self.config.ports;
        if !ends(local.unwrap_or(ports.first())).are_peers() {
            return Err(OpenError::NotAPeer(remote.address));
        }
        if let Some(port) = local {
            return self.bind_ends(ends(port), opening.path).map(|binding| (ends(port), binding));
        }
        let first = opening.random.below(u64::from(ports.count())) as u32;
        for port in ports.beginning_at(first) {
            match self.bind_ends(ends(port), opening.path) {
                Err(OpenError::InUse) => {}
                other => return other.map(|binding| (ends(port), binding)),
            }
        }
        Err(OpenError::NoFreePort)
    }

    /// What is known of the server that `session` opens to.
    fn recall(&self, session: &mut TcpSession, now: Instant) {
        if self.config.fast_open.is_client()
            && let Some(known) = lock(&self.servers).find(&session.ends.remote.address, now)
        {
            session.rare().early = Some(match known {
                Known::Cookie(cookie, size) => Early::Known(cookie, size),
                Known::Refused(_) => Early::Refused,
            });
        }
    }

    pub(super) fn bind_ends(&self, ends: Ends, path: PathId) -> Result<Binding, OpenError> {
        if lock(&self.time_waits).find(&ends).is_some() {
            return Err(OpenError::InUse);
        }
        self.paths.bind(ends, path).map_err(|error| match error {
            BindError::InUse => OpenError::InUse,
            BindError::Full => OpenError::Full("connections_max"),
        })
    }
}

fn missing(expected: &'static str) -> OpenError {
    OpenError::MissingParticipant { protocol: NAME, expected }
}

/// Leaves a connection's session and its key.
pub(super) fn stand(opening: &mut Opening<'_>, session: TcpSession, ends: Ends, binding: Binding) {
    opening.stand(session);
    opening.bind(binding);
    opening.complete(Part::Port(ends.local.port), Part::Port(ends.remote.port));
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
                let mut session = TcpSession::active(self.config.clone(), ends, &facts, initial, clock, opening.now);
                self.recall(&mut session, opening.now);
                session
            }
        };
        stand(opening, session, ends, binding);
        Ok(offered)
    }

    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        self.enable(enabling)
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        self.seek(view, out)
    }

    fn control(&self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Facts(facts) => self.mtu.store(facts.mtu, Ordering::Relaxed),
            Control::Learnt(Learnt::FastOpen { server, cookie, segment_size }) => {
                lock(&self.servers).learn(*server, Known::Cookie(*cookie, *segment_size));
            }
            Control::Learnt(Learnt::NoFastOpen { server }) => {
                lock(&self.servers).learn(*server, Known::Refused(out.now + REFUSED_FOR));
            }
            _ => {}
        }
        // Other protocols, another TCP of this graph among them, may want to hear of it too.
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

    fn lingering(&self) -> usize {
        lock(&self.time_waits).len()
    }

    fn deadline(&self) -> Option<Instant> {
        let [embryos, time_waits] = &self.soonest;
        time::earlier(embryos.at(), time_waits.at())
    }

    fn timeout(&self, out: &mut Outbox) {
        lock(&self.time_waits).expire(out.now);
        self.attend_embryos(out);
    }
}
