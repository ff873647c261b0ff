//! Pieces that do not fit: tiny segments, overlapping fragments, more neighbours than a link has, and plain rubbish.

use super::shop::{OF_ONE_HOST_MAX, Shop};
use super::station::{EVIL, PORT, SERVER, Said, arp, packet, segment, segment_in, syn};
use super::town::{LIMITS, Town};
use std::net::Ipv4Addr;
use std::time::Duration;
use xylem::fuzz::{Aim, Counts, Rubbish};
use xylem_core::Random;
use xylem_wire::{ArpOperation, EthernetAddress, IpProtocol, TcpFlags};

const MILLISECOND: Duration = Duration::from_millis(1);
const VISIT_MAX: Duration = Duration::from_millis(1500);

/// Bytes one by one, every other one missing, on as many connections as one host may have, to an application that reads
/// nothing: each keeps a buffer of two kilobytes alive if nobody sees to it.
#[test]
fn tiny_segments_hold_no_more_than_a_connection_may() {
    let mut shop = Shop::new();
    shop.reads_of_evil = false;
    let mut town = Town::new(1, shop, &[]);
    for port in 1..=OF_ONE_HOST_MAX as u16 {
        town.attack(syn((EVIL.0, port)));
    }
    let answers: Vec<_> = town.pass(MILLISECOND).iter().filter_map(|frame| segment_in(frame)).collect();
    assert_eq!(answers.len(), OF_ONE_HOST_MAX);
    let mut most = 0;
    for at in 0..600u32 {
        for (answer, _) in &answers {
            let source = (EVIL.0, answer.destination.0);
            let acknowledgment = answer.sequence.0.wrapping_add(1);
            let said = Said { flags: TcpFlags::ACK, sequence: 2 + 2 * at, acknowledgment, window: 1000 };
            town.attack(segment(source, said, b"x"));
        }
        town.pass(MILLISECOND);
        most = most.max(town.server().reading().buffers_held.0);
    }
    assert!(most < LIMITS.small_buffers * 3 / 4, "{most} of {} small buffers held", LIMITS.small_buffers);
    assert!(town.dropped("tcp", "too much arrived too early") > 10_000, "{}", town.drops());
    town.honest_were_served(20, VISIT_MAX);
    town.nothing_is_left();
}

/// Of one host, to an application that reads nothing.
const CONNECTIONS: u16 = 16;

/// Bytes one by one, in order: the window would take a quarter of a million of them on each connection, and each comes in a
/// buffer of two kilobytes.
#[test]
fn single_bytes_nobody_reads_hold_little() {
    let mut shop = Shop::new();
    shop.reads_of_evil = false;
    let mut town = Town::new(5, shop, &[]);
    for port in 1..=CONNECTIONS {
        town.attack(syn((EVIL.0, port)));
    }
    let answers: Vec<_> = town.pass(MILLISECOND).iter().filter_map(|frame| segment_in(frame)).collect();
    assert_eq!(answers.len(), usize::from(CONNECTIONS));
    let mut most = 0;
    for at in 0..5000u32 {
        for (answer, _) in &answers {
            let acknowledgment = answer.sequence.0.wrapping_add(1);
            let said = Said { flags: TcpFlags::ACK, sequence: 1 + at, acknowledgment, window: 1000 };
            town.attack(segment((EVIL.0, answer.destination.0), said, b"x"));
        }
        if at % 10 == 9 {
            town.pass(MILLISECOND);
        }
        most = most.max(town.server().reading().buffers_held.0);
    }
    assert!(most < LIMITS.small_buffers * 3 / 4, "{most} of {} small buffers held", LIMITS.small_buffers);
    // What is dropped leaves a hole, and what comes behind it is early.
    let dropped = town.dropped("tcp", "too many small segments unread");
    assert!(dropped >= u64::from(CONNECTIONS), "{}", town.drops());
    town.honest_were_served(20, VISIT_MAX);
    town.nothing_is_left();
}

#[test]
fn a_hundred_thousand_overlapping_fragments() {
    let mut town = Town::new(2, Shop::new(), &[]);
    let mut random = Random::seeded(2);
    let mut most = 0;
    for number in 0..100_000u32 {
        let source = Ipv4Addr::new(10, 9, 0, random.below(20) as u8 + 1);
        let place = (random.below(40) as u16, true);
        let length = 8 * (1 + random.below(90) as usize);
        let mut payload = vec![0; length];
        random.fill(&mut payload);
        town.attack(packet(source, IpProtocol::UDP, random.below(30) as u16, Some(place), &payload));
        if number % 100 == 99 {
            town.pass(MILLISECOND);
            most = most.max(town.server().reading().buffers_held.0);
        }
    }
    // Reassembly's own limit is 4 MiB: half of the two kilobytes each of the small buffers.
    assert!(most * 2048 <= (4 << 20) + 256 * 2048, "{most} small buffers held");
    for reason in ["overlapping fragments", "no room for so many fragments"] {
        assert!(town.dropped("ipv4", reason) > 1000, "{reason}{}", town.drops());
    }
    town.honest_were_served(20, VISIT_MAX);
    town.nothing_is_left();
}

/// Strangers who speak for themselves push no one out: not the client, whom the server knows, and not each other.
#[test]
fn a_hundred_thousand_neighbours() {
    let mut town = Town::new(3, Shop::new(), &[]);
    let mut random = Random::seeded(3);
    for number in 0..100_000u32 {
        let low = random.next().to_be_bytes();
        let place = (
            Ipv4Addr::new(10, 1 + low[0] % 200, low[1], low[2]),
            EthernetAddress([2, 9, low[3], low[4], low[5], low[6]]),
        );
        let operation = if number % 2 == 0 { ArpOperation::REQUEST } else { ArpOperation::REPLY };
        town.attack(arp(operation, place, SERVER.0));
        if number % 100 == 99 {
            town.pass(MILLISECOND);
        }
    }
    town.honest_were_served(20, VISIT_MAX);
    town.pass(Duration::from_secs(120));
    town.honest_were_served(2000, VISIT_MAX);
    town.nothing_is_left();
}

/// Random frames, random headers with right checksums, and frames of the honest client again, as they were or with a byte
/// changed, on the link where its conversations are.
#[test]
fn rubbish_disturbs_nobody() {
    for seed in 0..4 {
        let mut town = Town::new(100 + seed, Shop::new(), &[]);
        let mut rubbish = Rubbish::new(seed, Aim { from: EVIL, to: SERVER, port: PORT });
        for number in 0..25_000 {
            town.attack(rubbish.make());
            if number % 50 == 49 {
                town.pass(MILLISECOND);
                town.of_the_client().iter().for_each(|frame| rubbish.overhear(frame));
            }
        }
        let Counts { random, made, replayed, changed } = rubbish.counts();
        assert!([random, made, replayed, changed].iter().all(|count| *count > 1000), "{:?}", rubbish.counts());
        assert!(town.server().reading().drops.iter().count() >= 15, "little variety: {}", town.drops());
        town.honest_were_served(10, VISIT_MAX);
        town.nothing_is_left();
    }
}
