//! Why UDP drops.

use xylem_core::DropReason;

/// The message ends before its header does.
pub static SHORT: DropReason = DropReason::new("udp", "shorter than its header");
/// The header says that the message is shorter than the header, or longer than what arrived.
pub static BAD_LENGTH: DropReason = DropReason::new("udp", "impossible length");
/// The checksum is wrong, or missing where it must not be.
pub static BAD_CHECKSUM: DropReason = DropReason::new("udp", "bad checksum");
/// The message is for port 0, which names nobody.
pub static PORT_ZERO: DropReason = DropReason::new("udp", "for port 0");
/// Nobody has this port.
pub static NO_PORT: DropReason = DropReason::new("udp", "nobody has this port");
/// The message belongs to another conversation than the path it came to.
pub static OTHER_PATH: DropReason = DropReason::new("udp", "of another conversation than its path");
/// A message to send is longer than the header can say.
pub static TOO_LONG: DropReason = DropReason::new("udp", "longer than a message can be");
