//! Losses as they come, over seeds: what goes again is never what the peer has reported, nothing waits longer than its
//! timers, and a path that loses and reorders is used. The flight is held against its bytes after every verb of every
//! test (`TcpSession::check`).

use super::host::Logged;
use super::link::{Faults, Net};
use super::streams::bytes;
use crate::tcp::TcpConfig;
use crate::tcp::congestion::RENO;
use std::collections::BTreeSet;
use xylem_core::{Duration, Instant, Random};
use xylem_wire::{Header, SequenceNumber, TcpHeader, TcpOptions};

/// What a sender's own wire showed of one transfer.
#[derive(Default)]
struct Seen {
    /// Segments with data, and those among them that had been sent before.
    segments: usize,
    again: usize,
    /// Those of which some had been reported as there, and had not been by what came since.
    needless: usize,
}

/// Reads a log as somebody who knows RFC 2018 and nothing of the code.
fn read(log: &[Logged]) -> Seen {
    let mut seen = Seen::default();
    let mut first = None;
    let (mut highest, mut acknowledged) = (0i64, 0i64);
    let mut reported: BTreeSet<i64> = BTreeSet::new();
    for entry in log {
        let (bytes, is_sent) = match entry {
            Logged::Sent(bytes) => (bytes, true),
            Logged::Arrived(bytes) => (bytes, false),
        };
        let Ok(header) = TcpHeader::parse(bytes) else { continue };
        let Ok(options) = TcpOptions::parse(header.options(bytes)) else { continue };
        let place = |number: SequenceNumber, first: SequenceNumber| i64::from(number.since(first));
        if is_sent {
            let first = *first.get_or_insert(header.sequence);
            let (at, length) = (place(header.sequence, first), (bytes.len() - header.header_length()) as i64);
            if length > 0 {
                seen.segments += 1;
                seen.again += usize::from(at < highest);
                // One byte is enough to know: blocks are kept in steps of a hundred.
                seen.needless += usize::from(reported.range(at..at + length).next().is_some());
                highest = highest.max(at + length);
            }
        } else if let Some(first) = first {
            acknowledged = acknowledged.max(place(header.acknowledgment, first));
            for block in &options.sack {
                let (left, right) = (place(block.left, first), place(block.right, first));
                if left >= acknowledged && right <= highest {
                    reported.extend((left..right).filter(|place| place % 100 == 0));
                }
            }
            reported = reported.split_off(&acknowledged);
        }
    }
    seen
}

/// Sends `count` bytes from host 0 to host 1; returns the time it took and what was seen of it. Holds the timers against
/// what is outstanding after every step.
fn transfer(net: &mut Net, seed: u64, count: usize) -> (Duration, Seen) {
    let faults = std::mem::take(&mut net.faults);
    let (a, b) = net.connect();
    net.faults = faults;
    net.hosts[0].log = Some(Vec::new());
    let data = bytes(seed, count);
    let (mut sent, began) = (0, net.now);
    while net.hosts[1].connections[b].received.len() < data.len() {
        let now = net.now;
        sent += net.hosts[0].push(now, a, &data[sent..]);
        assert!(net.step(began + Duration::from_secs(3600)), "seed {seed}: stalled");
        let status = net.hosts[0].status(net.now, a);
        if status.in_flight > 0 {
            let latest = net.now + status.retransmission_timeout;
            let deadline = net.hosts[0].deadline();
            assert!(deadline.is_some_and(|at| at <= latest), "seed {seed}: {deadline:?} is after {latest:?}");
        }
    }
    assert!(net.hosts[1].connections[b].received == data, "seed {seed}");
    (net.now.since(began), read(&net.hosts[0].log.take().unwrap()))
}

/// Reno, so that what is measured is the recovery: the faster a window grows, the larger is the share of a transfer that
/// went out before the reordering was found out.
fn buffers(selective: bool) -> TcpConfig {
    TcpConfig {
        congestion: &RENO,
        receive_buffer: 2 << 20,
        receive_buffer_max: 0,
        send_buffer: 2 << 20,
        send_buffer_max: 0,
        selective_acknowledgments: selective,
        ..TcpConfig::default()
    }
}

/// RFC 6675, section 5 (NextSeg); RFC 2018, section 5.1.
#[test]
fn rfc_6675_5_what_was_reported_does_not_go_again() {
    let mut all = Seen::default();
    for seed in 0..60 {
        let mut random = Random::seeded(seed);
        let mut net = Net::with(seed, buffers(true), buffers(true));
        let mut at_most = |most: u64| random.below(most) as u32;
        net.faults = Faults { lost: at_most(60_000), doubled: at_most(50_000), late: at_most(200_000), corrupted: 0 };
        let (_, seen) = transfer(&mut net, seed, 150_000);
        assert!(seen.needless <= seen.again / 20, "seed {seed}: {} of {}", seen.needless, seen.again);
        all.segments += seen.segments;
        all.again += seen.again;
        all.needless += seen.needless;
    }
    assert!(all.again > 200, "{} went again", all.again);
    // Timeouts that go off twice forget what was reported (RFC 2018, section 8): they are rare.
    assert!(all.needless * 100 <= all.again, "{} of {} had been reported", all.needless, all.again);
}

/// The time that `count` bytes take on each of some seeds, together, and the share of segments that went again, in
/// thousandths.
fn over_seeds(selective: bool, faults: Faults, count: usize) -> (Duration, usize) {
    let (mut total, mut all) = (Duration::ZERO, Seen::default());
    for seed in 0..4 {
        let mut net = Net::with(seed, buffers(selective), buffers(selective));
        net.delay = Duration::from_millis(10);
        net.faults = faults;
        let (time, seen) = transfer(&mut net, seed, count);
        total += time;
        (all.segments, all.again) = (all.segments + seen.segments, all.again + seen.again);
    }
    (total, all.again * 1000 / all.segments)
}

/// RFC 8985: 5 % late by up to a round trip and 0.5 % lost.
#[test]
fn rfc_8985_a_link_that_reorders_is_used() {
    let faults = Faults { lost: 5_000, late: 50_000, ..Faults::default() };
    let (with, again) = over_seeds(true, faults, 2_000_000);
    let (without, again_without) = over_seeds(false, faults, 2_000_000);
    assert!(with * 13 < without * 10, "{with:?} with and {without:?} without selective acknowledgments");
    assert!(
        again <= 20 && 2 * again < again_without,
        "{again} and {again_without} of a thousand went again, 5 were lost"
    );
}

/// Nothing lost, and a tenth late: RACK finds out how late, and next to nothing goes again.
#[test]
fn rfc_8985_reordering_alone_costs_little() {
    let (time, again) = over_seeds(true, Faults { late: 100_000, ..Faults::default() }, 4_000_000);
    assert!(again <= 20, "{again} of a thousand went again");
    assert!(time < Duration::from_secs(20), "{time:?}");
}

/// Every single segment of a short transfer is lost in turn: with tail probes no loss costs as much as a timeout.
#[test]
fn rfc_8985_7_one_loss_costs_no_timeout() {
    let time = |lost: Option<usize>| -> Duration {
        let mut net = Net::new(1);
        let (a, b) = net.connect();
        let data = bytes(1, 60_000);
        let (now, mut count) = (net.now, 0);
        assert_eq!(net.hosts[0].push(now, a, &data), data.len());
        while net.hosts[1].connections[b].received.len() < data.len() {
            for message in std::mem::take(&mut net.hosts[0].sent) {
                if Some(count) != lost {
                    net.hosts[0].sent.push(message);
                }
                count += 1;
            }
            assert!(net.step_dropping(now + Duration::from_secs(100)), "stalled after losing {lost:?}");
        }
        net.now.since(now)
    };
    let clean = time(None);
    for lost in 0..41 {
        let slow = time(Some(lost));
        assert!(slow <= clean + Duration::from_millis(80), "losing {lost}: {slow:?} instead of {clean:?}");
    }
}

/// Blackouts: whatever is in flight is gone. Sending goes on within a timer of the link's return.
#[test]
fn rfc_6298_a_blackout_costs_its_length_and_one_timer() {
    for seed in 0..20 {
        let mut net = Net::with(seed, buffers(seed % 2 == 0), buffers(true));
        let (a, b) = net.connect();
        let data = bytes(seed, 600_000);
        let mut random = Random::seeded(seed);
        let (begin, length) = (20 + random.below(60), 10 + random.below(1500));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let (began, mut sent) = (net.now, 0);
        let (dark, light) = (at(began.as_millis() + begin), at(began.as_millis() + begin + length));
        while net.hosts[1].connections[b].received.len() < data.len() {
            let now = net.now;
            sent += net.hosts[0].push(now, a, &data[sent..]);
            let next = net.next().unwrap_or(now);
            net.faults.lost = if (dark..light).contains(&next) { 1_000_000 } else { 0 };
            assert!(net.step(began + Duration::from_secs(100)), "seed {seed}: stalled");
        }
        // The timer doubles while it is dark: at most as long again as that lasted, and what a clean transfer takes.
        let took = net.now.since(began);
        let most = Duration::from_millis(begin + 3 * length + 1000);
        assert!(took <= most, "seed {seed}: {took:?} with a blackout of {length} ms");
    }
}
