//! Many scripts against the kernel at once: nearly all of their time is waiting, so they wait together. What failed is tried
//! again by itself, since in real time a busy machine is late without being wrong.

use super::{Tried, kernel};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use xylem_sim::script::Script;

/// How often a script is tried if nothing else is said.
pub const TRIES: u32 = 3;
/// How often one is tried of which each run was late: such a run says nothing.
const TRIES_LATE: u32 = 20;
/// A run that did what it had to so much too late is one of those.
const LATE: Duration = Duration::from_millis(25);
/// Scripts at once.
const AT_ONCE: usize = 24;

/// Tries all, and those that fail up to `tries` times.
pub fn in_parallel(scripts: Vec<(PathBuf, Script)>, tries: u32) -> Vec<Tried> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Tried>>> = scripts.iter().map(|_| Mutex::default()).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((path, script)) = scripts.get(index) else { return };
            let tried = Tried::of(path.clone(), kernel::try_kernel(script), 1);
            *results[index].lock().expect("nobody panics with it") = Some(tried);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(scripts.len()) {
            scope.spawn(work);
        }
    });
    let mut all = Vec::new();
    for ((path, script), result) in scripts.iter().zip(results) {
        let result = result.into_inner().expect("nobody panics with it");
        let mut tried = result.expect("every index below the number of scripts was taken");
        while tried.verdict.is_failure()
            && (tried.tries < tries || tried.late > LATE && tried.tries < TRIES_LATE.max(tries))
        {
            tried = Tried::of(path.clone(), kernel::try_kernel(script), tried.tries + 1);
        }
        all.push(tried);
    }
    all
}
