//! VSIZE, a virtual protocol that chooses by size: small messages go straight to its first lower, large ones to its
//! second, which can carry them (a fragmenter). It adds no header: either lower says by its own number whom a message is
//! for, and whatever comes up goes to the same conversation.

mod protocol;
mod session;
#[cfg(test)]
mod tests;

pub use protocol::{VsizeConfig, VsizeProtocol};

use xylem_core::DropReason;

/// Larger than even the second lower carries.
pub static TOO_LARGE: DropReason = DropReason::new("vsize", "larger than the second lower carries");
