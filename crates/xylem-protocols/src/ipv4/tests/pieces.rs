//! Cutting and putting together: the identity on what is honest, nothing at all from what is not, and always within the
//! limits.

use super::super::*;
use super::*;
use std::net::Ipv4Addr;
use xylem_core::{Duration, Instant, Random, drop::linker};
use xylem_wire::{Ecn, EtherType};

/// A host on which nobody's port is, so that what is put together shows as delivered to port 7 or not.
struct Catcher {
    host: Host,
    enable: usize,
}

impl Catcher {
    fn new() -> Catcher {
        Catcher::with(Setup::host(1))
    }

    fn with(setup: Setup) -> Catcher {
        let mut host = Host::new(setup);
        host.knows(2);
        let enable = host.enable(host.udp, wild(7)).expect("the port is free");
        Catcher { host, enable }
    }

    fn receive(&mut self, frame: &[u8]) {
        self.host.receive(0, frame);
    }

    fn caught(&self) -> Vec<Vec<u8>> {
        bytes(&self.host.listening[self.enable].delivered)
    }
}

/// A UDP message of so many bytes for port 7, and the header of the packet that carries it.
fn whole(payload: usize, identification: u16) -> (Ipv4Header, Vec<u8>) {
    let message = datagram((2, 9), (1, 7), &noise(payload, u64::from(identification)));
    (Ipv4Header { identification, ..ip_header(2, 1, IpProtocol::UDP, message.len()) }, message)
}

/// All frames of a message cut at these bytes.
fn pieces(header: &Ipv4Header, message: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut borders = vec![0];
    borders.extend(cuts);
    borders.push(message.len());
    borders.windows(2).map(|border| piece(header, message, border[0], border[1])).collect()
}

/// Every order of `items`.
fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.len() <= 1 {
        return vec![items.to_vec()];
    }
    let mut all = Vec::new();
    for first in 0..items.len() {
        let mut rest = items.to_vec();
        let item = rest.remove(first);
        all.extend(orders(&rest).into_iter().map(|mut order| {
            order.insert(0, item.clone());
            order
        }));
    }
    all
}

#[test]
fn cutting_and_putting_together_is_the_identity_at_every_border() {
    for mtu in [68, 576, 1006, 1500] {
        let (mut one, mut two) = (
            Host::new(Setup { frame_max: mtu + 14, ..Setup::host(1) }),
            Host::new(Setup { seed: 2, frame_max: mtu + 14, ..Setup::host(2) }),
        );
        one.knows(2);
        let enable = two.enable(two.udp, wild(7)).unwrap();
        let path = one.open_udp(None, 2, 7).unwrap();
        let most = if mtu == 68 { 48 * 128 - 8 } else { 65_507 };
        let unit = (mtu - 20) / 8 * 8;
        let around = |size: usize| size.saturating_sub(10)..=(size + 10).min(most);
        let sizes = (0..40).chain(around(mtu - 28)).chain(around(unit * 2)).chain(around(unit * 3)).chain(around(most));
        let sizes = sizes.filter(|size| *size <= most);
        for (index, size) in sizes.enumerate() {
            let payload = noise(size, index as u64);
            assert!(one.push(path, Message::from_bytes(&payload)));
            one.frames().iter().for_each(|frame| two.receive(0, frame));
            let delivered = std::mem::take(&mut two.listening[enable].delivered);
            assert!(bytes(&delivered) == [payload], "{size} bytes over an MTU of {mtu}");
        }
        assert_eq!(one.drops.total() + two.drops.total(), 0);
    }
}

#[test]
fn pieces_in_every_order_make_the_whole() {
    let (header, message) = whole(300, 1);
    for order in orders(&pieces(&header, &message, &[80, 88, 160, 256])) {
        let mut catcher = Catcher::new();
        for (count, frame) in order.iter().enumerate() {
            assert!(catcher.caught().is_empty(), "delivered after {count} of five pieces");
            catcher.receive(frame);
        }
        assert!(catcher.caught() == [&message[8..]]);
        assert_eq!((catcher.host.drops.total(), catcher.host.nodes[2].protocol.deadline()), (0, None));
    }
}

#[test]
fn a_path_gets_what_was_put_together_as_if_it_had_come_whole() {
    let mut host = Host::new(Setup::host(1));
    let path = host.open_udp(Some(7), 2, 9).unwrap();
    let (header, message) = whole(3000, 1);
    for frame in pieces(&header, &message, &[1480]).iter().rev() {
        host.receive(0, frame);
    }
    assert!(bytes(&host.paths[path].delivered) == [&message[8..]]);
}

#[test]
fn random_cuts_orders_and_duplicates_make_the_whole_once_and_overlaps_nothing() {
    let (mut whole_count, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::seeded(seed);
        let (header, message) = whole(1 + random.below(6000) as usize, seed as u16);
        let units = (message.len() - 1) / 8;
        let mut cuts: Vec<usize> =
            (0..random.below(12)).map(|_| 8 * (1 + random.below(units.max(1) as u64) as usize)).collect();
        cuts.retain(|cut| *cut < message.len());
        cuts.push(8);
        cuts.retain(|cut| *cut < message.len());
        cuts.sort_unstable();
        cuts.dedup();
        let mut frames = pieces(&header, &message, &cuts);
        for at in (1..frames.len()).rev() {
            frames.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut catcher = Catcher::new();
        let evil = random.below(3) == 0;
        let spoilt_at = random.below(frames.len() as u64 - 1) as usize;
        for (index, frame) in frames.iter().enumerate() {
            catcher.receive(frame);
            if random.below(3) == 0 && index + 1 < frames.len() {
                catcher.receive(&frames[random.below(index as u64 + 1) as usize]);
            }
            if evil && index == spoilt_at {
                catcher.receive(&overlapping(frame, &mut random));
            }
        }
        if evil {
            assert_eq!(catcher.caught().len(), 0, "seed {seed}: somebody's bytes were mixed with another's");
            assert!(catcher.host.drops.of(&OVERLAP) > 0, "seed {seed}");
            refused += 1;
        } else {
            assert!(catcher.caught() == [&message[8..]], "seed {seed}: {:?}", catcher.host.drops);
            assert!(catcher.host.drops.total() == catcher.host.drops.of(&DUPLICATE), "seed {seed}");
            whole_count += 1;
        }
    }
    assert!(whole_count > 300 && refused > 100, "{whole_count} whole, {refused} refused: the test has lost its sense");
}

/// A fragment of the same packet that overlaps this one without being its duplicate.
fn overlapping(frame: &[u8], random: &mut Random) -> Vec<u8> {
    let (header, payload) = open_packet(frame);
    let mut payload = payload.to_vec();
    let mut header = Ipv4Header { checksum: 0, ..header };
    match random.below(3) {
        // The same place, other bytes.
        0 => {
            let place = random.below(payload.len() as u64) as usize;
            payload[place] ^= 1;
        }
        // It ends in the same place, and so is the last as well, but begins earlier or later.
        1 if header.fragment_offset.units() > 0 => {
            header.fragment_offset = FragmentOffset::of_units(header.fragment_offset.units() - 1).unwrap();
            payload = [&[9; 8], &payload[..]].concat();
        }
        // The same place, longer; more follow.
        _ => {
            payload.resize(payload.len().next_multiple_of(8) + 8, 9);
            header.more_fragments = true;
        }
    }
    header.total_length = (20 + payload.len()) as u16;
    ip_frame(&header, &payload)
}

#[test]
fn what_was_refused_stays_refused_until_its_time_is_over() {
    let (header, message) = whole(300, 1);
    let frames = pieces(&header, &message, &[80, 160]);
    let mut catcher = Catcher::new();
    catcher.receive(&frames[0]);
    catcher.receive(&piece(&header, &message, 72, 168));
    frames.iter().for_each(|frame| catcher.receive(frame));
    assert_eq!(catcher.host.drops.of(&OVERLAP), 5, "the kept one, the evil one, and all that followed");
    let later = catcher.host.now + Duration::from_secs(30);
    catcher.host.at(later);
    assert!(catcher.caught().is_empty());
    frames.iter().for_each(|frame| catcher.receive(frame));
    assert!(catcher.caught() == [&message[8..]]);
    assert_eq!(catcher.host.frames().len(), 0, "nobody is told about what was refused");
}

#[test]
fn a_packet_has_one_end_and_nothing_lies_beyond_it() {
    let (header, message) = whole(300, 1);
    let shorter = &message[..200];
    for order in orders(&[0, 1, 2]) {
        let evil =
            [piece(&header, &message, 0, 80), piece(&header, shorter, 160, 200), piece(&header, &message, 240, 308)];
        let mut catcher = Catcher::new();
        order.iter().for_each(|index| catcher.receive(&evil[*index]));
        assert_eq!(catcher.host.drops.of(&OVERLAP), 3, "{order:?}");
    }
    // A fragment that says more follow where the end was.
    for order in orders(&[0, 1]) {
        let evil = [piece(&header, &message[..160], 80, 160), piece(&header, &message, 160, 240)];
        let mut catcher = Catcher::new();
        order.iter().for_each(|index| catcher.receive(&evil[*index]));
        assert_eq!(catcher.host.drops.of(&OVERLAP), 2, "{order:?}");
    }
}

#[test]
fn fragments_that_cannot_be_are_dropped_alone() {
    let (header, message) = whole(300, 1);
    let mut catcher = Catcher::new();
    let good = pieces(&header, &message, &[80, 160]);
    catcher.receive(&good[0]);
    let at = |units: u16| FragmentOffset::of_units(units).unwrap();
    let fragment = |length: usize, offset, more_fragments| {
        let header =
            Ipv4Header { total_length: (20 + length) as u16, fragment_offset: offset, more_fragments, ..header };
        ip_frame(&header, &vec![1; length])
    };
    catcher.receive(&fragment(81, at(20), true));
    catcher.receive(&fragment(0, at(20), true));
    catcher.receive(&fragment(0, at(20), false));
    assert_eq!(catcher.host.drops.of(&FRAGMENT_LENGTH), 3);
    catcher.receive(&fragment(8, at(8191), false));
    catcher.receive(&fragment(1480, at(8100), true));
    assert_eq!(catcher.host.drops.of(&FRAGMENT_TOO_FAR), 2);
    good[1..].iter().for_each(|frame| catcher.receive(frame));
    assert!(catcher.caught() == [&message[8..]], "the rest was not harmed");
}

#[test]
fn tiny_first_fragments_are_dropped() {
    let mut catcher = Catcher::new();
    for (protocol, length) in [(IpProtocol::TCP, 8), (IpProtocol::TCP, 16), (IpProtocol::UDP, 0)] {
        let header = Ipv4Header { more_fragments: true, ..ip_header(2, 1, protocol, length) };
        catcher.receive(&ip_frame(&header, &vec![1; length]));
    }
    assert_eq!(catcher.host.drops.of(&TINY_FRAGMENT), 2);
    assert_eq!(catcher.host.drops.of(&FRAGMENT_LENGTH), 1);
    let header = Ipv4Header { more_fragments: true, ..ip_header(2, 1, IpProtocol::TCP, 24) };
    catcher.receive(&ip_frame(&header, &[1; 24]));
    assert_eq!(catcher.host.drops.total(), 3, "a whole TCP header is enough");
}

#[test]
fn the_largest_packet_is_put_together_and_a_larger_one_is_not() {
    let mut catcher = Catcher::new();
    let (header, message) = whole(65_507, 1);
    for cut in pieces(&header, &message, &[32_000, 64_000]) {
        catcher.receive(&cut);
    }
    assert!(catcher.caught() == [&message[8..]]);
    // With options in front the same payload no longer fits.
    let first = Ipv4Header { more_fragments: true, identification: 9, ..header };
    let first = packet_with(&first, &[1, 1, 1, 1], &message[..32_000]);
    catcher.receive(&frame(mac(2), mac(1), EtherType::IPV4, &first));
    let header = Ipv4Header { identification: 9, ..header };
    catcher.receive(&piece(&header, &message, 32_000, message.len()));
    assert_eq!((catcher.caught().len(), catcher.host.drops.of(&FRAGMENT_TOO_FAR)), (1, 1));
}

#[test]
fn one_congestion_mark_marks_the_whole() {
    let mut host = Host::new(Setup::host(1));
    let path = host.open_udp(Some(7), 2, 9).unwrap();
    let (header, message) = whole(300, 1);
    let marked = Ipv4Header { ecn: Ecn::Experienced, ..header };
    host.receive(0, &piece(&header, &message, 0, 160));
    host.receive(0, &piece(&marked, &message, 160, 308));
    assert_eq!(host.paths[path].delivered[0].attributes.congestion_marks, 1);
}

#[test]
fn what_is_late_is_given_up_and_its_sender_told_if_the_first_piece_came() {
    let (header, message) = whole(300, 1);
    for first_came in [true, false] {
        let mut catcher = Catcher::new();
        let frames = pieces(&header, &message, &[80, 160]);
        catcher.receive(&frames[if first_came { 0 } else { 1 }]);
        catcher.host.at(Instant::ZERO + Duration::from_secs(20));
        catcher.receive(&frames[2]);
        let deadline = catcher.host.nodes[2].protocol.deadline();
        assert_eq!(deadline, Some(Instant::ZERO + Duration::from_secs(30)), "from the first to arrive");
        catcher.host.at(deadline.unwrap());
        assert_eq!(catcher.host.drops.of(&FRAGMENTS_LATE), 2);
        assert_eq!(catcher.host.nodes[2].protocol.deadline(), None);
        let errors = catcher.host.frames();
        assert_eq!(errors.len(), usize::from(first_came));
        if let Some(error) = errors.first() {
            let (to, error) = open_packet(error);
            assert_eq!((to.destination, error[0], error[1]), (ipv4(2), 11, 1), "time exceeded in reassembly");
            assert!(error[8..] == frames[0][14..], "the first fragment is quoted");
        }
    }
}

#[test]
fn at_a_limit_the_oldest_go_those_of_the_same_source_first() {
    let limits = ReassemblyLimits { datagrams: 4, datagrams_per_source: 2, ..ReassemblyLimits::default() };
    let mut setup = Setup::host(1);
    setup.ipv4.reassembly = limits;
    let mut catcher = Catcher::with(setup);
    let mut receive = |source: u8, identification: u16, first: bool| {
        catcher.host.now = catcher.host.now + Duration::from_millis(1);
        let (header, message) = whole(300, 1);
        let header = Ipv4Header { source: ipv4(source), identification, ..header };
        let (from, to) = if first { (0, 160) } else { (160, 308) };
        catcher.host.receive(0, &piece(&header, &message, from, to));
        catcher.host.drops.of(&FRAGMENTS_FULL)
    };
    let dropped: Vec<u64> =
        [(2, 1), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6)].map(|(source, id)| receive(source, id, true)).to_vec();
    assert_eq!(dropped, [0, 0, 1, 1, 1, 2], "source 2 has two already; then there are four");
    // What is left: the youngest of source 2, and all of the others. Their checksums are over another source.
    for (source, identification) in [(2, 3), (3, 4), (4, 5), (5, 6)] {
        receive(source, identification, false);
    }
    let checksums = catcher.host.drops.of(&crate::udp::BAD_CHECKSUM);
    assert_eq!((catcher.caught().len(), checksums), (1, 3));
}

#[test]
fn bytes_are_bounded_whoever_sends_what() {
    let mut setup = Setup::host(1);
    setup.ipv4.reassembly.bytes = 64 * 1024;
    let mut catcher = Catcher::with(setup);
    let (header, message) = whole(1400, 1);
    for identification in 0..1000 {
        let header =
            Ipv4Header { identification, source: Ipv4Addr::new(10, 0, 0, 2 + (identification % 9) as u8), ..header };
        catcher.receive(&piece(&header, &message, 0, 800));
    }
    let kept = 1000 - catcher.host.drops.of(&FRAGMENTS_FULL);
    assert!((20..=80).contains(&kept), "{kept} fragments of some 950 bytes in 64 KiB");
    catcher.host.at(Instant::ZERO + Duration::from_secs(30));
    assert_eq!(catcher.host.drops.of(&FRAGMENTS_FULL) + catcher.host.drops.of(&FRAGMENTS_LATE), 1000);
}

#[test]
fn a_packet_of_too_many_pieces_is_refused() {
    let mut catcher = Catcher::new();
    let (header, message) = whole(8 * 200, 1);
    let cuts: Vec<usize> = (1..200).map(|unit| unit * 8).collect();
    for frame in pieces(&header, &message, &cuts) {
        catcher.receive(&frame);
    }
    assert!(catcher.caught().is_empty());
    let (many, rest) = (catcher.host.drops.of(&TOO_MANY_FRAGMENTS), catcher.host.drops.of(&OVERLAP));
    assert_eq!((many, rest), (129, 200 - 129), "the 128 kept and one more; then the rest");
}

#[test]
fn a_fragment_for_a_protocol_nobody_has_is_kept_and_then_unreachable() {
    let mut host = Host::new(Setup::host(1));
    host.knows(2);
    let message = noise(300, 1);
    let header = ip_header(2, 1, EXPERIMENT, message.len());
    host.receive(0, &piece(&header, &message, 0, 160));
    host.receive(0, &piece(&header, &message, 160, 300));
    assert_eq!(host.drops.of(&linker::NO_UPPER), 1);
    let sent = host.frames();
    let (_, error) = open_packet(&sent[0]);
    assert_eq!((error[0], error[1]), (3, 2), "protocol unreachable");
    let quoted = Ipv4Header::parse(&error[8..]).unwrap();
    assert_eq!((usize::from(quoted.total_length), quoted.is_fragment()), (320, false));
}
