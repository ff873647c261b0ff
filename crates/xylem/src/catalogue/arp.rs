//! ARP in the catalogue. It answers for the addresses of the IPv4 nodes over its link, wherever they stand in the file.

use super::links;
use super::options::{milliseconds, number};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, Number, Numbered, On, Provides, Role, Slot, Space, Uppers};
use xylem_protocols::arp::{ArpConfig, ArpProtocol};
use xylem_wire::EtherType;

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

const DESCRIPTION: Description = Description {
    name: "arp",
    summary: "finds the hardware addresses of IPv4 neighbours (RFC 826)",
    role: Role::Carrier,
    over: &[Slot::one("link", &[Kind::LINK])],
    provides: Provides::Kinds { kinds: &[Kind::RESOLVER], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(EtherType::ARP.0 as u32) }],
    options: &[
        milliseconds(
            "entry_lifetime",
            (1000, 86_400_000),
            60_000,
            "how long an answer is believed before it is probed",
        ),
        milliseconds("retry_after", (10, 60_000), 1000, "time between two requests"),
        number("retries", (1, 100), 3, "requests before a neighbour is given up"),
        milliseconds("given_up", (10, 3_600_000), 3000, "how long a silent neighbour is not asked again"),
        number("entries", (1, 4096), 1024, "neighbours known at a time"),
        number("announcements", (0, 10), 2, "how often our addresses are announced at the start (RFC 5227)"),
    ],
    ..Description::PLAIN
};

fn make(making: &mut Making<'_>) -> Made {
    let Some(Some((name, protocol))) = making.lowers().first().copied() else {
        return Err("expected a link below, got a device".to_owned());
    };
    let link = links::link_below(making, name, protocol);
    let addresses = links::addresses_over(making, link).into_iter().filter_map(ipv4).collect();
    let hardware = links::hardware_address(making, link);
    let settings = making.settings;
    let usual = ArpConfig::new(hardware, addresses);
    let config = ArpConfig {
        reachable: settings.duration("entry_lifetime").unwrap_or(usual.reachable),
        retry: settings.duration("retry_after").unwrap_or(usual.retry),
        tries: settings.integer("retries").map_or(usual.tries, |tries| tries as u32),
        failed: settings.duration("given_up").unwrap_or(usual.failed),
        entries: settings.integer("entries").map_or(usual.entries, |entries| entries as usize),
        announcements: settings.integer("announcements").map_or(usual.announcements, |count| count as u32),
        ..usual
    };
    Ok(Some(Arc::new(ArpProtocol::new(config, making.neighbours(link)))))
}

fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}
