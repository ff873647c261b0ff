//! Where and how urgently the calling thread runs (sched_setaffinity(2), setpriority(2), prctl(2)).
#![allow(unsafe_code)]

use super::checked;
use std::io;

/// The CPUs a mask of the C library can name.
pub(crate) const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;

/// Lets the calling thread run on `cpu` only.
pub(crate) fn set_cpu(cpu: usize) -> io::Result<()> {
    assert!(cpu < CPUS_MAX, "the caller has checked the number");
    // SAFETY: an all-zero mask is an empty set, and `cpu` is inside it by the assertion.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    };
    // SAFETY: the pointer and the size are those of `set`; 0 names the calling thread.
    checked(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) }).map(drop)
}

/// The CPUs the calling thread may run on.
pub(crate) fn cpus() -> io::Result<Vec<usize>> {
    // SAFETY: an all-zero mask is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer and the size are those of `set`; 0 names the calling thread.
    checked(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) })?;
    // SAFETY: every number asked for is below the size of the set.
    Ok((0..CPUS_MAX).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// Sets the calling thread's nice value (on Linux it is the thread's, not the process's).
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: setpriority(2) takes no pointers; 0 names the caller.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(drop)
}

/// Lets the kernel be late by at most `nanoseconds` when it ends the calling thread's waits; 50 000 if never set.
pub(crate) fn set_timer_slack(nanoseconds: u64) -> io::Result<()> {
    // SAFETY: this option takes a number, no pointer.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds as libc::c_ulong) }).map(drop)
}

/// The processor time that the calling thread has used.
pub(crate) fn thread_time() -> io::Result<std::time::Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local that the call writes.
    checked(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) })?;
    // The kernel's answer is never negative and has less than 10^9 nanoseconds.
    Ok(std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// True if this process leads its session, so that the session's scheduling group is its own.
pub(crate) fn leads_session() -> bool {
    // SAFETY: both calls take no pointers and cannot fail for the caller itself.
    unsafe { libc::getsid(0) == libc::getpid() }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Makes the calling process the leader of a session of its own.
    pub(crate) fn start_session() -> io::Result<()> {
        // SAFETY: setsid(2) takes no pointers.
        super::checked(unsafe { libc::setsid() }).map(drop)
    }

    /// Runs `work` in the command's child before its program starts; its error is the error of starting.
    pub(crate) fn before_start(command: &mut Command, work: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
        // SAFETY: the closure runs in a copy of this process with one thread. It may allocate, which the C libraries of
        // Linux allow after a fork; tests only.
        unsafe { command.pre_exec(work) };
    }
}
