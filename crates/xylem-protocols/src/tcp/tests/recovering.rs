//! Losses: fast retransmit and recovery, limited transmit, partial acknowledgments, timeouts, restart after idleness; and
//! that a transfer never takes longer than its timers explain.

use super::link::{Faults, Net};
use super::script::{Script, segment};
use super::streams::bytes;
use crate::tcp::TcpConfig;
use xylem_core::Duration;

/// A connection with ten segments of a thousand bytes in flight and more behind them.
fn in_flight() -> Script {
    let mut script = Script::open(Script::config());
    script.push(30_000);
    assert_eq!(script.raw_sent().len(), 10, "RFC 6928");
    script
}

/// RFC 3042; RFC 5681, section 3.2; RFC 6582; and RFC 9937 instead of an inflated window.
#[test]
fn three_duplicates_send_the_oldest_segment_again() {
    let mut script = in_flight();
    script.inject(segment(".", 1, 1));
    script.expect(&[". 10001+1000 ack 1"]);
    script.inject(segment(".", 1, 1));
    script.expect(&[". 11001+1000 ack 1"]);
    script.inject(segment(".", 1, 1));
    script.expect(&[". 1+1000 ack 1"]);
    let status = script.host.status(script.now, 0);
    assert_eq!((status.congestion_window, status.retransmitted), (5000, 1), "half of the ten before limited transmit");
    // Five of ten shall be in flight: every second further duplicate sends one, the retransmission being the first, until
    // it is five, and then every one.
    for sent in [&[][..], &[], &[". 12001+1000 ack 1"], &[], &[], &[". 13001+1000 ack 1"]] {
        script.inject(segment(".", 1, 1));
        script.expect(sent);
    }
    // A partial acknowledgment: the next hole goes at once.
    script.inject(segment(".", 1, 5001));
    let sent = script.raw_sent();
    assert_eq!(sent[0].text, ". 5001+1000 ack 1");
    // All of the recovery acknowledged: it ends without a burst.
    script.inject(segment(".", 1, 14_001));
    assert!(script.raw_sent().len() <= 5);
    assert!(script.host.status(script.now, 0).congestion_window <= 5000);
}

#[test]
fn what_is_not_a_duplicate_is_not_counted() {
    let mut script = in_flight();
    for window in 0..5 {
        script.inject(segment(".", 1, 1).window(60_000 + window));
    }
    for part in 0..5 {
        script.inject(segment(".", 1 + part, 1).window(60_004).data(b"x"));
    }
    let again = script.raw_sent().iter().filter(|sent| sent.text.starts_with(". 1+")).count();
    assert_eq!(again, 0);
    // With nothing outstanding nothing is lost.
    let mut script = Script::open(Script::config());
    for _ in 0..5 {
        script.inject(segment(".", 1, 1));
    }
    script.expect(&[]);
}

#[test]
fn a_timeout_begins_again_with_one_segment() {
    let mut script = in_flight();
    script.wait_ms(250);
    script.expect(&[". 1+1000 ack 1"]);
    assert_eq!(script.host.status(script.now, 0).congestion_window, 1000);
    script.inject(segment(".", 1, 1001));
    script.expect(&[". 1001+1000 ack 1", ". 2001+1000 ack 1"]);
    // The receiver had the rest: nothing of it goes again.
    script.inject(segment(".", 1, 10_001));
    let sent = script.raw_sent();
    assert!(sent[0].text.starts_with(". 10001+"), "{}", sent[0].text);
}

#[test]
fn after_a_pause_sending_restarts_from_the_initial_window() {
    let mut script = Script::open(Script::config());
    let mut acknowledged = 1;
    for _ in 0..4 {
        script.push(40_000);
        loop {
            let bytes: usize = script.raw_sent().iter().map(|sent| sent.data.len()).sum();
            acknowledged += bytes as u32;
            script.wait_ms(1);
            if bytes == 0 {
                break;
            }
            script.inject(segment(".", 1, acknowledged));
        }
    }
    let window = script.host.status(script.now, 0).congestion_window;
    assert!(window > 20_000, "{window}");
    script.wait(Duration::from_secs(5));
    script.push(40_000);
    assert_eq!(script.raw_sent().len(), 10, "RFC 5681, section 4.1");
}

#[test]
fn the_first_window_after_a_lost_syn_is_one_segment() {
    let mut script = Script::syn_sent(Script::config());
    script.wait_ms(1000);
    script.expect(&["S 0+0"]);
    script.inject(segment("S.", 0, 1).mss(1000));
    script.raw_sent();
    script.push(10_000);
    script.expect(&[". 1+1000 ack 1"]);
    assert_eq!(script.host.status(script.now, 0).retransmission_timeout, Duration::from_secs(3), "RFC 6298 5.7");
}

/// Each single segment of a transfer is lost in turn: the time it costs is at most a timeout and some round trips.
#[test]
fn one_loss_costs_at_most_one_timeout() {
    let time = |lost: Option<usize>| {
        let mut net = Net::new(1);
        let (a, b) = net.connect();
        let data = bytes(1, 60_000);
        let now = net.now;
        assert_eq!(net.hosts[0].push(now, a, &data), data.len());
        let mut count = 0;
        let began = net.now;
        while net.hosts[1].connections[b].received.len() < data.len() {
            for message in std::mem::take(&mut net.hosts[0].sent) {
                if Some(count) != lost {
                    net.hosts[0].sent.push(message);
                }
                count += 1;
            }
            let end = began + Duration::from_secs(100);
            assert!(net.step_dropping(end), "stalled after losing segment {lost:?}");
        }
        net.now.since(began)
    };
    let clean = time(None);
    for lost in 0..42 {
        let slow = time(Some(lost));
        // The timeout's floor, a delayed acknowledgment before it and one after it, and some round trips of 10 ms.
        assert!(
            slow <= clean + Duration::from_millis(200 + 2 * 40 + 40),
            "losing segment {lost}: {slow:?} instead of {clean:?}"
        );
    }
}

#[test]
fn a_lossy_link_is_used_and_not_waited_for() {
    let mut total = Duration::ZERO;
    for seed in 0..20 {
        let mut net = Net::new(seed);
        let (a, b) = net.connect();
        net.faults = Faults { lost: 10_000, ..Faults::default() };
        let data = bytes(seed, 400_000);
        let (mut sent, began) = (0, net.now);
        while net.hosts[1].connections[b].received.len() < data.len() {
            let now = net.now;
            sent += net.hosts[0].push(now, a, &data[sent..]);
            assert!(net.step(began + Duration::from_secs(1000)), "seed {seed}: stalled");
        }
        assert!(net.hosts[1].connections[b].received == data);
        total += net.now.since(began);
    }
    // 400 KB at 1 % loss and a round trip of 10 ms: Mathis' formula gives about 1.4 MB/s; timeouts of 200 ms take their
    // share. Without fast recovery it would be several seconds each.
    assert!(total < Duration::from_secs(30), "{total:?} for twenty transfers");
}

#[test]
fn a_connection_without_timestamps_recovers_too() {
    for seed in 0..20 {
        let config = TcpConfig { timestamps: false, ..TcpConfig::default() };
        let mut net = Net::with(seed, config.clone(), config);
        let (a, b) = net.connect();
        net.faults = Faults { lost: 30_000, ..Faults::default() };
        let data = bytes(seed, 100_000);
        let (mut sent, began) = (0, net.now);
        while net.hosts[1].connections[b].received.len() < data.len() {
            let now = net.now;
            sent += net.hosts[0].push(now, a, &data[sent..]);
            assert!(net.step(began + Duration::from_secs(1000)), "seed {seed}: stalled");
        }
        assert!(net.hosts[1].connections[b].received == data);
    }
}

/// RFC 5681, section 3.1, and RFC 7661: in congestion avoidance the window grows by a segment a round while it holds
/// something back, and not where it is the application that sends little.
#[test]
fn in_avoidance_a_window_grows_only_where_it_is_used() {
    let rounds = |script: &mut Script, count: u32, bytes: usize| {
        for _ in 0..count {
            script.push(bytes);
            script.wait_ms(10);
            let acknowledged = (script.raw_sent().iter())
                .map(|sent| sent.header.sequence.since(script.ours) as u32 + sent.data.len() as u32)
                .max();
            script.inject(segment(".", 1, acknowledged.expect("something goes each round")));
        }
        script.host.status(script.now, 0).congestion_window
    };
    let mut script = in_flight();
    (0..3).for_each(|_| script.inject(segment(".", 1, 1)));
    script.raw_sent();
    let highest = script.host.status(script.now, 0).in_flight as u32 + 1;
    script.inject(segment(".", 1, highest));
    let begun = rounds(&mut script, 5, 10_000);
    let grown = rounds(&mut script, 10, 15_000);
    assert!((begun + 9_000..=begun + 11_000).contains(&grown), "{begun} {grown}");
    // What is queued goes out; then a segment a round.
    let drained = rounds(&mut script, 30, 1000);
    let little = rounds(&mut script, 20, 1000);
    assert!(little <= drained + 1000, "{drained} {little}");
}
