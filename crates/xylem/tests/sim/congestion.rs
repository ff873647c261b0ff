//! The congestion controls in whole stacks, through a narrow place of 100 Mb/s and 20 ms: how much comes through, how two
//! share it, how evenly a paced one sends, and how a program's own is named.

use crate::{run, two_hosts};
use std::sync::{Arc, Mutex};
use xylem::catalogue;
use xylem::commands::sim::plan;
use xylem_protocols::tcp::congestion::{Algorithm, NewReno};
use xylem_sim::HostId;
use xylem_sim::scenario::Report;

/// Frames of 1500 bytes that are on the way at 100 Mb/s in 20 ms.
const ON_THE_WAY: u32 = 167;
const BYTES: u64 = 12 << 20;

/// `count` transfers of so many bytes, their congestion controlled by `algorithm`, through a buffer of `queue` frames.
fn scenario(algorithm: &str, queue: u32, loss: &str, count: u32) -> String {
    let client = format!(", tcp.congestion = {algorithm}, tcp.send_buffer = 8MiB");
    let cable =
        format!("cable = link client -- server {{ rate = 100Mb/s, delay = 10ms, queue = {queue}, loss = {loss} }}");
    let bulk = format!("bulk = transfer client -> server {{ there = {BYTES}B, count = {count} }}");
    two_hosts(&client, ", tcp.receive_buffer = 8MiB", &format!("time = 5min\n{cable}\n{bulk}\ncheck delivered\n"))
}

/// Megabits a second, from the beginning to the end of the last transfer.
fn goodput(report: &Report) -> u64 {
    let bytes: u64 = report.traffic.iter().map(|drove| drove.bytes).sum();
    bytes * 8 * 1000 / report.done_at_ns
}

/// The goodput of one transfer at a time, over some seeds together: of so few frames one lost more or less counts.
#[track_caller]
fn measure(algorithm: &str, queue: u32, loss: &str) -> u64 {
    let (mut bytes, mut nanoseconds) = (0, 0);
    for seed in 1..=4 {
        let report = run(&format!("seed = {seed}\n{}", scenario(algorithm, queue, loss, 1)));
        assert!(report.is_right(), "{algorithm}: {report}");
        bytes += BYTES;
        nanoseconds += report.done_at_ns;
    }
    bytes * 8 * 1000 / nanoseconds
}

/// The table for people: `cargo test -p xylem --test sim goodput_of_each -- --nocapture`. The floors say what each is for:
/// all fill a clean link, CUBIC better than Reno where the buffer is short, BBR also where chance loses frames.
#[test]
fn goodput_of_each() {
    let mut rows = Vec::new();
    println!("{:>6} {:>6} {:>6} {:>6} {:>6}  Mb/s of 100, 4 * 12 MiB", "queue", "loss", "reno", "cubic", "bbr");
    for queue in [ON_THE_WAY, ON_THE_WAY / 5] {
        for loss in ["0%", "0.1%", "1%"] {
            let row = ["reno", "cubic", "bbr"].map(|algorithm| measure(algorithm, queue, loss));
            println!("{queue:>6} {loss:>6} {:>6} {:>6} {:>6}", row[0], row[1], row[2]);
            rows.push((queue == ON_THE_WAY, loss, row));
        }
    }
    for (is_deep, loss, [reno, cubic, bbr]) in rows {
        match (is_deep, loss) {
            (true, "0%") => assert!(reno >= 75 && cubic >= 75 && bbr >= 75),
            (false, "0%") => assert!(cubic >= 50 && bbr >= 75),
            (_, "1%") => assert!(bbr >= 2 * cubic && bbr >= 2 * reno),
            _ => assert!(bbr >= 70 && bbr + 5 >= cubic),
        }
    }
}

/// Two equal transfers that begin together: if one had all to itself, it would be done in half of the other's time.
#[test]
fn two_of_a_kind_share() {
    for algorithm in ["reno", "cubic", "bbr"] {
        let report = run(&scenario(algorithm, ON_THE_WAY, "0%", 2));
        assert!(report.is_right(), "{algorithm}: {report}");
        let mut done: Vec<u64> = report.traffic.iter().filter_map(|drove| drove.done_at_ns).collect();
        done.sort_unstable();
        assert!(done[0] * 100 >= done[1] * 65, "{algorithm}: done after {done:?} ns");
        assert!(goodput(&report) >= 75, "{algorithm}: together {} Mb/s", goodput(&report));
    }
}

/// When what a host sends leaves it, and how many bytes, in order.
fn departures(algorithm: &str) -> Vec<(u64, usize)> {
    let catalogue = catalogue::builtin();
    let text = scenario(algorithm, 3 * ON_THE_WAY, "0%", 1);
    let plan = plan("test.sim", &text, &catalogue).unwrap_or_else(|problems| panic!("{problems}"));
    let frames = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&frames);
    let report = plan.run_watched(
        1,
        Some(Box::new(move |sight| {
            if sight.host == HostId(0) && !sight.arrives {
                kept.lock().expect("nobody panics with it").push((sight.now.as_nanos(), sight.frame.len()));
            }
        })),
    );
    assert!(report.is_right(), "{report}");
    let frames = frames.lock().expect("nobody panics with it");
    frames.clone()
}

/// The second flight of a connection: bytes that go within 5 ms of its first frame. The acknowledgments of the first ten
/// segments come within little more than a millisecond.
fn second_flight(algorithm: &str) -> usize {
    let departures = departures(algorithm);
    let is_data = |(_, length): &&(u64, usize)| *length > 1000;
    let (first, _) = departures.iter().find(is_data).expect("data was sent");
    let second: Vec<_> = departures.iter().filter(is_data).filter(|(at, _)| *at > first + 10_000_000).collect();
    second.iter().take_while(|(at, _)| at - second[0].0 < 5_000_000).map(|(_, length)| length).sum()
}

/// What the window lets out at once, the pace spreads over the round trip: 2.77 * 14480 bytes in 20 ms are 10 KB in 5 ms,
/// and three milliseconds' worth may go before their time. Without a pace the twenty segments go as acknowledgments come.
#[test]
fn bbr_spreads_what_its_window_lets_out() {
    let (paced, not_paced) = (second_flight("bbr"), second_flight("reno"));
    assert!(paced <= 18_000, "{paced} bytes in 5 ms");
    assert!(not_paced >= 28_000, "{not_paced} bytes in 5 ms");
}

static MINE: Algorithm = Algorithm::new("mine", |start| Box::new(NewReno::new(start)));

/// The check lists a program's own algorithm, and the maker finds it: it behaves as what it is.
#[test]
fn a_programs_own_algorithm_is_named_in_the_graph() {
    let mut catalogue = catalogue::builtin();
    let text = scenario("mine", ON_THE_WAY, "0%", 1);
    let unknown = plan("test.sim", &text, &catalogue).err().expect("nobody has added it").to_string();
    assert!(unknown.contains("`cubic`, `reno` or `bbr`"), "{unknown}");
    catalogue::add_congestion(&mut catalogue, &MINE);
    let wrong = plan("test.sim", &text.replace("mine", "mien"), &catalogue).err().expect("misspelt").to_string();
    assert!(wrong.contains("`cubic`, `reno`, `bbr` or `mine`") && wrong.contains("write `mine`"), "{wrong}");
    let hash = |name: &str| {
        let text = scenario(name, ON_THE_WAY, "0%", 1);
        let plan = plan("test.sim", &text, &catalogue).unwrap_or_else(|problems| panic!("{problems}"));
        plan.run(1).hash
    };
    assert_eq!(hash("mine"), hash("reno"), "frame by frame");
    assert_ne!(hash("mine"), hash("cubic"));
}
