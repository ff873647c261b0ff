//! UDP in the catalogue.

use super::options::number;
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, Number, Numbered, On, Provides, Role, Slot, Space, Uppers};
use xylem_protocols::udp::{UdpConfig, UdpProtocol};
use xylem_wire::IpProtocol;

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

const DESCRIPTION: Description = Description {
    name: "udp",
    summary: "messages between ports (RFC 768)",
    role: Role::Endpoint,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(IpProtocol::UDP.0 as u32) }],
    options: &[
        number("conversations", (16, 1 << 20), 131_072, "about so many conversations at a time"),
        number("enables", (16, 65_536), 16_384, "about so many ports enabled at a time"),
    ],
    cuttable: true,
    ..Description::PLAIN
};

fn make(making: &mut Making<'_>) -> Made {
    let (settings, usual) = (making.settings, UdpConfig::default());
    let config = UdpConfig {
        paths: settings.integer("conversations").map_or(usual.paths, |count| count as usize),
        enables: settings.integer("enables").map_or(usual.enables, |count| count as usize),
    };
    Ok(Some(Arc::new(UdpProtocol::new(config, &mut making.random))))
}
