//! Which packets are taken, and why the others are not.

use super::super::*;
use super::*;
use std::net::Ipv4Addr;
use xylem_core::{Checksum, Control, NetworkErrorKind, Outbox, Pool, drop::linker};
use xylem_wire::{Ecn, EtherType, EthernetAddress};

/// What becomes of a packet from host 2, and the one reason for a drop.
fn why(packet: &[u8]) -> Option<&'static str> {
    let mut host = Host::new(Setup::host(1));
    host.receive(0, &frame(mac(2), mac(1), EtherType::IPV4, packet));
    let mut reasons = host.drops.iter().filter(|(protocol, _, _)| *protocol == "ipv4");
    let reason = reasons.next().map(|(_, why, _)| why);
    assert_eq!(reasons.next(), None);
    reason
}

fn header() -> Ipv4Header {
    ip_header(2, 1, EXPERIMENT, 8)
}

#[test]
fn a_header_must_be_sound() {
    let sound = packet(&header(), &[1; 8]);
    assert_eq!(why(&sound), None);
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = sound.clone();
        change(&mut bytes);
        why(&bytes)
    };
    assert_eq!(with(|bytes| bytes.truncate(19)), Some(SHORT.why));
    assert_eq!(with(|bytes| bytes.clear()), Some(SHORT.why));
    assert_eq!(with(|bytes| bytes[0] = 0x65), Some(BAD_VERSION.why));
    assert_eq!(with(|bytes| bytes[0] = 0x44), Some(BAD_HEADER_LENGTH.why));
    assert_eq!(with(|bytes| bytes[0] = 0x4f), Some(BAD_HEADER_LENGTH.why));
    assert_eq!(with(|bytes| bytes[8] ^= 1), Some(BAD_CHECKSUM.why));
    for total in [0, 19, 29, u16::MAX] {
        let claims = Ipv4Header { total_length: total, ..header() };
        assert_eq!(why(&packet(&claims, &[1; 8])), Some(BAD_TOTAL_LENGTH.why), "{total} bytes of 28");
    }
}

#[test]
fn every_bit_of_the_header_is_under_the_checksum() {
    let sound = packet(&header(), &[1; 8]);
    for bit in 0..Ipv4Header::LEN * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(why(&bytes).is_some(), "bit {bit} was not missed");
    }
}

#[test]
fn a_source_must_be_another_host() {
    for source in ["0.0.0.0", "10.0.0.1", "10.0.0.255", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"] {
        let header = Ipv4Header { source: source.parse().unwrap(), ..header() };
        assert_eq!(why(&packet(&header, &[1; 8])), Some(BAD_SOURCE.why), "{source}");
    }
    let mut host = Host::new(Setup::host(1));
    let nobody_yet = Ipv4Header { source: Ipv4Addr::UNSPECIFIED, destination: Ipv4Addr::BROADCAST, ..header() };
    host.receive(0, &frame(mac(2), EthernetAddress::BROADCAST, EtherType::IPV4, &packet(&nobody_yet, &[1; 8])));
    assert_eq!(host.drops.of(&linker::NO_UPPER), 1, "a host without an address may speak to everybody");
}

#[test]
fn a_destination_must_be_ours_or_everybodys() {
    let to = |to: &str, link: EthernetAddress| {
        let mut host = Host::new(Setup::host(1));
        let header = Ipv4Header { destination: to.parse().unwrap(), ..header() };
        host.receive(0, &frame(mac(2), link, EtherType::IPV4, &packet(&header, &[1; 8])));
        host.drops.iter().map(|(_, why, _)| why).find(|why| *why != crate::icmp::NO_ERROR_ABOUT_THIS.why)
    };
    let (us, everybody) = (mac(1), EthernetAddress::BROADCAST);
    for ours in [("10.0.0.1", us), ("10.0.0.255", everybody), ("255.255.255.255", everybody), ("224.0.0.1", everybody)]
    {
        assert_eq!(to(ours.0, ours.1), Some(linker::NO_UPPER.why), "{}", ours.0);
    }
    for others in ["10.0.0.9", "10.0.1.255", "224.0.0.2", "127.0.0.1"] {
        assert_eq!(to(others, us), Some(NOT_OURS.why), "{others}");
    }
    assert_eq!(to("10.0.0.1", everybody), Some(LINK_BROADCAST.why));
}

/// RFC 9293 MUST-50.
#[test]
fn options_are_passed_over_but_for_source_routes() {
    let options = |options: &[u8]| why(&packet_with(&header(), options, &[1; 8]));
    assert_eq!(options(&[1, 1, 1, 0]), None);
    assert_eq!(options(&[7, 7, 4, 0, 0, 0, 0, 0]), None, "record route");
    assert_eq!(options(&[148, 4, 0, 0]), None, "router alert");
    assert_eq!(options(&[7, 0, 0, 0]), None, "an impossible length is not walked past");
    assert_eq!(options(&[7, 200, 0, 0]), None);
    for source_route in [131, 137] {
        assert_eq!(options(&[source_route, 7, 4, 10, 0, 0, 9, 0]), Some(SOURCE_ROUTED.why));
        assert_eq!(options(&[1, source_route, 3, 4]), Some(SOURCE_ROUTED.why));
    }
}

#[test]
fn options_are_taken_off_with_the_header() {
    let (mut one, _) = two();
    let enable = one.enable(one.udp, wild(7)).unwrap();
    let payload = datagram((2, 9), (1, 7), b"behind options");
    let header = ip_header(2, 1, IpProtocol::UDP, 0);
    let packet = packet_with(&header, &[7, 7, 4, 0, 0, 0, 0, 0], &payload);
    one.receive(0, &frame(mac(2), mac(1), EtherType::IPV4, &packet));
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    one.receive(0, &frame(mac(2), mac(1), EtherType::IPV4, &packet));
    assert_eq!(bytes(&one.listening[enable].delivered), [b"behind options"]);
    assert_eq!(bytes(&one.paths[path].delivered), [b"behind options"]);
}

#[test]
fn padding_behind_the_packet_is_cut() {
    let (mut one, _) = two();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    let mut padded = udp_frame((2, 9), (1, 7), b"x");
    padded.resize(60, 0xee);
    one.receive(0, &padded);
    assert_eq!(bytes(&one.paths[path].delivered), [b"x"]);
}

/// Pops a packet from host 2 through a conversation of IPv4 alone: what came of it.
fn pop(packet: &[u8], prepare: impl FnOnce(&mut Message)) -> (Vec<Message>, Vec<&'static str>) {
    let mut host = Host::new(Setup::host(1));
    let path = converse(&mut host, 2);
    let mut out = Outbox::new(host.now, host.random.child(), Pool::new(1, 1));
    let mut message = Message::from_bytes(&frame(mac(2), mac(1), EtherType::IPV4, packet));
    prepare(&mut message);
    host.paths[path].path.pop(&mut message, &mut out);
    (out.drain_up().collect(), out.drain_dropped().map(|reason| reason.why).collect())
}

#[test]
fn a_path_judges_for_itself() {
    let popped = |packet: &[u8]| {
        let (up, dropped) = pop(packet, |_| ());
        (bytes(&up), dropped)
    };
    assert_eq!(popped(&packet(&header(), b"whatever")), (vec![b"whatever".to_vec()], vec![]));
    let padded = [packet(&header(), b"whatever"), vec![0xee; 18]].concat();
    assert_eq!(popped(&padded), (vec![b"whatever".to_vec()], vec![]), "whoever named the path has not cut it");
    let mut bad = packet(&header(), b"whatever");
    bad[10] ^= 1;
    assert_eq!(popped(&bad), (vec![], vec![BAD_CHECKSUM.why]));
    for other in [
        Ipv4Header { source: ipv4(3), ..header() },
        Ipv4Header { destination: ipv4(3), ..header() },
        Ipv4Header { protocol: IpProtocol::EXPERIMENT_2, ..header() },
    ] {
        assert_eq!(popped(&packet(&other, b"whatever")), (vec![], vec![OTHER_PATH.why]));
    }
    let fragment = Ipv4Header { more_fragments: true, ..header() };
    assert_eq!(popped(&packet(&fragment, b"whatever")), (vec![], vec![FRAGMENT_ON_PATH.why]));
}

#[test]
fn congestion_marks_go_up() {
    let marked = packet(&Ipv4Header { ecn: Ecn::Experienced, ..header() }, b"whatever");
    let marks = |prepare: fn(&mut Message)| pop(&marked, prepare).0[0].attributes.congestion_marks;
    assert_eq!(marks(|_| ()), 1);
    assert_eq!(marks(|message| message.attributes.segments = 5), 5, "any of the merged may have been marked");
    let counted = |message: &mut Message| {
        message.attributes.segments = 5;
        message.attributes.congestion_marks = 2;
    };
    assert_eq!(marks(counted), 2);
    let unmarked = packet(&Ipv4Header { ecn: Ecn::Capable0, ..header() }, b"whatever");
    assert_eq!(pop(&unmarked, |_| ()).0[0].attributes.congestion_marks, 0);
}

#[test]
fn a_sum_left_to_the_device_is_right_where_it_arrives() {
    let partial = |message: &mut Message| message.attributes.checksum = Checksum::Partial { start: 34, field: 6 };
    let (up, _) = pop(&packet(&header(), b"whatever"), partial);
    assert_eq!(up[0].attributes.checksum, Checksum::Verified);
}

#[test]
fn an_error_finds_the_conversation_that_it_quotes() {
    let (mut one, _) = two();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    let enable = one.enable(one.udp, wild(7)).unwrap();
    one.push(path, Message::from_bytes(b"quoted"));
    let sent = one.frames();
    let quote = &sent[0][14..];
    let error = |one: &mut Host, quote: &[u8]| {
        let mut message =
            with_header(&xylem_wire::IcmpHeader { kind: xylem_wire::IcmpKind(3), code: 1, checksum: 0 }, &[0; 4]);
        message.extend(quote);
        let checksum = xylem_wire::Sum::of(&message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        one.receive(0, &ip_frame(&ip_header(9, 1, IpProtocol::ICMP, message.len()), &message));
    };
    // A router on the way has taken hops off and left the checksum as it was; only the front came back.
    let mut seen = quote[..28].to_vec();
    seen[8] = 1;
    error(&mut one, &seen);
    let told = |control: &Control| matches!(control, Control::NetworkError(it) if it.kind == NetworkErrorKind::HostUnreachable);
    assert_eq!(one.paths[path].told.iter().filter(|control| told(control)).count(), 1);

    let other_source = [&quote[..12], &[10, 0, 0, 66], &quote[16..]].concat();
    let later_fragment = [&quote[..6], &[0, 9], &quote[8..]].concat();
    let other_port = [&quote[..20], &[0, 99], &quote[22..]].concat();
    for nobodys in [&other_source[..], &later_fragment, &other_port, &quote[..27], &quote[..19], &[]] {
        error(&mut one, nobodys);
    }
    assert_eq!(one.drops.of(&linker::NOT_QUOTED), 6);
    assert_eq!((one.paths[path].told.len(), one.listening[enable].told.len()), (1, 0));
}
