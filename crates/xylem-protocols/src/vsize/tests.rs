use super::session::VsizeSession;
use super::*;
use xylem_core::{Instant, Message, Outbox, Pool, Random, Session, Verdict};

#[test]
fn a_message_at_the_cutoff_goes_the_first_way_and_one_beyond_the_second() {
    let mut session = VsizeSession::new(100, [3, 4], 1000);
    let mut out = Outbox::new(Instant::ZERO, Random::seeded(1), Pool::new(1, 1));
    let mut way = |length: usize| {
        let mut message = Message::from_bytes(&vec![0; length]);
        let verdict = session.push(&mut message, &mut out);
        (verdict, message.attributes.branch, message.attributes.upper)
    };
    assert_eq!(way(0), (Verdict::Pass, 0, 3));
    assert_eq!(way(100), (Verdict::Pass, 0, 3));
    assert_eq!(way(101), (Verdict::Pass, 1, 4));
    assert_eq!(way(1000), (Verdict::Pass, 1, 4));
    assert_eq!(way(1001).0, Verdict::Drop(&TOO_LARGE));
}

#[test]
fn nobody_above_learns_which_way_a_message_came() {
    let mut session = VsizeSession::new(100, [3, 4], 1000);
    let mut out = Outbox::new(Instant::ZERO, Random::seeded(1), Pool::new(1, 1));
    let mut message = Message::from_bytes(b"large");
    message.attributes.branch = 1;
    assert_eq!(session.pop(&mut message, &mut out), Verdict::Pass);
    assert_eq!(message.attributes.branch, 0);
}
