//! What a child does between fork and exec so as not to outlive its parent.

#![allow(unsafe_code)]

use super::checked;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) fn die_with_parent(command: &mut Command) {
    // SAFETY: getpid(2) takes nothing and always succeeds.
    let parent = unsafe { libc::getpid() };
    let tie = move || {
        // SAFETY: this option takes a number, no pointer.
        checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // SAFETY: getppid(2) takes nothing and always succeeds.
        if unsafe { libc::getppid() } != parent {
            // It died before the tie: nobody would end this child.
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls and touches no memory but its own stack; neither
    // call allocates or locks.
    unsafe { command.pre_exec(tie) };
}
