//! Two hosts and a link between them that loses, doubles, reorders and corrupts as its seed says, in virtual time.

use super::host::{Connection, Host};
use crate::tcp::TcpConfig;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use xylem_core::{Duration, Instant, Message, Random};

pub const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
pub const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
pub const B6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

/// What the link does, in parts of a million segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u32,
    pub doubled: u32,
    pub late: u32,
    pub corrupted: u32,
}

pub struct Net {
    pub hosts: [Host; 2],
    pub now: Instant,
    pub faults: Faults,
    pub delay: Duration,
    pub random: Random,
    /// Whether segments stay messages (with checksums to be completed) or go as bytes.
    pub local: bool,
    wire: BTreeMap<(Instant, u64), (usize, Message)>,
    count: u64,
    /// Segments of more bytes than this, TCP's header included, vanish without a word.
    pub swallows: usize,
    /// Segments carried so far, before faults.
    pub carried: usize,
    /// Prints every segment, for whoever looks for a mistake.
    pub trace: bool,
}

impl Net {
    pub fn new(seed: u64) -> Net {
        Net::with(seed, TcpConfig::default(), TcpConfig::default())
    }

    pub fn with(seed: u64, one: TcpConfig, other: TcpConfig) -> Net {
        Net::between(seed, one, other, A, B)
    }

    pub fn between(seed: u64, one: TcpConfig, other: TcpConfig, a: IpAddr, b: IpAddr) -> Net {
        let mut random = Random::seeded(seed);
        Net {
            hosts: [Host::new(one, random.next(), a, b), Host::new(other, random.next(), b, a)],
            now: Instant::ZERO + Duration::from_secs(1),
            faults: Faults::default(),
            delay: Duration::from_millis(5),
            random,
            local: false,
            wire: BTreeMap::new(),
            count: 0,
            swallows: usize::MAX,
            carried: 0,
            trace: false,
        }
    }

    /// An open connection: its index on either host. Host 1 listens at port 80.
    pub fn connect(&mut self) -> (usize, usize) {
        self.hosts[1].listen(80, 8).unwrap();
        let a = self.hosts[0].open(self.now, None, 80).unwrap();
        self.run_for(Duration::from_millis(100));
        assert_eq!(self.hosts[0].state(self.now, a), "ESTABLISHED");
        assert_eq!(self.hosts[1].connections.len(), 1);
        (a, 0)
    }

    /// Puts what the hosts have sent on the wire.
    pub fn carry(&mut self) {
        for from in 0..2 {
            let sent = std::mem::take(&mut self.hosts[from].sent);
            for message in sent {
                self.carried += 1;
                self.put(1 - from, message);
            }
        }
    }

    fn put(&mut self, to: usize, mut message: Message) {
        let random = &mut self.random;
        let is_lost = random.chance_per_million(self.faults.lost) || message.len() > self.swallows;
        if self.trace {
            let header = crate::tcp::segment::read_header(&mut message).unwrap();
            let mark = if is_lost { " LOST" } else { "" };
            let payload = message.len() - xylem_wire::Header::header_length(&header);
            let (flags, sequence, acknowledgment) = (header.flags, header.sequence, header.acknowledgment);
            let ms = self.now.as_nanos() as f64 / 1e6;
            println!("{ms:>10.3} >{to} {flags} {sequence}+{payload} ack {acknowledgment} win {}{mark}", header.window);
        }
        if is_lost {
            return;
        }
        if !self.local {
            message.complete_checksum();
            let mut bytes = message.to_vec();
            if random.chance_per_million(self.faults.corrupted) {
                let bit = random.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            message = Message::from_bytes(&bytes);
        }
        let copies = if random.chance_per_million(self.faults.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            let mut at = self.now + self.delay;
            if random.chance_per_million(self.faults.late) {
                at = at + Duration::from_nanos(random.below(20_000_000));
            }
            self.count += 1;
            self.wire.insert((at, self.count), (to, message.share()));
        }
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Instant> {
        let wire = self.wire.keys().next().map(|(at, _)| *at);
        let hosts = self.hosts.iter().filter_map(Host::deadline).min();
        [wire, hosts].into_iter().flatten().min().map(|at| at.max(self.now))
    }

    /// As [`step`](Net::step), leaving what host 0 sends for the caller to put on the wire or not.
    pub fn step_dropping(&mut self, end: Instant) -> bool {
        self.carry();
        self.advance(end)
    }

    /// Goes to the next thing that happens, if it is not after `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        self.carry();
        let is_alive = self.advance(end);
        self.carry();
        is_alive
    }

    fn advance(&mut self, end: Instant) -> bool {
        let Some(at) = self.next().filter(|at| *at <= end) else { return false };
        self.now = at;
        while let Some((key, _)) = self.wire.first_key_value().filter(|((at, _), _)| *at <= self.now) {
            let key = *key;
            let Some((to, message)) = self.wire.remove(&key) else { break };
            self.hosts[to].arrive(self.now, message);
        }
        for host in &mut self.hosts {
            host.expire(self.now);
        }
        true
    }

    /// For failures: what either host has received, heard and dropped.
    pub fn report(&self) -> Vec<String> {
        let host = |host: &Host| {
            let drops: Vec<_> = host.drops.iter().collect();
            let of = |connection: &Connection| (connection.received.len(), connection.events.clone());
            format!("{:?} dropped {drops:?}", host.connections.iter().map(of).collect::<Vec<_>>())
        };
        self.hosts.iter().map(host).collect()
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut steps = 0;
        while self.step(end) {
            steps += 1;
            assert!(steps < 2_000_000, "time stands still at {:?}", self.now);
        }
        self.now = end;
    }
}
