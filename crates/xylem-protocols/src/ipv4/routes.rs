//! The routing table: which interface, which neighbour and which source address lead to a destination. The longest prefix
//! that matches wins (RFC 1812, section 5.2.4.3); our own networks are routes without a gateway.

use super::config::{Interface, Ipv4Config, Ipv4ConfigError, is_host};
use std::net::{IpAddr, Ipv4Addr};
use xylem_wire::Cidr;

/// A way to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network it leads to.
    pub network: Cidr,
    /// The router to hand packets to, on a network of ours.
    pub gateway: Ipv4Addr,
}

/// The first hop towards a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Which of our interfaces.
    pub interface: usize,
    /// The neighbour on its link; everybody (255.255.255.255) for any kind of broadcast.
    pub neighbour: Ipv4Addr,
    /// Our address there.
    pub source: Ipv4Addr,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    network: Cidr,
    gateway: Option<Ipv4Addr>,
    interface: usize,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Our addresses, by interface.
    ours: Vec<Ipv4Addr>,
    /// Everybody's address on each interface's network, where there is one.
    broadcasts: Vec<Option<Ipv4Addr>>,
    /// Longest prefix first.
    entries: Vec<Entry>,
}

impl Routes {
    /// The table of a set-up.
    ///
    /// # Errors
    /// [`Ipv4ConfigError`] if an interface, a route or the gateway cannot be.
    pub fn new(config: &Ipv4Config) -> Result<Routes, Ipv4ConfigError> {
        config.check()?;
        let interfaces = &config.interfaces;
        let address = |interface: &Interface| match interface.address.address() {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => unreachable!("the set-up has been checked"),
        };
        let connected =
            |(interface, at): (usize, &Interface)| Entry { network: at.address.network(), gateway: None, interface };
        let mut entries: Vec<Entry> = interfaces.iter().enumerate().map(connected).collect();
        for route in &config.routes {
            let interface = interface_towards(interfaces, route.gateway)?;
            if !route.network.address().is_ipv4() {
                return Err(Ipv4ConfigError::NotANetwork(route.network));
            }
            entries.push(Entry { network: route.network.network(), gateway: Some(route.gateway), interface });
        }
        if let Some(gateway) = config.gateway {
            let everything = Cidr::new(Ipv4Addr::UNSPECIFIED, 0).expect("an address has at least no bits");
            let interface = interface_towards(interfaces, gateway)?;
            entries.push(Entry { network: everything, gateway: Some(gateway), interface });
        }
        // The sort keeps the order of equals: an interface before a route, a route before a later one.
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.network.prefix()));
        Ok(Routes {
            ours: interfaces.iter().map(address).collect(),
            broadcasts: interfaces.iter().map(|interface| interface.address.broadcast()).collect(),
            entries,
        })
    }

    /// Whether this is an address of ours.
    pub fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.ours.contains(&address)
    }

    /// Whether everybody on a network of ours has this address.
    pub fn is_broadcast(&self, address: Ipv4Addr) -> bool {
        address.is_broadcast() || self.broadcasts.contains(&Some(address))
    }

    /// The first hop to `destination`, sending from `source` if it is given: a group and everybody are reached on the
    /// source's own link, or on the first one. `None` also for ourselves: no link leads there.
    pub fn hop(&self, destination: Ipv4Addr, source: Option<Ipv4Addr>) -> Option<Hop> {
        if self.is_ours(destination) {
            return None;
        }
        if destination.is_broadcast() || destination.is_multicast() {
            let interface = source.map_or(Some(0), |source| self.interface_of(source))?;
            return Some(Hop { interface, neighbour: destination, source: self.ours[interface] });
        }
        if let Some(interface) = self.broadcasts.iter().position(|broadcast| *broadcast == Some(destination)) {
            return Some(Hop { interface, neighbour: Ipv4Addr::BROADCAST, source: self.ours[interface] });
        }
        if !is_host(destination) {
            return None;
        }
        let entry = self.entries.iter().find(|entry| entry.network.contains(destination.into()))?;
        let neighbour = entry.gateway.unwrap_or(destination);
        Some(Hop { interface: entry.interface, neighbour, source: self.ours[entry.interface] })
    }

    fn interface_of(&self, address: Ipv4Addr) -> Option<usize> {
        self.ours.iter().position(|ours| *ours == address)
    }
}

/// The interface on whose network the gateway is.
fn interface_towards(interfaces: &[Interface], gateway: Ipv4Addr) -> Result<usize, Ipv4ConfigError> {
    let on_link = |interface: &Interface| {
        interface.address.contains(gateway.into()) && interface.address.address() != IpAddr::V4(gateway)
    };
    interfaces.iter().position(on_link).ok_or(Ipv4ConfigError::GatewayFar(gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().expect("a test's network is well formed")
    }

    fn address(text: &str) -> Ipv4Addr {
        text.parse().expect("a test's address is well formed")
    }

    fn table() -> Routes {
        let mut config =
            Ipv4Config::new(vec![Interface::new(cidr("10.0.0.2/24"), 0), Interface::new(cidr("192.168.1.1/16"), 1)]);
        config.gateway = Some(address("10.0.0.1"));
        config.routes = vec![
            Route { network: cidr("172.16.0.0/12"), gateway: address("192.168.0.9") },
            Route { network: cidr("172.16.5.0/24"), gateway: address("10.0.0.7") },
        ];
        Routes::new(&config).expect("the set-up is right")
    }

    #[test]
    fn the_longest_prefix_leads() {
        let table = table();
        let way = |to: &str| table.hop(address(to), None).map(|hop| (hop.interface, hop.neighbour.to_string()));
        assert_eq!(way("10.0.0.77"), Some((0, "10.0.0.77".into())));
        assert_eq!(way("192.168.200.1"), Some((1, "192.168.200.1".into())));
        assert_eq!(way("172.16.4.1"), Some((1, "192.168.0.9".into())));
        assert_eq!(way("172.16.5.1"), Some((0, "10.0.0.7".into())));
        assert_eq!(way("8.8.8.8"), Some((0, "10.0.0.1".into())));
        assert_eq!(table.hop(address("192.168.3.3"), None).unwrap().source, address("192.168.1.1"));
    }

    #[test]
    fn nobody_is_reached_at_ourselves_the_loopback_or_no_address() {
        let table = table();
        for nowhere in ["10.0.0.2", "192.168.1.1", "127.0.0.1", "0.0.0.0", "0.1.2.3", "250.0.0.1"] {
            assert_eq!(table.hop(address(nowhere), None), None, "{nowhere}");
        }
    }

    #[test]
    fn everybody_is_everybody_on_the_link() {
        let table = table();
        let everybody = table.hop(address("192.168.255.255"), None).unwrap();
        assert_eq!((everybody.interface, everybody.neighbour), (1, Ipv4Addr::BROADCAST));
        let group = table.hop(address("239.1.2.3"), Some(address("192.168.1.1"))).unwrap();
        assert_eq!((group.interface, group.neighbour), (1, address("239.1.2.3")));
        assert_eq!(table.hop(Ipv4Addr::BROADCAST, None).unwrap().interface, 0);
        assert!(table.is_broadcast(address("10.0.0.255")) && !table.is_broadcast(address("10.0.1.255")));
    }

    #[test]
    fn a_set_up_that_cannot_be_is_refused() {
        let refused = |change: fn(&mut Ipv4Config)| {
            let mut config = Ipv4Config::host(cidr("10.0.0.2/24"), None);
            change(&mut config);
            Routes::new(&config).unwrap_err()
        };
        assert_eq!(refused(|config| config.interfaces.clear()), Ipv4ConfigError::NoInterface);
        assert_eq!(refused(|config| config.interfaces[0].mtu = 67), Ipv4ConfigError::Mtu(67));
        assert_eq!(refused(|config| config.time_to_live = 0), Ipv4ConfigError::TimeToLive);
        let far = refused(|config| config.gateway = Some(Ipv4Addr::new(10, 0, 1, 1)));
        assert_eq!(far, Ipv4ConfigError::GatewayFar(Ipv4Addr::new(10, 0, 1, 1)));
        assert_eq!(far.to_string(), "expected a gateway on a network of ours, got 10.0.1.1");
        for nobody in ["224.0.0.1/24", "0.0.0.0/0", "127.0.0.1/8", "255.255.255.255/32", "fe80::1/64"] {
            let mut config = Ipv4Config::host(cidr("10.0.0.2/24"), None);
            config.interfaces[0].address = cidr(nobody);
            assert_eq!(Routes::new(&config).unwrap_err(), Ipv4ConfigError::NotAHost(cidr(nobody)));
        }
    }
}
