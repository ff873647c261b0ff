//! UDP's rules, each over the whole stack below it.

use super::*;
use crate::testing::*;
use std::net::{IpAddr, Ipv4Addr};
use xylem_core::{
    Control, EnableError, EnableWish, Endpoint, Facts, Handled, Message, NetworkErrorKind, OpenError, Part,
    Participants, Random, Side,
};
use xylem_wire::{EtherType, Header, IpProtocol, Port, UdpHeader};

/// Hosts 1 and 2, who know each other.
fn two() -> (Host, Host) {
    let (mut one, mut two) = (Host::new(Setup::host(1)), Host::new(Setup { seed: 2, ..Setup::host(2) }));
    one.knows(2);
    two.knows(1);
    (one, two)
}

fn bytes(messages: &[Message]) -> Vec<Vec<u8>> {
    messages.iter().map(Message::to_vec).collect()
}

#[test]
fn a_message_reaches_a_wild_enable_and_the_answer_its_sender() {
    let (mut one, mut two) = two();
    let echo = two.enable(two.udp, wild(7)).unwrap();
    let path = one.open_udp(None, 2, 7).unwrap();
    assert!(one.push(path, Message::from_bytes(b"hello")));
    exchange(&mut one, &mut two);
    let heard = &two.listening[echo].delivered;
    assert_eq!(bytes(heard), [b"hello"]);
    let (local, remote) = heard[0].attributes.participants.unwrap();
    assert_eq!((local, remote.address), (Endpoint { address: ip(2), port: Port(7) }, ip(1)));
    assert!(remote.port >= Port::DYNAMIC_FIRST);

    let back = two.open_udp(Some(7), 1, remote.port.0).unwrap();
    assert!(two.push(back, Message::from_bytes(b"hello yourself")));
    exchange(&mut one, &mut two);
    assert_eq!(bytes(&one.paths[path].delivered), [b"hello yourself"]);
    assert_eq!(one.drops.total() + two.drops.total(), 0, "{:?} {:?}", one.drops, two.drops);
}

#[test]
fn four_different_ends_make_a_conversation_and_the_same_ones_are_in_use() {
    let (mut one, _) = two();
    let first = one.open_udp(Some(5000), 2, 7).unwrap();
    assert_eq!(one.open_udp(Some(5000), 2, 7), Err(OpenError::InUse));
    assert!(one.open_udp(Some(5000), 2, 8).is_ok(), "another port of the peer");
    assert!(one.open_udp(Some(5000), 3, 7).is_ok(), "another peer");
    assert!(one.open_udp(Some(5001), 2, 7).is_ok(), "another port of ours");
    assert!(one.enable(one.udp, wild(5000)).is_ok(), "an enable takes what no conversation claims");
    assert!(one.open_udp(Some(5000), 4, 7).is_ok(), "a conversation from an enabled port");
    one.paths[first].path.release();
    assert!(one.open_udp(Some(5000), 2, 7).is_ok(), "the ends are free when their path has gone");
}

#[test]
fn what_is_missing_from_an_open_is_named() {
    let (mut one, _) = two();
    let open = |one: &mut Host, participants| one.open(one.udp, participants).unwrap_err();
    let no_port = Participants::new([], [Part::Host(ip(2))]);
    let zero = Participants::internet((None, None), (ip(2), Port(0)));
    for participants in [no_port, zero] {
        let missing = OpenError::MissingParticipant { protocol: "udp", expected: "the peer's port, not 0" };
        assert_eq!(open(&mut one, participants), missing);
    }
    let no_host = Participants::new([], [Part::Port(Port(7))]);
    let missing = OpenError::MissingParticipant { protocol: "ipv4", expected: "the peer's address" };
    assert_eq!(open(&mut one, no_host), missing);
}

#[test]
fn a_conversation_is_preferred_to_an_enable_and_an_address_to_any() {
    let (mut one, _) = two();
    let anywhere = one.enable(one.udp, wild(7)).unwrap();
    let mut here = wild(7);
    here.participants.local = Side::from([Part::Host(ip(1)), Part::Port(Port(7))]);
    let here = one.enable(one.udp, here).unwrap();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    one.receive(0, &udp_frame((2, 9), (1, 7), b"path"));
    one.receive(0, &udp_frame((2, 10), (1, 7), b"here"));
    one.disable(here);
    one.receive(0, &udp_frame((2, 10), (1, 7), b"anywhere"));
    assert_eq!(bytes(&one.paths[path].delivered), [b"path"]);
    assert_eq!(bytes(&one.listening[here].delivered), [b"here"]);
    assert_eq!(bytes(&one.listening[anywhere].delivered), [b"anywhere"]);
}

#[test]
fn a_free_port_is_chosen_where_nobody_foresees_it_and_written_back() {
    let chosen = |seed| {
        let mut host = Host::new(Setup { seed, ..Setup::host(1) });
        let enable = host.enable(host.udp, wild(0)).unwrap();
        host.listening[enable].participants.local.find_port().unwrap()
    };
    assert!(chosen(1) >= Port::DYNAMIC_FIRST);
    assert_ne!(chosen(1), chosen(2));

    let mut host = Host::new(Setup::host(1));
    let mut all: Vec<Port> = Vec::new();
    for _ in 0..200 {
        let enable = host.enable(host.udp, wild(0)).unwrap();
        all.push(host.listening[enable].participants.local.find_port().unwrap());
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 200, "a port was given out twice");
}

#[test]
fn a_port_is_shared_only_among_the_willing() {
    let (mut one, _) = two();
    let willing = |port| EnableWish { shared: true, ..wild(port) };
    assert!(one.enable(one.udp, wild(7)).is_ok());
    assert_eq!(one.enable(one.udp, wild(7)), Err(EnableError::InUse));
    assert_eq!(one.enable(one.udp, willing(7)), Err(EnableError::InUse));
    assert!(one.enable(one.udp, willing(8)).is_ok() && one.enable(one.udp, willing(8)).is_ok());
    assert_eq!(one.enable(one.udp, wild(8)), Err(EnableError::InUse));
    let mut elsewhere = wild(9);
    elsewhere.participants.local = Side::from([Part::Host(ip(9)), Part::Port(Port(9))]);
    assert_eq!(one.enable(one.udp, elsewhere), Err(EnableError::NotOurAddress(ip(9))));
}

#[test]
fn a_group_is_heard_by_all_who_share_its_port_while_they_are_in_it() {
    let (mut one, _) = two();
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let mut wish = wild(5353);
    wish.shared = true;
    wish.participants.local = Side::from([Part::Host(group.into()), Part::Port(Port(5353))]);
    let hears: Vec<usize> = (0..2).map(|_| one.enable(one.udp, wish.clone()).unwrap()).collect();
    let payload = datagram_to(group.into(), b"all of you");
    let mut header = ip_header(2, 0, IpProtocol::UDP, payload.len());
    header.destination = group;
    let link = xylem_wire::EthernetAddress::for_ipv4_group(group);
    let to_group = frame(mac(2), link, EtherType::IPV4, &packet(&header, &payload));
    one.receive(0, &to_group);
    for hearer in &hears {
        assert_eq!(bytes(&one.listening[*hearer].delivered), [b"all of you"]);
        assert!(one.listening[*hearer].delivered[0].attributes.broadcast);
        one.disable(*hearer);
    }
    one.receive(0, &to_group);
    assert_eq!(one.drops.of(&crate::ipv4::NOT_OURS), 1, "the group was left with its last enable");
}

/// A UDP message from host 2, port 5353, to that address, port 5353.
fn datagram_to(to: IpAddr, payload: &[u8]) -> Vec<u8> {
    let length = (UdpHeader::LEN + payload.len()) as u16;
    let header = UdpHeader { source: Port(5353), destination: Port(5353), length, checksum: 0 };
    let checksum = header.checksum_to_send(ip(2), to, xylem_wire::Sum::of(payload));
    with_header(&UdpHeader { checksum, ..header }, payload)
}

#[test]
fn everybody_on_the_network_is_heard_and_nobody_complains() {
    let (mut one, _) = two();
    let everybody = Ipv4Addr::new(10, 0, 0, 255);
    let enable = one.enable(one.udp, wild(5353)).unwrap();
    for port in [5353, 5354] {
        let mut payload = datagram_to(everybody.into(), b"hear");
        let header = UdpHeader { destination: Port(port), checksum: 0, ..UdpHeader::parse(&payload).unwrap() };
        header.build(&mut payload);
        let mut ip = ip_header(2, 0, IpProtocol::UDP, payload.len());
        ip.destination = everybody;
        let everywhere = xylem_wire::EthernetAddress::BROADCAST;
        one.receive(0, &frame(mac(2), everywhere, EtherType::IPV4, &packet(&ip, &payload)));
    }
    assert_eq!(bytes(&one.listening[enable].delivered), [b"hear"]);
    assert_eq!(one.drops.of(&NO_PORT), 1);
    assert_eq!(one.frames(), [[0; 0]; 0], "an error about a broadcast was sent");
}

#[test]
fn nobodys_port_is_unreachable_and_the_sender_learns_it() {
    let (mut one, mut two) = two();
    let path = one.open_udp(None, 2, 9).unwrap();
    one.push(path, Message::from_bytes(b"anybody?"));
    exchange(&mut one, &mut two);
    assert_eq!(two.drops.of(&NO_PORT), 1);
    let told = |control: &Control| matches!(control, Control::NetworkError(error) if error.kind == NetworkErrorKind::PortUnreachable);
    assert!(one.paths[path].told.iter().any(told), "{:?}", one.paths[path].told);
}

#[test]
fn an_enable_learns_what_became_of_a_message_sent_from_its_port() {
    let (mut one, mut two) = two();
    let enable = one.enable(one.udp, wild(5000)).unwrap();
    let path = one.open_udp(Some(5000), 2, 9).unwrap();
    one.push(path, Message::from_bytes(b"anybody?"));
    one.paths[path].path.release();
    exchange(&mut one, &mut two);
    assert_eq!(one.listening[enable].told.len(), 1);
}

#[test]
fn an_enable_that_is_not_wild_makes_a_conversation_with_each_peer() {
    let (mut one, _) = two();
    let mut wish = wild(7);
    wish.wild = false;
    let enable = one.enable(one.udp, wish).unwrap();
    for (from, payload) in [((2, 9), b"a"), ((2, 10), b"b"), ((2, 9), b"c")] {
        one.receive(0, &udp_frame(from, (1, 7), payload));
    }
    let accepted = &one.listening[enable].accepted;
    assert_eq!(accepted.len(), 2);
    assert_eq!(bytes(&one.paths[accepted[0].index as usize].delivered), [b"a", b"c"]);
    assert_eq!(bytes(&one.paths[accepted[1].index as usize].delivered), [b"b"]);
    one.push(1, Message::from_bytes(b"answer"));
    let sent = one.frames();
    let header = UdpHeader::parse(open_packet(&sent[0]).1).unwrap();
    assert_eq!((header.source, header.destination), (Port(7), Port(10)));
}

#[test]
fn a_message_with_one_bit_wrong_reaches_nobody() {
    let (mut one, _) = two();
    let enable = one.enable(one.udp, wild(7)).unwrap();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    let good = datagram((2, 9), (1, 7), b"payload");
    let header = ip_header(2, 1, IpProtocol::UDP, good.len());
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        one.receive(0, &ip_frame(&header, &bad));
    }
    assert!(one.paths[path].delivered.is_empty() && one.listening[enable].delivered.is_empty());
    assert_eq!(one.drops.total(), good.len() as u64 * 8, "each was counted once: {:?}", one.drops);
    one.receive(0, &ip_frame(&header, &good));
    assert_eq!(bytes(&one.paths[path].delivered), [b"payload"]);
}

#[test]
fn a_missing_checksum_is_taken_at_its_word() {
    let (mut one, _) = two();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    let enable = one.enable(one.udp, wild(8)).unwrap();
    for port in [7, 8] {
        let mut bare = datagram((2, 9), (1, port), b"bare");
        UdpHeader { checksum: 0, ..UdpHeader::parse(&bare).unwrap() }.build(&mut bare);
        one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::UDP, bare.len()), &bare));
    }
    assert_eq!(bytes(&one.paths[path].delivered), [b"bare"]);
    assert_eq!(bytes(&one.listening[enable].delivered), [b"bare"]);
}

#[test]
fn a_checksum_that_comes_out_as_zero_is_sent_as_all_ones() {
    let (mut one, mut two) = two();
    let enable = two.enable(two.udp, wild(7)).unwrap();
    let path = one.open_udp(Some(5000), 2, 7).unwrap();
    // Whatever the sum of a message with this payload is without it, one of these makes it zero.
    for payload in 0..=u16::MAX {
        one.push(path, Message::from_bytes(&payload.to_be_bytes()));
    }
    let sent = one.frames();
    let checksums = sent.iter().map(|frame| UdpHeader::parse(open_packet(frame).1).unwrap().checksum);
    let ones = checksums.clone().filter(|checksum| *checksum == 0xffff).count();
    assert_eq!((ones, checksums.filter(|checksum| *checksum == 0).count()), (1, 0));
    sent.iter().for_each(|frame| two.receive(0, frame));
    assert_eq!(two.listening[enable].delivered.len(), 1 << 16);
}

#[test]
fn the_length_says_where_a_message_ends_if_it_can_be() {
    let (mut one, _) = two();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    let enable = one.enable(one.udp, wild(8)).unwrap();
    for port in [7, 8] {
        let mut padded = datagram((2, 9), (1, port), b"four");
        padded.extend(b"not part of it");
        one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::UDP, padded.len()), &padded));
        for claimed in [0, 7, 13, 65_535] {
            let mut wrong = datagram((2, 9), (1, port), b"four");
            UdpHeader { length: claimed, ..UdpHeader::parse(&wrong).unwrap() }.build(&mut wrong);
            one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::UDP, wrong.len()), &wrong));
        }
    }
    assert_eq!(bytes(&one.paths[path].delivered), [b"four"]);
    assert_eq!(bytes(&one.listening[enable].delivered), [b"four"]);
    assert_eq!(one.drops.of(&BAD_LENGTH), 8);
}

#[test]
fn port_zero_and_half_a_header_are_nobodys() {
    let (mut one, _) = two();
    one.receive(0, &udp_frame((2, 9), (1, 0), b"?"));
    one.receive(0, &ip_frame(&ip_header(2, 1, IpProtocol::UDP, 7), &[0; 7]));
    assert_eq!((one.drops.of(&PORT_ZERO), one.drops.of(&SHORT)), (1, 1));
}

#[test]
fn the_longest_message_arrives_and_a_longer_one_is_refused() {
    let (mut one, mut two) = two();
    let enable = two.enable(two.udp, wild(7)).unwrap();
    let path = one.open_udp(None, 2, 7).unwrap();
    let mut payload = vec![0; 65_507];
    Random::seeded(3).fill(&mut payload);
    one.push(path, Message::from_bytes(&payload));
    exchange(&mut one, &mut two);
    assert!(bytes(&two.listening[enable].delivered) == [payload]);
    one.push(path, Message::from_bytes(&[0; 65_508]));
    one.push(path, Message::from_bytes(&[0; 65_528]));
    assert_eq!((one.drops.of(&crate::ipv4::TOO_LONG), one.drops.of(&TOO_LONG)), (1, 1));
}

#[test]
fn a_path_judges_for_itself() {
    let (mut one, _) = two();
    let path = one.open_udp(Some(7), 2, 9).unwrap();
    let mut out = xylem_core::Outbox::new(one.now, one.random.child(), xylem_core::Pool::new(1, 1));
    for (from, to) in [(9, 7), (9, 8), (10, 7)] {
        one.paths[path].path.pop(&mut Message::from_bytes(&udp_frame((2, from), (1, to), b"data")), &mut out);
    }
    let short = ip_frame(&ip_header(2, 1, IpProtocol::UDP, 7), &[0; 7]);
    one.paths[path].path.pop(&mut Message::from_bytes(&short), &mut out);
    assert_eq!(bytes(&out.drain_up().collect::<Vec<_>>()), [b"data"]);
    assert_eq!(out.drain_dropped().collect::<Vec<_>>(), [&OTHER_PATH, &OTHER_PATH, &SHORT]);
}

#[test]
fn the_layers_below_say_how_much_fits_and_so_does_udp() {
    let (mut one, _) = two();
    let path = one.open_udp(None, 2, 7).unwrap();
    let mut out = xylem_core::Outbox::new(one.now, one.random.child(), xylem_core::Pool::new(1, 1));
    let facts = Facts { mtu: 9014, segment_max: 9014, headroom: 0, local: None, remote: None, number: 0 };
    let mut control = Control::Facts(facts);
    assert_eq!(one.paths[path].path.control(&mut control, &mut out), Handled::No);
    let Control::Facts(facts) = control else { panic!("facts stay facts") };
    assert_eq!((facts.mtu, facts.headroom, facts.local, facts.remote), (8972, 42, Some(ip(1)), Some(ip(2))));
}
