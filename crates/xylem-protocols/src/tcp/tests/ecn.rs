//! Congestion notification (RFC 3168): who takes part, what may be marked, and what a mark does.

use super::script::{Script, Sent, segment};
use crate::tcp::{EcnUse, TcpConfig};
use xylem_core::{Duration, Setting};
use xylem_wire::TcpFlags;

fn config(ecn: EcnUse) -> TcpConfig {
    TcpConfig { ecn, ..Script::config() }
}

/// An open connection that uses marks.
fn agreed() -> Script {
    let mut script = Script::new(config(EcnUse::On));
    script.host.open(script.now, Some(40_000), 80).unwrap();
    script.host.expire(script.now);
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment("SE.", 0, 1).mss(1000));
    script.expect(&[". 1+0 ack 1"]);
    assert!(script.host.status(script.now, 0).ecn);
    script.set(Setting::NoDelay(true));
    script
}

fn has(sent: &Sent, flags: TcpFlags) -> bool {
    sent.header.flags.contains(flags)
}

/// RFC 3168, section 6.1.1.
#[test]
fn a_syn_asks_only_where_it_shall_and_only_the_first_time() {
    for (uses, asks) in [(EcnUse::Off, false), (EcnUse::Passive, false), (EcnUse::On, true)] {
        let mut script = Script::new(config(uses));
        script.host.open(script.now, Some(40_000), 80).unwrap();
        script.host.expire(script.now);
        script.wait_ms(1500);
        let sent = script.raw_sent();
        let setup = TcpFlags::ECE | TcpFlags::CWR;
        assert_eq!(sent.iter().map(|syn| has(syn, setup)).collect::<Vec<_>>(), [asks, false], "section 6.1.1.1");
        assert!(sent.iter().all(|syn| !syn.ecn_capable), "no SYN may be marked");
    }
}

#[test]
fn a_listener_agrees_if_both_bits_ask_and_it_may() {
    let cases = [("S", false), ("SE", false), ("SW", false), ("SEW", true)];
    for uses in [EcnUse::Off, EcnUse::Passive, EcnUse::On] {
        for (flags, asks) in cases {
            let mut script = Script::listening(config(uses), 4);
            script.inject(segment(flags, 0, 0).mss(1000));
            let answer = script.raw_sent().remove(0);
            let agrees = asks && uses != EcnUse::Off;
            assert_eq!((has(&answer, TcpFlags::ECE), has(&answer, TcpFlags::CWR)), (agrees, false), "{flags} {uses:?}");
            assert!(!answer.ecn_capable);
            script.ours = answer.header.sequence;
            script.inject(segment(".", 1, 1));
            assert_eq!(script.host.status(script.now, 0).ecn, agrees);
        }
    }
}

/// A peer that reflects bits it does not know does not take part, and neither does one that was not asked.
#[test]
fn an_answer_agrees_with_one_bit_only_and_only_to_who_asked() {
    for (uses, flags, expected) in [
        (EcnUse::On, "SE.", true),
        (EcnUse::On, "S.", false),
        (EcnUse::On, "SEW.", false),
        (EcnUse::Passive, "SE.", false),
        (EcnUse::Off, "SE.", false),
    ] {
        let mut script = Script::new(config(uses));
        script.host.open(script.now, Some(40_000), 80).unwrap();
        script.host.expire(script.now);
        script.ours = script.raw_sent()[0].header.sequence;
        script.inject(segment(flags, 0, 1).mss(1000));
        assert_eq!(script.host.status(script.now, 0).ecn, expected, "{uses:?} {flags}");
        script.raw_sent();
        script.push(100);
        assert_eq!(script.raw_sent()[0].ecn_capable, expected);
    }
}

/// Sections 6.1.4 to 6.1.6: new data only.
#[test]
fn only_new_data_may_be_marked() {
    let mut script = agreed();
    script.push(2500);
    let sent = script.raw_sent();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|sent| sent.ecn_capable));
    script.wait(Duration::from_millis(1100));
    let again = script.raw_sent();
    assert!(!again.is_empty() && again.iter().all(|sent| !sent.ecn_capable), "no retransmission");
    script.inject(segment(".", 1, 2501));
    script.inject(segment(".", 1, 2501).data(b"x"));
    script.inject(segment(".", 2, 2501).data(b"x"));
    script.wait_ms(50);
    let answers = script.raw_sent();
    assert!(!answers.is_empty() && answers.iter().all(|sent| !sent.ecn_capable), "no acknowledgment");
    script.inject(segment(".", 3, 2501).window(0));
    script.push(100);
    script.wait(Duration::from_secs(3));
    let probes = script.raw_sent();
    assert!(probes.iter().any(|sent| sent.data.len() == 1), "{probes:?}");
    assert!(probes.iter().all(|sent| !sent.ecn_capable), "no probe of a closed window");
}

/// Section 6.1.3: from the mark on, until CWR.
#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_has_slowed_down() {
    let mut script = agreed();
    script.inject(segment(".", 1, 1).data(&[0; 100]).marked(1));
    assert_eq!(script.expect(&["E. 1+0 ack 101"]).len(), 1, "at once");
    script.inject(segment(".", 101, 1).data(&[0; 100]));
    script.wait_ms(50);
    script.expect(&["E. 1+0 ack 201"]);
    script.push(10);
    let data = script.raw_sent().remove(0);
    assert!(has(&data, TcpFlags::ECE) && data.ecn_capable, "data echoes too");
    script.inject(segment("W.", 201, 11).data(&[0; 100]));
    script.wait_ms(50);
    script.expect(&[". 11+0 ack 301"]);
    script.inject(segment("W.", 301, 11).data(&[0; 100]).marked(3));
    script.expect(&["E. 11+0 ack 401"]);
    assert_eq!(script.host.status(script.now, 0).marks, 4, "one message stands for several");
    // Section 6.1.5: what lies outside of the window says nothing.
    script.inject(segment("W.", 401, 11).data(&[0; 100]));
    script.raw_sent();
    script.inject(segment(".", 900_000, 11).data(&[0; 100]).marked(1));
    script.inject(segment(".", 101, 11).data(&[0; 100]).marked(1));
    assert!(script.raw_sent().iter().all(|sent| !has(sent, TcpFlags::ECE)));
}

/// Section 6.1.2: once a window, and the peer hears of it with the next new data.
#[test]
fn an_echo_halves_the_window_once_a_round_and_is_told() {
    let mut script = agreed();
    script.push(10_000);
    assert!(script.raw_sent().iter().all(|sent| !has(sent, TcpFlags::CWR)));
    let before = script.host.status(script.now, 0).congestion_window;
    script.inject(segment("E.", 1, 1001));
    let after = script.host.status(script.now, 0).congestion_window;
    assert!(after < before * 3 / 4, "{before} to {after}");
    script.inject(segment("E.", 1, 2001));
    script.inject(segment("E.", 1, 3001));
    assert!(script.host.status(script.now, 0).congestion_window >= after, "once a window");
    script.inject(segment(".", 1, 10_001));
    script.push(3000);
    let sent = script.raw_sent();
    let told: Vec<bool> = sent.iter().map(|sent| has(sent, TcpFlags::CWR)).collect();
    assert_eq!(told, [true, false, false], "RFC 3168, section 6.1.2: with the first new data, once");
    let before = script.host.status(script.now, 0).congestion_window;
    script.inject(segment("E.", 1, 11_001));
    assert!(script.host.status(script.now, 0).congestion_window < before, "a new round, a new echo");
}

/// A reduction for a loss is one for the echo of the same round, too.
#[test]
fn a_loss_and_its_echo_reduce_the_window_once() {
    let mut script = agreed();
    script.push(10_000);
    script.raw_sent();
    script.wait(Duration::from_millis(1100));
    script.raw_sent();
    script.inject(segment(".", 1, 10_001));
    let window = script.host.status(script.now, 0).congestion_window;
    script.push(1000);
    let sent = script.raw_sent();
    assert!(has(&sent[0], TcpFlags::CWR) && sent[0].ecn_capable);
    script.inject(segment("E.", 1, 10_001));
    assert_eq!(script.host.status(script.now, 0).congestion_window, window, "what it echoes was sent before the loss");
}

/// Lies: echoes of what was never agreed, without data in flight, or for ever.
#[test]
fn lies_about_marks_cost_the_liar_only() {
    let mut script = Script::open(config(EcnUse::Off));
    script.push(10_000);
    let before = script.host.status(script.now, 0).congestion_window;
    script.inject(segment("EW.", 1, 1001));
    assert!(script.host.status(script.now, 0).congestion_window >= before);
    script.raw_sent();
    script.inject(segment("W.", 1, 1001).data(b"abc").marked(1));
    script.wait_ms(50);
    assert!(script.raw_sent().iter().all(|sent| !has(sent, TcpFlags::ECE)));

    let mut script = agreed();
    for _ in 0..100 {
        script.inject(segment("E.", 1, 1));
    }
    assert!(script.host.status(script.now, 0).congestion_window >= 10_000, "nothing is out that could be marked");
    let mut acknowledged = 1;
    for _ in 0..200 {
        script.push(1000);
        let mut sent = script.raw_sent();
        if sent.is_empty() {
            // At one segment the timer lets it go.
            let timeout = script.host.status(script.now, 0).retransmission_timeout;
            script.wait(timeout);
            sent = script.raw_sent();
        }
        assert!(!sent.is_empty(), "a window that is always echoed still lets a segment through");
        acknowledged += sent.iter().map(|sent| sent.data.len() as u32).sum::<u32>();
        script.inject(segment("E.", 1, acknowledged));
    }
}

/// RFC 3168, section 6.1.2: an echo that acknowledges everything is one, and halves what was in flight before it came.
#[test]
fn rfc_3168_6_1_2_an_echo_of_all_that_was_sent_halves_what_was_in_flight() {
    let mut script = agreed();
    script.push(10_000);
    script.raw_sent();
    let before = script.host.status(script.now, 0).congestion_window;
    script.inject(segment("E.", 1, 10_001));
    let after = script.host.status(script.now, 0).congestion_window;
    assert!((before / 2 - 1000..=before * 3 / 4).contains(&after), "{before} to {after}");
}

/// RFC 3168, section 6.1.2: at a window of one segment the timer decides.
#[test]
fn rfc_3168_6_1_2_at_one_segment_what_is_new_waits_for_the_timer() {
    let mut script = agreed();
    script.push(1000);
    script.raw_sent();
    script.inject(segment("E.", 1, 1001));
    assert_eq!(script.host.status(script.now, 0).congestion_window, 1000, "half of one, but one at least");
    script.push(1000);
    assert_eq!(script.raw_sent().len(), 1);
    script.push(3000);
    script.inject(segment("E.", 1, 2001));
    assert_eq!(script.host.status(script.now, 0).congestion_window, 1000);
    assert_eq!(script.raw_sent().len(), 0, "not yet");
    let timeout = script.host.status(script.now, 0).retransmission_timeout;
    script.wait(timeout.saturating_sub(Duration::from_millis(2)));
    assert_eq!(script.raw_sent().len(), 0, "still not");
    script.wait_ms(4);
    assert_eq!(script.raw_sent().len(), 1, "one");
}
