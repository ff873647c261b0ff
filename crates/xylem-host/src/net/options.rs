//! What can be set on a socket and is shared by all its handles: whether calls wait, and how long.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Options {
    nonblocking: AtomicBool,
    read: Timeout,
    write: Timeout,
}

/// A time in nanoseconds; zero for none.
#[derive(Debug, Default)]
pub(super) struct Timeout(AtomicU64);

impl Options {
    pub fn set_nonblocking(&self, nonblocking: bool) {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
    }

    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    pub fn read(&self) -> &Timeout {
        &self.read
    }

    pub fn write(&self) -> &Timeout {
        &self.write
    }
}

impl Timeout {
    /// # Errors
    /// Zero, which the standard library refuses as well.
    pub fn set(&self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a timeout above zero, got zero"));
        }
        let nanoseconds = timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        self.0.store(nanoseconds, Ordering::Relaxed);
        Ok(())
    }

    pub fn value(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            nanoseconds => Some(Duration::from_nanos(nanoseconds)),
        }
    }

    /// When a wait that begins now ends.
    pub fn deadline(&self) -> Option<Instant> {
        self.value().and_then(|timeout| Instant::now().checked_add(timeout))
    }
}
