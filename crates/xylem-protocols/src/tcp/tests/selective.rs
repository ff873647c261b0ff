//! Selective acknowledgments and what is made of them: reports of the receiver (RFC 2018, RFC 2883), the scoreboard (RFC
//! 6675), RACK and tail probes (RFC 8985), reduction (RFC 9937), and losses that were none (RFC 5682, RFC 3522).

use super::script::{Script, segment};
use crate::tcp::TcpConfig;

/// A connection with ten segments of a thousand bytes in flight, sent a round trip ago, and more behind them.
fn in_flight(config: TcpConfig) -> Script {
    let mut script = Script::open_selective(config);
    script.push(30_000);
    assert_eq!(script.raw_sent().len(), 10);
    script.wait_ms(40);
    script
}

/// The window, and how many segments went again.
fn standing(script: &mut Script) -> (usize, u64) {
    let status = script.host.status(script.now, 0);
    (status.congestion_window, status.retransmitted)
}

fn with_timestamps() -> TcpConfig {
    TcpConfig { timestamps: true, ..Script::config() }
}

/// RFC 2018, section 4: the block of the segment that has just arrived comes first, the others are repeated.
#[test]
fn rfc_2018_4_what_came_early_is_reported() {
    let mut script = Script::open_selective(Script::config());
    let mut early = |number: u32, length: usize| {
        script.inject(segment(".", number, 1).data(&vec![1; length]));
        let sent = script.expect(&[". 1+0 ack 1"]);
        script.blocks(&sent[0])
    };
    assert_eq!(early(2001, 1000), [(2001, 3001)]);
    assert_eq!(early(4001, 1000), [(4001, 5001), (2001, 3001)]);
    assert_eq!(early(6001, 1000), [(6001, 7001), (4001, 5001), (2001, 3001)]);
    assert_eq!(early(3001, 1000), [(2001, 5001), (6001, 7001)]);
    script.inject(segment(".", 1, 1).data(&[1; 2000]));
    let sent = script.expect(&[". 1+0 ack 5001"]);
    assert_eq!(script.blocks(&sent[0]), [(6001, 7001)], "only what lies beyond the acknowledgment");
    script.inject(segment(".", 5001, 1).data(&[1; 1000]));
    let sent = script.expect(&[". 1+0 ack 7001"]);
    assert!(sent[0].options.sack.is_empty());
}

/// RFC 2018, section 2: both SYNs must permit it.
#[test]
fn rfc_2018_2_nothing_is_reported_or_believed_that_was_not_agreed() {
    let mut script = Script::open(Script::config());
    script.inject(segment(".", 2001, 1).data(&[1; 1000]));
    assert!(script.raw_sent()[0].options.sack.is_empty());
    script.push(10_000);
    script.raw_sent();
    for _ in 0..2 {
        script.inject(segment(".", 1, 1).sack(&[(1001, 10_001)]));
    }
    assert_eq!(standing(&mut script).1, 0, "two duplicates, whatever they say");
    let config = TcpConfig { selective_acknowledgments: false, ..Script::config() };
    let mut script = Script::open_selective(config);
    script.inject(segment(".", 2001, 1).data(&[1; 1000]));
    assert!(script.raw_sent()[0].options.sack.is_empty(), "the peer alone permits it");
    for (offer, answer) in [(true, true), (false, false)] {
        let mut script = Script::listening(Script::config(), 4);
        let syn = segment("S", 0, 0).mss(1000);
        script.inject(if offer { syn.permits_sack() } else { syn });
        assert_eq!(script.raw_sent()[0].options.sack_permitted, answer);
    }
}

/// RFC 2883, section 4.
#[test]
fn rfc_2883_4_what_comes_twice_is_reported_first_and_once() {
    let mut script = Script::open_selective(Script::config());
    script.inject(segment(".", 1, 1).data(&[1; 2000]));
    script.inject(segment(".", 4001, 1).data(&[1; 1000]));
    script.raw_sent();
    let mut twice = |number: u32, length: usize| {
        script.inject(segment(".", number, 1).data(&vec![1; length]));
        let sent = script.expect(&[". 1+0 ack 2001"]);
        script.blocks(&sent[0])
    };
    assert_eq!(twice(1, 1000), [(1, 1001), (4001, 5001)], "below the acknowledgment");
    assert_eq!(twice(4001, 500), [(4001, 4501), (4001, 5001)], "inside a run, which follows");
    assert_eq!(twice(4501, 1000), [(4501, 5001), (4001, 5501)], "in part");
    assert_eq!(twice(6001, 1000), [(6001, 7001), (4001, 5501)], "and never again");
}

/// RFC 8985 6.2-4a, RFC 6675 4-IsLost, RFC 6675 5-2, RFC 6675 5-4.3: three segments beyond a hole tell a loss at once where nothing
/// was ever reordered.
#[test]
fn rfc_8985_6_2_three_segments_beyond_a_hole_tell_a_loss() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 2001)]));
    // What has left makes room, as limited transmit does (RFC 3042); the window grows as well.
    assert!(script.raw_sent().iter().all(|sent| !sent.text.starts_with(". 1+")));
    script.inject(segment(".", 1, 1).sack(&[(1001, 3001)]));
    assert!(script.raw_sent().iter().all(|sent| !sent.text.starts_with(". 1+")));
    script.inject(segment(".", 1, 1).sack(&[(1001, 4001)]));
    script.expect(&[". 1+1000 ack 1"]);
    assert_eq!(standing(&mut script).1, 1);
    // It goes again once, and nothing that was reported does.
    script.inject(segment(".", 1, 1).sack(&[(1001, 10_001)]));
    assert!(script.raw_sent().iter().all(|sent| sent.header.sequence.since(script.ours) > 10_000));
}

/// RFC 6675 4-IsLost: three separate runs are as good as three segments, however short they are; two are not.
#[test]
fn rfc_6675_4_three_runs_beyond_a_hole_tell_a_loss() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 1301), (2001, 2301)]));
    assert_eq!(standing(&mut script).1, 0);
    script.raw_sent();
    script.inject(segment(".", 1, 1).sack(&[(3001, 3301), (1001, 1301), (2001, 2301)]));
    assert_eq!(script.raw_sent()[0].text, ". 1+1000 ack 1");
}

/// RFC 8985 6.2-5, RFC 8985 6.2-4b, RFC 6675 4-NextSeg-1: less than three wait for a quarter of the round trip, and no longer.
#[test]
fn rfc_8985_6_2_what_is_suspected_is_lost_after_the_reordering_window() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(2001, 3001)]));
    script.raw_sent();
    script.wait_ms(9);
    script.expect(&[]);
    script.wait_ms(1);
    // The first of the two; the second follows as the reduction lets it, before anything new.
    script.expect(&[". 1+1000 ack 1"]);
    let more = (3..10).find_map(|end| {
        script.inject(segment(".", 1, 1001).sack(&[(2001, end * 1000 + 1)]));
        script.raw_sent().first().map(|sent| sent.text.clone())
    });
    assert_eq!(more.as_deref(), Some(". 1001+1000 ack 1"));
}

/// RFC 8985 6.1, and section 3.2: a retransmission that is lost is found by what was sent after it, without a timeout.
#[test]
fn rfc_8985_3_2_a_lost_retransmission_is_found() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 6001)]));
    let sent = script.raw_sent();
    assert_eq!(sent[0].text, ". 1+1000 ack 1");
    // New data goes out after it, and arrives.
    script.inject(segment(".", 1, 1).sack(&[(1001, 10_001)]));
    script.wait_ms(1);
    script.inject(segment(".", 1, 1).sack(&[(1001, 10_001)]));
    let new: Vec<_> = script.raw_sent().into_iter().map(|sent| sent.header.sequence.since(script.ours)).collect();
    let first = *new.first().expect("the reduction lets new data out") as u32;
    assert!(first > 10_000);
    script.wait_ms(40);
    script.inject(segment(".", 1, 1).sack(&[(1001, first + 1000)]));
    let again = script.raw_sent();
    assert_eq!(again[0].text, ". 1+1000 ack 1");
    assert!(script.now.as_millis() < 100_000 + 200, "long before the timer");
}

/// RFC 8985 6.2-3: a path that reorders is given time, and its window is not reduced.
#[test]
fn rfc_8985_6_2_a_path_that_reorders_is_given_time() {
    let mut script = in_flight(Script::config());
    // The first arrives 5 ms after the second and third.
    script.inject(segment(".", 1, 1).sack(&[(1001, 3001)]));
    script.wait_ms(5);
    script.inject(segment(".", 1, 3001));
    script.raw_sent();
    let before = standing(&mut script);
    // And again, behind four: more than three beyond the hole, but now time is given.
    script.inject(segment(".", 1, 3001).sack(&[(4001, 8001)]));
    assert!(script.raw_sent().iter().all(|sent| !sent.text.starts_with(". 3001+")));
    script.wait_ms(5);
    script.inject(segment(".", 1, 8001));
    let after = standing(&mut script);
    assert!(after.1 == 0 && after.0 >= before.0, "{before:?} {after:?}");
}

/// RFC 8985 7.2-1, RFC 8985 7.3-1, RFC 8985 7.3-2: the tail is probed after two round trips and two ticks.
#[test]
fn rfc_8985_7_3_the_tail_is_probed() {
    let mut script = Script::open_selective(Script::config());
    script.push(3000);
    script.raw_sent();
    script.wait_ms(81);
    script.expect(&[]);
    script.wait_ms(1);
    script.expect(&["P. 2001+1000 ack 1"]);
    // The probe's acknowledgment shows the hole; a quarter of the round trip later it is filled.
    script.wait_ms(40);
    script.inject(segment(".", 1, 1001).sack(&[(2001, 3001)]));
    script.wait_ms(20);
    script.expect(&[". 1001+1000 ack 1"]);

    let mut script = in_flight(Script::config());
    script.wait_ms(42);
    script.expect(&[". 10001+1000 ack 1"]);
    assert_eq!(standing(&mut script).1, 0, "new data probes as well");
    // Only one probe, then the timer.
    script.wait_ms(190);
    script.expect(&[]);
}

/// RFC 8985 7.2-1, RFC 8985 7.3-2: a lone segment's acknowledgment may be held back; and never later than the timer.
#[test]
fn rfc_8985_7_2_a_lone_segment_is_waited_for_longer() {
    let mut script = Script::open_selective(Script::config());
    script.push(500);
    script.raw_sent();
    script.wait_ms(199);
    script.expect(&[]);
    script.wait_ms(1);
    script.expect(&["P. 1+500 ack 1"]);
    assert!(standing(&mut script).0 >= 10_000, "a probe is no timeout");
    script.wait_ms(200);
    script.expect(&["P. 1+500 ack 1"]);
    assert_eq!(standing(&mut script).0, 1000, "but after it the timer goes off");
}

/// RFC 8985 7.4: a loss that the probe has repaired counts as one.
#[test]
fn rfc_8985_7_4_a_loss_repaired_by_the_probe_counts() {
    let probed = || {
        let mut script = Script::open_selective(Script::config());
        script.push(3000);
        script.wait_ms(82);
        script.push(1000);
        script.raw_sent();
        script.inject(segment(".", 1, 3001));
        script
    };
    let mut script = probed();
    let before = standing(&mut script).0;
    script.inject(segment(".", 1, 4001));
    assert!(standing(&mut script).0 < before, "nobody said that the last segment came twice");
    let mut script = probed();
    let before = standing(&mut script).0;
    script.inject(segment(".", 1, 3001).sack(&[(2001, 3001)]));
    script.inject(segment(".", 1, 4001));
    assert!(standing(&mut script).0 >= before, "somebody did");
}

/// RFC 6675 4-NextSeg-2; RFC 9937, section 6.2 (RFC 6937, section 3): what is in flight comes down to the threshold, and never in a burst.
#[test]
fn rfc_6937_3_sending_goes_on_through_the_recovery() {
    let mut script = in_flight(Script::config());
    let mut bursts = Vec::new();
    for end in 2..=10 {
        script.inject(segment(".", 1, 1).sack(&[(1001, end * 1000 + 1)]));
        let sent = script.raw_sent();
        if end >= 4 {
            bursts.push(sent.len());
        }
    }
    assert!(bursts.iter().all(|burst| *burst <= 1), "{bursts:?}");
    assert!(bursts[1..].iter().sum::<usize>() >= 2, "{bursts:?}");
}

/// RFC 6298 5.4, RFC 8985 6.3: after a timeout what was reported does not go again.
#[test]
fn rfc_8985_6_3_a_timeout_sends_again_what_was_not_reported() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 2001), (3001, 10_001)]));
    script.raw_sent();
    let mut again = Vec::new();
    for _ in 0..3 {
        script.wait_ms(150);
        again.extend(script.raw_sent().into_iter().map(|sent| sent.header.sequence.since(script.ours)));
    }
    assert!(again.contains(&1));
    assert!(again.iter().all(|number| [1, 2001].contains(number) || *number > 10_000), "{again:?}");
    script.inject(segment(".", 1, 2001).sack(&[(3001, 10_001)]));
    assert_eq!(script.raw_sent()[0].text, ". 2001+1000 ack 1");
}

/// RFC 6675 3; RFC 2018, section 8: a peer may throw away what it has reported, so it is kept, and sent again in the end.
#[test]
fn rfc_2018_8_what_the_peer_throws_away_is_sent_again() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 10_001)]));
    script.raw_sent();
    // It acknowledges up to where it had said to have more.
    script.inject(segment(".", 1, 1001));
    let mut again = Vec::new();
    let mut acknowledged = 1001;
    for _ in 0..40 {
        script.wait_ms(100);
        for sent in script.raw_sent() {
            let number = sent.header.sequence.since(script.ours);
            again.push(number);
            if number == acknowledged {
                acknowledged += sent.data.len() as i32;
            }
        }
        script.inject(segment(".", 1, acknowledged as u32));
    }
    assert!((1..10).all(|part| again.contains(&(part * 1000 + 1))), "{again:?}");
    assert_eq!(acknowledged, 30_001);
}

/// RFC 5682, section 3.1: a timeout during which everything was only late is found out by two new segments.
#[test]
fn rfc_5682_3_1_a_spurious_timeout_is_undone() {
    let mut script = in_flight(Script::config());
    let before = standing(&mut script).0;
    // The probe of the tail, and then the timer.
    script.wait_ms(300);
    let sent = script.raw_sent();
    assert_eq!(sent.last().unwrap().text, ". 1+1000 ack 1");
    assert_eq!(standing(&mut script).0, 1000);
    script.inject(segment(".", 1, 1001));
    script.expect(&[". 11001+1000 ack 1", ". 12001+1000 ack 1"]);
    script.inject(segment(".", 1, 2001));
    assert!(standing(&mut script).0 >= before, "{:?}", standing(&mut script));
    assert!(script.raw_sent().iter().all(|sent| sent.header.sequence.since(script.ours) > 12_000));
    assert_eq!(standing(&mut script).1, 1, "only the first segment went again");
}

/// The same, where the loss was real: a duplicate ends the doubt.
#[test]
fn rfc_5682_3_1_a_real_timeout_goes_on() {
    let mut script = in_flight(Script::config());
    script.wait_ms(300);
    script.raw_sent();
    script.inject(segment(".", 1, 1001));
    script.expect(&[". 11001+1000 ack 1", ". 12001+1000 ack 1"]);
    script.inject(segment(".", 1, 1001).sack(&[(11_001, 12_001)]));
    assert_eq!(script.raw_sent()[0].text, ". 1001+1000 ack 1");
    assert!(standing(&mut script).0 <= 4000);
}

/// RFC 3522 and RFC 4015: the echo is older than the retransmission.
#[test]
fn rfc_3522_an_older_echo_undoes_a_recovery() {
    let recovering = || {
        let mut script = Script::open_selective(with_timestamps());
        let original = script.stamp();
        script.push(30_000);
        script.raw_sent();
        script.wait_ms(40);
        script.inject(segment(".", 1, 1).stamp(8, original).sack(&[(1001, 4001)]));
        assert_eq!(script.raw_sent()[0].text, ". 1+1000 ack 1");
        let reduced = standing(&mut script).0;
        script.wait_ms(5);
        (script, original, reduced)
    };
    let (mut script, original, reduced) = recovering();
    script.inject(segment(".", 1, 4001).stamp(9, original));
    assert!(standing(&mut script).0 >= 10_000 && reduced <= 6500, "{reduced} {:?}", standing(&mut script));
    let (mut script, original, reduced) = recovering();
    script.inject(segment(".", 1, 4001).stamp(9, original.wrapping_add(40)));
    assert!(standing(&mut script).0 <= reduced, "that one answers the retransmission");
}

/// RFC 2883 and RFC 3708: all that went again is reported to have come twice.
#[test]
fn rfc_3708_duplicates_undo_a_recovery() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(2001, 5001)]));
    let sent = script.raw_sent();
    assert_eq!(sent[0].text, ". 1+1000 ack 1");
    script.inject(segment(".", 1, 2001).sack(&[(2001, 5001)]));
    script.inject(segment(".", 1, 5001));
    let again = standing(&mut script).1 as u32;
    let reduced = standing(&mut script).0;
    assert!(reduced <= 7000, "{reduced}");
    script.raw_sent();
    for part in 0..again {
        script.inject(segment(".", 1, 5001).sack(&[(1 + part * 1000, 1001 + part * 1000)]));
    }
    assert!(standing(&mut script).0 >= 10_000, "{again} went again, {:?}", standing(&mut script));
}

/// Blocks that cannot be are passed over (RFC 2018 leaves it to the reader's judgment; RFC 5961 asks for it).
#[test]
fn blocks_that_cannot_be_tell_nothing() {
    let mut script = in_flight(Script::config());
    let far = u32::MAX / 2;
    for blocks in [
        &[(20_001, 30_001)][..],
        &[(5001, 11_001)],
        &[(4001, 2001)],
        &[(2001, 2001)],
        &[(far, far + 5)],
        &[(0u32.wrapping_sub(far), 10_001)],
        &[(far, 10_001), (1001, far), (20_001, 40_001), (11_001, 10_001)],
    ] {
        script.inject(segment(".", 1, 1).sack(blocks));
    }
    assert_eq!(standing(&mut script).1, 0);
    script.expect(&[]);
    script.wait_ms(30);
    script.expect(&[]);
}

/// An acknowledgment that comes late may still report something.
#[test]
fn an_old_acknowledgment_is_heard_for_its_blocks() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 2001));
    script.raw_sent();
    script.inject(segment(".", 1, 1001).sack(&[(3001, 6001)]));
    assert_eq!(script.raw_sent()[0].text, ". 2001+1000 ack 1");
}

/// RFC 6675 5-3, RFC 6675 4-SetPipe: what is reported has left, and before a loss is found as much new data may go. In
/// slow start the window grows by as much besides.
#[test]
fn what_has_left_makes_room_for_new_data() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 1401)]));
    script.expect(&[]);
    script.inject(segment(".", 1, 1).sack(&[(1001, 2001)]));
    script.expect(&[". 10001+1000 ack 1", ". 11001+1000 ack 1"]);
}

/// RFC 6675 5-4.1, RFC 6675 5-4.2, RFC 6675 5-A: all losses of one flight are one recovery and reduce the window once;
/// those of the next flight are another.
#[test]
fn a_recovery_lasts_until_all_is_acknowledged_that_was_sent_before_it() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 4001)]));
    assert_eq!(standing(&mut script), (5000, 1));
    script.inject(segment(".", 1, 4001).sack(&[(5001, 9001)]));
    script.wait_ms(20);
    script.inject(segment(".", 1, 4001).sack(&[(5001, 10_001)]));
    assert_eq!(standing(&mut script).0, 5000, "another segment of the same flight");
    assert!(script.raw_sent().iter().any(|sent| sent.text == ". 4001+1000 ack 1"));
    script.inject(segment(".", 1, 9001));
    assert_eq!(standing(&mut script).0, 5000, "not all of it yet");
    script.wait_ms(40);
    script.push(30_000);
    let mut acknowledged = 9001;
    while standing(&mut script).0 < 5000 || acknowledged == 9001 {
        acknowledged += script.host.status(script.now, 0).in_flight as u32;
        script.inject(segment(".", 1, acknowledged));
        let sent = script.raw_sent();
        let is_new = |number: i32| number > 10_000;
        assert!(sent.iter().all(|sent| is_new(sent.header.sequence.since(script.ours))), "reported, and not lost");
        script.wait_ms(40);
    }
    let before = standing(&mut script).0;
    script.inject(segment(".", 1, acknowledged).sack(&[(acknowledged + 1000, acknowledged + 4000)]));
    assert!(standing(&mut script).0 < before, "another flight");
}

/// RFC 6675 5.1: what is lost once more after a timeout goes again, and does not reduce the window once more.
#[test]
fn after_a_timeout_no_recovery_begins_before_it_is_over() {
    let mut script = in_flight(Script::config());
    // The probe of the tail goes unanswered as well.
    script.wait_ms(300);
    script.raw_sent();
    assert_eq!(standing(&mut script).0, 1000);
    script.wait_ms(40);
    script.inject(segment(".", 1, 1001));
    script.wait_ms(40);
    // Two new segments went out to see whether the timeout was one, and one of them tells that it was.
    script.inject(segment(".", 1, 1001).sack(&[(11_001, 12_001)]));
    script.wait_ms(40);
    script.raw_sent();
    script.inject(segment(".", 1, 2001).sack(&[(11_001, 13_001)]));
    script.wait_ms(40);
    let sent: Vec<i32> = script.raw_sent().iter().map(|sent| sent.header.sequence.since(script.ours)).collect();
    assert!(sent.len() >= 2 && sent.contains(&3001), "{sent:?}");
    let (window, _) = standing(&mut script);
    // Of what went again the first is lost, and what went behind it arrives.
    let first = sent[0] as u32;
    script.inject(segment(".", 1, first).sack(&[(first + 1000, first + 2000), (11_001, 13_001)]));
    assert!(script.raw_sent().iter().any(|sent| sent.header.sequence.since(script.ours) == first as i32));
    assert!(standing(&mut script).0 >= window && window >= 3000, "{window} {:?}", standing(&mut script));
}

/// RFC 8985 4: a peer that reports nothing gets neither probes of the tail nor RACK's timer.
#[test]
fn without_reports_there_are_no_probes() {
    let mut script = Script::open(Script::config());
    script.push(3000);
    script.raw_sent();
    script.wait_ms(199);
    script.expect(&[]);
    script.wait_ms(1);
    script.expect(&[". 1+1000 ack 1"]);
}

/// RFC 8985 7.2-2: while a recovery is at work the tail is not probed.
#[test]
fn a_recovery_probes_no_tail() {
    let mut script = in_flight(Script::config());
    script.inject(segment(".", 1, 1).sack(&[(1001, 10_001)]));
    let sent = script.raw_sent();
    assert_eq!(sent[0].text, ". 1+1000 ack 1");
    script.wait_ms(190);
    script.expect(&[]);
    script.wait_ms(10);
    assert_eq!(script.raw_sent()[0].text, ". 1+1000 ack 1", "only the timer");
}
