//! The path's MTU: errors that may be true, ways that swallow large segments, and the search for the largest.

use super::link::Net;
use super::script::{Script, segment};
use super::streams::bytes;
use crate::tcp::{MtuProbing, TcpConfig};
use xylem_core::{Control, Duration, NetworkError, NetworkErrorKind, Random, Setting};

fn too_large(script: &mut Script, mtu: u16, offset: u32) {
    let kind = NetworkErrorKind::TooLarge { mtu };
    let sequence = Some((script.ours + offset).0);
    script.host.hear(script.now, 0, Control::NetworkError(NetworkError { kind, sequence }));
}

/// A connection with segments of 1460 bytes, of which some have arrived if `proven`.
fn open(proven: bool) -> Script {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("S.", 0, 1).mss(1460));
    script.set(Setting::NoDelay(true));
    script.raw_sent();
    if proven {
        script.push(2920);
        script.inject(segment(".", 1, 2921));
        script.raw_sent();
    }
    script
}

fn size(script: &mut Script) -> usize {
    script.host.status(script.now, 0).segment_size
}

/// RFC 5927, section 7.2: while larger segments arrive, an error that says less waits for the timer to agree.
#[test]
fn an_error_against_the_evidence_waits_for_a_timeout() {
    let mut script = open(true);
    script.push(2920);
    script.raw_sent();
    too_large(&mut script, 600, 2921);
    script.expect(&[]);
    assert_eq!(size(&mut script), 1460, "segments of this size have arrived");
    script.inject(segment(".", 1, 4381));
    script.wait_ms(50);
    script.inject(segment(".", 1, 5841));
    assert_eq!(size(&mut script), 1460, "and still do: it was a lie");
    script.push(2920);
    too_large(&mut script, 600, 5841);
    script.wait(Duration::from_secs(2));
    assert_eq!(size(&mut script), 560, "nothing arrives any more: it was true");
}

/// RFC 1191: before anything so large has arrived it counts at once, and those below hear what to believe.
#[test]
fn an_error_that_may_be_true_counts_at_once_and_is_passed_on() {
    let mut script = open(false);
    script.push(2920);
    script.raw_sent();
    too_large(&mut script, 1000, 1);
    assert_eq!(size(&mut script), 960);
    assert!(!script.raw_sent().is_empty(), "sent again at once");
    assert!(script.host.connections[0].advice.contains(&Control::PathMtu(1000)));
    // Again and again, or less than the least: nothing more happens than once.
    for _ in 0..100 {
        too_large(&mut script, 68, 1);
    }
    assert_eq!(size(&mut script), 512);
    assert!(script.raw_sent().len() < 20);
}

#[test]
fn errors_by_strangers_do_nothing() {
    let mut script = open(false);
    script.push(2920);
    script.raw_sent();
    let mut random = Random::seeded(3);
    for _ in 0..5000 {
        let offset = 3000 + random.below(u64::from(u32::MAX) - 3000) as u32;
        too_large(&mut script, random.next() as u16, offset);
    }
    let kind = NetworkErrorKind::TooLarge { mtu: 600 };
    script.host.hear(script.now, 0, Control::NetworkError(NetworkError { kind, sequence: None }));
    script.expect(&[]);
    assert_eq!(size(&mut script), 1460);
    assert!(!script.host.connections[0].advice.iter().any(|advice| matches!(advice, Control::PathMtu(_))));
}

/// Sends a stream through a link that swallows what is larger than `most`; the segment size in the end.
fn stream(net: &mut Net, count: usize) -> usize {
    let index = net.hosts[0].connections.len() - 1;
    let stream = bytes(count as u64, count);
    let from = net.hosts[1].connections[index].received.len();
    let (mut sent, end) = (0, net.now + Duration::from_secs(400));
    while net.hosts[1].connections[index].received.len() < from + count {
        let now = net.now;
        sent += net.hosts[0].push(now, index, &stream[sent..]);
        assert!(net.step(end), "stalled: {:?}", net.report());
    }
    assert!(net.hosts[1].connections[index].received[from..] == stream);
    let now = net.now;
    net.hosts[0].status(now, index).segment_size
}

/// RFC 8899, RFC 4821: small ones after repeated timeouts, larger ones again after ten minutes, as large as passes.
#[test]
fn a_black_hole_is_found_and_later_its_edge() {
    for swallows in [1300, 1420, 1440] {
        let mut net = Net::with(u64::from(swallows as u32), TcpConfig::default(), TcpConfig::default());
        net.connect();
        assert_eq!(stream(&mut net, 100_000), 1448);
        net.swallows = swallows;
        assert_eq!(stream(&mut net, 200_000), 1200 - 52, "the base");
        net.run_for(Duration::from_secs(300));
        assert_eq!(stream(&mut net, 200_000), 1148, "not yet");
        net.run_for(Duration::from_secs(301));
        let found = stream(&mut net, 3_000_000);
        assert!(found + 32 <= swallows && found + 32 + 17 > swallows, "{found} of {swallows}");
        net.swallows = usize::MAX;
        net.run_for(Duration::from_secs(601));
        assert_eq!(stream(&mut net, 400_000), 1448, "the way has become as it was");
    }
}

/// What is too large need not be a whole segment.
#[test]
fn rfc_4821_7_7_a_black_hole_swallows_what_is_less_than_a_segment_too() {
    for (swallows, count) in [(1000, 1100), (700, 800), (1300, 1400)] {
        let mut net = Net::with(9, TcpConfig::default(), TcpConfig::default());
        let (a, b) = net.connect();
        net.swallows = swallows;
        let now = net.now;
        net.hosts[0].push(now, a, &bytes(9, count));
        net.run_for(Duration::from_secs(60));
        assert_eq!(net.hosts[1].connections[b].received.len(), count, "{:?}", net.report());
    }
}

/// A window that takes less than a segment is filled by a timer, and what fills it may vanish.
#[test]
fn rfc_4821_7_7_a_black_hole_swallows_what_fills_a_narrow_window_too() {
    let narrow = TcpConfig { receive_buffer: 2048, receive_buffer_max: 0, ..TcpConfig::default() };
    let mut net = Net::with(9, TcpConfig::default(), narrow);
    let (a, b) = net.connect();
    net.hosts[1].connections[b].reads = false;
    net.swallows = 1000;
    let now = net.now;
    net.hosts[0].push(now, a, &bytes(9, 800));
    net.run_for(Duration::from_secs(1));
    let now = net.now;
    net.hosts[0].push(now, a, &bytes(9, 5000));
    net.run_for(Duration::from_secs(120));
    assert_eq!(net.hosts[1].connections[b].received.len(), 2048, "{:?}", net.report());
}

/// Probing from the beginning: no timeout is needed to find the largest, and a lost probe costs no window.
#[test]
fn probing_finds_the_largest_from_below() {
    let config = TcpConfig { mtu_probing: MtuProbing::On, ..TcpConfig::default() };
    let mut net = Net::with(5, config.clone(), config);
    net.connect();
    assert_eq!(stream(&mut net, 300_000), 1448);
    assert_eq!(net.hosts[0].status(net.now, 0).retransmitted, 0);
    let config = TcpConfig { mtu_probing: MtuProbing::On, ..TcpConfig::default() };
    let mut net = Net::with(6, config.clone(), config);
    net.swallows = 1400;
    net.connect();
    let found = stream(&mut net, 3_000_000);
    assert!((1384 - 32..=1400 - 32).contains(&found), "{found}");
    let status = net.hosts[0].status(net.now, 0);
    assert!(status.retransmitted < 40, "{}", status.retransmitted);
    assert!(status.congestion_window > 40_000, "{}", status.congestion_window);
}

#[test]
fn probing_that_is_off_stays_off() {
    let config = TcpConfig { mtu_probing: MtuProbing::Off, ..TcpConfig::default() };
    let mut net = Net::with(5, config.clone(), config);
    let (a, _) = net.connect();
    net.swallows = 1300;
    let now = net.now;
    net.hosts[0].push(now, a, &[1; 20_000]);
    net.run_for(Duration::from_secs(60));
    let now = net.now;
    assert_eq!(net.hosts[0].status(now, a).segment_size, 1448);
}

/// Whatever the way swallows, loses and mixes up, streams arrive.
#[test]
fn streams_arrive_whole_through_changing_ways() {
    for seed in 0..30 {
        let mut random = Random::seeded(seed);
        let mtu_probing = if seed % 2 == 0 { MtuProbing::On } else { MtuProbing::BlackHole };
        let config = TcpConfig { mtu_probing, ..TcpConfig::default() };
        let mut net = Net::with(seed, config.clone(), config);
        net.connect();
        for _ in 0..6 {
            net.swallows = 560 + random.below(1000) as usize;
            net.faults.lost = random.below(50_000) as u32;
            net.faults.late = random.below(100_000) as u32;
            stream(&mut net, 30_000);
            net.run_for(Duration::from_secs(random.below(700)));
        }
    }
}
