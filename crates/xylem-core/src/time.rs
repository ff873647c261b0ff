//! Time as a value. No protocol reads a clock: the host that runs it says what time it is, in the outbox, and asks
//! each session for its next deadline. So the simulator and a real host run the same code.

pub use core::time::Duration;
use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the instance's epoch (the simulator's zero, or a real host's start).
///
/// It has no relation to the time of day. 64 bits of nanoseconds last 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// The epoch.
    pub const ZERO: Instant = Instant(0);

    /// The instant `nanoseconds` after the epoch.
    pub const fn from_nanos(nanoseconds: u64) -> Instant {
        Instant(nanoseconds)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time from `earlier` to `self`; zero if `earlier` is the later one.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates: an instant beyond the last one is the last one.
    fn add(self, span: Duration) -> Instant {
        // Not by `as_nanos`, which counts in 128 bits: this is done for every segment.
        let nanoseconds = span.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(span.subsec_nanos()));
        Instant(self.0.saturating_add(nanoseconds))
    }
}

/// The earlier of two optional deadlines; `None` means never.
#[inline]
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_treats_none_as_never() {
        let (one, two) = (Instant::from_nanos(1), Instant::from_nanos(2));
        assert_eq!(earlier(Some(two), Some(one)), Some(one));
        assert_eq!(earlier(None, Some(two)), Some(two));
        assert_eq!(earlier(Some(two), None), Some(two));
        assert_eq!(earlier(None, None), None);
    }

    #[test]
    fn addition_saturates_and_since_never_goes_negative() {
        let last = Instant::from_nanos(u64::MAX);
        assert_eq!(last + Duration::from_secs(1), last);
        assert_eq!(Instant::ZERO.since(last), Duration::ZERO);
        assert_eq!((Instant::ZERO + Duration::from_millis(3)).as_millis(), 3);
    }
}
