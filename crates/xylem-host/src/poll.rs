//! Sleeping until something happens: a descriptor becomes readable, a deadline passes, or another thread calls. A shell
//! waits here and nowhere else. Waking early is always allowed, since a late or spurious timeout is harmless to every
//! session.

pub use crate::system::waiting::Source;

use crate::system::waiting;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Waits until one of `sources` is ready or `timeout` has passed, and says how many are ready; `None` waits for ever,
/// zero looks and returns.
///
/// The timeout is exact to the nanosecond; how late the kernel may be is the thread's timer slack, 50 microseconds
/// unless [`crate::pin::raise_priority`] made it less. A signal ends the wait early, with zero.
///
/// # Errors
/// ppoll(2)'s: more sources than the process may have open files, or no memory.
pub fn wait(sources: &mut [Source<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    match waiting::wait(sources, timeout) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        answer => answer,
    }
}

/// Ends another thread's [`wait`]: the sleeper waits for it as one of its sources, any other thread calls
/// [`Waker::wake`]. Clones are the same waker.
#[derive(Clone, Debug)]
pub struct Waker(Arc<File>);

impl Waker {
    /// A waker that nobody has called yet (eventfd(2)).
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn new() -> io::Result<Waker> {
        waiting::event_counter().map(|counter| Waker(Arc::new(counter)))
    }

    /// Makes the waker readable until [`Waker::rest`]; many calls are one. Never waits.
    pub fn wake(&self) {
        match (&*self.0).write(&1u64.to_ne_bytes()) {
            Ok(_) => {}
            // The counter is full after 2^64 - 2 calls: it is readable, which is all there is to achieve.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("an event counter took eight bytes badly: {error}"),
        }
    }

    /// Forgets the calls so far and says whether there were any. The sleeper does this before it looks at its work, so
    /// that a call during the look is not lost.
    pub fn rest(&self) -> bool {
        let mut count = [0u8; 8];
        match (&*self.0).read(&mut count) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => panic!("an event counter gave eight bytes badly: {error}"),
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn a_waker_ends_another_threads_wait() {
        let waker = Waker::new().expect("a descriptor is free");
        let caller = waker.clone();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            caller.wake();
            caller.wake();
        });
        let start = Instant::now();
        let mut sources = [Source::readable(&waker)];
        assert_eq!(wait(&mut sources, Some(Duration::from_secs(20))).expect("poll works"), 1);
        assert!(sources[0].is_readable());
        assert!(start.elapsed() >= Duration::from_millis(25) && start.elapsed() < Duration::from_secs(15));
        thread.join().expect("the caller does not panic");
        assert!(waker.rest());
        assert!(!waker.rest(), "many calls are one");
        assert_eq!(wait(&mut sources, Some(Duration::ZERO)).expect("poll works"), 0);
        assert!(!sources[0].is_readable());
    }

    #[test]
    fn a_wait_without_events_lasts_its_timeout() {
        let waker = Waker::new().expect("a descriptor is free");
        for timeout in [Duration::from_micros(300), Duration::from_millis(15)] {
            let start = Instant::now();
            assert_eq!(wait(&mut [Source::readable(&waker)], Some(timeout)).expect("poll works"), 0);
            assert!(start.elapsed() >= timeout, "{:?} is less than {timeout:?}", start.elapsed());
        }
        let start = Instant::now();
        wait(&mut [], Some(Duration::from_nanos(1))).expect("poll works");
        assert!(start.elapsed() < Duration::from_millis(500), "a nanosecond is not rounded up to a tick");
    }

    #[test]
    fn several_sources_are_told_apart() {
        let (quiet, loud) = (Waker::new().expect("a descriptor"), Waker::new().expect("a descriptor"));
        loud.wake();
        let mut sources = [Source::readable(&quiet), Source::readable(&loud), Source::readable_or_writable(&quiet)];
        assert_eq!(wait(&mut sources, None).expect("poll works"), 2);
        assert_eq!(sources.each_ref().map(Source::is_readable), [false, true, false]);
        assert_eq!(sources.each_ref().map(Source::is_writable), [false, false, true]);
    }

    #[test]
    fn a_source_whose_other_end_has_gone_is_readable() {
        let (reader, writer) = io::pipe().expect("two descriptors are free");
        drop(writer);
        let mut sources = [Source::readable(&reader)];
        assert_eq!(wait(&mut sources, Some(Duration::from_secs(20))).expect("poll works"), 1);
        assert!(sources[0].is_readable());
    }
}
