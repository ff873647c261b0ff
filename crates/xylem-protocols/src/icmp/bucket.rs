//! A token bucket in whole numbers: so many a second on average, so many at once (RFC 1812, section 4.3.2.8). It counts
//! nanoseconds instead of fractions of tokens, so it is the same everywhere.

use xylem_core::Instant;

const SECOND: u64 = 1_000_000_000;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Nanoseconds a token takes to come; `None` if there are no tokens at all.
    token: Option<u64>,
    /// Nanoseconds that a full bucket stands for.
    full: u64,
    /// Nanoseconds saved up.
    saved: u64,
    looked: Instant,
}

impl Bucket {
    /// A full bucket of `burst` tokens, refilled at `rate` tokens a second.
    pub fn new(rate: u32, burst: u32) -> Bucket {
        let token = SECOND.checked_div(u64::from(rate));
        let full = token.unwrap_or(0).saturating_mul(u64::from(burst));
        Bucket { token, full, saved: full, looked: Instant::ZERO }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let Some(token) = self.token else { return false };
        let passed = u64::try_from(now.since(self.looked).as_nanos()).unwrap_or(u64::MAX);
        self.saved = self.saved.saturating_add(passed).min(self.full);
        self.looked = self.looked.max(now);
        if self.saved < token {
            return false;
        }
        self.saved -= token;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_then_the_rate() {
        let mut bucket = Bucket::new(10, 3);
        let mut now = Instant::ZERO;
        assert_eq!((0..5).filter(|_| bucket.take(now)).count(), 3);
        for _ in 0..20 {
            now = now + Duration::from_millis(50);
            bucket.take(now);
        }
        // One second has passed at ten a second; what was taken in it leaves at most one behind.
        assert!(bucket.take(now + Duration::from_millis(100)));
        let later = now + Duration::from_secs(3600);
        assert_eq!((0..5).filter(|_| bucket.take(later)).count(), 3, "no more is saved than the bucket holds");
        assert!(!Bucket::new(0, 5).take(now), "no rate, no tokens");
    }

    #[test]
    fn over_a_long_time_no_more_than_the_rate() {
        let mut bucket = Bucket::new(100, 10);
        let taken = (0..100_000).filter(|n| bucket.take(Instant::from_nanos(n * 100_000))).count();
        assert!((1000..=1010).contains(&taken), "{taken} tokens in ten seconds at 100 a second");
        // Time that goes back is no time.
        assert!(!bucket.take(Instant::ZERO));
    }
}
