//! Windows: what we promise and keep, what the peer promises and takes back, probes of a closed one, silly windows on
//! both sides, scaling, and Nagle's rule.

use super::script::{Script, segment};
use crate::tcp::{TcpConfig, drops};
use xylem_core::{Duration, Event, Setting};

#[test]
fn nagle_holds_a_small_segment_while_another_is_out() {
    let mut script = Script::open(Script::config());
    script.push(10);
    script.expect(&["P. 1+10 ack 1"]);
    script.push(20);
    script.push(30);
    script.expect(&[]);
    script.push(2000);
    script.expect(&[". 11+1000 ack 1", ". 1011+1000 ack 1"]);
    script.inject(segment(".", 1, 11));
    script.expect(&[]);
    script.inject(segment(".", 1, 2011));
    script.expect(&["P. 2011+50 ack 1"]); // Of all that was pushed only the end says so: RFC 9293 SHLD-27.
    // RFC 9293 MUST-17.
    script.set(Setting::NoDelay(true));
    script.push(5);
    script.expect(&["P. 2061+5 ack 1"]);
}

#[test]
fn a_tail_behind_whole_segments_is_held_as_it_would_be_alone() {
    let mut script = Script::open(Script::config());
    script.push(2500);
    script.expect(&[". 1+1000 ack 1", ". 1001+1000 ack 1"]);
    script.inject(segment(".", 1, 2001));
    script.expect(&["P. 2001+500 ack 1"]);
}

/// RFC 9293 MUST-36, SHLD-29, SHLD-30, MUST-37.
#[test]
fn a_closed_window_is_probed_more_and_more_rarely_and_never_given_up() {
    let mut script = Script::open(Script::config());
    script.push(1000);
    script.raw_sent();
    script.inject(segment(".", 1, 1001).window(0));
    script.push(3000);
    script.expect(&[]);
    let mut waits = Vec::new();
    let mut last = script.now;
    for _ in 0..14 {
        while script.host.sent.is_empty() {
            let next = script.host.deadline().unwrap();
            script.wait(next.since(script.now));
        }
        script.expect(&[". 1001+1 ack 1"]);
        waits.push(script.now.since(last).as_millis());
        last = script.now;
        script.inject(segment(".", 1, 1001).window(0));
        script.expect(&[]);
    }
    assert_eq!(waits[..5], [200, 400, 800, 1600, 3200]);
    assert_eq!(waits[12..], [60_000; 2]);
    assert_eq!(script.events(), [Event::Opened], "no trouble: the peer answers");
    script.inject(segment(".", 1, 1001).window(5000));
    script.expect(&[". 1001+1000 ack 1", ". 2001+1000 ack 1", "P. 3001+1000 ack 1"]);
}

#[test]
fn a_probe_that_is_taken_counts() {
    let mut script = Script::open(Script::config());
    script.push(1000);
    script.inject(segment(".", 1, 1001).window(0));
    script.push(1000);
    script.raw_sent();
    script.wait_ms(200);
    script.expect(&[". 1001+1 ack 1"]);
    script.inject(segment(".", 1, 1002).window(2000));
    script.expect(&["P. 1002+999 ack 1"]);
}

#[test]
fn a_peer_that_does_not_answer_probes_is_given_up() {
    let mut script = Script::open(Script::config());
    script.push(1000);
    script.inject(segment(".", 1, 1001).window(0));
    script.push(1000);
    script.wait(Duration::from_secs(902));
    assert_eq!(script.state(), "CLOSED");
    assert_eq!(script.events().last(), Some(&Event::TimedOut));
}

/// RFC 9293 MUST-38: a window that opens by little is not used for little segments.
#[test]
fn the_sender_waits_for_a_segment_s_worth_of_window() {
    let mut script = Script::open(Script::config());
    script.push(1000);
    script.raw_sent();
    script.inject(segment(".", 1, 1001).window(300));
    script.push(5000);
    script.expect(&[]);
    // Nothing is in flight, so after a while even a little is sent.
    script.wait_ms(200);
    script.expect(&[". 1001+300 ack 1"]);
    script.inject(segment(".", 1, 1301).window(1000));
    script.expect(&[". 1301+1000 ack 1"]);
}

#[test]
fn a_peer_with_small_windows_gets_half_of_them() {
    let mut script = Script::syn_sent(Script::config());
    script.inject(segment("S.", 0, 1).mss(1000).window(400));
    script.raw_sent();
    script.push(1000);
    script.expect(&[". 1+400 ack 1"]);
    script.inject(segment(".", 1, 401).window(150));
    script.expect(&[]);
    script.inject(segment(".", 1, 401).window(200));
    script.expect(&[". 401+200 ack 1"]);
}

/// RFC 9293 MUST-34, SHLD-15, SHLD-16.
#[test]
fn a_window_that_shrinks_stops_new_data_only() {
    let mut script = Script::open(Script::config());
    script.push(5000);
    assert_eq!(script.raw_sent().len(), 5);
    script.inject(segment(".", 1, 1001).window(2000));
    script.push(2000);
    script.expect(&[]);
    script.wait_ms(250);
    script.expect(&[". 1001+1000 ack 1"]);
    script.inject(segment(".", 1, 5001).window(2000));
    script.expect(&[". 5001+1000 ack 1", "P. 6001+1000 ack 1"]);
}

/// RFC 9293 SHLD-14, MUST-39.
#[test]
fn our_window_closes_without_moving_back_and_opens_by_segments() {
    let config = TcpConfig { receive_buffer: 10_000, ..Script::config() };
    let mut script = Script::open(config);
    script.host.connections[0].reads = false;
    let mut edge = 10_001;
    for part in 0..10u32 {
        script.inject(segment(".", 1 + part * 1000, 1).data(&[1; 1000]));
        script.wait_ms(50);
        for sent in script.raw_sent() {
            let now = sent.header.acknowledgment.since(script.theirs) as u32 + u32::from(sent.header.window);
            assert!(now >= edge, "the edge moved back from {edge} to {now}");
            edge = now;
        }
    }
    assert_eq!(edge, 10_001, "all of it is used, and no more was promised");
    // The window is closed; a byte beyond it is declined, and answered.
    script.inject(segment(".", 10_001, 1).data(&[1]));
    assert_eq!(script.raw_sent()[0].header.window, 0);
    assert_eq!(script.dropped(&drops::OUTSIDE_WINDOW), 1);
    // Little credit does not open it, a segment's worth does.
    script.host.credit(script.now, 0, 500);
    script.expect(&[]);
    script.host.credit(script.now, 0, 1500);
    let update = script.raw_sent().remove(0);
    assert_eq!((update.text.as_str(), update.header.window), (". 1+0 ack 10001", 2000));
    script.host.credit(script.now, 0, 8000);
    assert_eq!(script.raw_sent()[0].header.window, 10_000);
}

#[test]
fn early_data_takes_of_the_window_and_moves_no_edge() {
    let config = TcpConfig { receive_buffer: 10_000, ..Script::config() };
    let mut script = Script::open(config);
    script.host.connections[0].reads = false;
    script.inject(segment(".", 1, 1).data(&[1; 1000]));
    script.inject(segment(".", 1001, 1).data(&[1; 1000]));
    script.raw_sent();
    script.inject(segment(".", 5001, 1).data(&[1; 3000]));
    let early = script.raw_sent().remove(0);
    assert_eq!((early.text.as_str(), early.header.window), (". 1+0 ack 2001", 8000));
    // 2000 bytes are credited, but 3000 are kept early: the edge stays.
    script.host.credit(script.now, 0, 2000);
    script.inject(segment(".", 5001, 1).data(&[1; 3000]));
    let again = script.raw_sent().pop().unwrap();
    assert_eq!((again.text.as_str(), again.header.window), (". 1+0 ack 2001", 8000));
}

/// RFC 9293 MUST-66: at a zero window acknowledgments, urgent pointers, resets and a FIN are still heard.
#[test]
fn a_closed_window_still_listens() {
    let config = TcpConfig { receive_buffer: 2048, ..Script::config() };
    let mut script = Script::open(config);
    script.host.connections[0].reads = false;
    script.push(1000);
    script.inject(segment(".", 1, 1).data(&[1; 1024]));
    script.inject(segment(".", 1025, 1).data(&[1; 1024]));
    script.wait_ms(50);
    assert_eq!(script.raw_sent().last().unwrap().header.window, 0);
    script.inject(segment("U.", 2049, 1001).urgent(3).data(&[1]));
    assert_eq!(script.host.status(script.now, 0).in_flight, 0, "its acknowledgment counts");
    assert_eq!(script.events(), [Event::Opened, Event::Urgent]);
    assert_eq!(script.host.connections[0].received.len(), 2048, "its data does not");
    script.inject(segment("F.", 2049, 1001));
    assert_eq!(script.state(), "CLOSE-WAIT");
    script.inject(segment("R", 2050, 0));
    assert_eq!(script.state(), "CLOSED");
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let config = TcpConfig { receive_buffer: 2048, ..Script::config() };
    let mut script = Script::open(config);
    script.host.connections[0].reads = false;
    script.inject(segment("P.", 1, 1).data(&[5; 3000]));
    assert_eq!(script.host.connections[0].received.len(), 2048);
    let last = script.raw_sent().pop().unwrap();
    assert_eq!((last.text.as_str(), last.header.window), (". 1+0 ack 2049", 0));
}

/// RFC 7323 2.3-1, RFC 7323 2.3-2: up to a shift of 14; RFC 7323 2.2-2: never on a SYN; RFC 7323 2.2-1: both or nobody.
#[test]
fn windows_are_scaled_both_ways() {
    for shift in [0, 1, 7, 14] {
        let config =
            TcpConfig { receive_buffer: 1 << 20, receive_buffer_max: 0, timestamps: false, ..TcpConfig::default() };
        let mut script = Script::syn_sent(config.clone());
        script.inject(segment("S.", 0, 1).mss(1000).scale(shift).window(1000));
        let ack = script.raw_sent().remove(0);
        let scale = config.window_scale();
        assert_eq!((scale, u32::from(ack.header.window) << scale), (5, 1 << 20));
        assert_eq!(script.host.status(script.now, 0).peer_window, 1000, "the SYN's window is not scaled");
        script.inject(segment(".", 1, 1).window(1000));
        let expected = 1000 << shift;
        assert_eq!(script.host.status(script.now, 0).peer_window, expected, "shift {shift}");
    }
    let config =
        TcpConfig { receive_buffer: 1 << 20, receive_buffer_max: 0, timestamps: false, ..TcpConfig::default() };
    let mut script = Script::syn_sent(config);
    script.inject(segment("S.", 0, 1).mss(1000).window(1000));
    assert_eq!(script.raw_sent()[0].header.window, u16::MAX, "the peer does not scale, so nobody does");
}

#[test]
fn writable_follows_a_refusal() {
    let config = TcpConfig { send_buffer: 16_384, ..Script::config() };
    let mut script = Script::open(config);
    let mut pushed = 0;
    loop {
        let count = script.host.push(script.now, 0, &[9; 1000]);
        pushed += count;
        if count == 0 {
            break;
        }
    }
    assert!(pushed > 10_000, "{pushed}");
    let mut message = xylem_core::Message::from_bytes(&[1; 1000]);
    let taken = script.host.verb(script.now, 0, |path, out| Some(path.push(&mut message, out)));
    assert_eq!((taken, message.len()), (Some(false), 1000), "refused, and still the caller's");
    assert_eq!(script.host.connections[0].writable, 0);
    let mut acknowledged = 1;
    while script.host.connections[0].writable == 0 {
        acknowledged += script.raw_sent().iter().map(|sent| sent.data.len() as u32).sum::<u32>();
        assert!(acknowledged as usize <= pushed + 1);
        script.inject(segment(".", 1, acknowledged));
    }
    let room = script.host.connections[0].path.as_ref().unwrap().room();
    assert!(room >= 8192, "{room}");
}

#[test]
fn urgent_data_is_told_of_and_delivered_in_line() {
    let mut script = Script::open(Script::config());
    script.inject(segment("U.", 1, 1).urgent(6).data(b"abc"));
    assert_eq!(script.events(), [Event::Opened, Event::Urgent], "RFC 9293 MUST-32");
    assert_eq!(script.host.status(script.now, 0).urgent, 3, "RFC 9293 MUST-33");
    script.inject(segment("U.", 4, 1).urgent(3).data(b"def"));
    script.inject(segment(".", 7, 1).data(b"ghi"));
    let connection = &script.host.connections[0];
    assert_eq!((connection.received.as_slice(), connection.urgent), (b"abcdefghi".as_slice(), 6));
    assert_eq!(script.host.status(script.now, 0).urgent, 0);

    let mut message = xylem_core::Message::from_bytes(b"now!");
    message.attributes.urgent = true;
    script.raw_sent();
    assert!(script.host.verb(script.now, 0, |path, out| path.push(&mut message, out)));
    let sent = script.expect(&["PU. 1+4 ack 10"]);
    assert_eq!(sent[0].header.urgent, 4, "RFC 9293 MUST-62: the byte behind the urgent ones");
}

/// RFC 9293 SHLD-17: what lies beyond a window that was taken back does not end the connection while the peer answers.
#[test]
fn data_beyond_a_window_taken_back_ends_nothing() {
    let mut script = Script::open(Script::config());
    script.push(4000);
    script.raw_sent();
    script.inject(segment(".", 1, 1001).window(0));
    let began = script.now;
    while script.now.since(began) < Duration::from_secs(3600) {
        let next = script.host.deadline().expect("the window is probed");
        script.wait(next.since(script.now));
        if !script.raw_sent().is_empty() {
            script.inject(segment(".", 1, 1001).window(0));
        }
    }
    assert_eq!((script.state(), script.events()), ("ESTABLISHED", vec![Event::Opened]));
    script.inject(segment(".", 1, 1001).window(65_000));
    script.wait_ms(200);
    assert!(script.raw_sent()[0].text.starts_with(". 1001+"), "it goes again when there is room");
}

/// RFC 7323 2.4: the units of a scaled window are large, and its right edge stays where it was promised to be.
#[test]
fn rounding_a_scaled_window_does_not_take_it_back() {
    for (seed, scale) in [(3, 4u32), (5, 10), (7, 14)] {
        let receive_buffer = 0xffff << scale;
        let config = TcpConfig { receive_buffer, receive_buffer_max: 0, timestamps: false, ..TcpConfig::default() };
        let mut script = Script::syn_sent(config);
        script.inject(segment("S.", 0, 1).mss(1460).scale(7));
        script.raw_sent();
        script.host.connections[0].reads = false;
        let (mut edge, mut next) = (0, 1);
        for step in 0..300u32 {
            // Sizes that share no factor with the units.
            let length = 1 + step * seed * 37 % 1400;
            script.inject(segment(".", next, 1).data(&vec![1; length as usize]));
            next += length;
            if step % 7 == 0 {
                let unread = script.host.connections[0].unread;
                script.host.credit(script.now, 0, unread / 2);
            }
            for sent in script.raw_sent() {
                let acknowledged = sent.header.acknowledgment.since(script.theirs) as u32;
                let now = acknowledged + (u32::from(sent.header.window) << scale);
                assert!(now >= edge, "scale {scale}, step {step}: the edge moved back from {edge} to {now}");
                edge = now;
            }
        }
        assert!(edge > receive_buffer as u32 / 2);
    }
}

/// A retransmission of the peer's has an old number and a new acknowledgment, and the window that goes with that: without it
/// the window of before would be moved beyond what the peer takes (RFC 9293, section 3.10.7.4, has numbers tell first).
#[test]
fn rfc_9293_3_8_6_an_acknowledgment_never_moves_the_windows_edge_beyond_what_was_promised() {
    let mut script = Script::open(Script::config());
    script.inject(segment(".", 1, 1).window(3000));
    script.push(9000);
    let sent: usize = script.raw_sent().iter().map(|sent| sent.data.len()).sum();
    assert_eq!(sent, 3000);
    script.inject(segment(".", 101, 1).window(3000).data(&[0; 100]));
    script.raw_sent();
    script.inject(segment(".", 1, 2001).window(1000).data(&[0; 100]));
    let sent: usize = script.raw_sent().iter().map(|sent| sent.data.len()).sum();
    assert_eq!(sent, 0, "the edge stands where it stood");
}
