//! ARP for IPv4 over Ethernet: who has this address, and who answers to it. Other hardware and other protocols are not
//! ours to answer, so their packets are refused by the declaration itself.

use crate::{EtherType, EthernetAddress, header};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

header! {
    /// An ARP packet (RFC 826) for IPv4 addresses on Ethernet.
    pub struct ArpHeader {
        hardware_kind: u16 = Data == 1,
        protocol_kind: EtherType = Data == EtherType::IPV4.0,
        hardware_length: u8 = Data == 6,
        protocol_length: u8 = Data == 4,
        /// Question or answer.
        operation: ArpOperation = Data,
        /// The sender's Ethernet address.
        sender_hardware: EthernetAddress = Remote,
        /// The sender's IPv4 address; unspecified while it probes for one (RFC 5227).
        sender_protocol: Ipv4Addr = Remote,
        /// Whom an answer is for; means nothing in a question.
        target_hardware: EthernetAddress = Data,
        /// The address that is asked for.
        target_protocol: Ipv4Addr = Local,
    }
}

/// What an ARP packet wants (RFC 826).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArpOperation(pub u16);

impl ArpOperation {
    /// Who has the target address?
    pub const REQUEST: ArpOperation = ArpOperation(1);
    /// The sender has it.
    pub const REPLY: ArpOperation = ArpOperation(2);
}

crate::newtype_field!(ArpOperation(u16));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Header, Malformed};

    #[test]
    fn a_known_request() {
        let bytes = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
        let request = ArpHeader::parse(&bytes).unwrap();
        assert_eq!(request.operation, ArpOperation::REQUEST);
        assert_eq!(request.sender_hardware, EthernetAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!((request.sender_protocol, request.target_protocol), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
        let mut built = [0; 28];
        request.build(&mut built);
        assert_eq!(built, bytes);
        let mut token_ring = bytes;
        token_ring[1] = 6;
        let refused = Malformed::Value { field: "hardware_kind", expected: 1, got: 6 };
        assert_eq!(ArpHeader::parse(&token_ring), Err(refused));
    }
}
