//! Explicit congestion notification (RFC 3168): routers mark instead of dropping, the receiver echoes the mark until it
//! hears that the sender has slowed down, and the sender slows down once a window. What both sides must remember of that is
//! here; when the window shrinks is the congestion control's affair.

use super::congestion::Loss;
use super::segment::Segment;
use super::session::{Owed, TcpSession};
use serde::{Deserialize, Serialize};
use xylem_core::{Message, Outbox};
use xylem_wire::{SequenceNumber, TcpFlags};

/// Whether connections use congestion marks (RFC 9293, SHLD-8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnUse {
    /// Never, even if the peer asks.
    Off,
    /// If the peer asks: as other hosts do, since some paths lose SYNs that ask.
    #[default]
    Passive,
    /// Our SYN asks too; one that has to be sent again does not (RFC 3168, section 6.1.1.1).
    On,
}

/// What a SYN that asks for it says, and the mask of both bits.
const SETUP: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

/// See the module's text.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ecn {
    /// Both SYNs said so.
    pub agreed: bool,
    /// A mark came in: every acknowledgment says so until CWR comes.
    echoes: bool,
    /// The window has shrunk: the next new data says so.
    tells: bool,
    /// What was sent before this number knew nothing of the last reduction: an echo of it is no news.
    until: SequenceNumber,
    /// Marked segments that have come in.
    pub marks: u32,
}

impl Ecn {
    /// Of a connection whose SYN is numbered `initial`.
    pub fn new(initial: SequenceNumber) -> Ecn {
        Ecn { agreed: false, echoes: false, tells: false, until: initial, marks: 0 }
    }

    /// Whether the peer's SYN, or its answer to ours, takes part. In an answer only ECE is set: both bits are those of a
    /// peer that reflects what it does not know (RFC 3168, section 6.1.1).
    pub fn is_offered(segment: &Segment, uses: EcnUse) -> bool {
        let said = TcpFlags(segment.flags.0 & SETUP.0);
        match uses {
            EcnUse::Off => false,
            _ if segment.has(TcpFlags::ACK) => uses == EcnUse::On && said == TcpFlags::ECE,
            EcnUse::Passive | EcnUse::On => said == SETUP,
        }
    }

    /// The bits of our SYN: its `attempt`th repetition asks no more.
    pub fn on_syn(uses: EcnUse, attempt: u8) -> TcpFlags {
        if uses == EcnUse::On && attempt == 0 { SETUP } else { TcpFlags::NONE }
    }

    /// The bit of our answer to a SYN, where `agreed`.
    pub fn on_answer(agreed: bool) -> TcpFlags {
        if agreed { TcpFlags::ECE } else { TcpFlags::NONE }
    }

    /// The bit of every acknowledgment now.
    pub fn echo(&self) -> TcpFlags {
        if self.echoes { TcpFlags::ECE } else { TcpFlags::NONE }
    }

    /// The bits of new data, which is sent now.
    pub fn on_data(&mut self) -> TcpFlags {
        let told = std::mem::take(&mut self.tells);
        self.echo() | if told { TcpFlags::CWR } else { TcpFlags::NONE }
    }

    /// The window has shrunk for any reason, `highest` being the end of what was sent: the peer is told, and echoes of what
    /// is on its way are no news (RFC 3168, section 6.1.2).
    pub fn reduced(&mut self, highest: SequenceNumber) {
        self.until = highest;
        self.tells = self.agreed;
    }

    /// Whether the segment echoes a mark that is news, `unacknowledged` being its acknowledgment.
    fn is_news(&self, segment: &Segment, unacknowledged: SequenceNumber) -> bool {
        let echoes = self.agreed && segment.has(TcpFlags::ECE) && segment.acknowledgment == unacknowledged;
        echoes && unacknowledged.is_after(self.until)
    }

    /// Acceptable data has come, `marked` segments of it with a mark. Says whether an echo begins.
    fn receive(&mut self, segment: &Segment, marked: u16) -> bool {
        if !self.agreed {
            return false;
        }
        if segment.has(TcpFlags::CWR) {
            self.echoes = false;
        }
        self.marks = self.marks.saturating_add(u32::from(marked));
        marked > 0 && !std::mem::replace(&mut self.echoes, true)
    }
}

/// How it was before a segment came, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    in_flight: u32,
    window: u32,
}

impl TcpSession {
    /// The peer's acknowledgment may echo a mark: the window shrinks, at most once a window (RFC 3168, section 6.1.2), from
    /// what it and the flight were before the segment came. A window of one segment cannot: then what is new waits as long as
    /// the retransmission timer would, so that less than a segment a round trip goes.
    pub(super) fn hear_echo(&mut self, segment: &Segment, before: Before, out: &Outbox) {
        if !self.ecn.is_news(segment, self.send.unacknowledged) || before.in_flight == 0 {
            return;
        }
        let in_flight = before.in_flight.min(before.window);
        self.congestion.marked(&Loss { now: out.now, in_flight, bytes: 0 });
        self.ecn.reduced(self.send.highest);
        if before.window <= self.sizes.segment {
            self.recovery.hold(out.now + self.retransmission.timeout(&self.config));
        }
    }

    /// What is in flight, and the window.
    pub(super) fn before(&self) -> Before {
        Before { in_flight: self.send.in_flight(), window: self.congestion.window() }
    }

    /// Data inside the window has come: marks outside of it are nobody's (RFC 3168, section 6.1.5).
    pub(super) fn note_marks(&mut self, segment: &Segment, message: &Message) {
        if self.ecn.receive(segment, message.attributes.congestion_marks) {
            // The sooner the peer hears, the better; from then on every acknowledgment says it.
            self.owe(Owed::Now);
        }
    }
}
