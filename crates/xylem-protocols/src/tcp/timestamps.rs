//! Timestamps of one connection (RFC 7323): our clock, the peer's last value, and the protection against old segments
//! that have come round (PAWS).

use super::segment::Segment;
use serde::{Deserialize, Serialize};
use xylem_core::{Duration, Instant};
use xylem_wire::{SequenceNumber, TcpOptions, Timestamps};

/// A value older than this says nothing any more (RFC 7323 5.5: 24 days).
const RECENT_MAX: Duration = Duration::from_secs(24 * 24 * 3600);

/// See the module's text. The clock ticks once a millisecond (RFC 7323 5.4).
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Both ends sent the option with their SYN.
    pub agreed: bool,
    offset: u32,
    /// The last value sent: a clock that moves to another host goes on from it.
    last_sent: SequenceNumber,
    /// The peer's value that is echoed (TS.Recent).
    recent: SequenceNumber,
    recent_at: Instant,
}

/// What moves with a connection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ClockRecord {
    agreed: bool,
    last_sent: SequenceNumber,
    recent: SequenceNumber,
}

impl Clock {
    /// A clock whose values are `offset` above the host's milliseconds.
    pub fn new(offset: u32) -> Clock {
        Clock {
            agreed: false,
            offset,
            last_sent: SequenceNumber(offset),
            recent: SequenceNumber(0),
            recent_at: Instant::ZERO,
        }
    }

    /// The peer's first value, on its SYN. Ours was sent before now, perhaps by the embryo.
    pub fn agree(&mut self, first: SequenceNumber, now: Instant) {
        (self.agreed, self.recent, self.recent_at) = (true, first, now);
        self.last_sent = self.value(now);
    }

    /// What is added to the host's milliseconds.
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// The clock's value now.
    pub fn value(&self, now: Instant) -> SequenceNumber {
        SequenceNumber((now.as_millis() as u32).wrapping_add(self.offset))
    }

    /// What stands on every segment, once agreed (RFC 7323 3.2-2); resets that answer strangers are the exception.
    pub fn stamp(&mut self, now: Instant) -> Option<Timestamps> {
        if !self.agreed {
            return None;
        }
        self.last_sent = self.value(now);
        Some(Timestamps { value: self.last_sent, echo: self.recent })
    }

    /// Bytes it takes of every segment.
    pub fn option_length(&self) -> u32 {
        let timestamps = self.agreed.then(Timestamps::default);
        TcpOptions { timestamps, ..TcpOptions::NONE }.length() as u32
    }

    /// Whether the segment is from before: its value lies behind the last one (RFC 7323 5.3-R1), as numbers go round
    /// (RFC 7323 5.2-1), and that is not from too long ago (RFC 7323 5.5).
    pub fn is_old(&self, segment: &Segment, now: Instant) -> bool {
        let Some(timestamps) = segment.timestamps.filter(|_| self.agreed) else { return false };
        timestamps.value.is_before(self.recent) && now.since(self.recent_at) < RECENT_MAX
    }

    /// Takes the segment's value if it is the one to echo: it spans what was last acknowledged (RFC 7323 4.3) and is not
    /// older (RFC 7323 5.3-R3).
    pub fn see(&mut self, segment: &Segment, acknowledged: SequenceNumber, now: Instant) {
        let Some(timestamps) = segment.timestamps.filter(|_| self.agreed) else { return };
        let is_newer = timestamps.value.is_at_or_after(self.recent) || now.since(self.recent_at) >= RECENT_MAX;
        if is_newer && segment.sequence.is_at_or_before(acknowledged) {
            (self.recent, self.recent_at) = (timestamps.value, now);
        }
    }

    /// Which of our values an acknowledgment echoes, if timestamps are agreed.
    pub fn echo(&self, segment: &Segment) -> Option<SequenceNumber> {
        segment.timestamps.filter(|_| self.agreed).map(|timestamps| timestamps.echo)
    }

    /// The round trip an acknowledgment's echo tells, if it can be true.
    pub fn round_trip(&self, segment: &Segment, now: Instant) -> Option<Duration> {
        let echo = segment.timestamps.filter(|_| self.agreed)?.echo;
        let ticks = self.value(now).since(echo);
        // An echo of the future, or of ten minutes ago, is not one.
        (0..600_000).contains(&ticks).then(|| Duration::from_millis(ticks as u64))
    }

    /// The peer's last value, if timestamps were agreed.
    pub fn recent(&self) -> Option<SequenceNumber> {
        self.agreed.then_some(self.recent)
    }

    pub fn export(&self) -> ClockRecord {
        ClockRecord { agreed: self.agreed, last_sent: self.last_sent, recent: self.recent }
    }

    /// A clock that goes on one tick after the last value sent.
    pub fn import(record: ClockRecord, now: Instant) -> Clock {
        let offset = record.last_sent.0.wrapping_add(1).wrapping_sub(now.as_millis() as u32);
        Clock { agreed: record.agreed, offset, last_sent: record.last_sent, recent: record.recent, recent_at: now }
    }
}
