//! Waiting for descriptors (ppoll(2)) and the counter one thread wakes another with (eventfd(2)).
#![allow(unsafe_code)]

use super::checked;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::time::Duration;

/// One descriptor to wait for, and what the last wait saw there. It borrows the descriptor, which stays open so.
// The layout is that of `pollfd`, so that a slice of these can be handed to the kernel as it is.
#[repr(transparent)]
pub struct Source<'fd> {
    poll: libc::pollfd,
    descriptor: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> Source<'fd> {
    /// Wait until there is something to read.
    pub fn readable(descriptor: &'fd impl AsFd) -> Source<'fd> {
        Source::new(descriptor.as_fd(), libc::POLLIN)
    }

    /// Wait until there is something to read or room to write.
    pub fn readable_or_writable(descriptor: &'fd impl AsFd) -> Source<'fd> {
        Source::new(descriptor.as_fd(), libc::POLLIN | libc::POLLOUT)
    }

    fn new(descriptor: BorrowedFd<'fd>, events: libc::c_short) -> Source<'fd> {
        let poll = libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 };
        Source { poll, descriptor: PhantomData }
    }

    /// True if the last wait found something to read; also when the other end has gone or the descriptor failed, since
    /// the read then tells.
    pub fn is_readable(&self) -> bool {
        self.poll.revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0
    }

    /// True if the last wait found room to write.
    pub fn is_writable(&self) -> bool {
        self.poll.revents & libc::POLLOUT != 0
    }
}

/// Waits for any of `sources`, or for `timeout`; `None` waits for ever. Says how many are ready.
pub(crate) fn wait(sources: &mut [Source<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|span| libc::timespec {
        // Centuries beyond what the kernel counts are as good as for ever.
        tv_sec: libc::time_t::try_from(span.as_secs()).unwrap_or(libc::time_t::MAX),
        // Below 10^9, which fits the field on every machine.
        tv_nsec: span.subsec_nanos() as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `Source` is transparent over `pollfd`, so the pointer and the length name a slice of those, borrowed
    // mutably for the call; the timeout is null or points to a local that outlives it; no signal mask is given.
    let answer =
        unsafe { libc::ppoll(sources.as_mut_ptr().cast(), sources.len() as libc::nfds_t, timeout, std::ptr::null()) };
    checked(answer).map(|ready| ready as usize)
}

/// A counter that is readable while it is not zero; neither reading nor writing it waits.
pub(crate) fn event_counter() -> io::Result<File> {
    // SAFETY: eventfd(2) takes no pointers.
    let descriptor = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}
