//! Buffers that grow with use: the receive buffer to twice what the application reads in a round trip, so that a sender
//! that doubles its window finds room, and the send buffer to twice what may be in flight. They never shrink, never grow
//! beyond what is configured, and not at all while the pool is more than half taken or once the application has said a
//! size itself.

use super::config::TcpConfig;
use super::session::TcpSession;
use xylem_core::{Duration, Outbox, pool};

/// A round trip is taken to last at least so long: reads come in batches.
const ROUND_MIN: Duration = Duration::from_millis(1);
/// And so long if it was never measured.
const ROUND_UNKNOWN: Duration = Duration::from_millis(100);
/// Segments of slack beyond what is counted: a sender's initial window, and what delayed acknowledgments hold back.
const SLACK_SEGMENTS: u32 = 16;

/// What is measured of a connection's reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Bytes read since the round began.
    read: u32,
    /// When it began, in microseconds of a clock that wraps.
    since: u32,
    /// The most that was ever read in a round.
    most: u32,
}

impl Reading {
    /// The application has read `bytes` at `now`, and a round trip takes `round`; both in microseconds. Says how much it
    /// reads in a round, if that is more than ever.
    pub fn note(&mut self, bytes: u32, round: u32, now: u32) -> Option<u32> {
        self.read = self.read.saturating_add(bytes);
        let passed = now.wrapping_sub(self.since);
        if passed < round {
            return None;
        }
        // A round that lasted longer, because nobody looked or nothing came, counts as its share.
        let read = (u64::from(self.read) * u64::from(round) / u64::from(passed.max(1))) as u32;
        (self.read, self.since) = (0, now);
        (read > self.most).then(|| {
            self.most = read;
            read
        })
    }
}

fn micros(span: Duration) -> u32 {
    span.as_micros().min(u128::from(u32::MAX)) as u32
}

impl TcpSession {
    /// The application has read `bytes`.
    pub(super) fn tune_receive(&mut self, bytes: usize, out: &Outbox) {
        let most = TcpConfig::buffer(self.config.receive_buffer_max);
        if !self.receive.is_tuned || self.receive.buffer >= most {
            return;
        }
        let round = self.retransmission.smoothed().unwrap_or(ROUND_UNKNOWN).max(ROUND_MIN);
        let bytes = bytes.min(1 << 30) as u32;
        let now = (out.now.as_nanos() / 1000) as u32;
        if let Some(read) = self.receive.reading.note(bytes, micros(round), now)
            && out.pool().more_than_half_free(pool::LARGE)
        {
            let wanted = read.saturating_mul(2).saturating_add(SLACK_SEGMENTS * self.sizes.segment);
            self.receive.buffer = self.receive.buffer.max(wanted.min(most));
        }
    }

    /// A writer has found too little room: perhaps more may be in flight than the buffer holds.
    pub(super) fn tune_send(&mut self, out: &Outbox) {
        let most = TcpConfig::buffer(self.config.send_buffer_max);
        let wanted = self.congestion.window().saturating_mul(2).min(most);
        if self.send.is_tuned && wanted > self.send.budget && out.pool().more_than_half_free(pool::LARGE) {
            self.send.budget = wanted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_in_a_round_is_measured_and_only_more_is_news() {
        let mut reading = Reading::default();
        assert_eq!(reading.note(1000, 10_000, 5_000), None, "the round is not over");
        assert_eq!(reading.note(3000, 10_000, 10_000), Some(4000));
        assert_eq!(reading.note(4000, 10_000, 20_000), None, "no more than before");
        assert_eq!(reading.note(50_000, 10_000, 120_000), Some(5000), "ten rounds: a tenth each");
        assert_eq!(reading.note(6000, 10_000, 130_000), Some(6000));
        // The clock wraps.
        let mut reading = Reading { since: u32::MAX - 4_000, ..Reading::default() };
        assert_eq!(reading.note(100, 10_000, 5_000), None);
        assert_eq!(reading.note(100, 10_000, 6_000), Some(199));
    }
}
