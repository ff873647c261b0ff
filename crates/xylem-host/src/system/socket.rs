//! Sockets that carry no data of ours: one to ask the kernel about interfaces, one to give it orders.
#![allow(unsafe_code)]

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A socket for interface ioctls. It belongs for good to the network namespace of the thread that makes it.
pub(crate) fn control_socket() -> io::Result<OwnedFd> {
    socket(libc::AF_INET, libc::SOCK_DGRAM, 0)
}

/// A route netlink socket, read and written like a file; it belongs to its maker's network namespace like the other.
pub(crate) fn route_netlink_socket() -> io::Result<File> {
    socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE).map(File::from)
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket(2) takes no pointers.
    let descriptor = checked(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
