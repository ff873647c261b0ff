//! Segments and network errors as somebody forges them who knows the addresses of a conversation, and what such a somebody
//! sees of one: whole frames, right in everything that was not meant to be wrong. Fuzz targets and tests of hostile peers
//! make theirs here.

use std::net::{IpAddr, Ipv4Addr};
use xylem_core::Message;
use xylem_wire::*;

/// Where a host stands: its addresses.
pub type Place = (Ipv4Addr, EthernetAddress);

/// A segment to be sent from one place to another.
#[derive(Clone, Copy, Debug)]
pub struct Forged<'a> {
    /// Who it says it is from, and the port.
    pub from: (Place, Port),
    /// Whom it is for, and the port.
    pub to: (Place, Port),
    /// Its flags.
    pub flags: TcpFlags,
    /// Its number.
    pub sequence: SequenceNumber,
    /// What it acknowledges.
    pub acknowledgment: SequenceNumber,
    /// Its window as it stands in the header.
    pub window: u16,
    /// Its urgent pointer.
    pub urgent: u16,
    /// Its options as bytes; what is not whole words is filled up with zeros.
    pub options: &'a [u8],
    /// Its payload.
    pub payload: &'a [u8],
    /// What stands in the network header about congestion.
    pub ecn: Ecn,
}

impl<'a> Forged<'a> {
    /// One that says nothing, with a window of 65 535 bytes.
    pub fn between(from: (Place, Port), to: (Place, Port)) -> Forged<'a> {
        Forged {
            from,
            to,
            flags: TcpFlags::ACK,
            sequence: SequenceNumber(0),
            acknowledgment: SequenceNumber(0),
            window: u16::MAX,
            urgent: 0,
            options: &[],
            payload: &[],
            ecn: Ecn::NotCapable,
        }
    }

    /// TCP's header with its options, and the payload.
    ///
    /// # Panics
    /// If there are more than forty bytes of options: no header says so many.
    pub fn segment(&self) -> Vec<u8> {
        let mut header = TcpHeader::generate(&mut || 0);
        let mut options = self.options.to_vec();
        options.resize(options.len().next_multiple_of(4), 0);
        (header.source, header.destination) = (self.from.1, self.to.1);
        (header.sequence, header.acknowledgment) = (self.sequence, self.acknowledgment);
        (header.flags, header.window, header.urgent) = (self.flags, self.window, self.urgent);
        header.header_words = TcpHeader::words_with(options.len());
        let behind = [options.as_slice(), self.payload].concat();
        let (from, to) = (IpAddr::V4(self.from.0.0), IpAddr::V4(self.to.0.0));
        let length = (TcpHeader::LEN + behind.len()) as u32;
        header.checksum = header.checksum_to_send(from, to, Sum::of(&behind), length);
        let mut message = Message::from_bytes(&behind);
        message.push_header(&header);
        message.to_vec()
    }

    /// The frame.
    pub fn frame(&self) -> Vec<u8> {
        let whole = (0, false);
        packet(self.from.0, self.to.0, IpProtocol::TCP, self.ecn, whole, &self.segment())
    }

    /// The frame's segment in two fragments, the second of which begins `units` times eight bytes into it; whole, if it has
    /// not so many.
    pub fn fragments(&self, units: u16, identification: u16) -> Vec<Vec<u8>> {
        let segment = self.segment();
        let at = usize::from(units) * 8;
        if at == 0 || at >= segment.len() {
            return vec![self.frame()];
        }
        let piece = |place, bytes: &[u8]| {
            let mut frame = packet(self.from.0, self.to.0, IpProtocol::TCP, self.ecn, place, bytes);
            identify(&mut frame, identification);
            frame
        };
        vec![piece((0, true), &segment[..at]), piece((units, false), &segment[at..])]
    }
}

/// A frame with a packet in it; `place` is a fragment's place in units of eight bytes, and whether more follow.
fn packet(from: Place, to: Place, protocol: IpProtocol, ecn: Ecn, place: (u16, bool), payload: &[u8]) -> Vec<u8> {
    let mut message = Message::from_bytes(payload);
    let mut header = Ipv4Header::generate(&mut || 0);
    (header.header_words, header.source, header.destination) = (Ipv4Header::WORDS, from.0, to.0);
    (header.protocol, header.time_to_live, header.ecn) = (protocol, 64, ecn);
    // What does not fit thirteen bits does not stand in any packet.
    header.fragment_offset = FragmentOffset::of_units(place.0).unwrap_or_default();
    header.more_fragments = place.1;
    header.total_length = (payload.len() + Ipv4Header::LEN) as u16;
    header.checksum = header.checksum_to_send(&[]);
    message.push_header(&header);
    message.push_header(&EthernetHeader { destination: to.1, source: from.1, kind: EtherType::IPV4 });
    message.to_vec()
}

/// Gives the packet of a frame made here an identification.
fn identify(frame: &mut Vec<u8>, identification: u16) {
    let mut message = Message::from_bytes(frame);
    let (Ok(ethernet), Ok(ip)) = (message.pop_header::<EthernetHeader>(), message.pop_header::<Ipv4Header>()) else {
        return;
    };
    let ip = Ipv4Header { identification, checksum: 0, ..ip };
    message.push_header(&Ipv4Header { checksum: ip.checksum_to_send(&[]), ..ip });
    message.push_header(&ethernet);
    *frame = message.to_vec();
}

/// An error message of the network about the packet in `about`, a frame that its receiver has sent or shall believe it has:
/// from `router`, by way of the link address `by`. `word` is what stands behind the common header.
pub fn complaint(router: Ipv4Addr, by: EthernetAddress, kind: IcmpKind, code: u8, word: u32, about: &[u8]) -> Vec<u8> {
    let Some(quoted) = about.get(EthernetHeader::LEN..) else { return Vec::new() };
    let Ok(ip) = Ipv4Header::parse(quoted) else { return Vec::new() };
    let quote = &quoted[..quoted.len().min(ip.header_length() + 8)];
    let sender = EthernetHeader::parse(about).map_or(EthernetAddress::BROADCAST, |header| header.source);
    let behind = [&word.to_be_bytes(), quote].concat();
    let mut message = Message::from_bytes(&behind);
    message.push_header(&IcmpHeader { kind, code, checksum: 0 });
    let checksum = message.sum(0).checksum();
    message.trim_front(IcmpHeader::LEN);
    message.push_header(&IcmpHeader { kind, code, checksum });
    packet((router, by), (ip.source, sender), IpProtocol::ICMP, Ecn::NotCapable, (0, false), &message.to_vec())
}

/// A segment in a frame, as whoever stands beside the wire reads it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The network's header.
    pub ip: Ipv4Header,
    /// TCP's header.
    pub header: TcpHeader,
    /// Its options.
    pub options: TcpOptions,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Seen {
    /// The segment in `frame`, if there is a whole one with right checksums.
    pub fn read(frame: &[u8]) -> Option<Seen> {
        let packet = frame.get(EthernetHeader::LEN..)?;
        EthernetHeader::parse(frame).ok().filter(|header| header.kind == EtherType::IPV4)?;
        let ip = Ipv4Header::parse(packet).ok().filter(|ip| ip.protocol == IpProtocol::TCP && !ip.is_fragment())?;
        if !Sum::of(&packet[..ip.header_length()]).is_right() {
            return None;
        }
        let segment = packet.get(ip.header_length()..usize::from(ip.total_length))?;
        let header = TcpHeader::parse(segment).ok()?;
        let (from, to) = (IpAddr::V4(ip.source), IpAddr::V4(ip.destination));
        if !Sum::pseudo(from, to, IpProtocol::TCP, segment.len() as u32).add(Sum::of(segment)).is_right() {
            return None;
        }
        let options = TcpOptions::parse(header.options(segment)).ok()?;
        Some(Seen { ip, header, options, payload: segment[header.header_length()..].to_vec() })
    }

    /// Sequence numbers it takes up.
    pub fn length(&self) -> u32 {
        let flag = |flag| u32::from(self.header.flags.contains(flag));
        self.payload.len() as u32 + flag(TcpFlags::SYN) + flag(TcpFlags::FIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: (Place, Port) = ((Ipv4Addr::new(10, 0, 0, 1), EthernetAddress([2, 0, 0, 0, 0, 1])), Port(1000));
    const B: (Place, Port) = ((Ipv4Addr::new(10, 0, 0, 2), EthernetAddress([2, 0, 0, 0, 0, 2])), Port(80));

    #[test]
    fn what_is_forged_reads_as_it_was_meant_and_a_flaw_is_seen() {
        let mut options = [0; 12];
        let said = TcpOptions { mss: Some(1000), sack_permitted: true, ..TcpOptions::NONE };
        let length = said.build(&mut options);
        let forged = Forged {
            flags: TcpFlags::SYN,
            sequence: SequenceNumber(7),
            options: &options[..length],
            payload: b"data",
            ..Forged::between(A, B)
        };
        let frame = forged.frame();
        let seen = Seen::read(&frame).expect("it is right");
        assert_eq!((seen.header.sequence, seen.options, &seen.payload[..]), (SequenceNumber(7), said, &b"data"[..]));
        assert_eq!((seen.length(), seen.ip.destination), (5, B.0.0));
        for at in EthernetHeader::LEN..frame.len() {
            let mut flawed = frame.clone();
            flawed[at] ^= 0x40;
            assert!(Seen::read(&flawed).is_none(), "byte {at}");
        }
    }

    #[test]
    fn fragments_are_two_where_there_is_enough_and_errors_quote() {
        let forged = Forged { payload: &[1; 100], ..Forged::between(A, B) };
        assert_eq!(forged.fragments(3, 9).len(), 2);
        assert_eq!(forged.fragments(30, 9), [forged.frame()]);
        let sizes: usize = forged.fragments(3, 9).iter().map(|frame| frame.len() - 34).sum();
        assert_eq!(sizes, forged.segment().len());
        let error = complaint(Ipv4Addr::new(9, 9, 9, 9), B.0.1, IcmpKind::UNREACHABLE, 4, 1000, &forged.frame());
        let packet = &error[EthernetHeader::LEN..];
        let ip = Ipv4Header::parse(packet).expect("a header");
        assert_eq!((ip.destination, ip.protocol, packet.len()), (A.0.0, IpProtocol::ICMP, 20 + 8 + 28));
        assert!(Sum::of(&packet[20..]).is_right());
    }
}
