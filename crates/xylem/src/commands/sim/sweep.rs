//! Many seeds in a row, on every core. Runs share nothing, so which core runs which seed cannot matter; what failed is
//! given back in the order of the seeds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use xylem_sim::scenario::Report;

/// What many runs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Runs.
    pub count: u64,
    /// Events of all of them together.
    pub events: u64,
    /// The runs of which some check does not hold, by seed.
    pub failed: Vec<Report>,
}

/// The most failed runs that are kept; the first ones by the clock.
pub const FAILED_MAX: usize = 100;

/// Runs `count` seeds from `first` on. `progress` is told after each how many are done and how many of them failed.
///
/// # Panics
/// If a run does.
pub fn sweep(
    first: u64,
    count: u64,
    run: impl Fn(u64) -> Report + Sync,
    progress: impl Fn(u64, usize) + Sync,
) -> Swept {
    let next = AtomicU64::new(0);
    let swept = Mutex::new(Swept::default());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let report = run(first.wrapping_add(number));
            // Whoever panicked while it held the lock ends the program when the threads join.
            let mut swept = swept.lock().unwrap_or_else(PoisonError::into_inner);
            swept.count += 1;
            swept.events += report.events;
            if !report.is_right() && swept.failed.len() < FAILED_MAX {
                swept.failed.push(report);
            }
            progress(swept.count, swept.failed.len());
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let mut swept = swept.into_inner().unwrap_or_else(PoisonError::into_inner);
    swept.failed.sort_by_key(|report| report.seed);
    swept
}
