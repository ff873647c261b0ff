//! VDROP, a virtual protocol that makes a good link bad: it adds no header, and its sessions drop, repeat, hold back and
//! spoil what passes through them, as often as it was told and by the path's own random stream. It stands wherever a
//! graph puts it, so that what is above it can be tried without a network that misbehaves.

mod protocol;
mod session;
#[cfg(test)]
mod tests;

pub use protocol::{VdropConfig, VdropProtocol};
pub use session::HELD_MAX;

use xylem_core::DropReason;

/// It was told to drop this one.
pub static DROPPED: DropReason = DropReason::new("vdrop", "as it was told");
/// What was held back when the path ended, or more than is held.
pub static HELD: DropReason = DropReason::new("vdrop", "held back for too long");
