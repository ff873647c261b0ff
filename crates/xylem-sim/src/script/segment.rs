//! A segment as a script writes it: numbers counted from each side's SYN, and only those fields that matter. What is left
//! out is as usual in a segment to be sent, and not looked at in one to be expected.

use std::net::Ipv4Addr;
use xylem_wire::{Ecn, TcpFlags};

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Its flags; PSH is looked at only where it is written.
    pub flags: TcpFlags,
    /// The number of its first byte, or of its SYN.
    pub sequence: Place,
    /// Payload bytes.
    pub payload: u32,
    /// What it acknowledges, if it does.
    pub acknowledgment: Option<Place>,
    /// The window as it stands in the header, not scaled.
    pub window: Option<Extent>,
    /// The urgent pointer.
    pub urgent: Option<u16>,
    /// The options, in their order.
    pub options: Option<Vec<OptionWish>>,
    /// Further options may be there.
    pub others: bool,
    /// The two bits of congestion.
    pub ecn: Option<Ecn>,
    /// The time to live.
    pub hop_limit: Option<u8>,
    /// The differentiated-services code point.
    pub dscp: Option<u8>,
    /// What is wrong with it.
    pub flaws: Vec<Flaw>,
}

/// A sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Counted from the SYN of the side that sends the bytes.
    Counted(i64),
    /// As it stands in the header.
    Raw(u32),
    /// Whatever stands there.
    Any,
}

impl Default for Place {
    fn default() -> Place {
        Place::Counted(0)
    }
}

/// From the least to the most, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The least.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionWish {
    /// Maximum segment size; `None`: whichever.
    SegmentSize(Option<u16>),
    /// How far windows are shifted.
    WindowScale(Option<u8>),
    /// Selective acknowledgments are understood.
    SackPermitted,
    /// Timestamps; the sender's value, and the echo of the other side's.
    Timestamps(Stamp, Stamp),
    /// Selective acknowledgments: each run's first number and the one behind its last.
    Sack(Vec<(i64, i64)>),
    /// A fast-open cookie; `None`: whichever; empty: the request for one.
    Cookie(Option<Vec<u8>>),
    /// One byte of padding.
    NoOperation,
    /// The end of the list.
    End,
    /// These bytes, whatever they mean.
    Raw(Vec<u8>),
}

/// A value of a timestamp clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The peer's clock as it is; the subject's counted from its first value.
    Counted(i64),
    /// Whatever stands there; in a segment to be sent, the last value seen of the other side.
    Any,
}

/// What is wrong with a segment that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Its checksum.
    Checksum,
    /// The four reserved bits have this value.
    Reserved(u8),
    /// It says that its header has so many words.
    HeaderWords(u8),
    /// It comes from another address.
    From(Ipv4Addr),
    /// It goes to another address.
    To(Ipv4Addr),
    /// Its bytes are not those that were always at these numbers.
    OtherContent,
    /// It is cut off behind so many bytes of TCP.
    CutTo(u16),
}

impl Segment {
    /// Sequence numbers it takes: payload, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.payload + u32::from(self.flags.contains(TcpFlags::SYN)) + u32::from(self.flags.contains(TcpFlags::FIN))
    }

    /// Whether it has this flaw.
    pub fn has_flaw(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }
}

impl Extent {
    /// Exactly this.
    pub const fn of(value: u32) -> Extent {
        Extent { least: value, most: value }
    }

    /// Whether `value` lies inside.
    pub fn holds(self, value: u32) -> bool {
        self.least <= value && value <= self.most
    }
}
