//! The table of descriptors: the lowest free number is given, as POSIX wants it, and each stands for an open file, which
//! several numbers may share. A call works on the file it found, so one that another thread closes meanwhile goes when
//! the call has ended.

use crate::bell::Bell;
use crate::datagram::DatagramSocket;
use crate::epoll::Epoll;
use crate::errno::Errno;
use crate::lock;
use crate::pipe::PipeEnd;
use crate::settings::Defaults;
use crate::stream::StreamSocket;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use xylem_core::Instant;
use xylem_host::shell::{Ended, Shell};
use xylem_host::stack::Stack;

/// The most descriptors at once: what Linux gives a process unless told otherwise.
pub const DESCRIPTORS_MAX: usize = 1024;

/// See the crate's text.
pub struct Descriptors {
    pub(crate) stack: Stack,
    first: i32,
    defaults: Mutex<Defaults>,
    table: Mutex<BTreeMap<i32, Arc<Open>>>,
}

/// An open file, and what all its numbers share.
pub(crate) struct Open {
    pub file: File,
    pub nonblocking: AtomicBool,
    pub bell: Arc<Bell>,
    /// How many numbers it has.
    numbers: AtomicUsize,
}

/// What a descriptor stands for.
pub(crate) enum File {
    Stream(StreamSocket),
    Datagram(DatagramSocket),
    Epoll(Epoll),
    Pipe(PipeEnd),
}

impl Open {
    pub fn new(file: File, bell: Arc<Bell>, nonblocking: bool) -> Arc<Open> {
        Arc::new(Open { file, nonblocking: AtomicBool::new(nonblocking), bell, numbers: AtomicUsize::new(0) })
    }

    /// Whether a call with these flags may not wait.
    pub fn may_not_wait(&self, flags: i32) -> bool {
        flags & libc::MSG_DONTWAIT != 0 || self.nonblocking.load(Ordering::Relaxed)
    }

    /// The socket of streams it is.
    ///
    /// # Errors
    /// ENOTSOCK if it is no socket, EOPNOTSUPP if it is one of another kind.
    pub fn stream(&self) -> Result<&StreamSocket, Errno> {
        match &self.file {
            File::Stream(stream) => Ok(stream),
            File::Datagram(_) => Err(Errno(libc::EOPNOTSUPP)),
            File::Epoll(_) | File::Pipe(_) => Err(Errno(libc::ENOTSOCK)),
        }
    }
}

impl Descriptors {
    /// A table without entries over `stack`, whose numbers begin at `first`.
    pub fn new(stack: Stack, first: i32) -> Descriptors {
        Descriptors { stack, first: first.max(0), defaults: Mutex::default(), table: Mutex::default() }
    }

    /// The stack its sockets live on.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// What sockets begin with that are made from now on.
    pub fn set_defaults(&self, defaults: Defaults) {
        *lock(&self.defaults) = defaults;
    }

    pub(crate) fn defaults(&self) -> Defaults {
        lock(&self.defaults).clone()
    }

    /// How many descriptors there are.
    pub fn len(&self) -> usize {
        lock(&self.table).len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn find(&self, descriptor: i32) -> Result<Arc<Open>, Errno> {
        lock(&self.table).get(&descriptor).cloned().ok_or(Errno(libc::EBADF))
    }

    /// Every open file once for each of its numbers.
    pub(crate) fn all(&self) -> Vec<Arc<Open>> {
        lock(&self.table).values().cloned().collect()
    }

    /// Gives a file the lowest free number from `least` on.
    pub(crate) fn give(&self, open: Arc<Open>, least: i32) -> Result<i32, Errno> {
        let mut table = lock(&self.table);
        if table.len() >= DESCRIPTORS_MAX {
            return Err(Errno(libc::EMFILE));
        }
        let mut number = self.first.max(least);
        for taken in table.range(number..).map(|(taken, _)| *taken) {
            if taken != number {
                break;
            }
            number = number.checked_add(1).ok_or(Errno(libc::EMFILE))?;
        }
        open.numbers.fetch_add(1, Ordering::Relaxed);
        table.insert(number, open);
        Ok(number)
    }

    /// Takes a number away. What it stood for goes with its last one; a stream may linger first (SO_LINGER).
    ///
    /// # Errors
    /// EBADF.
    pub fn close(&self, descriptor: i32) -> Result<(), Errno> {
        let open = lock(&self.table).remove(&descriptor).ok_or(Errno(libc::EBADF))?;
        if open.numbers.fetch_sub(1, Ordering::Relaxed) > 1 {
            return Ok(());
        }
        match &open.file {
            File::Stream(stream) => stream.close(self, &open),
            File::Pipe(end) => end.close(),
            File::Datagram(_) | File::Epoll(_) => {}
        }
        // Whoever watches it learns that there is nothing left to watch.
        open.bell.ring();
        Ok(())
    }

    /// Closes everything, without lingering.
    pub fn close_all(&self) {
        let numbers: Vec<i32> = lock(&self.table).keys().copied().collect();
        for number in numbers {
            if let Ok(open) = self.find(number)
                && let File::Stream(stream) = &open.file
            {
                stream.linger_no_more();
            }
            // It may have been closed by another thread in between.
            let _gone = self.close(number);
        }
    }

    /// Tries until there is an answer: once if the call may not wait, else whenever `bell` rings, to the `deadline`.
    pub(crate) fn wait<T>(
        &self,
        bell: &Bell,
        may_not_wait: bool,
        deadline: Option<Instant>,
        attempt: impl FnMut() -> Option<Result<T, Errno>>,
    ) -> Result<T, Errno> {
        self.wait_for_any(&[bell], may_not_wait, deadline, attempt)
    }

    /// The same for several bells.
    pub(crate) fn wait_for_any<T>(
        &self,
        bells: &[&Bell],
        may_not_wait: bool,
        deadline: Option<Instant>,
        mut attempt: impl FnMut() -> Option<Result<T, Errno>>,
    ) -> Result<T, Errno> {
        if let Some(answer) = attempt() {
            return answer;
        }
        if may_not_wait {
            if self.stack.shell() == Shell::Inline {
                // Nobody else would ever receive anything.
                self.stack.turn();
                return attempt().unwrap_or(Err(Errno(libc::EAGAIN)));
            }
            return Err(Errno(libc::EAGAIN));
        }
        let mut registered: Option<Waker> = None;
        let answer = self.stack.wait(deadline, |waker| {
            bells.iter().for_each(|bell| bell.register(waker));
            registered.get_or_insert_with(|| waker.clone());
            attempt().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        if let Some(waker) = registered {
            bells.iter().for_each(|bell| bell.forget(&waker));
        }
        match answer {
            Ok(answer) => answer,
            Err(Ended::TimedOut) => Err(Errno(libc::EAGAIN)),
            Err(Ended::Stopped) => Err(Errno(libc::ENOTCONN)),
        }
    }

    /// When a wait that begins now and lasts `span` ends, by the stack's clock.
    pub(crate) fn deadline(&self, span: Option<std::time::Duration>) -> Option<Instant> {
        span.map(|span| self.stack.now() + span)
    }
}

impl std::fmt::Debug for Descriptors {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Descriptors").field("stack", &self.stack).field("open", &self.len()).finish()
    }
}
