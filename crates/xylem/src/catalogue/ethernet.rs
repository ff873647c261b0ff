//! Ethernet in the catalogue.

use super::links;
use super::options::optional;
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{
    Description, Graph, Kind, Node, OptionKind, Problem, Provides, Role, Slot, Space, Uppers, Value,
};
use xylem_protocols::ethernet::{EthernetConfig, EthernetProtocol};
use xylem_wire::{EthernetAddress, Ipv4Header};

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

const DESCRIPTION: Description = Description {
    name: "ethernet",
    summary: "Ethernet II frames over a device (RFC 894)",
    role: Role::Carrier,
    over: &[Slot::one("device", &[Kind::DEVICE])],
    provides: Provides::Kinds { kinds: &[Kind::LINK], uppers: Uppers::Numbered(Space::ETHERTYPE) },
    options: &[
        optional("interface", OptionKind::Text, "the name of the interface, where the device has one"),
        optional("address", OptionKind::Hardware, "the hardware address; otherwise one that the instance chooses"),
        optional(
            "mtu",
            OptionKind::Size { min: Ipv4Header::MTU_MIN as u64, max: 65_535 },
            "largest payload of a frame in bytes; otherwise what the device carries",
        ),
    ],
    cuttable: true,
    rule: Some(address_is_a_stations),
    ..Description::PLAIN
};

/// A station cannot have a group's address.
fn address_is_a_stations(_graph: &Graph, node: &Node) -> Vec<Problem> {
    let Some(said) = node.option("address") else { return Vec::new() };
    let address = said.text().and_then(|text| text.parse::<EthernetAddress>().ok());
    if address.is_none_or(EthernetAddress::is_unicast) {
        return Vec::new();
    }
    vec![Problem::new(
        said.position,
        format!("{} is the address of a group or of nobody", plain(&said.value)),
        "the address of one station",
        "make the first pair even, such as \"02:00:00:00:00:01\"",
    )]
}

fn plain(value: &Value) -> &str {
    value.text().unwrap_or_default()
}

fn make(making: &mut Making<'_>) -> Made {
    let name = making.name;
    let config = EthernetConfig {
        address: links::hardware_address(making, name),
        mtu: making.settings.size("mtu").map(|bytes| bytes as usize),
    };
    Ok(Some(Arc::new(EthernetProtocol::new(config, making.neighbours(name)))))
}
