//! Between segments of a script and bytes: a segment as an IPv4 packet, an error that quotes one, and what a packet of the
//! subject says. All layouts come from the header declarations.

use super::conversation::{Conversation, PEER, SUBJECT};
use super::event::{Report, ReportKind};
use super::segment::{Extent, Flaw, OptionWish, Place, Segment, Stamp};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use xylem_wire::{
    Ecn, FastOpenCookie, Header, IcmpHeader, IcmpKind, IcmpParameterProblem, IcmpTimeExceeded, IcmpUnreachable,
    IpProtocol, Ipv4Header, Port, SackBlock, SackBlocks, SequenceNumber, Sum, TcpFlags, TcpHeader, TcpOptions,
    Timestamps,
};

/// The usual largest packet of a link in bytes.
pub const MTU_USUAL: u16 = 1500;
/// Hops of what the peer sends.
const HOPS: u8 = 64;
/// Bytes of a TCP header that an error quotes (RFC 792).
const QUOTED: usize = 8;

/// A packet of the subject, read.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// When it was sent, counted from the script's begin.
    pub at: Duration,
    pub header: TcpHeader,
    pub options: TcpOptions,
    pub payload: Vec<u8>,
    pub ecn: Ecn,
    pub hop_limit: u8,
    pub dscp: u8,
}

/// A segment of the peer as a packet.
pub(super) fn build(segment: &Segment, conversation: &mut Conversation, payload: &[u8]) -> Vec<u8> {
    let options = conversation.options(segment);
    let mut tcp = vec![0; TcpHeader::LEN];
    for option in &options {
        put_option(option, conversation, &mut tcp);
    }
    tcp.resize(tcp.len().next_multiple_of(4), 0);
    let words = (tcp.len() / 4) as u8;
    tcp.extend_from_slice(payload);
    if let Some(window) = segment.window {
        // The reader lets only windows of 16 bits through.
        conversation.window = window.least as u16;
    }
    let (mut source, mut destination, mut header_words) = (PEER, SUBJECT, words);
    for flaw in &segment.flaws {
        match flaw {
            Flaw::From(address) => source = *address,
            Flaw::To(address) => destination = *address,
            Flaw::HeaderWords(words) => header_words = *words,
            Flaw::CutTo(bytes) => tcp.truncate(usize::from(*bytes)),
            Flaw::Checksum | Flaw::Reserved(_) | Flaw::OtherContent => {}
        }
    }
    let header = TcpHeader {
        source: Port(conversation.ends.peer),
        destination: Port(conversation.ends.subject),
        sequence: SequenceNumber(conversation.peer_number(segment.sequence)),
        acknowledgment: SequenceNumber(segment.acknowledgment.map_or(0, |place| conversation.subject_number(place))),
        header_words,
        flags: segment.flags,
        window: conversation.window,
        checksum: 0,
        urgent: segment.urgent.unwrap_or(0),
    };
    put_header(&header, segment, &mut tcp);
    let pseudo = Sum::pseudo(source.into(), destination.into(), IpProtocol::TCP, tcp.len() as u32);
    let mut checksum = pseudo.add(Sum::of(&tcp)).checksum();
    if segment.has_flaw(Flaw::Checksum) {
        checksum = checksum.wrapping_add(1);
    }
    put_header(&TcpHeader { checksum, ..header }, segment, &mut tcp);
    let ip = Ipv4Header {
        header_words: Ipv4Header::WORDS,
        dscp: segment.dscp.unwrap_or(0),
        ecn: segment.ecn.unwrap_or_default(),
        time_to_live: segment.hop_limit.unwrap_or(HOPS),
        ..network_header(IpProtocol::TCP, tcp.len(), source, destination)
    };
    with_network_header(&ip, &tcp)
}

/// Writes as much of the header as there is room for, and the reserved bits, which its declaration leaves zero.
fn put_header(header: &TcpHeader, segment: &Segment, tcp: &mut [u8]) {
    let mut bytes = [0; TcpHeader::LEN];
    header.build(&mut bytes);
    for flaw in &segment.flaws {
        if let Flaw::Reserved(bits) = flaw {
            let field = TcpHeader::FIELDS.iter().find(|field| field.name == "reserved");
            let field = field.expect("the header is declared with its reserved bits");
            let shift = 8 - field.bit_offset % 8 - field.bits;
            bytes[field.bit_offset / 8] |= bits << shift;
        }
    }
    let length = tcp.len().min(TcpHeader::LEN);
    tcp[..length].copy_from_slice(&bytes[..length]);
}

fn network_header(protocol: IpProtocol, payload: usize, source: Ipv4Addr, destination: Ipv4Addr) -> Ipv4Header {
    Ipv4Header {
        header_words: Ipv4Header::WORDS,
        // Scripts hold payloads far below what 16 bits count.
        total_length: (Ipv4Header::LEN + payload).min(usize::from(u16::MAX)) as u16,
        dont_fragment: true,
        time_to_live: HOPS,
        protocol,
        source,
        destination,
        dscp: 0,
        ecn: Ecn::NotCapable,
        identification: 0,
        more_fragments: false,
        fragment_offset: xylem_wire::FragmentOffset::FIRST,
        checksum: 0,
    }
}

fn with_network_header(header: &Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    Ipv4Header { checksum: header.checksum_to_send(&[]), ..*header }.build(&mut packet);
    packet.extend_from_slice(payload);
    packet
}

/// An error from the network about a segment that the subject has sent.
pub(super) fn build_report(report: &Report, conversation: &Conversation, mtu: u16) -> Vec<u8> {
    let quoted = TcpHeader {
        source: Port(conversation.ends.subject),
        destination: Port(conversation.ends.peer),
        sequence: SequenceNumber(conversation.subject_number(report.quotes)),
        acknowledgment: SequenceNumber(0),
        header_words: TcpHeader::WORDS,
        flags: TcpFlags::ACK,
        window: 0,
        checksum: 0,
        urgent: 0,
    };
    let mut tcp = [0; TcpHeader::LEN];
    quoted.build(&mut tcp);
    let length = usize::from(mtu) - Ipv4Header::LEN;
    let quote = with_network_header(&network_header(IpProtocol::TCP, length, SUBJECT, PEER), &tcp[..QUOTED]);
    let mut body = [0; 4];
    let (kind, code) = match report.kind {
        ReportKind::Unreachable(code) => (IcmpKind::UNREACHABLE, code),
        ReportKind::TooLarge { mtu } => {
            IcmpUnreachable { next_hop_mtu: mtu }.build(&mut body);
            (IcmpKind::UNREACHABLE, IcmpUnreachable::FRAGMENTATION_NEEDED)
        }
        ReportKind::TimeExceeded => {
            IcmpTimeExceeded {}.build(&mut body);
            (IcmpKind::TIME_EXCEEDED, IcmpTimeExceeded::IN_TRANSIT)
        }
        ReportKind::ParameterProblem => {
            IcmpParameterProblem { pointer: 0 }.build(&mut body);
            (IcmpKind::PARAMETER_PROBLEM, 0)
        }
        ReportKind::SourceQuench => (IcmpKind::SOURCE_QUENCH, 0),
    };
    let header = IcmpHeader { kind, code, checksum: 0 };
    let mut message = vec![0; IcmpHeader::LEN];
    header.build(&mut message);
    message.extend_from_slice(&body);
    message.extend_from_slice(&quote);
    let checksum = Sum::of(&message).checksum();
    IcmpHeader { checksum, ..header }.build(&mut message);
    with_network_header(&network_header(IpProtocol::ICMP, message.len(), PEER, SUBJECT), &message)
}

/// Appends one option, on whole words unless it is padding or raw.
fn put_option(option: &OptionWish, conversation: &Conversation, bytes: &mut Vec<u8>) {
    let mut room = [0; TcpHeader::OPTIONS_MAX];
    match option {
        OptionWish::NoOperation => bytes.push(1),
        OptionWish::End => bytes.push(0),
        OptionWish::Raw(raw) => bytes.extend_from_slice(raw),
        other => {
            let length = other.value(conversation).build(&mut room);
            bytes.extend_from_slice(&room[..length]);
        }
    }
}

impl OptionWish {
    /// It alone, as a value; numbers of runs are the subject's, whose data is acknowledged.
    fn value(&self, conversation: &Conversation) -> TcpOptions {
        let mut options = TcpOptions::NONE;
        match self {
            OptionWish::SegmentSize(size) => options.mss = Some(size.unwrap_or(0)),
            OptionWish::WindowScale(shift) => {
                options.window_scale = Some(shift.unwrap_or(0).min(TcpOptions::WINDOW_SCALE_MAX));
            }
            OptionWish::SackPermitted => options.sack_permitted = true,
            OptionWish::Timestamps(value, echo) => {
                let value = match value {
                    Stamp::Counted(value) => *value as u32,
                    Stamp::Any => 0,
                };
                let echo = SequenceNumber(conversation.subject_stamp(*echo));
                options.timestamps = Some(Timestamps { value: SequenceNumber(value), echo });
            }
            OptionWish::Sack(runs) => {
                for (left, right) in runs {
                    let number = |count| SequenceNumber(conversation.subject_number(Place::Counted(count)));
                    options.sack.push(SackBlock { left: number(*left), right: number(*right) });
                }
            }
            OptionWish::Cookie(bytes) => {
                let bytes = bytes.as_deref().unwrap_or_default();
                options.fast_open = FastOpenCookie::new(bytes);
            }
            OptionWish::NoOperation | OptionWish::End | OptionWish::Raw(_) => {}
        }
        options
    }

    /// Bytes it takes at least.
    pub(super) fn length_least(&self) -> usize {
        match self {
            OptionWish::NoOperation | OptionWish::End => 1,
            OptionWish::Raw(raw) => raw.len(),
            OptionWish::SegmentSize(_) | OptionWish::WindowScale(_) | OptionWish::SackPermitted => 4,
            OptionWish::Timestamps(..) => 12,
            OptionWish::Sack(runs) => 4 + 8 * runs.len(),
            OptionWish::Cookie(bytes) => (2 + bytes.as_ref().map_or(0, Vec::len)).next_multiple_of(4),
        }
    }
}

/// Reads a packet that the subject has sent; `None` if it is no TCP.
///
/// # Errors
/// What is wrong with it: no subject may send such a packet.
pub(super) fn read(at: Duration, packet: &[u8]) -> Option<Result<Seen, String>> {
    let network = Ipv4Header::parse(packet).ok()?;
    (network.protocol == IpProtocol::TCP).then(|| read_tcp(at, &network, packet))
}

fn read_tcp(at: Duration, network: &Ipv4Header, packet: &[u8]) -> Result<Seen, String> {
    let length = network.payload_length(packet.len()).map_err(|error| format!("an IPv4 packet of {error:?}"))?;
    let begin = network.header_length();
    if !Sum::of(&packet[..begin]).is_right() {
        return Err("an IPv4 header with a wrong checksum".to_owned());
    }
    let tcp = &packet[begin..begin + length];
    let header = TcpHeader::parse(tcp).map_err(|error| format!("a TCP header that is none: {error:?}"))?;
    let ends = (IpAddr::from(network.source), IpAddr::from(network.destination));
    if !Sum::pseudo(ends.0, ends.1, IpProtocol::TCP, length as u32).add(Sum::of(tcp)).is_right() {
        return Err("a segment with a wrong checksum".to_owned());
    }
    let options = TcpOptions::parse(header.options(tcp)).map_err(|error| format!("impossible options: {error:?}"))?;
    let payload = tcp.get(header.header_length()..).unwrap_or_default().to_vec();
    let Ipv4Header { ecn, time_to_live: hop_limit, dscp, .. } = *network;
    Ok(Seen { at, header, options, payload, ecn, hop_limit, dscp })
}

impl Seen {
    /// As a script would write it.
    pub fn segment(&self, conversation: &Conversation) -> Segment {
        let counted = |number: SequenceNumber, from: u32| {
            let count = number.0.wrapping_sub(from) as i32;
            // A number far from any of this connection means more as it is.
            if count.unsigned_abs() < 1 << 29 { Place::Counted(i64::from(count)) } else { Place::Raw(number.0) }
        };
        let has = |flag| self.header.flags.contains(flag);
        let ours = conversation.subject_isn.unwrap_or(0);
        Segment {
            flags: self.header.flags,
            sequence: counted(self.header.sequence, ours),
            payload: self.payload.len() as u32,
            acknowledgment: has(TcpFlags::ACK).then(|| counted(self.header.acknowledgment, conversation.peer_isn)),
            window: Some(Extent::of(self.header.window.into())),
            urgent: has(TcpFlags::URG).then_some(self.header.urgent),
            options: Some(wishes(&self.options, conversation)),
            ecn: Some(self.ecn).filter(|ecn| *ecn != Ecn::NotCapable),
            ..Segment::default()
        }
    }
}

/// Options of the subject as a script would write them.
fn wishes(options: &TcpOptions, conversation: &Conversation) -> Vec<OptionWish> {
    let mut wishes = Vec::new();
    wishes.extend(options.mss.map(|size| OptionWish::SegmentSize(Some(size))));
    wishes.extend(options.sack_permitted.then_some(OptionWish::SackPermitted));
    wishes.extend(options.timestamps.map(|Timestamps { value, echo }| {
        let value = Stamp::Counted(conversation.counted_stamp(value.0));
        OptionWish::Timestamps(value, Stamp::Counted(echo.0.into()))
    }));
    wishes.extend(options.window_scale.map(|shift| OptionWish::WindowScale(Some(shift))));
    wishes.extend(options.fast_open.map(|cookie| OptionWish::Cookie(Some(cookie.as_bytes().to_vec()))));
    let runs = runs(&options.sack, conversation);
    if !runs.is_empty() {
        wishes.push(OptionWish::Sack(runs));
    }
    wishes
}

/// What the subject says it has of the peer's data out of order.
pub(super) fn runs(blocks: &SackBlocks, conversation: &Conversation) -> Vec<(i64, i64)> {
    let count = |number: SequenceNumber| i64::from(number.0.wrapping_sub(conversation.peer_isn) as i32);
    blocks.iter().map(|block| (count(block.left), count(block.right))).collect()
}
