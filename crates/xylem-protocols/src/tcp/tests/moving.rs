//! Moving a connection to another TCP in mid-stream, and records that are not what they should be.

use super::link::{Faults, Net};
use super::script::{Script, segment};
use super::streams::bytes;
use crate::tcp::congestion::{Algorithm, BBR, CUBIC, RENO};
use crate::tcp::{QUEUED_MAX, TcpConfig};
use xylem_core::{Duration, OpenError, Random, Record, Setting};

/// Moves host 0's connection `index` to a new TCP at the same address; returns its new index.
fn moved(net: &mut Net, index: usize, seed: u64) -> usize {
    let path = net.hosts[0].connections[index].path.take().unwrap();
    let record = path.export();
    let port = path.participants.local.find_port().unwrap().0;
    let received = std::mem::take(&mut net.hosts[0].connections[index].received);
    drop(path);
    let (local, remote) = (net.hosts[0].local(), net.hosts[0].remote());
    let mut host = super::host::Host::new(TcpConfig::default(), seed, local, remote);
    host.sent = std::mem::take(&mut net.hosts[0].sent);
    net.hosts[0] = host;
    let mut record = Record::from_bytes(record.as_bytes().to_vec());
    let index = net.hosts[0].import(net.now, port, 80, &mut record).unwrap();
    assert!(record.is_exhausted());
    net.hosts[0].connections[index].received = received;
    index
}

#[test]
fn a_connection_moves_in_mid_stream() {
    for seed in 0..60 {
        let mut net = Net::new(seed);
        let (mut a, b) = net.connect();
        net.faults = Faults { lost: 20_000, doubled: 20_000, late: 100_000, corrupted: 5_000 };
        let mut random = Random::seeded(seed);
        let data = bytes(seed, 120_000);
        let back = bytes(!seed, 60_000);
        let (mut sent, mut sent_back, mut moves) = (0, 0, 0);
        let end = net.now + Duration::from_secs(1000);
        while net.hosts[1].connections[b].received.len() < data.len()
            || net.hosts[0].connections[a].received.len() < back.len()
        {
            let now = net.now;
            if net.hosts[0].connections[a].path.as_ref().unwrap().room() > 230_000 {
                let part = &data[sent..data.len().min(sent + 20_000)];
                sent += net.hosts[0].push(now, a, part);
            }
            sent_back += net.hosts[1].push(now, b, &back[sent_back..]);
            if random.chance_per_million(150_000) && moves < 8 {
                a = moved(&mut net, a, seed + moves);
                moves += 1;
            }
            assert!(net.step(end), "seed {seed}: stalled after {moves} moves, {:?}", net.report());
        }
        assert!(net.hosts[1].connections[b].received == data, "seed {seed}");
        assert!(net.hosts[0].connections[a].received == back, "seed {seed}");
        assert!(moves > 0, "seed {seed}: nothing was moved");
        for side in 0..2 {
            let now = net.now;
            let index = [a, b][side];
            net.hosts[side].close(now, index);
        }
        net.run_for(Duration::from_secs(400));
        assert!(net.hosts.iter().all(|host| host.protocol.counts() == (0, 0, 0)), "seed {seed}");
    }
}

#[test]
fn every_state_moves() {
    let close = |script: &mut Script| script.set(Setting::SendClosed);
    // Each state, and how an open connection gets there.
    type Way<'a> = &'a dyn Fn(&mut Script);
    let ways: [(&str, Way); 8] = [
        ("ESTABLISHED", &|_| {}),
        ("FIN-WAIT-1", &|script| close(script)),
        ("FIN-WAIT-2", &|script| {
            close(script);
            script.inject(segment(".", 1, 2));
        }),
        ("CLOSE-WAIT", &|script| script.inject(segment("F.", 1, 1))),
        ("CLOSING", &|script| {
            close(script);
            script.inject(segment("F.", 1, 1));
        }),
        ("LAST-ACK", &|script| {
            script.inject(segment("F.", 1, 1));
            close(script);
        }),
        ("TIME-WAIT", &|script| {
            close(script);
            script.inject(segment("F.", 1, 2));
        }),
        ("CLOSED", &|script| {
            script.push(3000);
            script.inject(segment("R", 1, 0));
        }),
    ];
    let opened = ways.map(|(state, way)| {
        let mut script = Script::open(Script::config());
        way(&mut script);
        (state, script)
    });
    let opening = ("SYN-SENT", Script::syn_sent(Script::config()));
    for (state, mut script) in opened.into_iter().chain([opening]) {
        assert_eq!(script.state(), state);
        let before = script.host.connections[0].path.take().unwrap().export();
        let mut record = Record::from_bytes(before.as_bytes().to_vec());
        let index = script.host.import(script.now, 40_000, 80, &mut record).unwrap();
        assert_eq!(script.host.state(script.now, index), state);
    }
}

/// A record that comes from elsewhere is read like a packet: it may be refused, and never does harm.
#[test]
fn hostile_records_are_refused_or_harmless() {
    [&RENO, &CUBIC, &BBR].into_iter().for_each(hostile_records);
}

fn hostile_records(congestion: &'static Algorithm) {
    let config = TcpConfig { congestion, ..Script::config() };
    let mut script = Script::open(config.clone());
    script.push(3000);
    let record = script.host.connections[0].path.as_ref().unwrap().export();
    drop(script.host.connections[0].path.take());
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random::seeded(seed);
        let mut bytes = record.as_bytes().to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(200.min(bytes.len() as u64)) as usize;
            bytes[at] = random.next() as u8;
        }
        if random.chance_per_million(200_000) {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        let mut host = super::host::Host::new(config.clone(), seed, script.host.local(), script.host.remote());
        match host.import(script.now, 40_000, 80, &mut Record::from_bytes(bytes)) {
            Err(error) => {
                assert!(matches!(error, OpenError::Record(_)), "{error}");
                refused += 1;
            }
            Ok(index) => {
                taken += 1;
                host.push(script.now, index, &[1; 5000]);
                for number in 0..20 {
                    let text = ["P.", ".", "F.", "U.", "S", "R"][random.below(6) as usize];
                    let one = segment(text, random.below(4000) as u32, random.below(4000) as u32);
                    host.arrive(script.now, script.build(&one.data(&vec![1; number * 10])));
                }
                let mut now = script.now;
                for _ in 0..50 {
                    let Some(at) = host.deadline() else { break };
                    now = now.max(at);
                    host.expire(now);
                    host.sent.clear();
                }
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} refused, {taken} taken");
}

#[test]
fn a_queue_too_long_for_a_record_says_so() {
    let mut script = Script::open(Script::config());
    script.push(QUEUED_MAX + 1);
    let record = script.host.connections[0].path.take().unwrap().export();
    let mut record = Record::from_bytes(record.as_bytes().to_vec());
    let error = script.host.import(script.now, 40_000, 80, &mut record).unwrap_err();
    assert!(error.to_string().contains("queued bytes"), "{error}");
}
