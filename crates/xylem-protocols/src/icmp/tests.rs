//! ICMP's rules: echoes, errors that arrive, errors that are sent and those that must not be.

use super::*;
use crate::testing::*;
use std::net::Ipv4Addr;
use xylem_core::{
    Checksum, Control, Duration, Instant, Message, NetworkError, NetworkErrorKind, OpenError, Part, Participants,
    Undeliverable,
};
use xylem_wire::{
    EtherType, EthernetAddress, FragmentOffset, IcmpEcho, IcmpHeader, IcmpKind, IpProtocol, Ipv4Header, Sum,
};

/// Hosts 1 and 2, who know each other.
fn two() -> (Host, Host) {
    let (mut one, mut two) = (Host::new(Setup::host(1)), Host::new(Setup { seed: 2, ..Setup::host(2) }));
    one.knows(2);
    two.knows(1);
    (one, two)
}

/// An ICMP message with its right checksum.
fn icmp(kind: u8, code: u8, behind: &[u8]) -> Vec<u8> {
    let header = IcmpHeader { kind: IcmpKind(kind), code, checksum: 0 };
    let checksum = Sum::of(&with_header(&header, behind)).checksum();
    with_header(&IcmpHeader { checksum, ..header }, behind)
}

fn echo(identifier: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    icmp(IcmpKind::ECHO_REQUEST.0, 0, &with_header(&IcmpEcho { identifier, sequence }, data))
}

/// An echo conversation of host 1 with host 2.
fn converse(host: &mut Host, identifier: Option<u32>) -> Result<usize, OpenError> {
    let mut participants = Participants::new([], [Part::Host(ip(2))]);
    if let Some(identifier) = identifier {
        participants.local.push(Part::Number(identifier));
    }
    host.open(host.icmp, participants)
}

#[test]
fn an_echo_comes_back_as_it_went() {
    let (mut one, _) = two();
    for size in [0, 1, 56, 1472] {
        let data = vec![0xa5; size];
        let request = echo(77, 3, &data);
        one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::ICMP, request.len()), &request));
        let sent = one.frames();
        let (header, reply) = open_packet(&sent[0]);
        assert_eq!((header.source, header.destination, header.time_to_live), (ipv4(1), ipv4(2), 64));
        assert_eq!(reply[0], IcmpKind::ECHO_REPLY.0);
        assert!(Sum::of(reply).is_right());
        assert_eq!(reply[4..], request[4..]);
    }
}

#[test]
fn pings_of_every_size_return_with_their_numbers() {
    let (mut one, mut two) = two();
    let path = converse(&mut one, None).unwrap();
    for (sequence, size) in [(1, 0), (2, 56), (3, 1472), (4, 1473), (70_000, 9000), (6, 65_507)] {
        let data: Vec<u8> = (0..size).map(|at| at as u8).collect();
        let mut message = Message::from_bytes(&data);
        message.attributes.activity = sequence;
        assert!(one.push(path, message));
        exchange(&mut one, &mut two);
        let replies = std::mem::take(&mut one.paths[path].delivered);
        assert_eq!(replies.len(), 1, "{size} bytes: {:?} {:?}", one.drops, two.drops);
        assert!(replies[0].to_vec() == data);
        assert_eq!(replies[0].attributes.activity, sequence & 0xffff);
    }
    assert_eq!(one.drops.total() + two.drops.total(), 0);
}

#[test]
fn conversations_are_told_apart_by_their_identifiers() {
    let (mut one, mut two) = two();
    let paths = [converse(&mut one, Some(5)).unwrap(), converse(&mut one, Some(6)).unwrap()];
    assert_eq!(converse(&mut one, Some(5)), Err(OpenError::InUse));
    for (path, data) in paths.into_iter().zip([b"five", b"six!"]) {
        one.push(path, Message::from_bytes(data));
    }
    exchange(&mut one, &mut two);
    assert_eq!(one.paths[paths[0]].delivered[0].to_vec(), b"five");
    assert_eq!(one.paths[paths[1]].delivered[0].to_vec(), b"six!");
    one.paths[paths[0]].path.release();
    let reply = icmp(0, 0, &with_header(&IcmpEcho { identifier: 5, sequence: 0 }, b""));
    one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::ICMP, reply.len()), &reply));
    assert_eq!(one.drops.of(&NOBODY_ASKED), 1);
    assert!(converse(&mut one, Some(5)).is_ok());
}

#[test]
fn an_error_about_an_echo_finds_its_conversation() {
    let (mut one, _) = two();
    let path = converse(&mut one, Some(5)).unwrap();
    let mut message = Message::from_bytes(b"ping");
    message.attributes.activity = 9;
    one.push(path, message);
    let request = one.frames()[0][14..].to_vec();
    let error = icmp(11, 0, &[&[0; 4], &request[..28]].concat());
    one.receive(0, &ip_frame(&ip_header(9, 1, IpProtocol::ICMP, error.len()), &error));
    let expected = NetworkError { kind: NetworkErrorKind::TimeExceeded, sequence: Some(9) };
    assert_eq!(one.paths[path].told, [Control::NetworkError(expected)]);
}

#[test]
fn everybody_is_not_an_echo_unless_it_wants_to_be() {
    for answers in [false, true] {
        let mut setup = Setup::host(1);
        setup.icmp.answer_broadcast_echoes = answers;
        let mut host = Host::new(setup);
        host.knows(2);
        let request = echo(1, 1, b"who is there");
        for destination in [Ipv4Addr::new(10, 0, 0, 255), Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
            let header = Ipv4Header { destination, ..ip_header(2, 0, IpProtocol::ICMP, request.len()) };
            let packet = packet(&header, &request);
            host.receive(0, &frame(mac(2), EthernetAddress::BROADCAST, EtherType::IPV4, &packet));
        }
        let sent = host.frames();
        assert_eq!(sent.len(), if answers { 3 } else { 0 });
        assert!(sent.iter().all(|frame| open_packet(frame).0.source == ipv4(1)), "from an address of its own");
        assert_eq!(host.drops.of(&ECHO_NOT_ANSWERED), if answers { 0 } else { 3 });
    }
    let mut setup = Setup::host(1);
    setup.icmp.answer_echoes = false;
    let mut silent = Host::new(setup);
    let request = echo(1, 1, b"?");
    silent.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::ICMP, request.len()), &request));
    assert_eq!(silent.drops.of(&ECHO_NOT_ANSWERED), 1);
}

#[test]
fn what_is_damaged_short_or_not_understood_is_dropped() {
    let (mut one, _) = two();
    let arrive = |one: &mut Host, message: &[u8]| {
        one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::ICMP, message.len()), message));
    };
    let request = echo(1, 1, b"data");
    for bit in 0..request.len() * 8 {
        let mut bad = request.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        arrive(&mut one, &bad);
    }
    assert_eq!(one.drops.of(&BAD_CHECKSUM), request.len() as u64 * 8);
    arrive(&mut one, &[8, 0, 0]);
    for kind in [3, 11, 12] {
        arrive(&mut one, &icmp(kind, 0, &[0; 3]));
    }
    assert_eq!(one.drops.of(&SHORT), 4);
    for kind in [1, 2, 4, 6, 7, 9, 10, 13, 14, 15, 16, 17, 18, 19, 41, 255] {
        arrive(&mut one, &icmp(kind, 0, &[0; 40]));
    }
    arrive(&mut one, &icmp(3, 99, &[0; 40]));
    assert_eq!(one.drops.of(&OTHER_KIND), 17);
    arrive(&mut one, &icmp(5, 1, &[0; 40]));
    assert_eq!(one.drops.of(&REDIRECT), 1);
    assert_eq!(one.frames().len(), 0, "nothing of it was answered");
}

/// Asks for an error about a packet; whether one was sent.
fn complains(quote: Vec<u8>, broadcast: bool) -> bool {
    let (mut one, _) = two();
    let undeliverable = Undeliverable { quote, broadcast };
    one.offer(Control::Undeliverable(NetworkErrorKind::HostUnreachable, Box::new(undeliverable)));
    let sent = one.frames().len();
    assert_eq!(sent as u64 + one.drops.of(&NO_ERROR_ABOUT_THIS), 1, "sent or counted: {:?}", one.drops);
    sent == 1
}

#[test]
fn no_error_about_errors_crowds_later_fragments_or_for_nobody() {
    let about = |header: Ipv4Header, payload: &[u8]| complains(packet(&header, payload), false);
    let header = ip_header(2, 1, IpProtocol::UDP, 8);
    assert!(about(header, &[0; 8]));
    assert!(!complains(packet(&header, &[0; 8]), true), "sent to all on the link");
    for crowd in [Ipv4Addr::BROADCAST, Ipv4Addr::new(239, 0, 0, 1)] {
        assert!(!about(Ipv4Header { destination: crowd, ..header }, &[0; 8]));
    }
    let second = FragmentOffset::of_units(1).unwrap();
    assert!(!about(Ipv4Header { fragment_offset: second, ..header }, &[0; 8]));
    assert!(about(Ipv4Header { more_fragments: true, ..header }, &[0; 8]), "a first fragment");
    for nobody in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        assert!(!about(Ipv4Header { source: nobody.parse().unwrap(), ..header }, &[0; 8]), "{nobody}");
    }
    let icmp_header = Ipv4Header { protocol: IpProtocol::ICMP, ..header };
    for kind in 0..=255 {
        let query = matches!(kind, 0 | 8 | 9 | 10 | 13..=18);
        assert_eq!(about(icmp_header, &icmp(kind, 0, &[0; 4])), query, "about a message of kind {kind}");
    }
    assert!(!about(Ipv4Header { total_length: 20, ..icmp_header }, &[]), "it may have been an error");
}

#[test]
fn an_error_quotes_as_much_as_fits_and_its_sum_is_right() {
    for size in [0, 8, 100, 528, 529, 1480] {
        let (mut one, _) = two();
        let quote = packet(&ip_header(2, 1, IpProtocol::UDP, size), &vec![3; size]);
        let undeliverable = Undeliverable { quote: quote.clone(), broadcast: false };
        let kind = NetworkErrorKind::PortUnreachable;
        one.offer(Control::Undeliverable(kind, Box::new(undeliverable)));
        let sent = one.frames();
        let (header, error) = open_packet(&sent[0]);
        assert!(Sum::of(error).is_right());
        assert_eq!(error[8..], quote[..quote.len().min(548)]);
        assert!(header.total_length <= 576);
        assert_eq!(header.source, ipv4(1), "from the address that was not reached");
    }
}

#[test]
fn what_is_no_ipv4_packet_is_for_another_to_report() {
    let (mut one, _) = two();
    for quote in [vec![], vec![0x45; 19], vec![0x60; 48]] {
        let undeliverable = Box::new(Undeliverable { quote, broadcast: false });
        one.offer(Control::Undeliverable(NetworkErrorKind::PortUnreachable, undeliverable));
    }
    assert_eq!((one.frames().len(), one.drops.total()), (0, 0));
}

#[test]
fn errors_are_rationed() {
    let mut setup = Setup::host(1);
    (setup.icmp.errors_per_second, setup.icmp.errors_at_once) = (10, 5);
    let mut host = Host::new(setup);
    host.knows(2);
    let mut sent = Vec::new();
    for step in 0..100 {
        host.at(Instant::ZERO + Duration::from_millis(step * 20));
        host.receive(0, &udp_frame((2, 9), (1, 9), b"nobody"));
        sent.push(host.frames().len());
    }
    assert_eq!(sent[..10].iter().sum::<usize>(), 6, "five at once, and one that came with time");
    let all: usize = sent.iter().sum();
    assert!((24..=25).contains(&all), "{all} errors in two seconds at ten a second");
    assert_eq!(host.drops.of(&TOO_MANY_ERRORS), 100 - all as u64);
}

#[test]
fn a_verified_sum_is_not_computed_again() {
    let (mut one, _) = two();
    let mut request = echo(1, 1, b"data");
    request[2] ^= 0xff;
    let mut message = Message::from_bytes(&ip_frame(&ip_header(2, 1, IpProtocol::ICMP, request.len()), &request));
    message.attributes.checksum = Checksum::Verified;
    one.receive_message(0, message);
    assert_eq!((one.frames().len(), one.drops.total()), (1, 0));
}

#[test]
fn a_sum_left_to_the_device_is_complete_in_the_answer() {
    let (mut one, _) = two();
    let mut request = echo(1, 1, b"data");
    request[2..4].fill(0);
    let mut message = Message::from_bytes(&ip_frame(&ip_header(2, 1, IpProtocol::ICMP, request.len()), &request));
    message.attributes.checksum = Checksum::Partial { start: 34, field: 2 };
    message.attributes.segment_size = 4;
    one.receive_message(0, message);
    let sent = one.frames();
    assert!(Sum::of(open_packet(&sent[0]).1).is_right());
}

#[test]
fn a_path_judges_for_itself() {
    let (mut one, _) = two();
    let path = converse(&mut one, Some(5)).unwrap();
    let reply = |identifier| icmp(0, 0, &with_header(&IcmpEcho { identifier, sequence: 0 }, b"data"));
    let mut damaged = reply(5);
    damaged[9] ^= 1;
    let mut out = xylem_core::Outbox::new(one.now, one.random.child(), xylem_core::Pool::new(1, 1));
    for message in [reply(5), reply(6), echo(5, 0, b"data"), damaged, icmp(0, 0, &[0; 2])] {
        let frame = ip_frame(&ip_header(2, 1, IpProtocol::ICMP, message.len()), &message);
        one.paths[path].path.pop(&mut Message::from_bytes(&frame), &mut out);
    }
    assert_eq!(out.drain_up().map(|message| message.to_vec()).collect::<Vec<_>>(), [b"data"]);
    assert_eq!(out.drain_dropped().collect::<Vec<_>>(), [&OTHER_PATH, &OTHER_PATH, &BAD_CHECKSUM, &SHORT]);
}
