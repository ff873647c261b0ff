//! A router between two networks.

use super::super::*;
use super::*;
use std::net::Ipv4Addr;
use std::time::Duration;
use xylem_core::drop::linker;
use xylem_core::{Control, Instant, NetworkErrorKind};
use xylem_wire::{EtherType, IcmpKind, Sum};

const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 9);

/// A router with 10.0.0.1 and 10.0.1.1 that knows host 2 on the first network and host 9 on the second.
fn router_with(change: impl FnOnce(&mut Setup)) -> Host {
    let mut setup = Setup::links(vec![station(1, 0), station(1, 1)]);
    setup.ipv4.forwarding = true;
    change(&mut setup);
    let mut router = Host::new(setup);
    router.knows(2);
    router.pages[1].entry(FAR.into()).unwrap().set(Some(station(9, 1).0));
    router
}

fn router() -> Host {
    router_with(|_| ())
}

/// A header from host 2 to the far host.
fn header(payload: usize) -> Ipv4Header {
    Ipv4Header { destination: FAR, ..ip_header(2, 0, EXPERIMENT, payload) }
}

fn arrive(router: &mut Host, packet: &[u8]) {
    router.receive(0, &frame(mac(2), mac(1), EtherType::IPV4, packet));
}

/// The ICMP error that went back to host 2, and what it quotes.
fn error(router: &mut Host) -> Option<(u8, u8, u16, Vec<u8>)> {
    let sent = std::mem::take(&mut router.sent);
    let (device, frame) = sent.first()?;
    assert_eq!(*device, 0);
    let (ip, icmp) = open_packet(frame);
    assert_eq!((ip.destination, ip.protocol), (ipv4(2), IpProtocol::ICMP));
    assert!(Sum::of(icmp).is_right());
    Some((icmp[0], icmp[1], u16::from_be_bytes([icmp[6], icmp[7]]), icmp[8..].to_vec()))
}

#[test]
fn a_packet_is_passed_on_with_one_hop_less_and_nothing_else_changed() {
    let mut router = router();
    let options = [148, 4, 0, 0];
    arrive(&mut router, &packet_with(&header(0), &options, b"passing through"));
    let sent = std::mem::take(&mut router.sent);
    assert_eq!(sent[0].0, 1, "by the other link");
    let (link, packet) = open_frame(&sent[0].1);
    assert_eq!((link.source, link.destination), (station(1, 1).0, station(9, 1).0));
    let expected = packet_with(&Ipv4Header { time_to_live: 63, ..header(0) }, &options, b"passing through");
    assert_eq!(packet, expected, "the corrected checksum is the one made anew");
}

#[test]
fn the_corrected_checksum_is_right_for_every_header() {
    let mut router = router();
    let mut random = xylem_core::Random::seeded(11);
    for _ in 0..2000 {
        let drawn = Ipv4Header::generate(&mut || random.next());
        let header = Ipv4Header {
            header_words: 5,
            total_length: 24,
            more_fragments: false,
            fragment_offset: FragmentOffset::FIRST,
            time_to_live: drawn.time_to_live.max(2),
            source: ipv4(2),
            destination: FAR,
            ..drawn
        };
        let mut bytes = packet(&header, b"four");
        if random.below(2) == 0 {
            // The reserved bit, with a checksum that counts it.
            let was = Sum::of(&bytes[6..8]);
            bytes[6] |= 0x80;
            let checksum = Sum::update(u16::from_be_bytes([bytes[10], bytes[11]]), was, Sum::of(&bytes[6..8]));
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        arrive(&mut router, &bytes);
        let sent = std::mem::take(&mut router.sent);
        let (passed, _) = open_packet(&sent[0].1);
        assert_eq!(passed.time_to_live, header.time_to_live - 1);
    }
}

#[test]
fn a_packet_without_hops_left_is_sent_back_as_an_error() {
    let mut router = router();
    for hops in [0, 1] {
        let packet = packet(&Ipv4Header { time_to_live: hops, ..header(4) }, b"late");
        arrive(&mut router, &packet);
        assert_eq!(error(&mut router), Some((IcmpKind::TIME_EXCEEDED.0, 0, 0, packet)));
    }
    assert_eq!(router.drops.of(&EXPIRED), 2);
    let fragment = Ipv4Header { time_to_live: 1, more_fragments: true, ..header(8) };
    arrive(&mut router, &packet(&fragment, &[1; 8]));
    assert_eq!(error(&mut router).unwrap().1, 0, "in transit, although it is a fragment");
}

#[test]
fn a_packet_for_a_neighbour_that_does_not_answer_is_unreachable_and_only_its_sender_is_told() {
    // RFC 1812, section 5.2.7.1.
    let mut router = router();
    let to = Ipv4Addr::new(10, 0, 1, 77);
    let lost = packet(&Ipv4Header { destination: to, ..header(4) }, b"lost");
    arrive(&mut router, &lost);
    router.sent.clear();
    for second in 1..=3 {
        router.at(Instant::ZERO + Duration::from_secs(second));
    }
    router.sent.retain(|(_, frame)| open_frame(frame).0.kind == EtherType::IPV4);
    let (kind, code, _, quote) = error(&mut router).expect("the sender is told");
    assert_eq!((kind, code), (IcmpKind::UNREACHABLE.0, 1));
    assert_eq!(quote, packet(&Ipv4Header { time_to_live: 63, destination: to, ..header(4) }, b"lost"));
    // What the router itself had sent has no sender to be told.
    let own = packet(&Ipv4Header { source: ipv4(1), ..header(4) }, b"ours");
    let undeliverable = xylem_core::Undeliverable { quote: own, broadcast: false };
    router.offer(Control::Undeliverable(NetworkErrorKind::HostUnreachable, Box::new(undeliverable)));
    assert_eq!((router.sent.len(), router.drops.of(&linker::NO_WAY)), (0, 0));
}

#[test]
fn a_packet_nobody_has_a_route_for_is_unreachable() {
    let mut router = router();
    arrive(&mut router, &packet(&Ipv4Header { destination: Ipv4Addr::new(192, 168, 0, 1), ..header(4) }, b"lost"));
    assert_eq!(error(&mut router).map(|error| (error.0, error.1)), Some((3, 0)));
    assert_eq!(router.drops.of(&NO_ROUTE), 1);
}

#[test]
fn too_large_and_not_to_be_cut_is_answered_with_the_next_links_size() {
    let mut router = router_with(|setup| setup.ipv4.interfaces[1].mtu = 600);
    let whole = packet(&Ipv4Header { dont_fragment: true, ..header(581) }, &noise(581, 1));
    arrive(&mut router, &whole);
    let (kind, code, mtu, quote) = error(&mut router).unwrap();
    assert_eq!((kind, code, mtu), (3, 4, 600));
    assert!(quote == whole[..548], "as much as fits an error of 576 bytes");
    arrive(&mut router, &packet(&Ipv4Header { dont_fragment: true, ..header(580) }, &noise(580, 1)));
    assert_eq!(router.sent[0].0, 1, "what fits goes on");
}

#[test]
fn what_is_cut_on_the_way_is_the_same_at_its_end() {
    let mut router = router_with(|setup| setup.ipv4.interfaces[1].mtu = 300);
    let mut far = Host::new(Setup::links(vec![station(9, 1)]));
    let enable = far.enable(far.udp, wild(7)).unwrap();
    for size in [0, 200, 263, 264, 265, 272, 1000, 1472] {
        let payload = noise(size, size as u64);
        let length = 8 + payload.len();
        let message = {
            use xylem_wire::{Port, UdpHeader};
            let header = UdpHeader { source: Port(9), destination: Port(7), length: length as u16, checksum: 0 };
            let checksum = header.checksum_to_send(ip(2), FAR.into(), Sum::of(&payload));
            with_header(&UdpHeader { checksum, ..header }, &payload)
        };
        let header = Ipv4Header { protocol: IpProtocol::UDP, identification: size as u16, ..header(length) };
        // Once whole, and once as two fragments that are cut again.
        let half = (length / 2 / 8 * 8).max(8);
        let fragments = [(0, half, true), (half, length, false)].map(|(from, to, more_fragments)| {
            let header = Ipv4Header {
                identification: header.identification | 0x8000,
                fragment_offset: FragmentOffset::of_bytes(from).unwrap(),
                more_fragments,
                total_length: (20 + to - from) as u16,
                ..header
            };
            packet(&header, &message[from..to])
        });
        let whole = packet(&header, &message);
        let packets = if length > 8 {
            vec![whole, fragments[1].clone(), fragments[0].clone()]
        } else {
            vec![whole.clone(), whole]
        };
        packets.iter().for_each(|packet| arrive(&mut router, packet));
        for (_, frame) in std::mem::take(&mut router.sent) {
            let (header, payload) = open_packet(&frame);
            assert!(payload.len() + 20 <= 300 && header.time_to_live == 63);
            far.receive(0, &frame);
        }
        let delivered = bytes(&std::mem::take(&mut far.listening[enable].delivered));
        assert!(delivered == [payload.clone(), payload], "{size} bytes: {:?}", far.drops);
    }
}

#[test]
fn fragments_repeat_the_options_that_ask_for_it() {
    let mut router = router_with(|setup| setup.ipv4.interfaces[1].mtu = 300);
    // Record route stays with the first; the router alert goes with all.
    let options = [7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0, 0];
    arrive(&mut router, &packet_with(&header(0), &options, &noise(900, 1)));
    let sent = std::mem::take(&mut router.sent);
    let seen: Vec<Vec<u8>> = sent
        .iter()
        .map(|(_, frame)| {
            let (header, _) = open_packet(frame);
            frame[34..14 + header.header_length()].to_vec()
        })
        .collect();
    assert_eq!(seen[0], options);
    assert!(seen.len() > 3 && seen[1..].iter().all(|options| *options == [148, 4, 0, 0]));
    assert!(sent.iter().flat_map(|(_, frame)| open_packet(frame).1.to_vec()).eq(noise(900, 1)));
}

#[test]
fn what_is_not_for_one_other_host_is_not_passed_on() {
    let mut router = router();
    let everybody = xylem_wire::EthernetAddress::BROADCAST;
    router.receive(0, &frame(mac(2), everybody, EtherType::IPV4, &packet(&header(4), b"four")));
    for destination in ["224.0.0.9", "127.0.0.1", "240.0.0.1", "0.0.0.0"] {
        arrive(&mut router, &packet(&Ipv4Header { destination: destination.parse().unwrap(), ..header(4) }, b"four"));
    }
    assert_eq!((router.drops.of(&NOT_FORWARDED), router.sent.len()), (5, 0));
    // Everybody on a network of ours is not reached through us (RFC 2644).
    arrive(&mut router, &packet(&Ipv4Header { destination: Ipv4Addr::new(10, 0, 1, 255), ..header(4) }, b"four"));
    assert_eq!((router.drops.of(&linker::NO_UPPER), router.sent.len()), (1, 0));
}

#[test]
fn a_host_passes_nothing_on() {
    let mut host = router_with(|setup| setup.ipv4.forwarding = false);
    arrive(&mut host, &packet(&header(4), b"four"));
    assert_eq!((host.drops.of(&NOT_OURS), host.sent.len()), (1, 0));
}

#[test]
fn a_neighbour_on_the_other_link_is_asked_for_there() {
    let mut router = router();
    let unknown = Ipv4Addr::new(10, 0, 1, 77);
    arrive(&mut router, &packet(&Ipv4Header { destination: unknown, ..header(4) }, b"four"));
    let sent = std::mem::take(&mut router.sent);
    assert_eq!((sent.len(), sent[0].0), (1, 1), "one question, on the second link");
    assert_eq!(open_frame(&sent[0].1).0.kind, EtherType::ARP);
}
