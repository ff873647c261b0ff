//! The toy network: packets between numbered hosts on one link. Its header names both hosts and the protocol above, says
//! how long the packet is, and carries a sum over all of it, since the links it is tried on spoil packets. Participants
//! are host numbers: the local one may be left out, there is only one.

use super::{HostNumber, seal};
use xylem_core::{
    Control, Demux, DropReason, Facts, Handled, Message, OpenError, Opening, Outbox, Part, Protocol, Session, Verdict,
    View,
};
use xylem_wire::{Header, header};

header! {
    /// The header of a packet.
    pub struct NetworkHeader {
        /// The sending host.
        source: HostNumber = Remote,
        /// The host it is for.
        destination: HostNumber = Local,
        /// The protocol above.
        next: u16 = Next,
        /// Bytes behind the header; what follows these is padding.
        length: u16 = Data,
        /// The Internet checksum of header and content.
        sum: u16 = Data,
    }
}

/// The packet ends before its header does, or before it says.
pub static SHORT: DropReason = DropReason::new("network", "shorter than it says");
/// The packet was spoilt on its way.
pub static SPOILT: DropReason = DropReason::new("network", "wrong sum");
/// The packet is for another host.
pub static NOT_OURS: DropReason = DropReason::new("network", "for another host");
/// The packet came to a path of another conversation.
pub static OTHER_PATH: DropReason = DropReason::new("network", "of another conversation than its path");
/// More was pushed than a packet can say it holds.
pub static TOO_LARGE: DropReason = DropReason::new("network", "larger than a packet may be");

/// The static side of the toy network.
#[derive(Debug)]
pub struct NetworkProtocol {
    host: HostNumber,
}

impl NetworkProtocol {
    /// The network as `host` sees it.
    pub fn new(host: HostNumber) -> NetworkProtocol {
        NetworkProtocol { host }
    }
}

impl Protocol for NetworkProtocol {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let missing = |expected| OpenError::MissingParticipant { protocol: "network", expected };
        if opening.participants.local.number().is_some_and(|number| number != self.host.0) {
            return Err(missing("its own host number on the local side"));
        }
        let remote = opening.participants.remote.number().ok_or(missing("the number of the remote host"))?;
        let next = u16::try_from(opening.number).map_err(|_| missing("an upper protocol's number below 65536"))?;
        let mut facts = opening.below()?.less(NetworkHeader::LEN);
        // Nothing here can be cut late: each packet has a length and a sum of its own.
        facts.mtu = facts.mtu.min(usize::from(u16::MAX));
        facts.segment_max = facts.mtu;
        facts.number = opening.number;
        opening.stand(NetworkSession { local: self.host, remote: HostNumber(remote), next });
        opening.complete(Part::Number(self.host.0), Part::Number(remote));
        Ok(facts)
    }

    fn demux(&self, view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        let Ok(header) = view.header::<NetworkHeader>() else { return Demux::Drop(&SHORT) };
        let length = NetworkHeader::LEN + usize::from(header.length);
        if length > view.ahead() {
            return Demux::Drop(&SHORT);
        }
        view.truncate(length);
        if !view.message.sum(view.at()).is_right() {
            return Demux::Drop(&SPOILT);
        }
        if header.destination != self.host {
            return Demux::Drop(&NOT_OURS);
        }
        view.participants.local.push(Part::Number(header.destination.0));
        view.participants.remote.push(Part::Number(header.source.0));
        view.advance(NetworkHeader::LEN);
        Demux::Up(u32::from(header.next))
    }
}

/// One conversation's end: a header template.
#[derive(Debug)]
struct NetworkSession {
    local: HostNumber,
    remote: HostNumber,
    next: u16,
}

impl Session for NetworkSession {
    /// Everything is judged again: a virtual protocol below may have done something to the packet since demultiplexing.
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let Ok(header) = message.header::<NetworkHeader>() else { return Verdict::Drop(&SHORT) };
        let length = NetworkHeader::LEN + usize::from(header.length);
        if length > message.len() {
            return Verdict::Drop(&SHORT);
        }
        message.truncate(length);
        if !message.sum(0).is_right() {
            return Verdict::Drop(&SPOILT);
        }
        if (header.source, header.destination, header.next) != (self.remote, self.local, self.next) {
            return Verdict::Drop(&OTHER_PATH);
        }
        message.trim_front(NetworkHeader::LEN);
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let Ok(length) = u16::try_from(message.len()) else { return Verdict::Drop(&TOO_LARGE) };
        let (source, destination, next) = (self.local, self.remote, self.next);
        seal(message, |sum| NetworkHeader { source, destination, next, length, sum });
        Verdict::Pass
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            *facts = facts.clone().less(NetworkHeader::LEN);
            facts.mtu = facts.mtu.min(usize::from(u16::MAX));
            facts.segment_max = facts.mtu;
            facts.number = u32::from(self.next);
        }
        Handled::No
    }
}
