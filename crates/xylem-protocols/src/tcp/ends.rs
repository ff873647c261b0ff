//! The two ends of a connection: what names it on the wire, and what its pseudo header says.

use std::net::IpAddr;
use xylem_core::{Endpoint, Part, Participants};
use xylem_wire::{IpProtocol, Sum, TcpHeader};

/// Which connection: the key of every map here, and the same for as long as it lasts (RFC 9293, MUST-45).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ends {
    pub local: Endpoint,
    pub remote: Endpoint,
}

impl Ends {
    /// The sum of the pseudo header over `length` bytes of header and payload; it is the same in both directions.
    pub fn pseudo(&self, length: usize) -> Sum {
        Sum::pseudo(self.local.address, self.remote.address, IpProtocol::TCP, length as u32)
    }

    /// The hosts, for a reply.
    pub fn hosts(&self) -> Participants {
        Participants::new([Part::Host(self.local.address)], [Part::Host(self.remote.address)])
    }

    /// Whether a connection between them can be: two hosts, two ports, one IP version (RFC 9293, MUST-46, MUST-57,
    /// MUST-63).
    pub fn are_peers(&self) -> bool {
        is_one_host(self.local.address)
            && is_one_host(self.remote.address)
            && self.local.address.is_ipv4() == self.remote.address.is_ipv4()
            && self.local.port.0 != 0
            && self.remote.port.0 != 0
    }

    /// The segment size of a peer that announced none (RFC 9293, MUST-15).
    pub fn default_segment_size(&self) -> u16 {
        if self.remote.address.is_ipv4() { 536 } else { 1220 }
    }

    /// What an MTU of the network leaves to TCP's header and payload.
    pub fn below_network(&self, mtu: usize) -> usize {
        mtu.saturating_sub(if self.remote.address.is_ipv4() { 20 } else { 40 })
    }
}

/// Whether `address` may be one host's: no group, not everybody, not nobody. Which other addresses are broadcasts only
/// the network layer knows; it marks such messages.
pub(crate) fn is_one_host(address: IpAddr) -> bool {
    let everybody = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !everybody && !address.is_multicast() && !address.is_unspecified()
}

/// Where the checksum stands in the header, in bytes from its front, as the declaration says.
pub(crate) const CHECKSUM_AT: usize = {
    let fields = <TcpHeader as xylem_wire::Header>::FIELDS;
    let mut index = 0;
    while !is_checksum(fields[index].name.as_bytes()) {
        index += 1;
    }
    fields[index].bit_offset / 8
};

const fn is_checksum(name: &[u8]) -> bool {
    let wanted = b"checksum";
    let mut index = 0;
    while index < wanted.len() && index < name.len() && name[index] == wanted[index] {
        index += 1;
    }
    index == wanted.len() && index == name.len()
}

const _: () = assert!(CHECKSUM_AT == 16, "RFC 9293 puts the checksum behind the window");
