//! Why Ethernet drops.

use xylem_core::DropReason;

/// The frame ends before its header does.
pub static SHORT: DropReason = DropReason::new("ethernet", "shorter than its header");
/// The frame is for another station.
pub static NOT_OURS: DropReason = DropReason::new("ethernet", "for another station");
/// The frame says that a group sent it.
pub static GROUP_SOURCE: DropReason = DropReason::new("ethernet", "sent by a group");
/// The type field holds a length: an IEEE 802.3 frame (RFC 1122, section 2.3.3, lets a host leave these out).
pub static LENGTH: DropReason = DropReason::new("ethernet", "an IEEE 802.3 frame with a length");
/// The frame's type is not the one of the path it came to.
pub static OTHER_TYPE: DropReason = DropReason::new("ethernet", "of another type than its path");
/// More messages waited for a neighbour than are kept.
pub static WAITING_FULL: DropReason = DropReason::new("ethernet", "too many wait for the neighbour");
/// The neighbour a message waited for does not answer.
pub static NO_NEIGHBOUR: DropReason = DropReason::new("ethernet", "the neighbour does not answer");
