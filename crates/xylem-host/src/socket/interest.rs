//! Who is to be called when something has changed: threads and tasks alike are wakers. Whoever is called once has to
//! register again.

use smallvec::SmallVec;
use std::task::Waker;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Interest(SmallVec<[Waker; 1]>);

/// Wakers to call when all locks are free.
#[must_use]
#[derive(Default)]
pub(crate) struct Calls {
    wakers: SmallVec<[Waker; 2]>,
    changed: bool,
}

/// The most wakers registered for one change. With more, the oldest is called for nothing and registers again if it
/// still waits: a task that is polled by ever new wakers cannot fill the memory.
const WAKERS_MAX: usize = 64;

impl Interest {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Registers a waker, once.
    pub fn register(&mut self, waker: &Waker) {
        if self.0.iter().any(|known| known.will_wake(waker)) {
            return;
        }
        if self.0.len() >= WAKERS_MAX {
            self.0.remove(0).wake();
        }
        self.0.push(waker.clone());
    }

    /// Moves all wakers to those to be called.
    pub fn call(&mut self, calls: &mut Calls) {
        if !self.0.is_empty() {
            calls.wakers.extend(self.0.drain(..));
        }
        calls.changed = true;
    }

    /// The same, where nothing has changed that a watcher would look at.
    pub fn call_quietly(&mut self, calls: &mut Calls) {
        calls.wakers.extend(self.0.drain(..));
    }
}

impl Calls {
    /// Something has changed, whether or not anybody waits for it.
    pub fn note(&mut self) {
        self.changed = true;
    }

    /// Whether something has changed that somebody might have waited for.
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Calls them.
    pub fn make(self) {
        // Mostly nobody waits.
        if !self.wakers.is_empty() {
            self.wakers.into_iter().for_each(Waker::wake);
        }
    }
}
