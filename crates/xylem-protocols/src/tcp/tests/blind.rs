//! Attackers who do not see the connection, and peers who lie about what only they know: nothing happens that should not,
//! and what is answered stays bounded (RFC 5961, RFC 5927, RFC 7323).

use super::script::{Script, segment};
use crate::tcp::{TcpConfig, drops};
use xylem_core::{Control, Duration, NetworkError, NetworkErrorKind, Random};
use xylem_wire::SequenceNumber;

/// Numbers far outside of a window of 64 KB.
fn far(random: &mut Random) -> u32 {
    1_000_000 + random.below(u64::from(u32::MAX) - 2_000_000) as u32
}

/// RFC 5961, sections 3, 4 and 5: resets, SYNs and data at guessed numbers.
#[test]
fn guessed_segments_neither_end_nor_enter_a_connection() {
    for seed in 0..10 {
        let mut random = Random::seeded(seed);
        let mut script = Script::open(Script::config());
        for _ in 0..2000 {
            let (number, acknowledged) = (far(&mut random), SequenceNumber(random.next() as u32));
            script.inject(segment("R", number, 0));
            script.inject(segment("R.", number, 0).raw(acknowledged));
            script.inject(segment("S", number, 0));
            script.inject(segment("S.", number, 0).raw(acknowledged));
            script.inject(segment(".", number, 0).raw(acknowledged));
        }
        assert!(script.raw_sent().len() <= 10, "RFC 5961, section 7");
        assert_eq!(script.state(), "ESTABLISHED");
        // The right number without the right acknowledgment: data is dropped all the same (section 5.2).
        for _ in 0..2000 {
            let acknowledged = script.ours + 1 + far(&mut random);
            script.inject(segment("P.", 1, 0).raw(acknowledged).data(b"evil"));
        }
        assert!(script.raw_sent().len() <= 10);
        assert_eq!(script.dropped(&drops::BAD_ACKNOWLEDGMENT), 2000);
        for _ in 0..1000 {
            script.inject(segment("P.", far(&mut random), 1).data(b"evil"));
        }
        assert!(script.raw_sent().len() <= 1000, "no more than comes in");
        script.inject(segment("P.", 1, 1).data(b"good"));
        assert_eq!(script.host.connections[0].received, b"good", "seed {seed}");
    }
}

/// A clock of the future with an acknowledgment that cannot be: the peer's own clock is not old by it (RFC 7323, section
/// 5.3, with RFC 5961, section 5.2, before it).
#[test]
fn rfc_5961_5_2_a_clock_is_not_believed_of_whoever_knows_no_acknowledgment() {
    let mut script = Script::syn_sent(TcpConfig { window_scaling: false, ..TcpConfig::default() });
    script.inject(segment("S.", 0, 1).mss(1000).stamp(1000, 0));
    script.raw_sent();
    let beyond = script.ours + 500_000;
    script.inject(segment(".", 1, 0).raw(beyond).data(b"evil").stamp(900_000, 0));
    script.inject(segment(".", 1, 1).data(b"good").stamp(1001, 0));
    assert_eq!(script.host.connections[0].received, b"good");
}

/// In the window but not at the number expected: challenged, and the true peer's answer then resets (RFC 5961, section
/// 3.2); a SYN without a timestamp is one of a peer that has forgotten everything (section 4.2).
#[test]
fn what_may_be_the_peer_is_asked_and_not_believed() {
    let mut script = Script::syn_sent(TcpConfig { window_scaling: false, ..TcpConfig::default() });
    script.inject(segment("S.", 0, 1).mss(1000).stamp(1000, 0));
    script.raw_sent();
    for (number, attack) in (0..5).map(|step| (1 + step * 1000, if step == 0 { "S" } else { "R" })) {
        script.inject(segment(attack, number, 0));
        script.expect(&[". 1+0 ack 1"]);
    }
    assert_eq!(script.dropped(&drops::DOUBTFUL_SYN), 1);
    script.inject(segment("R", 1, 0));
    assert_eq!(script.state(), "CLOSED");
}

/// RFC 5927: errors that quote what is not in flight, and unreachables of a connection that is open.
#[test]
fn errors_by_strangers_change_nothing() {
    let mut script = Script::open(Script::config());
    script.push(3000);
    script.raw_sent();
    let before = script.host.status(script.now, 0);
    let mut random = Random::seeded(1);
    let kinds = [
        NetworkErrorKind::HostUnreachable,
        NetworkErrorKind::PortUnreachable,
        NetworkErrorKind::ProtocolUnreachable,
        NetworkErrorKind::TooLarge { mtu: 100 },
        NetworkErrorKind::TimeExceeded,
    ];
    for round in 0..5000 {
        let sequence = Some((script.ours + far(&mut random)).0);
        let error = NetworkError { kind: kinds[round % kinds.len()], sequence };
        script.host.hear(script.now, 0, Control::NetworkError(error));
    }
    script.expect(&[]);
    let after = script.host.status(script.now, 0);
    assert_eq!((after.state, after.segment_size), (before.state, before.segment_size));
    assert!(script.events().iter().all(|event| *event == xylem_core::Event::Opened));
}

/// Echoes of the future, of nothing and of long ago measure nothing; a clock that jumps ahead shuts out only its owner,
/// and not for ever (RFC 7323, sections 4.1 and 5.5).
#[test]
fn lies_about_timestamps_hurt_the_liar_only() {
    let mut script = Script::syn_sent(TcpConfig { window_scaling: false, ..TcpConfig::default() });
    script.wait_ms(20);
    script.inject(segment("S.", 0, 1).mss(1012).stamp(1000, 0));
    let clock = script.raw_sent()[0].options.timestamps.unwrap().value.0;
    let mut acknowledged = 1;
    for echo in [0, clock.wrapping_add(1 << 30), clock.wrapping_sub(1 << 30), u32::MAX, clock.wrapping_add(5_000)] {
        script.push(1000);
        script.wait_ms(20);
        acknowledged += 1000;
        script.inject(segment(".", 1, acknowledged).stamp(1001, echo));
        let round_trip = script.host.status(script.now, 0).round_trip.unwrap();
        assert!(round_trip <= Duration::from_millis(40), "{echo}: {round_trip:?}");
        script.raw_sent();
    }
    script.inject(segment("P.", 1, acknowledged).data(b"a").stamp(1001 + (1 << 30), clock));
    script.inject(segment("P.", 2, acknowledged).data(b"b").stamp(2000, clock));
    assert_eq!(script.host.connections[0].received, b"a", "its own earlier clock is old now");
    script.wait(Duration::from_secs(25 * 24 * 3600));
    script.inject(segment("P.", 2, acknowledged).data(b"b").stamp(3000, clock));
    assert_eq!(script.host.connections[0].received, b"ab");
}

/// RFC 1337, RFC 6191: a wait is neither ended nor prolonged by strangers.
#[test]
fn strangers_do_not_hold_a_connection_in_time_wait() {
    let mut script = Script::open(Script::config());
    script.close();
    script.raw_sent();
    script.inject(segment("F.", 1, 2));
    script.raw_sent();
    assert_eq!(script.host.protocol.counts().2, 1);
    let mut random = Random::seeded(9);
    for _ in 0..12 {
        script.wait(Duration::from_secs(5));
        script.inject(segment("F.", far(&mut random), 2));
        script.inject(segment("R", 2, 0));
    }
    script.wait(Duration::from_secs(1));
    assert_eq!(script.host.protocol.counts(), (0, 0, 0), "a minute is over");
}

/// Numbers go round: a stream of more than 4 GB would take long, but the crossing is what matters, on both sides.
#[test]
fn numbers_go_round_in_both_directions() {
    // The peer's numbers begin three before the end of the circle.
    let mut script = Script::open(Script::config());
    for place in 0..5u32 {
        script.inject(segment("P.", 1 + place, 1).data(&[b'a' + place as u8]));
    }
    assert_eq!(script.host.connections[0].received, b"abcde");
    script.inject(segment("R", 6, 0));
    assert_eq!(script.state(), "CLOSED", "the number expected, beyond zero");
    // Ours: many hosts, so many beginnings, some of them near the end.
    let mut crossed = 0;
    for seed in 0..3000u64 {
        let mut host = super::host::Host::new(Script::config(), seed, super::link::A, super::link::B);
        let now = xylem_core::Instant::ZERO + Duration::from_secs(1);
        host.open(now, Some(40_000), 80).unwrap();
        host.expire(now);
        let mut syn = host.sent.remove(0);
        let first = crate::tcp::segment::read_header(&mut syn).unwrap().sequence;
        if first.0 < u32::MAX - 3_000_000 {
            continue;
        }
        let mut net = super::link::Net::new(seed);
        net.hosts[0] = super::host::Host::new(TcpConfig::default(), seed, super::link::A, super::link::B);
        let (a, b) = net.connect();
        let stream = super::streams::bytes(seed, 4_000_000);
        let (mut sent, end) = (0, net.now + Duration::from_secs(60));
        while net.hosts[1].connections[b].received.len() < stream.len() {
            let now = net.now;
            sent += net.hosts[0].push(now, a, &stream[sent..]);
            assert!(net.step(end), "seed {seed} stalled");
        }
        assert!(net.hosts[1].connections[b].received == stream);
        crossed += 1;
    }
    assert!(crossed > 0, "no seed begins so near the end");
}
