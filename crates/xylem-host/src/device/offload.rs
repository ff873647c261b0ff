//! What stands in the vnet header before a frame, in the words of a message's attributes, and back: an unfinished
//! checksum, and how a message that stands for several segments is to be cut (VIRTIO 1.2, section 5.1.6).

use xylem_core::{Checksum, Message};
use xylem_wire::{
    EtherType, EthernetHeader, Header, IpProtocol, Ipv4Header, Ipv6Header, LittleU16, TcpFlags, TcpHeader, UdpHeader,
    VnetHeader, VnetOffload,
};

/// The vnet header for a frame on its way out. `None` if its attributes contradict its bytes, which no peer can cause
/// and no device would take.
pub(super) fn vnet_header_of(frame: &mut Message) -> Option<VnetHeader> {
    let Checksum::Partial { start, field } = frame.attributes.checksum else {
        // Who cuts a frame gives each segment a checksum, so a whole one has an unfinished checksum.
        return (frame.attributes.segment_size == 0).then_some(VnetHeader::NOTHING);
    };
    let mut header = VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        checksum_start: LittleU16(start),
        checksum_offset: LittleU16(field),
        ..VnetHeader::NOTHING
    };
    let segment_size = frame.attributes.segment_size;
    if segment_size > 0 {
        let transport = Transport::of(frame, usize::from(start))?;
        // One segment is not cut; the kernel would not mind, but others on the way might.
        if frame.len() > transport.headers + usize::from(segment_size) {
            header.offload = transport.offload;
            header.headers_length = LittleU16(transport.headers as u16);
            header.segment_size = LittleU16(segment_size);
        }
    }
    Some(header)
}

/// Gives a frame the attributes that the `header` it came in behind says. False if they contradict its bytes: a frame
/// that nobody could finish.
#[must_use]
pub(super) fn note(header: &VnetHeader, frame: &mut Message) -> bool {
    let length = frame.len();
    let attributes = &mut frame.attributes;
    if header.needs_checksum() {
        let (start, field) = (header.checksum_start.0, header.checksum_offset.0);
        if usize::from(start) + usize::from(field) + 2 > length {
            return false;
        }
        attributes.checksum = Checksum::Partial { start, field };
    } else if header.checksum_is_valid() {
        attributes.checksum = Checksum::Verified;
    }
    if header.offload.kind() != VnetOffload::NONE {
        attributes.segment_size = header.segment_size.0;
    }
    frame.attributes.segments = segments(frame);
    true
}

/// How many segments a frame stands for by its attributes; 0 if it says nothing of the kind.
pub(super) fn segments(frame: &mut Message) -> u16 {
    let (Checksum::Partial { start, .. }, size @ 1..) = (frame.attributes.checksum, frame.attributes.segment_size)
    else {
        return 0;
    };
    let Some(transport) = Transport::of(frame, usize::from(start)) else { return 0 };
    let payload = frame.len().saturating_sub(transport.headers);
    payload.div_ceil(usize::from(size)).min(usize::from(u16::MAX)) as u16
}

/// What a frame that stands for several segments carries.
struct Transport {
    /// Bytes of all its headers together.
    headers: usize,
    offload: VnetOffload,
}

impl Transport {
    /// Reads the headers of a frame whose transport header begins at `start`.
    fn of(frame: &mut Message, start: usize) -> Option<Transport> {
        let front = frame.front(start + UdpHeader::LEN)?;
        let kind = EthernetHeader::parse(front).ok()?.kind;
        let network = front.get(EthernetHeader::LEN..start)?;
        let (protocol, tcp) = match kind {
            EtherType::IPV4 => (Ipv4Header::parse(network).ok()?.protocol, VnetOffload::TCP_IPV4),
            EtherType::IPV6 => (Ipv6Header::parse(network).ok()?.next, VnetOffload::TCP_IPV6),
            _ => return None,
        };
        if protocol == IpProtocol::UDP {
            return Some(Transport { headers: start + UdpHeader::LEN, offload: VnetOffload::UDP_MESSAGES });
        }
        if protocol != IpProtocol::TCP {
            return None;
        }
        // The fixed part says how long the options are, and parse wants to see them.
        let length = frame.len().min(start + TcpHeader::LENGTH_MAX);
        let header = TcpHeader::parse(&frame.front(length)?[start..]).ok()?;
        let offload = if header.flags.contains(TcpFlags::CWR) { tcp.with_congestion() } else { tcp };
        Some(Transport { headers: start + header.header_length(), offload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use xylem_core::Attributes;
    use xylem_wire::{Ecn, EthernetAddress, FragmentOffset, Port, SequenceNumber};

    const START: usize = EthernetHeader::LEN + Ipv4Header::LEN;

    fn frame(payload: usize, options: usize, flags: TcpFlags) -> Message {
        let mut message = Message::from_bytes(&vec![7; payload]);
        message.prepend(options).fill(1);
        message.push_header(&TcpHeader {
            source: Port(1),
            destination: Port(2),
            sequence: SequenceNumber(3),
            acknowledgment: SequenceNumber(4),
            header_words: TcpHeader::words_with(options),
            flags,
            window: 5,
            checksum: 6,
            urgent: 0,
        });
        message.push_header(&Ipv4Header {
            header_words: Ipv4Header::WORDS,
            dscp: 0,
            ecn: Ecn::NotCapable,
            total_length: (message.len() + Ipv4Header::LEN) as u16,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: FragmentOffset::FIRST,
            time_to_live: 64,
            protocol: IpProtocol::TCP,
            checksum: 0,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        });
        message.push_header(&EthernetHeader {
            destination: EthernetAddress([2, 0, 0, 0, 0, 1]),
            source: EthernetAddress([2, 0, 0, 0, 0, 2]),
            kind: EtherType::IPV4,
        });
        message.attributes.checksum = Checksum::Partial { start: START as u16, field: 16 };
        message
    }

    #[test]
    fn a_message_of_many_segments_says_how_it_is_cut_and_is_understood_again() {
        let mut message = frame(10_000, 12, TcpFlags::ACK | TcpFlags::CWR);
        message.attributes.segment_size = 1448;
        let header = vnet_header_of(&mut message).expect("a well-formed frame");
        assert!(header.needs_checksum());
        assert_eq!((header.checksum_start.0, header.checksum_offset.0), (34, 16));
        assert_eq!(header.offload, VnetOffload::TCP_IPV4.with_congestion());
        assert_eq!(usize::from(header.headers_length.0), START + 32);
        assert_eq!(header.segment_size.0, 1448);
        message.attributes = Attributes::default();
        assert!(note(&header, &mut message));
        let attributes = &message.attributes;
        assert_eq!((attributes.segment_size, attributes.segments), (1448, 7));
        assert_eq!(attributes.checksum, Checksum::Partial { start: 34, field: 16 });
    }

    #[test]
    fn one_segment_is_not_cut_and_a_finished_checksum_stays() {
        let mut message = frame(1448, 12, TcpFlags::ACK);
        message.attributes.segment_size = 1448;
        let header = vnet_header_of(&mut message).expect("a well-formed frame");
        assert_eq!((header.offload, header.segment_size.0), (VnetOffload::NONE, 0));
        message.attributes = Attributes { checksum: Checksum::Verified, ..Attributes::default() };
        assert_eq!(vnet_header_of(&mut message), Some(VnetHeader::NOTHING));
        message.attributes = Attributes::default();
        assert!(note(&VnetHeader::NOTHING, &mut message));
        assert_eq!(message.attributes, Attributes::default());
    }

    #[test]
    fn attributes_that_contradict_the_bytes_are_found() {
        let mut message = frame(5000, 0, TcpFlags::ACK);
        message.attributes.segment_size = 1460;
        message.attributes.checksum = Checksum::None;
        assert_eq!(vnet_header_of(&mut message), None);
        for start in [0, 13, 14, 20, 5000, u16::MAX] {
            message.attributes.checksum = Checksum::Partial { start, field: 16 };
            assert_eq!(vnet_header_of(&mut message), None, "a checksum that starts at {start}");
        }
        let mut header = VnetHeader { flags: VnetHeader::NEEDS_CHECKSUM, ..VnetHeader::NOTHING };
        let length = message.len() as u16;
        for (start, field, fits) in
            [(34, 16, true), (length - 2, 0, true), (length - 1, 0, false), (34, u16::MAX, false)]
        {
            (header.checksum_start, header.checksum_offset) = (LittleU16(start), LittleU16(field));
            assert_eq!(note(&header, &mut message), fits, "a checksum at {start} + {field} of {length}");
        }
    }
}
