//! How ARP is set up: whose addresses it answers for, and how long it believes what it has heard.

use std::net::Ipv4Addr;
use std::time::Duration;
use xylem_wire::EthernetAddress;

/// See the module's text. [`ArpConfig::new`] has the usual times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpConfig {
    /// Our link address.
    pub address: EthernetAddress,
    /// The IPv4 addresses we answer for.
    pub addresses: Vec<Ipv4Addr>,
    /// How long a neighbour is believed without a sign of life. Then it is probed, and used meanwhile.
    pub reachable: Duration,
    /// The time between two requests for the same neighbour (RFC 1122, section 2.3.2.1: not more than one a second).
    pub retry: Duration,
    /// Requests before a neighbour is given up.
    pub tries: u32,
    /// How long a neighbour that did not answer is not asked again.
    pub failed: Duration,
    /// How long a neighbour's address is not replaced by another one: the first answer counts.
    pub settled: Duration,
    /// The most neighbours known at a time.
    pub entries: usize,
    /// How often our addresses are announced at the start (RFC 5227, section 2.3).
    pub announcements: u32,
    /// The time between two announcements (RFC 5227, section 1.1).
    pub announce_every: Duration,
    /// How often at most an address is defended against one who claims it too (RFC 5227, section 1.1).
    pub defend_every: Duration,
}

impl ArpConfig {
    /// The usual settings for our link address and our IPv4 addresses.
    pub fn new(address: EthernetAddress, addresses: Vec<Ipv4Addr>) -> ArpConfig {
        ArpConfig {
            address,
            addresses,
            reachable: Duration::from_secs(60),
            retry: Duration::from_secs(1),
            tries: 3,
            failed: Duration::from_secs(3),
            settled: Duration::from_secs(1),
            entries: 1024,
            announcements: 2,
            announce_every: Duration::from_secs(2),
            defend_every: Duration::from_secs(10),
        }
    }
}
