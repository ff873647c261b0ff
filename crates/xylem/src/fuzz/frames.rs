//! Frames that get far: their lower layers accept them, and something random is inside. Most have right checksums, so that
//! the layers above have something to judge; the rest are for the layers that look at checksums.

use std::net::{IpAddr, Ipv4Addr};
use xylem_core::{Message, Random};
use xylem_wire::*;

/// Who sends the frames to whom.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// The addresses they come from.
    pub from: (Ipv4Addr, EthernetAddress),
    /// The addresses of the host they are for.
    pub to: (Ipv4Addr, EthernetAddress),
    /// The port that most of them are for.
    pub port: Port,
}

/// So many in a million are wrong in what most have right.
const WRONG_PER_MILLION: u32 = 100_000;

/// The next frame.
pub fn frame(random: &mut Random, aim: &Aim) -> Vec<u8> {
    let to_all = random.chance_per_million(WRONG_PER_MILLION);
    let destination = if to_all { EthernetAddress::BROADCAST } else { aim.to.1 };
    let mut ethernet = EthernetHeader { destination, source: aim.from.1, kind: EtherType::IPV4 };
    let mut message = Message::from_bytes(&[]);
    if random.chance_per_million(150_000) {
        message.push_header(&arp(random, aim));
        ethernet.kind = EtherType::ARP;
        message.push_header(&ethernet);
        return message.to_vec();
    }
    let payload = random.below(64) as usize;
    random.fill(message.prepend(payload));
    let protocol = match random.below(6) {
        0..3 => tcp(random, aim, &mut message),
        3..5 => udp(random, aim, &mut message),
        _ => icmp(random, &mut message),
    };
    let mut ip = Ipv4Header::generate(&mut || random.next());
    (ip.header_words, ip.source, ip.destination, ip.protocol) = (Ipv4Header::WORDS, aim.from.0, aim.to.0, protocol);
    ip.total_length = (message.len() + Ipv4Header::LEN) as u16;
    if random.chance_per_million(800_000) {
        (ip.more_fragments, ip.fragment_offset) = (false, FragmentOffset::default());
    }
    ip.checksum = ip.checksum_to_send(&[]);
    message.push_header(&ip);
    message.push_header(&ethernet);
    message.to_vec()
}

/// A question or an answer of ARP. It speaks for its sender only: on a link without protection, whoever speaks for another
/// host is believed (RFC 826).
fn arp(random: &mut Random, aim: &Aim) -> ArpHeader {
    let operation = if random.chance_per_million(500_000) { ArpOperation::REQUEST } else { ArpOperation::REPLY };
    ArpHeader {
        operation,
        sender_hardware: aim.from.1,
        sender_protocol: aim.from.0,
        target_hardware: EthernetAddress::UNSPECIFIED,
        target_protocol: aim.to.0,
    }
}

fn tcp(random: &mut Random, aim: &Aim, message: &mut Message) -> IpProtocol {
    let mut header = TcpHeader::generate(&mut || random.next());
    if random.chance_per_million(900_000) {
        header.destination = aim.port;
    }
    let mut options = [0; TcpHeader::OPTIONS_MAX];
    let length = if random.chance_per_million(500_000) {
        let options_said = TcpOptions::generate(&mut || random.next());
        if options_said.length() <= options.len() { options_said.build(&mut options) } else { 0 }
    } else {
        0
    };
    message.prepend(length).copy_from_slice(&options[..length]);
    header.header_words = TcpHeader::words_with(length);
    if !random.chance_per_million(WRONG_PER_MILLION) {
        let whole = (TcpHeader::LEN + message.len()) as u32;
        let (from, to) = (IpAddr::V4(aim.from.0), IpAddr::V4(aim.to.0));
        header.checksum = header.checksum_to_send(from, to, message.sum(0), whole);
    }
    message.push_header(&header);
    IpProtocol::TCP
}

fn udp(random: &mut Random, aim: &Aim, message: &mut Message) -> IpProtocol {
    let mut header = UdpHeader::generate(&mut || random.next());
    if random.chance_per_million(500_000) {
        header.destination = aim.port;
    }
    if !random.chance_per_million(WRONG_PER_MILLION) {
        (header.length, header.checksum) = ((UdpHeader::LEN + message.len()) as u16, UdpHeader::NO_CHECKSUM);
    }
    message.push_header(&header);
    IpProtocol::UDP
}

fn icmp(random: &mut Random, message: &mut Message) -> IpProtocol {
    message.push_header(&IcmpHeader::generate(&mut || random.next()));
    if !random.chance_per_million(WRONG_PER_MILLION) {
        let front = message.front(IcmpHeader::LEN).and_then(|bytes| IcmpHeader::parse(bytes).ok());
        if let Some(header) = front {
            message.trim_front(IcmpHeader::LEN);
            message.push_header(&IcmpHeader { checksum: 0, ..header });
            let checksum = message.sum(0).checksum();
            message.trim_front(IcmpHeader::LEN);
            message.push_header(&IcmpHeader { checksum, ..header });
        }
    }
    IpProtocol::ICMP
}
