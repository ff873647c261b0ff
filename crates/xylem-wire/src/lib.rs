//! Floor 0 of Xylem: bytes to values and back. Past this crate there are values that cannot be wrong, not slices.
//!
//! A header is declared once with [`header!`]; the declaration yields the struct, parse, build, the field table from
//! which demultiplexing plans and dissectors are made, and a generator of valid headers for tests. No byte offset
//! exists outside a declaration. Beside the headers stand the small values they are made of (ports, sequence numbers,
//! addresses, protocol numbers) and the Internet checksum as a value whose parts can be combined.
//!
//! ```
//! use xylem_wire::{Header, Malformed, Port, UdpHeader};
//!
//! let header = UdpHeader { source: Port(53), destination: Port(4000), length: 8, checksum: 0 };
//! let mut bytes = [0; UdpHeader::LEN];
//! header.build(&mut bytes);
//! assert_eq!(UdpHeader::parse(&bytes), Ok(header));
//! assert_eq!(UdpHeader::parse(&bytes[..7]), Err(Malformed::Short { expected: 8, got: 7 }));
//! ```
//!
//! This crate depends on the standard library and, for writing values into files and messages, serde. It must never
//! depend on another Xylem crate, on a clock, on a system call or on anything that allocates for each packet: floor 1
//! and everything above it stand on these values, and so do tools that only want to read a packet.
//!
//! | to read about | see |
//! | --- | --- |
//! | declaring a header | [`mod@header`], [`Header`], [`FieldValue`], and [`udp`] as the smallest example |
//! | what parse refuses | [`Malformed`] |
//! | addresses and numbers | [`Port`], [`SequenceNumber`], [`EthernetAddress`], [`EtherType`], [`IpProtocol`], [`Cidr`] |
//! | checksums | [`Sum`] |
//! | headers | [`ethernet`], [`arp`], [`ipv4`], [`ipv6`], [`icmp`], [`udp`], [`tcp`], [`tcp_options`], [`vnet`] |

pub mod arp;
pub mod checksum;
mod cidr;
mod congestion;
pub mod ethernet;
mod ethernet_address;
mod fast_open;
pub mod field;
pub mod header;
pub mod icmp;
pub mod ipv4;
pub mod ipv4_options;
pub mod ipv6;
mod malformed;
mod numbers;
mod port;
mod sack;
mod sequence;
pub mod tcp;
pub mod tcp_options;
pub mod udp;
pub mod vnet;

pub use arp::{ArpHeader, ArpOperation};
pub use checksum::Sum;
pub use cidr::{Cidr, CidrError};
pub use congestion::Ecn;
pub use ethernet::EthernetHeader;
pub use ethernet_address::{EthernetAddress, EthernetAddressError};
pub use fast_open::FastOpenCookie;
pub use field::{FieldValue, LittleU16};
pub use header::{Field, Header, Role, VariableLength};
pub use icmp::{IcmpEcho, IcmpHeader, IcmpKind, IcmpParameterProblem, IcmpRedirect, IcmpTimeExceeded, IcmpUnreachable};
pub use ipv4::{FragmentOffset, Ipv4Header};
pub use ipv4_options::Ipv4Options;
pub use ipv6::Ipv6Header;
pub use malformed::Malformed;
pub use numbers::{EtherType, IpProtocol};
pub use port::Port;
pub use sack::{SackBlock, SackBlocks};
pub use sequence::SequenceNumber;
pub use tcp::{TcpFlags, TcpHeader};
pub use tcp_options::{TcpOptions, Timestamps};
pub use udp::UdpHeader;
pub use vnet::{VnetBuffers, VnetHeader, VnetOffload};

#[doc(hidden)]
pub use header::declared;
