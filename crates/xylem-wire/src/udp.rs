//! The UDP header: eight bytes that say which end-point sent a message, which one it is for, and how long it is.
//! The declaration below is all there is to parsing, building, demultiplexing and testing it. What remains is the one
//! peculiarity of UDP: its checksum may be missing, and zero is how a sender says so.

use crate::{Header, IpProtocol, Malformed, Port, Sum, header};
use core::net::IpAddr;

header! {
    /// The UDP header (RFC 768).
    pub struct UdpHeader {
        /// The sender's port; zero if it expects no answer.
        source: Port = Remote,
        /// The port the message is for.
        destination: Port = Local,
        /// Bytes of header and payload; never below [`UdpHeader::LEN`](Header::LEN) in an honest message.
        length: u16 = Data,
        /// The Internet checksum of pseudo header, header and payload; [`UdpHeader::NO_CHECKSUM`] if there is none.
        checksum: u16 = Data,
    }
}

impl UdpHeader {
    /// What stands in the checksum field of a message sent without one. IPv4 allows it (RFC 1122, section 4.1.3.4);
    /// IPv6 does not, outside tunnels (RFC 8200, section 8.1).
    pub const NO_CHECKSUM: u16 = 0;

    /// Most bytes of payload that one message can carry: what [`UdpHeader::length`] can say, less the header.
    pub const PAYLOAD_MAX: usize = u16::MAX as usize - UdpHeader::LEN;

    /// Bytes of payload behind the header, where `available` bytes arrived in all, header included. More may arrive
    /// than the message says (a link pads short frames); the rest is not part of it.
    ///
    /// # Errors
    /// [`Malformed::Length`] if the message claims less than its own header, or more than arrived.
    #[inline]
    pub fn payload_length(&self, available: usize) -> Result<usize, Malformed> {
        let claimed = usize::from(self.length);
        if claimed < UdpHeader::LEN || claimed > available {
            return Err(Malformed::Length { minimum: UdpHeader::LEN, maximum: available, got: claimed });
        }
        Ok(claimed - UdpHeader::LEN)
    }

    /// The checksum to send, where `payload` is the payload's sum: over the pseudo header, this header with a checksum
    /// of zero, and the payload. A result of zero is sent as its other form, all ones, because zero would say that there
    /// is no checksum (RFC 768).
    #[inline]
    pub fn checksum_to_send(&self, source: IpAddr, destination: IpAddr, payload: Sum) -> u16 {
        let summed = UdpHeader { checksum: 0, ..*self };
        match summed.sum(source, destination).add(payload).checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }

    /// Whether the message, whose payload sums to `payload`, arrived as it was sent. A message without a checksum is
    /// taken at its word; where that is not allowed, ask for [`UdpHeader::NO_CHECKSUM`] first.
    #[inline]
    pub fn checksum_is_right(&self, source: IpAddr, destination: IpAddr, payload: Sum) -> bool {
        self.checksum == UdpHeader::NO_CHECKSUM || self.sum(source, destination).add(payload).is_right()
    }

    /// The sum of the pseudo header and of this header as it stands.
    #[inline]
    fn sum(&self, source: IpAddr, destination: IpAddr) -> Sum {
        let mut bytes = [0; UdpHeader::LEN];
        self.build(&mut bytes);
        Sum::pseudo(source, destination, IpProtocol::UDP, u32::from(self.length)).add(Sum::of(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const DESTINATION: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn header(length: u16) -> UdpHeader {
        UdpHeader { source: Port(4660), destination: Port(53), length, checksum: 0 }
    }

    #[test]
    fn a_known_header_has_known_bytes() {
        let known = [0x12, 0x34, 0x00, 0x35, 0x00, 0x0c, 0xbe, 0xef];
        let expected = UdpHeader { checksum: 0xbeef, ..header(12) };
        assert_eq!(UdpHeader::parse(&known), Ok(expected));
        let mut built = [0; 8];
        expected.build(&mut built);
        assert_eq!(built, known);
    }

    #[test]
    fn the_length_is_believed_only_within_what_arrived() {
        assert_eq!(header(12).payload_length(12), Ok(4));
        assert_eq!(header(12).payload_length(46), Ok(4), "padding is not payload");
        assert_eq!(header(8).payload_length(8), Ok(0));
        for claimed in [0, 7, 13] {
            let got = usize::from(claimed);
            assert_eq!(header(claimed).payload_length(12), Err(Malformed::Length { minimum: 8, maximum: 12, got }));
        }
    }

    #[test]
    fn a_checksum_is_right_until_a_byte_changes() {
        let payload = *b"ping";
        let mut sent = header(12);
        sent.checksum = sent.checksum_to_send(SOURCE, DESTINATION, Sum::of(&payload));
        assert!(sent.checksum_is_right(SOURCE, DESTINATION, Sum::of(&payload)));
        assert!(!sent.checksum_is_right(SOURCE, DESTINATION, Sum::of(b"pong")));
        assert!(!sent.checksum_is_right(SOURCE, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), Sum::of(&payload)));
        sent.checksum = UdpHeader::NO_CHECKSUM;
        assert!(sent.checksum_is_right(SOURCE, DESTINATION, Sum::of(b"pong")), "no checksum, nothing to hold it to");
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        // A payload of two bytes can make any sum come out as all ones, whose complement is zero.
        let bare = header(10).checksum_to_send(SOURCE, DESTINATION, Sum::ZERO);
        let payload = bare.to_be_bytes();
        let mut sent = header(10);
        sent.checksum = sent.checksum_to_send(SOURCE, DESTINATION, Sum::of(&payload));
        assert_eq!(sent.checksum, 0xffff);
        assert!(sent.checksum_is_right(SOURCE, DESTINATION, Sum::of(&payload)));
    }
}
