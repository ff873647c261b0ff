//! The attribute block: what travels with a message's bytes from session to session. It is small and copied freely.

use crate::time::Instant;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use xylem_wire::Port;

/// What is known of the transport checksum inside a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing: whoever receives it verifies it.
    #[default]
    None,
    /// The checksum field holds the folded sum of the pseudo header only; whoever puts the message on a wire that may
    /// corrupt it completes it over everything from `start` (bytes from the front of the message) to the end. `field` is
    /// the offset of the checksum field from `start`.
    Partial {
        /// Where the summed part begins, from the front of the message.
        start: u16,
        /// Where the checksum field lies, from `start`.
        field: u16,
    },
    /// It is right: the device or a lower layer has seen to it.
    Verified,
}

impl Checksum {
    /// The same state after `count` bytes were put in front of the message.
    pub fn moved_back(self, count: usize) -> Checksum {
        match self {
            Checksum::Partial { start, field } => Checksum::Partial { start: start + count as u16, field },
            other => other,
        }
    }
}

/// An address and a port: one end of a conversation, as sockets name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The host.
    pub address: IpAddr,
    /// The port; zero where there is none.
    pub port: Port,
}

/// Every frame's demultiplexing hashes two of these, so they are handed over in as few and as large pieces as there are.
impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.address {
            IpAddr::V4(address) => state.write_u64(u64::from(address.to_bits()) << 16 | u64::from(self.port.0)),
            IpAddr::V6(address) => {
                state.write_u128(address.to_bits());
                state.write_u64(u64::from(self.port.0));
            }
        }
    }
}

impl Default for Endpoint {
    fn default() -> Endpoint {
        Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: Port(0) }
    }
}

/// See the module's text. The default describes an ordinary message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    /// Which lower a pushed message goes to, and which one a popped message came from, for sessions with several.
    pub branch: u8,
    /// The last message of a larger unit: survives cutting, merging and streams (application level framing).
    pub end_of_message: bool,
    /// Urgent data lies in it (RFC 9293, section 3.8.5).
    pub urgent: bool,
    /// It was sent to a group or to everybody.
    pub broadcast: bool,
    /// Smaller is served first. 0 is the default and the most urgent.
    pub priority: u8,
    /// What is known of its transport checksum.
    pub checksum: Checksum,
    /// If not 0, the message stands for several segments of at most this many payload bytes, and is cut by the device or
    /// at the device's edge.
    pub segment_size: u16,
    /// How many received segments it stands for; 0 and 1 both mean one.
    pub segments: u16,
    /// How many of these carried a congestion mark (RFC 3168).
    pub congestion_marks: u16,
    /// Its sender listens to congestion marks: routers may mark it instead of dropping it (RFC 3168, ECT(0)). The network
    /// layer writes it; a message that stands for several segments says it of each.
    pub ecn_capable: bool,
    /// When the device delivered it.
    pub arrived: Instant,
    /// For messages without a path (unconnected datagrams): our end, then the peer's.
    pub participants: Option<(Endpoint, Endpoint)>,
    /// Which of its caller's activities it belongs to.
    pub activity: u32,
    /// Set by the session on top of a trunk: the number of the protocol above that the message is for.
    pub upper: u32,
    /// A lower layer fills this for its sender and only that layer reads it.
    pub slot: [u8; 16],
}

const _: () =
    assert!(size_of::<Attributes>() <= 128, "the attribute block is copied with every message: keep it small");
