//! The static side of IPv4: it opens sessions along the routes, and finds out of every arriving packet whether it is
//! sound, whose it is, and whether it is whole.

use super::config::{Ipv4Config, Ipv4ConfigError, is_host};
use super::drops;
use super::forward::forward;
use super::groups::Groups;
use super::header::{in_view, judge};
use super::reassembly::Reassembly;
use super::routes::Routes;
use super::session::{Carried, Ipv4Session};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use xylem_core::{
    Control, Demux, DropReason, EnableError, Enabling, Facts, Handled, Instant, OpenError, Opening, Outbox, Part,
    Participants, Protocol, View, drop::linker,
};
use xylem_wire::{Ecn, FragmentOffset, Header, IpProtocol, Ipv4Header};

/// Stands for "no deadline".
const NEVER: u64 = u64::MAX;

/// One of our links.
#[derive(Debug)]
struct Link {
    lower: usize,
    /// The largest packet it takes, as far as is known: as set up, then as sessions have learnt it.
    mtu: AtomicUsize,
}

/// See the module's text.
#[derive(Debug)]
pub struct Ipv4Protocol {
    routes: Routes,
    links: Vec<Link>,
    forwarding: bool,
    time_to_live: u8,
    groups: Groups,
    reassembly: Mutex<Reassembly>,
    /// The deadline of the reassembly in nanoseconds, so that asking for it takes no lock.
    deadline: AtomicU64,
}

/// What a packet's destination is to us.
enum Whose {
    Ours,
    /// A group's that we are in, or everybody's.
    Everybodys,
    Others,
}

impl Ipv4Protocol {
    /// IPv4 with this set-up.
    ///
    /// # Errors
    /// [`Ipv4ConfigError`] if the set-up cannot be.
    pub fn new(config: Ipv4Config) -> Result<Ipv4Protocol, Ipv4ConfigError> {
        let routes = Routes::new(&config)?;
        let link = |interface: &super::Interface| Link { lower: interface.lower, mtu: AtomicUsize::new(interface.mtu) };
        Ok(Ipv4Protocol {
            routes,
            links: config.interfaces.iter().map(link).collect(),
            forwarding: config.forwarding,
            time_to_live: config.time_to_live,
            groups: Groups::default(),
            reassembly: Mutex::new(Reassembly::new(config.reassembly)),
            deadline: AtomicU64::new(NEVER),
        })
    }

    /// Which way packets go.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    fn whose(&self, destination: Ipv4Addr) -> Whose {
        if self.routes.is_ours(destination) {
            Whose::Ours
        } else if self.routes.is_broadcast(destination)
            || (destination.is_multicast() && self.groups.contains(destination))
        {
            Whose::Everybodys
        } else {
            Whose::Others
        }
    }

    /// Reads the header at the view and trims the message to its packet.
    fn read(&self, view: &mut View<'_>) -> Result<Ipv4Header, &'static DropReason> {
        let header = in_view(view)?;
        let available = view.ahead();
        let bytes = view.bytes(header.header_length()).expect("parse has seen the whole header");
        judge(&header, bytes, available)?;
        view.truncate(usize::from(header.total_length));
        // A host that has no address yet may say so, to everybody (RFC 1122, section 3.2.1.3).
        let sender_is_host = is_host(header.source) && !self.routes.is_broadcast(header.source);
        let sender_has_none = header.source.is_unspecified() && header.destination.is_broadcast();
        if !(sender_is_host || sender_has_none) || self.routes.is_ours(header.source) {
            return Err(&drops::BAD_SOURCE);
        }
        Ok(header)
    }

    /// A fragment: kept until the packet is whole, which then goes on in its place.
    fn reassemble(&self, header: &Ipv4Header, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        match self.change(|reassembly| reassembly.add(header, view, out)) {
            Err(reason) => Demux::Drop(reason),
            Ok(None) => Demux::Keep,
            Ok(Some((message, network_at))) => {
                view.put(message, network_at);
                view.network_at = network_at;
                let whole = in_view(view).expect("a packet put together begins with its header");
                view.advance(whole.header_length());
                Demux::Up(u32::from(whole.protocol.0))
            }
        }
    }

    /// Changes the reassembly and notes its new deadline.
    fn change<R>(&self, change: impl FnOnce(&mut Reassembly) -> R) -> R {
        let mut reassembly = self.reassembly.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut reassembly);
        let deadline = reassembly.deadline().map_or(NEVER, Instant::as_nanos);
        self.deadline.store(deadline, Ordering::Release);
        result
    }

    /// Our own end as the opener wishes it: `None` lets the route choose.
    fn wished_source(&self, local: Option<IpAddr>) -> Result<Option<Ipv4Addr>, OpenError> {
        match local {
            None => Ok(None),
            Some(IpAddr::V4(address)) if address.is_unspecified() => Ok(None),
            Some(IpAddr::V4(address)) if self.routes.is_ours(address) => Ok(Some(address)),
            Some(other) => Err(OpenError::NotOurAddress(other)),
        }
    }
}

impl Protocol for Ipv4Protocol {
    /// Remote: a `Host`, or a group, or everybody. Local: a `Host` of ours, or left out for the route to choose.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let missing = |expected| OpenError::MissingParticipant { protocol: "ipv4", expected };
        let protocol = u8::try_from(opening.number).map_err(|_| missing("an upper protocol with a number"))?;
        let remote = opening.participants.remote.host().ok_or(missing("the peer's address"))?;
        let IpAddr::V4(destination) = remote else { return Err(OpenError::NotAPeer(remote)) };
        let wished = self.wished_source(opening.participants.local.host())?;
        let hop = self.routes.hop(destination, wished).ok_or(OpenError::NoRoute(remote))?;
        let source = wished.unwrap_or(hop.source);
        let carried = match &mut opening.record {
            Some(record) => record.take::<Carried>("hop limit, service and identification of IPv4")?,
            None => (self.time_to_live, 0, opening.random.next() as u16),
        };

        let link = &self.links[hop.interface];
        opening.participants = Participants::new([], [Part::Neighbour(IpAddr::V4(hop.neighbour))]);
        let facts = opening.branch(link.lower)?;
        if facts.mtu < Ipv4Header::MTU_MIN {
            return Err(OpenError::Full("the link's MTU: IPv4 needs 68 bytes"));
        }
        link.mtu.store(facts.mtu, Ordering::Relaxed);
        let template = Ipv4Header {
            header_words: Ipv4Header::WORDS,
            dscp: carried.1,
            ecn: Ecn::NotCapable,
            total_length: 0,
            identification: carried.2,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: FragmentOffset::FIRST,
            time_to_live: carried.0.max(1),
            protocol: IpProtocol(protocol),
            checksum: 0,
            source,
            destination,
        };
        let session = Ipv4Session::new(template, facts);
        let offered = session.offered();
        opening.stand(session);
        opening.complete(Part::Host(IpAddr::V4(source)), Part::Host(remote));
        Ok(offered)
    }

    /// An address of ours needs no key here; a group is joined for as long as the enable stands.
    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        match enabling.participants.local.find_host() {
            None => Ok(()),
            Some(IpAddr::V4(group)) if group.is_multicast() => {
                enabling.bind(self.groups.join(group).ok_or(EnableError::Full("groups joined"))?);
                Ok(())
            }
            Some(IpAddr::V4(address))
                if address.is_unspecified() || self.routes.is_ours(address) || self.routes.is_broadcast(address) =>
            {
                Ok(())
            }
            Some(other) => Err(EnableError::NotOurAddress(other)),
        }
    }

    /// A packet of our own that could not be delivered: those above it are told by what failed, nobody else wants to know.
    fn control(&self, control: &mut Control, _out: &mut Outbox) -> Handled {
        let Control::Undeliverable(_, undeliverable) = control else { return Handled::No };
        let header = Ipv4Header::parse(&undeliverable.quote);
        let is_own = header.is_ok_and(|header| self.routes.is_ours(header.source));
        if is_own { Handled::Yes } else { Handled::No }
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let header = match self.read(view) {
            Ok(header) => header,
            Err(reason) => return Demux::Drop(reason),
        };
        view.network_at = view.at();
        match self.whose(header.destination) {
            Whose::Ours if view.message.attributes.broadcast => return Demux::Drop(&drops::LINK_BROADCAST),
            Whose::Ours => {}
            Whose::Everybodys => view.message.attributes.broadcast = true,
            Whose::Others if self.forwarding => {
                let link = |interface: usize| {
                    let link: &Link = &self.links[interface];
                    (link.lower, link.mtu.load(Ordering::Relaxed))
                };
                return forward(&header, &self.routes, link, view, out);
            }
            Whose::Others => return Demux::Drop(&drops::NOT_OURS),
        }
        view.participants.local.push(Part::Host(IpAddr::V4(header.destination)));
        view.participants.remote.push(Part::Host(IpAddr::V4(header.source)));
        if header.is_fragment() {
            return self.reassemble(&header, view, out);
        }
        view.advance(header.header_length());
        Demux::Up(u32::from(header.protocol.0))
    }

    /// The quoted packet is ours if its source is. Its checksum and length are not judged: it has been on its way, and
    /// only its front is here.
    fn quoted(&self, view: &mut View<'_>, _sequence: &mut Option<u32>) -> Demux {
        let Ok(header) = in_view(view) else { return Demux::Drop(&linker::NOT_QUOTED) };
        // What stands behind a later fragment's header is not the header above.
        if !self.routes.is_ours(header.source) || header.fragment_offset != FragmentOffset::FIRST {
            return Demux::Drop(&linker::NOT_QUOTED);
        }
        view.participants =
            Participants::new([Part::Host(IpAddr::V4(header.source))], [Part::Host(IpAddr::V4(header.destination))]);
        view.advance(header.header_length());
        Demux::Up(u32::from(header.protocol.0))
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline.load(Ordering::Acquire)).filter(|at| *at != NEVER).map(Instant::from_nanos)
    }

    fn timeout(&self, out: &mut Outbox) {
        self.change(|reassembly| reassembly.timeout(out));
    }
}
