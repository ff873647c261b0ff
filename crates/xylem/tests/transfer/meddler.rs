//! A virtual protocol between TCP and IP: it marks what the network may mark, as a congested router would, and where a test
//! wants it does what no session may do, to show that somebody notices.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use xylem_core::{
    Checksum, Demux, Facts, Message, OpenError, Opening, Outbox, Protocol, Random, Session, Verdict, View,
};
use xylem_graph::build::{Entry, Making};
use xylem_graph::file::{
    DefaultValue, Description, Kind, OptionDescription, OptionKind, Presence, Provides, Role, Slot,
};
use xylem_wire::{Header, Sum, TcpHeader};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Two words of a payload change places, which no checksum sees.
    Swap,
    /// What goes again is swallowed: the sender sits there as if it had no timer.
    Mute,
    /// The windows that arrive look twice as wide.
    Widen,
    /// The windows that go out shrink as they like.
    Shrink,
    /// What arrives is kept for ever.
    Hoard,
    /// One buffer is never let go.
    Leak,
}

/// All of them, each at its own number.
pub const ALL: [Fault; 7] =
    [Fault::None, Fault::Swap, Fault::Mute, Fault::Widen, Fault::Shrink, Fault::Hoard, Fault::Leak];

const fn integer(name: &'static str, max: i64, summary: &'static str) -> OptionDescription {
    let presence = Presence::Default(DefaultValue::Integer(0));
    OptionDescription { name, kind: OptionKind::Integer { min: 0, max }, presence, summary }
}

/// How a test's catalogue knows it.
pub const ENTRY: Entry = Entry {
    description: Description {
        name: "meddler",
        summary: "marks segments on their way up, and does wrong on purpose",
        role: Role::Virtual,
        over: &[Slot::one("lower", &[Kind::NETWORK])],
        provides: Provides::AsBelow,
        options: &[
            integer("fault", ALL.len() as i64 - 1, "which"),
            integer("marks_per_million", 1_000_000, "segments marked, of those that may be"),
        ],
        ..Description::PLAIN
    },
    make: |making: &mut Making<'_>| {
        let number = |option: &str| making.settings.integer(option).unwrap_or(0);
        let (fault, marks) = (ALL[number("fault") as usize], number("marks_per_million") as u32);
        let upper = making.numbers_above().first().copied().unwrap_or(0);
        let seed = making.random.next();
        Ok(Some(Arc::new(Meddler { fault, marks, upper, seed })))
    },
};

struct Meddler {
    fault: Fault,
    marks: u32,
    upper: u32,
    seed: u64,
}

impl Protocol for Meddler {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let facts = opening.below()?;
        let hosts = (facts.local, facts.remote);
        let random = Random::seeded(self.seed);
        let (fault, marks) = (self.fault, self.marks);
        opening.stand(Meddling { fault, marks, random, hosts, popped: 0, highest: None, kept: Vec::new() });
        Ok(facts)
    }

    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        Demux::Up(self.upper)
    }
}

struct Meddling {
    fault: Fault,
    marks: u32,
    random: Random,
    hosts: (Option<IpAddr>, Option<IpAddr>),
    popped: usize,
    highest: Option<xylem_wire::SequenceNumber>,
    kept: Vec<Message>,
}

/// Which message with data on its way up suffers, where it is one only.
const WHICH: usize = 3;

/// The message with another header, its checksum right again.
fn rewrite(message: &mut Message, header: TcpHeader, mut behind: Vec<u8>, (from, to): (IpAddr, IpAddr)) {
    let attributes = message.attributes.clone();
    let sum = Sum::of(&behind);
    let length = (TcpHeader::LEN + behind.len()) as u32;
    let header = TcpHeader { checksum: header.checksum_to_send(from, to, sum, length), ..header };
    let mut bytes = vec![0; TcpHeader::LEN];
    header.build(&mut bytes);
    bytes.append(&mut behind);
    *message = Message::from_bytes(&bytes);
    message.attributes = attributes;
    message.attributes.checksum = Checksum::None;
}

impl Meddling {
    fn places(&self) -> (IpAddr, IpAddr) {
        let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        (self.hosts.0.unwrap_or(nobody), self.hosts.1.unwrap_or(nobody))
    }

    fn spoil(&mut self, message: &mut Message) {
        let bytes = message.to_vec();
        let Ok(header) = TcpHeader::parse(&bytes) else { return };
        let (local, remote) = self.places();
        let payload = header.header_length();
        let mut behind = bytes[TcpHeader::LEN..].to_vec();
        match self.fault {
            Fault::Swap if bytes.len() >= payload + 40 => {
                self.popped += 1;
                if self.popped == WHICH {
                    let at = payload - TcpHeader::LEN;
                    for byte in 0..2 {
                        behind.swap(at + byte, at + 32 + byte);
                    }
                    rewrite(message, header, behind, (remote, local));
                }
            }
            Fault::Widen => {
                let window = header.window.saturating_mul(2);
                rewrite(message, TcpHeader { window, ..header }, behind, (remote, local));
            }
            Fault::Hoard => self.kept.push(message.share()),
            Fault::Leak if bytes.len() > payload => {
                self.popped += 1;
                if self.popped == WHICH {
                    std::mem::forget(message.share());
                }
            }
            _ => {}
        }
    }
}

impl Session for Meddling {
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let marks = &mut message.attributes.congestion_marks;
        if self.marks > 0 && self.random.chance_per_million(self.marks) {
            *marks = (*marks).max(1);
        }
        self.spoil(message);
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let Ok(header) = TcpHeader::parse(&message.to_vec()) else { return Verdict::Pass };
        let length = message.len() - header.header_length();
        match self.fault {
            Fault::Mute if length > 0 => {
                let end = header.sequence + length as u32;
                let is_new = self.highest.is_none_or(|highest| end.is_after(highest));
                if !is_new {
                    return Verdict::Keep;
                }
                self.highest = Some(end);
            }
            Fault::Shrink if length == 0 && header.window > 10 && self.random.chance_per_million(200_000) => {
                let behind = message.to_vec()[TcpHeader::LEN..].to_vec();
                let window = header.window / 2;
                rewrite(message, TcpHeader { window, ..header }, behind, self.places());
            }
            _ => {}
        }
        Verdict::Pass
    }
}
