//! Why ARP drops.

use xylem_core::DropReason;

/// Not a whole ARP packet for IPv4 on Ethernet.
pub static MALFORMED: DropReason = DropReason::new("arp", "malformed, or not for IPv4 on Ethernet");
/// Neither question nor answer.
pub static OTHER_OPERATION: DropReason = DropReason::new("arp", "neither request nor reply");
/// The sender's link address is a group's or nobody's.
pub static BAD_HARDWARE: DropReason = DropReason::new("arp", "the sender's link address is not a station's");
/// The sender's IPv4 address is not one host's.
pub static BAD_SENDER: DropReason = DropReason::new("arp", "the sender's address is not one host's");
/// Our own packet came back.
pub static ECHO: DropReason = DropReason::new("arp", "our own packet came back");
/// Somebody else claims an address of ours.
pub static CONFLICT: DropReason = DropReason::new("arp", "somebody else claims an address of ours");
/// Another address for a neighbour whose address has only just been learnt.
pub static UNSETTLED: DropReason = DropReason::new("arp", "another address for a neighbour just learnt");
