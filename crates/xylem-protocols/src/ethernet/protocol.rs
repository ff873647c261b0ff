//! The static side of Ethernet: it opens sessions towards a link address or towards a neighbour still to be found, and
//! hands arriving frames up by their type. It knows one address, its own, and the page of the link's neighbours.

use super::drops;
use super::session::{EthernetSession, Towards};
use super::waiting::Waiting;
use std::net::IpAddr;
use std::sync::Arc;
use xylem_core::{Demux, Facts, Neighbours, OpenError, Opening, Outbox, Part, Participants, Protocol, View};
use xylem_wire::{EtherType, EthernetAddress, EthernetHeader, Header};

/// How an Ethernet link is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetConfig {
    /// Our address on the link.
    pub address: EthernetAddress,
    /// The most bytes behind the header of a frame that is not cut later; `None` takes what the device carries. It can
    /// only be less than that.
    pub mtu: Option<usize>,
}

/// See the module's text.
#[derive(Debug)]
pub struct EthernetProtocol {
    config: EthernetConfig,
    neighbours: Arc<Neighbours>,
}

impl EthernetProtocol {
    /// Ethernet on one link, whose neighbours stand on that page.
    ///
    /// # Panics
    /// If the address names a group or nobody: no station has such a one.
    pub fn new(config: EthernetConfig, neighbours: Arc<Neighbours>) -> EthernetProtocol {
        assert!(config.address.is_unicast(), "an Ethernet station needs an address of its own, not {}", config.address);
        EthernetProtocol { config, neighbours }
    }

    /// The station, the group or the neighbour that the participants name; takes its part.
    fn towards(&self, participants: &mut Participants) -> Result<Towards, OpenError> {
        if let Some(address) = participants.remote.link() {
            return Ok(Towards::Link(address));
        }
        let Some(neighbour) = participants.remote.neighbour() else {
            return Err(OpenError::MissingParticipant {
                protocol: "ethernet",
                expected: "a link address or a neighbour",
            });
        };
        if let Some(address) = group_address(neighbour) {
            return Ok(Towards::Link(address));
        }
        let entry = self.neighbours.entry(neighbour).ok_or(OpenError::Full("neighbours on the link"))?;
        Ok(Towards::Neighbour(Waiting::new(neighbour, entry)))
    }
}

/// Where everybody and IPv4 groups are found without asking (RFC 1112, section 6.4).
fn group_address(neighbour: IpAddr) -> Option<EthernetAddress> {
    match neighbour {
        IpAddr::V4(address) if address.is_broadcast() => Some(EthernetAddress::BROADCAST),
        IpAddr::V4(address) if address.is_multicast() => Some(EthernetAddress::for_ipv4_group(address)),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

impl Protocol for EthernetProtocol {
    /// Remote: a `Link` address or a `Neighbour`. A local link address is taken and ignored: there is only one.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let kind = u16::try_from(opening.number).map(EtherType).ok().filter(|kind| kind.is_type()).ok_or(
            OpenError::MissingParticipant { protocol: "ethernet", expected: "an upper protocol with a frame type" },
        )?;
        opening.participants.local.link();
        let remote = opening.participants.remote.iter().last().copied();
        let towards = self.towards(&mut opening.participants)?;
        let mut facts = opening.below()?.less(EthernetHeader::LEN);
        facts.mtu = facts.mtu.min(self.config.mtu.unwrap_or(usize::MAX));
        facts.number = opening.number;
        opening.stand(EthernetSession::new(self.config.address, kind, towards, self.config.mtu));
        opening.complete(Part::Link(self.config.address), remote.expect("towards has found a remote part"));
        Ok(facts)
    }

    fn demux(&self, view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        let Ok(header) = view.header::<EthernetHeader>() else { return Demux::Drop(&drops::SHORT) };
        let to_group = header.destination.is_multicast();
        if !to_group && header.destination != self.config.address {
            return Demux::Drop(&drops::NOT_OURS);
        }
        if header.source.is_multicast() {
            return Demux::Drop(&drops::GROUP_SOURCE);
        }
        if !header.kind.is_type() {
            return Demux::Drop(&drops::LENGTH);
        }
        view.message.attributes.broadcast = to_group;
        view.participants.local.push(Part::Link(header.destination));
        view.participants.remote.push(Part::Link(header.source));
        view.advance(EthernetHeader::LEN);
        Demux::Up(u32::from(header.kind.0))
    }
}
