//! What a session sends, whole, in segments and in fragments.

use super::super::header::FIXED;
use super::super::*;
use super::*;
use crate::testing::linker::PathLinker;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use xylem_core::{
    Answer, Checksum, Control, Duration, Facts, Handled, NetworkError, NetworkErrorKind, OpenError, Part, Path, PathId,
    Piece, Question, Record, Setting,
};
use xylem_wire::EthernetHeader;

fn push(host: &mut Host, path: usize, payload: &[u8]) -> Vec<(Ipv4Header, Vec<u8>)> {
    assert!(host.push(path, Message::from_bytes(payload)));
    let opened = |frame: &Vec<u8>| {
        let (header, payload) = open_packet(frame);
        (header, payload.to_vec())
    };
    host.frames().iter().map(opened).collect()
}

fn too_large(mtu: u16) -> Control {
    Control::NetworkError(NetworkError { kind: NetworkErrorKind::TooLarge { mtu }, sequence: None })
}

/// The MTUs told upward.
fn told(host: &Host, path: usize) -> Vec<usize> {
    let mtu = |control: &Control| if let Control::Facts(facts) = control { Some(facts.mtu) } else { None };
    host.paths[path].told.iter().filter_map(mtu).collect()
}

#[test]
fn what_fits_is_sent_whole_and_may_not_be_cut() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    let sent = push(&mut one, path, &noise(1480, 1));
    let (header, payload) = &sent[0];
    assert!(header.dont_fragment && !header.is_fragment());
    assert_eq!((header.source, header.destination, header.protocol), (ipv4(1), ipv4(2), EXPERIMENT));
    assert_eq!((header.time_to_live, header.total_length), (64, 1500));
    assert!(*payload == noise(1480, 1));
    let next = push(&mut one, path, b"next");
    assert_eq!(next[0].0.identification, header.identification.wrapping_add(1));
}

#[test]
fn what_does_not_fit_is_cut_into_pieces_that_do() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    let payload = noise(4000, 2);
    let sent = push(&mut one, path, &payload);
    let places: Vec<(usize, usize, bool)> = sent
        .iter()
        .map(|(header, payload)| (header.fragment_offset.bytes(), payload.len(), header.more_fragments))
        .collect();
    assert_eq!(places, [(0, 1480, true), (1480, 1480, true), (2960, 1040, false)]);
    assert!(sent.iter().all(|(header, _)| header.identification == sent[0].0.identification && !header.dont_fragment));
    assert!(sent.iter().flat_map(|(_, payload)| payload).eq(&payload));
    let next = push(&mut one, path, &payload);
    assert_ne!(next[0].0.identification, sent[0].0.identification);
}

#[test]
fn a_sum_is_complete_before_the_message_is_cut() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    let mut message = Message::from_bytes(&[&[0, 0][..], &noise(3998, 3)].concat());
    message.attributes.checksum = Checksum::Partial { start: 0, field: 0 };
    assert!(one.push(path, message));
    let frames = one.frames();
    let payload: Vec<u8> = frames.iter().flat_map(|frame| open_packet(frame).1.to_vec()).collect();
    assert!(xylem_wire::Sum::of(&payload).is_right(), "the sum over all fragments is not complete");
}

#[test]
fn what_would_make_too_many_pieces_or_no_packet_is_dropped() {
    let mut one = Host::new(Setup { frame_max: 14 + 68, ..Setup::host(1) });
    one.knows(2);
    let path = converse(&mut one, 2);
    assert_eq!(push(&mut one, path, &noise(48 * 128, 4)).len(), 128);
    assert_eq!(push(&mut one, path, &noise(48 * 128 + 1, 4)).len(), 0);
    assert_eq!(one.drops.of(&TOO_MANY_PIECES), 1);
    assert_eq!(push(&mut one, path, &noise(65_516, 4)).len(), 0);
    assert_eq!(one.drops.of(&TOO_LONG), 1);
}

#[test]
fn a_link_too_narrow_for_ipv4_is_refused() {
    let mut one = Host::new(Setup { frame_max: 14 + 67, ..Setup::host(1) });
    let participants = Participants::new([], [Part::Host(ip(2))]);
    let opened = one.open_numbered(one.ipv4, 253, participants, None);
    assert_eq!(opened, Err(OpenError::Full("the link's MTU: IPv4 needs 68 bytes")));
}

#[test]
fn each_segment_gets_a_header_of_its_own() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    let mut message = Message::from_bytes(&[7; 12 + 2500]);
    message.attributes.segment_size = 1000;
    message.attributes.checksum = Checksum::Partial { start: 0, field: 4 };
    let mut out = xylem_core::Outbox::new(one.now, one.random.child(), xylem_core::Pool::new(1, 1));
    assert!(one.paths[path].path.push(&mut message, &mut out));
    let sent: Vec<Message> = out.drain_down().collect();
    assert_eq!(sent[0].attributes.checksum, Checksum::Partial { start: 34, field: 4 });
    let (whole, _) = {
        let frame = sent[0].to_vec();
        let (header, payload) = open_packet(&frame);
        (header, payload.to_vec())
    };
    // A header of twelve bytes above, as a transport would have, stands in every piece.
    let front = sent[0].to_vec()[..EthernetHeader::LEN + FIXED + 12].to_vec();
    for (index, length) in [(0, 1000), (1, 1000), (2, 500)] {
        let piece = Piece { index, offset: index * 1000, length, last: index == 2 };
        let mut headers = front.clone();
        assert_eq!(one.paths[path].path.cut(&mut headers, &piece), EthernetHeader::LEN + FIXED);
        let frame = [headers, vec![7; length]].concat();
        let (header, payload) = open_packet(&frame);
        assert_eq!(payload.len(), 12 + length);
        assert_eq!(header.identification, whole.identification.wrapping_add(index as u16));
        assert!(header.dont_fragment);
    }
    let next = push(&mut one, path, b"next");
    assert_eq!(next[0].0.identification, whole.identification.wrapping_add(3), "no identification was given twice");
}

/// RFC 9293 MUST-48, MUST-49.
#[test]
fn the_application_chooses_hops_and_service() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    assert_eq!(one.control(path, Control::Set(Setting::HopLimit(3))), Handled::Yes);
    assert_eq!(one.control(path, Control::Set(Setting::TrafficClass(0b1011_1011))), Handled::Yes);
    let (header, _) = push(&mut one, path, b"x")[0].clone();
    assert_eq!((header.time_to_live, header.dscp, header.ecn), (3, 0b10_1110, xylem_wire::Ecn::NotCapable));
    assert_eq!(one.control(path, Control::Set(Setting::HopLimit(0))), Handled::Yes);
    assert_eq!(push(&mut one, path, b"x")[0].0.time_to_live, 1);
    assert_eq!(one.control(path, Control::Set(Setting::NoDelay(true))), Handled::No);
}

#[test]
fn a_router_that_takes_less_is_believed_for_ten_minutes() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    assert_eq!(one.control(path, too_large(1400)), Handled::No, "those above hear of it too");
    assert_eq!(told(&one, path), [1380]);
    assert_eq!(push(&mut one, path, &noise(1380, 5)).len(), 1);
    assert_eq!(push(&mut one, path, &noise(1381, 5)).len(), 2);
    let mut question = Control::Question(Question::Mtu, None);
    let mut out = xylem_core::Outbox::new(one.now, one.random.child(), xylem_core::Pool::new(1, 1));
    assert_eq!(one.paths[path].path.control(&mut question, &mut out), Handled::Yes);
    assert_eq!(question, Control::Question(Question::Mtu, Some(Answer::Mtu(1380))));
    one.at(one.now + (PATH_MTU_LIFETIME - Duration::from_nanos(1)));
    assert_eq!(told(&one, path), [1380]);
    one.at(one.now + Duration::from_nanos(1));
    assert_eq!(told(&one, path), [1380, 1480]);
    assert_eq!(push(&mut one, path, &noise(1480, 5)).len(), 1);
}

#[test]
fn below_the_minimum_routers_may_cut() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    assert_eq!(one.control(path, too_large(300)), Handled::No);
    let sent = push(&mut one, path, &noise(500, 6));
    assert_eq!((sent.len(), sent[0].0.dont_fragment), (1, false));
    assert_eq!(told(&one, path), [PATH_MTU_MIN - FIXED]);
}

#[test]
fn another_link_is_another_size() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    let facts = Facts { mtu: 1014, segment_max: 70_000, headroom: 0, local: None, remote: None, number: 0 };
    let mut control = Control::Facts(facts);
    let mut out = xylem_core::Outbox::new(one.now, one.random.child(), xylem_core::Pool::new(1, 1));
    assert_eq!(one.paths[path].path.control(&mut control, &mut out), Handled::No);
    let expected = Facts {
        mtu: 980,
        segment_max: 65_515,
        headroom: 34,
        local: Some(ip(1)),
        remote: Some(ip(2)),
        number: u32::from(EXPERIMENT.0),
    };
    assert_eq!(control, Control::Facts(expected));
    assert_eq!(push(&mut one, path, &noise(981, 7)).len(), 2);
}

/// RFC 9293 MUST-43, MUST-44.
#[test]
fn an_open_takes_a_host_and_perhaps_an_address_of_ours() {
    let (mut one, _) = two();
    let open = |one: &mut Host, local: Option<IpAddr>, remote: &str| {
        let mut participants = Participants::new([], [Part::Host(remote.parse().unwrap())]);
        if let Some(local) = local {
            participants.local.push(Part::Host(local));
        }
        one.open_numbered(one.ipv4, 253, participants, None)
    };
    assert!(open(&mut one, Some(ip(1)), "10.0.0.2").is_ok());
    assert!(open(&mut one, Some(Ipv4Addr::UNSPECIFIED.into()), "10.0.0.2").is_ok());
    assert!(open(&mut one, None, "10.0.0.255").is_ok() && open(&mut one, None, "224.0.0.1").is_ok());
    assert_eq!(open(&mut one, Some(ip(9)), "10.0.0.2"), Err(OpenError::NotOurAddress(ip(9))));
    for nowhere in ["192.168.0.1", "127.0.0.1", "10.0.0.1", "0.0.0.0"] {
        assert_eq!(open(&mut one, None, nowhere), Err(OpenError::NoRoute(nowhere.parse().unwrap())), "{nowhere}");
    }
    assert_eq!(open(&mut one, None, "fe80::1"), Err(OpenError::NotAPeer("fe80::1".parse().unwrap())));
}

#[test]
fn a_broadcast_goes_to_everybody_on_the_link() {
    let (mut one, _) = two();
    for to in [Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255)] {
        let participants = Participants::new([], [Part::Host(to.into())]);
        let path = one.open_numbered(one.ipv4, 253, participants, None).unwrap();
        one.push(path, Message::from_bytes(b"all"));
        let sent = one.frames();
        assert_eq!(open_frame(&sent[0]).0.destination, xylem_wire::EthernetAddress::BROADCAST);
        assert_eq!(open_packet(&sent[0]).0.destination, to);
    }
}

#[test]
fn what_is_off_the_network_goes_to_the_gateway() {
    let mut setup = Setup::host(1);
    setup.ipv4.gateway = Some(ipv4(254));
    let mut one = Host::new(setup);
    one.knows(254);
    let participants = Participants::new([], [Part::Host(Ipv4Addr::new(8, 8, 8, 8).into())]);
    let path = one.open_numbered(one.ipv4, 253, participants, None).unwrap();
    one.push(path, Message::from_bytes(b"far"));
    let sent = one.frames();
    assert_eq!(open_frame(&sent[0]).0.destination, mac(254));
    assert_eq!(open_packet(&sent[0]).0.destination, Ipv4Addr::new(8, 8, 8, 8));
}

#[test]
fn a_path_that_moves_goes_on_where_it_was() {
    let (mut one, _) = two();
    let path = converse(&mut one, 2);
    for setting in [Setting::HopLimit(9), Setting::TrafficClass(0x28)] {
        assert_eq!(one.control(path, Control::Set(setting)), Handled::Yes);
    }
    let before = push(&mut one, path, b"before")[0].0;
    let mut record = one.paths[path].path.export();
    let reopen = |one: &mut Host, record: &mut Record| {
        let id = PathId { index: 99, generation: 0 };
        let nodes = Arc::clone(&one.nodes);
        let linker = PathLinker { nodes, node: one.ipv4, path: id, now: one.now, frame_max: 1514, enable: None };
        let participants = Participants::new([Part::Host(ip(1))], [Part::Host(ip(2))]);
        let mut random = one.random.child();
        let opened = linker.open_node(one.ipv4, 253, participants, &mut random, Some(record))?;
        Ok::<Path, OpenError>(Path::new(opened, random))
    };
    one.paths[path].path = reopen(&mut one, &mut record).unwrap();
    assert!(record.is_exhausted());
    let after = push(&mut one, path, b"before")[0].0;
    let expected =
        Ipv4Header { identification: before.identification.wrapping_add(1), checksum: after.checksum, ..before };
    assert_eq!(after, expected);
    let mut empty = Record::default();
    assert!(matches!(reopen(&mut one, &mut empty), Err(OpenError::Record(_))));
}
