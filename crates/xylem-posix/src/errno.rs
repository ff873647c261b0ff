//! Why a call failed, as the number that C programs know (errno(3), the numbers of Linux). What the stack says in the
//! kinds of the standard library comes back in the numbers they were made from.

use std::fmt;
use std::io::{self, ErrorKind};

/// See the module's text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

/// The numbers this crate gives, with their names.
const NAMES: [(i32, &str); 30] = [
    (libc::EPERM, "EPERM"),
    (libc::EIO, "EIO"),
    (libc::EBADF, "EBADF"),
    (libc::EAGAIN, "EAGAIN"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::EACCES, "EACCES"),
    (libc::EFAULT, "EFAULT"),
    (libc::EEXIST, "EEXIST"),
    (libc::EINVAL, "EINVAL"),
    (libc::EMFILE, "EMFILE"),
    (libc::ENOTTY, "ENOTTY"),
    (libc::ENOENT, "ENOENT"),
    (libc::EPIPE, "EPIPE"),
    (libc::ENOSYS, "ENOSYS"),
    (libc::ENOTSOCK, "ENOTSOCK"),
    (libc::EDESTADDRREQ, "EDESTADDRREQ"),
    (libc::EMSGSIZE, "EMSGSIZE"),
    (libc::ENOPROTOOPT, "ENOPROTOOPT"),
    (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
    (libc::EADDRINUSE, "EADDRINUSE"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::ECONNRESET, "ECONNRESET"),
    (libc::EISCONN, "EISCONN"),
    (libc::ENOTCONN, "ENOTCONN"),
    (libc::ETIMEDOUT, "ETIMEDOUT"),
    (libc::EALREADY, "EALREADY"),
    (libc::EINPROGRESS, "EINPROGRESS"),
];

impl fmt::Debug for Errno {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => out.write_str(name),
            None => write!(out, "errno {}", self.0),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(out)
    }
}

impl std::error::Error for Errno {}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or_else(|| number(error.kind())))
    }
}

fn number(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::NetworkUnreachable => libc::ENETUNREACH,
        ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
        ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
        ErrorKind::ConnectionReset => libc::ECONNRESET,
        ErrorKind::ConnectionAborted => libc::ECONNABORTED,
        ErrorKind::TimedOut => libc::ETIMEDOUT,
        ErrorKind::NotConnected => libc::ENOTCONN,
        ErrorKind::BrokenPipe => libc::EPIPE,
        ErrorKind::InvalidInput => libc::EINVAL,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::OutOfMemory => libc::ENOBUFS,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        ErrorKind::WouldBlock => libc::EAGAIN,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_become_the_numbers_that_make_them() {
        for number in [
            libc::EADDRINUSE,
            libc::EADDRNOTAVAIL,
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ECONNREFUSED,
            libc::ECONNRESET,
            libc::ECONNABORTED,
            libc::ETIMEDOUT,
            libc::ENOTCONN,
            libc::EPIPE,
            libc::EINVAL,
            libc::EAGAIN,
        ] {
            let kind = io::Error::from_raw_os_error(number).kind();
            assert_eq!(Errno::from(io::Error::from(kind)), Errno(number));
        }
        assert_eq!(format!("{:?} {:?}", Errno(libc::EBADF), Errno(9999)), "EBADF errno 9999");
    }
}
