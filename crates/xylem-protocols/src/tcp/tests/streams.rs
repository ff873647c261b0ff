//! Law 8: whatever the link does short of never delivering, a stream delivers exactly what was sent, in order; and after
//! close nothing is left.

use super::link::{A6, B6, Faults, Net};
use crate::tcp::TcpConfig;
use xylem_core::{Duration, Event, Random, Setting};

/// The byte at `place` of the stream named `stream`.
fn byte(stream: u64, place: usize) -> u8 {
    (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(stream).to_be_bytes()[0]
}

pub fn bytes(stream: u64, count: usize) -> Vec<u8> {
    (0..count).map(|place| byte(stream, place)).collect()
}

/// Sends `sizes` bytes in both directions over `net`, then closes, and checks every byte and that nothing is left.
fn converse(net: &mut Net, seed: u64, sizes: [usize; 2], writes: u64) {
    net.hosts[1].listen(80, 8).unwrap();
    let a = net.hosts[0].open(net.now, None, 80).unwrap();
    let streams = [bytes(seed, sizes[0]), bytes(!seed, sizes[1])];
    let mut sent = [0, 0];
    let mut random = Random::seeded(seed ^ 0x5eed);
    let end = net.now + Duration::from_secs(3600);
    let mut done = false;
    while !done {
        for side in 0..2 {
            if net.hosts[side].connections.is_empty() {
                continue;
            }
            let index = if side == 0 { a } else { 0 };
            while sent[side] < sizes[side] {
                let most = 1 + random.below(writes) as usize;
                let part = &streams[side][sent[side]..sizes[side].min(sent[side] + most)];
                let now = net.now;
                let count = net.hosts[side].push(now, index, part);
                sent[side] += count;
                if count == 0 {
                    break;
                }
            }
            if sent[side] == sizes[side] {
                sent[side] += 1;
                let now = net.now;
                net.hosts[side].set(now, index, Setting::SendClosed);
            }
        }
        let is_alive = net.step(end);
        let closed =
            |side: usize| net.hosts[side].connections.first().is_some_and(|c| c.events.contains(&Event::PeerClosed));
        done = closed(0) && closed(1);
        assert!(done || is_alive, "seed {seed}: stalled, {sizes:?} to receive: {:?}", net.report());
    }
    for side in 0..2 {
        let got = &net.hosts[1 - side].connections[0].received;
        assert!(
            *got == streams[side],
            "seed {seed}: the stream from {side} came out wrong: {} of {}",
            got.len(),
            sizes[side]
        );
        let now = net.now;
        net.hosts[side].close(now, 0);
    }
    net.run_for(Duration::from_secs(400));
    for host in &net.hosts {
        assert_eq!(host.protocol.counts(), (0, 0, 0), "seed {seed}: something is left");
        assert!(host.connections.iter().all(|connection| connection.path.is_none()), "seed {seed}");
        assert_eq!(host.out.pool().held(), (0, 0), "seed {seed}: buffers are left");
        assert!(host.deadline().is_none());
    }
}

#[test]
fn a_clean_link_delivers_both_ways() {
    for seed in 0..20 {
        let mut net = Net::new(seed);
        converse(&mut net, seed, [300_000, 100_000], 50_000);
    }
}

#[test]
fn a_bad_link_delivers_both_ways() {
    for seed in 0..320 {
        let mut random = Random::seeded(seed);
        let mut net = Net::new(seed);
        let mut at_most = |most: u64| random.below(most) as u32;
        net.faults = Faults {
            lost: at_most(150_000),
            doubled: at_most(100_000),
            late: at_most(300_000),
            corrupted: at_most(50_000),
        };
        converse(&mut net, seed, [40_000, 15_000], 6_000);
    }
}

#[test]
fn small_buffers_no_options_and_ipv6_deliver_too() {
    for seed in 0..60 {
        let mut random = Random::seeded(seed);
        let mut config = || TcpConfig {
            receive_buffer: 2048 + random.below(10_000) as usize,
            send_buffer: 4096 + random.below(10_000) as usize,
            receive_buffer_max: 0,
            send_buffer_max: 0,
            window_scaling: random.chance_per_million(500_000),
            timestamps: random.chance_per_million(500_000),
            selective_acknowledgments: random.chance_per_million(500_000),
            no_delay: random.chance_per_million(500_000),
            ..TcpConfig::default()
        };
        let (one, other) = (config(), config());
        let mut net = Net::between(seed, one, other, A6, B6);
        net.faults = Faults { lost: 50_000, doubled: 20_000, late: 100_000, corrupted: 10_000 };
        converse(&mut net, seed, [20_000, 20_000], 3_000);
    }
}

/// More segments than one verb may send: the rest goes in the next call, which is wanted at once.
#[test]
fn more_than_one_verb_may_send_is_sent_all_the_same() {
    let config = TcpConfig { receive_buffer: 4 << 20, send_buffer: 4 << 20, ..TcpConfig::default() };
    let mut net = Net::with(3, config.clone(), config);
    net.hosts[0].facts.segment_max = super::host::MTU;
    converse(&mut net, 3, [8_000_000, 1000], 200_000);
    assert_eq!(net.hosts[0].drops.total() + net.hosts[1].drops.total(), 0);
}
