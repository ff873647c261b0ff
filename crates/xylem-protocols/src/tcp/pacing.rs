//! Sending spread in time, where a congestion control asks for it. What goes out moves the time ahead at which the next may
//! go, by as long as it takes at the pace; and a little may go before its time, so that whole messages are made and timers
//! that go off late lose nothing. A super-segment is so no longer than the rate justifies.

use xylem_core::{Duration, Instant};

/// What is due within this time may go together: the quantum of sending is a millisecond's worth, as BBR's draft has it
/// (draft-ietf-ccwg-bbr, section 5.6.3) and as fine as timer wheels turn.
const QUANTUM: Duration = Duration::from_millis(1);
/// So much lateness is made good at once: a timer's own, not a pause of the application.
const SLACK: Duration = Duration::from_millis(2);
/// Two segments go together at least, so that the peer acknowledges at once (RFC 9293, SHLD-18).
const SEGMENTS_MIN: u32 = 2;

/// See the module's text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    /// When what has not gone out yet is due.
    next: Instant,
}

impl Pacing {
    /// Payload bytes that may go now at `rate` bytes a second, in segments of `segment` bytes: nothing, or at least two
    /// segments' worth.
    pub fn allows(&self, now: Instant, rate: u64, segment: u32) -> u32 {
        if self.next > now {
            return 0;
        }
        let due = now.since(self.next).min(SLACK) + QUANTUM;
        let bytes = u128::from(rate) * due.as_nanos() / 1_000_000_000;
        bytes.min(u128::from(u32::MAX)).max(u128::from(SEGMENTS_MIN * segment)) as u32
    }

    /// `bytes` go out at `now`.
    pub fn sent(&mut self, now: Instant, rate: u64, bytes: u32) {
        let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let takes = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        let slack = SLACK.as_nanos() as u64;
        self.next = self.next.max(Instant::from_nanos(now.as_nanos().saturating_sub(slack))) + takes;
    }

    /// When more may go: now or later.
    pub fn next(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u32 = 1000;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// Bytes sent within a second by one who is called `late` microseconds after each deadline.
    fn in_a_second(rate: u64, late: u64) -> u64 {
        let (mut pacing, mut now, mut sent) = (Pacing::default(), at(0), 0);
        while now < at(1_000_000) {
            let bytes = pacing.allows(now, rate, S);
            assert!(bytes > 0, "called when it was due");
            pacing.sent(now, rate, bytes);
            sent += u64::from(bytes);
            now = pacing.next().max(now) + Duration::from_micros(late);
        }
        sent
    }

    #[test]
    fn the_rate_is_kept_although_timers_are_late() {
        for rate in [50_000u64, 1_250_000, 12_500_000, 1_000_000_000] {
            for late in [0, 1, 300, 1000] {
                let sent = in_a_second(rate, late);
                // What may go before its time is two segments or three milliseconds' worth.
                let most = rate + (3 * rate / 1000).max(u64::from(2 * S));
                assert!((rate * 99 / 100..=most).contains(&sent), "{sent} of {rate}, {late} us late");
            }
        }
    }

    #[test]
    fn a_message_is_what_the_rate_justifies() {
        let pacing = Pacing { next: at(1_000_000) };
        assert_eq!(pacing.allows(at(999_999), 12_500_000, S), 0);
        assert_eq!(pacing.allows(at(1_000_000), 12_500_000, S), 12_500, "a millisecond at 100 Mb/s");
        assert_eq!(pacing.allows(at(1_000_000), 10_000, S), 2 * S, "two segments at least");
        assert_eq!(pacing.allows(at(9_000_000), 12_500_000, S), 37_500, "a pause is no credit");
    }

    #[test]
    fn a_pause_is_not_made_good() {
        let mut pacing = Pacing::default();
        pacing.sent(at(1_000_000), 1_000_000, 3_000);
        assert_eq!(pacing.next(), at(1_001_000), "3 ms at the pace, 2 ms of them past");
    }
}
