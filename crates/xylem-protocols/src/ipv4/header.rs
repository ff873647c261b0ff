//! What makes an IPv4 header sound, said once for those who find the path of a packet and for those who pop it
//! (RFC 1122, section 3.2.1).

use super::drops;
use xylem_core::{DropReason, Message, View};
use xylem_wire::{Header, Ipv4Header, Ipv4Options, Malformed, Sum};

/// Bytes of a header without options.
pub(super) const FIXED: usize = Ipv4Header::LEN;

/// The largest packet there is, in bytes.
pub(super) const PACKET_MAX: usize = u16::MAX as usize;

/// The header that a view stands at, its options in one piece with it.
pub(super) fn in_view(view: &mut View<'_>) -> Result<Ipv4Header, &'static DropReason> {
    match view.header::<Ipv4Header>() {
        Err(Malformed::Length { got, .. }) if got > FIXED => {
            view.bytes(got).map_or(Err(&drops::BAD_HEADER_LENGTH), parse)
        }
        other => other.map_err(reason),
    }
}

/// The header in front of a message, its options in one piece with it.
pub(super) fn in_front(message: &mut Message) -> Result<Ipv4Header, &'static DropReason> {
    match message.header::<Ipv4Header>() {
        Err(Malformed::Length { got, .. }) if got > FIXED => {
            message.front(got).map_or(Err(&drops::BAD_HEADER_LENGTH), parse)
        }
        other => other.map_err(reason),
    }
}

fn parse(bytes: &[u8]) -> Result<Ipv4Header, &'static DropReason> {
    Ipv4Header::parse(bytes).map_err(reason)
}

/// Why bytes are no header.
fn reason(malformed: Malformed) -> &'static DropReason {
    match malformed {
        Malformed::Short { .. } => &drops::SHORT,
        Malformed::Value { .. } => &drops::BAD_VERSION,
        Malformed::Length { .. } => &drops::BAD_HEADER_LENGTH,
    }
}

/// Whether a header is sound whose `bytes`, options included, begin a packet of which `available` bytes arrived.
pub(super) fn judge(header: &Ipv4Header, bytes: &[u8], available: usize) -> Result<(), &'static DropReason> {
    if !Sum::of(bytes).is_right() {
        return Err(&drops::BAD_CHECKSUM);
    }
    header.payload_length(available).map_err(|_| &drops::BAD_TOTAL_LENGTH)?;
    // Options are passed over, whatever they say (RFC 9293 MUST-50), but for those that choose the way (RFC 7126, section
    // 4.3). A list that
    // cannot be walked ends the walk: what stands behind the fault is no option.
    let source_route = |option: Result<(u8, &[u8]), Malformed>| {
        matches!(option, Ok((Ipv4Options::LOOSE_SOURCE_ROUTE | Ipv4Options::STRICT_SOURCE_ROUTE, _)))
    };
    if header.options(bytes).any(source_route) { Err(&drops::SOURCE_ROUTED) } else { Ok(()) }
}

/// Builds `header` with its right checksum, and `options` behind it, at the front of `bytes`.
pub(super) fn build(header: &Ipv4Header, options: &[u8], bytes: &mut [u8]) {
    let header = Ipv4Header { checksum: header.checksum_to_send(options), ..*header };
    header.build(bytes);
    bytes[FIXED..FIXED + options.len()].copy_from_slice(options);
}
