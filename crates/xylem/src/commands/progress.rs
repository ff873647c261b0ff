//! What a demonstration or a measurement says while it runs, on standard error: one line that is rewritten on a terminal, a line for each
//! step elsewhere. Standard output is for the result.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

/// The steps, told as they begin.
pub struct Progress {
    rewrites: bool,
    steps: usize,
    done: usize,
    begun: Instant,
    open: bool,
}

impl Progress {
    /// Something of `steps` steps.
    pub fn new(steps: usize) -> Progress {
        Progress { rewrites: stderr().is_terminal(), steps, done: 0, begun: Instant::now(), open: false }
    }

    /// The next step begins.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        let (done, steps, seconds) = (self.done, self.steps, self.begun.elapsed().as_secs());
        if self.rewrites {
            // Back to the first column, and the rest of the older line away (ECMA-48: CR, EL).
            let _ = write!(stderr(), "\r\x1b[K[{done}/{steps}] {seconds:>3} s  {what} ...");
            let _ = stderr().flush();
            self.open = true;
        } else {
            let _ = writeln!(stderr(), "[{done}/{steps}] {seconds:>3} s  {what}");
        }
    }

    /// Something to be said that stays.
    pub fn say(&mut self, what: &str) {
        self.clear();
        let _ = writeln!(stderr(), "{what}");
    }

    /// The line that is rewritten goes.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = write!(stderr(), "\r\x1b[K");
            let _ = stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
