//! The next deadline of a table behind a lock, readable without it: it is asked for after every segment, and changes
//! seldom.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xylem_core::Instant;

/// What stands for "never".
const NEVER: u64 = u64::MAX;

/// See the module's text. Cloning gives another handle on the same deadline.
#[derive(Clone, Debug)]
pub(crate) struct Soonest(Arc<AtomicU64>);

impl Soonest {
    /// None yet.
    pub fn never() -> Soonest {
        Soonest(Arc::new(AtomicU64::new(NEVER)))
    }

    /// The table's, whenever it has changed.
    pub fn set(&self, at: Option<Instant>) {
        self.0.store(at.map_or(NEVER, Instant::as_nanos), Ordering::Release);
    }

    /// The deadline, if there is one.
    pub fn at(&self) -> Option<Instant> {
        Some(self.0.load(Ordering::Acquire)).filter(|at| *at != NEVER).map(Instant::from_nanos)
    }
}
