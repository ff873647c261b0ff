//! Descriptions of the built-in protocols as the tests see them, and of two that a program might add itself.
//!
//! The real ones live with the protocols; these are complete enough to check every graph file in the tree.

use std::time::Duration;

use crate::file::{
    DefaultValue, Description, Descriptions, Graph, Kind, Lower, Node, Number, Numbered, On, OptionDescription,
    OptionKind, Presence, Problem, Provides, Role, Slot, Space, Uppers,
};

/// Every description of this file.
pub(super) fn catalogue() -> Vec<Description> {
    vec![ETHERNET, ARP, IPV4, ICMP, UDP, TCP, SOCKETS, VDROP, VSIZE, FRAGMENTER, REQUEST_REPLY, TOY, LOOPBACK]
}

/// Most links of one IPv4 node.
const LINKS_MAX: usize = 16;

const fn required(name: &'static str, kind: OptionKind, summary: &'static str) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Required, summary }
}

const fn optional(name: &'static str, kind: OptionKind, summary: &'static str) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Optional, summary }
}

const fn with_default(
    name: &'static str,
    kind: OptionKind,
    default: DefaultValue,
    summary: &'static str,
) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Default(default), summary }
}

const fn seconds(min: u64, max: u64) -> OptionKind {
    OptionKind::Duration { min: Duration::from_secs(min), max: Duration::from_secs(max) }
}

const fn milliseconds(min: u64, max: u64) -> OptionKind {
    OptionKind::Duration { min: Duration::from_millis(min), max: Duration::from_millis(max) }
}

const fn in_seconds(seconds: u64) -> DefaultValue {
    DefaultValue::Duration(Duration::from_secs(seconds))
}

const fn in_milliseconds(milliseconds: u64) -> DefaultValue {
    DefaultValue::Duration(Duration::from_millis(milliseconds))
}

pub(super) const ETHERNET: Description = Description {
    name: "ethernet",
    summary: "Ethernet II frames over a device",
    role: Role::Carrier,
    over: &[Slot::one("device", &[Kind::DEVICE])],
    provides: Provides::Kinds { kinds: &[Kind::LINK], uppers: Uppers::Numbered(Space::ETHERTYPE) },
    options: &[
        optional("interface", OptionKind::Text, "the name of the interface, where the device has one"),
        optional("address", OptionKind::Hardware, "the hardware address; the device's own otherwise"),
        with_default(
            "mtu",
            OptionKind::Size { min: 68, max: 65535 },
            DefaultValue::Size(1500),
            "largest payload of a frame",
        ),
    ],
    cuttable: true,
    ..Description::PLAIN
};

pub(super) const ARP: Description = Description {
    name: "arp",
    summary: "finds the hardware addresses of IPv4 neighbours (RFC 826)",
    role: Role::Carrier,
    over: &[Slot::one("link", &[Kind::LINK])],
    provides: Provides::Kinds { kinds: &[Kind::RESOLVER], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(0x0806) }],
    options: &[
        with_default("entry_lifetime", seconds(1, 86400), in_seconds(60), "how long an answer is believed"),
        with_default("retry_after", milliseconds(10, 60000), in_milliseconds(1000), "time between two requests"),
        with_default(
            "retries",
            OptionKind::Integer { min: 1, max: 100 },
            DefaultValue::Integer(3),
            "requests before giving up",
        ),
    ],
    ..Description::PLAIN
};

pub(super) const IPV4: Description = Description {
    name: "ipv4",
    summary: "datagrams between hosts (RFC 791)",
    role: Role::Endpoint,
    over: &[
        Slot::several("link", &[Kind::LINK], 1, LINKS_MAX),
        Slot::several("neighbour resolver", &[Kind::RESOLVER], 0, LINKS_MAX),
    ],
    provides: Provides::Kinds { kinds: &[Kind::NETWORK], uppers: Uppers::Numbered(Space::IP) },
    numbers: &[Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(0x0800) }],
    options: &[
        required("address", OptionKind::List(&OptionKind::Cidr), "an address for each link, in their order"),
        optional("gateway", OptionKind::Address, "where packets for other networks go"),
        optional("routes", OptionKind::List(&ROUTE), "networks and their gateways"),
        with_default("forwarding", OptionKind::Bool, DefaultValue::Bool(false), "whether packets for others go on"),
        with_default(
            "ttl",
            OptionKind::Integer { min: 1, max: 255 },
            DefaultValue::Integer(64),
            "hops a packet may take",
        ),
    ],
    cuttable: true,
    rule: Some(links_have_addresses_and_resolvers),
};

const ROUTE: OptionKind =
    OptionKind::Custom { expected: "a route such as \"10.1.0.0/16 via 10.0.0.9\"", accepts: is_route };

fn is_route(text: &str) -> bool {
    let Some((network, gateway)) = text.split_once(" via ") else { return false };
    OptionKind::Cidr.accepts(&crate::file::Value::Text(network.trim().to_owned())).is_ok()
        && OptionKind::Address.accepts(&crate::file::Value::Text(gateway.trim().to_owned())).is_ok()
}

/// A rule that data cannot say: as many addresses as links, and every resolver beside one of the node's own links.
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

pub(super) const ICMP: Description = Description {
    name: "icmp",
    summary: "echo and errors for IPv4 (RFC 792)",
    role: Role::Endpoint,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(1) }],
    options: &[with_default("echo", OptionKind::Bool, DefaultValue::Bool(true), "whether echo requests are answered")],
    ..Description::PLAIN
};

pub(super) const UDP: Description = Description {
    name: "udp",
    summary: "messages between ports (RFC 768)",
    role: Role::Endpoint,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(17) }],
    options: &[with_default("checksum", OptionKind::Bool, DefaultValue::Bool(true), "whether checksums are sent")],
    cuttable: true,
    ..Description::PLAIN
};

pub(super) const TCP: Description = Description {
    name: "tcp",
    summary: "reliable streams between ports (RFC 9293)",
    role: Role::Endpoint,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::STREAM], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(6) }],
    options: &[
        with_default(
            "congestion",
            OptionKind::Choice(&["reno", "cubic"]),
            DefaultValue::Text("cubic"),
            "congestion control",
        ),
        with_default("msl", milliseconds(1, 120_000), in_seconds(30), "maximum segment lifetime; TIME-WAIT lasts two"),
        with_default("rto_min", milliseconds(1, 60_000), in_milliseconds(200), "shortest retransmission timeout"),
        with_default("delayed_ack", milliseconds(0, 500), in_milliseconds(40), "how long an acknowledgment may wait"),
        with_default(
            "receive_buffer",
            OptionKind::Size { min: 4096, max: 1 << 30 },
            DefaultValue::Size(256 << 10),
            "bytes a connection may hold unread",
        ),
        with_default(
            "send_buffer",
            OptionKind::Size { min: 4096, max: 1 << 30 },
            DefaultValue::Size(256 << 10),
            "bytes a connection may hold unacknowledged",
        ),
        with_default(
            "backlog",
            OptionKind::Integer { min: 1, max: 65535 },
            DefaultValue::Integer(128),
            "connections an enable may hold before they are accepted",
        ),
        optional("keep_alive", seconds(1, 86400), "idle time before a probe; no probes otherwise"),
    ],
    cuttable: true,
    ..Description::PLAIN
};

pub(super) const SOCKETS: Description = Description {
    name: "sockets",
    summary: "the application's side: streams and datagrams as calls",
    role: Role::Anchor,
    over: &[
        Slot::at_most_one("stream protocol", &[Kind::STREAM]),
        Slot::at_most_one("message protocol", &[Kind::MESSAGES]),
    ],
    ..Description::PLAIN
};

pub(super) const VDROP: Description = Description {
    name: "vdrop",
    summary: "loses messages on purpose; adds no header",
    role: Role::Virtual,
    over: &[Slot::one("lower", &[Kind::LINK, Kind::NETWORK, Kind::MESSAGES])],
    provides: Provides::AsBelow,
    options: &[required("one_in", OptionKind::Integer { min: 1, max: 1_000_000 }, "of so many messages one is lost")],
    cuttable: true,
    ..Description::PLAIN
};

pub(super) const VSIZE: Description = Description {
    name: "vsize",
    summary: "small messages one way, large ones the other; adds no header",
    role: Role::Virtual,
    over: &[Slot::several("lower", &[Kind::NETWORK, Kind::MESSAGES], 2, 2)],
    provides: Provides::AsBelow,
    options: &[required("limit", OptionKind::Size { min: 1, max: 65535 }, "largest message that goes the first way")],
    ..Description::PLAIN
};

pub(super) const FRAGMENTER: Description = Description {
    name: "fragmenter",
    summary: "carries messages that are larger than its lower's",
    role: Role::Carrier,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    provides: Provides::Kinds {
        kinds: &[Kind::NETWORK, Kind::MESSAGES],
        uppers: Uppers::Numbered(Space("fragmenter type")),
    },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(254) }],
    options: &[with_default(
        "piece",
        OptionKind::Size { min: 64, max: 65535 },
        DefaultValue::Size(1024),
        "bytes of one piece",
    )],
    ..Description::PLAIN
};

pub(super) const REQUEST_REPLY: Description = Description {
    name: "request-reply",
    summary: "a request, its reply, and another try when one is lost",
    role: Role::Endpoint,
    over: &[Slot::one("message carrier", &[Kind::MESSAGES, Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::One },
    numbers: &[
        Numbered { on: On::Space(Space::IP), number: Number::Fixed(253) },
        Numbered { on: On::Protocol("fragmenter"), number: Number::Fixed(1) },
    ],
    options: &[
        with_default("retry_after", milliseconds(1, 60_000), in_milliseconds(200), "time before another try"),
        with_default(
            "retries",
            OptionKind::Integer { min: 0, max: 100 },
            DefaultValue::Integer(5),
            "tries before giving up",
        ),
    ],
    ..Description::PLAIN
};

/// A protocol as a program adds its own: numbered by an option, so that several can stand over one lower.
pub(super) const TOY: Description = Description {
    name: "toy",
    summary: "messages with a header of two bytes",
    role: Role::Endpoint,
    over: &[Slot::one("link or network", &[Kind::LINK, Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::One },
    numbers: &[
        Numbered { on: On::Space(Space::IP), number: Number::Option("number") },
        Numbered { on: On::Space(Space::ETHERTYPE), number: Number::Fixed(0x88b5) },
    ],
    options: &[with_default(
        "number",
        OptionKind::Integer { min: 253, max: 255 },
        DefaultValue::Integer(253),
        "IP protocol number",
    )],
    ..Description::PLAIN
};

/// A bottom that is no device: stands over nothing.
pub(super) const LOOPBACK: Description = Description {
    name: "loopback",
    summary: "gives back what it is given",
    role: Role::Carrier,
    provides: Provides::Kinds { kinds: &[Kind::LINK], uppers: Uppers::Numbered(Space::ETHERTYPE) },
    ..Description::PLAIN
};

#[test]
fn the_descriptions_are_right_themselves() {
    for description in catalogue() {
        assert_eq!(description.faults(), Vec::<String>::new());
    }
    let names = catalogue();
    let mut names = names.names();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), catalogue().len());
}

#[test]
fn a_wrong_description_is_told_so() {
    const WRONG: Description = Description {
        name: "two words",
        over: &[Slot::several("link", &[Kind::LINK], 2, 1)],
        numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Option("nummer") }],
        options: &[
            with_default("number", OptionKind::Integer { min: 1, max: 9 }, DefaultValue::Integer(10), ""),
            optional("number", OptionKind::Bool, ""),
        ],
        ..Description::PLAIN
    };
    assert_eq!(
        WRONG.faults(),
        [
            "protocol \"two words\": a name has ' '; expected an ASCII letter or `_`, then letters, digits, `_` or `-`",
            "two words: no number of lowers fits the slot `link`",
            "two words: option `number` has default 10; expected a whole number from 1 to 9",
            "two words: option `number` is described twice",
            "two words: is numbered by option `nummer`, which it does not describe",
        ]
    );
    const LOST: Description = Description { name: "lost", provides: Provides::AsBelow, ..Description::PLAIN };
    assert_eq!(LOST.faults(), ["lost: offers what is below, yet stands over nothing"]);
}
