//! Floor 2 of Xylem: the protocols, a folder each. None imports another: they meet only in the words of the core, so any
//! of them can be replaced, left out, or stacked differently by a graph file.
//!
//! Read [`udp`] first: it is the smallest that does everything a protocol does.

pub mod arp;
pub mod ethernet;
pub mod icmp;
pub mod ipv4;
pub mod point;
pub mod tcp;
pub mod toy;
pub mod udp;
pub mod vdrop;
pub mod vsize;

#[cfg(test)]
mod testing;
