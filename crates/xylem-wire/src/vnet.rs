//! The virtio network header, which precedes a frame on a TAP or a packet socket that was told to carry it. It says
//! what is still to be done to the frame: a checksum to finish, a long message to cut. Its numbers are little-endian,
//! as virtio 1.0 has it; a device must be told so (`TUNSETVNETLE`) on a big-endian machine.

use crate::{LittleU16, header, newtype_field};
use core::fmt;
use serde::{Deserialize, Serialize};

header! {
    /// `struct virtio_net_hdr` (virtio 1.2, section 5.1.6), the ten bytes that all variants begin with.
    pub struct VnetHeader {
        /// [`VnetHeader::NEEDS_CHECKSUM`] and [`VnetHeader::CHECKSUM_VALID`].
        flags: u8 = Data,
        /// How the frame is to be cut.
        offload: VnetOffload = Data,
        /// Bytes of all headers of the frame, in front of the payload that is cut; a hint.
        headers_length: LittleU16 = Data,
        /// Bytes of payload in each segment but the last.
        segment_size: LittleU16 = Data,
        /// Where summing starts, in bytes from the frame's front; it goes on to the frame's end.
        checksum_start: LittleU16 = Data,
        /// Where the checksum belongs, in bytes from `checksum_start`. The field holds the pseudo header's sum.
        checksum_offset: LittleU16 = Data,
    }
}

header! {
    /// What follows [`VnetHeader`] where the device was told of twelve bytes (`struct virtio_net_hdr_mrg_rxbuf`).
    pub struct VnetBuffers {
        /// Buffers the frame was spread over; one on a TAP or packet socket.
        buffers: LittleU16 = Data,
    }
}

impl VnetHeader {
    /// Flag: the checksum is still to be finished.
    pub const NEEDS_CHECKSUM: u8 = 1;
    /// Flag: the checksum has been found right.
    pub const CHECKSUM_VALID: u8 = 2;
    /// Nothing is left to do.
    pub const NOTHING: VnetHeader = VnetHeader {
        flags: 0,
        offload: VnetOffload::NONE,
        headers_length: LittleU16(0),
        segment_size: LittleU16(0),
        checksum_start: LittleU16(0),
        checksum_offset: LittleU16(0),
    };

    /// Whether the frame's checksum is still to be finished.
    #[inline]
    pub const fn needs_checksum(&self) -> bool {
        self.flags & VnetHeader::NEEDS_CHECKSUM != 0
    }

    /// Whether the device vouches for the frame's checksum.
    #[inline]
    pub const fn checksum_is_valid(&self) -> bool {
        self.flags & VnetHeader::CHECKSUM_VALID != 0
    }
}

/// How a long frame is to be cut: a kind, and a bit that says the message takes part in congestion marking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VnetOffload(pub u8);

newtype_field!(VnetOffload(u8));

impl VnetOffload {
    /// Not at all.
    pub const NONE: VnetOffload = VnetOffload(0);
    /// Into TCP segments over IPv4.
    pub const TCP_IPV4: VnetOffload = VnetOffload(1);
    /// Into IP fragments of one UDP message; long out of use.
    pub const UDP_FRAGMENTS: VnetOffload = VnetOffload(3);
    /// Into TCP segments over IPv6.
    pub const TCP_IPV6: VnetOffload = VnetOffload(4);
    /// Into UDP messages of equal size.
    pub const UDP_MESSAGES: VnetOffload = VnetOffload(5);
    /// The bit beside the kind: only the first segment carries CWR.
    const CONGESTION: u8 = 0x80;

    /// The kind without the congestion bit.
    #[inline]
    pub const fn kind(self) -> VnetOffload {
        VnetOffload(self.0 & !VnetOffload::CONGESTION)
    }

    /// Whether the congestion bit is set.
    #[inline]
    pub const fn has_congestion(self) -> bool {
        self.0 & VnetOffload::CONGESTION != 0
    }

    /// The same kind with the congestion bit.
    #[inline]
    pub const fn with_congestion(self) -> VnetOffload {
        VnetOffload(self.0 | VnetOffload::CONGESTION)
    }
}

impl fmt::Display for VnetOffload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            VnetOffload::NONE => out.pad("none"),
            VnetOffload::TCP_IPV4 => out.pad("tcp over ipv4"),
            VnetOffload::UDP_FRAGMENTS => out.pad("udp fragments"),
            VnetOffload::TCP_IPV6 => out.pad("tcp over ipv6"),
            VnetOffload::UDP_MESSAGES => out.pad("udp messages"),
            VnetOffload(number) => number.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;

    #[test]
    fn a_known_header() {
        // A TCP/IPv4 message to be cut into 1448 bytes a segment; summing starts at 34, the field is 16 further.
        let bytes = [1, 0x81, 66, 0, 0xa8, 0x05, 34, 0, 16, 0];
        let header = VnetHeader::parse(&bytes).unwrap();
        assert!(header.needs_checksum() && !header.checksum_is_valid());
        assert_eq!((header.offload.kind(), header.offload.has_congestion()), (VnetOffload::TCP_IPV4, true));
        assert_eq!(header.headers_length, LittleU16(66));
        assert_eq!(header.segment_size, LittleU16(1448));
        assert_eq!((header.checksum_start, header.checksum_offset), (LittleU16(34), LittleU16(16)));
        let mut built = [0; 10];
        header.build(&mut built);
        assert_eq!(built, bytes);
        assert_eq!(VnetHeader::LEN + VnetBuffers::LEN, 12);
    }
}
