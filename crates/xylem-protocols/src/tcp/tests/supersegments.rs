//! One message for many segments: cut late it is what would have been sent one by one; joined early it does what its
//! pieces would have done.

use super::link::{Faults, Net};
use super::script::{Script, segment};
use super::streams::bytes;
use crate::tcp::{TcpConfig, drops};
use xylem_core::{Duration, Message, Random, Setting};

/// Runs the same conversation over hosts whose layers below take messages of several segments, or of one only, and
/// returns what was on the wire.
fn wire_of(segment_max: usize, seed: u64, timestamps: bool) -> Vec<Vec<u8>> {
    let config = TcpConfig { timestamps, ..TcpConfig::default() };
    let mut net = Net::with(seed, config.clone(), config);
    for host in &mut net.hosts {
        host.facts.segment_max = segment_max;
    }
    let (a, b) = net.connect();
    let mut random = Random::seeded(seed);
    let mut wire = Vec::new();
    let mut number = 0;
    for _ in 0..30 {
        let now = net.now;
        let data = bytes(seed, random.below(20_000) as usize);
        let side = random.below(2) as usize;
        let index = [a, b][side];
        if random.chance_per_million(100_000) {
            let mut message = Message::from_bytes(b"urgent");
            message.attributes.urgent = true;
            let _ = net.hosts[side].verb(now, index, |path, out| path.push(&mut message, out));
        }
        net.hosts[side].push(now, index, &data);
        let end = now + Duration::from_millis(random.below(60));
        loop {
            for side in 0..2 {
                for message in std::mem::take(&mut net.hosts[side].sent) {
                    let mut message = message;
                    message.complete_checksum();
                    wire.push(message.to_vec());
                    number += 1;
                    // The same segments are lost in both runs.
                    if number % 37 != 5 {
                        net.hosts[side].sent.push(message);
                    }
                }
            }
            if !net.step_dropping(end) {
                break;
            }
        }
        net.now = net.now.max(end);
    }
    let now = net.now;
    net.hosts[0].set(now, a, Setting::SendClosed);
    net.hosts[1].set(now, b, Setting::SendClosed);
    for side in 0..2 {
        for mut message in std::mem::take(&mut net.hosts[side].sent) {
            message.complete_checksum();
            wire.push(message.to_vec());
        }
    }
    wire
}

/// The law: a message that is cut is the segments that would have been sent, byte by byte.
#[test]
fn a_cut_message_is_its_segments() {
    for seed in 0..40 {
        let timestamps = seed % 2 == 0;
        let whole = wire_of(65_515, seed, timestamps);
        let single = wire_of(1480, seed, timestamps);
        assert_eq!(whole.len(), single.len(), "seed {seed}");
        for (index, (one, other)) in whole.iter().zip(&single).enumerate() {
            assert_eq!(one, other, "seed {seed}: segment {index}");
        }
    }
}

#[test]
fn large_messages_are_used_where_they_may() {
    let mut script = Script::open(Script::config());
    script.host.cuts = false;
    script.push(20_000);
    let sent = std::mem::take(&mut script.host.sent);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].attributes.segment_size, sent[0].len()), (1000, 20 + 10_000));
}

#[test]
fn flags_stand_on_the_pieces_they_belong_to() {
    let mut script = Script::open(Script::config());
    let mut message = Message::from_bytes(&bytes(1, 1500));
    message.attributes.urgent = true;
    let _ = script.host.verb(script.now, 0, |path, out| path.push(&mut message, out));
    script.expect(&["U. 1+1000 ack 1", "PU. 1001+500 ack 1"]);
    script.push(1700);
    script.set(Setting::SendClosed);
    let sent = script.raw_sent();
    let texts: Vec<_> = sent.iter().map(|sent| sent.text.as_str()).collect();
    assert_eq!(texts, [". 1501+1000 ack 1", "FP. 2501+700 ack 1"]);
}

/// What arrives as one message counts as the segments it stands for.
#[test]
fn a_merged_message_is_acknowledged_like_its_segments() {
    let mut script = Script::open(Script::config());
    let mut message = script.build(&segment("P.", 1, 1).data(&bytes(1, 10_000)));
    message.attributes.segments = 10;
    script.host.arrive(script.now, message);
    script.expect(&[". 1+0 ack 10001"]);
    // Early, it is worth as many duplicates as it takes to tell a loss.
    let mut message = script.build(&segment("P.", 11_001, 1).data(&bytes(1, 10_000)));
    message.attributes.segments = 10;
    script.host.arrive(script.now, message);
    script.expect(&[". 1+0 ack 10001"; 3]);
}

/// Segments of a random conversation, some in order, some not, some plain, some not.
fn arrivals(script: &Script, seed: u64) -> Vec<Message> {
    let mut random = Random::seeded(seed);
    let (mut at, mut acknowledgment) = (1u32, 1);
    let mut messages = Vec::new();
    for _ in 0..1 + random.below(20) {
        let length = 1 + random.below(1000) as usize;
        let disorder = if seed.is_multiple_of(2) { 12 } else { 100 };
        let place = match random.below(disorder) {
            0 => at + random.below(3000) as u32,
            1 => at.saturating_sub(random.below(2000) as u32).max(1),
            _ => at,
        };
        let flags =
            ["P.", ".", ".", ".", ".", "F.", "U."][random.below(if seed.is_multiple_of(3) { 7 } else { 4 }) as usize];
        let data: Vec<u8> = (place..place + length as u32).map(|place| (place * 7) as u8).collect();
        let window = 60_000 + if random.chance_per_million(100_000) { random.below(1000) as u16 } else { 0 };
        if random.chance_per_million(100_000) {
            acknowledgment = 1001;
        }
        let future = if random.chance_per_million(30_000) { 5000 } else { 0 };
        let mut message =
            script.build(&segment(flags, place, acknowledgment + future).window(window).urgent(5).data(&data));
        if random.chance_per_million(50_000) {
            let mut bytes = message.to_vec();
            let bit = random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            message = Message::from_bytes(&bytes);
        }
        messages.push(message);
        if place == at {
            at += length as u32;
        }
    }
    messages
}

/// The law: segments that arrive together and are merged on the way do what each by itself would have done.
#[test]
fn merged_is_separate() {
    let mut merged_any = 0;
    for seed in 0..1500 {
        let run = |together: bool| {
            let mut script = Script::open(Script::config());
            script.push(1000);
            script.raw_sent();
            let messages = arrivals(&script, seed);
            let count = messages.len();
            if together {
                script.host.pop_batch(script.now, 0, messages);
            } else {
                messages.into_iter().for_each(|message| script.host.pop_batch(script.now, 0, vec![message]));
            }
            // Bytes that come twice are dropped once whichever way, but as a part of which segment depends on the merging.
            let is_explained = |(_, why, _): &(_, &str, _)| *why == drops::DUPLICATE.why;
            let drops: Vec<_> = script.host.drops.iter().filter(|drop| !is_explained(drop)).collect();
            let answers = script.raw_sent();
            script.wait_ms(100);
            let last = script.raw_sent().pop().or(answers.last().cloned()).map(|sent| sent.text);
            // Whose window counts is told by where a segment begins, and merged ones begin earlier; and our window is what the
            // last of our answers said, which are fewer for them.
            let status = xylem_core::Status { peer_window: 0, window: 0, ..script.host.status(script.now, 0) };
            let connection = &script.host.connections[0];
            let seen = (connection.received.clone(), connection.events.clone(), connection.urgent, drops);
            (seen, status, last, answers.len(), count)
        };
        let (one, other) = (run(true), run(false));
        assert!(one.0.0 == other.0.0, "seed {seed}: other bytes");
        let ((_, events, urgent, drops), (_, other_events, other_urgent, other_drops)) = (one.0, other.0);
        assert_eq!((events, urgent, drops), (other_events, other_urgent, other_drops), "seed {seed}");
        assert_eq!(one.1, other.1, "seed {seed}: the state differs");
        assert_eq!(one.2, other.2, "seed {seed}: the peer is told something else");
        assert!(one.3 <= other.3, "seed {seed}: merging answers more often");
        merged_any += usize::from(one.3 < other.3);
    }
    // Only where several acknowledgments became one does it show from outside.
    assert!(merged_any > 100, "hardly anything was merged: {merged_any}");
}

/// Messages that never become bytes (both ends on one host), checksums left open, large ones left whole.
#[test]
fn local_messages_need_no_cutting_and_no_checksum() {
    for seed in 0..20 {
        let mut net = Net::new(seed);
        net.local = true;
        net.hosts.iter_mut().for_each(|host| host.cuts = false);
        let (a, b) = net.connect();
        net.faults = Faults { lost: 30_000, doubled: 30_000, late: 100_000, corrupted: 0 };
        let data = bytes(seed, 500_000);
        let (mut sent, began) = (0, net.now);
        while net.hosts[1].connections[b].received.len() < data.len() {
            let now = net.now;
            sent += net.hosts[0].push(now, a, &data[sent..]);
            assert!(net.step(began + Duration::from_secs(1000)), "seed {seed}: stalled, {:?}", net.report());
        }
        assert!(net.hosts[1].connections[b].received == data, "seed {seed}");
        assert!(net.carried < 600, "seed {seed}: {} messages for 350 segments", net.carried);
    }
}

/// RFC 9293 MUST-59, MUST-58: what has arrived together is looked at before any of it is answered.
#[test]
fn what_arrives_together_is_answered_once() {
    let mut script = Script::open(Script::config());
    let part = |index: u32| segment(".", 1 + index * 1000, 1).data(&bytes(1, 1000));
    let messages: Vec<Message> = (0..8).map(|index| script.build(&part(index))).collect();
    script.host.pop_batch(script.now, 0, messages);
    script.expect(&[". 1+0 ack 8001"]);
}
