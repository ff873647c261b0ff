//! Packet sockets on the two ends of a veth pair: what is sent arrives as it was, what is lost is counted, and what
//! cannot be opened says why.

use super::*;
use crate::namespace::Namespace;
use crate::poll::{Source, wait};
use crate::system::namespaces::tests::give_up_capabilities;
use crate::system::packet::Tag;
use crate::{testing, veth};
use std::time::Duration;
use xylem_wire::{EtherType, EthernetAddress, EthernetHeader, Header, VnetHeader};

const VNET: [u8; VnetHeader::LEN] = [0; VnetHeader::LEN];

/// Two ends of a cable, each with packet sockets; gone with the namespace.
fn ends(test: &str, left: PacketOptions, right: PacketOptions) -> Option<(Namespace, [PacketSocket; 2])> {
    let namespace = testing::quiet_namespace(test)?;
    let (one, other) = veth::join((&namespace, "left"), (&namespace, "right")).expect("root may");
    testing::plug_in([&one, &other]);
    let open = || {
        [("left", left), ("right", right)]
            .map(|(name, options)| PacketSocket::open(name, options).unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    let sockets = namespace.enter(open).expect("root enters");
    Some((namespace, sockets))
}

/// A frame of an experiment's kind, so that it is told from what the kernel says on a new cable.
fn frame(number: u32, bytes: usize) -> Vec<u8> {
    let header = EthernetHeader {
        destination: EthernetAddress([2, 0, 0, 0, 0, 9]),
        source: EthernetAddress([2, 0, 0, 0, 0, 8]),
        kind: EtherType::EXPERIMENT_1,
    };
    let mut frame = vec![0; bytes];
    header.build(&mut frame);
    frame[EthernetHeader::LEN..EthernetHeader::LEN + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

fn send(socket: &PacketSocket, frame: &[u8]) -> bool {
    socket.transmit(&[IoSlice::new(&VNET), IoSlice::new(frame)])
}

/// A frame and its tag.
type Taken = (Vec<u8>, Option<Tag>);

/// What stands in a queue: frames of the experiment, their tags.
fn take(socket: &PacketSocket, queue: usize) -> Vec<Taken> {
    taken_if(socket, queue, |frame| EthernetHeader::parse(frame).expect("a frame").kind == EtherType::EXPERIMENT_1)
}

/// What stands in a queue and is wanted.
fn taken_if(socket: &PacketSocket, queue: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<Taken> {
    let mut taken = Vec::new();
    loop {
        let mut bytes = vec![[0; 2000]; 7];
        let mut parts: Vec<[IoSliceMut<'_>; 1]> = bytes.iter_mut().map(|room| [IoSliceMut::new(room)]).collect();
        let mut rooms: Vec<Room<'_, '_>> = parts.iter_mut().map(|parts| Room::new(parts)).collect();
        let got = socket.receive(queue, &mut rooms).expect("the interface is up");
        let arrivals: Vec<_> = rooms[..got].iter().map(|room| (room.length, room.whole, room.tag)).collect();
        for (room, (length, whole, tag)) in bytes.iter().zip(arrivals) {
            let frame = room[VnetHeader::LEN..length].to_vec();
            if wanted(&frame) {
                assert!(whole, "a frame of {length} bytes was cut");
                taken.push((frame, tag));
            }
        }
        if got < 7 {
            return taken;
        }
    }
}

/// The next `count` frames of the experiment; the kernel may take its time to carry them across.
fn await_frames(socket: &PacketSocket, count: usize) -> Vec<Taken> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let ready = wait(&mut [Source::readable(socket)], Some(Duration::from_secs(10))).expect("poll works");
        assert_eq!(ready, 1, "{} of {count} frames came", taken.len());
        for queue in 0..socket.options().queues {
            taken.extend(take(socket, queue));
        }
    }
    taken
}

#[test]
fn frames_arrive_as_they_were_sent_and_never_at_their_sender() {
    let test = "frames_arrive_as_they_were_sent_and_never_at_their_sender";
    let options = PacketOptions::default();
    let Some((_namespace, [left, right])) = ends(test, options, PacketOptions { bypass: true, ..options }) else {
        return;
    };
    assert!(left.notes().is_empty(), "{:?}", left.notes());
    // A veth does both, as ethtool -k shows.
    assert_eq!(left.offloads(), InterfaceOffloads { checksum: true, tcp_segments: true });
    let frames: Vec<Vec<u8>> = (0..100).map(|number| frame(number, 60 + 14 * number as usize)).collect();
    let pairs: Vec<[IoSlice<'_>; 2]> = frames.iter().map(|frame| [IoSlice::new(&VNET), IoSlice::new(frame)]).collect();
    assert_eq!(left.transmit_all(&pairs), 100);
    assert!(send(&right, &frame(7, 1514)), "past the queueing discipline");
    let arrived: Vec<Vec<u8>> = await_frames(&right, 100).into_iter().map(|(frame, _)| frame).collect();
    assert!(arrived == frames, "100 frames arrived as {}", arrived.len());
    assert_eq!(await_frames(&left, 1), [(frame(7, 1514), None)], "only what the other end sent");
    assert_eq!((left.tail_drops(), right.tail_drops()), (0, 0));
    // Longer than the interface takes: that one is gone, and those around it are not.
    let (short, long) = (frame(1, 100), frame(2, 3000));
    let mixed = [&short, &long, &short].map(|frame| [IoSlice::new(&VNET), IoSlice::new(frame)]);
    assert_eq!(left.transmit_all(&mixed), 2);
    assert_eq!(await_frames(&right, 2).len(), 2);
}

#[test]
fn a_full_receive_buffer_is_counted_to_the_frame() {
    let test = "a_full_receive_buffer_is_counted_to_the_frame";
    let small = PacketOptions { receive_bytes: 20_000, ..PacketOptions::default() };
    let Some((_namespace, [left, right])) = ends(test, PacketOptions::default(), small) else {
        return;
    };
    for number in 0..500 {
        assert!(send(&left, &frame(number, 1000)));
    }
    let (mut arrived, mut lost, begun) = (0, 0, std::time::Instant::now());
    while arrived + lost < 500 && begun.elapsed() < Duration::from_secs(10) {
        lost = right.tail_drops();
        // Not before all have come to the buffer, which would make room.
        arrived = if lost >= 300 { arrived + take(&right, 0).len() as u64 } else { 0 };
    }
    lost = right.tail_drops();
    // The kernel may lose a word of its own on a new cable as well.
    assert!(lost > 300 && (500..510).contains(&(arrived + lost)), "{arrived} arrived, {lost} were lost");
    assert_eq!(right.tail_drops(), lost, "the count stays though the kernel's begins anew");
}

#[test]
fn a_vlan_tag_is_told_beside_the_frame() {
    let test = "a_vlan_tag_is_told_beside_the_frame";
    let options = PacketOptions::default();
    let Some((_namespace, [left, right])) = ends(test, options, options) else { return };
    let mut tagged = frame(5, 100);
    tagged.splice(12..12, [0x81, 0x00, 0x60, 0x2a]);
    assert!(send(&left, &tagged));
    assert_eq!(await_frames(&right, 1), [(frame(5, 100), Some((0x8100, 0x602a)))]);
}

#[test]
fn several_queues_share_conversations_and_get_each_frame_once() {
    let test = "several_queues_share_conversations_and_get_each_frame_once";
    let four = PacketOptions { queues: 4, ..PacketOptions::default() };
    let Some((namespace, [left, right])) = ends(test, four, four) else { return };
    // A neighbour on the same interface, whose frames the group would be shown as the machine's own.
    let neighbour = namespace.enter(|| PacketSocket::open("left", PacketOptions::default()).expect("root may"));
    let neighbour = neighbour.expect("root enters");
    // Fifty senders of datagrams, by their ports: the kernel's hash looks into IP only.
    let send_from = |port: u16, number: u16| {
        let mut frame = frame(0, 14 + 20 + 8 + 2);
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..34].copy_from_slice(&[0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[36..42].copy_from_slice(&[0, 9, 0, 10, 0, 0]);
        frame[42..].copy_from_slice(&number.to_be_bytes());
        assert!(send(if number.is_multiple_of(2) { &left } else { &neighbour }, &frame));
    };
    for number in 0..200 {
        send_from(number % 50, number);
    }
    let mut queues = vec![Vec::new(); 4];
    while queues.iter().map(Vec::len).sum::<usize>() < 200 {
        let ready = wait(&mut [Source::readable(&right)], Some(Duration::from_secs(10))).expect("poll works");
        assert_eq!(ready, 1, "frames are missing: {queues:?}");
        for (queue, frames) in queues.iter_mut().enumerate() {
            frames.extend(taken_if(&right, queue, |frame| frame.len() == 44 && frame[23] == 17));
        }
    }
    let mut numbers: Vec<u16> = Vec::new();
    let number = |(frame, _): &(Vec<u8>, _)| u16::from_be_bytes([frame[42], frame[43]]);
    queues.iter().for_each(|queue| numbers.extend(queue.iter().map(number)));
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<u16>>(), "each once");
    assert!(queues.iter().filter(|queue| !queue.is_empty()).count() > 1, "one queue got everything");
    for port in 0..50u16 {
        let of = |queue: &&Vec<(Vec<u8>, _)>| queue.iter().any(|(frame, _)| frame[34..36] == port.to_be_bytes());
        assert_eq!(queues.iter().filter(of).count(), 1, "sender {port} is in several queues");
    }
    assert!(
        (0..4).all(|queue| taken_if(&left, queue, |frame| frame.len() == 44).is_empty()),
        "what was sent came back"
    );
}

#[test]
fn what_cannot_be_opened_says_why_and_what_to_do() {
    let wrong = |name: &str, options| PacketSocket::open(name, options).expect_err(name).to_string();
    let options = PacketOptions::default();
    for (options, words) in [
        (PacketOptions { queues: 0, ..options }, "expected 1 to 64, got 0"),
        (PacketOptions { queues: 65, ..options }, "expected 1 to 64, got 65"),
        (PacketOptions { receive_bytes: usize::MAX, ..options }, "ask for less"),
    ] {
        assert!(wrong("left", options).contains(words), "{words}");
    }
    let Some(namespace) = testing::namespace("what_cannot_be_opened_says_why_and_what_to_do") else { return };
    let inside = || {
        let error = wrong("nothing", options);
        assert!(error.contains("`nothing`") && error.contains("no such interface"), "{error}");
        let error = wrong("lo", options);
        assert!(error.contains("expected an Ethernet") && error.contains("772"), "{error}");
        veth::join(
            (&Namespace::current().expect("/proc is mounted"), "left"),
            (&Namespace::current().expect("/proc is mounted"), "right"),
        )
        .expect("root may");
        give_up_capabilities().expect("everybody may give up");
        let error = wrong("left", options);
        assert!(error.contains("`left`") && error.contains("CAP_NET_RAW") && error.contains("unshare"), "{error}");
    };
    namespace.enter(inside).expect("root enters");
}

#[test]
fn the_two_ends_of_a_pair_know_each_other() {
    let test = "the_two_ends_of_a_pair_know_each_other";
    let (Some(one), Some(other)) = (testing::namespace(test), testing::namespace(test)) else { return };
    let (left, right) = veth::join((&one, "left"), (&one, "right")).expect("root may");
    assert_eq!(left.joined_here().expect("it is there"), Some(right.index()));
    let (far, near) = veth::join((&one, "far"), (&other, "near")).expect("root may");
    assert_eq!((far.joined_here().expect("it is"), near.joined_here().expect("it is")), (None, None));
}
