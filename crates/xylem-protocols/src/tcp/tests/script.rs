//! One host against a script: exact segments in, exact segments out, numbers counted from each side's SYN. A segment is
//! written as packet dumps write it: flags, number, payload bytes, acknowledgment.

use super::host::Host;
use super::link::{A, B};
use crate::tcp::congestion::RENO;
use crate::tcp::ends::Ends;
use crate::tcp::segment::{Answer, read_header};
use crate::tcp::{MtuProbing, TcpConfig};
use std::net::IpAddr;
use xylem_core::{Duration, Endpoint, Instant, Message};
use xylem_wire::{
    FastOpenCookie, Header, Port, SackBlock, SequenceNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

/// The port of the scripted peer, and ours.
const PEER: u16 = 80;
const OURS: u16 = 40_000;

/// A segment of the peer, its numbers counted from the SYNs.
#[derive(Clone, Debug)]
pub struct Segment {
    flags: TcpFlags,
    sequence: u32,
    acknowledgment: u32,
    window: u16,
    urgent: u16,
    data: Vec<u8>,
    options: TcpOptions,
    raw_acknowledgment: Option<SequenceNumber>,
    marks: u16,
    blocks: Vec<(u32, u32)>,
}

/// A segment with these flags, number and acknowledgment.
pub fn segment(flags: &str, sequence: u32, acknowledgment: u32) -> Segment {
    let flag = |letter| match letter {
        'S' => TcpFlags::SYN,
        'F' => TcpFlags::FIN,
        'R' => TcpFlags::RST,
        'P' => TcpFlags::PSH,
        'U' => TcpFlags::URG,
        '.' => TcpFlags::ACK,
        'E' => TcpFlags::ECE,
        'W' => TcpFlags::CWR,
        other => panic!("{other} is no flag"),
    };
    Segment {
        flags: flags.chars().map(flag).fold(TcpFlags::NONE, |all, one| all | one),
        sequence,
        acknowledgment,
        window: 65_000,
        urgent: 0,
        data: Vec::new(),
        options: TcpOptions::NONE,
        raw_acknowledgment: None,
        marks: 0,
        blocks: Vec::new(),
    }
}

impl Segment {
    pub fn window(self, window: u16) -> Segment {
        Segment { window, ..self }
    }
    pub fn urgent(self, urgent: u16) -> Segment {
        Segment { urgent, ..self }
    }
    pub fn data(self, data: &[u8]) -> Segment {
        Segment { data: data.to_vec(), ..self }
    }
    pub fn mss(mut self, mss: u16) -> Segment {
        self.options.mss = Some(mss);
        self
    }
    pub fn scale(mut self, shift: u8) -> Segment {
        self.options.window_scale = Some(shift);
        self
    }
    /// Selective acknowledgments are permitted.
    pub fn permits_sack(mut self) -> Segment {
        self.options.sack_permitted = true;
        self
    }
    /// With blocks, whose numbers count from our SYN.
    pub fn sack(self, blocks: &[(u32, u32)]) -> Segment {
        Segment { blocks: blocks.to_vec(), ..self }
    }
    /// With a timestamp, echoing `echo`.
    pub fn stamp(mut self, value: u32, echo: u32) -> Segment {
        self.options.timestamps = Some(Timestamps { value: SequenceNumber(value), echo: SequenceNumber(echo) });
        self
    }
    /// So many of the segments it stands for were marked on the way.
    pub fn marked(self, marks: u16) -> Segment {
        Segment { marks, ..self }
    }
    /// With a cookie for fast open, or with no bytes the request for one.
    pub fn cookie(mut self, cookie: &[u8]) -> Segment {
        self.options.fast_open = FastOpenCookie::new(cookie);
        self
    }
    /// Acknowledges this number, whatever our SYN's was.
    pub fn raw(mut self, number: SequenceNumber) -> Segment {
        self.raw_acknowledgment = Some(number);
        self
    }
}

/// What we sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub text: String,
    pub header: TcpHeader,
    pub options: TcpOptions,
    pub data: Vec<u8>,
    /// Routers may mark it.
    pub ecn_capable: bool,
}

pub struct Script {
    pub host: Host,
    pub now: Instant,
    /// Our SYN's number, once seen, and the peer's.
    pub ours: SequenceNumber,
    pub theirs: SequenceNumber,
    /// The port of the peer the next segment comes from.
    pub peer_port: u16,
    pub our_port: u16,
    /// Our clock's value on our SYN, and when that went out.
    syn_stamp: Option<SequenceNumber>,
    syn_at: Instant,
}

impl Script {
    /// A host and a peer whose numbers wrap soon. Timestamps are off unless `config` says otherwise.
    pub fn new(config: TcpConfig) -> Script {
        let mut host = Host::new(config, 7, A, B);
        host.cuts = true;
        Script {
            host,
            now: Instant::ZERO + Duration::from_secs(100),
            ours: SequenceNumber(0),
            theirs: SequenceNumber(u32::MAX - 2),
            peer_port: PEER,
            our_port: OURS,
            syn_stamp: None,
            syn_at: Instant::ZERO,
        }
    }

    /// The usual settings of scripts: no timestamps, so that payloads are whole segments, and buffers that stay.
    pub fn config() -> TcpConfig {
        // Reno, whose windows can be worked out by hand.
        TcpConfig {
            congestion: &RENO,
            timestamps: false,
            window_scaling: false,
            receive_buffer_max: 0,
            send_buffer_max: 0,
            mtu_probing: MtuProbing::Off,
            ..TcpConfig::default()
        }
    }

    /// A connection in SYN-SENT: its SYN is taken.
    pub fn syn_sent(config: TcpConfig) -> Script {
        let mut script = Script::new(config);
        script.host.open(script.now, Some(OURS), PEER).unwrap();
        script.host.expire(script.now);
        let syn = script.raw_sent();
        assert_eq!(syn.len(), 1);
        assert_eq!(syn[0].header.flags, TcpFlags::SYN);
        script.ours = syn[0].header.sequence;
        script.syn_stamp = syn[0].options.timestamps.map(|timestamps| timestamps.value);
        script.syn_at = script.now;
        script
    }

    /// An open connection, actively opened, to a peer that takes segments of 1000 bytes.
    pub fn open(config: TcpConfig) -> Script {
        let mut script = Script::syn_sent(config);
        script.inject(segment("S.", 0, 1).mss(1000));
        script.expect(&[". 1+0 ack 1"]);
        assert_eq!(script.state(), "ESTABLISHED");
        script
    }

    /// As [`open`](Script::open), with a peer that knows selective acknowledgments, 40 ms of round trip away.
    pub fn open_selective(config: TcpConfig) -> Script {
        let mut script = Script::syn_sent(config.clone());
        script.wait_ms(40);
        let answer = segment("S.", 0, 1).mss(1000).permits_sack();
        script.inject(if config.timestamps { answer.mss(1012).stamp(7, script.stamp()) } else { answer });
        script.expect(&[". 1+0 ack 1"]);
        script
    }

    /// The value of our clock now.
    pub fn stamp(&self) -> u32 {
        let elapsed = self.now.since(self.syn_at).as_millis() as u32;
        self.syn_stamp.map_or(0, |stamp| stamp.0.wrapping_add(elapsed))
    }

    /// A host that listens, and whose next connection begins with the peer's SYN.
    pub fn listening(config: TcpConfig, backlog: usize) -> Script {
        let mut script = Script::new(config);
        script.host.listen(OURS, backlog).unwrap();
        script
    }

    /// A segment of the peer arrives.
    pub fn inject(&mut self, segment: Segment) {
        let message = self.build(&segment);
        self.host.arrive(self.now, message);
    }

    /// A segment of the peer as bytes, its checksum right.
    pub fn build(&self, segment: &Segment) -> Message {
        self.build_from(B, A, segment)
    }

    /// The same from one host to another.
    pub fn build_from(&self, from: IpAddr, to: IpAddr, segment: &Segment) -> Message {
        let end = |address, port| Endpoint { address, port: Port(port) };
        let ends = Ends { local: end(from, self.peer_port), remote: end(to, self.our_port) };
        let has_acknowledgment = segment.flags.contains(TcpFlags::ACK);
        let acknowledgment = match segment.raw_acknowledgment {
            Some(number) => number,
            None if has_acknowledgment => self.ours + segment.acknowledgment,
            None => SequenceNumber(0),
        };
        let mut options = segment.options;
        for (left, right) in &segment.blocks {
            let block = SackBlock { left: self.ours + *left, right: self.ours + *right };
            assert!(options.sack.push(block), "no room for more blocks");
        }
        let answer = Answer {
            sequence: self.theirs + segment.sequence,
            acknowledgment,
            flags: segment.flags,
            window: segment.window,
            urgent: segment.urgent,
            options,
        };
        let mut message = Message::from_bytes(&segment.data);
        answer.push(&mut message, &ends);
        message.complete_checksum();
        let mut message = Message::from_bytes(&message.to_vec());
        message.attributes.congestion_marks = segment.marks;
        message
    }

    /// What was sent since the last look.
    pub fn raw_sent(&mut self) -> Vec<Sent> {
        let sent = std::mem::take(&mut self.host.sent);
        sent.into_iter().map(|message| self.read(message)).collect()
    }

    fn read(&self, mut message: Message) -> Sent {
        let header = read_header(&mut message).expect("we send headers");
        let bytes = message.to_vec();
        let options = TcpOptions::parse(header.options(&bytes)).unwrap();
        let data = bytes[header.header_length()..].to_vec();
        let mut text = format!("{} {}+{}", header.flags, header.sequence.since(self.ours), data.len());
        if header.flags.contains(TcpFlags::ACK) {
            text += &format!(" ack {}", header.acknowledgment.since(self.theirs));
        }
        message.complete_checksum();
        let end = |address, port| Endpoint { address, port };
        let ends = Ends { local: end(A, header.source), remote: end(B, header.destination) };
        assert!(ends.pseudo(message.len()).add(message.sum(0)).is_right(), "a wrong checksum was sent: {text}");
        Sent { text, header, options, data, ecn_capable: message.attributes.ecn_capable }
    }

    /// What was sent since the last look is exactly this.
    #[track_caller]
    pub fn expect(&mut self, segments: &[&str]) -> Vec<Sent> {
        let sent = self.raw_sent();
        assert_eq!(sent.iter().map(|sent| sent.text.as_str()).collect::<Vec<_>>(), segments);
        sent
    }

    /// Time passes; what is due happens when it is due.
    pub fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        let mut steps = 0;
        while let Some(at) = self.host.deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.host.expire(self.now);
            steps += 1;
            assert!(steps < 100_000, "time stands still");
        }
        self.now = end;
    }

    pub fn wait_ms(&mut self, ms: u64) {
        self.wait(Duration::from_millis(ms));
    }

    /// The blocks of what we sent, their numbers counted from the peer's SYN.
    pub fn blocks(&self, sent: &Sent) -> Vec<(i32, i32)> {
        let number = |number: SequenceNumber| number.since(self.theirs);
        sent.options.sack.iter().map(|block| (number(block.left), number(block.right))).collect()
    }

    pub fn push(&mut self, bytes: usize) {
        let data: Vec<u8> = (0..bytes).map(|place| place as u8).collect();
        let mut done = 0;
        while done < bytes {
            let count = self.host.push(self.now, 0, &data[done..]);
            assert!(count > 0, "no room for {bytes} bytes");
            done += count;
        }
    }

    pub fn set(&mut self, setting: xylem_core::Setting) {
        self.host.set(self.now, 0, setting);
    }

    pub fn close(&mut self) {
        self.host.close(self.now, 0);
    }

    pub fn state(&mut self) -> &'static str {
        self.host.state(self.now, 0)
    }

    pub fn events(&mut self) -> Vec<xylem_core::Event> {
        std::mem::take(&mut self.host.connections[0].events)
    }

    pub fn dropped(&self, reason: &xylem_core::DropReason) -> u64 {
        self.host.drops.of(reason)
    }
}
