//! Segments from somebody who means harm: random, almost right, or right at the wrong time. Nothing panics, nothing is
//! delivered that the peer did not send, nothing grows beyond its limit, and what is sent stays bounded.

use super::host::Host;
use super::link::{A, B};
use super::script::{Script, segment};
use crate::tcp::TcpConfig;
use xylem_core::{Checksum, Duration, Message, Random, Setting};
use xylem_wire::{Header, TcpHeader, TcpOptions};

/// Bytes that are a TCP header, or nearly.
fn random_segment(random: &mut Random) -> Vec<u8> {
    if random.chance_per_million(100_000) {
        let mut bytes = vec![0; random.below(80) as usize];
        random.fill(&mut bytes);
        return bytes;
    }
    let header = TcpHeader::generate(&mut || random.next());
    let length = header.header_length().max(TcpHeader::LEN);
    let mut bytes = vec![0; length + random.below(100) as usize];
    random.fill(&mut bytes);
    header.build(&mut bytes);
    if random.chance_per_million(500_000) {
        let options = TcpOptions::generate(&mut || random.next());
        if TcpHeader::LEN + options.length() <= bytes.len() {
            options.build(&mut bytes[TcpHeader::LEN..]);
        }
    }
    bytes
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random::seeded(1);
    let mut host = Host::new(TcpConfig { embryos_max: 50, ..TcpConfig::default() }, 1, A, B);
    host.listen(80, 20).unwrap();
    let mut now = xylem_core::Instant::ZERO + Duration::from_secs(1);
    for _ in 0..60_000 {
        let mut bytes = random_segment(&mut random);
        if bytes.len() > 4 && random.chance_per_million(800_000) {
            // Mostly for the port that listens.
            bytes[2..4].copy_from_slice(&80u16.to_be_bytes());
        }
        let mut message = Message::from_bytes(&bytes);
        message.attributes.checksum = Checksum::Verified;
        host.arrive(now, message);
        now = now + Duration::from_millis(random.below(20));
        host.expire(now);
        host.sent.clear();
        assert!(host.protocol.counts().1 <= 20);
    }
}

/// Segments that belong to the connection and are wrong in every other way, in every state.
#[test]
fn segments_that_almost_belong_never_panic_and_deliver_nothing_foreign() {
    for seed in 0..600 {
        let mut random = Random::seeded(seed);
        let config = TcpConfig {
            receive_buffer: 4096,
            receive_buffer_max: 0,
            timestamps: seed % 2 == 0,
            ..TcpConfig::default()
        };
        let mut script = match seed % 4 {
            0 => Script::syn_sent(config),
            _ => {
                let mut script = Script::syn_sent(config);
                let answer = segment("S.", 0, 1).mss(700).scale(2);
                script.inject(if seed % 2 == 0 { answer.stamp(7, 7) } else { answer });
                script
            }
        };
        for _ in 0..150 {
            let near = |random: &mut Random| match random.below(4) {
                0 => random.next() as u32,
                1 => random.below(10) as u32,
                _ => random.below(6000) as u32,
            };
            let text = ["P.", ".", ".", "F.", "U.", "S", "S.", "", "FU."][random.below(9) as usize];
            let one = segment(text, near(&mut random), near(&mut random))
                .window(random.below(3000) as u16)
                .urgent(random.next() as u16)
                .data(&vec![random.next() as u8; random.below(2000) as usize]);
            let one = if random.chance_per_million(700_000) { one.stamp(7 + random.below(9) as u32, 7) } else { one };
            script.inject(one);
            if script.host.connections[0].path.is_none() {
                break;
            }
            match random.below(40) {
                0 => drop(script.host.push(script.now, 0, &[1; 3000])),
                1 => script.set(Setting::SendClosed),
                2 => script.close(),
                3 if script.host.connections[0].path.is_some() => script.set(Setting::ReceiveClosed),
                4 => script.wait(Duration::from_millis(random.below(100_000))),
                _ => {}
            }
            let connection = &mut script.host.connections[0];
            connection.reads = random.chance_per_million(500_000);
        }
        let sent: usize = script.host.sent.len();
        assert!(sent < 20_000, "seed {seed}: {sent} segments in answer to 150");
    }
}

/// A SYN flood costs its embryos and nothing else, and the listener goes on.
#[test]
fn a_flood_of_syns_is_bounded() {
    let mut script = Script::listening(Script::config(), 64);
    let mut answers = 0;
    for round in 0..20_000u32 {
        script.peer_port = 1 + (round % 60_000) as u16;
        script.inject(segment("S", round, 0));
        assert!(script.host.protocol.counts().1 <= 64);
        answers += script.raw_sent().len();
    }
    assert_eq!(answers, 20_000, "one answer each");
    script.wait(Duration::from_secs(100));
    assert_eq!(script.host.protocol.counts(), (0, 0, 0));
    assert!(script.raw_sent().len() <= 64 * 5);
}

/// Early data is bounded in pieces and in memory, however it comes.
#[test]
fn early_data_is_bounded() {
    let mut script = Script::open(TcpConfig { early_pieces_max: 16, ..Script::config() });
    for piece in 0..1000u32 {
        script.inject(segment(".", 3 + piece * 3, 1).data(b"x"));
    }
    assert_eq!(script.dropped(&crate::tcp::drops::EARLY_FULL), 1000 - 16);
    script.raw_sent();
    script.inject(segment(".", 1, 1).data(b"ab"));
    assert_eq!(script.host.connections[0].received, b"abx");
}

/// Two ends that disagree about everything do not answer each other for ever.
#[test]
fn acknowledgments_of_acknowledgments_end() {
    let mut script = Script::open(Script::config());
    for _ in 0..1000 {
        script.inject(segment(".", 500_000, 1));
    }
    assert!(script.raw_sent().len() <= 10);
}
