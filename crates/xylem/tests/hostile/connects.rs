//! Too many connections: begun and never completed, from one host and from hosts that are not there, and completed by the
//! hundred thousand.

use super::shop::{BACKLOG, OF_ONE_HOST_MAX, Shop};
use super::station::{EVIL, Said, segment, segment_in, syn};
use super::town::Town;
use std::net::Ipv4Addr;
use std::time::Duration;
use xylem_core::Random;
use xylem_graph::file::Value;
use xylem_graph::instance::KEPT_PATHS_MAX;
use xylem_wire::TcpFlags;

const MILLISECOND: Duration = Duration::from_millis(1);
/// What an honest visit may take while the flood goes on: a SYN that was evicted is sent again after a second.
const VISIT_MAX: Duration = Duration::from_millis(1500);
const ATTEMPTS: u32 = 100_000;
/// Neighbours that ARP asks for at a time: half of its usual table.
const ASKED_MAX: usize = 512;

/// What becomes of SYNs beyond the half-open connections there may be (RFC 4987): the oldest makes way, or they are
/// answered without being remembered.
const COOKIES: [&str; 2] = ["off", "overflow"];
const EVICTED: &str = "half-open connection made way for a newer one";
const FORGOTTEN: &str = "answered with a cookie and forgotten";

/// So many SYNs a millisecond, from wherever `source` says. A handshake takes 0.4 ms on this link, so that an honest
/// half-open connection is completed long before as many newer ones push it out.
fn flood(seed: u64, cookies: &str, mut source: impl FnMut(u32, &mut Random) -> Ipv4Addr) -> Town {
    let mut town = Town::new(seed, Shop::new(), &[("syn_cookies", Value::Text(cookies.into()))]);
    let mut random = Random::seeded(seed);
    for number in 0..ATTEMPTS {
        let from = source(number, &mut random);
        town.attack(syn((from, 1 + (number % 60_000) as u16)));
        if number % 100 == 99 {
            town.pass(MILLISECOND);
            let paths = town.server().path_count();
            // A chain that has to go may first have to hear that its neighbour does not answer.
            let most = KEPT_PATHS_MAX + ASKED_MAX + OF_ONE_HOST_MAX;
            assert!(paths <= most, "{paths} paths{}", town.drops());
        }
    }
    let (counted, other) = match cookies {
        "off" => (EVICTED, FORGOTTEN),
        _ => (FORGOTTEN, EVICTED),
    };
    let least = u64::from(ATTEMPTS) - 2 * BACKLOG as u64;
    assert!(town.dropped("tcp", counted) >= least, "cookies {cookies}{}", town.drops());
    assert_eq!(town.dropped("tcp", other), 0, "cookies {cookies}{}", town.drops());
    town
}

#[test]
fn a_hundred_thousand_syns_from_one_host() {
    for cookies in COOKIES {
        let mut town = flood(1, cookies, |_, _| EVIL.0);
        town.honest_were_served(20, VISIT_MAX);
        town.pass(Duration::from_secs(5));
        town.nothing_is_left();
    }
}

#[test]
fn a_hundred_thousand_syns_from_hosts_that_are_not_there() {
    // Neighbours that never answer ARP, and hosts behind the gateway that never answer anything.
    for cookies in COOKIES {
        let mut town = flood(2, cookies, |number, random| {
            let low = random.next().to_be_bytes();
            let first = if number % 2 == 0 { 10 } else { 192 };
            Ipv4Addr::new(first, 1 + low[0] % 200, low[1], low[2])
        });
        town.honest_were_served(20, VISIT_MAX);
        town.pass(Duration::from_secs(5));
        town.nothing_is_left();
    }
}

#[test]
fn half_open_connections_are_given_up() {
    let mut town = Town::new(3, Shop::new(), &[]);
    let count = BACKLOG as u16 - 56;
    for port in 1..=count {
        town.attack(syn((EVIL.0, port)));
    }
    let mut answers = 0;
    for _ in 0..100 {
        answers += town.pass(Duration::from_secs(1)).iter().filter(|frame| segment_in(frame).is_some()).count();
    }
    assert_eq!(town.dropped("tcp", "handshake not completed in time"), u64::from(count), "{}", town.drops());
    // One answer at once, and five more.
    assert_eq!(answers, 6 * usize::from(count));
    town.honest_were_served(1000, Duration::from_millis(50));
    town.nothing_is_left();
}

#[test]
fn a_hundred_thousand_completed_connections_of_one_host() {
    let mut town = Town::new(4, Shop::new(), &[]);
    let mut resets = 0;
    let mut opened = 0;
    for round in 0..ATTEMPTS / 100 {
        for number in 0..100 {
            let port = 1 + ((round * 100 + number) % 60_000) as u16;
            town.attack(syn((EVIL.0, port)));
        }
        for frame in town.pass(MILLISECOND) {
            let Some((answer, _)) = segment_in(&frame) else { continue };
            if answer.flags.contains(TcpFlags::RST) {
                resets += 1;
            } else if answer.flags.contains(TcpFlags::SYN) {
                opened += 1;
                let acknowledgment = answer.sequence.0.wrapping_add(1);
                let said = Said { flags: TcpFlags::ACK, sequence: 1, acknowledgment, window: 1000 };
                town.attack(segment((EVIL.0, answer.destination.0), said, &[]));
            }
        }
        for frame in town.pass(MILLISECOND) {
            resets += usize::from(segment_in(&frame).is_some_and(|(answer, _)| answer.flags.contains(TcpFlags::RST)));
        }
        let (paths, present) = (town.server().path_count(), town.shop.borrow().present);
        assert!(present <= OF_ONE_HOST_MAX + 8 && paths <= 2 * OF_ONE_HOST_MAX + 64, "{present} in, {paths} paths");
    }
    // All but those the shop let in were refused in as many words.
    assert!(
        opened >= 90_000 && resets >= opened - 3 * OF_ONE_HOST_MAX,
        "{opened} opened, {resets} reset{}",
        town.drops()
    );
    town.honest_were_served(40, VISIT_MAX);
    // Who says nothing has to go.
    town.pass(Duration::from_secs(15));
    assert!(town.shop.borrow().sent_away >= OF_ONE_HOST_MAX);
    town.nothing_is_left();
}
