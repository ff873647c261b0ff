//! How late frames were sent, as counts by powers of two: enough to say within a factor of two what half of them and what
//! nearly all of them suffered, in a fixed amount of memory however many there are.

use xylem_core::time::Duration;

/// Powers of two of a nanosecond: up to about nine minutes.
const POWERS: usize = 40;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// `counts[n]` are those below `2^n` nanoseconds and not below half of that.
    counts: [u64; POWERS],
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { counts: [0; POWERS], max: Duration::ZERO }
    }
}

impl Lateness {
    /// A frame was so late.
    pub fn note(&mut self, late: Duration) {
        let nanoseconds = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        let power = (u64::BITS - nanoseconds.leading_zeros()) as usize;
        self.counts[power.min(POWERS - 1)] += 1;
        self.max = self.max.max(late);
    }

    /// The latest.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// A bound that so many thousandths of the frames kept, at most twice the true one; zero if there were none.
    pub fn within(&self, per_mille: u64) -> Duration {
        let all: u64 = self.counts.iter().sum();
        let mut left = (all * per_mille).div_ceil(1000);
        for (power, &count) in self.counts.iter().enumerate() {
            if left <= count {
                return Duration::from_nanos((1 << power) - 1).min(self.max);
            }
            left -= count;
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept_and_near() {
        let mut lateness = Lateness::default();
        assert_eq!((lateness.within(500), lateness.max()), (Duration::ZERO, Duration::ZERO));
        for micros in 1..=1000 {
            lateness.note(Duration::from_micros(micros));
        }
        for (per_mille, micros) in [(500, 500), (990, 990), (1000, 1000)] {
            let (bound, exact) = (lateness.within(per_mille), Duration::from_micros(micros));
            assert!(exact <= bound && bound <= exact * 2, "{per_mille}: {bound:?}");
        }
        assert_eq!(lateness.max(), Duration::from_millis(1));
        lateness.note(Duration::from_secs(3600));
        assert_eq!(lateness.within(1000), Duration::from_secs(3600).min(Duration::from_nanos((1 << 39) - 1)));
    }
}
