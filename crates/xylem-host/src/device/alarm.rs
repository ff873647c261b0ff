//! The alarm clock of a stack: one flag that says it sleeps, and the counter that ends its sleep. Who has something for
//! it first makes that visible and then rings; the sleeper first says that it sleeps and then looks. So either it sees
//! what is there or it is rung out of bed, and a stack that is awake costs its neighbours no system call.

use crate::poll::Waker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// See the module's text. Clones are the same alarm.
#[derive(Clone, Debug)]
pub struct Alarm(Arc<Bed>);

#[derive(Debug)]
struct Bed {
    asleep: AtomicBool,
    waker: Waker,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Alarm> {
        Ok(Alarm(Arc::new(Bed { asleep: AtomicBool::new(false), waker: Waker::new()? })))
    }

    /// Wakes the stack if it sleeps. To be called after what it is to find has been put where it looks.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        // Who takes the flag down makes the call: many rings are one.
        if self.0.asleep.load(Ordering::Relaxed) && self.0.asleep.swap(false, Ordering::SeqCst) {
            self.0.waker.wake();
        }
    }

    /// The sleeper says that it will sleep, and looks at its work once more behind this.
    pub fn lie_down(&self) {
        self.0.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The sleeper is up again; forgets what rang.
    pub fn rise(&self) {
        if !self.0.asleep.swap(false, Ordering::SeqCst) {
            self.0.waker.rest();
        }
    }

    /// What the sleeper waits for.
    pub fn waker(&self) -> &Waker {
        &self.0.waker
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Source, wait};
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn no_ring_is_lost_between_the_look_and_the_sleep() {
        const ROUNDS: u64 = 20_000;
        let alarm = Alarm::new().expect("a descriptor is free");
        let (work, done) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    work.store(round, Ordering::Release);
                    alarm.ring();
                    while done.load(Ordering::Acquire) < round {
                        std::hint::spin_loop();
                        thread::yield_now();
                    }
                }
            });
            let mut seen = 0;
            while seen < ROUNDS {
                alarm.lie_down();
                if work.load(Ordering::Acquire) == seen {
                    let ready = wait(&mut [Source::readable(alarm.waker())], Some(Duration::from_secs(20)));
                    assert_eq!(ready.expect("poll works"), 1, "round {seen}: slept through the ring");
                }
                alarm.rise();
                seen = work.load(Ordering::Acquire);
                done.store(seen, Ordering::Release);
            }
        });
    }

    #[test]
    fn a_stack_that_is_awake_is_not_rung() {
        let alarm = Alarm::new().expect("a descriptor is free");
        alarm.ring();
        assert!(!alarm.waker().rest());
        alarm.lie_down();
        alarm.ring();
        alarm.ring();
        assert!(alarm.waker().rest());
    }
}
