//! What the algorithms are for, on the model of a link: seeds vary what is left to chance.

use super::super::{Algorithm, BBR, CUBIC, RENO};
use super::link::{Flow, Link, run};
use xylem_core::{Duration, Instant};

const SECONDS: u64 = 20;

fn end() -> Instant {
    Instant::ZERO + Duration::from_secs(SECONDS)
}

fn alone(algorithm: &'static Algorithm, link: &Link, seed: u64) -> Flow {
    run(link, &[(algorithm, Instant::ZERO)], end(), seed).remove(0)
}

/// The part of the link's rate that one flow gets, in percent.
fn share(algorithm: &'static Algorithm, link: &Link, seed: u64) -> u64 {
    alone(algorithm, link, seed).goodput(end()) * 100 / link.rate
}

/// RFC 9406 is for this: round trips grow before the buffer overflows. It sees that a round late, and the careful rounds
/// still grow, so that it takes a deep buffer to be saved altogether; but there is less to lose when it overflows.
#[test]
fn hystart_slows_down_before_the_buffer_overflows() {
    let lost = |algorithm, buffer, together, ms| {
        let link = Link { acknowledged_together: together, ..Link::usual(buffer, 0) };
        run(&link, &[(algorithm, Instant::ZERO)], Instant::ZERO + Duration::from_millis(ms), 1).remove(0).lost
    };
    for together in [1, 2, 10] {
        assert_eq!(lost(&CUBIC, 600, together, 400), 0, "six times the path, {together} together");
        for buffer in [200, 400, 600] {
            let (cubic, reno) = (lost(&CUBIC, buffer, together, 1000), lost(&RENO, buffer, together, 1000));
            assert!(2 * cubic <= reno, "{buffer} %, {together} together: {cubic} and {reno}");
        }
    }
    assert!(lost(&RENO, 600, 2, 400) > 100, "by then Reno's slow start has filled it");
}

#[test]
fn a_clean_link_is_filled() {
    for seed in 0..4 {
        assert!(share(&RENO, &Link::usual(100, 0), seed) >= 90);
        for together in [1, 2, 40] {
            let link = Link { acknowledged_together: together, ..Link::usual(100, 0) };
            assert!(share(&CUBIC, &link, seed) >= 95, "CUBIC, {together} together");
            assert!(share(&BBR, &link, seed) >= 90, "BBR, {together} together");
        }
        assert!(share(&CUBIC, &Link::usual(20, 0), seed) >= 85);
        assert!(share(&BBR, &Link::usual(20, 0), seed) >= 90);
    }
}

/// What BBR is for: it fills a path without filling its buffer, and does not take chance for congestion.
#[test]
fn bbr_leaves_the_buffer_empty_and_resists_chance() {
    for seed in 0..4 {
        let flow = alone(&BBR, &Link::usual(300, 0), seed);
        assert_eq!((flow.lost, flow.timeouts), (0, 0), "a buffer of thrice the path is never full");
        assert!(flow.round_trip() < 25_000, "{} us: the queue of Startup is drained", flow.round_trip());
        let full = alone(&CUBIC, &Link::usual(300, 0), seed);
        assert!(full.round_trip() > 35_000, "{} us: CUBIC fills it", full.round_trip());
        let link = Link::usual(100, 100);
        assert!(share(&BBR, &link, seed) >= 45, "1 % lost by chance: {} %", share(&BBR, &link, seed));
        assert!(share(&BBR, &link, seed) >= 5 * share(&CUBIC, &link, seed));
    }
}

/// Two that start two seconds apart share a link within a factor of two, and waste little of it.
#[test]
fn two_flows_of_a_kind_share() {
    let later = Instant::ZERO + Duration::from_secs(2);
    let end = Instant::ZERO + Duration::from_secs(60);
    for algorithm in [&RENO, &CUBIC, &BBR] {
        for seed in 0..2 {
            let flows = run(&Link::usual(100, 0), &[(algorithm, Instant::ZERO), (algorithm, later)], end, seed);
            let (one, other) = (flows[0].goodput(end), flows[1].goodput(end));
            let [less, more] = [one.min(other), one.max(other)];
            assert!(more <= 2 * less, "{}: {one} and {other} bytes a second", algorithm.name);
            assert!(one + other >= 11_000_000, "{}: together {} bytes a second", algorithm.name, one + other);
        }
    }
}

/// The window's law (at least a segment, at most the limit) is asserted by the link at every sending, here under all that
/// goes wrong: a buffer of two segments, a tenth lost, acknowledgments in bunches, and little rate.
#[test]
fn windows_stay_within_their_law() {
    for seed in 0..12 {
        for algorithm in [&RENO, &CUBIC, &BBR] {
            let link = Link {
                rate: 50_000 << (seed % 4 * 3),
                round_trip: Duration::from_millis(1 << (seed % 8)),
                buffer: 0,
                loss: 1000,
                acknowledged_together: 1 + seed as usize % 2,
            };
            let flow = alone(algorithm, &link, seed);
            assert!(flow.delivered > 100_000, "{} goes on: {}", algorithm.name, flow.delivered);
        }
    }
}
