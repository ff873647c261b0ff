//! A pipe inside the process (pipe(2)), and moving bytes through one (splice(2)). The bytes are copied: what splice saves
//! in a kernel is not to be had here, and programs that use it want it to work.

use crate::bell::Bell;
use crate::errno::Errno;
use crate::lock;
use crate::table::{Descriptors, File, Open};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex};

/// The most bytes in a pipe (pipe(7)).
const PIPE_BYTES_MAX: usize = 65_536;

/// One end of a pipe.
pub(crate) struct PipeEnd {
    pipe: Arc<Pipe>,
    writes: bool,
}

struct Pipe {
    state: Mutex<State>,
    /// The reader's bell and the writer's.
    bells: [Arc<Bell>; 2],
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    /// Which ends are closed: the reader's and the writer's.
    closed: [bool; 2],
}

impl PipeEnd {
    /// The two ends as open files: where it is read, and where it is written.
    fn pair(flags: i32) -> [Arc<Open>; 2] {
        let bells: [Arc<Bell>; 2] = Default::default();
        let pipe = Arc::new(Pipe { state: Mutex::default(), bells: bells.clone() });
        let nonblocking = flags & libc::O_NONBLOCK != 0;
        let end = |writes: bool| {
            let file = File::Pipe(PipeEnd { pipe: Arc::clone(&pipe), writes });
            Open::new(file, Arc::clone(&bells[usize::from(writes)]), nonblocking)
        };
        [end(false), end(true)]
    }

    fn ring_other(&self) {
        self.pipe.bells[usize::from(!self.writes)].ring();
    }

    pub fn close(&self) {
        lock(&self.pipe.state).closed[usize::from(self.writes)] = true;
        self.ring_other();
    }

    /// Takes bytes out; `None` if there is nothing to be had yet.
    fn take(&self, into: &mut [IoSliceMut<'_>]) -> Option<Result<usize, Errno>> {
        if self.writes {
            return Some(Err(Errno(libc::EBADF)));
        }
        let mut state = lock(&self.pipe.state);
        if state.bytes.is_empty() {
            return state.closed[1].then_some(Ok(0));
        }
        let mut done = 0;
        for slice in into {
            let count = slice.len().min(state.bytes.len());
            state.bytes.drain(..count).zip(slice.iter_mut()).for_each(|(byte, place)| *place = byte);
            done += count;
        }
        drop(state);
        self.ring_other();
        Some(Ok(done))
    }

    /// Puts bytes in; `None` if there is no room yet.
    fn put(&self, from: &[IoSlice<'_>]) -> Option<Result<usize, Errno>> {
        if !self.writes {
            return Some(Err(Errno(libc::EBADF)));
        }
        let mut state = lock(&self.pipe.state);
        if state.closed[0] {
            return Some(Err(Errno(libc::EPIPE)));
        }
        let room = PIPE_BYTES_MAX - state.bytes.len();
        if room == 0 {
            return None;
        }
        let before = state.bytes.len();
        state.bytes.extend(from.iter().flat_map(|slice| slice.iter().copied()).take(room));
        let done = state.bytes.len() - before;
        drop(state);
        self.ring_other();
        Some(Ok(done))
    }

    pub fn read(&self, table: &Descriptors, open: &Open, into: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        table.wait(&open.bell, open.may_not_wait(0), None, || self.take(into))
    }

    pub fn write(&self, table: &Descriptors, open: &Open, from: &[IoSlice<'_>]) -> Result<usize, Errno> {
        table.wait(&open.bell, open.may_not_wait(0), None, || self.put(from))
    }

    /// How many bytes may be put in.
    fn room(&self) -> usize {
        PIPE_BYTES_MAX - lock(&self.pipe.state).bytes.len()
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        lock(&self.pipe.state).bytes.len()
    }

    /// The first bytes, left there.
    fn front(&self, count: usize) -> Vec<u8> {
        lock(&self.pipe.state).bytes.iter().take(count).copied().collect()
    }

    /// What poll(2) finds, in its bits.
    pub fn readiness(&self) -> i16 {
        let state = lock(&self.pipe.state);
        match (self.writes, state.closed) {
            (true, [true, _]) => libc::POLLOUT | libc::POLLWRNORM | libc::POLLERR,
            (true, _) if state.bytes.len() < PIPE_BYTES_MAX => libc::POLLOUT | libc::POLLWRNORM,
            (true, _) => 0,
            (false, closed) => {
                let hung_up = if closed[1] { libc::POLLHUP } else { 0 };
                if state.bytes.is_empty() { hung_up } else { libc::POLLIN | libc::POLLRDNORM | hung_up }
            }
        }
    }
}

impl Descriptors {
    /// A pipe: where it is read, and where it is written. `flags`: O_NONBLOCK, O_CLOEXEC.
    ///
    /// # Errors
    /// EINVAL for other flags, EMFILE.
    pub fn pipe(&self, flags: i32) -> Result<[i32; 2], Errno> {
        if flags & !(libc::O_NONBLOCK | libc::O_CLOEXEC) != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let [reader, writer] = PipeEnd::pair(flags);
        let reader = self.give(reader, 0)?;
        match self.give(writer, 0) {
            Ok(writer) => Ok([reader, writer]),
            Err(error) => {
                // The number was given a moment ago.
                let _closed = self.close(reader);
                Err(error)
            }
        }
    }

    /// Moves at most `length` bytes from one descriptor to another, one of which is a pipe.
    ///
    /// # Errors
    /// EBADF; EINVAL if neither is a pipe, or `flags` are not of splice(2); else as read and write.
    pub fn splice(&self, from: i32, to: i32, length: usize, flags: u32) -> Result<usize, Errno> {
        let known = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MORE;
        if flags & !known != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let (source, sink) = (self.find(from)?, self.find(to)?);
        if length == 0 {
            return Ok(0);
        }
        let message_flags = if flags & libc::SPLICE_F_NONBLOCK != 0 { libc::MSG_DONTWAIT } else { 0 };
        match (&source.file, &sink.file) {
            (_, File::Pipe(end)) => {
                if !end.writes {
                    return Err(Errno(libc::EBADF));
                }
                let may_not_wait = sink.may_not_wait(message_flags);
                let room = self.wait(&sink.bell, may_not_wait, None, || {
                    if lock(&end.pipe.state).closed[0] {
                        return Some(Err(Errno(libc::EPIPE)));
                    }
                    Some(end.room()).filter(|room| *room > 0).map(Ok)
                })?;
                let mut bytes = vec![0; length.min(room)];
                let got = self.receive_on(&source, &mut [IoSliceMut::new(&mut bytes)], message_flags)?;
                // Another writer may have been faster: the rest waits for room, since it has been read.
                let mut done = 0;
                while done < got.count {
                    done += self.wait(&sink.bell, false, None, || end.put(&[IoSlice::new(&bytes[done..got.count])]))?;
                }
                Ok(got.count)
            }
            (File::Pipe(end), _) => {
                let may_not_wait = source.may_not_wait(message_flags);
                let is_there = self.wait(&source.bell, may_not_wait, None, || {
                    if end.writes {
                        return Some(Err(Errno(libc::EBADF)));
                    }
                    let ended = lock(&end.pipe.state).closed[1];
                    (end.len() > 0 || ended).then(|| Ok(end.len() > 0))
                })?;
                if !is_there {
                    return Ok(0);
                }
                let bytes = end.front(length);
                let more = if flags & libc::SPLICE_F_MORE != 0 { libc::MSG_MORE } else { 0 };
                let sent = self.send_on(&sink, &[IoSlice::new(&bytes)], message_flags | more, None)?;
                let mut gone = vec![0; sent];
                // They were there a moment ago; another reader would have got them twice otherwise.
                let _taken = end.take(&mut [IoSliceMut::new(&mut gone)]);
                Ok(sent)
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }
}
