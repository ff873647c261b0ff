//! Why IPv4 drops.

use xylem_core::DropReason;

/// Fewer bytes than a header has.
pub static SHORT: DropReason = DropReason::new("ipv4", "shorter than its header");
/// Not version 4.
pub static BAD_VERSION: DropReason = DropReason::new("ipv4", "not version 4");
/// The header says that it is shorter than a header can be, or longer than what arrived.
pub static BAD_HEADER_LENGTH: DropReason = DropReason::new("ipv4", "impossible header length");
/// The header's checksum is wrong.
pub static BAD_CHECKSUM: DropReason = DropReason::new("ipv4", "bad header checksum");
/// The packet says that it is shorter than its header, or longer than what arrived.
pub static BAD_TOTAL_LENGTH: DropReason = DropReason::new("ipv4", "impossible total length");
/// The source is no single host, or is ourselves.
pub static BAD_SOURCE: DropReason = DropReason::new("ipv4", "the source is not another host");
/// The packet is for another host, and we do not forward.
pub static NOT_OURS: DropReason = DropReason::new("ipv4", "for another host");
/// The link gave it to everybody although it is for one host (RFC 1122, section 3.3.6).
pub static LINK_BROADCAST: DropReason = DropReason::new("ipv4", "for one host, but sent to all on the link");
/// The packet wants to choose its own way.
pub static SOURCE_ROUTED: DropReason = DropReason::new("ipv4", "source routed");
/// The packet belongs to another conversation than the path it came to.
pub static OTHER_PATH: DropReason = DropReason::new("ipv4", "of another conversation than its path");
/// A fragment came to a path, which takes whole packets only.
pub static FRAGMENT_ON_PATH: DropReason = DropReason::new("ipv4", "a fragment on a path");

/// A message does not fit the largest packet there is.
pub static TOO_LONG: DropReason = DropReason::new("ipv4", "longer than a packet can be");
/// A message would make more fragments than are sent for one message.
pub static TOO_MANY_PIECES: DropReason = DropReason::new("ipv4", "would make too many fragments");

/// A fragment in the middle is not whole units of eight bytes, or it is empty.
pub static FRAGMENT_LENGTH: DropReason = DropReason::new("ipv4", "impossible fragment length");
/// A fragment ends beyond the largest packet there is.
pub static FRAGMENT_TOO_FAR: DropReason = DropReason::new("ipv4", "a fragment beyond the largest packet");
/// A first fragment that splits the header above (RFC 1858, section 3).
pub static TINY_FRAGMENT: DropReason = DropReason::new("ipv4", "a tiny first fragment");
/// Fragments overlap, so the whole packet is refused (in the spirit of RFC 5722).
pub static OVERLAP: DropReason = DropReason::new("ipv4", "overlapping fragments");
/// The fragment is there already.
pub static DUPLICATE: DropReason = DropReason::new("ipv4", "a fragment twice");
/// More fragments than one packet may have.
pub static TOO_MANY_FRAGMENTS: DropReason = DropReason::new("ipv4", "too many fragments of one packet");
/// Fragments had to make room for others.
pub static FRAGMENTS_FULL: DropReason = DropReason::new("ipv4", "no room for so many fragments");
/// The rest of the packet did not come in time.
pub static FRAGMENTS_LATE: DropReason = DropReason::new("ipv4", "the other fragments did not come");

/// The packet has taken all the hops it may.
pub static EXPIRED: DropReason = DropReason::new("ipv4", "time to live ran out");
/// No route leads to the packet's destination.
pub static NO_ROUTE: DropReason = DropReason::new("ipv4", "no route");
/// The packet is for somebody whom packets are not forwarded to.
pub static NOT_FORWARDED: DropReason = DropReason::new("ipv4", "not to be forwarded");
/// The packet is larger than the next link takes and may not be cut.
pub static TOO_LARGE: DropReason = DropReason::new("ipv4", "too large for the next link");
