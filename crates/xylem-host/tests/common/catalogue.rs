//! A small catalogue of the protocols of one host. Programs bring a larger one; this one has the options that the tests
//! of stacks need.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use xylem_graph::build::{Catalogue, Entry, Made, Making};
use xylem_graph::file::{
    Description, Kind, Number, Numbered, On, OptionDescription, OptionKind, Presence, Provides, Role, Slot, Space,
    Uppers,
};
use xylem_protocols::arp::{ArpConfig, ArpProtocol};
use xylem_protocols::ethernet::{EthernetConfig, EthernetProtocol};
use xylem_protocols::icmp::{IcmpConfig, IcmpProtocol};
use xylem_protocols::ipv4::{Interface, Ipv4Config, Ipv4Protocol};
use xylem_protocols::tcp::{TcpConfig, TcpProtocol};
use xylem_protocols::udp::{UdpConfig, UdpProtocol};
use xylem_wire::{Cidr, EtherType, IpProtocol};

/// All of them.
pub fn all() -> Catalogue {
    Catalogue::new([
        Entry { description: ETHERNET, make: ethernet },
        Entry { description: ARP, make: arp },
        Entry { description: IPV4, make: ipv4 },
        Entry { description: ICMP, make: icmp },
        Entry { description: UDP, make: udp },
        Entry { description: TCP, make: tcp },
        Entry { description: SOCKETS, make: |_| Ok(None) },
    ])
}

const fn required(name: &'static str, kind: OptionKind) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Required, summary: "" }
}

const fn optional(name: &'static str, kind: OptionKind) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Optional, summary: "" }
}

const BUFFER: OptionKind = OptionKind::Size { min: 2048, max: 1 << 28 };
const TIME: OptionKind = OptionKind::Duration { min: Duration::ZERO, max: Duration::from_secs(600) };

const ETHERNET: Description = Description {
    name: "ethernet",
    over: &[Slot::one("device", &[Kind::DEVICE])],
    provides: Provides::Kinds { kinds: &[Kind::LINK], uppers: Uppers::Numbered(Space::ETHERTYPE) },
    ..Description::PLAIN
};

fn ethernet(making: &mut Making<'_>) -> Made {
    let name = making.name;
    let config = EthernetConfig { address: making.hardware_address(name, None), mtu: None };
    Ok(Some(Arc::new(EthernetProtocol::new(config, making.neighbours(name)))))
}

const ARP: Description = Description {
    name: "arp",
    over: &[Slot::one("link", &[Kind::LINK])],
    provides: Provides::Kinds { kinds: &[Kind::RESOLVER], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(EtherType::ARP.0 as u32) }],
    options: &[required("address", OptionKind::Address)],
    ..Description::PLAIN
};

fn arp(making: &mut Making<'_>) -> Made {
    let link = link_of(making);
    let address: Vec<Ipv4Addr> = making.settings.address("address").into_iter().filter_map(v4).collect();
    let config = ArpConfig::new(making.hardware_address(link, None), address);
    Ok(Some(Arc::new(ArpProtocol::new(config, making.neighbours(link)))))
}

fn link_of<'a>(making: &Making<'a>) -> &'a str {
    making.lowers().into_iter().flatten().next().expect("the check saw a link below").0
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

const IPV4: Description = Description {
    name: "ipv4",
    role: Role::Endpoint,
    over: &[Slot::one("link", &[Kind::LINK]), Slot::at_most_one("resolver", &[Kind::RESOLVER])],
    provides: Provides::Kinds { kinds: &[Kind::NETWORK], uppers: Uppers::Numbered(Space::IP) },
    numbers: &[Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(EtherType::IPV4.0 as u32) }],
    options: &[required("address", OptionKind::Cidr)],
    ..Description::PLAIN
};

fn ipv4(making: &mut Making<'_>) -> Made {
    let (address, prefix) = making.settings.cidr("address").expect("the option is required");
    let address = Cidr::new(address, prefix).map_err(|error| error.to_string())?;
    let config = Ipv4Config::new(vec![Interface::new(address, 0)]);
    Ok(Some(Arc::new(Ipv4Protocol::new(config).map_err(|error| error.to_string())?)))
}

const ICMP: Description = Description {
    name: "icmp",
    role: Role::Endpoint,
    over: &[Slot::one("network", &[Kind::NETWORK])],
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(IpProtocol::ICMP.0 as u32) }],
    ..Description::PLAIN
};

fn icmp(_making: &mut Making<'_>) -> Made {
    Ok(Some(Arc::new(IcmpProtocol::new(IcmpConfig::default()))))
}

const UDP: Description = Description {
    name: "udp",
    role: Role::Endpoint,
    over: &[Slot::one("network", &[Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(IpProtocol::UDP.0 as u32) }],
    ..Description::PLAIN
};

fn udp(making: &mut Making<'_>) -> Made {
    Ok(Some(Arc::new(UdpProtocol::new(UdpConfig::default(), &mut making.random))))
}

const TCP: Description = Description {
    name: "tcp",
    role: Role::Endpoint,
    over: &[Slot::one("network", &[Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::STREAM], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(IpProtocol::TCP.0 as u32) }],
    options: &[
        optional("receive_buffer", BUFFER),
        optional("send_buffer", BUFFER),
        optional("msl", TIME),
        optional("give_up_after", TIME),
        optional("open_give_up_after", TIME),
    ],
    ..Description::PLAIN
};

fn tcp(making: &mut Making<'_>) -> Made {
    let (settings, usual) = (making.settings, TcpConfig::default());
    let size = |option: &str, usual: usize| settings.size(option).map_or(usual, |bytes| bytes as usize);
    let config = TcpConfig {
        receive_buffer: size("receive_buffer", usual.receive_buffer),
        send_buffer: size("send_buffer", usual.send_buffer),
        segment_lifetime_max: settings.duration("msl").unwrap_or(usual.segment_lifetime_max),
        give_up_after: settings.duration("give_up_after").unwrap_or(usual.give_up_after),
        open_give_up_after: settings.duration("open_give_up_after").unwrap_or(usual.open_give_up_after),
        ..usual
    };
    Ok(Some(Arc::new(TcpProtocol::new(config, &mut making.random))))
}

const SOCKETS: Description = Description {
    name: "sockets",
    role: Role::Anchor,
    over: &[Slot::at_most_one("stream", &[Kind::STREAM]), Slot::at_most_one("messages", &[Kind::MESSAGES])],
    ..Description::PLAIN
};
