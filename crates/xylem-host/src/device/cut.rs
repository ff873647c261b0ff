//! What a network card does to a frame that its sender left unfinished: it finishes the checksum, and cuts a message that
//! stands for several segments into frames (VIRTIO 1.2, section 5.1.6.2.1). For links that carry whole frames only. The
//! bytes come from another host's kernel, so everything is looked at before it is believed.

use std::net::IpAddr;
use xylem_wire::{
    EtherType, EthernetHeader, Header, Ipv4Header, Ipv6Header, SequenceNumber, Sum, TcpFlags, TcpHeader, UdpHeader,
    VnetHeader, VnetOffload,
};

/// The most bytes of headers in front of a payload that is cut: Ethernet, IPv4 or IPv6 with options, TCP with options.
const HEADS_MAX: usize = 256;

/// The frame says something of itself that is not so, or is of a kind that nobody cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uncuttable;

/// Hands over every frame that `frame`, which came behind `header`, stands for: whole, with its checksums finished, in
/// two pieces (headers and payload, or everything and nothing). `frame` is used up.
///
/// # Errors
/// [`Uncuttable`]; nothing was handed over.
pub(crate) fn cut(header: &VnetHeader, frame: &mut [u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<(), Uncuttable> {
    if header.offload.kind() == VnetOffload::NONE {
        if header.needs_checksum() {
            finish(header, frame)?;
        }
        each(frame, &[]);
        return Ok(());
    }
    let size = usize::from(header.segment_size.0);
    // Whoever leaves the cutting to others leaves the checksum to them as well.
    if size == 0 || !header.needs_checksum() {
        return Err(Uncuttable);
    }
    let template = Template::read(frame, usize::from(header.checksum_start.0), header.offload)?;
    let (heads, payload) = frame.split_at(template.heads);
    let mut room = [0; HEADS_MAX];
    let count = payload.len().div_ceil(size).max(1);
    for index in 0..count {
        let from = index * size;
        let piece = &payload[from..(from + size).min(payload.len())];
        let head = room.get_mut(..heads.len()).ok_or(Uncuttable)?;
        head.copy_from_slice(heads);
        template.write(head, piece, Place { index, from, last: index + 1 == count });
        each(head, piece);
    }
    Ok(())
}

/// Finishes the checksum of a frame that is not cut.
fn finish(header: &VnetHeader, frame: &mut [u8]) -> Result<(), Uncuttable> {
    let (start, field) = (usize::from(header.checksum_start.0), usize::from(header.checksum_offset.0));
    // The field holds the folded sum of the pseudo header, so the sum from `start` on includes it.
    let summed = frame.get_mut(start..).ok_or(Uncuttable)?;
    let checksum = Sum::of(summed).checksum();
    // A computed zero is sent as all ones, which means the same to every protocol and, in UDP, is not "none".
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    summed.get_mut(field..field + 2).ok_or(Uncuttable)?.copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Which of the pieces of a message one is.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    /// Payload bytes in front of it.
    from: usize,
    last: bool,
}

/// The headers of a message that is cut.
struct Template {
    network: Network,
    transport: Transport,
    /// Where the transport header begins.
    start: usize,
    /// Bytes of all headers.
    heads: usize,
}

enum Network {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

enum Transport {
    Tcp(TcpHeader),
    Udp(UdpHeader),
}

impl Template {
    /// Reads the headers of a frame whose transport header begins at `start`.
    fn read(frame: &[u8], start: usize, offload: VnetOffload) -> Result<Template, Uncuttable> {
        let no = |_| Uncuttable;
        let kind = EthernetHeader::parse(frame).map_err(no)?.kind;
        let network = frame.get(EthernetHeader::LEN..start).ok_or(Uncuttable)?;
        let network = match kind {
            EtherType::IPV4 => Network::V4(Ipv4Header::parse(network).map_err(no)?),
            EtherType::IPV6 => Network::V6(Ipv6Header::parse(network).map_err(no)?),
            _ => return Err(Uncuttable),
        };
        let bytes = frame.get(start..).ok_or(Uncuttable)?;
        let (transport, length) = match (offload.kind(), &network) {
            (VnetOffload::TCP_IPV4, Network::V4(_)) | (VnetOffload::TCP_IPV6, Network::V6(_)) => {
                let header = TcpHeader::parse(bytes).map_err(no)?;
                let length = header.header_length();
                (Transport::Tcp(header), length)
            }
            (VnetOffload::UDP_MESSAGES, _) => (Transport::Udp(UdpHeader::parse(bytes).map_err(no)?), UdpHeader::LEN),
            _ => return Err(Uncuttable),
        };
        let heads = start + length;
        if heads > frame.len() || heads > HEADS_MAX {
            return Err(Uncuttable);
        }
        Ok(Template { network, transport, start, heads })
    }

    /// Writes the headers of one piece over a copy of the message's; options stay as they are.
    fn write(&self, head: &mut [u8], piece: &[u8], place: Place) {
        let (front, back) = head.split_at_mut(self.start);
        let network = &mut front[EthernetHeader::LEN..];
        // What the network layer counts as behind its fixed header or behind its whole header; a frame was at most 64 KB
        // long, so its parts fit.
        let length = back.len() + piece.len();
        let (source, destination): (IpAddr, IpAddr) = match &self.network {
            Network::V4(header) => {
                let mut header = *header;
                header.total_length = (network.len() + length) as u16;
                header.identification = header.identification.wrapping_add(place.index as u16);
                header.checksum = header.checksum_to_send(&network[Ipv4Header::LEN..]);
                header.build(network);
                (header.source.into(), header.destination.into())
            }
            Network::V6(header) => {
                let mut header = *header;
                header.payload_length = (network.len() - Ipv6Header::LEN + length) as u16;
                header.build(network);
                (header.source.into(), header.destination.into())
            }
        };
        match &self.transport {
            Transport::Tcp(header) => {
                let mut header = *header;
                header.sequence = SequenceNumber(header.sequence.0.wrapping_add(place.from as u32));
                if !place.last {
                    header.flags = header.flags.without(TcpFlags::FIN.with(TcpFlags::PSH));
                }
                if place.index > 0 {
                    // RFC 3168, section 6.1.2: the reduction is told once.
                    header.flags = header.flags.without(TcpFlags::CWR);
                }
                // Options come in words, so the piece begins at an even place.
                let behind = Sum::of(&back[TcpHeader::LEN..]).add(Sum::of(piece));
                header.checksum = header.checksum_to_send(source, destination, behind, length as u32);
                header.build(back);
            }
            Transport::Udp(header) => {
                let mut header = *header;
                header.length = length as u16;
                header.checksum = header.checksum_to_send(source, destination, Sum::of(piece));
                header.build(back);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use xylem_core::Random;
    use xylem_wire::{Ecn, EthernetAddress, FragmentOffset, IpProtocol, LittleU16, Port};

    const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn ethernet(kind: EtherType) -> Vec<u8> {
        let header = EthernetHeader {
            destination: EthernetAddress([2, 0, 0, 0, 0, 1]),
            source: EthernetAddress([2, 0, 0, 0, 0, 2]),
            kind,
        };
        built(&header)
    }

    fn built(header: &impl Header) -> Vec<u8> {
        let mut bytes = vec![0; header.header_length()];
        header.build(&mut bytes);
        bytes
    }

    fn ipv4(protocol: IpProtocol, length: usize) -> Ipv4Header {
        Ipv4Header {
            header_words: Ipv4Header::WORDS,
            dscp: 0,
            ecn: Ecn::NotCapable,
            total_length: length as u16,
            identification: 0xffff,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: FragmentOffset::FIRST,
            time_to_live: 64,
            protocol,
            checksum: 0,
            source: SOURCE,
            destination: DESTINATION,
        }
    }

    /// A TCP message over IPv4 with twelve bytes of options, as a kernel hands it over.
    fn message(payload: &[u8]) -> (VnetHeader, Vec<u8>) {
        let header = TcpHeader {
            source: Port(1),
            destination: Port(2),
            sequence: SequenceNumber(u32::MAX - 1000),
            acknowledgment: SequenceNumber(4),
            header_words: TcpHeader::words_with(12),
            flags: TcpFlags::ACK.with(TcpFlags::PSH).with(TcpFlags::FIN).with(TcpFlags::CWR),
            window: 100,
            checksum: 0x1234,
            urgent: 0,
        };
        let mut frame = ethernet(EtherType::IPV4);
        frame.extend(built(&ipv4(IpProtocol::TCP, 20 + 32 + payload.len())));
        let mut tcp = vec![0; 20];
        header.build(&mut tcp);
        frame.extend(tcp);
        frame.extend([1; 12]);
        frame.extend(payload);
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            offload: VnetOffload::TCP_IPV4.with_congestion(),
            headers_length: LittleU16(66),
            segment_size: LittleU16(1448),
            checksum_start: LittleU16(34),
            checksum_offset: LittleU16(16),
        };
        (vnet, frame)
    }

    fn frames(vnet: &VnetHeader, frame: &[u8]) -> Result<Vec<Vec<u8>>, Uncuttable> {
        let mut frames = Vec::new();
        cut(vnet, &mut frame.to_vec(), |head, rest| frames.push([head, rest].concat()))?;
        Ok(frames)
    }

    #[test]
    fn the_pieces_of_a_message_are_whole_frames_and_together_the_message() {
        let mut payload = vec![0; 4000];
        Random::seeded(5).fill(&mut payload);
        let (vnet, frame) = message(&payload);
        let frames = frames(&vnet, &frame).expect("it is well formed");
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [66 + 1448, 66 + 1448, 66 + 1104]);
        let (mut together, mut sequence) = (Vec::<u8>::new(), u32::MAX - 1000);
        for (index, frame) in frames.iter().enumerate() {
            let network = Ipv4Header::parse(&frame[14..]).expect("a header");
            assert_eq!(usize::from(network.total_length), frame.len() - 14);
            assert_eq!(network.identification, 0xffffu16.wrapping_add(index as u16));
            assert!(Sum::of(&frame[14..34]).is_right(), "the header's checksum");
            let tcp = TcpHeader::parse(&frame[34..]).expect("a header");
            assert_eq!(tcp.sequence.0, sequence);
            let last = index == 2;
            assert_eq!(tcp.flags.contains(TcpFlags::FIN) && tcp.flags.contains(TcpFlags::PSH), last);
            assert_eq!(tcp.flags.contains(TcpFlags::CWR), index == 0);
            let pseudo = Sum::pseudo(SOURCE.into(), DESTINATION.into(), IpProtocol::TCP, (frame.len() - 34) as u32);
            assert!(Sum::of(&frame[34..]).add(pseudo).is_right(), "the segment's checksum");
            assert_eq!(frame[54..66], [1; 12], "options stay");
            together.extend(&frame[66..]);
            sequence = sequence.wrapping_add(1448);
        }
        assert!(together == payload);
    }

    #[test]
    fn datagrams_of_version_six_are_cut_too() {
        let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
        let network = Ipv6Header {
            dscp: 0,
            ecn: Ecn::NotCapable,
            flow_label: 0,
            payload_length: 2508,
            next: IpProtocol::UDP,
            hop_limit: 9,
            source,
            destination,
        };
        let udp = UdpHeader { source: Port(1), destination: Port(2), length: 2508, checksum: 1 };
        let mut frame = [ethernet(EtherType::IPV6), built(&network), built(&udp)].concat();
        frame.extend(vec![7; 2500]);
        let vnet = VnetHeader {
            flags: VnetHeader::NEEDS_CHECKSUM,
            offload: VnetOffload::UDP_MESSAGES,
            headers_length: LittleU16(62),
            segment_size: LittleU16(1000),
            checksum_start: LittleU16(54),
            checksum_offset: LittleU16(6),
        };
        let frames = frames(&vnet, &frame).expect("it is well formed");
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [1062, 1062, 562]);
        for frame in frames {
            let udp = UdpHeader::parse(&frame[54..]).expect("a header");
            assert_eq!(usize::from(udp.length), frame.len() - 54);
            assert!(udp.checksum_is_right(source.into(), destination.into(), Sum::of(&frame[62..])));
        }
    }

    #[test]
    fn a_frame_that_is_not_cut_gets_its_checksum_or_stays() {
        let (mut vnet, frame) = message(&[9; 101]);
        vnet.offload = VnetOffload::NONE;
        let finished = frames(&vnet, &frame).expect("it is well formed");
        let summed = Sum::of(&finished[0][34..]);
        // Everything from the start on, the field's old value in place of the pseudo header, comes out right.
        assert!(summed.without(Sum::ZERO.add_u16(0)).add_u16(0x1234).is_right());
        assert_eq!(frames(&VnetHeader::NOTHING, &frame), Ok(vec![frame]));
    }

    #[test]
    fn what_contradicts_itself_is_refused_and_nothing_panics() {
        let (vnet, frame) = message(&[9; 4000]);
        for wrong in [
            VnetHeader { segment_size: LittleU16(0), ..vnet },
            VnetHeader { flags: 0, ..vnet },
            VnetHeader { offload: VnetOffload::TCP_IPV6, ..vnet },
            VnetHeader { offload: VnetOffload::UDP_FRAGMENTS, ..vnet },
            VnetHeader { checksum_start: LittleU16(13), ..vnet },
            VnetHeader { checksum_start: LittleU16(4066), ..vnet },
            VnetHeader { offload: VnetOffload::NONE, checksum_start: LittleU16(5000), ..vnet },
            VnetHeader { offload: VnetOffload::NONE, checksum_offset: LittleU16(u16::MAX), ..vnet },
        ] {
            assert_eq!(frames(&wrong, &frame), Err(Uncuttable), "{wrong:?}");
        }
        let mut random = Random::seeded(3);
        for _ in 0..20_000 {
            let (mut vnet, mut frame) = message(&[9; 300]);
            frame.truncate(random.below(367) as usize);
            for _ in 0..3 {
                let (at, value) = (random.below(80) as usize, random.next() as u8);
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            vnet.checksum_start = LittleU16([34, random.below(100) as u16][random.below(2) as usize]);
            vnet.segment_size = LittleU16(1 + random.below(100) as u16);
            let _cut_or_not = frames(&vnet, &frame);
        }
    }
}
