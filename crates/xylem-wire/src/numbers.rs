//! The numbers by which a header names the protocol above it. They are newtypes, not enums: a number nobody here has
//! heard of is a value like any other, kept as it came, and it is for the graph to say that nobody stands there.

use core::fmt;
use serde::{Deserialize, Serialize};

/// What an Ethernet frame carries (RFC 9542, section 3; the registry is IANA's "ETHER TYPES").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP (RFC 826).
    pub const ARP: EtherType = EtherType(0x0806);
    /// A VLAN tag stands next (IEEE 802.1Q).
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6 (RFC 2464).
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// A service provider's VLAN tag stands next (IEEE 802.1ad).
    pub const SERVICE_VLAN: EtherType = EtherType(0x88a8);
    /// Local experiment 1 (IEEE 802): no user can rely on it outside its own network.
    pub const EXPERIMENT_1: EtherType = EtherType(0x88b5);
    /// Local experiment 2 (IEEE 802).
    pub const EXPERIMENT_2: EtherType = EtherType(0x88b6);

    /// Whether the number is a type at all: below 0x0600 it is the length of an IEEE 802.3 frame.
    pub const fn is_type(self) -> bool {
        self.0 >= 0x0600
    }
}

crate::newtype_field!(EtherType(u16));

impl fmt::Display for EtherType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EtherType::IPV4 => out.pad("ipv4"),
            EtherType::ARP => out.pad("arp"),
            EtherType::VLAN => out.pad("vlan"),
            EtherType::IPV6 => out.pad("ipv6"),
            EtherType(number) => out.pad(&format!("0x{number:04x}")),
        }
    }
}

/// What an IP packet carries (IANA's "Assigned Internet Protocol Numbers"; the same numbers in IPv4's protocol and in
/// IPv6's next header).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 hop-by-hop options (RFC 8200, section 4.3).
    pub const HOP_BY_HOP: IpProtocol = IpProtocol(0);
    /// ICMP (RFC 792).
    pub const ICMP: IpProtocol = IpProtocol(1);
    /// IGMP (RFC 3376).
    pub const IGMP: IpProtocol = IpProtocol(2);
    /// TCP (RFC 9293).
    pub const TCP: IpProtocol = IpProtocol(6);
    /// UDP (RFC 768).
    pub const UDP: IpProtocol = IpProtocol(17);
    /// IPv6 fragment header (RFC 8200, section 4.5).
    pub const IPV6_FRAGMENT: IpProtocol = IpProtocol(44);
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: IpProtocol = IpProtocol(58);
    /// Nothing follows (RFC 8200, section 4.7).
    pub const NO_NEXT: IpProtocol = IpProtocol(59);
    /// Experiment 1 (RFC 3692).
    pub const EXPERIMENT_1: IpProtocol = IpProtocol(253);
    /// Experiment 2 (RFC 3692).
    pub const EXPERIMENT_2: IpProtocol = IpProtocol(254);
}

crate::newtype_field!(IpProtocol(u8));

impl fmt::Display for IpProtocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            IpProtocol::ICMP => out.pad("icmp"),
            IpProtocol::IGMP => out.pad("igmp"),
            IpProtocol::TCP => out.pad("tcp"),
            IpProtocol::UDP => out.pad("udp"),
            IpProtocol::ICMPV6 => out.pad("icmpv6"),
            IpProtocol(number) => number.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_have_names_and_unknown_ones_keep_theirs() {
        assert_eq!(EtherType::IPV4.to_string(), "ipv4");
        assert_eq!(EtherType(0x88cc).to_string(), "0x88cc");
        assert_eq!(format!("{:>5}|{}", IpProtocol::TCP, IpProtocol(200)), "  tcp|200");
        assert!(EtherType::ARP.is_type() && !EtherType(1500).is_type());
    }
}
