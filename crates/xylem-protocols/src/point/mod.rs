//! A link between two hosts and nobody else, on which packets travel without a header: what a TUN device carries, or a
//! program that hands packets over one by one. There are no addresses on it, so nobody is looked for; which protocol a
//! packet is for stands in its own first four bits.

mod protocol;
mod session;
#[cfg(test)]
mod tests;

pub use protocol::{PointConfig, PointProtocol};

use xylem_core::DropReason;
use xylem_wire::{EtherType, header};

/// Nothing arrived at all.
pub static EMPTY: DropReason = DropReason::new("point", "an empty frame");
/// The packet says a version that no internet protocol has.
pub static NO_VERSION: DropReason = DropReason::new("point", "of neither version of the internet protocol");
/// The packet is of another version than the path it came to.
pub static OTHER_VERSION: DropReason = DropReason::new("point", "of another version than its path");

header! {
    /// What both internet protocols begin with (RFC 791, section 3.1; RFC 8200, section 3).
    pub struct PacketFront {
        /// Which version it is.
        version: u8 [4] = Next,
        /// What that version puts there.
        rest: u8 [4] = Data,
    }
}

impl PacketFront {
    /// The type by which links with a header would carry it; `None` for a version that nobody has.
    pub fn kind(&self) -> Option<EtherType> {
        match self.version {
            4 => Some(EtherType::IPV4),
            6 => Some(EtherType::IPV6),
            _ => None,
        }
    }
}
