//! ARP's rules, by virtual time: asking, answering, believing, forgetting, defending.

use super::*;
use crate::testing::*;
use std::net::{IpAddr, Ipv4Addr};
use xylem_core::{Answer, Control, Duration, Instant};
use xylem_wire::{ArpHeader, ArpOperation, EtherType, EthernetAddress, Header};

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

fn host() -> Host {
    Host::new(Setup::host(1))
}

/// An ARP packet in a frame, from the sender to everybody.
fn arp(operation: ArpOperation, sender: (EthernetAddress, Ipv4Addr), target: Ipv4Addr) -> Vec<u8> {
    let header = ArpHeader {
        operation,
        sender_hardware: sender.0,
        sender_protocol: sender.1,
        target_hardware: EthernetAddress::UNSPECIFIED,
        target_protocol: target,
    };
    frame(sender.0, EthernetAddress::BROADCAST, EtherType::ARP, &with_header(&header, &[0; 18]))
}

/// The ARP packets sent since the last look, each with the address of its frame.
fn sent(host: &mut Host) -> Vec<(EthernetAddress, ArpHeader)> {
    let frames = host.frames();
    let opened = frames.iter().map(|frame| open_frame(frame)).filter(|(link, _)| link.kind == EtherType::ARP);
    opened.map(|(link, packet)| (link.destination, ArpHeader::parse(packet).unwrap())).collect()
}

/// Whom the first link's page has a link address for.
fn known(host: &Host) -> Vec<(IpAddr, EthernetAddress)> {
    host.pages[0].all().into_iter().filter_map(|(ip, mac)| mac.map(|mac| (ip, mac))).collect()
}

/// A question for host `number`, whose entry somebody holds.
fn ask(host: &mut Host, number: u8) -> Option<Answer> {
    host.pages[0].entry(ip(number)).unwrap();
    host.ask(ipv4(number))
}

fn found(number: u8, found: bool) -> Answer {
    Answer::Neighbour { address: ip(number), found }
}

#[test]
fn requests_for_us_are_answered_to_whoever_asked() {
    let mut host = host();
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), ipv4(2)), ipv4(1)));
    let answers = sent(&mut host);
    let expected = ArpHeader {
        operation: ArpOperation::REPLY,
        sender_hardware: mac(1),
        sender_protocol: ipv4(1),
        target_hardware: mac(2),
        target_protocol: ipv4(2),
    };
    assert_eq!(answers, [(mac(2), expected)]);
    assert_eq!(known(&host), [(ip(2), mac(2))], "who asks us will talk to us");
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), ipv4(2)), ipv4(9)));
    assert_eq!(sent(&mut host), []);
}

#[test]
fn a_probe_for_our_address_is_answered_and_teaches_nothing() {
    let mut host = host();
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), Ipv4Addr::UNSPECIFIED), ipv4(1)));
    assert_eq!(sent(&mut host).len(), 1);
    assert_eq!(known(&host), []);
}

#[test]
fn strangers_are_not_learnt_from_what_is_not_for_us() {
    let mut host = host();
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), ipv4(2)), ipv4(3)));
    host.receive(0, &arp(ArpOperation::REPLY, (mac(4), ipv4(4)), ipv4(1)));
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(5), ipv4(5)), ipv4(5)));
    assert_eq!(known(&host), []);
    assert_eq!(ask(&mut host, 4), None, "nothing was known of it");
}

#[test]
fn three_requests_a_second_apart_then_no() {
    let mut host = host();
    assert_eq!(ask(&mut host, 2), None);
    assert_eq!(ask(&mut host, 2), None, "asked again, but not on the wire");
    let mut times = vec![(0, sent(&mut host).len())];
    for time in (100..=3000).step_by(100) {
        host.at(at(time));
        times.extend(Some((time, sent(&mut host).len())).filter(|(_, count)| *count > 0));
    }
    assert_eq!(times, [(0, 1), (1000, 1), (2000, 1)]);
    assert_eq!(host.told, [Control::Answer(found(2, false))]);

    assert_eq!(ask(&mut host, 2), Some(found(2, false)), "its silence is remembered");
    assert_eq!(sent(&mut host), []);
    host.at(at(6000));
    assert_eq!(ask(&mut host, 2), None);
    assert_eq!(sent(&mut host).len(), 1, "and forgotten in time");
}

#[test]
fn an_answer_is_told_and_known() {
    let mut host = host();
    assert_eq!(ask(&mut host, 2), None);
    let (to, request) = sent(&mut host)[0];
    assert_eq!((to, request.sender_protocol, request.target_protocol), (EthernetAddress::BROADCAST, ipv4(1), ipv4(2)));
    host.receive(0, &arp(ArpOperation::REPLY, (mac(2), ipv4(2)), ipv4(1)));
    assert_eq!(host.told, [Control::Answer(found(2, true))]);
    assert_eq!(known(&host), [(ip(2), mac(2))]);
    assert_eq!(ask(&mut host, 2), Some(found(2, true)));
    assert_eq!(sent(&mut host), []);
}

#[test]
fn a_page_that_has_forgotten_is_written_again() {
    let mut host = host();
    ask(&mut host, 2);
    host.receive(0, &arp(ArpOperation::REPLY, (mac(2), ipv4(2)), ipv4(1)));
    host.pages[0].remove(ip(2));
    let entry = host.pages[0].entry(ip(2)).unwrap();
    assert_eq!(entry.link_address(), None);
    assert_eq!(ask(&mut host, 2), Some(found(2, true)));
    assert_eq!(entry.link_address(), Some(mac(2)));
}

#[test]
fn questions_about_another_page_and_about_ourselves() {
    let mut host = host();
    assert_eq!(host.ask(ipv4(2)), None);
    assert_eq!(sent(&mut host), [], "nobody on this link has asked for it");
    assert_eq!(ask(&mut host, 1), Some(found(1, false)), "we are not our neighbour");
}

#[test]
fn a_quiet_neighbour_is_probed_while_it_is_used_and_then_forgotten() {
    let mut host = host();
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), ipv4(2)), ipv4(1)));
    sent(&mut host);
    let mut probes = Vec::new();
    for time in (1000..=64_000).step_by(500) {
        host.at(at(time));
        probes.extend(sent(&mut host).into_iter().map(|(to, _)| (time, to)));
        assert_eq!(known(&host).is_empty(), time >= 63_000, "at {time} ms");
    }
    assert_eq!(probes, [(60_000, mac(2)), (61_000, mac(2)), (62_000, EthernetAddress::BROADCAST)]);
    assert!(host.told.iter().all(|control| *control == Control::Answer(found(2, true))), "nobody waited for it");
}

#[test]
fn a_sign_of_life_saves_a_neighbour() {
    let mut host = host();
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), ipv4(2)), ipv4(1)));
    host.at(at(60_500));
    assert_eq!(sent(&mut host).len(), 2, "the answer to its request, and the probe");
    host.receive(0, &arp(ArpOperation::REPLY, (mac(2), ipv4(2)), ipv4(1)));
    host.at(at(120_000));
    assert_eq!((sent(&mut host), known(&host)), (vec![], vec![(ip(2), mac(2))]));
    // Signs of life before it goes quiet count too.
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(2), ipv4(2)), ipv4(7)));
    host.at(at(179_999));
    assert_eq!(sent(&mut host), []);
    host.at(at(180_000));
    assert_eq!(sent(&mut host).len(), 1);
}

#[test]
fn a_neighbour_may_move_but_not_within_a_second() {
    let mut host = host();
    ask(&mut host, 2);
    host.receive(0, &arp(ArpOperation::REPLY, (mac(2), ipv4(2)), ipv4(1)));
    host.receive(0, &arp(ArpOperation::REPLY, (mac(66), ipv4(2)), ipv4(1)));
    assert_eq!((known(&host), host.drops.of(&UNSETTLED)), (vec![(ip(2), mac(2))], 1));
    host.at(at(1000));
    host.receive(0, &arp(ArpOperation::REQUEST, (mac(66), ipv4(2)), ipv4(2)));
    assert_eq!(known(&host), [(ip(2), mac(66))], "an announcement moves it");
}

#[test]
fn our_addresses_are_announced_at_the_start_and_once_more() {
    let mut host = Host::new(Setup { arp: |config| config, ..Setup::host(1) });
    let mut times = Vec::new();
    for time in (0..=10_000).step_by(500) {
        host.at(at(time));
        for (to, packet) in sent(&mut host) {
            assert_eq!((to, packet.operation), (EthernetAddress::BROADCAST, ArpOperation::REQUEST));
            assert_eq!((packet.sender_protocol, packet.target_protocol), (ipv4(1), ipv4(1)));
            times.push(time);
        }
    }
    assert_eq!(times, [0, 2000]);
}

#[test]
fn one_who_claims_our_address_is_told_at_most_every_ten_seconds() {
    let mut host = host();
    let claim = arp(ArpOperation::REPLY, (mac(66), ipv4(1)), ipv4(9));
    let mut defences = Vec::new();
    for time in (0..=25_000).step_by(1000) {
        host.at(at(time));
        host.receive(0, &claim);
        defences.extend(sent(&mut host).iter().map(|(_, packet)| (time, packet.sender_hardware)));
    }
    assert_eq!(defences, [(0, mac(1)), (10_000, mac(1)), (20_000, mac(1))]);
    assert_eq!(host.drops.of(&CONFLICT), 26);
    assert_eq!(known(&host), []);
}

#[test]
fn what_cannot_be_a_neighbours_word_is_dropped() {
    let mut host = host();
    let request = ArpOperation::REQUEST;
    host.receive(0, &arp(ArpOperation(3), (mac(2), ipv4(2)), ipv4(1)));
    host.receive(0, &arp(request, (EthernetAddress::UNSPECIFIED, ipv4(2)), ipv4(1)));
    host.receive(0, &arp(request, (mac(1), ipv4(2)), ipv4(1)));
    for sender in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 9), Ipv4Addr::LOCALHOST] {
        host.receive(0, &arp(request, (mac(2), sender), ipv4(1)));
    }
    let whole = arp(request, (mac(2), ipv4(2)), ipv4(1));
    (14..14 + ArpHeader::LEN).for_each(|length| host.receive(0, &whole[..length]));
    let counted = [&OTHER_OPERATION, &BAD_HARDWARE, &ECHO, &BAD_SENDER, &MALFORMED].map(|why| host.drops.of(why));
    assert_eq!(counted, [1, 1, 1, 3, ArpHeader::LEN as u64]);
    assert_eq!((sent(&mut host), known(&host)), (vec![], vec![]));
}

#[test]
fn strangers_push_nobody_out_and_questions_push_out_the_dispensable() {
    let arp_setup = |config| ArpConfig { announcements: 0, entries: 3, ..config };
    let mut host = Host::new(Setup { arp: arp_setup, ..Setup::host(1) });
    for number in 2..=6 {
        host.at(at(u64::from(number)));
        host.receive(0, &arp(ArpOperation::REQUEST, (mac(number), ipv4(number)), ipv4(1)));
    }
    let three = [2, 3, 4].map(|number| (ip(number), mac(number)));
    assert_eq!(known(&host), three, "the table is full; strangers wait until they are wanted");
    assert_eq!(ask(&mut host, 9), None);
    assert_eq!(known(&host), three[1..], "the one quiet for longest has made room");
    assert_eq!(ask(&mut host, 10), None);
    assert_eq!(ask(&mut host, 11), Some(found(11, false)), "half of the entries are being asked for");
    assert_eq!(known(&host), three[2..], "questions to hosts that are not there left one that is");
}

#[test]
fn many_who_are_due_at_once_are_served_in_portions() {
    let mut host = host();
    for low in 0..100 {
        let address = Ipv4Addr::new(10, 0, 0, 100 + low);
        host.pages[0].entry(address.into()).unwrap();
        assert_eq!(host.ask(address), None);
    }
    assert_eq!(sent(&mut host).len(), 100);
    host.at(at(1000));
    assert_eq!(sent(&mut host).len(), 100);
    host.at(at(2000));
    host.at(at(3000));
    assert_eq!(host.told.len(), 100);
}

#[test]
fn random_packets_never_harm() {
    let mut random = xylem_core::Random::seeded(5);
    let mut host = host();
    for round in 0..20_000 {
        let mut packet = with_header(&ArpHeader::generate(&mut || random.next()), &[]);
        if random.below(4) == 0 {
            let place = random.below(packet.len() as u64) as usize;
            packet[place] ^= 1 << random.below(8);
        }
        host.receive(0, &frame(mac(2), mac(1), EtherType::ARP, &packet));
        if round % 16 == 0 {
            host.at(at(round * 10));
        }
        host.sent.clear();
    }
    assert!(known(&host).len() <= 1024);
}
