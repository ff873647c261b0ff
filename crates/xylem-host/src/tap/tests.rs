//! Our end of a TAP against the kernel at the other: it must understand our frames and we must be able to read its own.
//! The frames are put together here by hand, byte by byte from the RFCs, so that the kernel is the only judge. Each test
//! has a namespace of its own with the kernel at 10.99.0.1 and us at 10.99.0.2.

use super::*;
use crate::namespace::Namespace;
use crate::poll::{self, Source};
use crate::system::namespaces::tests::{give_up_capabilities, open_files_as};
use crate::testing;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const KERNEL: [u8; 4] = [10, 99, 0, 1];
const OURS: [u8; 4] = [10, 99, 0, 2];
const KERNEL_PORT: u16 = 5000;
const OUR_PORT: u16 = 7;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const UDP: u8 = 17;
const TCP: u8 = 6;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;

/// The vnet header's flag for a checksum that is still to be finished, and its kinds of segmentation (VIRTIO 1.2,
/// section 5.1.6).
const NEEDS_CHECKSUM: u8 = 1;

const SEGMENTS_TCPV4: u8 = 1;
const SEGMENTS_UDP: u8 = 5;

/// How long the kernel may take for anything here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A TAP in a namespace of its own, the kernel's side up and with an address.
struct Cable {
    namespace: Namespace,
    tap: Tap,
    kernel_address: [u8; 6],
    our_address: [u8; 6],
}

impl Cable {
    fn plugged(test: &str, options: TapOptions) -> Option<Cable> {
        let namespace = testing::namespace_with_taps(test)?;
        let tap = namespace.enter(|| Tap::open("tap%d", options)).expect("root enters").expect("root makes TAPs");
        tap.kernel_side().add_address(Ipv4Addr::from(KERNEL).into(), 24).expect("root may");
        tap.kernel_side().set_up(true).expect("root may");
        let kernel_address = tap.hardware_address().expect("it is there");
        let our_address = local_hardware_address(&mut Random::seeded(1));
        Some(Cable { namespace, tap, kernel_address, our_address })
    }

    /// A socket of the kernel's at its end of the cable.
    fn kernel_socket(&self) -> UdpSocket {
        let bind = || UdpSocket::bind((Ipv4Addr::from(KERNEL), KERNEL_PORT)).expect("the port is free");
        let socket = self.namespace.enter(bind).expect("root enters");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        socket
    }

    /// Tells the kernel where we are, so that it sends without asking.
    fn introduce(&self) {
        let us = Ipv4Addr::from(OURS).into();
        self.tap.kernel_side().set_neighbour(us, self.our_address).expect("root may");
    }

    /// Waits for the next frame that `wanted` finds its thing in; frames of other business (the kernel looks for IPv6
    /// routers on any new interface) are passed over.
    fn receive<T>(&mut self, wanted: impl Fn(&Vnet, &[u8]) -> Option<T>) -> T {
        let start = Instant::now();
        let mut header = [0u8; 12];
        let header = &mut header[..self.tap.vnet_header().bytes()];
        let mut frame = vec![0u8; RECEIVE_BYTES];
        while start.elapsed() < PATIENCE {
            let mut slices = [IoSliceMut::new(header), IoSliceMut::new(&mut frame)];
            match self.tap.receive(&mut slices).expect("the device is there") {
                Some(count) => {
                    let found = wanted(&Vnet::read(header), &frame[..count - header.len()]);
                    if let Some(found) = found {
                        return found;
                    }
                }
                None => {
                    poll::wait(&mut [Source::readable(&self.tap)], Some(PATIENCE)).expect("poll works");
                }
            }
        }
        panic!("the frame did not come in {PATIENCE:?}");
    }

    /// Sends an IPv4 packet to the kernel: vnet header, link and network header, and the rest, each from its own slice.
    fn send(&mut self, vnet: Vnet, protocol: u8, segment: &[u8]) -> bool {
        let link = [&self.kernel_address[..], &self.our_address, &ETHERTYPE_IPV4.to_be_bytes()].concat();
        let network = ipv4_header(protocol, segment.len());
        let vnet = vnet.written(self.tap.vnet_header());
        let slices = [&vnet[..], &link, &network, segment].map(IoSlice::new);
        self.tap.transmit(&slices).expect("the kernel's side is up")
    }
}

/// The fields of a vnet header, in the machine's byte order as a TAP has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Vnet {
    flags: u8,
    segmentation: u8,
    header_bytes: u16,
    segment_bytes: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl Vnet {
    fn read(bytes: &[u8]) -> Vnet {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Vnet {
            flags: bytes[0],
            segmentation: bytes[1],
            header_bytes: word(2),
            segment_bytes: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    fn written(self, length: VnetHeaderLength) -> Vec<u8> {
        let mut bytes = vec![self.flags, self.segmentation];
        for word in [self.header_bytes, self.segment_bytes, self.checksum_start, self.checksum_offset] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.resize(length.bytes(), 0);
        bytes
    }

    /// The checksum at `offset` in the transport header is to be finished.
    fn unfinished(offset: u16) -> Vnet {
        let checksum_start = (ETHERNET_BYTES + IPV4_BYTES) as u16;
        Vnet { flags: NEEDS_CHECKSUM, checksum_start, checksum_offset: offset, ..Vnet::default() }
    }
}

/// The one's complement sum of RFC 1071, not complemented.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum over the pseudo header of packets from us to the kernel (RFC 9293, section 3.1; RFC 768).
fn pseudo_sum(protocol: u8, length: usize) -> u16 {
    sum(&[&OURS, &KERNEL, &[0, protocol], &(length as u16).to_be_bytes()])
}

fn ipv4_header(protocol: u8, payload_bytes: usize) -> Vec<u8> {
    let length = (IPV4_BYTES + payload_bytes) as u16;
    let mut header = vec![0x45, 0];
    header.extend_from_slice(&length.to_be_bytes());
    header.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    header.extend_from_slice(&OURS);
    header.extend_from_slice(&KERNEL);
    let checksum = !sum(&[&header]);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// A UDP datagram to the kernel's port; its checksum is the pseudo header's sum, to be finished, or the whole.
fn udp(payload: &[u8], finished: bool) -> Vec<u8> {
    let length = 8 + payload.len();
    let mut datagram = Vec::with_capacity(length);
    for word in [OUR_PORT, KERNEL_PORT, length as u16, pseudo_sum(UDP, length)] {
        datagram.extend_from_slice(&word.to_be_bytes());
    }
    datagram.extend_from_slice(payload);
    if finished {
        let checksum = !sum(&[&datagram]);
        datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    }
    datagram
}

/// Payload in which every place is recognisable.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place / 251 + place) as u8).collect()
}

/// The ARP request for our address, if the frame is that: who asks.
fn arp_request(frame: &[u8]) -> Option<[u8; 6]> {
    let is_request = frame.get(12..22)? == [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    (is_request && frame.get(38..42)? == OURS).then(|| frame[22..28].try_into().expect("six bytes"))
}

/// The payload of a UDP datagram to our port, if the frame has one; then its checksum over the pseudo header too.
fn udp_payload(frame: &[u8]) -> Option<(Vec<u8>, bool)> {
    let is_ours = frame.get(12..14)? == ETHERTYPE_IPV4.to_be_bytes() && frame.get(23)? == &UDP;
    if !is_ours || frame.get(36..38)? != OUR_PORT.to_be_bytes() {
        return None;
    }
    let datagram = &frame[34..];
    let whole = sum(&[&KERNEL, &OURS, &[0, UDP], &(datagram.len() as u16).to_be_bytes(), datagram]) == 0xffff;
    Some((datagram[8..].to_vec(), whole))
}

#[test]
fn the_kernel_asks_for_us_hears_the_answer_and_datagrams_go_both_ways() {
    let test = "the_kernel_asks_for_us_hears_the_answer_and_datagrams_go_both_ways";
    for vnet_header in [VnetHeaderLength::Ten, VnetHeaderLength::Twelve] {
        let Some(mut cable) = Cable::plugged(test, TapOptions { vnet_header, ..TapOptions::default() }) else {
            return;
        };
        let socket = cable.kernel_socket();
        socket.send_to(b"who is there", (Ipv4Addr::from(OURS), OUR_PORT)).expect("the address is on its network");
        let (vnet, asker) = cable.receive(|vnet, frame| Some((*vnet, arp_request(frame)?)));
        assert_eq!((vnet, asker), (Vnet::default(), cable.kernel_address));

        // RFC 826: Ethernet, IPv4, sizes, reply; sender, target.
        let mut reply = [&cable.kernel_address[..], &cable.our_address, &ETHERTYPE_ARP.to_be_bytes()].concat();
        reply.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 2]);
        for part in [&cable.our_address[..], &OURS, &cable.kernel_address, &KERNEL] {
            reply.extend_from_slice(part);
        }
        let header = Vnet::default().written(vnet_header);
        assert!(cable.tap.transmit(&[IoSlice::new(&header), IoSlice::new(&reply)]).expect("the kernel's side is up"));

        let (vnet, (payload, whole)) = cable.receive(|vnet, frame| Some((*vnet, udp_payload(frame)?)));
        assert_eq!(payload, b"who is there");
        assert_eq!((vnet.flags, vnet.checksum_start, vnet.checksum_offset), (NEEDS_CHECKSUM, 34, 6));
        assert!(!whole, "the kernel left the checksum to us, as it said");

        assert!(cable.send(Vnet::default(), UDP, &udp(b"it is us", true)));
        assert!(cable.send(Vnet::unfinished(6), UDP, &udp(b"it is us again", false)));
        let mut bytes = [0u8; 100];
        for expected in [&b"it is us"[..], b"it is us again"] {
            let (count, from) = socket.recv_from(&mut bytes).expect("the datagram arrives");
            assert_eq!(&bytes[..count], expected);
            assert_eq!(from, (Ipv4Addr::from(OURS), OUR_PORT).into());
        }
    }
}

#[test]
fn without_offloads_the_kernel_finishes_its_checksums() {
    let options = TapOptions { offloads: false, ..TapOptions::default() };
    let Some(mut cable) = Cable::plugged("without_offloads_the_kernel_finishes_its_checksums", options) else {
        return;
    };
    assert_eq!(cable.tap.offloads(), Offloads::default());
    assert!(cable.tap.notes().is_empty(), "nothing was asked for in vain: {:?}", cable.tap.notes());
    cable.introduce();
    cable.kernel_socket().send_to(b"whole", (Ipv4Addr::from(OURS), OUR_PORT)).expect("the neighbour is known");
    let (vnet, (payload, whole)) = cable.receive(|vnet, frame| Some((*vnet, udp_payload(frame)?)));
    assert_eq!((payload.as_slice(), vnet.flags & NEEDS_CHECKSUM), (&b"whole"[..], 0));
    assert!(whole);
}

#[test]
fn sixty_kilobytes_of_datagrams_leave_in_one_call() {
    const DATAGRAM: usize = 1400;
    let test = "sixty_kilobytes_of_datagrams_leave_in_one_call";
    let Some(mut cable) = Cable::plugged(test, TapOptions::default()) else {
        return;
    };
    let socket = cable.kernel_socket();
    let payload = pattern(43 * DATAGRAM);
    let vnet = Vnet {
        segmentation: SEGMENTS_UDP,
        header_bytes: (ETHERNET_BYTES + IPV4_BYTES + 8) as u16,
        segment_bytes: DATAGRAM as u16,
        ..Vnet::unfinished(6)
    };
    assert!(cable.send(vnet, UDP, &udp(&payload, false)));
    let mut bytes = vec![0u8; 65_536];
    for (number, expected) in payload.chunks(DATAGRAM).enumerate() {
        let count = socket.recv(&mut bytes).unwrap_or_else(|error| panic!("datagram {number}: {error}"));
        assert_eq!(&bytes[..count], expected, "datagram {number}");
    }
}

/// A TCP segment from the kernel to our port: its sequence number, acknowledgement number, flags, window and payload.
struct Segment {
    source: u16,
    sequence: u32,
    flags: u8,
    window: u16,
    payload: Vec<u8>,
}

const SYN: u8 = 2;
const ACK: u8 = 16;

fn tcp_segment(frame: &[u8]) -> Option<Segment> {
    let is_ours = frame.get(12..14)? == ETHERTYPE_IPV4.to_be_bytes() && frame.get(23)? == &TCP;
    if !is_ours || frame.get(36..38)? != OUR_PORT.to_be_bytes() {
        return None;
    }
    let segment = &frame[34..];
    let word = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    Some(Segment {
        source: word(0),
        sequence: u32::from_be_bytes(segment[4..8].try_into().expect("four bytes")),
        flags: segment[13],
        window: word(14),
        payload: segment[usize::from(segment[12] >> 4) * 4..].to_vec(),
    })
}

/// A TCP segment to the kernel with a checksum to be finished; with SYN it says that we take segments of 1460 bytes.
fn tcp(to: u16, sequence: u32, acknowledged: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let options: &[u8] = if flags & SYN != 0 { &[2, 4, 0x05, 0xb4] } else { &[] };
    let length = 20 + options.len() + payload.len();
    let mut segment = Vec::with_capacity(length);
    segment.extend_from_slice(&OUR_PORT.to_be_bytes());
    segment.extend_from_slice(&to.to_be_bytes());
    segment.extend_from_slice(&sequence.to_be_bytes());
    segment.extend_from_slice(&acknowledged.to_be_bytes());
    segment.extend_from_slice(&[((20 + options.len()) as u8 / 4) << 4, flags, 0xff, 0xff]);
    segment.extend_from_slice(&pseudo_sum(TCP, length).to_be_bytes());
    segment.extend_from_slice(&[0, 0]);
    segment.extend_from_slice(options);
    segment.extend_from_slice(payload);
    segment
}

#[test]
fn a_large_tcp_segment_crosses_whole_in_both_directions() {
    const OURS_FIRST: u32 = 1000;
    let Some(mut cable) = Cable::plugged("a_large_tcp_segment_crosses_whole_in_both_directions", TapOptions::default())
    else {
        return;
    };
    assert!(cable.tap.offloads().tcp_segments, "{:?}", cable.tap.notes());
    cable.introduce();
    // Fourteen thousand bytes are within the first window of ten segments (RFC 6928), so they may leave at once.
    let (their_data, our_data) = (pattern(14_000), pattern(60_000));
    let (theirs, expected) = (their_data.clone(), our_data.len());
    let kernel = cable.namespace.try_clone().expect("a descriptor is free");
    let kernel = thread::spawn(move || {
        let talk = || {
            let mut stream = TcpStream::connect((Ipv4Addr::from(OURS), OUR_PORT)).expect("we answer");
            stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
            stream.write_all(&theirs).expect("the send buffer takes it");
            let mut received = vec![0u8; expected];
            stream.read_exact(&mut received).expect("our data arrives");
            received
        };
        kernel.enter(talk).expect("root enters")
    });

    let syn = cable.receive(|_, frame| tcp_segment(frame).filter(|segment| segment.flags & SYN != 0));
    let reply = tcp(syn.source, OURS_FIRST, syn.sequence.wrapping_add(1), SYN | ACK, &[]);
    assert!(cable.send(Vnet::unfinished(16), TCP, &reply));

    let (vnet, frame_bytes, data) = cable.receive(|vnet, frame| {
        tcp_segment(frame).filter(|segment| !segment.payload.is_empty()).map(|segment| (*vnet, frame.len(), segment))
    });
    assert!(frame_bytes > 1514, "the kernel cut its data although we take it whole: {frame_bytes} bytes");
    assert_eq!((vnet.segmentation, vnet.segment_bytes), (SEGMENTS_TCPV4, 1460));
    assert_eq!(data.payload, their_data[..data.payload.len()]);

    assert!(usize::from(data.window) >= our_data.len(), "the kernel's first window is only {} bytes", data.window);
    let acknowledged = data.sequence.wrapping_add(data.payload.len() as u32);
    let vnet = Vnet {
        segmentation: SEGMENTS_TCPV4,
        header_bytes: (ETHERNET_BYTES + IPV4_BYTES + 20) as u16,
        segment_bytes: 1460,
        ..Vnet::unfinished(16)
    };
    assert!(cable.send(vnet, TCP, &tcp(syn.source, OURS_FIRST + 1, acknowledged, ACK, &our_data)));
    assert!(kernel.join().expect("the kernel's side does not panic") == our_data, "other bytes arrived than were sent");
}

/// A TAP's own writes practically never wait (the kernel's side takes a frame in the same call), so the rule is tested by
/// itself; reads are tested on the device below.
#[test]
fn waiting_is_an_answer_and_a_signal_is_none() {
    let answers = |codes: &[i32]| {
        let mut codes = codes.iter();
        without_waiting(|| match codes.next() {
            Some(&code) => Err(io::Error::from_raw_os_error(code)),
            None => Ok(60),
        })
    };
    assert_eq!(answers(&[]).expect("a frame crossed"), Some(60));
    assert_eq!(answers(&[libc::EAGAIN]).expect("no error"), None);
    assert_eq!(answers(&[libc::EINTR, libc::EINTR]).expect("a frame crossed"), Some(60));
    assert_eq!(answers(&[libc::EINTR, libc::EIO]).expect_err("an error").raw_os_error(), Some(libc::EIO));
}

#[test]
fn what_would_wait_is_said_and_a_pulled_cable_is_an_error() {
    let Some(namespace) = testing::namespace_with_taps("what_would_wait_is_said_and_a_pulled_cable_is_an_error") else {
        return;
    };
    let open = || Tap::open("tap0", TapOptions::default()).expect("root makes TAPs");
    let mut tap = namespace.enter(open).expect("root enters");
    let mut room = [0u8; 2000];
    // The kernel's side is down: it sends nothing, and takes nothing.
    assert_eq!(tap.receive(&mut [IoSliceMut::new(&mut room)]).expect("the device is there"), None);
    assert_eq!(poll::wait(&mut [Source::readable(&tap)], Some(Duration::ZERO)).expect("poll works"), 0);
    let frame = [0u8; 12 + 60];
    let error = tap.transmit(&[IoSlice::new(&frame)]).expect_err("it is down");
    assert_eq!(error.raw_os_error(), Some(libc::EIO));

    tap.kernel_side().set_up(true).expect("root may");
    assert!(tap.transmit(&[IoSlice::new(&frame)]).expect("it is up"));
    let slices = vec![IoSlice::new(&frame); SLICES_MAX + 1];
    let error = tap.transmit(&slices).expect_err("more than one call takes").to_string();
    assert!(error.contains("at most 1024, got 1025"), "{error}");
}

#[test]
fn a_tap_says_its_mtu_and_address_from_any_thread() {
    let Some(cable) = Cable::plugged("a_tap_says_its_mtu_and_address_from_any_thread", TapOptions::default()) else {
        return;
    };
    assert_eq!(cable.tap.name(), "tap0");
    assert_eq!(cable.tap.mtu().expect("it is there"), 1500);
    cable.tap.kernel_side().set_mtu(9000).expect("root may");
    assert_eq!(cable.tap.mtu().expect("it is there"), 9000);
    cable.tap.kernel_side().set_hardware_address([2, 0, 0, 0, 0, 7]).expect("root may");
    assert_eq!(cable.tap.hardware_address().expect("it is there"), [2, 0, 0, 0, 0, 7]);
    assert!(!cable.tap.is_persistent());
    // An IPv6 address on a device that could have duplicates is used without waiting for them to speak up.
    let address = "fd99::1".parse().expect("an address");
    cable.tap.kernel_side().add_address(address, 64).expect("root may");
    let bound = cable.namespace.enter(|| UdpSocket::bind((address, 0)).map(drop)).expect("root enters");
    bound.expect("the address can be used at once");
}

#[test]
fn a_persistent_tap_is_used_again_and_an_ordinary_one_is_gone() {
    let test = "a_persistent_tap_is_used_again_and_an_ordinary_one_is_gone";
    let Some(namespace) = testing::namespace_with_taps(test) else {
        return;
    };
    let open = |name: &str| Tap::open(name, TapOptions::default());
    let story = || {
        let mut first = open("kept").expect("root makes TAPs");
        first.set_persistent(true).expect("root may");
        first.kernel_side().set_mtu(1400).expect("root may");
        let busy = open("kept").expect_err("it is held").to_string();
        assert!(busy.contains("kept") && busy.contains("another process holds it"), "{busy}");
        drop(first);
        let mut second = open("kept").expect("it is free again");
        assert!(second.is_persistent());
        assert_eq!(second.mtu().expect("it is there"), 1400);
        assert_eq!(second.offloads(), OFFLOADS[0], "{:?}", second.notes());
        second.set_persistent(false).expect("root may");
        drop(second);
        Interface::open("kept").map(drop).expect_err("it went with its last descriptor");
    };
    namespace.enter(story).expect("root enters");
}

#[test]
fn a_tap_of_several_queues_is_taken_with_a_note() {
    let Some(namespace) = testing::namespace_with_taps("a_tap_of_several_queues_is_taken_with_a_note") else {
        return;
    };
    let story = || {
        let queue = open_device_node().expect("root opens it");
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE;
        let name = InterfaceName::new("many").expect("a short name");
        ioctl::attach_tap(queue.as_fd(), name, flags).expect("root makes TAPs");
        let tap = Tap::open("many", TapOptions::default()).expect("there is a queue for us");
        assert_eq!(tap.notes().len(), 1);
        assert!(tap.notes()[0].contains("several queues"), "{:?}", tap.notes());
    };
    namespace.enter(story).expect("root enters");
}

#[test]
fn each_refusal_says_what_to_do() {
    let Some(namespace) = testing::namespace_with_taps("each_refusal_says_what_to_do") else {
        return;
    };
    let refusal = |name: &str| Tap::open(name, TapOptions::default()).expect_err(name).to_string();
    let story = || {
        assert!(refusal("a-name-of-20-letters").contains("at most 15 bytes, got 20"));
        for name in ["", "a b", "a/b", "tap%s", "tap%d%d"] {
            assert!(refusal(name).contains("choose another one"), "`{name}`: {}", refusal(name));
        }
        assert!(refusal("lo").contains("no TAP"), "{}", refusal("lo"));
    };
    namespace.enter(story).expect("root enters");
    // Rights given up on the namespace's thread are gone with it.
    let powerless = || {
        give_up_capabilities().expect("giving up is allowed");
        refusal("tap0")
    };
    let message = namespace.enter(powerless).expect("root enters");
    assert!(message.contains("CAP_NET_ADMIN"), "{message}");
    let somebody = || {
        open_files_as(65_534);
        open_device_node().map(drop)
    };
    // Many systems open the node to everybody; then there is nothing to refuse.
    let outcome = namespace.enter(somebody).expect("root enters");
    let closed = outcome.err().unwrap_or_else(|| device_node_error(io::Error::from_raw_os_error(libc::EACCES)));
    assert!(closed.to_string().contains("chmod 0666"), "{closed}");
    let missing = device_node_error(io::Error::from_raw_os_error(libc::ENOENT));
    assert!(missing.to_string().contains("modprobe tun"));
}

#[test]
fn our_own_addresses_are_local_and_of_one_station() {
    let mut random = Random::seeded(4);
    let addresses: std::collections::BTreeSet<[u8; 6]> =
        (0..500).map(|_| local_hardware_address(&mut random)).collect();
    assert_eq!(addresses.len(), 500);
    assert!(addresses.iter().all(|address| address[0] & 0b11 == 0b10));
    assert!(addresses.iter().any(|address| address[0] & 0b100 != 0), "the other bits are random");
}
