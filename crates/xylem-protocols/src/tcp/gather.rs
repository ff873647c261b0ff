//! One message for many segments: cutting a large one late, and joining small ones early. A message that stands for
//! several segments means exactly what they would; what cannot be said by one header is not joined.

use super::ends::Ends;
use super::segment::{checksum_is_right, read_header};
use xylem_core::{Checksum, Message, Piece};
use xylem_wire::{Header, SequenceNumber, TcpFlags, TcpHeader};

/// Turns the header of a whole message, first in `headers`, into the one of a piece; returns its length.
///
/// # Panics
/// If there is no TCP header: the message is one of ours.
pub(super) fn cut(headers: &mut [u8], piece: &Piece, ends: &Ends) -> usize {
    let mut header = TcpHeader::parse(headers).expect("what is cut here was built here");
    let length = header.header_length();
    header.sequence += piece.offset as u32;
    if !piece.last {
        header.flags = header.flags.without(TcpFlags::FIN | TcpFlags::PSH);
    }
    if piece.index > 0 {
        // RFC 3168, section 6.1.2: one segment tells that the window was reduced.
        header.flags = header.flags.without(TcpFlags::CWR);
    }
    if header.flags.contains(TcpFlags::URG) {
        // The pointer counts from each segment's own number, and urgent data ends before a segment it does not reach.
        let ahead = usize::from(header.urgent).saturating_sub(piece.offset);
        if ahead == 0 {
            header.flags = header.flags.without(TcpFlags::URG);
        }
        header.urgent = ahead as u16;
    }
    header.checksum = ends.pseudo(length + piece.length).fold();
    header.build(headers);
    length
}

/// Flags of segments that can be joined. An echoed mark stands on every segment while it is echoed.
const PLAIN: TcpFlags = TcpFlags::ACK.with(TcpFlags::PSH).with(TcpFlags::ECE);

/// Joins two data segments of which the first begins at `expected` and the second follows it, if one header can speak
/// for both: same options, the same of ACK, PSH and ECE but for PSH, and a second acknowledgment that is no older and not beyond `highest`.
pub(super) fn merge(
    held: &mut Message,
    next: &mut Message,
    ends: &Ends,
    expected: SequenceNumber,
    highest: SequenceNumber,
) -> bool {
    let (Some(first), Some(second)) = (read_header(held), read_header(next)) else { return false };
    let (first_length, second_length) = (first.header_length(), second.header_length());
    let (first_bytes, second_bytes) = (held.len() - first_length, next.len() - second_length);
    let is_plain = |header: &TcpHeader| header.flags.contains(TcpFlags::ACK) && PLAIN.contains(header.flags);
    let joins = is_plain(&first)
        && is_plain(&second)
        && first_bytes > 0
        && second_bytes > 0
        && first.sequence == expected
        && second.sequence == first.sequence + first_bytes as u32
        && first.flags.contains(TcpFlags::ECE) == second.flags.contains(TcpFlags::ECE)
        && (first.source, first.destination) == (second.source, second.destination)
        && first_length == second_length
        && second.acknowledgment.is_at_or_after(first.acknowledgment)
        && second.acknowledgment.is_at_or_before(highest)
        && (second.acknowledgment != first.acknowledgment || second.window == first.window);
    if !joins || !has_same_options(held, next, &first) || !is_verified(held, ends) || !is_verified(next, ends) {
        return false;
    }
    let (segments, more) = (pieces(held, first_bytes), pieces(next, second_bytes));
    let flags = first.flags | second.flags;
    let header = TcpHeader { flags, acknowledgment: second.acknowledgment, window: second.window, ..first };
    let front = held.front_mut(TcpHeader::LEN).expect("its header was read there");
    header.build(front);
    next.trim_front(second_length);
    let size = held.attributes.segment_size.max(next.attributes.segment_size);
    let size =
        size.max(first_bytes.div_ceil(segments).max(second_bytes.div_ceil(more)).min(usize::from(u16::MAX)) as u16);
    held.attributes.segment_size = size;
    held.attributes.segments = (segments + more).min(usize::from(u16::MAX)) as u16;
    held.attributes.congestion_marks =
        held.attributes.congestion_marks.saturating_add(next.attributes.congestion_marks);
    held.attributes.checksum = Checksum::Verified;
    held.append(std::mem::take(next));
    true
}

/// How many segments a message with `payload` bytes stands for.
pub(super) fn pieces(message: &Message, payload: usize) -> usize {
    let counted = usize::from(message.attributes.segments);
    match usize::from(message.attributes.segment_size) {
        0 => counted.max(1),
        size => counted.max(payload.div_ceil(size)).max(1),
    }
}

fn has_same_options(held: &mut Message, next: &mut Message, header: &TcpHeader) -> bool {
    let length = header.header_length();
    let (Some(one), Some(other)) = (held.front(length), next.front(length)) else { return false };
    header.options(one) == header.options(other)
}

/// Whether its checksum is right; then it need not be looked at again.
fn is_verified(message: &mut Message, ends: &Ends) -> bool {
    let is_right = checksum_is_right(message, 0, ends);
    if is_right {
        message.attributes.checksum = Checksum::Verified;
    }
    is_right
}
