//! Programs started by this one that shall not outlive it.

use std::process::Command;

/// Ties the command's child to this process: the kernel kills the child when the thread that started it ends, however it
/// ends (prctl(2), PR_SET_PDEATHSIG). A child whose parent has gone before the tie was made does not start.
pub fn die_with_parent(command: &mut Command) {
    crate::system::children::die_with_parent(command);
}
