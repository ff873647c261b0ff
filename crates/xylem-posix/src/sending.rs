//! The sending half of a socket of streams: whole writes for those who may wait, what there is room for otherwise, data
//! that goes with the first segment (MSG_FASTOPEN), and the flags that hold a tail back or mark it urgent.

use crate::errno::Errno;
use crate::lock;
use crate::stream::{Role, StreamSocket, broken};
use crate::table::{Descriptors, Open};
use std::io::IoSlice;
use std::task::Poll;
use xylem_core::Setting;
use xylem_host::net::TcpStream;

/// Flags that do not matter here: nobody sends signals, and a route is always followed.
const IGNORED: i32 = libc::MSG_NOSIGNAL | libc::MSG_EOR | libc::MSG_CONFIRM | libc::MSG_DONTROUTE;
/// Those that do.
const KNOWN: i32 = libc::MSG_DONTWAIT | libc::MSG_MORE | libc::MSG_OOB | libc::MSG_FASTOPEN;

impl StreamSocket {
    pub fn send(
        &self,
        table: &Descriptors,
        open: &Open,
        from: &[IoSlice<'_>],
        flags: i32,
        to: Option<&[u8]>,
    ) -> Result<usize, Errno> {
        if flags & !(IGNORED | KNOWN) != 0 {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        if flags & libc::MSG_FASTOPEN != 0 {
            return self.send_early(table, open, from, flags, to);
        }
        let stream = self.connection().ok_or(Errno(libc::EPIPE))?;
        let wanted: usize = from.iter().map(|slice| slice.len()).sum();
        let deadline = table.deadline(lock(&self.settings).send_timeout);
        let is_urgent = flags & libc::MSG_OOB != 0;
        self.hold_tail(&stream, flags & libc::MSG_MORE != 0);
        let mut done = 0;
        while done < wanted || wanted == 0 {
            let rest = skip(from, done);
            let got = table.wait(&open.bell, open.may_not_wait(flags), deadline, || {
                let readiness = stream.readiness();
                match stream.poll_write_vectored(&rest, is_urgent, None) {
                    Poll::Ready(answer) => Some(answer.map_err(|error| broken(Errno::from(error), &readiness))),
                    Poll::Pending => None,
                }
            });
            match got {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        self.let_tail_go(&stream, flags & libc::MSG_MORE != 0);
        Ok(done)
    }

    /// What comes now is not the end of what shall go together.
    fn hold_tail(&self, stream: &TcpStream, more: bool) {
        if more && !lock(&self.settings).cork {
            lock(&self.state).more = true;
            stream.wish(Setting::Cork(true));
        }
    }

    /// Unless more follows, what was held back goes.
    fn let_tail_go(&self, stream: &TcpStream, more: bool) {
        if !more && std::mem::take(&mut lock(&self.state).more) && !lock(&self.settings).cork {
            stream.wish(Setting::Cork(false));
        }
    }

    /// Connects and sends in one call (RFC 7413; tcp(7)). Without the server's cookie nothing goes along: who may not wait
    /// is told that the connection is on its way, who may has its data sent behind the handshake.
    fn send_early(
        &self,
        table: &Descriptors,
        open: &Open,
        from: &[IoSlice<'_>],
        flags: i32,
        to: Option<&[u8]>,
    ) -> Result<usize, Errno> {
        if let Role::Connection { told: true, .. } = &lock(&self.state).role {
            return Err(Errno(libc::EISCONN));
        }
        let to = to.ok_or(Errno(libc::EDESTADDRREQ))?;
        let data: Vec<u8> = from.iter().flat_map(|slice| slice.iter().copied()).collect();
        let began = self.begin(table, &open.bell, to, &data)?;
        if began.is_none() {
            return Err(Errno(libc::EALREADY));
        }
        // What is in flight beyond the SYN itself has gone with it, and what is unsent is behind it in the queue.
        let taken = self.status().map_or(0, |status| status.in_flight.saturating_sub(1) + status.unsent);
        if taken > 0 {
            return Ok(taken);
        }
        let flags = flags & !libc::MSG_FASTOPEN;
        if open.may_not_wait(flags) {
            return Err(Errno(libc::EINPROGRESS));
        }
        self.await_opening(table, open)?;
        self.send(table, open, from, flags, None)
    }
}

/// The slices behind the first `done` bytes.
fn skip<'a>(from: &'a [IoSlice<'_>], mut done: usize) -> Vec<IoSlice<'a>> {
    let mut rest = Vec::with_capacity(from.len());
    for slice in from {
        let begin = done.min(slice.len());
        done -= begin;
        rest.push(IoSlice::new(&slice[begin..]));
    }
    rest
}
