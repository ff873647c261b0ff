//! The IPv6 header's fixed part. Extension headers follow as protocols of their own, named by `next`.

use crate::{Ecn, IpProtocol, header};
use core::net::Ipv6Addr;

header! {
    /// The IPv6 header (RFC 8200, section 3).
    pub struct Ipv6Header {
        version: u8 [4] = Data == 6,
        /// Differentiated services code point (RFC 2474, section 3).
        dscp: u8 [6] = Data,
        /// What routers say of their queues.
        ecn: Ecn = Data,
        /// The same for all packets of one conversation (RFC 6437).
        flow_label: u32 [20] = Data,
        /// Bytes behind this header, extension headers included.
        payload_length: u16 = Data,
        /// What follows this header.
        next: IpProtocol = Next,
        /// Hops the packet may still take.
        hop_limit: u8 = Data,
        /// Who sent it.
        source: Ipv6Addr = Remote,
        /// Whom it is for.
        destination: Ipv6Addr = Local,
    }
}

impl Ipv6Header {
    /// Smallest MTU of a link that carries IPv6, in bytes (RFC 8200, section 5).
    pub const MTU_MIN: usize = 1280;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;

    #[test]
    fn a_known_header() {
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&[0x6b, 0x9a, 0xbc, 0xde, 0x00, 0x14, 6, 64]);
        bytes[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        let header = Ipv6Header::parse(&bytes).unwrap();
        assert_eq!((header.dscp, header.ecn, header.flow_label), (0x2e, Ecn::Capable1, 0xabcde));
        assert_eq!((header.payload_length, header.next, header.hop_limit), (20, IpProtocol::TCP, 64));
        assert_eq!((header.source, header.destination), (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED));
        let mut built = [0; 40];
        header.build(&mut built);
        assert_eq!(built, bytes);
    }
}
