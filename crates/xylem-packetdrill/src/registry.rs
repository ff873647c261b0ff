//! The runs by number. What C code is handed as a pointer is such a number: one that is stale, or never was, finds
//! nothing, where a pointer would be followed.

use crate::flags::{FlagError, Flags};
use crate::instance::Instance;
use crate::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use xylem_posix::Errno;

static RUNS: Mutex<Runs> = Mutex::new(Runs { next: 1, all: BTreeMap::new() });

struct Runs {
    next: usize,
    all: BTreeMap<usize, Run>,
}

/// A run, or why every call of it fails.
#[derive(Clone)]
enum Run {
    Going(Arc<Instance>),
    Refused(Errno),
}

/// Begins a run and gives its number. One that cannot be is said in one sentence on standard error, since the interface has
/// no other way, and has a number too: its calls fail.
pub(crate) fn begin(flags: &str) -> usize {
    let refuse = |errno: i32, reason: &str| {
        eprintln!("libxylem_packetdrill: {reason}");
        Run::Refused(Errno(errno))
    };
    let run = match Flags::read(flags) {
        Err(error @ FlagError::NotYet) => refuse(libc::EAFNOSUPPORT, &error.to_string()),
        Err(error) => refuse(libc::EINVAL, &error.to_string()),
        Ok(flags) => match Instance::new(flags) {
            Ok(instance) => Run::Going(Arc::new(instance)),
            Err(reason) => refuse(libc::ENOMEM, &reason),
        },
    };
    let mut runs = lock(&RUNS);
    let number = runs.next;
    runs.next += 1;
    runs.all.insert(number, run);
    number
}

/// The run of this number.
///
/// # Errors
/// EINVAL if there is none; why it was refused, if it was.
pub(crate) fn find(number: usize) -> Result<Arc<Instance>, Errno> {
    match lock(&RUNS).all.get(&number) {
        Some(Run::Going(instance)) => Ok(Arc::clone(instance)),
        Some(Run::Refused(errno)) => Err(*errno),
        None => Err(Errno(libc::EINVAL)),
    }
}

/// Ends a run; one that is not there has ended already.
pub(crate) fn end(number: usize) {
    let run = lock(&RUNS).all.remove(&number);
    if let Some(Run::Going(instance)) = run {
        instance.end();
    }
}
