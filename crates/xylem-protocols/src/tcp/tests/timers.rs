//! Timers: delayed acknowledgments, retransmission, trouble and giving up, keep-alive, the user timeout; and what an idle
//! connection costs.

use super::script::{Script, segment};
use crate::tcp::TcpConfig;
use xylem_core::{Control, Duration, Event, NetworkError, NetworkErrorKind, Setting};

/// RFC 9293 SHLD-18, SHLD-19, MUST-40; RFC 5681, section 4.2.
#[test]
fn acknowledgments_wait_for_company() {
    let mut script = Script::open(Script::config());
    script.inject(segment(".", 1, 1).data(&[1; 1000]));
    script.expect(&[]);
    script.wait_ms(39);
    script.expect(&[]);
    script.wait_ms(1);
    script.expect(&[". 1+0 ack 1001"]);
    script.inject(segment(".", 1001, 1).data(&[1; 1000]));
    script.expect(&[]);
    script.inject(segment(".", 2001, 1).data(&[1; 1000]));
    script.expect(&[". 1+0 ack 3001"]);
    // Data carries it.
    script.inject(segment(".", 3001, 1).data(&[1; 1000]));
    script.push(5);
    script.expect(&["P. 1+5 ack 4001"]);
    script.wait_ms(100);
    script.expect(&[]);
    // A hole, and what fills it, are answered at once.
    script.inject(segment(".", 5001, 6).data(&[1; 1000]));
    script.expect(&[". 6+0 ack 4001"]);
    script.inject(segment(".", 4001, 6).data(&[1; 1000]));
    script.expect(&[". 6+0 ack 6001"]);
    // So is what is here already.
    script.inject(segment(".", 4001, 6).data(&[1; 1000]));
    script.expect(&[". 6+0 ack 6001"]);
}

/// RFC 9293 MUST-20, SHLD-9, SHLD-10, SHLD-11, MUST-47; RFC 6298 5.4, RFC 6298 5.5, RFC 6298 5.6.
#[test]
fn data_is_sent_again_then_trouble_is_told_then_the_connection_is_given_up() {
    let mut script = Script::open(Script::config());
    script.push(3000);
    script.raw_sent();
    let began = script.now;
    let mut times = Vec::new();
    let mut trouble_at = None;
    while script.state() != "CLOSED" {
        let next = script.host.deadline().unwrap();
        script.wait(next.since(script.now));
        let seconds = script.now.since(began).as_secs_f64();
        for sent in script.raw_sent() {
            if sent.text == ". 1+1000 ack 1" {
                times.push((seconds * 10.0).round() / 10.0);
            } else {
                assert_eq!(sent.text, "R. 3001+0 ack 1");
            }
        }
        if script.events().contains(&Event::InTrouble) {
            trouble_at = Some(times.len());
        }
    }
    assert_eq!(times[..6], [0.2, 0.6, 1.4, 3.0, 6.2, 12.6]);
    assert_eq!(trouble_at, Some(3), "R1: three retransmissions");
    assert_eq!(script.now.since(began), Duration::from_secs(900), "R2");
    assert!(script.host.connections[0].advice.contains(&Control::Doubted));
    assert!(script.host.deadline().is_none());
}

/// The link's word that the next hop does not answer ends an open that waits for it, and nothing else.
#[test]
fn a_silent_neighbour_ends_only_an_open() {
    let mut script = Script::open(Script::config());
    script.push(100);
    script.host.hear(script.now, 0, Control::Event(Event::Unreachable));
    assert_eq!(script.state(), "ESTABLISHED");
    assert_eq!(script.events().last(), Some(&Event::InTrouble));
    let mut script = Script::syn_sent(Script::config());
    script.host.hear(script.now, 0, Control::Event(Event::Unreachable));
    assert_eq!((script.state(), script.events().last()), ("CLOSED", Some(&Event::Unreachable)));
}

/// RFC 9293 MUST-21; RFC 5482.
#[test]
fn the_application_may_give_up_sooner() {
    let mut script = Script::open(Script::config());
    script.set(Setting::UserTimeout(Some(Duration::from_secs(5))));
    script.push(100);
    script.wait(Duration::from_secs(4));
    assert_eq!(script.state(), "ESTABLISHED");
    script.wait(Duration::from_millis(1001));
    assert_eq!(script.state(), "CLOSED");
    assert_eq!(script.events().last(), Some(&Event::TimedOut));
}

/// RFC 9293 MUST-24, MUST-25, MUST-26, MUST-27, MUST-29, SHLD-12.
#[test]
fn a_silent_peer_is_probed_only_on_request() {
    let mut script = Script::open(Script::config());
    script.wait(Duration::from_secs(100_000));
    script.expect(&[]);
    script.set(Setting::KeepAlive(Some(Duration::from_secs(7200))));
    script.inject(segment("P.", 1, 1).data(b"x"));
    script.wait(Duration::from_secs(7199));
    script.expect(&[". 1+0 ack 2"]);
    script.wait(Duration::from_secs(1));
    script.expect(&[". 0+0 ack 2"]);
    script.inject(segment(".", 2, 1));
    script.wait(Duration::from_secs(7199));
    script.expect(&[]);
    script.wait(Duration::from_secs(1 + 8 * 75));
    script.expect(&[". 0+0 ack 2"; 9]);
    assert_eq!(script.state(), "ESTABLISHED");
    script.wait(Duration::from_secs(75));
    script.expect(&["R. 1+0 ack 2"]);
    assert_eq!(script.events(), [Event::Opened, Event::TimedOut]);
}

#[test]
fn a_keep_alive_probe_is_answered() {
    let mut script = Script::open(Script::config());
    script.inject(segment(".", 0, 1));
    script.expect(&[". 1+0 ack 1"]);
    script.inject(segment(".", 0, 1).data(&[0]));
    script.expect(&[". 1+0 ack 1"]);
    assert!(script.host.connections[0].received.is_empty(), "the garbage byte is not data");
}

/// RFC 6298 5.2: no timer runs, either.
#[test]
fn an_idle_connection_holds_no_buffers_and_wants_no_calls() {
    let mut script = Script::open(Script::config());
    script.push(5000);
    script.inject(segment(".", 1001, 1).data(&[1; 1000]));
    script.inject(segment(".", 1, 5001).data(&[1; 1000]));
    script.raw_sent();
    script.wait(Duration::from_secs(10));
    script.expect(&[]);
    assert_eq!(script.host.deadline(), None);
    assert_eq!(script.host.out.pool().held(), (0, 0));
}

#[test]
fn an_empty_pool_delays_and_loses_nothing() {
    let mut script = Script::open(Script::config());
    let pool = script.host.out.pool().clone();
    let all: Vec<_> = std::iter::from_fn(|| pool.take(1)).collect();
    script.push(2000);
    script.inject(segment("F.", 1, 1));
    script.wait_ms(100);
    script.expect(&[]);
    drop(all);
    script.wait_ms(10);
    script.expect(&[". 1+1000 ack 2", "P. 1001+1000 ack 2"]);
}

fn network_error(script: &mut Script, kind: NetworkErrorKind, sequence: Option<u32>) {
    let sequence = sequence.map(|number| (script.ours + number).0);
    let mut control = Control::NetworkError(NetworkError { kind, sequence });
    let _ = script.host.verb(script.now, 0, |path, out| Some(path.control(&mut control, out)));
}

/// RFC 9293 MUST-54, MUST-56, SHLD-25, MUST-47; RFC 5927, section 4.1.
#[test]
fn unreachable_is_hard_before_the_connection_is_open_and_soft_afterwards() {
    let mut script = Script::syn_sent(Script::config());
    network_error(&mut script, NetworkErrorKind::PortUnreachable, None);
    network_error(&mut script, NetworkErrorKind::PortUnreachable, Some(1));
    network_error(&mut script, NetworkErrorKind::TimeExceeded, Some(0));
    assert_eq!(script.state(), "SYN-SENT");
    network_error(&mut script, NetworkErrorKind::HostUnreachable, Some(0));
    assert_eq!((script.state(), script.events()), ("CLOSED", vec![Event::Unreachable]));

    let mut script = Script::open(Script::config());
    script.push(1000);
    network_error(&mut script, NetworkErrorKind::PortUnreachable, Some(1));
    assert_eq!(script.events(), [Event::Opened, Event::InTrouble]);
    assert_eq!(script.state(), "ESTABLISHED");
    network_error(&mut script, NetworkErrorKind::PortUnreachable, Some(1001));
    assert_eq!(script.events(), [], "not in flight");
}

/// RFC 1191, section 6.5; RFC 5927, section 7.2.
#[test]
fn too_large_makes_segments_smaller_and_sends_again_at_once() {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("S.", 0, 1).mss(1460));
    script.raw_sent();
    script.push(2920);
    script.expect(&[". 1+1460 ack 1", "P. 1461+1460 ack 1"]);
    network_error(&mut script, NetworkErrorKind::TooLarge { mtu: 1000 }, Some(5000));
    script.expect(&[]);
    network_error(&mut script, NetworkErrorKind::TooLarge { mtu: 1000 }, Some(1));
    script.expect(&[". 1+960 ack 1", ". 961+960 ack 1", ". 1921+960 ack 1", "P. 2881+40 ack 1"]);
    network_error(&mut script, NetworkErrorKind::TooLarge { mtu: 68 }, Some(1));
    assert_eq!(script.host.status(script.now, 0).segment_size, TcpConfig::default().path_mtu_min - 40);
    network_error(&mut script, NetworkErrorKind::TooLarge { mtu: 1400 }, Some(1));
    assert_eq!(script.host.status(script.now, 0).segment_size, 512, "an error never makes it larger");
}

/// RFC 6298, section 5.4: what the timer's going off does not hold for lost, because it was sent a moment ago, fills the
/// window that is left. The oldest goes again all the same, and each time.
#[test]
fn rfc_6298_5_4_the_oldest_goes_again_though_the_rest_fills_the_window() {
    let mut script = Script::syn_sent(Script::config());
    script.wait_ms(100);
    script.inject(segment("S.", 0, 1).mss(1000));
    script.raw_sent();
    // A round trip of 100 ms makes a timeout of 300.
    script.push(1000);
    assert_eq!(script.raw_sent().len(), 1);
    script.wait_ms(280);
    script.push(8000);
    assert_eq!(script.raw_sent().len(), 8);
    script.wait_ms(25);
    let again: Vec<String> = script.raw_sent().into_iter().map(|sent| sent.text).collect();
    assert_eq!(again.len(), 1, "{again:?}");
    assert!(again[0].contains(" 1+1000 "), "{again:?}");
}
