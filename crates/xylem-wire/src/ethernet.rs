//! The Ethernet header: whom a frame is for, who sent it, what it carries. There is no length: a frame shorter than
//! sixty bytes arrives padded, so whoever stands above trusts its own length field.

use crate::{EtherType, EthernetAddress, header};

header! {
    /// The Ethernet II header (RFC 894; IEEE 802.3, section 3.1.1).
    pub struct EthernetHeader {
        /// Whom the frame is for.
        destination: EthernetAddress = Local,
        /// Who sent it.
        source: EthernetAddress = Remote,
        /// What it carries.
        kind: EtherType = Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Header;

    #[test]
    fn a_known_frame() {
        let frame = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1];
        let header = EthernetHeader::parse(&frame).unwrap();
        assert_eq!(header.destination, EthernetAddress::BROADCAST);
        assert_eq!(header.source, EthernetAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!(header.kind, EtherType::ARP);
    }
}
