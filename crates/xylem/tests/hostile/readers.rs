//! Peers that ask for much and take nothing: they fall silent, or keep their window closed for ever.

use super::shop::{OF_ONE_HOST_MAX, Shop};
use super::station::{EVIL, Said, segment, segment_in, syn};
use super::town::Town;
use std::collections::BTreeMap;
use std::time::Duration;
use xylem_core::Event;
use xylem_graph::file::Value;
use xylem_wire::TcpFlags;

const MILLISECOND: Duration = Duration::from_millis(1);
/// What each of them asks for: far more than any buffer.
const WANTED: u64 = 1 << 30;
/// How long the station takes to answer a probe, at most.
const STEP: Duration = Duration::from_millis(150);
/// The server's buffers for one connection.
const BUFFER: usize = 64 << 10;

fn options() -> Vec<(&'static str, Value)> {
    let size = || Value::Size(BUFFER as u64);
    vec![("send_buffer", size()), ("receive_buffer", size())]
}

/// Opens as many connections as one host may have, each of which asks for much with this window; the next number of the
/// server's for each port.
fn ask(town: &mut Town, window: u16) -> BTreeMap<u16, u32> {
    for port in 1..=OF_ONE_HOST_MAX as u16 {
        town.attack(syn((EVIL.0, port)));
    }
    let mut next = BTreeMap::new();
    for frame in town.pass(MILLISECOND) {
        if let Some((answer, _)) = segment_in(&frame).filter(|(answer, _)| answer.flags.contains(TcpFlags::SYN)) {
            let acknowledgment = answer.sequence.0.wrapping_add(1);
            next.insert(answer.destination.0, acknowledgment);
            let said = Said { flags: TcpFlags::ACK | TcpFlags::PSH, sequence: 1, acknowledgment, window };
            town.attack(segment((EVIL.0, answer.destination.0), said, &WANTED.to_be_bytes()));
        }
    }
    assert_eq!(next.len(), OF_ONE_HOST_MAX);
    town.pass(Duration::from_secs(1));
    next
}

/// What the connections hold of the pool is within their buffers.
#[track_caller]
fn held_is_bounded(town: &mut Town) {
    let (small, large) = town.server().reading().buffers_held;
    let held = small * 2048 + large * 65_536;
    // The honest client's own connections hold something besides.
    let most = (OF_ONE_HOST_MAX + 8) * 2 * BUFFER;
    assert!(held <= most, "{held} bytes in buffers, {most} at most{}", town.drops());
}

#[test]
fn readers_that_fall_silent_are_given_up_as_the_application_wished() {
    let mut shop = Shop::new();
    (shop.patience, shop.user_timeout) = (None, Some(Duration::from_secs(30)));
    let mut town = Town::new(1, shop, &options());
    ask(&mut town, 1000);
    for _ in 0..28 {
        town.pass(Duration::from_secs(1));
        held_is_bounded(&mut town);
    }
    assert!(town.shop.borrow().present >= OF_ONE_HOST_MAX, "nobody is given up before the time");
    town.pass(Duration::from_secs(10));
    assert_eq!(town.shop.borrow().ended, vec![Event::TimedOut; OF_ONE_HOST_MAX]);
    town.honest_were_served(1000, Duration::from_millis(100));
    town.nothing_is_left();
}

/// Answers everything with a closed window for `span`; how many segments came for each connection.
fn keep_closed(town: &mut Town, next: &BTreeMap<u16, u32>, span: Duration) -> BTreeMap<u16, u32> {
    let end = town.now() + span;
    let mut probes = BTreeMap::new();
    while town.now() < end {
        for frame in town.pass(STEP) {
            let Some((segment_there, _)) = segment_in(&frame) else { continue };
            let port = segment_there.destination.0;
            *probes.entry(port).or_default() += 1;
            let said = Said { flags: TcpFlags::ACK, sequence: 9, acknowledgment: next[&port], window: 0 };
            town.attack(segment((EVIL.0, port), said, &[]));
        }
    }
    probes
}

/// RFC 9293, MUST-36, MUST-37: as long as the probes are answered the connection stays, however long the window is closed.
#[test]
fn a_window_closed_for_ever_is_probed_for_ever() {
    let mut shop = Shop::new();
    shop.patience = None;
    let mut town = Town::new(2, shop, &options());
    town.visits.borrow_mut().pause = Duration::from_secs(2);
    let next = ask(&mut town, 0);
    keep_closed(&mut town, &next, Duration::from_secs(600));
    held_is_bounded(&mut town);
    let later = keep_closed(&mut town, &next, Duration::from_secs(1800));
    assert_eq!(town.shop.borrow().ended, [], "a connection that is answered was given up");
    for port in next.keys() {
        // At the longest timeout of a minute: half an hour has thirty, one more or less.
        let probes = later.get(port).copied().unwrap_or(0);
        assert!((28..=60).contains(&probes), "{probes} probes of port {port} in half an hour");
    }
    held_is_bounded(&mut town);
    town.honest_were_served(1000, Duration::from_millis(100));
    town.nothing_is_left();
}

/// The application's policy ends it: here that nothing moved for ten seconds.
#[test]
fn a_window_closed_for_ever_is_ended_by_the_applications_policy() {
    let mut town = Town::new(3, Shop::new(), &options());
    let next = ask(&mut town, 0);
    keep_closed(&mut town, &next, Duration::from_secs(15));
    assert_eq!(town.shop.borrow().sent_away, OF_ONE_HOST_MAX);
    town.pass(Duration::from_secs(5));
    let (reading, kept) = (town.server().reading(), town.server().kept_path_count());
    assert!(town.server().path_count() <= kept + 4, "the connections are still there: {reading:?}");
    town.honest_were_served(400, Duration::from_millis(100));
    town.nothing_is_left();
}
