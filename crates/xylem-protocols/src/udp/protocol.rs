//! The static side of UDP: which conversations and which enables there are, and which of them an arriving message belongs
//! to. A conversation is found by both ends exactly; else the message belongs to whoever has enabled its port.

use super::check::check;
use super::drops;
use super::ports::from_anywhere;
use super::session::UdpSession;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use xylem_core::{
    BindError, Binding, Demux, EnableError, EnableId, Enabling, Endpoint, Facts, Map, NetworkErrorKind, OpenError,
    Opening, Outbox, Part, PathId, Protocol, Random, View, drop::linker,
};
use xylem_wire::{Header, Port, UdpHeader};

/// How UDP is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The most conversations.
    pub paths: usize,
    /// The most enabled ports.
    pub enables: usize,
}

impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig { paths: 131_072, enables: 16_384 }
    }
}

/// Local end, remote end.
type Ends = (Endpoint, Endpoint);

/// What is enabled: a port at one address, or at any.
type Place = (Option<IpAddr>, Port);

/// Who has enabled a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    enable: EnableId,
    /// Messages are delivered as they are, without making paths.
    wild: bool,
    shared: bool,
}

/// See the module's text.
#[derive(Debug)]
pub struct UdpProtocol {
    paths: Map<Ends, PathId>,
    listeners: Map<Place, Listener>,
    /// Held while a port is looked at and then taken.
    enabling: Mutex<()>,
}

impl UdpProtocol {
    /// UDP with this set-up; its maps are keyed from `random`.
    pub fn new(config: UdpConfig, random: &mut Random) -> UdpProtocol {
        UdpProtocol {
            paths: Map::new(config.paths, random),
            listeners: Map::new(config.enables, random),
            enabling: Mutex::new(()),
        }
    }

    /// Takes the key of a conversation from `local`, or from any free port there if the port is zero.
    fn bind_path(
        &self,
        mut local: Endpoint,
        remote: Endpoint,
        opening: &mut Opening<'_>,
    ) -> Result<(Endpoint, Binding), OpenError> {
        let path = opening.path;
        let full = OpenError::Full("UDP conversations");
        if local.port != Port(0) {
            return match self.paths.bind((local, remote), path) {
                Ok(binding) => Ok((local, binding)),
                Err(BindError::InUse) => Err(OpenError::InUse),
                Err(BindError::Full) => Err(full),
            };
        }
        for port in from_anywhere(opening.random).filter(|port| self.is_free(local.address, *port)) {
            local.port = port;
            match self.paths.bind((local, remote), path) {
                Ok(binding) => return Ok((local, binding)),
                Err(BindError::InUse) => {}
                Err(BindError::Full) => return Err(full),
            }
        }
        Err(OpenError::NoFreePort)
    }

    /// Whether nobody has enabled the port at that address.
    fn is_free(&self, address: IpAddr, port: Port) -> bool {
        self.listeners.find(&(Some(address), port)).is_none() && self.listeners.find(&(None, port)).is_none()
    }

    /// Takes a port for an enable; it may stand beside others only if all of them are willing to share.
    fn bind_listener(&self, place: Place, listener: Listener) -> Result<Binding, EnableError> {
        let all_share = listener.shared && self.listeners.find_all(&place).iter().all(|other| other.shared);
        let bound = match all_share {
            true => self.listeners.bind_another(place, listener),
            false => self.listeners.bind(place, listener),
        };
        bound.map_err(|error| match error {
            BindError::InUse => EnableError::InUse,
            BindError::Full => EnableError::Full("enabled UDP ports"),
        })
    }

    /// Who has enabled the port: at exactly this address before at any.
    fn listener(&self, local: Endpoint) -> Option<Listener> {
        let exact = self.listeners.find(&(Some(local.address), local.port));
        exact.or_else(|| self.listeners.find(&(None, local.port)))
    }

    /// A message to nobody's conversation: to whoever has enabled its port.
    fn deliver(&self, header: &UdpHeader, (local, remote): Ends, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let at = view.at();
        if let Err(reason) = check(header, view.message, at, remote.address, local.address) {
            return Demux::Drop(reason);
        }
        let demux = if view.message.attributes.broadcast {
            match self.group(local) {
                nobody if nobody.is_empty() => return Demux::Drop(&drops::NO_PORT),
                enables => Demux::Each(enables),
            }
        } else {
            match self.listener(local) {
                None => {
                    out.undeliverable(NetworkErrorKind::PortUnreachable, view);
                    return Demux::Drop(&drops::NO_PORT);
                }
                // The path that is made pops the headers itself.
                Some(listener) if !listener.wild => return Demux::Open(listener.enable),
                Some(listener) => Demux::Enable(listener.enable),
            }
        };
        let mut message = view.take();
        message.trim_front(at + UdpHeader::LEN);
        message.attributes.participants = Some((local, remote));
        view.put(message, 0);
        demux
    }

    /// All wild enables that share a group's port.
    fn group(&self, local: Endpoint) -> SmallVec<[EnableId; 4]> {
        let mut all = self.listeners.find_all(&(Some(local.address), local.port));
        all.extend(self.listeners.find_all(&(None, local.port)));
        all.into_iter().filter(|listener| listener.wild).map(|listener| listener.enable).collect()
    }
}

/// The two hosts nearest below, as the network protocol has left them.
fn hosts(view: &View<'_>) -> Option<(IpAddr, IpAddr)> {
    match (view.participants.local.iter().last(), view.participants.remote.iter().last()) {
        (Some(Part::Host(local)), Some(Part::Host(remote))) => Some((*local, *remote)),
        _ => None,
    }
}

impl Protocol for UdpProtocol {
    /// Remote: a `Port`, then what the network takes. Local: a `Port`, or none for any free one.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let missing = |expected| OpenError::MissingParticipant { protocol: "udp", expected };
        let remote_port = opening.participants.remote.port().filter(|port| *port != Port(0));
        let remote_port = remote_port.ok_or(missing("the peer's port, not 0"))?;
        let local_port = opening.participants.local.port().unwrap_or_default();
        let facts = opening.below()?;
        let local = facts.local.ok_or(missing("an address of ours from below"))?;
        let remote = facts.remote.ok_or(missing("the peer's address from below"))?;
        let remote = Endpoint { address: remote, port: remote_port };
        let mut local = Endpoint { address: local, port: local_port };
        // What carries a wild enable's messages has no key: what comes back goes to the enable, not to a path that
        // nobody reads.
        let is_wild = |listener: Listener| listener.wild && Some(listener.enable) == opening.enable;
        if !self.listener(local).is_some_and(is_wild) {
            let (bound, binding) = self.bind_path(local, remote, opening)?;
            local = bound;
            opening.bind(binding);
        }
        opening.stand(UdpSession { local, remote });
        opening.complete(Part::Port(local.port), Part::Port(remote.port));
        Ok(facts.less(UdpHeader::LEN))
    }

    /// Local: a `Port`, or none (or 0) for any free one, which is written back; then a `Host` to hear only what is sent
    /// there, or none.
    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        let wished = enabling.participants.local.port().unwrap_or_default();
        enabling.participants.remote = Default::default();
        enabling.below(0)?;
        let address = enabling.participants.local.find_host().filter(|address| !address.is_unspecified());
        let listener = Listener { enable: enabling.id, wild: enabling.wild, shared: enabling.shared };
        let _held = self.enabling.lock().unwrap_or_else(PoisonError::into_inner);
        let port = if wished == Port(0) {
            let free = |port: &Port| match address {
                Some(address) => self.is_free(address, *port),
                None => self.listeners.find(&(None, *port)).is_none(),
            };
            from_anywhere(enabling.random).find(free).ok_or(EnableError::NoFreePort)?
        } else {
            wished
        };
        enabling.bind(self.bind_listener((address, port), listener)?);
        enabling.participants.local.push(Part::Port(port));
        Ok(())
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let Ok(header) = view.header::<UdpHeader>() else { return Demux::Drop(&drops::SHORT) };
        let Some((local, remote)) = hosts(view) else { return Demux::Drop(&linker::NO_UPPER) };
        if header.destination == Port(0) {
            return Demux::Drop(&drops::PORT_ZERO);
        }
        let local = Endpoint { address: local, port: header.destination };
        let remote = Endpoint { address: remote, port: header.source };
        if let Some(path) = self.paths.find(&(local, remote)) {
            return Demux::Path(path);
        }
        view.participants.local.push(Part::Port(local.port));
        view.participants.remote.push(Part::Port(remote.port));
        self.deliver(&header, (local, remote), view, out)
    }

    /// The quoted message is ours, so its source is our end.
    fn quoted(&self, view: &mut View<'_>, _sequence: &mut Option<u32>) -> Demux {
        let (Ok(header), Some((local, remote))) = (view.header::<UdpHeader>(), hosts(view)) else {
            return Demux::Drop(&linker::NOT_QUOTED);
        };
        let local = Endpoint { address: local, port: header.source };
        let remote = Endpoint { address: remote, port: header.destination };
        if let Some(path) = self.paths.find(&(local, remote)) {
            return Demux::Path(path);
        }
        match self.listener(local) {
            Some(listener) if listener.wild => Demux::Enable(listener.enable),
            _ => Demux::Drop(&linker::NOT_QUOTED),
        }
    }
}
