//! The retransmission timer (RFC 6298): how long to wait for an acknowledgment, measured once a round trip, and never on
//! what was sent twice (Karn's rule; RFC 9293, MUST-18) unless a timestamp tells which was answered.

use super::config::TcpConfig;
use serde::{Deserialize, Serialize};
use xylem_core::{Duration, Instant};
use xylem_wire::SequenceNumber;

/// The clock's granularity G (RFC 6298 4): that of the timer wheels that call us, rounded up.
const GRANULARITY_MICROS: u32 = 1_000;
/// What the timeout is at least after a SYN had to be sent again (RFC 6298 5.7).
const AFTER_LOST_SYN_MICROS: u32 = 3_000_000;

/// See the module's text. Times are kept in microseconds: 32 bits of them last more than an hour.
#[derive(Clone, Debug)]
pub(crate) struct Retransmission {
    /// When the timer goes off.
    pub deadline: Option<Instant>,
    /// SRTT and RTTVAR, once measured.
    smoothed: Option<(u32, u32)>,
    /// RTO before any doubling.
    base: u32,
    /// How often it has gone off without progress since: the timeout doubles each time (section 5.5).
    pub attempts: u8,
    /// When the SYN was sent, while it is measured. What comes behind it the flight measures.
    measured_from: Option<Instant>,
    /// The next measurement is taken when something behind this number is acknowledged; `None`: at once. No number would do
    /// in its place, since half of all numbers lie before any.
    measured_end: Option<SequenceNumber>,
    /// When the oldest outstanding data was first sent, or last made progress.
    pub progress_at: Instant,
    /// Segments sent again so far.
    pub count: u32,
}

/// What moves with a connection. The timer starts afresh where it arrives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RetransmissionRecord {
    smoothed: Option<(u32, u32)>,
    base: u32,
    attempts: u8,
    count: u32,
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

impl Retransmission {
    pub fn new(config: &TcpConfig, now: Instant) -> Retransmission {
        Retransmission {
            deadline: None,
            smoothed: None,
            base: micros(config.retransmission_timeout_initial),
            attempts: 0,
            measured_from: None,
            measured_end: None,
            progress_at: now,
            count: 0,
        }
    }

    /// The timeout now, doublings included (RFC 6298 2.4, RFC 6298 2.5, RFC 6298 5.5).
    pub fn timeout(&self, config: &TcpConfig) -> Duration {
        let floor = config.retransmission_timeout_min.as_micros() as u64;
        let ceiling = config.retransmission_timeout_max.as_micros() as u64;
        let doubled = u64::from(self.base).max(floor) << self.attempts.min(16);
        Duration::from_micros(doubled.min(ceiling.max(floor)))
    }

    /// The smoothed round trip, once measured.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| Duration::from_micros(u64::from(smoothed)))
    }

    /// How much round trips vary, once measured.
    pub fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|(_, variation)| Duration::from_micros(u64::from(variation)))
    }

    /// A SYN ending before `end` goes out for the first time.
    pub fn sent(&mut self, end: SequenceNumber, now: Instant) {
        if self.measured_from.is_none() {
            (self.measured_from, self.measured_end) = (Some(now), Some(end));
        }
    }

    /// So many segments go out again: if it is the SYN, it no longer tells anything (Karn's rule: RFC 6298 3-1).
    pub fn sent_again(&mut self, segments: u32) {
        self.measured_from = None;
        self.count = self.count.saturating_add(segments);
    }

    /// New data is acknowledged, out of what was sent before `highest`: takes what was `measured` on it, or else what the
    /// timestamp `echo`es, once a round trip (RFC 6298 3-2), and starts counting anew.
    pub fn acknowledged(
        &mut self,
        acknowledgment: SequenceNumber,
        highest: SequenceNumber,
        measured: Option<Duration>,
        echo: Option<Duration>,
        now: Instant,
    ) {
        if let Some(at) = self.measured_from.take() {
            self.sample(now.since(at));
        } else if let Some(round_trip) =
            measured.or(echo).filter(|_| self.measured_end.is_none_or(|end| acknowledgment.is_after(end)))
        {
            self.sample(round_trip);
            self.measured_end = Some(highest);
        }
        self.attempts = 0;
        self.progress_at = now;
    }

    /// A round trip was measured (RFC 6298 2.2, RFC 6298 2.3).
    fn sample(&mut self, round_trip: Duration) {
        let round_trip = micros(round_trip).min(u32::MAX / 8);
        let (smoothed, variation) = match self.smoothed {
            None => (round_trip, round_trip / 2),
            Some((smoothed, variation)) => {
                let variation = variation - variation / 4 + smoothed.abs_diff(round_trip) / 4;
                (smoothed - smoothed / 8 + round_trip / 8, variation)
            }
        };
        self.smoothed = Some((smoothed, variation));
        self.base = smoothed.saturating_add((4 * variation).max(GRANULARITY_MICROS));
    }

    /// The handshake is over; after a lost SYN and without a measurement the timeout starts higher.
    pub fn opened(&mut self, syn_was_lost: bool) {
        if syn_was_lost && self.smoothed.is_none() {
            self.base = self.base.max(AFTER_LOST_SYN_MICROS);
        }
        self.attempts = 0;
    }

    pub fn export(&self) -> RetransmissionRecord {
        RetransmissionRecord { smoothed: self.smoothed, base: self.base, attempts: self.attempts, count: self.count }
    }

    pub fn import(record: RetransmissionRecord, now: Instant) -> Retransmission {
        Retransmission {
            deadline: None,
            smoothed: record
                .smoothed
                .map(|(smoothed, variation)| (smoothed.min(u32::MAX / 8), variation.min(u32::MAX / 8))),
            base: record.base,
            attempts: record.attempts,
            measured_from: None,
            measured_end: None,
            progress_at: now,
            count: record.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// By hand: R = 100 ms (RFC 6298 2.2), then R' = 200 ms (RFC 6298 2.3); doubled (RFC 6298 5.5) up to the
    /// ceiling (RFC 6298 2.5); no more than one sample a round trip (RFC 6298 3-2).
    #[test]
    fn the_timeout_follows_the_formulas() {
        let config = TcpConfig { retransmission_timeout_min: Duration::from_millis(1), ..TcpConfig::default() };
        let mut timer = Retransmission::new(&config, at(0));
        assert_eq!(timer.timeout(&config), Duration::from_secs(1), "before a measurement");
        timer.sent(SequenceNumber(10), at(0));
        timer.acknowledged(SequenceNumber(10), SequenceNumber(10), None, None, at(100));
        // SRTT 100, RTTVAR 50: 100 + 4 * 50.
        assert_eq!(timer.timeout(&config), Duration::from_millis(300));
        let measured = Some(Duration::from_millis(200));
        timer.acknowledged(SequenceNumber(20), SequenceNumber(30), measured, None, at(300));
        timer.acknowledged(SequenceNumber(25), SequenceNumber(50), measured, None, at(300));
        // RTTVAR 3/4 * 50 + 1/4 * 100 = 62.5, SRTT 7/8 * 100 + 1/8 * 200 = 112.5: 112.5 + 250.
        assert_eq!(timer.timeout(&config), Duration::from_micros(362_500));
        timer.attempts = 2;
        assert_eq!(timer.timeout(&config), Duration::from_micros(4 * 362_500), "doubled twice");
        timer.attempts = 60;
        assert_eq!(timer.timeout(&config), config.retransmission_timeout_max);
    }

    /// RFC 6298 3-1.
    #[test]
    fn what_was_sent_twice_is_not_measured() {
        let config = TcpConfig::default();
        let mut timer = Retransmission::new(&config, at(0));
        timer.sent(SequenceNumber(10), at(0));
        timer.sent_again(1);
        timer.acknowledged(SequenceNumber(10), SequenceNumber(11), None, None, at(5000));
        assert_eq!(timer.smoothed(), None);
        timer.acknowledged(SequenceNumber(11), SequenceNumber(11), None, Some(Duration::from_millis(7)), at(5001));
        assert_eq!(timer.smoothed(), Some(Duration::from_millis(7)), "but a timestamp tells which one was answered");
    }

    #[test]
    fn the_first_round_trip_is_measured_wherever_numbers_begin() {
        for number in [10, 0x7fff_ffff, 0x8000_0001, u32::MAX].map(SequenceNumber) {
            let mut timer = Retransmission::new(&TcpConfig::default(), at(0));
            timer.acknowledged(number, number, Some(Duration::from_millis(20)), None, at(20));
            assert_eq!(timer.smoothed(), Some(Duration::from_millis(20)), "{number}");
        }
    }

    /// RFC 6298 2.4, RFC 6298 5.7.
    #[test]
    fn the_floor_holds_and_a_lost_syn_raises_it() {
        let config = TcpConfig::default();
        let mut timer = Retransmission::new(&config, at(0));
        timer.acknowledged(SequenceNumber(1), SequenceNumber(1), None, Some(Duration::from_micros(50)), at(1));
        assert_eq!(timer.timeout(&config), config.retransmission_timeout_min);
        let mut timer = Retransmission::new(&config, at(0));
        timer.opened(true);
        assert_eq!(timer.timeout(&config), Duration::from_secs(3));
    }

    /// RFC 6298 4: a round trip that never varies is still given a tick of the clock.
    #[test]
    fn the_variation_counts_as_a_tick_at_least() {
        let config = TcpConfig { retransmission_timeout_min: Duration::from_micros(1), ..TcpConfig::default() };
        let mut timer = Retransmission::new(&config, at(0));
        for number in 0..100 {
            let measured = Some(Duration::from_millis(64));
            timer.acknowledged(SequenceNumber(number + 1), SequenceNumber(number), measured, None, at(64));
        }
        assert_eq!(timer.smoothed(), Some(Duration::from_millis(64)));
        assert_eq!(
            timer.timeout(&config),
            Duration::from_millis(64) + Duration::from_micros(GRANULARITY_MICROS.into())
        );
    }
}
