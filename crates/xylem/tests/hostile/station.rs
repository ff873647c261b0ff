//! Frames as the hostile station makes them: right in everything but their purpose.

use std::net::{IpAddr, Ipv4Addr};
use xylem_core::Message;
use xylem_wire::*;

/// Where a host stands: its addresses.
pub type Place = (Ipv4Addr, EthernetAddress);

pub const CLIENT: Place = (Ipv4Addr::new(10, 0, 0, 1), EthernetAddress([2, 0, 0, 0, 0, 1]));
pub const SERVER: Place = (Ipv4Addr::new(10, 0, 0, 2), EthernetAddress([2, 0, 0, 0, 0, 2]));
pub const EVIL: Place = (Ipv4Addr::new(10, 0, 0, 66), EthernetAddress([2, 0, 0, 0, 0, 66]));
pub const PORT: Port = Port(80);

/// ARP from one place about another address.
pub fn arp(operation: ArpOperation, from: Place, target: Ipv4Addr) -> Vec<u8> {
    let mut message = Message::from_bytes(&[]);
    message.push_header(&ArpHeader {
        operation,
        sender_hardware: from.1,
        sender_protocol: from.0,
        target_hardware: EthernetAddress::UNSPECIFIED,
        target_protocol: target,
    });
    message.push_header(&EthernetHeader { destination: SERVER.1, source: from.1, kind: EtherType::ARP });
    message.to_vec()
}

/// A packet to the server from any address; `fragment` is its place in units of eight bytes, and whether more follow.
pub fn packet(
    source: Ipv4Addr,
    protocol: IpProtocol,
    identification: u16,
    fragment: Option<(u16, bool)>,
    payload: &[u8],
) -> Vec<u8> {
    let mut message = Message::from_bytes(payload);
    let mut header = Ipv4Header::generate(&mut || 0);
    (header.header_words, header.source, header.destination) = (Ipv4Header::WORDS, source, SERVER.0);
    (header.protocol, header.time_to_live, header.identification) = (protocol, 64, identification);
    let (offset, more) = fragment.unwrap_or((0, false));
    (header.fragment_offset, header.more_fragments) = (FragmentOffset::of_units(offset).expect("thirteen bits"), more);
    header.total_length = (payload.len() + Ipv4Header::LEN) as u16;
    header.checksum = header.checksum_to_send(&[]);
    message.push_header(&header);
    message.push_header(&EthernetHeader { destination: SERVER.1, source: EVIL.1, kind: EtherType::IPV4 });
    message.to_vec()
}

/// What a segment says.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub flags: TcpFlags,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub window: u16,
}

/// A segment to the shop's port from any end-point, without options.
pub fn segment(source: (Ipv4Addr, u16), said: Said, payload: &[u8]) -> Vec<u8> {
    let mut header = TcpHeader::generate(&mut || 0);
    (header.source, header.destination, header.header_words) = (Port(source.1), PORT, TcpHeader::WORDS);
    (header.sequence, header.acknowledgment) = (SequenceNumber(said.sequence), SequenceNumber(said.acknowledgment));
    (header.flags, header.window) = (said.flags, said.window);
    let length = (TcpHeader::LEN + payload.len()) as u32;
    let (from, to) = (IpAddr::V4(source.0), IpAddr::V4(SERVER.0));
    header.checksum = header.checksum_to_send(from, to, Sum::of(payload), length);
    let mut message = Message::from_bytes(payload);
    message.push_header(&header);
    packet(source.0, IpProtocol::TCP, 0, None, &message.to_vec())
}

/// A SYN with number 0.
pub fn syn(source: (Ipv4Addr, u16)) -> Vec<u8> {
    segment(source, Said { flags: TcpFlags::SYN, sequence: 0, acknowledgment: 0, window: 1000 }, &[])
}

/// The segment in a frame of the server's: its header and how much it carries.
pub fn segment_in(frame: &[u8]) -> Option<(TcpHeader, usize)> {
    let packet = frame.get(EthernetHeader::LEN..)?;
    let ip = Ipv4Header::parse(packet).ok().filter(|ip| ip.protocol == IpProtocol::TCP)?;
    let segment = &packet[ip.header_length()..usize::from(ip.total_length)];
    let tcp = TcpHeader::parse(segment).ok()?;
    let payload = segment.len() - tcp.header_length();
    Some((tcp, payload))
}
