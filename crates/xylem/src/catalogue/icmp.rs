//! ICMP in the catalogue.

use super::options::{number, truth};
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, Number, Numbered, On, Role, Slot, Space};
use xylem_protocols::icmp::{IcmpConfig, IcmpProtocol};
use xylem_wire::IpProtocol;

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

const DESCRIPTION: Description = Description {
    name: "icmp",
    summary: "echo and errors for IPv4 (RFC 792)",
    role: Role::Endpoint,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(IpProtocol::ICMP.0 as u32) }],
    options: &[
        truth("echo", true, "whether echo requests are answered"),
        truth("broadcast_echo", false, "whether those to a group or to everybody are answered too"),
        number("errors_per_second", (0, 1_000_000), 100, "errors sent a second on average; 0 sends none"),
        number("errors_at_once", (1, 1_000_000), 20, "errors sent at once"),
        number("conversations", (1, 65_536), 1024, "echo conversations of our own at a time"),
    ],
    ..Description::PLAIN
};

fn make(making: &mut Making<'_>) -> Made {
    let (settings, usual) = (making.settings, IcmpConfig::default());
    let config = IcmpConfig {
        answer_echoes: settings.bool("echo").unwrap_or(usual.answer_echoes),
        answer_broadcast_echoes: settings.bool("broadcast_echo").unwrap_or(usual.answer_broadcast_echoes),
        errors_per_second: settings.integer("errors_per_second").map_or(usual.errors_per_second, |count| count as u32),
        errors_at_once: settings.integer("errors_at_once").map_or(usual.errors_at_once, |count| count as u32),
        conversations: settings.integer("conversations").map_or(usual.conversations, |count| count as usize),
    };
    Ok(Some(Arc::new(IcmpProtocol::new(config))))
}
