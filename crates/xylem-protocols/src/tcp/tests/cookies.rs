//! SYN cookies (RFC 4987, section 3.6): a flood of SYNs costs nobody else anything, and a cookie is worth what it proves.

use super::link::Net;
use super::script::{Script, segment};
use super::streams::bytes;
use crate::tcp::{CookieUse, EcnUse, TcpConfig, drops};
use xylem_core::{Duration, Event, Random};
use xylem_wire::TcpFlags;

fn config() -> TcpConfig {
    TcpConfig { ecn: EcnUse::Passive, ..TcpConfig::default() }
}

/// A listener whose backlog of four is full.
fn flooded(config: TcpConfig) -> Script {
    let mut script = Script::listening(config, 4);
    for port in 1..=4 {
        script.peer_port = port;
        script.inject(segment("S", 0, 0));
    }
    script.raw_sent();
    script.peer_port = 5000;
    assert_eq!(script.host.protocol.cookie_counts().sent, 0, "never before the backlog is full");
    script
}

#[test]
fn a_full_backlog_is_answered_with_cookies_that_keep_what_was_offered() {
    for (scale, stamps, ecn) in
        [(Some(7), true, true), (None, true, false), (Some(0), true, true), (Some(9), false, true)]
    {
        let mut script = flooded(config());
        let mut syn = segment(if ecn { "SEW" } else { "S" }, 0, 0).mss(1400);
        syn = scale.map_or(syn.clone(), |shift| syn.scale(shift));
        syn = if stamps { syn.stamp(500, 0) } else { syn };
        script.inject(syn);
        let answer = script.raw_sent().remove(0);
        assert_eq!(script.host.protocol.counts().1, 4, "nothing is remembered");
        assert_eq!(script.host.protocol.cookie_counts().sent, 1);
        assert_eq!(answer.options.window_scale.is_some(), stamps && scale.is_some());
        assert_eq!(answer.header.flags.contains(TcpFlags::ECE), stamps && ecn);
        script.ours = answer.header.sequence;
        script.wait_ms(30);
        let ack = segment(".", 1, 1).window(50);
        script.inject(match answer.options.timestamps {
            Some(ours) => ack.stamp(530, ours.value.0),
            None => ack,
        });
        let status = script.host.status(script.now, 0);
        assert_eq!(status.state, "ESTABLISHED");
        assert_eq!(status.segment_size, if stamps { 1360 - 12 } else { 1360 }, "rounded down");
        assert_eq!(status.peer_window, 50 << scale.filter(|_| stamps).unwrap_or(0));
        assert_eq!(status.ecn, stamps && ecn);
        assert_eq!((script.events(), script.host.protocol.counts()), (vec![Event::Opened], (1, 4, 0)));
    }
}

/// RFC 4987, section 3.6: the last message of the handshake may be lost, if data follows in its place.
#[test]
fn data_in_place_of_a_lost_acknowledgment_opens_too() {
    let mut script = flooded(Script::config());
    script.inject(segment("S", 0, 0).mss(1000));
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment("P.", 101, 1).data(b"too far"));
    script.expect(&["R 1+0"]);
    script.inject(segment("P.", 1, 1).data(b"hello"));
    assert_eq!(script.host.connections[0].received, b"hello");
    assert_eq!(script.state(), "ESTABLISHED");
}

#[test]
fn a_cookie_is_forged_by_nobody_and_dies() {
    let mut script = flooded(Script::config());
    script.inject(segment("S", 0, 0));
    let ours = script.raw_sent()[0].header.sequence;
    let mut random = Random::seeded(5);
    script.peer_port = 6000;
    for _ in 0..20_000 {
        script.inject(segment(".", random.next() as u32, 0).raw(xylem_wire::SequenceNumber(random.next() as u32)));
    }
    // Another's cookie, or the right one late.
    script.inject(segment(".", 1, 0).raw(ours + 1));
    script.peer_port = 5000;
    script.inject(segment(".", 2, 0).raw(ours + 1));
    script.wait(Duration::from_secs(300));
    script.raw_sent();
    script.inject(segment(".", 1, 0).raw(ours + 1));
    assert_eq!(script.raw_sent().len(), 1, "reset");
    assert!(script.host.connections.is_empty());
    assert_eq!(script.host.protocol.cookie_counts().accepted, 0);
    assert_eq!(script.dropped(&drops::NO_CONNECTION), 20_003);
}

/// Where no cookie was sent, none is believed, however right.
#[test]
fn without_pressure_nothing_is_a_cookie() {
    let mut script = Script::listening(TcpConfig { syn_cookies: CookieUse::Off, ..Script::config() }, 4);
    for port in 1..=100 {
        script.peer_port = port;
        script.inject(segment("S", 0, 0));
    }
    assert_eq!(script.host.protocol.cookie_counts().sent, 0);
    assert_eq!(script.dropped(&drops::EMBRYO_EVICTED), 96);
    let mut script = Script::listening(TcpConfig { syn_cookies: CookieUse::Always, ..Script::config() }, 4);
    script.inject(segment("S", 0, 0));
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment(".", 1, 1));
    assert_eq!((script.state(), script.host.protocol.cookie_counts().accepted), ("ESTABLISHED", 1));
}

/// RFC 4987, section 3.6: a right acknowledgment that is repeated when its connection has gone opens no ghost of it.
#[test]
fn rfc_4987_3_6_a_cookie_opens_one_connection() {
    let mut script = flooded(Script::config());
    script.inject(segment("S", 0, 0).mss(1000));
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment("P.", 1, 1).data(b"hello"));
    assert_eq!(script.state(), "ESTABLISHED");
    script.inject(segment("R", 6, 0));
    script.raw_sent();
    script.close();
    assert!(script.host.connections[0].path.is_none());
    for _ in 0..10 {
        script.inject(segment("P.", 1, 1).data(b"hello"));
        script.expect(&["R 1+0"]);
    }
    assert_eq!(script.host.connections.len(), 1, "a ghost");
    // Another connection of the same ends is another cookie.
    script.inject(segment("S", 7, 0).mss(1000));
    let ours = script.raw_sent()[0].header.sequence;
    script.inject(segment(".", 8, 0).raw(ours + 1));
    assert_eq!(script.host.connections.len(), 2);
}

/// RFC 6191, section 2: out of TIME-WAIT the numbers of the new connection begin beyond those of the old, under pressure too.
#[test]
fn rfc_6191_2_reopening_under_pressure_begins_beyond_the_old_numbers() {
    for seed in 0..20 {
        let mut script = Script::listening(TcpConfig { syn_cookies: CookieUse::Always, ..Script::config() }, 4);
        script.wait(Duration::from_secs(seed * 7));
        script.inject(segment("S", 0, 0).mss(1000));
        script.ours = script.raw_sent()[0].header.sequence;
        script.inject(segment(".", 1, 1));
        script.close();
        script.inject(segment("F.", 1, 2));
        script.raw_sent();
        assert_eq!(script.host.protocol.counts(), (0, 0, 1), "in TIME-WAIT");
        script.inject(segment("S", 50_000, 0).mss(1000));
        let answer = script.raw_sent().remove(0);
        assert!(answer.header.sequence.is_after(script.ours + 2), "seed {seed}");
        assert_eq!(script.host.protocol.counts(), (0, 1, 0), "remembered");
        script.inject(segment(".", 50_001, 0).raw(answer.header.sequence + 1));
        assert_eq!(script.host.connections.len(), 2);
    }
}

/// Acknowledgments with right cookies whose connections nobody accepts fill what is set aside for them and no more.
#[test]
fn proven_peers_are_bounded_too() {
    let mut script = flooded(Script::config());
    script.host.accepts = false;
    for port in 1000..1100 {
        script.peer_port = port;
        script.inject(segment("S", 0, 0));
        script.ours = script.raw_sent()[0].header.sequence;
        script.inject(segment(".", 1, 1));
        assert!(script.host.protocol.counts().1 <= 8);
    }
    script.wait(Duration::from_secs(100));
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
}

/// SYNs from forged addresses at full rate: an open connection goes on, and a new one opens and carries its data.
#[test]
fn under_a_flood_old_and_new_connections_work() {
    for seed in 0..20 {
        let mut net = Net::with(seed, config(), config());
        let (old, _) = net.connect();
        let mut flood = Script::new(TcpConfig::default());
        flood.our_port = 80;
        (flood.host.facts.local, flood.host.facts.remote) = (net.hosts[1].facts.local, net.hosts[1].facts.remote);
        let mut random = Random::seeded(!seed);
        let mut rain = |net: &mut Net, count: u32| {
            for _ in 0..count {
                flood.peer_port = 1 + random.below(30_000) as u16;
                let message = flood.build_from(super::link::A, super::link::B, &segment("S", random.next() as u32, 0));
                let now = net.now;
                net.hosts[1].arrive(now, message);
            }
            // What answers the forged addresses goes nowhere.
            net.hosts[1].sent.clear();
        };
        rain(&mut net, 500);
        let new = net.hosts[0].open(net.now, Some(40_000), 80).unwrap();
        let streams = [bytes(seed, 50_000), bytes(!seed, 50_000)];
        let mut sent = [0, 0];
        for _ in 0..400 {
            for (index, connection) in [old, new].into_iter().enumerate() {
                let now = net.now;
                if net.hosts[0].state(now, connection) == "ESTABLISHED" {
                    sent[index] += net.hosts[0].push(now, connection, &streams[index][sent[index]..]);
                }
            }
            net.carry();
            rain(&mut net, 20);
            net.run_for(Duration::from_millis(5));
        }
        assert_eq!(net.hosts[1].connections.len(), 2, "seed {seed}: {:?}", net.report());
        for (index, stream) in streams.iter().enumerate() {
            assert!(net.hosts[1].connections[index].received == *stream, "seed {seed}: {:?}", net.report());
        }
        assert!(net.hosts[1].protocol.cookie_counts().accepted >= 1);
        assert!(net.hosts[1].protocol.counts().1 <= 16);
    }
}
