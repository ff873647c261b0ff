use super::session::VdropSession;
use super::*;
use xylem_core::{Duration, Instant, Message, Outbox, Pool, Random, Session, Verdict};

fn outbox(seed: u64) -> Outbox {
    Outbox::new(Instant::ZERO, Random::seeded(seed), Pool::new(1, 1))
}

/// Pushes so many numbered messages; what came out, and how many were dropped.
fn pushed(config: VdropConfig, count: u32) -> (Vec<Vec<u8>>, usize) {
    let mut session = VdropSession::new(config);
    let mut out = outbox(7);
    let (mut passed, mut dropped) = (Vec::new(), 0);
    for number in 0..count {
        let mut message = Message::from_bytes(&number.to_be_bytes());
        match session.push(&mut message, &mut out) {
            Verdict::Pass => passed.push(message.to_vec()),
            Verdict::Drop(reason) => {
                assert_eq!(reason, &DROPPED);
                dropped += 1;
            }
            Verdict::Keep => {}
            Verdict::Refuse => panic!("nothing here lacks room"),
        }
        passed.extend(out.drain_down().map(|message| message.to_vec()));
        out.now = out.now + Duration::from_millis(1);
        session.timeout(&mut out);
        passed.extend(out.drain_down().map(|message| message.to_vec()));
    }
    session.close(&mut out);
    passed.extend(out.drain_down().map(|message| message.to_vec()));
    (passed, dropped)
}

fn numbers(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|number| number.to_be_bytes().to_vec()).collect()
}

#[test]
fn one_that_is_told_nothing_does_nothing() {
    assert_eq!(pushed(VdropConfig::default(), 1000), (numbers(1000), 0));
}

#[test]
fn each_badness_comes_about_as_often_as_it_was_told() {
    let (passed, dropped) = pushed(VdropConfig { drop_per_million: 100_000, ..VdropConfig::default() }, 10_000);
    assert!((800..1200).contains(&dropped), "10 % of 10 000 came out as {dropped}");
    assert_eq!(passed.len() + dropped, 10_000);
    let (passed, _) = pushed(VdropConfig { duplicate_per_million: 100_000, ..VdropConfig::default() }, 10_000);
    assert!((10_800..11_200).contains(&passed.len()), "10 % of 10 000 twice came out as {}", passed.len());
    let (passed, _) = pushed(VdropConfig { corrupt_per_million: 100_000, ..VdropConfig::default() }, 10_000);
    let spoilt = passed.iter().zip(numbers(10_000)).filter(|(one, other)| *one != other).count();
    assert!((800..1200).contains(&spoilt), "10 % of 10 000 came out as {spoilt}");
}

#[test]
fn what_is_held_back_comes_later_and_all_of_it_comes() {
    let delay_max = Duration::from_millis(20);
    let config = VdropConfig { reorder_per_million: 200_000, delay_max, ..VdropConfig::default() };
    let (mut passed, _) = pushed(config, 1000);
    assert_ne!(passed, numbers(1000));
    passed.sort();
    assert_eq!(passed, numbers(1000));
}

#[test]
fn what_goes_up_is_left_alone_unless_it_was_told_otherwise() {
    let everything = VdropConfig { drop_per_million: 1_000_000, ..VdropConfig::default() };
    let mut message = Message::from_bytes(b"up");
    let mut out = outbox(1);
    assert_eq!(VdropSession::new(everything).pop(&mut message, &mut out), Verdict::Pass);
    let both_ways = VdropConfig { both_ways: true, ..everything };
    assert_eq!(VdropSession::new(both_ways).pop(&mut message, &mut out), Verdict::Drop(&DROPPED));
}
