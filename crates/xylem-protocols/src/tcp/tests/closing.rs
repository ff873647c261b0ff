//! Closing: half and whole, first and second, both at once, with data nobody reads; resets; TIME-WAIT and what ends it.

use super::script::{Script, segment};
use crate::tcp::{TcpConfig, drops};
use xylem_core::{Duration, Event, Setting};

#[test]
fn a_half_close_lets_the_peer_go_on() {
    let mut script = Script::open(Script::config());
    script.push(10);
    script.expect(&["P. 1+10 ack 1"]);
    script.set(Setting::SendClosed);
    script.expect(&["F. 11+0 ack 1"]);
    assert_eq!(script.state(), "FIN-WAIT-1");
    script.inject(segment(".", 1, 12));
    assert_eq!(script.state(), "FIN-WAIT-2");
    script.wait(Duration::from_secs(3600));
    assert_eq!(script.state(), "FIN-WAIT-2", "a half-closed connection waits as long as the peer likes");
    script.inject(segment("P.", 1, 12).data(b"late but welcome"));
    assert_eq!(script.host.connections[0].received, b"late but welcome");
    script.inject(segment("F.", 17, 12));
    script.expect(&[". 12+0 ack 18"]);
    assert_eq!(script.state(), "TIME-WAIT");
    assert_eq!(script.events(), [Event::Opened, Event::PeerClosed]);
    script.close();
    assert_eq!(script.host.protocol.counts(), (0, 0, 1), "the path is gone, an entry is left");
}

#[test]
fn data_and_fin_go_together_and_are_delivered_in_order() {
    let mut script = Script::open(TcpConfig { no_delay: false, ..Script::config() });
    script.push(5);
    script.expect(&["P. 1+5 ack 1"]);
    script.push(7);
    script.expect(&[]);
    script.set(Setting::SendClosed);
    script.expect(&["FP. 6+7 ack 1"]);
    script.inject(segment("FP.", 1, 14).data(b"bye"));
    script.expect(&[". 14+0 ack 5"]);
    assert_eq!(script.host.connections[0].received, b"bye");
    assert_eq!((script.state(), script.events()), ("TIME-WAIT", vec![Event::Opened, Event::PeerClosed]));
}

#[test]
fn the_second_to_close_ends_in_closed() {
    let mut script = Script::open(Script::config());
    script.inject(segment("F.", 1, 1));
    script.expect(&[". 1+0 ack 2"]);
    assert_eq!(script.state(), "CLOSE-WAIT");
    script.push(3);
    script.expect(&["P. 1+3 ack 2"]);
    script.close();
    script.expect(&["F. 4+0 ack 2"]);
    assert_eq!(script.state(), "LAST-ACK");
    script.inject(segment(".", 2, 5));
    assert_eq!(script.host.protocol.counts(), (0, 0, 0), "no TIME-WAIT for the second");
    assert!(script.host.connections[0].path.is_none());
}

/// RFC 9293, figure 13.
#[test]
fn both_may_close_at_once() {
    let mut script = Script::open(Script::config());
    script.close();
    script.expect(&["F. 1+0 ack 1"]);
    script.inject(segment("F.", 1, 1));
    script.expect(&[". 2+0 ack 2"]);
    assert_eq!(script.state(), "CLOSING");
    script.inject(segment(".", 2, 2));
    assert_eq!(script.host.protocol.counts(), (0, 0, 1));
}

#[test]
fn a_fin_before_its_data_waits_for_it() {
    let mut script = Script::open(Script::config());
    script.inject(segment("F.", 4, 1));
    script.expect(&[". 1+0 ack 1"]);
    assert_eq!(script.state(), "ESTABLISHED");
    script.inject(segment(".", 1, 1).data(b"abc"));
    script.expect(&[". 1+0 ack 5"]);
    assert_eq!(script.state(), "CLOSE-WAIT");
    assert_eq!(script.host.connections[0].received, b"abc");
}

/// RFC 9293 MUST-13.
#[test]
fn time_wait_lasts_two_lifetimes_and_a_repeated_fin_begins_it_anew() {
    let mut script = Script::open(Script::config());
    script.set(Setting::SendClosed);
    script.inject(segment("F.", 1, 2));
    script.raw_sent();
    assert_eq!(script.state(), "TIME-WAIT");
    script.wait(Duration::from_secs(50));
    script.inject(segment("F.", 1, 2));
    script.expect(&[". 2+0 ack 2"]);
    script.wait(Duration::from_secs(59));
    assert_eq!(script.state(), "TIME-WAIT", "it began anew");
    script.wait(Duration::from_secs(2));
    assert_eq!(script.state(), "CLOSED");
    script.close();
    assert!(script.host.connections[0].path.is_none());
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
}

/// A script whose connection has closed first and left its entry.
fn in_time_wait(config: TcpConfig) -> Script {
    let mut script = Script::open(config);
    script.close();
    script.inject(segment("F.", 1, 2));
    script.raw_sent();
    assert_eq!(script.host.protocol.counts(), (0, 0, 1));
    script
}

#[test]
fn an_entry_answers_fins_ignores_resets_and_ends() {
    let mut script = in_time_wait(Script::config());
    script.inject(segment("R", 2, 0));
    script.inject(segment("R.", 2, 2));
    assert_eq!(script.host.protocol.counts().2, 1, "RFC 1337");
    script.expect(&[]);
    script.wait(Duration::from_secs(40));
    script.inject(segment("F.", 1, 2));
    script.expect(&[". 2+0 ack 2"]);
    script.inject(segment(".", 2, 2));
    script.expect(&[]);
    script.wait(Duration::from_secs(59));
    assert_eq!(script.host.protocol.counts().2, 1);
    let error = script.host.open(script.now, Some(40_000), 80).unwrap_err();
    assert_eq!(error, xylem_core::OpenError::InUse);
    script.wait(Duration::from_secs(2));
    assert_eq!(script.host.protocol.counts().2, 0);
    assert!(script.host.deadline().is_none());
}

/// RFC 6191; RFC 9293 MAY-2, SHLD-4.
#[test]
fn a_newer_syn_opens_anew_out_of_time_wait() {
    let mut script = in_time_wait(Script::config());
    script.inject(segment("S", 1, 0));
    script.expect(&[". 2+0 ack 2"]);
    script.host.listen(40_000, 4).unwrap();
    script.inject(segment("S", 2, 0));
    script.expect(&[". 2+0 ack 2"]);
    script.inject(segment("S", 1000, 0));
    let syn_ack = script.raw_sent().remove(0);
    assert!(syn_ack.header.flags.contains(xylem_wire::TcpFlags::SYN));
    assert!(syn_ack.header.sequence.is_after(script.ours + 2), "the new numbers lie beyond the old ones");
    assert_eq!(script.host.protocol.counts(), (0, 1, 0));
}

#[test]
fn a_clock_that_moved_on_opens_anew_whatever_the_number() {
    let config = TcpConfig { window_scaling: false, ..TcpConfig::default() };
    let mut script = Script::syn_sent(config);
    script.inject(segment("S.", 0, 1).stamp(500, 0));
    script.close();
    script.inject(segment("F.", 1, 2).stamp(510, 0));
    script.raw_sent();
    script.host.listen(40_000, 4).unwrap();
    script.inject(segment("S", 100_000, 0).stamp(509, 0));
    assert!(!script.raw_sent()[0].header.flags.contains(xylem_wire::TcpFlags::SYN), "an older clock is an old SYN");
    script.theirs = script.theirs - 5_000;
    script.inject(segment("S", 0, 0).stamp(511, 0));
    assert!(script.raw_sent()[0].header.flags.contains(xylem_wire::TcpFlags::SYN));
}

/// RFC 9293 SHLD-3; RFC 2525, section 2.17.
#[test]
fn closing_over_unread_data_resets() {
    let mut script = Script::open(Script::config());
    script.host.connections[0].reads = false;
    script.inject(segment("P.", 1, 1).data(b"unread"));
    script.close();
    script.expect(&["R. 1+0 ack 7"]);
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));

    let mut script = Script::open(Script::config());
    script.close();
    script.expect(&["F. 1+0 ack 1"]);
    script.inject(segment(".", 1, 2));
    script.inject(segment("P.", 1, 2).data(b"too late"));
    script.expect(&["R. 2+0 ack 1"]);
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
}

#[test]
fn a_closed_connection_does_not_wait_for_ever() {
    let mut script = Script::open(Script::config());
    script.close();
    script.inject(segment(".", 1, 2));
    assert_eq!(script.state(), "FIN-WAIT-2");
    script.wait(Duration::from_secs(59));
    assert_eq!(script.state(), "FIN-WAIT-2");
    script.wait(Duration::from_secs(2));
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
    assert!(script.host.deadline().is_none());
}

#[test]
fn closing_before_anything_is_open() {
    let mut script = Script::syn_sent(Script::config());
    script.close();
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
    script.inject(segment("S.", 0, 1));
    script.expect(&["R 1+0"]);

    let mut script = Script::syn_sent(Script::config());
    script.push(5);
    script.set(Setting::SendClosed);
    script.inject(segment("S.", 0, 1));
    script.expect(&["FP. 1+5 ack 1"]);
    assert_eq!(script.state(), "FIN-WAIT-1");
}

/// RFC 5961 3.2-1, RFC 5961 3.2-2, RFC 5961 3.2-3.
#[test]
fn only_the_exact_number_resets() {
    let mut script = Script::open(Script::config());
    script.inject(segment("R", 2, 0));
    script.expect(&[". 1+0 ack 1"]);
    assert_eq!((script.state(), script.dropped(&drops::DOUBTFUL_RESET)), ("ESTABLISHED", 1));
    script.inject(segment("R", 0, 0));
    script.inject(segment("R", 4_000_000, 0));
    script.expect(&[]);
    assert_eq!(script.state(), "ESTABLISHED");
    script.inject(segment("R", 1, 0));
    assert_eq!((script.state(), script.events()), ("CLOSED", vec![Event::Opened, Event::Reset]), "RFC 9293 MUST-12");
    script.inject(segment(".", 1, 1));
    script.expect(&["R 1+0"]);
    script.close();
    assert!(script.host.connections[0].path.is_none());
}

#[test]
fn an_abort_resets_at_once() {
    let mut script = Script::open(Script::config());
    script.push(100);
    script.raw_sent();
    script.set(Setting::Abort);
    script.expect(&["R. 101+0 ack 1"]);
    assert_eq!(script.state(), "CLOSED");
    assert_eq!(script.host.push(script.now, 0, b"x"), 1, "dropped, not refused");
    assert_eq!(script.dropped(&drops::SEND_CLOSED), 1);
    script.close();
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
    assert_eq!(script.host.out.pool().held(), (0, 0));
}

#[test]
fn after_receive_closed_data_is_acknowledged_and_dropped() {
    let mut script = Script::open(Script::config());
    script.set(Setting::ReceiveClosed);
    for part in 0..40u32 {
        script.inject(segment(".", 1 + part * 1000, 1).data(&[7; 1000]));
    }
    script.wait_ms(100);
    let last = script.raw_sent().pop().unwrap();
    assert_eq!(last.text, ". 1+0 ack 40001");
    assert!(last.header.window > 60_000, "nobody keeps it, so the window stays open");
    assert!(script.host.connections[0].received.is_empty());
    assert_eq!(script.dropped(&drops::RECEIVE_CLOSED), 40);
}

/// RFC 5961 4.2.
#[test]
fn a_syn_within_a_connection_is_challenged() {
    let mut script = Script::open(Script::config());
    script.inject(segment("S", 1, 0));
    script.expect(&[". 1+0 ack 1"]);
    script.inject(segment("S", 500_000, 0));
    script.expect(&[". 1+0 ack 1"]);
    assert_eq!(script.state(), "ESTABLISHED");
}

/// RFC 5961 7-1: so many challenges and no more, counted for this connection alone.
#[test]
fn challenges_are_throttled() {
    let mut script = Script::open(Script::config());
    for _ in 0..50 {
        script.inject(segment("S", 1, 0));
    }
    assert_eq!(script.raw_sent().len(), 10);
    script.wait(Duration::from_secs(5));
    script.inject(segment("S", 1, 0));
    script.expect(&[". 1+0 ack 1"]);
}

/// RFC 5961 7-2.
#[test]
fn how_many_challenges_may_be_set() {
    let (challenges_max, challenge_period) = (3, Duration::from_secs(60));
    let mut script = Script::open(TcpConfig { challenges_max, challenge_period, ..Script::config() });
    let mut challenged = || {
        (0..50).for_each(|_| script.inject(segment("S", 1, 0)));
        let count = script.raw_sent().len();
        script.wait(Duration::from_secs(59));
        count
    };
    assert_eq!((challenged(), challenged()), (3, 0), "the minute is not over");
    assert_eq!(challenged(), 3);
}

/// RFC 5961 5.2; RFC 9293 MAY-12.
#[test]
fn acknowledgments_of_the_future_and_of_long_ago_are_challenged() {
    let mut script = Script::open(Script::config());
    script.push(1000);
    script.raw_sent();
    script.inject(segment("P.", 1, 1002).data(b"injected"));
    script.expect(&[". 1001+0 ack 1"]);
    script.inject(segment("P.", 1, 0).raw(script.ours - 65_001).data(b"injected"));
    script.expect(&[". 1001+0 ack 1"]);
    assert!(script.host.connections[0].received.is_empty());
    assert_eq!(script.dropped(&drops::BAD_ACKNOWLEDGMENT), 2);
    script.inject(segment("P.", 1, 0).raw(script.ours - 60_000).data(b"fine"));
    assert_eq!(script.host.connections[0].received, b"fine");
}
