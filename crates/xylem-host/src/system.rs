//! The system calls that the standard library lacks, each wrapped as a safe function. All unsafe code of this crate
//! stands in the files below, a subject each; nothing here decides anything.

pub(crate) mod children;
pub(crate) mod entropy;
pub(crate) mod ioctl;
pub(crate) mod namespaces;
pub(crate) mod packet;
pub(crate) mod scheduling;
pub(crate) mod socket;
pub(crate) mod waiting;

use std::io;

/// The result of a system call that answers -1 and sets `errno` when it fails.
fn checked(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
