//! The clock and the real source of chance: the two things that a stack takes as arguments and a host must bring. The
//! clock never goes backwards and does not care about the time of day. It runs by itself, or has [`Hands`] that somebody
//! moves: then an hour passes when that one says so, and a run is the same every time.

use crate::lock;
use crate::system;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use xylem_core::time::{Duration, Instant};

/// A clock whose zero is the moment it was started. Copies of it tell the same time, in any thread.
///
/// It reads CLOCK_MONOTONIC, which is what the standard library's instants are on Linux, without a system call.
#[derive(Clone, Debug)]
pub struct Clock {
    start: std::time::Instant,
    hands: Option<Arc<Hands>>,
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn start() -> Clock {
        Clock { start: std::time::Instant::now(), hands: None }
    }

    /// The time since the start, in nanoseconds.
    pub fn now(&self) -> Instant {
        match &self.hands {
            None => Instant::ZERO + self.start.elapsed(),
            Some(hands) => hands.now(),
        }
    }

    /// What moves it, if it does not run by itself.
    pub(crate) fn hands(&self) -> Option<&Hands> {
        self.hands.as_deref()
    }

    /// How long to wait from now until `deadline`; zero if it is past.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.since(self.now())
    }
}

/// The hands of a clock that somebody moves. Whoever sleeps until a time of that clock is called when they get there.
#[derive(Debug, Default)]
pub struct Hands {
    now: AtomicU64,
    sleepers: Mutex<Vec<(Instant, Waker)>>,
}

impl Hands {
    /// Hands that stand at zero.
    pub fn new() -> Arc<Hands> {
        Arc::default()
    }

    /// The clock they belong to.
    pub fn clock(self: &Arc<Hands>) -> Clock {
        Clock { start: std::time::Instant::now(), hands: Some(Arc::clone(self)) }
    }

    /// Where they stand.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Acquire))
    }

    /// Moves them on to `to`, never back, and calls those who slept until then.
    pub fn advance(&self, to: Instant) {
        self.now.fetch_max(to.as_nanos(), Ordering::AcqRel);
        let now = self.now();
        let mut due = Vec::new();
        lock(&self.sleepers).retain(|(until, waker)| {
            let is_due = *until <= now;
            if is_due {
                due.push(waker.clone());
            }
            !is_due
        });
        due.into_iter().for_each(Waker::wake);
    }

    /// When the first of those who sleep is to be called.
    pub fn next(&self) -> Option<Instant> {
        lock(&self.sleepers).iter().map(|(until, _)| *until).min()
    }

    /// Has `waker` called at `until`; false if that is now or past.
    pub(crate) fn call_at(&self, until: Instant, waker: &Waker) -> bool {
        // Behind the lock: who moves the hands after this look finds the sleeper on the list.
        let mut sleepers = lock(&self.sleepers);
        if until <= self.now() {
            return false;
        }
        sleepers.retain(|(_, known)| !known.will_wake(waker));
        sleepers.push((until, waker.clone()));
        true
    }

    /// Takes a sleeper off the list.
    pub(crate) fn forget(&self, waker: &Waker) {
        lock(&self.sleepers).retain(|(_, known)| !known.will_wake(waker));
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
        let copy = clock.clone();
        std::thread::sleep(Duration::from_millis(20));
        let passed = copy.now().since(before);
        assert!(passed >= Duration::from_millis(20), "{passed:?}");
        assert!(passed < Duration::from_secs(5), "{passed:?}");
        assert_eq!(clock.until(before), Duration::ZERO);
        assert!(clock.until(clock.now() + Duration::from_secs(9)) > Duration::from_secs(4));
    }

    #[test]
    fn hands_move_when_they_are_moved_and_call_those_who_slept() {
        let hands = Hands::new();
        let clock = hands.clock();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let (waker, called) = crate::testing::counting_waker();
        assert!(hands.call_at(at(20), &waker) && !hands.call_at(at(0), &waker));
        std::thread::sleep(Duration::from_millis(2));
        hands.advance(at(19));
        assert_eq!((clock.now(), called.count()), (at(19), 0));
        hands.advance(at(25));
        hands.advance(at(10));
        assert_eq!((clock.now(), called.count()), (at(25), 1), "never back, and one call");
        assert_eq!(clock.until(at(30)), Duration::from_millis(5));
    }

    #[test]
    fn seeds_differ() {
        let seeds: std::collections::BTreeSet<u64> =
            (0..100).map(|_| entropy_seed().expect("this kernel has getrandom")).collect();
        assert_eq!(seeds.len(), 100);
    }
}
