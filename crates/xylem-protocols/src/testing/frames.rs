//! Frames made and read by tests, through the header declarations only.

pub use super::host::exchange;
use std::net::{IpAddr, Ipv4Addr};
use xylem_core::EnableWish;
use xylem_core::{Part, Participants, Side};
use xylem_wire::{
    Cidr, Ecn, EtherType, EthernetAddress, EthernetHeader, FragmentOffset, Header, IpProtocol, Ipv4Header, Port, Sum,
    UdpHeader,
};

/// The link address of host `number`.
pub fn mac(number: u8) -> EthernetAddress {
    EthernetAddress([2, 0, 0, 0, 0, number])
}

/// 10.0.0.`number`.
pub fn ipv4(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

/// 10.0.0.`number`.
pub fn ip(number: u8) -> IpAddr {
    ipv4(number).into()
}

/// Link address and network address of host `number` on network 10.0.`network`.0/24.
pub fn station(number: u8, network: u8) -> (EthernetAddress, Cidr) {
    let address = Ipv4Addr::new(10, 0, network, number);
    (EthernetAddress([2, 0, 0, 0, network, number]), Cidr::new(address, 24).expect("24 bits are not too many"))
}

/// `header` with `behind` behind it.
pub fn with_header<H: Header>(header: &H, behind: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; H::LEN];
    header.build(&mut bytes);
    bytes.extend(behind);
    bytes
}

/// A header from one host of 10.0.0.0/24 to another, for `payload` bytes; the checksum is filled in by [`packet`].
pub fn ip_header(from: u8, to: u8, protocol: IpProtocol, payload: usize) -> Ipv4Header {
    Ipv4Header {
        header_words: Ipv4Header::WORDS,
        dscp: 0,
        ecn: Ecn::NotCapable,
        total_length: (Ipv4Header::LEN + payload) as u16,
        identification: 7,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: FragmentOffset::FIRST,
        time_to_live: 64,
        protocol,
        checksum: 0,
        source: ipv4(from),
        destination: ipv4(to),
    }
}

/// A packet with the right header checksum.
pub fn packet(header: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let checksum = header.checksum_to_send(&[]);
    with_header(&Ipv4Header { checksum, ..*header }, payload)
}

/// A frame.
pub fn frame(from: EthernetAddress, to: EthernetAddress, kind: EtherType, payload: &[u8]) -> Vec<u8> {
    with_header(&EthernetHeader { destination: to, source: from, kind }, payload)
}

/// A frame with a packet from one host of 10.0.0.0/24 to another.
pub fn ip_frame(header: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (header.source.octets()[3], header.destination.octets()[3]);
    frame(mac(from), mac(to), EtherType::IPV4, &packet(header, payload))
}

/// A UDP message with the right checksum.
pub fn datagram(from: (u8, u16), to: (u8, u16), payload: &[u8]) -> Vec<u8> {
    let length = (UdpHeader::LEN + payload.len()) as u16;
    let header = UdpHeader { source: Port(from.1), destination: Port(to.1), length, checksum: 0 };
    let checksum = header.checksum_to_send(ip(from.0), ip(to.0), Sum::of(payload));
    with_header(&UdpHeader { checksum, ..header }, payload)
}

/// A frame with a UDP message.
pub fn udp_frame(from: (u8, u16), to: (u8, u16), payload: &[u8]) -> Vec<u8> {
    let datagram = datagram(from, to, payload);
    ip_frame(&ip_header(from.0, to.0, IpProtocol::UDP, datagram.len()), &datagram)
}

/// Takes a frame apart: link header and the rest.
pub fn open_frame(frame: &[u8]) -> (EthernetHeader, &[u8]) {
    (EthernetHeader::parse(frame).expect("what we send has a link header"), &frame[EthernetHeader::LEN..])
}

/// Takes a frame with a packet apart, holding it to what every packet must be: network header and payload.
pub fn open_packet(frame: &[u8]) -> (Ipv4Header, &[u8]) {
    let (link, packet) = open_frame(frame);
    assert_eq!(link.kind, EtherType::IPV4);
    let header = Ipv4Header::parse(packet).expect("what we send has a network header");
    assert!(Sum::of(&packet[..header.header_length()]).is_right(), "the header checksum is wrong");
    assert_eq!(usize::from(header.total_length), packet.len());
    (header, &packet[header.header_length()..])
}

/// A wish for a wild enable of a UDP port.
pub fn wild(port: u16) -> EnableWish {
    let participants = Participants::new([Part::Port(Port(port))], Side::default());
    EnableWish { participants, wild: true, backlog: 0, shared: false }
}
