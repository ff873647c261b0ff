//! Why ICMP drops.

use xylem_core::DropReason;

/// The message ends before its header does.
pub static SHORT: DropReason = DropReason::new("icmp", "shorter than its header");
/// The checksum is wrong.
pub static BAD_CHECKSUM: DropReason = DropReason::new("icmp", "bad checksum");
/// Nothing is done about messages of this kind (RFC 1122, section 3.2.2: silently).
pub static OTHER_KIND: DropReason = DropReason::new("icmp", "a kind that is not answered");
/// A redirect: routes are not changed on a stranger's word.
pub static REDIRECT: DropReason = DropReason::new("icmp", "a redirect");
/// An echo request to everybody, or echoes are switched off.
pub static ECHO_NOT_ANSWERED: DropReason = DropReason::new("icmp", "an echo request that is not answered");
/// An echo reply nobody waits for.
pub static NOBODY_ASKED: DropReason = DropReason::new("icmp", "an echo reply to nobody's request");
/// The message belongs to another conversation than the path it came to.
pub static OTHER_PATH: DropReason = DropReason::new("icmp", "of another conversation than its path");
/// An error about a packet of which none may be sent (RFC 1122, section 3.2.2).
pub static NO_ERROR_ABOUT_THIS: DropReason = DropReason::new("icmp", "no error may be sent about this packet");
/// An error beyond the rate at which errors are sent.
pub static TOO_MANY_ERRORS: DropReason = DropReason::new("icmp", "too many errors a second");
