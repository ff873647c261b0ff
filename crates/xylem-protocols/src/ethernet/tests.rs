//! Ethernet's rules: whose frames are taken, and what becomes of messages while a neighbour is looked for.

use super::*;
use crate::testing::*;
use std::net::{IpAddr, Ipv4Addr};
use xylem_core::{
    Answer, Control, Duration, Event, Handled, Instant, Message, OpenError, Part, Participants, drop::linker,
};
use xylem_wire::{EtherType, EthernetAddress};

/// A path of an Ethernet session alone, towards that part, carrying a type for experiments.
fn towards(host: &mut Host, remote: Part) -> usize {
    let participants = Participants::new([], [remote]);
    host.open_numbered(host.ethernet, u32::from(EtherType::EXPERIMENT_1.0), participants, None).unwrap()
}

fn neighbour(number: u8) -> Part {
    Part::Neighbour(ip(number))
}

fn push(host: &mut Host, path: usize, payload: &[u8]) {
    assert!(host.push(path, Message::from_bytes(payload)));
}

/// The payloads for experiments among the frames sent, with their destinations.
fn sent(host: &mut Host) -> Vec<(EthernetAddress, Vec<u8>)> {
    let frames = host.frames();
    let ours =
        frames.iter().map(|frame| open_frame(frame)).filter(|(header, _)| header.kind == EtherType::EXPERIMENT_1);
    ours.map(|(header, payload)| (header.destination, payload.to_vec())).collect()
}

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

#[test]
fn frames_are_taken_if_they_are_for_us_or_for_many() {
    let mut host = Host::new(Setup::host(1));
    let unknown = EtherType::EXPERIMENT_2;
    let arrives = |host: &mut Host, from, to, kind: EtherType| host.receive(0, &frame(from, to, kind, &[0; 46]));
    let group = EthernetAddress::for_ipv4_group(Ipv4Addr::new(224, 0, 0, 1));
    for to in [mac(1), EthernetAddress::BROADCAST, group] {
        arrives(&mut host, mac(2), to, unknown);
    }
    assert_eq!(host.drops.of(&linker::NO_UPPER), 3, "taken, and nobody stands there");
    arrives(&mut host, mac(2), mac(3), unknown);
    arrives(&mut host, group, mac(1), unknown);
    arrives(&mut host, mac(2), mac(1), EtherType(46));
    host.receive(0, &[0; 13]);
    host.receive(0, &[]);
    let drops = [&NOT_OURS, &GROUP_SOURCE, &LENGTH, &SHORT].map(|reason| host.drops.of(reason));
    assert_eq!(drops, [1, 1, 1, 2]);
}

#[test]
fn a_known_neighbour_is_sent_to_at_its_address_wherever_it_moves() {
    let mut host = Host::new(Setup::host(1));
    host.knows(2);
    let path = towards(&mut host, neighbour(2));
    push(&mut host, path, b"one");
    host.pages[0].find(ip(2)).unwrap().set(Some(mac(77)));
    push(&mut host, path, b"two");
    assert_eq!(sent(&mut host), [(mac(2), b"one".to_vec()), (mac(77), b"two".to_vec())]);
}

#[test]
fn groups_and_everybody_are_found_without_asking() {
    let mut host = Host::new(Setup::host(1));
    for (to, address) in [
        (Ipv4Addr::BROADCAST, EthernetAddress::BROADCAST),
        (Ipv4Addr::new(239, 129, 2, 3), EthernetAddress([1, 0, 0x5e, 1, 2, 3])),
    ] {
        let path = towards(&mut host, Part::Neighbour(IpAddr::V4(to)));
        push(&mut host, path, b"all");
        assert_eq!(sent(&mut host), [(address, b"all".to_vec())]);
    }
    let path = towards(&mut host, Part::Link(mac(9)));
    push(&mut host, path, b"you");
    assert_eq!(sent(&mut host), [(mac(9), b"you".to_vec())]);
}

#[test]
fn three_messages_wait_for_a_neighbour_and_go_in_order() {
    let mut host = Host::new(Setup::host(1));
    let path = towards(&mut host, neighbour(2));
    for payload in [b"a", b"b", b"c", b"d", b"e"] {
        push(&mut host, path, payload);
    }
    let asked = host.frames();
    assert_eq!(asked.len(), 1, "one question for them all");
    assert_eq!(open_frame(&asked[0]).0.kind, EtherType::ARP);
    assert_eq!(host.drops.of(&WAITING_FULL), 2);
    host.receive(0, &answer_to_us());
    let waited = sent(&mut host);
    assert_eq!(waited, [b"c", b"d", b"e"].map(|payload| (mac(2), payload.to_vec())));
    push(&mut host, path, b"f");
    assert_eq!(sent(&mut host), [(mac(2), b"f".to_vec())]);
}

/// Host 2 answers host 1's question for it.
fn answer_to_us() -> Vec<u8> {
    use xylem_wire::{ArpHeader, ArpOperation};
    let answer = ArpHeader {
        operation: ArpOperation::REPLY,
        sender_hardware: mac(2),
        sender_protocol: ipv4(2),
        target_hardware: mac(1),
        target_protocol: ipv4(1),
    };
    frame(mac(2), mac(1), EtherType::ARP, &with_header(&answer, &[]))
}

#[test]
fn what_waited_goes_before_what_comes_even_if_the_answer_is_late() {
    let mut host = Host::new(Setup::host(1));
    let path = towards(&mut host, neighbour(2));
    push(&mut host, path, b"first");
    host.knows(2);
    push(&mut host, path, b"second");
    assert_eq!(sent(&mut host), [(mac(2), b"first".to_vec()), (mac(2), b"second".to_vec())]);
    push(&mut host, path, b"third");
    let answer = Answer::Neighbour { address: ip(2), found: true };
    assert_eq!(host.control(path, Control::Answer(answer)), Handled::Yes);
    assert_eq!(sent(&mut host).len(), 1, "what was sent is not sent again");
}

#[test]
fn a_silent_neighbour_costs_what_waited_and_those_above_learn_it() {
    let mut host = Host::new(Setup::host(1));
    let path = towards(&mut host, neighbour(2));
    push(&mut host, path, b"lost");
    for second in 1..=3 {
        host.at(seconds(second));
    }
    assert_eq!(host.drops.of(&NO_NEIGHBOUR), 1);
    let told = &host.paths[path].told;
    assert!(told.contains(&Control::Event(Event::Unreachable)), "{told:?}");
    assert!(told.contains(&Control::Answer(Answer::Neighbour { address: ip(2), found: false })), "{told:?}");
    assert_eq!(host.paths[path].path.deadline(), None);
}

#[test]
fn the_answer_about_another_neighbour_is_not_ours() {
    let mut host = Host::new(Setup::host(1));
    let path = towards(&mut host, neighbour(2));
    push(&mut host, path, b"waits");
    let other = Answer::Neighbour { address: ip(3), found: false };
    assert_eq!(host.control(path, Control::Answer(other)), Handled::No);
    assert_eq!(host.drops.total(), 0);
}

#[test]
fn a_session_asks_again_ever_more_seldom_and_gives_up_in_the_end() {
    use super::waiting::Waiting;
    use xylem_core::{Neighbours, NetworkErrorKind, Outbox, Pool, Random, Undeliverable};
    let page = Neighbours::default();
    let mut waiting = Waiting::new(ip(2), page.entry(ip(2)).unwrap());
    let mut out = Outbox::new(Instant::ZERO, Random::seeded(1), Pool::new(1, 1));
    waiting.keep(Message::from_bytes(b"waits"), &mut out);
    let (mut asked, mut reported) = (Vec::new(), Vec::new());
    loop {
        let question = |control: &Control| matches!(control, Control::Question(..));
        let (questions, reports): (Vec<_>, Vec<_>) = out.drain_advice().partition(question);
        asked.extend(questions.iter().map(|_| out_seconds(&waiting)));
        reported.extend(reports);
        let Some(deadline) = waiting.deadline() else { break };
        out.now = deadline;
        waiting.timeout(&mut out);
    }
    assert_eq!(asked, [1, 3, 7, 15], "nobody answered: asked four times, each wait twice the last");
    assert_eq!(out.drain_dropped().count(), 1);
    assert_eq!(out.drain_told().collect::<Vec<_>>(), [Control::Event(Event::Unreachable)]);
    let undeliverable = Undeliverable { quote: b"waits".to_vec(), broadcast: false };
    assert_eq!(reported, [Control::Undeliverable(NetworkErrorKind::HostUnreachable, Box::new(undeliverable))]);
}

fn out_seconds(waiting: &super::waiting::Waiting) -> u64 {
    waiting.deadline().unwrap().as_millis() / 1000
}

#[test]
fn a_path_closed_while_messages_wait_ends_when_they_are_gone() {
    for answered in [true, false] {
        let mut host = Host::new(Setup::host(1));
        let path = towards(&mut host, neighbour(2));
        push(&mut host, path, b"last words");
        host.frames();
        host.close(path);
        assert!(!host.paths[path].finished);
        if answered {
            host.receive(0, &answer_to_us());
            assert_eq!(sent(&mut host), [(mac(2), b"last words".to_vec())]);
        } else {
            (1..=3).for_each(|second| host.at(seconds(second)));
        }
        assert!(host.paths[path].finished, "answered: {answered}");
    }
    let mut host = Host::new(Setup::host(1));
    let path = towards(&mut host, neighbour(2));
    host.close(path);
    assert!(host.paths[path].finished, "nothing waited");
}

#[test]
fn an_open_says_what_it_misses() {
    let mut host = Host::new(Setup::host(1));
    let open = |host: &mut Host, number, participants| host.open_numbered(host.ethernet, number, participants, None);
    let nobody = Participants::default();
    let expected = "a link address or a neighbour";
    let missing = OpenError::MissingParticipant { protocol: "ethernet", expected };
    assert_eq!(open(&mut host, 0x88b5, nobody), Err(missing));
    for number in [0, 1500, 0x1_0000] {
        let expected = "an upper protocol with a frame type";
        let missing = OpenError::MissingParticipant { protocol: "ethernet", expected };
        assert_eq!(open(&mut host, number, Participants::new([], [neighbour(2)])), Err(missing));
    }
}

#[test]
fn a_frame_of_another_type_is_not_a_paths() {
    let mut host = Host::new(Setup::host(1));
    let path = towards(&mut host, Part::Link(mac(2)));
    let mut out = xylem_core::Outbox::new(Instant::ZERO, host.random.child(), xylem_core::Pool::new(1, 1));
    for kind in [EtherType::EXPERIMENT_1, EtherType::EXPERIMENT_2] {
        let mut message = Message::from_bytes(&frame(mac(2), mac(1), kind, b"payload"));
        host.paths[path].path.pop(&mut message, &mut out);
    }
    assert_eq!(out.drain_up().map(|message| message.to_vec()).collect::<Vec<_>>(), [b"payload"]);
    assert_eq!(out.drain_dropped().collect::<Vec<_>>(), [&OTHER_TYPE]);
}
