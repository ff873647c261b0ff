//! ICMP for IPv4: a common header, then four bytes that each kind of message uses in its own way, then data or the
//! packet that is complained about. Common header and body are separate declarations, parsed one after the other.

use crate::{header, newtype_field};
use core::fmt;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

header! {
    /// What every ICMP message begins with (RFC 792).
    pub struct IcmpHeader {
        /// What the message is.
        kind: IcmpKind = Next,
        /// More about it; its meaning depends on the kind.
        code: u8 = Data,
        /// The Internet checksum of the whole message.
        checksum: u16 = Data,
    }
}

header! {
    /// Behind the common header of an echo request or reply (RFC 792, page 14); the data to be echoed follows.
    pub struct IcmpEcho {
        /// Which conversation; the answer repeats it.
        identifier: u16 = Data,
        /// Which message of the conversation; the answer repeats it.
        sequence: u16 = Data,
    }
}

header! {
    /// Behind the common header of "destination unreachable" (RFC 792, page 4); the quoted packet follows.
    pub struct IcmpUnreachable {
        unused: u16 = Data sent 0,
        /// With [`IcmpUnreachable::FRAGMENTATION_NEEDED`], the largest packet in bytes that the next link takes (RFC
        /// 1191, section 4); zero from routers that do not say.
        next_hop_mtu: u16 = Data,
    }
}

header! {
    /// Behind the common header of "time exceeded" (RFC 792, page 6); the quoted packet follows.
    pub struct IcmpTimeExceeded {
        unused: u32 = Data sent 0,
    }
}

header! {
    /// Behind the common header of "parameter problem" (RFC 792, page 8); the quoted packet follows.
    pub struct IcmpParameterProblem {
        /// The byte of the quoted packet where the problem is.
        pointer: u8 = Data,
        unused: u32 [24] = Data sent 0,
    }
}

header! {
    /// Behind the common header of "redirect" (RFC 792, page 12); the quoted packet follows.
    pub struct IcmpRedirect {
        /// The better first hop.
        gateway: Ipv4Addr = Data,
    }
}

/// What an ICMP message is (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IcmpKind(pub u8);

newtype_field!(IcmpKind(u8));

impl IcmpKind {
    /// The answer to an echo request.
    pub const ECHO_REPLY: IcmpKind = IcmpKind(0);
    /// A packet could not be delivered.
    pub const UNREACHABLE: IcmpKind = IcmpKind(3);
    /// Slow down; long out of use (RFC 6633).
    pub const SOURCE_QUENCH: IcmpKind = IcmpKind(4);
    /// There is a better first hop.
    pub const REDIRECT: IcmpKind = IcmpKind(5);
    /// Send this back.
    pub const ECHO_REQUEST: IcmpKind = IcmpKind(8);
    /// A packet was too long on its way.
    pub const TIME_EXCEEDED: IcmpKind = IcmpKind(11);
    /// A packet's header is wrong.
    pub const PARAMETER_PROBLEM: IcmpKind = IcmpKind(12);

    /// Whether the message complains about a packet it quotes. No complaint is answered with another (RFC 1122, section
    /// 3.2.2).
    pub const fn is_error(self) -> bool {
        matches!(
            self,
            IcmpKind::UNREACHABLE
                | IcmpKind::SOURCE_QUENCH
                | IcmpKind::REDIRECT
                | IcmpKind::TIME_EXCEEDED
                | IcmpKind::PARAMETER_PROBLEM
        )
    }
}

impl fmt::Display for IcmpKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            IcmpKind::ECHO_REPLY => out.pad("echo reply"),
            IcmpKind::UNREACHABLE => out.pad("unreachable"),
            IcmpKind::SOURCE_QUENCH => out.pad("source quench"),
            IcmpKind::REDIRECT => out.pad("redirect"),
            IcmpKind::ECHO_REQUEST => out.pad("echo request"),
            IcmpKind::TIME_EXCEEDED => out.pad("time exceeded"),
            IcmpKind::PARAMETER_PROBLEM => out.pad("parameter problem"),
            IcmpKind(number) => number.fmt(out),
        }
    }
}

impl IcmpUnreachable {
    /// Code: no route to the network.
    pub const NETWORK: u8 = 0;
    /// Code: the host does not answer on its network.
    pub const HOST: u8 = 1;
    /// Code: the host does not know the protocol.
    pub const PROTOCOL: u8 = 2;
    /// Code: nobody is at the port.
    pub const PORT: u8 = 3;
    /// Code: too long for the next link, and it may not be cut.
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Code: the source route failed.
    pub const SOURCE_ROUTE_FAILED: u8 = 5;
    /// Code: a filter forbids it (RFC 1812, section 5.2.7.1).
    pub const PROHIBITED: u8 = 13;
}

impl IcmpTimeExceeded {
    /// Code: the time to live ran out on the way.
    pub const IN_TRANSIT: u8 = 0;
    /// Code: fragments were missing for too long.
    pub const IN_REASSEMBLY: u8 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, Sum};

    #[test]
    fn a_known_echo_request() {
        let bytes = [8, 0, 0xf7, 0xfc, 0, 1, 0, 2];
        let header = IcmpHeader::parse(&bytes).unwrap();
        assert_eq!((header.kind, header.code, header.checksum), (IcmpKind::ECHO_REQUEST, 0, 0xf7fc));
        assert!(Sum::of(&bytes).is_right());
        let echo = IcmpEcho::parse(&bytes[IcmpHeader::LEN..]).unwrap();
        assert_eq!(echo, IcmpEcho { identifier: 1, sequence: 2 });
    }

    #[test]
    fn bodies_know_their_places_and_ignore_what_is_unused() {
        let body = [0xaa, 0xbb, 0x05, 0xdc];
        assert_eq!(IcmpUnreachable::parse(&body), Ok(IcmpUnreachable { next_hop_mtu: 1500 }));
        assert_eq!(IcmpTimeExceeded::parse(&body), Ok(IcmpTimeExceeded {}));
        assert_eq!(IcmpParameterProblem::parse(&body), Ok(IcmpParameterProblem { pointer: 0xaa }));
        let mut built = [0xff; 4];
        IcmpUnreachable { next_hop_mtu: 1500 }.build(&mut built);
        assert_eq!(built, [0, 0, 0x05, 0xdc]);
    }

    #[test]
    fn complaints_are_not_answered_with_complaints() {
        let errors = (0..=255).map(IcmpKind).filter(|kind| kind.is_error()).map(|kind| kind.0);
        assert_eq!(errors.collect::<Vec<_>>(), [3, 4, 5, 11, 12]);
    }
}
