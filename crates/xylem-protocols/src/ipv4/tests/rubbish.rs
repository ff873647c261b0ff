//! Bytes from the wire are anything. Whatever they are, nothing panics, nothing grows without bound, and no frame that is
//! sent in answer is malformed.

use super::super::*;
use super::*;
use xylem_core::{Duration, Random};
use xylem_wire::{EtherType, EthernetHeader, IcmpKind, Sum};

/// One frame, more or less like those that arrive.
fn draw(random: &mut Random) -> Vec<u8> {
    let unit = if random.below(2) == 0 { 8 } else { 1 };
    let mut payload = noise(random.below(200 / unit) as usize * unit as usize, random.next());
    let protocol = [IpProtocol::ICMP, IpProtocol::UDP, IpProtocol::TCP, EXPERIMENT][random.below(4) as usize];
    if protocol == IpProtocol::ICMP && payload.len() >= 8 {
        payload[0] = [3, 8, 0, 11, 12, 5, 13][random.below(7) as usize];
        payload[1] = random.below(6) as u8;
        if payload.len() >= 40 && IcmpKind(payload[0]).is_error() && random.below(2) == 0 {
            let quote = ip_header(1, 2, IpProtocol::UDP, 100);
            quote.build(&mut payload[8..]);
        }
        payload[2..4].fill(0);
        let checksum = Sum::of(&payload).checksum();
        payload[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    if protocol == IpProtocol::UDP && random.below(2) == 0 {
        payload = datagram((2, 9), (1, [7, 8, 9][random.below(3) as usize]), &payload);
    }
    let fragmented = random.below(3) == 0;
    let header = Ipv4Header {
        identification: random.below(64) as u16,
        more_fragments: fragmented && random.below(2) == 0,
        fragment_offset: FragmentOffset::of_units(if fragmented { random.below(10) as u16 } else { 0 }).unwrap(),
        time_to_live: random.below(4) as u8,
        ..ip_header(2, [1, 1, 1, 3, 255][random.below(5) as usize], protocol, payload.len())
    };
    let mut options = noise(random.below(11) as usize * 4, random.next());
    if let Some(kind) = options.first_mut().filter(|_| random.below(2) == 0) {
        *kind = [1, 7, 131, 137, 148][random.below(5) as usize];
    }
    let packet = match random.below(4) {
        0 => packet_with(&header, &options, &payload),
        _ => packet(&header, &payload),
    };
    let mut frame = frame(mac(2), mac(1), EtherType::IPV4, &packet);
    match random.below(8) {
        0 => frame.truncate(random.below(frame.len() as u64) as usize),
        1 => {
            let place = random.below(frame.len() as u64) as usize;
            frame[place] ^= 1 << random.below(8);
        }
        2 => frame.resize(frame.len() + random.below(40) as usize, 0xee),
        _ => {}
    }
    frame
}

#[test]
fn random_frames_never_harm() {
    for forwarding in [false, true] {
        let mut setup = Setup::host(1);
        setup.ipv4.forwarding = forwarding;
        setup.icmp.errors_per_second = 1_000_000;
        let mut host = Host::new(setup);
        host.knows(2);
        let enable = host.enable(host.udp, wild(7)).unwrap();
        host.open_udp(Some(8), 2, 9).unwrap();
        let mut random = Random::seeded(if forwarding { 1 } else { 2 });
        for round in 0..60_000_u32 {
            let frame = draw(&mut random);
            host.receive(0, &frame);
            for sent in host.frames() {
                if EthernetHeader::parse(&sent).unwrap().kind == EtherType::IPV4 {
                    open_packet(&sent);
                }
            }
            if round % 64 == 0 {
                host.at(host.now + Duration::from_secs(7));
            }
            host.listening[enable].delivered.clear();
            host.paths[0].delivered.clear();
            host.paths[0].told.clear();
        }
        for reason in [&BAD_CHECKSUM, &OVERLAP, &TINY_FRAGMENT, &FRAGMENTS_LATE, &BAD_TOTAL_LENGTH, &SOURCE_ROUTED] {
            assert!(host.drops.of(reason) > 0, "nothing was ever dropped for {reason}: {:?}", host.drops);
        }
    }
}

#[test]
fn pure_noise_never_harms() {
    let mut host = Host::new(Setup::host(1));
    let mut random = Random::seeded(9);
    for round in 0..40_000 {
        let mut frame = noise(random.below(120) as usize, round);
        if frame.len() > 14 {
            frame[..6].copy_from_slice(&mac(1).0);
            frame[6] &= 0xfe;
            frame[12..14].copy_from_slice(&[8, [0, 6][random.below(2) as usize]]);
            if random.below(2) == 0 {
                frame[14] = 0x45;
            }
        }
        host.receive(0, &frame);
    }
}
