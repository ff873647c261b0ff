//! IPv4 in the catalogue: an address for each of its links, and the ways to other networks.

use super::links;
use super::options::{number, optional, required, truth};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{
    Description, Graph, Kind, Lower, Node, Number, Numbered, On, OptionKind, Problem, Provides, Role, Slot, Space,
    Uppers,
};
use xylem_protocols::ipv4::{Interface, Ipv4Config, Ipv4Protocol, Route};
use xylem_wire::{Cidr, EtherType};

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

/// Most links of one IPv4 node.
const LINKS_MAX: usize = 16;

const DESCRIPTION: Description = Description {
    name: "ipv4",
    summary: "datagrams between hosts (RFC 791)",
    role: Role::Endpoint,
    over: &[
        Slot::several("link", &[Kind::LINK], 1, LINKS_MAX),
        Slot::several("neighbour resolver", &[Kind::RESOLVER], 0, LINKS_MAX),
    ],
    provides: Provides::Kinds { kinds: &[Kind::NETWORK], uppers: Uppers::Numbered(Space::IP) },
    numbers: &[Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(EtherType::IPV4.0 as u32) }],
    options: &[
        required("address", OptionKind::List(&OptionKind::Cidr), "an address for each link, in their order"),
        optional("gateway", OptionKind::Address, "where packets for other networks go"),
        optional("routes", OptionKind::List(&ROUTE), "networks and their gateways"),
        truth("forwarding", false, "whether packets for others go on"),
        number("ttl", (1, 255), 64, "hops a packet may take"),
    ],
    cuttable: true,
    rule: Some(links_have_addresses_and_resolvers),
};

const ROUTE: OptionKind = OptionKind::Custom {
    expected: "a route such as \"10.1.0.0/16 via 10.0.0.9\"",
    accepts: |text| route(text).is_some(),
};

fn route(text: &str) -> Option<Route> {
    let (network, gateway) = text.split_once(" via ")?;
    Some(Route { network: network.trim().parse().ok()?, gateway: gateway.trim().parse().ok()? })
}

/// As many addresses as links, and every resolver beside one of the node's own links.
fn links_have_addresses_and_resolvers(graph: &Graph, node: &Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut links = 0;
    for lower in &node.lowers {
        let Lower::Node(name) = &lower.value else { continue };
        let Some(below) = graph.node(name) else { continue };
        if &*below.protocol.value != "arp" {
            links += 1;
        } else if below.lowers.iter().all(|link| !node.stands_over(link.word())) {
            problems.push(Problem::new(
                lower.position,
                format!("`{name}` resolves on a link that is not below `{}`", node.name.value),
                "a resolver over one of its own links",
                format!("put `{}` over that link too, or leave the resolver out", node.name.value),
            ));
        }
    }
    let Some(address) = node.option("address") else { return problems };
    let addresses = address.text().map_or(1, |text| text.split(',').count());
    if addresses != links {
        problems.push(Problem::new(
            address.position,
            format!("`{}` has {addresses} address(es) for {links} link(s)", node.name.value),
            "an address for each link, in their order",
            "separate the addresses by commas",
        ));
    }
    problems
}

fn make(making: &mut Making<'_>) -> Made {
    let settings = making.settings;
    let addresses = settings.cidrs("address");
    let links = links::links_of(making, making.name);
    let interface = |((lower, link), (address, prefix)): (&(usize, &str), (IpAddr, u8))| {
        let address = Cidr::new(address, prefix).map_err(|error| error.to_string())?;
        Ok(Interface { mtu: links::mtu(making, link), ..Interface::new(address, *lower) })
    };
    let interfaces = links.iter().zip(addresses).map(interface).collect::<Result<Vec<_>, String>>()?;
    let usual = Ipv4Config::new(interfaces);
    let config = Ipv4Config {
        gateway: settings.address("gateway").map(gateway).transpose()?,
        // The check has read every item as a route.
        routes: settings.list("routes").iter().filter_map(|text| route(text)).collect(),
        forwarding: settings.bool("forwarding").unwrap_or(usual.forwarding),
        time_to_live: settings.integer("ttl").map_or(usual.time_to_live, |hops| hops as u8),
        ..usual
    };
    let ipv4 = Ipv4Protocol::new(config).map_err(|error| error.to_string())?;
    Ok(Some(Arc::new(ipv4)))
}

fn gateway(address: IpAddr) -> Result<Ipv4Addr, String> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(address) => Err(format!("expected an IPv4 address as gateway, got {address}")),
    }
}
