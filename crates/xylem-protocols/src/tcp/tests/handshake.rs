//! Opening: actively, passively, both at once, refused, unanswered; embryos and their limits.

use super::link::{A, B, Net};
use super::script::{Script, segment};
use crate::tcp::ends::Ends;
use crate::tcp::{CookieUse, TcpConfig, drops};
use std::net::{IpAddr, Ipv4Addr};
use xylem_core::{Control, Duration, EnableError, Endpoint, Event, Facts, OpenError, Participants, Setting};
use xylem_wire::{Port, Sum};

#[test]
fn an_active_open_ends_in_established() {
    let mut script = Script::open(Script::config());
    assert_eq!(script.events(), [Event::Opened]);
    let count = script.host.protocol.counts();
    assert_eq!(count, (1, 0, 0));
}

#[test]
fn a_syn_is_sent_again_more_and_more_rarely_and_given_up_after_three_minutes() {
    let mut script = Script::syn_sent(Script::config());
    let began = script.now;
    let mut waits = Vec::new();
    let mut last = began;
    while script.host.deadline().is_some() {
        let next = script.host.deadline().unwrap();
        script.now = next;
        script.host.expire(next);
        for syn in script.raw_sent() {
            assert_eq!(syn.text, "S 0+0");
            waits.push(next.since(last).as_secs());
            last = next;
        }
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60], "RFC 9293 MUST-22, doubled up to the ceiling");
    assert_eq!(script.now.since(began), Duration::from_secs(180), "RFC 9293 MUST-23");
    assert_eq!(script.events(), [Event::InTrouble, Event::TimedOut]);
}

#[test]
fn a_reset_refuses_only_if_it_acknowledges_the_syn() {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("R", 0, 0));
    script.inject(segment("R.", 0, 2));
    assert_eq!(script.state(), "SYN-SENT");
    script.expect(&[]);
    script.inject(segment("R.", 0, 1));
    assert_eq!((script.state(), script.events()), ("CLOSED", vec![Event::Refused]));
}

#[test]
fn a_wrong_acknowledgment_of_the_syn_is_answered_with_a_reset() {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("S.", 0, 2));
    script.expect(&["R 2+0"]);
    assert_eq!(script.state(), "SYN-SENT");
}

/// RFC 9293 MUST-10, figure 8.
#[test]
fn both_ends_may_begin_at_once() {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("S", 0, 0).mss(1000));
    script.expect(&["S. 0+0 ack 1"]);
    assert_eq!(script.state(), "SYN-RECEIVED");
    script.inject(segment(".", 1, 1));
    assert_eq!((script.state(), script.events()), ("ESTABLISHED", vec![Event::Opened]));

    for seed in 0..20 {
        let mut net = Net::new(seed);
        for side in 0..2 {
            net.hosts[side].open(net.now, Some(5000), 5000).unwrap();
        }
        net.run_for(Duration::from_secs(1));
        for side in 0..2 {
            let now = net.now;
            assert_eq!(net.hosts[side].state(now, 0), "ESTABLISHED");
            assert_eq!(net.hosts[side].push(now, 0, b"hello"), 5);
        }
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.hosts[0].connections[0].received, b"hello");
        assert_eq!(net.hosts[1].connections[0].received, b"hello");
    }
}

#[test]
fn a_simultaneous_open_that_is_reset_is_refused() {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("S", 0, 0));
    script.expect(&["S. 0+0 ack 1"]);
    script.inject(segment("R", 1, 0));
    assert_eq!((script.state(), script.events()), ("CLOSED", vec![Event::Refused]));
}

#[test]
fn a_passive_open_makes_a_path_when_the_handshake_ends() {
    let mut script = Script::listening(Script::config(), 4);
    script.inject(segment("S", 0, 0).mss(1000));
    let syn_ack = script.raw_sent().remove(0);
    script.ours = syn_ack.header.sequence;
    assert!(syn_ack.text.starts_with("S. ") && syn_ack.text.ends_with("+0 ack 1"), "{}", syn_ack.text);
    assert_eq!(syn_ack.options.mss, Some(1460));
    assert_eq!(script.host.protocol.counts(), (0, 1, 0));
    // The segment that ends it may bring data.
    script.inject(segment("P.", 1, 1).data(b"hello"));
    assert_eq!(script.host.protocol.counts(), (1, 0, 0));
    assert_eq!((script.state(), script.events()), ("ESTABLISHED", vec![Event::Opened]));
    assert_eq!(script.host.connections[0].received, b"hello");
}

#[test]
fn an_embryo_answers_again_and_is_given_up() {
    let mut script = Script::listening(Script::config(), 4);
    script.inject(segment("S", 0, 0));
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment("S", 0, 0));
    script.expect(&["S. 0+0 ack 1"]);
    script.wait_ms(999);
    script.expect(&[]);
    script.wait_ms(1);
    script.expect(&["S. 0+0 ack 1"]);
    script.wait(Duration::from_secs(2 + 4 + 8 + 16));
    script.expect(&["S. 0+0 ack 1"; 4]);
    script.wait(Duration::from_secs(32));
    script.expect(&[]);
    assert_eq!((script.host.protocol.counts(), script.dropped(&drops::EMBRYO_EXPIRED)), ((0, 0, 0), 1));
    assert!(script.host.deadline().is_none());
}

#[test]
fn an_embryo_is_reset_only_with_the_expected_number() {
    let mut script = Script::listening(Script::config(), 4);
    script.inject(segment("S", 0, 0));
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment("R", 2, 0));
    assert_eq!(script.host.protocol.counts().1, 1, "RFC 5961 3.2-3: only the exact number");
    script.inject(segment(".", 1, 5));
    script.expect(&["R 5+0"]);
    script.inject(segment("R", 1, 0));
    assert_eq!(script.host.protocol.counts().1, 0);
    script.expect(&[]);
}

#[test]
fn a_full_backlog_lets_the_oldest_go() {
    let mut script = Script::listening(TcpConfig { syn_cookies: CookieUse::Off, ..Script::config() }, 3);
    for port in 1..=5 {
        script.peer_port = port;
        script.inject(segment("S", 0, 0));
    }
    assert_eq!(script.host.protocol.counts(), (0, 3, 0));
    assert_eq!(script.dropped(&drops::EMBRYO_EVICTED), 2);
    let answers = script.raw_sent();
    // The first one's handshake does not end any more; the last one's does.
    (script.peer_port, script.ours) = (1, answers[0].header.sequence);
    script.inject(segment(".", 1, 1));
    assert!(script.host.connections.is_empty());
    (script.peer_port, script.ours) = (5, answers[4].header.sequence);
    script.inject(segment(".", 1, 1));
    assert_eq!(script.host.connections.len(), 1);
    // The enable goes, and its embryos with it.
    script.host.enables[0] = None;
    assert_eq!(script.host.protocol.counts(), (1, 0, 0));
}

#[test]
fn the_limit_over_all_enables_holds() {
    let config = TcpConfig { embryos_max: 2, syn_cookies: CookieUse::Off, ..Script::config() };
    let mut script = Script::listening(config, 100);
    script.host.listen(50_000, 100).unwrap();
    for port in 1..=2 {
        script.peer_port = port;
        script.inject(segment("S", 0, 0));
    }
    script.our_port = 50_000;
    script.inject(segment("S", 0, 0));
    assert_eq!(script.dropped(&drops::EMBRYOS_FULL), 1, "the other enable's embryos are not this one's to evict");
    assert_eq!(script.host.protocol.counts().1, 2);
}

/// RFC 9293, section 3.10.7.1 and 3.10.7.2.
#[test]
fn segments_for_nobody_are_reset_and_resets_are_not() {
    let mut script = Script::new(Script::config());
    script.inject(segment(".", 10, 0).raw(xylem_wire::SequenceNumber(77)).data(b"abc"));
    let reset = script.raw_sent().remove(0);
    assert_eq!((reset.text.as_str(), reset.header.sequence.0), ("R 77+0", 77));
    script.inject(segment("S", 10, 0).data(b"abc"));
    assert_eq!(script.raw_sent().remove(0).text, "R. 0+0 ack 14", "SYN and three bytes");
    script.inject(segment("R", 10, 0));
    script.inject(segment("R.", 10, 0));
    script.expect(&[]);

    let mut script = Script::listening(Script::config(), 4);
    script.inject(segment("R", 0, 0));
    script.inject(segment("F", 0, 0));
    script.inject(segment("", 0, 0));
    script.expect(&[]);
    script.inject(segment("S.", 0, 0).raw(xylem_wire::SequenceNumber(9)));
    assert_eq!(script.raw_sent().remove(0).header.sequence.0, 9);
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
}

#[test]
fn what_is_not_between_two_hosts_is_dropped_silently() {
    let mut script = Script::listening(Script::config(), 4);
    let mut message = script.build(&segment("S", 0, 0));
    message.attributes.broadcast = true;
    script.host.arrive(script.now, message);
    script.expect(&[]);
    assert_eq!(script.dropped(&drops::NOT_A_PEER), 1, "RFC 9293 MUST-57");
    script.peer_port = 0;
    script.inject(segment("S", 0, 0));
    script.expect(&[]);
    assert_eq!(script.dropped(&drops::NOT_A_PEER), 2);
}

#[test]
fn nothing_is_answered_before_its_checksum_is_right() {
    let mut script = Script::listening(Script::config(), 4);
    for bit in 0..20 * 8 {
        let mut bytes = script.build(&segment("S", 0, 0)).to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        script.host.arrive(script.now, xylem_core::Message::from_bytes(&bytes));
        let ports = bit < 32;
        if !ports {
            assert!(script.raw_sent().is_empty(), "bit {bit}");
        }
        script.raw_sent();
    }
    assert_eq!(script.host.protocol.counts().1, 0, "RFC 9293 MUST-3");
}

/// RFC 9293 MUST-46.
#[test]
fn opens_to_groups_and_to_nobody_are_refused() {
    let mut script = Script::new(Script::config());
    let addresses = [Ipv4Addr::BROADCAST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(224, 0, 0, 1)];
    for address in addresses.map(IpAddr::V4) {
        let participants = Participants::internet((None, None), (address, Port(80)));
        let error = script.host.make(script.now, participants, None, None).unwrap_err();
        assert_eq!(error, OpenError::NotAPeer(address));
    }
    let error = script.host.open(script.now, None, 0).unwrap_err();
    assert!(matches!(error, OpenError::MissingParticipant { .. }), "{error}");
}

#[test]
fn ports_are_held_once_and_chosen_if_nobody_asks() {
    let mut script = Script::new(TcpConfig { connections_max: 4096, ..Script::config() });
    let now = script.now;
    script.host.open(now, Some(1234), 80).unwrap();
    assert_eq!(script.host.open(now, Some(1234), 80).unwrap_err(), OpenError::InUse);
    script.host.open(now, Some(1234), 81).unwrap();
    for _ in 0..100 {
        script.host.open(now, None, 80).unwrap();
    }
    script.host.expire(now);
    let mut ports: Vec<u16> = script.raw_sent().iter().map(|syn| syn.header.source.0).skip(2).collect();
    assert!(ports.iter().all(|port| *port >= 49_152), "RFC 6335, section 6");
    let is_sequence = ports.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
    assert!(!is_sequence, "RFC 6056: not to be guessed");
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 100);
    script.host.listen(80, 1).unwrap();
    assert_eq!(script.host.listen(80, 1).unwrap_err(), EnableError::InUse);
    // RFC 9293 MUST-42: a connection's port is no obstacle to an enable.
    script.host.listen(1234, 1).unwrap();
    let chosen = script.host.listen(0, 1).unwrap();
    let port = script.host.enables[chosen].as_ref().unwrap().participants.local.find_port().unwrap();
    assert!(port.0 >= 49_152);
}

#[test]
fn every_port_taken_is_an_error_not_a_loop() {
    let mut script = Script::new(TcpConfig { connections_max: 1 << 20, ..Script::config() });
    for _ in 0..16_384 {
        script.host.open(script.now, None, 80).unwrap();
    }
    assert_eq!(script.host.open(script.now, None, 80).unwrap_err(), OpenError::NoFreePort);
    assert!(script.host.open(script.now, None, 81).is_ok(), "another peer port has all of them again");
}

#[test]
fn a_full_table_of_connections_is_an_error() {
    let mut script = Script::new(TcpConfig { connections_max: 16, ..Script::config() });
    let mut results = (0..200).map(|port| script.host.open(script.now, Some(1000 + port), 80));
    assert!(results.any(|result| result == Err(OpenError::Full("connections_max"))));
}

/// RFC 9293 MUST-2. What a script reads is held against its checksum, so that one segment of each kind is enough.
#[test]
fn whatever_goes_out_has_its_checksum() {
    let mut script = Script::open(TcpConfig { timestamps: true, ..Script::config() });
    script.push(1501);
    script.set(Setting::SendClosed);
    script.set(Setting::Abort);
    let kinds: Vec<String> = script.raw_sent().into_iter().map(|sent| sent.header.flags.to_string()).collect();
    assert_eq!(kinds, [".", "FP.", "R."]);
    // Another address, or one more bit, would not do.
    script.host.open(script.now, None, 80).unwrap();
    script.host.expire(script.now);
    let mut syn = script.host.sent.remove(0);
    syn.complete_checksum();
    let bytes = syn.to_vec();
    let ends = |local, remote| Ends {
        local: Endpoint { address: local, port: Port(1) },
        remote: Endpoint { address: remote, port: Port(2) },
    };
    assert!(ends(A, B).pseudo(bytes.len()).add(Sum::of(&bytes)).is_right());
    assert!(!ends(A, A).pseudo(bytes.len()).add(Sum::of(&bytes)).is_right());
}

/// RFC 9293 MUST-45: the host gets another address, and what goes out is still from the old one.
#[test]
fn a_connection_keeps_its_address() {
    let mut script = Script::open(Script::config());
    let facts = Facts { local: Some(IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9))), ..script.host.facts.clone() };
    let mut control = Control::Facts(facts);
    let _ = script.host.verb(script.now, 0, |path, out| Some(path.control(&mut control, out)));
    // The script's reader holds the checksum against the old address, and the peer's segments still find their way.
    script.push(10);
    script.expect(&["P. 1+10 ack 1"]);
    script.inject(segment(".", 1, 11).data(b"still here"));
    assert_eq!(script.host.connections[0].received, b"still here");
}
