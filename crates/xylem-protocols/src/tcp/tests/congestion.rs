//! The choice of a congestion control: by the configuration, for one connection, and for one that moves.

use super::script::{Script, segment};
use crate::tcp::TcpConfig;
use crate::tcp::congestion::{Algorithm, Algorithms, BBR, CUBIC, Cubic};
use xylem_core::{Control, Record, Setting, ShortName};

static MINE: Algorithm = Algorithm::new("mine", |start| Box::new(Cubic::new(start)));

fn named(name: &str) -> Setting {
    Setting::Congestion(ShortName::new(name).expect("a short name"))
}

fn knows(name: &str) -> bool {
    TcpConfig::default().algorithms.named(name).is_some()
}

/// RFC 9293 MAY-18.
#[test]
fn an_application_chooses_for_its_connection() {
    let config = TcpConfig { algorithms: Algorithms::default().with(&MINE), ..Script::config() };
    let mut script = Script::open(config);
    script.push(30_000);
    script.raw_sent();
    script.inject(segment(".", 1, 10_001));
    let (now, before) = (script.now, script.host.status(script.now, 0));
    assert_eq!((before.congestion_control, before.congestion_window), ("reno", 20_000));
    for name in ["bbr", "mine", "cubic", "cubic"] {
        script.set(named(name));
        let status = script.host.status(now, 0);
        assert_eq!((status.congestion_control, status.congestion_window), (name, 20_000), "goes on from the window");
    }
    let mut unknown = Control::Set(named("cubik"));
    let handled = script.host.verb(now, 0, |path, out| Some(path.control(&mut unknown, out)));
    assert_eq!(handled, Some(xylem_core::Handled::No));
    assert_eq!(script.host.status(now, 0).congestion_control, "cubic", "what is not known changes nothing");
}

/// A record names its algorithm: it goes on where that is known, whatever is usual there, and is refused elsewhere.
#[test]
fn a_connection_moves_with_its_algorithm() {
    let with_mine = TcpConfig { algorithms: Algorithms::default().with(&MINE), ..Script::config() };
    for name in ["cubic", "bbr", "reno", "mine"] {
        let mut script = Script::open(with_mine.clone());
        script.set(named(name));
        script.push(30_000);
        script.inject(segment(".", 1, 5_001));
        let window = script.host.status(script.now, 0).congestion_window;
        let before = script.host.connections[0].path.take().expect("it is open").export();
        let mut record = Record::from_bytes(before.as_bytes().to_vec());
        let index = script.host.import(script.now, 40_000, 80, &mut record).expect("it is known");
        let status = script.host.status(script.now, index);
        assert_eq!(status.congestion_control, name);
        if name != "mine" {
            assert_eq!(status.congestion_window, window, "{name}");
        }
        let mut elsewhere = Script::new(TcpConfig { congestion: &BBR, ..Script::config() });
        let mut record = Record::from_bytes(before.as_bytes().to_vec());
        let answer = elsewhere.host.import(elsewhere.now, 40_000, 80, &mut record);
        assert_eq!(answer.is_ok(), knows(name), "{name}");
    }
}

#[test]
fn cubic_is_usual() {
    assert_eq!(TcpConfig::default().congestion, &CUBIC);
    assert_eq!(TcpConfig::default().algorithms.names().collect::<Vec<_>>(), ["cubic", "reno", "bbr"]);
}

/// What a pace lets go is less than what waits, and goes at once; the rest follows in time.
#[test]
fn a_pace_lets_a_part_go() {
    let mut script = Script::open_selective(TcpConfig { congestion: &BBR, ..Script::config() });
    script.push(10_000);
    script.raw_sent();
    script.wait_ms(40);
    // Ten segments in forty milliseconds: what it sends at is no more than three times that.
    script.inject(segment(".", 1, 10_001));
    script.push(10_000);
    let first = script.raw_sent().len();
    assert!((1..8).contains(&first), "{first} of ten segments at once");
    script.wait_ms(30);
    assert_eq!(first + script.raw_sent().len(), 10);
}
