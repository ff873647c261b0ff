//! What several makers must know of the links of a graph: which link a node stands over in effect (a virtual protocol in
//! between adds no header and counts as nothing), its hardware address and its MTU.

use xylem_graph::build::Making;
use xylem_wire::{EthernetAddress, EthernetHeader, Header};

/// The link that lower `name` of a node is or, through virtual protocols, stands over.
pub(super) fn link_below<'a>(making: &Making<'a>, name: &'a str, protocol: &'a str) -> &'a str {
    let (mut name, mut protocol) = (name, protocol);
    while making.is_virtual(protocol) {
        match making.lowers_of(name).first() {
            Some(Some((below, kind))) => (name, protocol) = (below, kind),
            Some(None) | None => break,
        }
    }
    name
}

/// The hardware address of the Ethernet of this name.
pub(super) fn hardware_address(making: &mut Making<'_>, link: &str) -> EthernetAddress {
    let said = if is_ethernet(making, link) { making.settings_of(link).hardware("address") } else { None };
    making.hardware_address(link, said)
}

/// The largest payload in bytes that the link of this name takes: what its options say, and no more than its device
/// carries.
pub(super) fn mtu(making: &Making<'_>, link: &str) -> usize {
    let has_header = making.protocol_of(link) != "point";
    let said = if is_ethernet(making, link) || !has_header { making.settings_of(link).size("mtu") } else { None };
    let header = if has_header { EthernetHeader::LEN } else { 0 };
    let device = making.device_of(link).map_or(USUAL_MTU, |device| device.frame_max.saturating_sub(header));
    // The description lets an MTU be 65 535 at most.
    said.map_or(device, |said| device.min(said as usize))
}

/// The IPv4 addresses of the nodes that stand over the link of this name: each node's address for this link.
pub(super) fn addresses_over(making: &Making<'_>, link: &str) -> Vec<std::net::IpAddr> {
    let mut over: Vec<(&str, &str)> = making.uppers_of(link);
    let mut found = Vec::new();
    while let Some((name, protocol)) = over.pop() {
        if making.is_virtual(protocol) {
            over.extend(making.uppers_of(name));
        } else if protocol == "ipv4" && !found.contains(&name) {
            found.push(name);
        }
    }
    // A stack of names takes the last first; addresses are wanted in the order of the file.
    found.reverse();
    found.iter().flat_map(|node| addresses_of(making, node, link)).collect()
}

fn addresses_of(making: &Making<'_>, node: &str, link: &str) -> Vec<std::net::IpAddr> {
    let addresses = making.settings_of(node).cidrs("address");
    let links = links_of(making, node);
    let here = links.iter().zip(addresses).filter(|((_, below), _)| *below == link);
    here.map(|(_, (address, _))| address).collect()
}

/// The links of an IPv4 node: the number of each among the node's lowers, and the link's name.
pub(super) fn links_of<'a>(making: &Making<'a>, node: &str) -> Vec<(usize, &'a str)> {
    let lowers = making.lowers_of(node).into_iter().enumerate();
    let named = lowers.filter_map(|(index, lower)| lower.map(|(name, protocol)| (index, name, protocol)));
    let links = named.filter(|(_, _, protocol)| *protocol != "arp");
    links.map(|(index, name, protocol)| (index, link_below(making, name, protocol))).collect()
}

fn is_ethernet(making: &Making<'_>, link: &str) -> bool {
    making.protocol_of(link) == "ethernet"
}

/// The MTU of a link that is no Ethernet over a device.
const USUAL_MTU: usize = 1500;
