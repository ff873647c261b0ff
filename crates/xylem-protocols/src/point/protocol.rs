//! The static side: it opens sessions for the internet protocols and sorts what arrives by its version.

use super::session::PointSession;
use super::{EMPTY, NO_VERSION, PacketFront};
use xylem_core::{Demux, Facts, OpenError, Opening, Outbox, Protocol, View};
use xylem_wire::EtherType;

/// How the link is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointConfig {
    /// The most bytes of a packet; `None` takes what the device carries. It can only be less than that.
    pub mtu: Option<usize>,
}

/// See the module's text.
#[derive(Debug)]
pub struct PointProtocol {
    config: PointConfig,
}

impl PointProtocol {
    /// A link of this set-up.
    pub fn new(config: PointConfig) -> PointProtocol {
        PointProtocol { config }
    }
}

impl Protocol for PointProtocol {
    /// Remote: a `Neighbour` or a `Link` address is taken and ignored, since whatever is sent comes to the one other end.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let kind = u16::try_from(opening.number).map(EtherType).ok();
        let kind = kind.filter(|kind| matches!(*kind, EtherType::IPV4 | EtherType::IPV6)).ok_or(
            OpenError::MissingParticipant { protocol: "point", expected: "an internet protocol as its upper" },
        )?;
        opening.participants.local.link();
        if opening.participants.remote.link().is_none() {
            opening.participants.remote.neighbour();
        }
        let mut facts = opening.below()?;
        facts.mtu = facts.mtu.min(self.config.mtu.unwrap_or(usize::MAX));
        facts.number = opening.number;
        opening.stand(PointSession::new(kind, self.config.mtu));
        Ok(facts)
    }

    fn demux(&self, view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        let Ok(front) = view.header::<PacketFront>() else { return Demux::Drop(&EMPTY) };
        match front.kind() {
            Some(kind) => Demux::Up(u32::from(kind.0)),
            None => Demux::Drop(&NO_VERSION),
        }
    }
}
