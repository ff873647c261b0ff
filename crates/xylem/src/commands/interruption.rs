//! SIGINT and SIGTERM: a demonstration or a measurement ends at the next step, in order, so that whatever it started has ended before it
//! does. A second signal ends it at once; the kernel then clears up what is left, which are namespaces and memory.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status after an interruption, as shells say it.
pub const EXIT_STATUS: i32 = 130;

/// Whether the user has had enough. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// One that the signals SIGINT and SIGTERM raise.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub fn on_signals() -> io::Result<Interruption> {
        let interruption = Interruption::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let flag = || Arc::clone(&interruption.0);
            // In this order: the second signal finds the flag raised by the first.
            signal_hook::flag::register_conditional_shutdown(signal, EXIT_STATUS, flag())?;
            signal_hook::flag::register(signal, flag())?;
        }
        Ok(interruption)
    }

    /// Whether it has been raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Raises it.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// An error if it has been raised.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn check(&self) -> io::Result<()> {
        if self.is_raised() { Err(io::Error::other(Interrupted)) } else { Ok(()) }
    }
}

/// The user has had enough.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
