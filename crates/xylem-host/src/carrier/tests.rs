//! A carrier between two cables, with bare packet sockets at their far ends that say exactly what went in and what came
//! out. The kernel is kept from saying anything of its own there, since every frame draws on the link's chance.

use super::*;
use crate::namespace::Namespace;
use crate::packet::PacketOptions;
use crate::{testing, veth};
use std::cell::Cell;
use std::net::Ipv4Addr;
use xylem_wire::{EthernetAddress, IpProtocol, LittleU16, Sum, VnetOffload};

/// Two far ends joined by cables to a carrier's ends, and the namespace they live in.
struct Field {
    _namespace: Namespace,
    far: [PacketSocket; 2],
    carrier: Carrier,
}

fn field(test: &str, models: [&str; 2], seed: u64) -> Option<Field> {
    let namespace = testing::quiet_namespace(test)?;
    let sockets = namespace.enter(|| {
        let here = Namespace::current().expect("/proc is mounted");
        for (far, near) in [("far-left", "left"), ("far-right", "right")] {
            let ends = veth::join((&here, far), (&here, near)).expect("root may");
            testing::plug_in([&ends.0, &ends.1]);
        }
        let open = |name| PacketSocket::open(name, PacketOptions::default()).expect("root may");
        ([open("far-left"), open("far-right")], [open("left"), open("right")])
    });
    let (far, ends) = sockets.expect("root enters");
    let models = models.map(|model| model.parse::<LinkModel>().expect("a model"));
    let carrier = Carrier::new(ends, [&models[0], &models[1]], seed, false).expect("within its limits");
    Some(Field { _namespace: namespace, far, carrier })
}

impl Field {
    /// Carries until both links have got so many frames and nothing is on the way.
    fn carry_all(&mut self, sent: [u64; 2]) {
        for _ in 0..2000 {
            self.carrier.carry(Duration::from_millis(5), || false).expect("it can wait");
            let counters = self.carrier.counters();
            if [0, 1].map(|way| counters[way].link.sent) == sent && self.carrier.in_flight() == [0, 0] {
                return;
            }
        }
        panic!("expected {sent:?} frames, got {:?}", self.carrier.counters());
    }

    /// The next frames at a far end, as many as were sent there.
    fn arrivals(&self, end: usize, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut room = vec![0; ROOM_BYTES];
        while frames.len() < count {
            let mut parts = [IoSliceMut::new(&mut room)];
            let mut slots = [Room::new(&mut parts)];
            let got = self.far[end].receive(0, &mut slots).expect("it is up");
            let (length, tag) = (slots[0].length, slots[0].tag);
            if got == 0 {
                let mut sources = [Source::readable(&self.far[end])];
                let ready = poll::wait(&mut sources, Some(Duration::from_secs(10))).expect("poll works");
                assert_eq!(ready, 1, "{} of {count} frames came", frames.len());
                continue;
            }
            let mut frame = Vec::new();
            put_head(&mut frame, &room[VnetHeader::LEN..length], tag);
            frames.push(frame);
        }
        frames
    }
}

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

fn send(socket: &PacketSocket, header: &VnetHeader, frame: &[u8]) {
    let mut vnet = [0; VnetHeader::LEN];
    header.build(&mut vnet);
    assert!(socket.transmit_all(&[[IoSlice::new(&vnet), IoSlice::new(frame)]]) == 1);
}

#[test]
fn a_seed_decides_as_in_the_simulator_in_both_directions() {
    let test = "a_seed_decides_as_in_the_simulator_in_both_directions";
    const COUNT: u32 = 400;
    for seed in [1, 2, 77] {
        let texts = ["loss=10% duplicate=5% corrupt=10% reorder=5%", "loss=30% corrupt=1%"];
        let Some(mut field) = field(test, texts, seed) else { return };
        for number in 0..COUNT {
            for far in &field.far {
                send(far, &VnetHeader::NOTHING, &frame(number, 64 + (number as usize * 7) % 1400));
            }
        }
        field.carry_all([COUNT.into(); 2]);
        let models = texts.map(|text| text.parse::<LinkModel>().expect("a model"));
        let mut links = Link::both_ways([&models[0], &models[1]], seed).expect("within its limits");
        for (way, link) in links.iter_mut().enumerate() {
            let mut expected: Vec<Vec<u8>> = Vec::new();
            for number in 0..COUNT {
                link.send(Instant::ZERO, frame(number, 64 + (number as usize * 7) % 1400));
            }
            while let Some(due) = link.next() {
                expected.extend(link.receive(due));
            }
            let mut arrived = field.arrivals(1 - way, expected.len());
            // Whom a frame held back meets depends on the moment; everything else does not.
            expected.sort_unstable();
            arrived.sort_unstable();
            assert!(arrived == expected, "seed {seed}, way {way}: {} arrived", arrived.len());
            let counters = &field.carrier.counters()[way];
            assert_eq!(counters.link, link.counters(), "seed {seed}, way {way}");
            assert_eq!((counters.refused, counters.tail_drops, counters.unreadable), (0, 0, 0));
        }
    }
}

#[test]
fn what_a_kernel_left_undone_is_done_and_tags_stay() {
    let test = "what_a_kernel_left_undone_is_done_and_tags_stay";
    let Some(mut field) = field(test, ["perfect", "perfect"], 1) else { return };
    // A TCP message of 4000 bytes over IPv4, to be cut into 1460.
    let mut message = vec![7u8; 54 + 4000];
    message[..14].copy_from_slice(&frame(0, 18)[..14]);
    message[12..14].copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
    message[14..34].copy_from_slice(&[0x45, 0, 0x0f, 0xc8, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    message[34..54].copy_from_slice(&[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 9, 0, 0, 0, 0]);
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CHECKSUM,
        offload: VnetOffload::TCP_IPV4,
        headers_length: LittleU16(54),
        segment_size: LittleU16(1460),
        checksum_start: LittleU16(34),
        checksum_offset: LittleU16(16),
    };
    send(&field.far[0], &header, &message);
    let mut tagged = frame(5, 100);
    tagged.splice(12..12, [0x81, 0x00, 0x60, 0x2a]);
    send(&field.far[0], &VnetHeader::NOTHING, &tagged);
    field.carry_all([4, 0]);
    let arrived = field.arrivals(1, 4);
    assert_eq!(arrived.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514, 54 + 1080, 104]);
    for frame in &arrived[..3] {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let pseudo = Sum::pseudo(source.into(), destination.into(), IpProtocol::TCP, (frame.len() - 34) as u32);
        assert!(Sum::of(&frame[34..]).add(pseudo).is_right());
    }
    assert_eq!(arrived[3], tagged);
    let [there, back] = field.carrier.counters();
    assert_eq!((there.cut, there.bytes_in, there.bytes_out), (1, 4266, 4266));
    assert_eq!(back, WayCounters::default());
}

#[test]
fn nothing_is_early_and_a_stop_ends_a_long_carry() {
    let test = "nothing_is_early_and_a_stop_ends_a_long_carry";
    let Some(mut field) = field(test, ["delay=30ms", "perfect"], 1) else { return };
    send(&field.far[0], &VnetHeader::NOTHING, &frame(1, 100));
    field.carry_all([1, 0]);
    let [there, _] = field.carrier.counters();
    assert_eq!((there.link.delivered, field.carrier.in_flight()), (1, [0, 0]));
    assert!(there.lateness.max() > Duration::ZERO, "a frame that was waited for is late, if by nanoseconds");
    // It asks often enough for a carry of an hour to end soon.
    let asked = Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) == 3;
    field.carrier.carry(Duration::from_secs(3600), stop).expect("it waits");
    assert_eq!(asked.get(), 4, "it went on though it was told to stop");
    let cost = field.carrier.cost();
    assert!(cost.wall >= Duration::from_millis(30) && cost.processor < cost.wall, "{cost:?}");

    // The delay again, seen from outside, spinning.
    field.carrier.spin = true;
    let sent = std::time::Instant::now();
    send(&field.far[0], &VnetHeader::NOTHING, &frame(2, 100));
    field.carry_all([2, 0]);
    assert_eq!(field.arrivals(1, 2)[1], frame(2, 100));
    assert!(sent.elapsed() >= Duration::from_millis(30), "a frame was early");
    let (now, hour) = (field.carrier.clock.now(), Duration::from_secs(3600));
    assert!(!field.carrier.sleep(Some(now), now + hour).expect("it waits"), "it slept though a frame was due");
    field.carrier.spin = false;
    assert!(field.carrier.sleep(Some(now), now + hour).expect("it waits"), "it spun unasked");
}
