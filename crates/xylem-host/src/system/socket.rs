//! Sockets that carry no data of ours: one to ask the kernel about interfaces, one to give it orders; and what the kernel
//! says of a connection of its own.
#![allow(unsafe_code)]

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

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

/// What the kernel says of a TCP connection of its own (tcp(7), TCP_INFO).
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<libc::tcp_info> {
    // SAFETY: the structure is made of whole numbers and bit fields of them, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointer leads to `length` bytes that are ours; an older kernel fills fewer, and the rest stays zero.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast::<libc::c_void>(),
            &raw mut length,
        )
    };
    checked(answer).map(|_| info)
}
