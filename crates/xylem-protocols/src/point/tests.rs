//! The rules of the link without a header.

use super::*;
use xylem_core::{Checksum, Control, Demux, Facts, Handled, Instant, Message, Outbox, Pool, Random, Session, Verdict};
use xylem_core::{Protocol, View};

fn outbox() -> Outbox {
    Outbox::new(Instant::ZERO, Random::seeded(1), Pool::new(1, 1))
}

fn sorted(bytes: &[u8]) -> Demux {
    let mut message = Message::from_bytes(bytes);
    let mut view = View::new(&mut message, Instant::ZERO);
    PointProtocol::new(PointConfig::default()).demux(&mut view, &mut outbox())
}

#[test]
fn packets_are_sorted_by_their_version() {
    assert!(matches!(sorted(&[0x45, 0]), Demux::Up(0x0800)));
    assert!(matches!(sorted(&[0x60]), Demux::Up(0x86dd)));
    assert!(matches!(sorted(&[]), Demux::Drop(reason) if std::ptr::eq(reason, &EMPTY)));
    for version in [0, 3, 5, 7, 15] {
        assert!(matches!(sorted(&[version << 4, 0]), Demux::Drop(reason) if std::ptr::eq(reason, &NO_VERSION)));
    }
}

#[test]
fn nothing_is_added_and_nothing_taken_off() {
    let mut session = session::PointSession::new(EtherType::IPV4, None);
    let mut message = Message::from_bytes(&[0x45, 1, 2]);
    assert!(matches!(session.push(&mut message, &mut outbox()), Verdict::Pass));
    assert_eq!(message.to_vec(), [0x45, 1, 2]);
    message.attributes.checksum = Checksum::Partial { start: 0, field: 1 };
    assert!(matches!(session.pop(&mut message, &mut outbox()), Verdict::Pass));
    assert_eq!((message.to_vec(), message.attributes.checksum), (vec![0x45, 1, 2], Checksum::Verified));
}

#[test]
fn a_path_takes_packets_of_its_own_version_only() {
    let mut session = session::PointSession::new(EtherType::IPV4, None);
    let popped = |session: &mut session::PointSession, bytes: &[u8]| match session
        .pop(&mut Message::from_bytes(bytes), &mut outbox())
    {
        Verdict::Drop(reason) => Some(reason as *const _),
        _ => None,
    };
    assert_eq!(popped(&mut session, &[0x60]), Some(&OTHER_VERSION as *const _));
    assert_eq!(popped(&mut session, &[]), Some(&EMPTY as *const _));
    assert_eq!(popped(&mut session, &[0x45]), None);
}

#[test]
fn the_mtu_is_the_smaller_of_the_devices_and_the_links() {
    for (configured, offered, expected) in [(None, 1500, 1500), (Some(900), 1500, 900), (Some(9000), 1500, 1500)] {
        let mut session = session::PointSession::new(EtherType::IPV4, configured);
        let facts = Facts { mtu: offered, segment_max: 65_535, headroom: 0, local: None, remote: None, number: 0 };
        let mut control = Control::Facts(facts);
        assert_eq!(session.control(&mut control, &mut outbox()), Handled::No);
        let Control::Facts(facts) = control else { panic!("the control became another") };
        assert_eq!((facts.mtu, facts.headroom, facts.number), (expected, 0, 0x0800));
    }
}
