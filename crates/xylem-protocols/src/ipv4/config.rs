//! How IPv4 is set up: our interfaces, the ways to other networks, and the limits of reassembly. What is wrong with a
//! set-up is said when the protocol is made, not when the first packet comes.

use super::routes::Route;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;
use xylem_wire::{Cidr, Ipv4Header};

/// One address of ours on one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Our address and the length of its network's prefix.
    pub address: Cidr,
    /// Which of the protocol's lowers is the link.
    pub lower: usize,
    /// The largest packet the link takes, in bytes. Sessions learn it from the link; forwarded packets go by this.
    pub mtu: usize,
}

impl Interface {
    /// An address on lower number `lower`, an Ethernet of the usual size.
    pub fn new(address: Cidr, lower: usize) -> Interface {
        Interface { address, lower, mtu: 1500 }
    }
}

/// What reassembly may hold. At a limit the oldest go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Bytes of buffers.
    pub bytes: usize,
    /// Packets being put together.
    pub datagrams: usize,
    /// Packets being put together from one source, so that nobody takes all the room.
    pub datagrams_per_source: usize,
    /// Fragments of one packet. The largest packet makes 119 at an MTU of 576 bytes.
    pub fragments: usize,
    /// How long the fragments of a packet wait for the others, from the first to arrive.
    pub time: Duration,
}

impl Default for ReassemblyLimits {
    /// 4 MiB, 256 packets, 64 of one source, 128 fragments each, 30 seconds (RFC 1122, section 3.3.2, asks for 60 to 120;
    /// on fast links identifications come round sooner than that, RFC 4963, so practice is 30).
    fn default() -> ReassemblyLimits {
        ReassemblyLimits {
            bytes: 4 << 20,
            datagrams: 256,
            datagrams_per_source: 64,
            fragments: 128,
            time: Duration::from_secs(30),
        }
    }
}

/// See the module's text. [`Ipv4Config::new`] has the usual values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4Config {
    /// Our addresses.
    pub interfaces: Vec<Interface>,
    /// Where everything goes that no other route leads to.
    pub gateway: Option<Ipv4Addr>,
    /// Ways to other networks.
    pub routes: Vec<Route>,
    /// Whether packets for others are passed on.
    pub forwarding: bool,
    /// Hops our packets may take (RFC 1122, section 3.2.1.7).
    pub time_to_live: u8,
    /// What reassembly may hold.
    pub reassembly: ReassemblyLimits,
}

impl Ipv4Config {
    /// The usual values for these interfaces: no gateway, no forwarding, 64 hops.
    pub fn new(interfaces: Vec<Interface>) -> Ipv4Config {
        Ipv4Config {
            interfaces,
            gateway: None,
            routes: Vec::new(),
            forwarding: false,
            time_to_live: 64,
            reassembly: ReassemblyLimits::default(),
        }
    }

    /// A host with one address on its first lower.
    pub fn host(address: Cidr, gateway: Option<Ipv4Addr>) -> Ipv4Config {
        Ipv4Config { gateway, ..Ipv4Config::new(vec![Interface::new(address, 0)]) }
    }

    pub(super) fn check(&self) -> Result<(), Ipv4ConfigError> {
        if self.interfaces.is_empty() {
            return Err(Ipv4ConfigError::NoInterface);
        }
        for interface in &self.interfaces {
            match interface.address.address() {
                std::net::IpAddr::V4(address) if is_host(address) => {}
                _ => return Err(Ipv4ConfigError::NotAHost(interface.address)),
            }
            if interface.mtu < Ipv4Header::MTU_MIN {
                return Err(Ipv4ConfigError::Mtu(interface.mtu));
            }
        }
        if self.time_to_live == 0 {
            return Err(Ipv4ConfigError::TimeToLive);
        }
        Ok(())
    }
}

/// Whether this is an address that one host can have: neither nobody's, nor a group's, nor everybody's, nor the loopback,
/// nor reserved (RFC 1122, section 3.2.1.3).
pub(super) fn is_host(address: Ipv4Addr) -> bool {
    let reserved = address.octets()[0] >= 240;
    !(reserved || address.octets()[0] == 0 || address.is_multicast() || address.is_loopback())
}

/// What is wrong with a set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ipv4ConfigError {
    /// There is no interface.
    NoInterface,
    /// An interface's address is not an IPv4 host's.
    NotAHost(Cidr),
    /// A link's MTU is smaller than IPv4 needs.
    Mtu(usize),
    /// Packets that may take no hop arrive nowhere.
    TimeToLive,
    /// A route's network is not an IPv4 network.
    NotANetwork(Cidr),
    /// A gateway is on none of our networks, so that no link leads to it.
    GatewayFar(Ipv4Addr),
}

impl fmt::Display for Ipv4ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ipv4ConfigError::NoInterface => f.write_str("expected an interface with an address, got none"),
            Ipv4ConfigError::NotAHost(got) => write!(f, "expected the IPv4 address of one host, got {got}"),
            Ipv4ConfigError::Mtu(got) => {
                write!(f, "expected an MTU of at least {} bytes, got {got}", Ipv4Header::MTU_MIN)
            }
            Ipv4ConfigError::TimeToLive => f.write_str("expected a time to live of 1 to 255, got 0"),
            Ipv4ConfigError::NotANetwork(got) => write!(f, "expected an IPv4 network, got {got}"),
            Ipv4ConfigError::GatewayFar(got) => write!(f, "expected a gateway on a network of ours, got {got}"),
        }
    }
}

impl std::error::Error for Ipv4ConfigError {}
