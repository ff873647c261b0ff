//! The real clock and the real source of chance: the two things that a stack takes as arguments and a host must bring.
//! The clock never goes backwards and does not care about the time of day.

use crate::system;
use std::io;
use xylem_core::time::{Duration, Instant};

/// A clock whose zero is the moment it was started. Copies of it tell the same time, in any thread.
///
/// It reads CLOCK_MONOTONIC, which is what the standard library's instants are on Linux, without a system call.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn start() -> Clock {
        Clock { start: std::time::Instant::now() }
    }

    /// The time since the start, in nanoseconds.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    /// How long to wait from now until `deadline`; zero if it is past.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.since(self.now())
    }
}

/// A seed nobody can guess, for the first random stream of a real host (getrandom(2)).
///
/// # Errors
/// The system call's, on kernels without it (before Linux 3.17) or where a filter forbids it.
pub fn entropy_seed() -> io::Result<u64> {
    system::entropy::random_bytes().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_keeps_the_time_of_its_sleeper() {
        let clock = Clock::start();
        let before = clock.now();
        let copy = clock;
        std::thread::sleep(Duration::from_millis(20));
        let passed = copy.now().since(before);
        assert!(passed >= Duration::from_millis(20), "{passed:?}");
        assert!(passed < Duration::from_secs(5), "{passed:?}");
        assert_eq!(clock.until(before), Duration::ZERO);
        assert!(clock.until(clock.now() + Duration::from_secs(9)) > Duration::from_secs(4));
    }

    #[test]
    fn seeds_differ() {
        let seeds: std::collections::BTreeSet<u64> =
            (0..100).map(|_| entropy_seed().expect("this kernel has getrandom")).collect();
        assert_eq!(seeds.len(), 100);
    }
}
