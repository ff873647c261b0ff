//! TCP in the catalogue.

use super::links;
use super::options::{bytes, milliseconds, number, optional, truth, with_default};
use std::sync::Arc;
use std::time::Duration;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{
    DefaultValue, Description, Kind, Number, Numbered, On, OptionDescription, OptionKind, Provides, Role, Settings,
    Slot, Space, Uppers,
};
use xylem_protocols::tcp::congestion::Algorithm;
use xylem_protocols::tcp::{CookieUse, EcnUse, FastOpenUse, MtuProbing, PortRange, TcpConfig, TcpProtocol};
use xylem_wire::{Header, IpProtocol, Ipv4Header};

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

/// Limits of the buffers in bytes.
const BUFFER: (u64, u64) = (TcpConfig::BUFFER_MIN as u64, TcpConfig::BUFFER_MAX as u64);
/// A minute in milliseconds.
const MINUTE: u64 = 60_000;

const DESCRIPTION: Description = Description {
    name: "tcp",
    summary: "reliable streams between ports (RFC 9293)",
    role: Role::Endpoint,
    over: &[Slot::one("network protocol", &[Kind::NETWORK])],
    provides: Provides::Kinds { kinds: &[Kind::STREAM], uppers: Uppers::Many },
    numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(IpProtocol::TCP.0 as u32) }],
    options: &[
        with_default("congestion", OptionKind::Choice(ALGORITHMS), DefaultValue::Text("cubic"), "congestion control"),
        milliseconds("msl", (1, 2 * MINUTE), 30_000, "maximum segment lifetime; TIME-WAIT lasts two"),
        milliseconds("rto_initial", (1, MINUTE), 1000, "retransmission timeout before the first measurement"),
        milliseconds("rto_min", (1, MINUTE), 200, "shortest retransmission timeout"),
        milliseconds("rto_max", (MINUTE, 10 * MINUTE), MINUTE, "longest retransmission timeout"),
        milliseconds("delayed_ack", (0, 499), 40, "how long an acknowledgment may wait for company"),
        milliseconds("give_up_after", (1, 60 * MINUTE), 15 * MINUTE, "data unacknowledged so long ends the connection"),
        milliseconds("open_give_up_after", (1, 60 * MINUTE), 3 * MINUTE, "the same for the handshake"),
        milliseconds(
            "keep_alive_interval",
            (1, 60 * MINUTE),
            75_000,
            "between the probes of a peer that does not answer",
        ),
        number("keep_alive_probes", (2, 100), 9, "unanswered probes that end a connection"),
        milliseconds("orphan_wait", (1, 60 * MINUTE), MINUTE, "how long a closed connection waits for the peer's FIN"),
        bytes("receive_buffer", BUFFER, 256 << 10, "bytes a connection may hold unread"),
        bytes("send_buffer", BUFFER, 256 << 10, "bytes a connection may hold unacknowledged"),
        optional("receive_buffer_max", SIZE, "how far the receive buffer grows with use; 4 MiB, or not at all"),
        optional("send_buffer_max", SIZE, "how far the send buffer grows with use; 4 MiB, or not at all"),
        choice("ecn", ECN, "passive", "congestion marks: never, if the peer asks, or asked for (RFC 3168)"),
        choice("syn_cookies", COOKIES, "overflow", "SYNs answered without remembering them (RFC 4987)"),
        choice("fast_open", FAST_OPEN, "both", "sides of TCP Fast Open played where applications ask (RFC 7413)"),
        choice("mtu_probing", PROBING, "black_hole", "when the path's MTU is searched for (RFC 4821, RFC 8899)"),
        with_default("ports", PORTS, DefaultValue::Text("49152-65535"), "ports of clients that ask for none"),
        number("connections", (16, 1 << 20), 65_536, "about so many connections at a time"),
        number("enables", (16, 65_536), 1024, "about so many standing passive opens at a time"),
        number("embryos", (1, 1 << 20), 16_384, "half-open connections at a time, over all enables"),
        number("time_waits", (1, 1 << 20), 32_768, "connections in TIME-WAIT at a time"),
        number("initial_window", (1, 100), 10, "segments that may be in flight at the start (RFC 6928)"),
        truth("window_scaling", true, "whether windows beyond 64 KiB are offered (RFC 7323)"),
        truth("timestamps", true, "whether timestamps are offered (RFC 7323)"),
        truth("duplicate_reports", true, "whether what arrives twice is reported (RFC 2883)"),
        truth("tail_probes", true, "whether the tail is probed before the timer goes off (RFC 8985)"),
        truth("restart_after_idle", true, "whether an idle connection starts slowly again (RFC 5681)"),
        number("syn_ack_tries", (0, 255), 5, "how often the answer to a SYN is sent again"),
        truth("sack", true, "whether selective acknowledgments are offered (RFC 2018)"),
        truth("no_delay", false, "whether small segments go out at once unless the application says otherwise"),
    ],
    cuttable: true,
    ..Description::PLAIN
};

/// A size between the limits of a buffer.
const SIZE: OptionKind = OptionKind::Size { min: BUFFER.0, max: BUFFER.1 };

/// A range of ports.
const PORTS: OptionKind = OptionKind::Custom {
    expected: "ports from the first to the last, such as \"1024-65535\"",
    accepts: |text| text.parse::<PortRange>().is_ok(),
};

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    usual: &'static str,
    summary: &'static str,
) -> OptionDescription {
    with_default(name, OptionKind::Choice(words), DefaultValue::Text(usual), summary)
}

/// The words for [`EcnUse`], in the order of [`ECN_USES`]; likewise for those below.
const ECN: &[&str] = &["off", "passive", "on"];
const ECN_USES: [EcnUse; 3] = [EcnUse::Off, EcnUse::Passive, EcnUse::On];
const COOKIES: &[&str] = &["off", "overflow", "always"];
const COOKIE_USES: [CookieUse; 3] = [CookieUse::Off, CookieUse::Overflow, CookieUse::Always];
const FAST_OPEN: &[&str] = &["off", "client", "server", "both"];
const FAST_OPEN_USES: [FastOpenUse; 4] =
    [FastOpenUse::Off, FastOpenUse::Client, FastOpenUse::Server, FastOpenUse::Both];
const PROBING: &[&str] = &["off", "black_hole", "on"];
const PROBINGS: [MtuProbing; 3] = [MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::On];

/// What the word of a choice means.
fn chosen<T: Copy>(settings: Settings<'_>, option: &str, words: &[&str], meanings: &[T], usual: T) -> T {
    let place = settings.text(option).and_then(|word| words.iter().position(|known| *known == &*word));
    place.map_or(usual, |place| meanings[place])
}

/// The words for the built-in algorithms.
const ALGORITHMS: &[&str] = &["cubic", "reno", "bbr"];

fn make(making: &mut Making<'_>) -> Made {
    let mut usual = TcpConfig::default();
    for algorithm in making.offered::<&'static Algorithm>("congestion") {
        usual.algorithms = usual.algorithms.with(algorithm);
    }
    let config =
        TcpConfig { unopened_mtu: mtu_below(making).unwrap_or(usual.unopened_mtu), ..config(making.settings, usual) };
    Ok(Some(Arc::new(TcpProtocol::new(config, &mut making.random))))
}

/// What a node's options say over the usual values.
fn config(settings: Settings<'_>, usual: TcpConfig) -> TcpConfig {
    let span = |option: &str, usual: Duration| settings.duration(option).unwrap_or(usual);
    let size = |option: &str, usual: usize| settings.size(option).map_or(usual, |bytes| bytes as usize);
    let limit = |option: &str, buffer: &str, usual: usize, usual_max: usize| {
        let begins = size(buffer, usual);
        size(option, if begins == usual { usual_max } else { begins })
    };
    let count = |option: &str, usual: usize| settings.integer(option).map_or(usual, |count| count as usize);
    let truth = |option: &str, usual: bool| settings.bool(option).unwrap_or(usual);
    TcpConfig {
        congestion: settings
            .text("congestion")
            .and_then(|word| usual.algorithms.named(&word))
            .unwrap_or(usual.congestion),
        segment_lifetime_max: span("msl", usual.segment_lifetime_max),
        retransmission_timeout_initial: span("rto_initial", usual.retransmission_timeout_initial),
        retransmission_timeout_min: span("rto_min", usual.retransmission_timeout_min),
        retransmission_timeout_max: span("rto_max", usual.retransmission_timeout_max),
        acknowledgment_delay: span("delayed_ack", usual.acknowledgment_delay),
        give_up_after: span("give_up_after", usual.give_up_after),
        open_give_up_after: span("open_give_up_after", usual.open_give_up_after),
        keep_alive_interval: span("keep_alive_interval", usual.keep_alive_interval),
        keep_alive_probes: count("keep_alive_probes", usual.keep_alive_probes as usize) as u32,
        orphan_wait: span("orphan_wait", usual.orphan_wait),
        // Who says a size and no limit means that size.
        receive_buffer_max: limit(
            "receive_buffer_max",
            "receive_buffer",
            usual.receive_buffer,
            usual.receive_buffer_max,
        ),
        send_buffer_max: limit("send_buffer_max", "send_buffer", usual.send_buffer, usual.send_buffer_max),
        ecn: chosen(settings, "ecn", ECN, &ECN_USES, usual.ecn),
        syn_cookies: chosen(settings, "syn_cookies", COOKIES, &COOKIE_USES, usual.syn_cookies),
        fast_open: chosen(settings, "fast_open", FAST_OPEN, &FAST_OPEN_USES, usual.fast_open),
        mtu_probing: chosen(settings, "mtu_probing", PROBING, &PROBINGS, usual.mtu_probing),
        receive_buffer: size("receive_buffer", usual.receive_buffer),
        send_buffer: size("send_buffer", usual.send_buffer),
        ports: settings.text("ports").and_then(|text| text.parse().ok()).unwrap_or(usual.ports),
        connections_max: count("connections", usual.connections_max),
        enables_max: count("enables", usual.enables_max),
        embryos_max: count("embryos", usual.embryos_max),
        time_wait_max: count("time_waits", usual.time_wait_max),
        initial_window_segments: count("initial_window", usual.initial_window_segments as usize) as u32,
        window_scaling: truth("window_scaling", usual.window_scaling),
        timestamps: truth("timestamps", usual.timestamps),
        selective_acknowledgments: truth("sack", usual.selective_acknowledgments),
        duplicate_reports: truth("duplicate_reports", usual.duplicate_reports),
        tail_probes: truth("tail_probes", usual.tail_probes),
        restart_after_idle: truth("restart_after_idle", usual.restart_after_idle),
        embryo_retransmissions: count("syn_ack_tries", usual.embryo_retransmissions as usize) as u32,
        no_delay: truth("no_delay", usual.no_delay),
        ..usual
    }
}

/// The largest segment in bytes that every link below takes: what a SYN is answered with before there is a path that knows.
/// `None` below another network protocol than IPv4, whose paths tell in time.
fn mtu_below(making: &Making<'_>) -> Option<usize> {
    let (name, protocol) = making.lowers().first().copied()??;
    let network = links::link_below(making, name, protocol);
    if making.protocol_of(network) != "ipv4" {
        return None;
    }
    let links = links::links_of(making, network);
    links.iter().map(|(_, link)| links::mtu(making, link).saturating_sub(Ipv4Header::LEN)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_graph::file::parse;

    #[test]
    fn what_a_graph_does_not_say_is_as_usual() {
        let graph = parse("tcp over ip").expect("a graph");
        let settings = Settings::new(&graph.nodes[0], &DESCRIPTION);
        assert_eq!(config(settings, TcpConfig::default()), TcpConfig::default());
    }

    #[test]
    fn every_word_has_its_meaning() {
        let said = |text: &str| {
            let graph = parse(&format!("tcp over ip {{ {text} }}")).expect("a graph");
            config(Settings::new(&graph.nodes[0], &DESCRIPTION), TcpConfig::default())
        };
        for (word, meaning) in ECN.iter().zip(ECN_USES) {
            assert_eq!(said(&format!("ecn = {word}")).ecn, meaning);
        }
        for (word, meaning) in COOKIES.iter().zip(COOKIE_USES) {
            assert_eq!(said(&format!("syn_cookies = {word}")).syn_cookies, meaning);
        }
        for (word, meaning) in FAST_OPEN.iter().zip(FAST_OPEN_USES) {
            assert_eq!(said(&format!("fast_open = {word}")).fast_open, meaning);
        }
        for (word, meaning) in PROBING.iter().zip(PROBINGS) {
            assert_eq!(said(&format!("mtu_probing = {word}")).mtu_probing, meaning);
        }
        assert_eq!(said("ports = \"1024-2047\"").ports.count(), 1024);
        let sizes = |config: TcpConfig| (config.receive_buffer, config.receive_buffer_max);
        assert_eq!(sizes(said("receive_buffer = 32KiB")), (32 << 10, 32 << 10), "who says a size means it");
        assert_eq!(sizes(said("receive_buffer = 32KiB, receive_buffer_max = 1MiB")), (32 << 10, 1 << 20));
    }

    #[test]
    fn every_word_for_congestion_control_is_an_algorithm() {
        let usual = TcpConfig::default();
        assert_eq!(usual.algorithms.names().collect::<Vec<_>>(), ALGORITHMS);
        assert_eq!(usual.algorithms.named(ALGORITHMS[0]), Some(usual.congestion), "the default of the description");
    }
}
