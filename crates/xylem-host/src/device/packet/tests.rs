//! The device on one end of a veth pair, with a bare packet socket on the other that says exactly what arrives.

use super::*;
use crate::namespace::Namespace;
use crate::packet::PacketOptions;
use crate::poll::{Source, wait};
use crate::{testing, veth};
use std::net::Ipv4Addr;
use std::time::Duration;
use xylem_core::Checksum;
use xylem_wire::{
    Ecn, EtherType, EthernetAddress, FragmentOffset, IpProtocol, Ipv4Header, LittleU16, Port, SequenceNumber, Sum,
    TcpFlags, TcpHeader,
};

/// A bare socket and a device at the ends of a cable, and what keeps the cable.
fn cable(test: &str, queues: usize) -> Option<(Namespace, PacketSocket, PacketDevice)> {
    let namespace = testing::quiet_namespace(test)?;
    let (one, other) = veth::join((&namespace, "far"), (&namespace, "near")).expect("root may");
    testing::plug_in([&one, &other]);
    let open = |name, queues| PacketSocket::open(name, PacketOptions { queues, ..PacketOptions::default() });
    let open = || (open("far", 1).expect("root may"), open("near", queues).expect("root may"));
    let (far, near) = namespace.enter(open).expect("root enters");
    Some((namespace, far, PacketDevice::new(near).expect("the interface is there")))
}

/// A TCP message with `payload` bytes, its checksum left undone.
fn message(number: u32, payload: usize) -> Vec<u8> {
    let ethernet = EthernetHeader {
        destination: EthernetAddress([2, 0, 0, 0, 0, 9]),
        source: EthernetAddress([2, 0, 0, 0, 0, 8]),
        kind: EtherType::IPV4,
    };
    let mut network = Ipv4Header {
        header_words: Ipv4Header::WORDS,
        dscp: 0,
        ecn: Ecn::NotCapable,
        total_length: (40 + payload) as u16,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: FragmentOffset::FIRST,
        time_to_live: 64,
        protocol: IpProtocol::TCP,
        checksum: 0,
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
    };
    network.checksum = network.checksum_to_send(&[]);
    let pseudo = Sum::pseudo(network.source.into(), network.destination.into(), IpProtocol::TCP, 20 + payload as u32);
    let tcp = TcpHeader {
        source: Port(1),
        destination: Port(2),
        sequence: SequenceNumber(number),
        acknowledgment: SequenceNumber(4),
        header_words: TcpHeader::WORDS,
        flags: TcpFlags::ACK,
        window: 100,
        checksum: pseudo.fold(),
        urgent: 0,
    };
    let mut frame = vec![7; 54 + payload];
    ethernet.build(&mut frame);
    network.build(&mut frame[14..]);
    tcp.build(&mut frame[34..]);
    frame
}

fn send(socket: &PacketSocket, frame: &[u8], segment_size: u16) {
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        offload: if segment_size > 0 { VnetOffload::TCP_IPV4 } else { VnetOffload::NONE },
        headers_length: LittleU16(54),
        segment_size: LittleU16(segment_size),
        checksum_start: LittleU16(34),
        checksum_offset: LittleU16(16),
    };
    let mut vnet = [0; VnetHeader::LEN];
    header.build(&mut vnet);
    assert!(socket.transmit(&[IoSlice::new(&vnet), IoSlice::new(frame)]));
}

/// The TCP messages that are there, as a stack would take them: `None` ends a look.
fn look(device: &PacketDevice, pool: &Pool) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some(mut message) = device.receive(pool) {
        if message.header::<EthernetHeader>().expect("a frame").kind == EtherType::IPV4 {
            messages.push(message);
        }
    }
    messages
}

/// The next `count` TCP messages; the kernel may take its time to carry them across.
fn await_messages(device: &PacketDevice, pool: &Pool, count: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let ready = wait(&mut [Source::readable(&device.socket)], Some(Duration::from_secs(10))).expect("poll works");
        assert_eq!(ready, 1, "{} of {count} messages came", messages.len());
        messages.extend(look(device, pool));
    }
    messages
}

#[test]
fn a_message_of_many_segments_arrives_in_one_and_says_so() {
    let Some((_namespace, far, device)) = cable("a_message_of_many_segments_arrives_in_one_and_says_so", 1) else {
        return;
    };
    let pool = Pool::new(64, 64);
    let frame = message(1, 60_000);
    send(&far, &frame, 1460);
    let [message] = &await_messages(&device, &pool, 1)[..] else { panic!("one message was sent") };
    assert!(message.to_vec() == frame);
    assert_eq!((message.attributes.segment_size, message.attributes.segments), (1460, 42));
    assert_eq!(message.attributes.checksum, Checksum::Partial { start: 34, field: 16 });
    // And out again, in one call: the far end has it as one frame.
    let mut message = Message::from_bytes(&frame);
    message.attributes.checksum = Checksum::Partial { start: 34, field: 16 };
    message.attributes.segment_size = 1460;
    assert!(device.transmit(&mut message));
    let far = PacketDevice::new(far).expect("the interface is there");
    let [back] = &await_messages(&far, &pool, 1)[..] else { panic!("one message was sent") };
    assert!(back.to_vec() == frame && back.attributes.segment_size == 1460);
}

#[test]
fn without_offloads_every_frame_is_whole_and_right() {
    let Some((_namespace, far, device)) = cable("without_offloads_every_frame_is_whole_and_right", 1) else {
        return;
    };
    let device = device.without_offloads();
    assert!(!device.facts().checksum_offload && !device.facts().segment_offload);
    let pool = Pool::new(64, 64);
    send(&far, &message(9, 10_000), 1460);
    send(&far, &message(5, 0), 0);
    let messages = await_messages(&device, &pool, 8);
    let lengths: Vec<usize> = messages.iter().map(Message::len).collect();
    assert_eq!(lengths, [1514, 1514, 1514, 1514, 1514, 1514, 54 + 10_000 - 6 * 1460, 54]);
    for (index, message) in messages.iter().enumerate() {
        assert_eq!((message.attributes.checksum, message.attributes.segment_size), (Checksum::None, 0));
        let bytes = message.to_vec();
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let pseudo = Sum::pseudo(source.into(), destination.into(), IpProtocol::TCP, (bytes.len() - 34) as u32);
        assert!(Sum::of(&bytes[34..]).add(pseudo).is_right(), "frame {index}");
    }
}

#[test]
fn frames_come_in_order_however_many_come_together_and_none_waits_unseen() {
    for queues in [1, 3] {
        let test = "frames_come_in_order_however_many_come_together_and_none_waits_unseen";
        let Some((_namespace, far, device)) = cable(test, queues) else { return };
        let pool = Pool::new(64, 64);
        let mut next = 0;
        for burst in [1, 1, 2, 3, 40, 1, 16, 17, 200, 0, 1] {
            for number in next..next + burst {
                send(&far, &message(number, 100), 0);
            }
            let mut got = Vec::new();
            // As a shell does it: look until there is nothing, then wait only if nothing waits here.
            while got.len() < burst as usize {
                if !device.is_ready() {
                    let ready = wait(&mut [Source::readable(&device.socket)], Some(Duration::from_secs(10)));
                    assert_eq!(ready.expect("poll works"), 1, "{} of {burst}", got.len());
                }
                // A turn takes a few, not all.
                let few = (0..5).map_while(|_| device.receive(&pool)).filter(|message| message.len() == 154);
                got.extend(few.map(|mut message| {
                    TcpHeader::parse(&message.front(54).expect("headers")[34..]).expect("a header").sequence.0
                }));
            }
            assert_eq!(got, (next..next + burst).collect::<Vec<_>>(), "{queues} queues");
            next += burst;
        }
        assert_eq!(device.lost(), PacketDrops::default());
    }
}

#[test]
fn what_is_dropped_is_counted_by_its_reason_and_does_not_stop_the_rest() {
    let test = "what_is_dropped_is_counted_by_its_reason_and_does_not_stop_the_rest";
    let Some((_namespace, far, device)) = cable(test, 1) else { return };
    // The cable is new: what the kernel says there is not ours to count.
    let pool = Pool::new(4, 4);
    look(&device, &pool);
    let before = device.lost();
    let mut tagged = message(1, 100);
    tagged.splice(12..12, [0x81, 0x00, 0x60, 0x2a]);
    assert!(far.transmit(&[IoSlice::new(&[0; VnetHeader::LEN]), IoSlice::new(&tagged)]));
    send(&far, &message(2, 100), 0);
    assert_eq!(await_messages(&device, &pool, 1).len(), 1);
    assert_eq!(device.lost().tagged - before.tagged, 1);
    for number in 0..20 {
        send(&far, &message(number, 100), 0);
    }
    let (mut kept, begun) = (Vec::new(), std::time::Instant::now());
    let lost = || (device.lost().no_buffer - before.no_buffer) as usize;
    while kept.len() + lost() < 20 && begun.elapsed() < Duration::from_secs(10) {
        kept.extend(look(&device, &pool));
    }
    assert!(kept.len() <= 4, "a pool of four gave {}", kept.len());
    assert!(kept.len() + lost() >= 20, "{} kept, {} lost", kept.len(), lost());
    drop(kept);
    send(&far, &message(3, 100), 0);
    assert_eq!(await_messages(&device, &pool, 1).len(), 1, "the buffers have come home");
    assert_eq!(device.drops()[1].1, device.lost().no_buffer);
}

#[test]
fn an_interface_that_went_down_and_came_back_is_used_again() {
    let test = "an_interface_that_went_down_and_came_back_is_used_again";
    let Some((_namespace, far, device)) = cable(test, 1) else { return };
    let pool = Pool::new(64, 64);
    let interface = device.socket().interface();
    interface.set_up(false).expect("root may");
    let mut lost = Message::from_bytes(&message(1, 100));
    assert!(!device.transmit(&mut lost), "it is down");
    look(&device, &pool);
    // Told once, it is quiet: a sleeper is not woken again and again.
    let ready = wait(&mut [Source::readable(&device.socket)], Some(Duration::from_millis(20)));
    assert_eq!(ready.expect("poll works"), 0);
    testing::plug_in([interface, far.interface()]);
    send(&far, &message(2, 100), 0);
    assert_eq!(await_messages(&device, &pool, 1).len(), 1);
}
