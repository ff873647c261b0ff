//! Options: what is offered and agreed, segment sizes, timestamps and the protection they give.

use super::script::{Script, segment};
use crate::tcp::{TcpConfig, drops};
use xylem_core::{Duration, Setting};
use xylem_wire::{SequenceNumber, TcpFlags};

#[test]
fn a_syn_offers_and_its_answer_takes_up_what_was_offered() {
    let mut script = Script::new(TcpConfig::default());
    script.host.open(script.now, None, 80).unwrap();
    script.host.expire(script.now);
    let syn = script.raw_sent().remove(0);
    assert_eq!((syn.options.mss, syn.options.window_scale), (Some(1460), Some(7)), "RFC 9293 MAY-3");
    assert!(syn.options.sack_permitted);
    let echo = syn.options.timestamps.map(|timestamps| timestamps.echo.0);
    assert_eq!(echo, Some(0), "RFC 7323 3.2-4: nothing is acknowledged");

    let offers = [(None, None), (Some(7), None), (None, Some(5)), (Some(0), Some(5))];
    for (scale, stamp) in offers {
        let mut script = Script::listening(TcpConfig::default(), 4);
        let mut syn = segment("S", 0, 0).mss(1200);
        if let Some(shift) = scale {
            syn = syn.scale(shift);
        }
        if let Some(value) = stamp {
            syn = syn.stamp(value, 0);
        }
        script.inject(syn);
        let options = script.raw_sent().remove(0).options;
        assert_eq!(options.window_scale.is_some(), scale.is_some(), "RFC 7323 2.2-1");
        assert_eq!(options.timestamps.map(|timestamps| timestamps.echo.0), stamp, "RFC 7323 3.2-1");
        assert_eq!(options.mss, Some(1460), "RFC 9293 MUST-14, SHLD-5");
    }
}

/// RFC 9293 MUST-15, MUST-16, MUST-65.
#[test]
fn segments_are_as_large_as_both_sides_and_the_options_allow() {
    for (mss, expected) in [(None, 536), (Some(1000), 1000), (Some(9000), 1460), (Some(1), 64), (Some(0), 64)] {
        let mut script = Script::syn_sent(Script::config());
        let answer = segment("S.", 0, 1);
        script.inject(mss.map_or(answer.clone(), |mss| answer.mss(mss)));
        script.raw_sent();
        script.set(Setting::NoDelay(true));
        script.push(3000);
        let sent = script.raw_sent();
        assert_eq!(sent[0].data.len(), expected, "{mss:?}");
        assert!(sent.iter().all(|sent| sent.options.mss.is_none()));
    }
    let mut script = Script::syn_sent(TcpConfig::default());
    script.inject(segment("S.", 0, 1).mss(1000).stamp(1, 0));
    script.push(2000);
    let sent = script.raw_sent().pop().unwrap();
    assert_eq!(sent.data.len(), 988, "RFC 6691: options come off");
}

#[test]
fn a_smaller_mtu_of_this_host_is_announced() {
    let mut script = Script::new(Script::config());
    script.host.facts.mtu = 576 - 20;
    script.host.open(script.now, None, 80).unwrap();
    script.host.expire(script.now);
    assert_eq!(script.raw_sent()[0].options.mss, Some(536));
    let mut facts = xylem_core::Control::Facts(xylem_core::Facts { mtu: 9000 - 20, ..script.host.facts.clone() });
    script.host.listen(40_000, 4).unwrap();
    let _ = xylem_core::Protocol::control(&script.host.protocol, &mut facts, &mut script.host.out);
    script.inject(segment("S", 0, 0));
    assert_eq!(script.raw_sent()[0].options.mss, Some(8960), "as the layers below have said");
}

/// An open connection with timestamps; the peer's clock stands at 1000.
fn stamped() -> (Script, u32) {
    let mut script = Script::syn_sent(TcpConfig { window_scaling: false, ..TcpConfig::default() });
    script.inject(segment("S.", 0, 1).mss(1012).stamp(1000, 0));
    let ours = script.raw_sent()[0].options.timestamps.unwrap();
    assert_eq!(ours.echo.0, 1000);
    (script, ours.value.0)
}

/// RFC 7323 5.3-R1, RFC 7323 5.2-2.
#[test]
fn an_old_timestamp_is_acknowledged_and_dropped() {
    let (mut script, clock) = stamped();
    script.inject(segment("P.", 1, 1).data(b"abc").stamp(2000, clock));
    script.inject(segment("P.", 4, 1).data(b"old").stamp(1999, clock));
    let sent = script.raw_sent();
    assert_eq!(sent[0].text, ". 1+0 ack 4");
    assert_eq!(script.dropped(&drops::OLD_TIMESTAMP), 1);
    assert_eq!(script.host.connections[0].received, b"abc");
    script.inject(segment("P.", 4, 1).data(b"def").stamp(2000, clock));
    assert_eq!(script.host.connections[0].received, b"abcdef");
    script.inject(segment("P.", 7, 1).data(b"none"));
    assert_eq!(script.dropped(&drops::NO_TIMESTAMP), 1, "RFC 7323 3.2-3: dropped, not aborted");
    // A reset needs no timestamp, and an old one does not protect from it.
    script.inject(segment("R", 7, 0).stamp(1, clock));
    assert_eq!(script.state(), "CLOSED");
}

/// RFC 7323 5.5.
#[test]
fn after_24_days_of_silence_any_timestamp_will_do() {
    let (mut script, clock) = stamped();
    script.inject(segment("P.", 1, 1).data(b"abc").stamp(5000, clock));
    script.wait(Duration::from_secs(25 * 24 * 3600));
    script.inject(segment("P.", 4, 1).data(b"def").stamp(4000, clock));
    assert_eq!(script.host.connections[0].received, b"abcdef");
}

/// RFC 7323 4.3: the echo is that of the segment that spans what was acknowledged last.
#[test]
fn the_earliest_unacknowledged_timestamp_is_echoed() {
    let (mut script, clock) = stamped();
    script.inject(segment(".", 1, 1).data(&[1; 100]).stamp(2000, clock));
    script.inject(segment(".", 101, 1).data(&[1; 100]).stamp(2010, clock));
    script.wait_ms(50);
    let ack = script.raw_sent().pop().unwrap();
    assert_eq!((ack.text.as_str(), ack.options.timestamps.unwrap().echo.0), (". 1+0 ack 201", 2000));
    // One that comes early leaves the echo as it was.
    script.inject(segment(".", 301, 1).data(&[1; 100]).stamp(2020, clock));
    let ack = script.raw_sent().pop().unwrap();
    assert_eq!(ack.options.timestamps.unwrap().echo.0, 2000);
}

/// Our acknowledgment is lost and the peer sends again: what we echo is its second try, so that it measures the round
/// trip and not its own timeout.
#[test]
fn a_repeated_segment_renews_the_echo() {
    let (mut script, clock) = stamped();
    script.inject(segment(".", 1, 1).data(&[1; 100]).stamp(2000, clock));
    script.wait_ms(50);
    script.raw_sent();
    script.inject(segment(".", 1, 1).data(&[1; 100]).stamp(9000, clock));
    let ack = script.raw_sent().pop().unwrap();
    assert_eq!((ack.text.as_str(), ack.options.timestamps.unwrap().echo.0), (". 1+0 ack 101", 9000));
}

/// The same for the handshake: a repeated SYN is answered with its own timestamp.
#[test]
fn a_repeated_syn_renews_the_echo() {
    let mut script = Script::listening(TcpConfig::default(), 4);
    script.inject(segment("S", 0, 0).mss(1000).stamp(500, 0));
    script.inject(segment("S", 0, 0).mss(1000).stamp(1500, 0));
    let echoes: Vec<u32> = script.raw_sent().iter().map(|sent| sent.options.timestamps.unwrap().echo.0).collect();
    assert_eq!(echoes, [500, 1500]);
}

/// Karn's rule holds where there are no timestamps (RFC 9293, MUST-18; RFC 6298 3-1).
#[test]
fn without_timestamps_what_was_sent_twice_is_not_measured() {
    let mut script = Script::open(Script::config());
    let before = script.host.status(script.now, 0).round_trip;
    script.push(1000);
    script.wait(Duration::from_millis(230));
    assert_eq!(script.raw_sent().len(), 2, "once, and again");
    script.inject(segment(".", 1, 1001));
    assert_eq!(script.host.status(script.now, 0).round_trip, before);
}

#[test]
fn timestamps_measure_what_was_sent_twice() {
    let (mut script, _) = stamped();
    script.push(1000);
    script.wait(Duration::from_millis(230));
    let sent = script.raw_sent();
    assert_eq!(sent.len(), 2, "once, and again");
    script.wait_ms(70);
    let echo = sent[1].options.timestamps.unwrap().value.0;
    script.inject(segment(".", 1, 1001).stamp(1300, echo));
    let round_trip = script.host.status(script.now, 0).round_trip.unwrap();
    assert!(round_trip >= Duration::from_millis(8) && round_trip < Duration::from_millis(105), "{round_trip:?}");
}

#[test]
fn every_segment_but_a_reset_is_stamped_and_the_clock_goes_on() {
    let (mut script, clock) = stamped();
    script.push(10);
    script.wait_ms(150);
    script.inject(segment("F.", 1, 11).stamp(1200, clock));
    script.close();
    let sent = script.raw_sent();
    assert!(sent.len() >= 3);
    let stamps: Vec<SequenceNumber> = sent
        .iter()
        .filter(|sent| !sent.header.flags.contains(TcpFlags::RST))
        .map(|sent| sent.options.timestamps.expect("RFC 7323 3.2-2").value)
        .collect();
    assert!(stamps.windows(2).all(|pair| pair[0].is_at_or_before(pair[1])));
    assert_eq!(stamps.last().unwrap().since(SequenceNumber(clock)), 150, "RFC 7323 5.4");
}

/// RFC 9293 MUST-5, MUST-6, MUST-7.
#[test]
fn impossible_options_drop_the_segment_and_unknown_ones_are_passed_over() {
    let mut script = Script::open(Script::config());
    let mut bytes = script.build(&segment("P.", 1, 1).data(b"abc").mss(1)).to_vec();
    bytes[20..24].copy_from_slice(&[253, 0, 1, 1]);
    script.host.arrive(script.now, verified(&bytes));
    assert_eq!(script.dropped(&drops::BAD_OPTIONS), 1);
    bytes[20..24].copy_from_slice(&[253, 3, 9, 1]);
    script.host.arrive(script.now, verified(&bytes));
    assert_eq!(script.host.connections[0].received, b"abc");
}

fn verified(bytes: &[u8]) -> xylem_core::Message {
    let mut message = xylem_core::Message::from_bytes(bytes);
    message.attributes.checksum = xylem_core::Checksum::Verified;
    message
}

/// RFC 7323 3.2-2: resets of ours carry it too.
#[test]
fn a_reset_of_an_open_connection_is_stamped() {
    let (mut script, _) = stamped();
    script.set(Setting::Abort);
    let reset = script.raw_sent().remove(0);
    assert!(reset.header.flags.contains(TcpFlags::RST) && reset.options.timestamps.is_some());
}

/// RFC 7323 5.3-R3: Last.ACK.sent decides, not what is expected next, and equal timestamps are taken.
#[test]
fn an_echo_follows_what_was_acknowledged_and_equal_values_count() {
    let (mut script, clock) = stamped();
    script.inject(segment(".", 1, 1).data(&[1; 100]).stamp(2000, clock));
    // In order, but beyond what we have acknowledged: the echo stays that of the first.
    script.inject(segment(".", 101, 1).data(&[1; 100]).stamp(2500, clock));
    script.push(10);
    let data = script.raw_sent().pop().unwrap();
    assert_eq!((data.header.acknowledgment.since(script.theirs), data.options.timestamps.unwrap().echo.0), (201, 2000));
    script.inject(segment(".", 201, 11).data(&[1; 100]).stamp(2500, clock));
    script.push(10);
    assert_eq!(script.raw_sent().pop().unwrap().options.timestamps.unwrap().echo.0, 2500);
    // A segment in front of the echo's is older than TS.Recent and never moves it back.
    script.inject(segment(".", 301, 21).data(&[1; 100]).stamp(2499, clock));
    script.push(10);
    let data = script.raw_sent().pop().unwrap();
    assert_eq!((data.header.acknowledgment.since(script.theirs), data.options.timestamps.unwrap().echo.0), (301, 2500));
}

/// The window of a SYN is never scaled (RFC 7323 2.2-2), all others are (RFC 7323 2.3-1), and they are kept whole (RFC 9293
/// REC-1).
#[test]
fn the_largest_scale_there_is_works_both_ways() {
    let config = TcpConfig { receive_buffer: TcpConfig::BUFFER_MAX, timestamps: false, ..TcpConfig::default() };
    let mut script = Script::new(config);
    script.host.open(script.now, Some(40_000), 80).unwrap();
    script.host.expire(script.now);
    let syn = script.raw_sent().remove(0);
    assert_eq!((syn.options.window_scale, syn.header.window), (Some(14), u16::MAX));
    script.ours = syn.header.sequence;
    script.inject(segment("S.", 0, 1).mss(1000).scale(14).window(4000));
    assert_eq!(script.host.status(script.now, 0).peer_window, 4000, "not scaled");
    assert_eq!(script.raw_sent()[0].header.window, (TcpConfig::BUFFER_MAX >> 14) as u16);
    script.inject(segment(".", 1, 1).window(u16::MAX));
    assert_eq!(script.host.status(script.now, 0).peer_window, 65_535 << 14);
}

/// RFC 9293, section 3.7: from the least to jumbo frames.
#[test]
fn every_mtu_from_the_least_to_jumbo_gives_its_segment() {
    for mtu in [576usize, 1006, 1500, 4352, 9000, 65_535] {
        let mut script = Script::new(TcpConfig { timestamps: false, window_scaling: false, ..TcpConfig::default() });
        script.host.facts.mtu = mtu - 20;
        script.host.open(script.now, Some(40_000), 80).unwrap();
        script.host.expire(script.now);
        let syn = script.raw_sent().remove(0);
        assert_eq!(syn.options.mss, Some((mtu - 40) as u16));
        script.ours = syn.header.sequence;
        script.inject(segment("S.", 0, 1).mss(u16::MAX));
        script.set(Setting::NoDelay(true));
        script.raw_sent();
        script.push(mtu - 40);
        assert_eq!(script.raw_sent()[0].data.len(), (mtu - 40).min(60_000), "{mtu}");
    }
}

/// A header of which the options stand in another buffer than the rest is read all the same, by demux and by the session.
#[test]
fn a_header_in_pieces_is_read() {
    let (mut script, clock) = stamped();
    for cut in [20, 24, 31] {
        let number = 1 + 3 * script.host.connections[0].received.len() as u32 / 3;
        let whole = script.build(&segment("P.", number, 1).data(b"abc").stamp(1001, clock)).to_vec();
        let mut message = xylem_core::Message::from_bytes(&whole[..cut]);
        message.append(xylem_core::Message::from_bytes(&whole[cut..]));
        script.host.arrive(script.now, message);
    }
    assert_eq!(script.host.connections[0].received, b"abcabcabc");
    let mut script = Script::listening(TcpConfig::default(), 4);
    let whole = script.build(&segment("S", 0, 0).mss(700).stamp(5, 0)).to_vec();
    let mut message = xylem_core::Message::from_bytes(&whole[..22]);
    message.append(xylem_core::Message::from_bytes(&whole[22..]));
    script.host.arrive(script.now, message);
    assert_eq!(script.raw_sent()[0].options.timestamps.map(|timestamps| timestamps.echo.0), Some(5));
}
