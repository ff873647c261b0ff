//! Entering and leaving namespaces (unshare(2), setns(2)), in this thread or in a child before its program starts. What
//! runs in a child between fork and exec allocates nothing and takes no lock, since another thread of the parent may
//! have held one.
#![allow(unsafe_code)]

use super::{checked, ioctl, socket};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A step that failed, with its error: errors between fork and exec have no room for more.
pub(crate) struct Failed {
    /// What was tried.
    pub(crate) step: &'static str,
    pub(crate) error: io::Error,
}

/// Wraps an error with the step it happened in.
fn failed(step: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed { step, error }
}

/// Moves the calling thread into a new network namespace and brings its loopback interface up.
pub(crate) fn enter_new_network() -> Result<(), Failed> {
    // SAFETY: unshare(2) takes no pointers. A new network namespace changes nothing the thread shares with others.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map_err(failed("make a network namespace"))?;
    loopback_up()
}

/// Moves the whole process, which must have one thread, into a new user namespace (as its root) and a new network
/// namespace, and brings the loopback interface up.
pub(crate) fn enter_new_user_and_network() -> Result<(), Failed> {
    // SAFETY: these calls take no pointers and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: unshare(2) takes no pointers. The kernel refuses it if the process has other threads.
    checked(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })
        .map_err(failed("make a user namespace and a network namespace in it"))?;
    // Without this the group map may not be written by an ordinary user (user_namespaces(7)).
    write_file("/proc/self/setgroups", format_args!("deny")).map_err(failed("give up setgroups"))?;
    write_file("/proc/self/uid_map", format_args!("0 {user} 1")).map_err(failed("map the user to root"))?;
    write_file("/proc/self/gid_map", format_args!("0 {group} 1")).map_err(failed("map the group to root"))?;
    loopback_up()
}

/// Moves the calling thread into the network namespace that `namespace` names.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns(2) takes no pointers; the descriptor is borrowed, so it is open.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Lets the command's child enter `namespace` before its program starts.
pub(crate) fn enter_before_start(command: &mut Command, namespace: OwnedFd) {
    // SAFETY: the closure makes one system call and allocates nothing; it owns the descriptor, which is therefore open
    // in every child the command starts.
    unsafe { command.pre_exec(move || enter_network(namespace.as_fd())) };
}

/// Tries `step` in a child that ends at once, and says what came of it. Nothing of this process changes.
pub(crate) fn tried_in_a_child(step: fn() -> Result<(), Failed>) -> io::Result<()> {
    // The child reports its errno in place of starting a program; success is a number that no step of ours fails with.
    const WENT_WELL: i32 = libc::EXFULL;
    let mut command = Command::new("/proc/self/exe");
    let attempt = move || match step() {
        Ok(()) => Err(io::Error::from_raw_os_error(WENT_WELL)),
        Err(failed) => Err(failed.error),
    };
    // SAFETY: the steps make system calls and write small files from the stack; they allocate nothing.
    unsafe { command.pre_exec(attempt) };
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(WENT_WELL) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => unreachable!("the child always reports an error instead of starting the program"),
    }
}

fn loopback_up() -> Result<(), Failed> {
    let up = || ioctl::set_up(socket::control_socket()?.as_fd(), ioctl::InterfaceName::LOOPBACK, true);
    up().map_err(failed("bring the loopback interface up"))
}

/// Writes a short text to a file in one call, as the files of /proc want it.
fn write_file(path: &str, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    let mut buffer = [0u8; 64];
    let mut rest = &mut buffer[..];
    rest.write_fmt(text)?;
    let unused = rest.len();
    let used = buffer.len() - unused;
    OpenOptions::new().write(true).open(path)?.write_all(&buffer[..used])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Lets the command's child enter a new user and network namespace before its program starts, as an ordinary
    /// user's program would by itself.
    pub(crate) fn enter_unprivileged_before_start(command: &mut Command) {
        let enter = || {
            // A child that gave up root may not open its own files in /proc until it is dumpable again; a program that
            // an ordinary user starts is.
            // SAFETY: this option takes a number, no pointer.
            checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) })?;
            enter_new_user_and_network().map_err(|failed| failed.error)
        };
        // SAFETY: as in `tried_in_a_child`.
        unsafe { command.pre_exec(enter) };
    }

    /// Takes from the calling thread, and no other, all its capabilities (capset(2)).
    pub(crate) fn give_up_capabilities() -> io::Result<()> {
        /// `_LINUX_CAPABILITY_VERSION_3` with the calling thread, and its six empty words of capabilities.
        const HEADER: [u32; 2] = [0x2008_0522, 0];
        const NOTHING: [u32; 6] = [0; 6];
        // SAFETY: both pointers are to constants of the sizes that this version of the call reads.
        let answer = unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), NOTHING.as_ptr()) };
        checked(answer as libc::c_int).map(drop)
    }

    /// Lets the calling thread, and no other, open files as `user` does (setfsuid(2)).
    pub(crate) fn open_files_as(user: u32) {
        // SAFETY: setfsuid(2) takes no pointers; whether it worked is seen at the next file.
        unsafe { libc::setfsuid(user) };
    }
}
