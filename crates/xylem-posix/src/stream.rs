//! A socket of the kind SOCK_STREAM: nothing at first, then a listener or one end of a connection. What it is stands
//! behind a lock that is held for a look only; calls that wait hold a handle on the connection instead.

use crate::address;
use crate::bell::Bell;
use crate::errno::Errno;
use crate::listening::Listening;
use crate::lock;
use crate::settings::Settings;
use crate::table::{Descriptors, Open};
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use xylem_core::Status;
use xylem_host::net::{Readiness, TcpStream};

/// See the module's text.
pub(crate) struct StreamSocket {
    pub domain: i32,
    pub settings: Mutex<Settings>,
    pub state: Mutex<StreamState>,
}

/// What it is at the moment.
#[derive(Default)]
pub(crate) struct StreamState {
    pub bound: Option<SocketAddr>,
    pub role: Role,
    /// MSG_MORE has corked the connection.
    pub more: bool,
    /// The directions that were shut down: receiving, sending.
    pub shut: (bool, bool),
}

#[derive(Default)]
pub(crate) enum Role {
    #[default]
    Fresh,
    /// A connection, which may not have opened yet; `told` once connect(2) has said that it has.
    Connection {
        stream: TcpStream,
        told: bool,
    },
    Listening(Listening),
}

/// What a receiving call has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes; of a datagram as many as there were if MSG_TRUNC asked for that.
    pub count: usize,
    /// Who sent them, where that is not the peer of a connection.
    pub from: Option<SocketAddr>,
    /// A datagram did not fit.
    pub is_cut: bool,
}

/// What connect(2) has found.
enum Progress {
    Open,
    Opening,
    Failed(Errno),
}

impl StreamSocket {
    pub fn new(domain: i32, settings: Settings) -> StreamSocket {
        StreamSocket { domain, settings: Mutex::new(settings), state: Mutex::default() }
    }

    /// One end of a connection that was accepted, with what its listener has set.
    pub fn accepted(domain: i32, settings: Settings, stream: TcpStream, bell: &Arc<Bell>) -> StreamSocket {
        settings.wishes().into_iter().for_each(|wish| stream.wish(wish));
        watch(&stream, bell);
        let socket = StreamSocket::new(domain, settings);
        lock(&socket.state).role = Role::Connection { stream, told: true };
        socket
    }

    /// The connection, if it is one.
    pub fn connection(&self) -> Option<TcpStream> {
        match &lock(&self.state).role {
            Role::Connection { stream, .. } => handle(stream),
            Role::Fresh | Role::Listening(_) => None,
        }
    }

    pub fn bind(&self, table: &Descriptors, address: SocketAddr) -> Result<(), Errno> {
        let reuses = lock(&self.settings).reuse_address;
        if lock(&self.state).bound.is_some() || !matches!(lock(&self.state).role, Role::Fresh) {
            return Err(Errno(libc::EINVAL));
        }
        let bound = table.claim(address, reuses, libc::SOCK_STREAM)?;
        lock(&self.state).bound = Some(bound);
        Ok(())
    }

    pub fn connect(&self, table: &Descriptors, open: &Open, to: &[u8]) -> Result<(), Errno> {
        if address::family(to)? == libc::AF_UNSPEC {
            return Err(Errno(libc::EAFNOSUPPORT));
        }
        let began = self.begin(table, &open.bell, to, &[])?.is_some();
        if open.may_not_wait(0) && began {
            // What cannot be is known at once, what can be is not.
            return match self.progress() {
                Progress::Failed(error) => Err(error),
                Progress::Open => Ok(()),
                Progress::Opening => Err(Errno(libc::EINPROGRESS)),
            };
        }
        self.await_opening(table, open)
    }

    /// Waits until connect(2) can say how it went.
    pub fn await_opening(&self, table: &Descriptors, open: &Open) -> Result<(), Errno> {
        let deadline = table.deadline(lock(&self.settings).send_timeout);
        let answer = table.wait(&open.bell, open.may_not_wait(0), deadline, || match self.progress() {
            Progress::Open => Some(Ok(())),
            Progress::Failed(error) => Some(Err(error)),
            Progress::Opening => None,
        });
        match answer {
            Err(Errno(libc::EAGAIN)) if open.may_not_wait(0) => Err(Errno(libc::EALREADY)),
            Err(Errno(libc::EAGAIN)) => Err(Errno(libc::EINPROGRESS)),
            answer => answer,
        }
    }

    /// Begins to connect, with `data` for the first segment or behind it: how much of it was taken. `None` if it is on its
    /// way already.
    ///
    /// # Errors
    /// EISCONN, and what is known at once.
    pub fn begin(&self, table: &Descriptors, bell: &Arc<Bell>, to: &[u8], data: &[u8]) -> Result<Option<usize>, Errno> {
        let mut state = lock(&self.state);
        match &state.role {
            Role::Fresh => {}
            Role::Connection { told: false, .. } => return Ok(None),
            Role::Connection { .. } | Role::Listening(_) => return Err(Errno(libc::EISCONN)),
        }
        let to = address::read(to, self.domain)?;
        // To nobody in particular is to this host itself, which no other host's stack can be.
        if to.ip().is_unspecified() {
            return Err(Errno(libc::ECONNREFUSED));
        }
        let mut wishes = lock(&self.settings).wishes();
        if !data.is_empty() {
            wishes.push(xylem_core::Setting::EarlyOrNever);
        }
        let (stream, taken) = TcpStream::open_wishing(&table.stack, state.bound, to, &wishes, data)?;
        watch(&stream, bell);
        state.role = Role::Connection { stream, told: false };
        Ok(Some(taken))
    }

    /// How opening goes. A connection that failed leaves a socket that may try again, as Linux has it.
    fn progress(&self) -> Progress {
        let mut state = lock(&self.state);
        let bound = state.bound;
        let Role::Connection { stream, told } = &mut state.role else { return Progress::Failed(Errno(libc::ENOTCONN)) };
        let readiness = stream.readiness();
        if *told {
            return Progress::Failed(Errno(libc::EISCONN));
        }
        if readiness.opening {
            return Progress::Opening;
        }
        if readiness.failed || readiness.gone {
            let error = take_error(stream, &readiness).unwrap_or(Errno(libc::ECONNABORTED));
            *state = StreamState { bound, ..StreamState::default() };
            return Progress::Failed(error);
        }
        *told = true;
        Progress::Open
    }

    pub fn receive(
        &self,
        table: &Descriptors,
        open: &Open,
        into: &mut [IoSliceMut<'_>],
        flags: i32,
    ) -> Result<Received, Errno> {
        if flags & libc::MSG_ERRQUEUE != 0 {
            return Err(Errno(libc::EAGAIN));
        }
        if flags & libc::MSG_OOB != 0 {
            // Urgent bytes stay where they are in the stream (RFC 6093, section 6, would have it so everywhere).
            return Err(Errno(libc::EINVAL));
        }
        let stream = self.connection().ok_or(Errno(libc::ENOTCONN))?;
        let wanted: usize = into.iter().map(|slice| slice.len()).sum();
        let deadline = table.deadline(lock(&self.settings).receive_timeout);
        let wants_all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
        let mut done = 0;
        loop {
            let mut rest = skip(into, done);
            let got = table.wait(&open.bell, open.may_not_wait(flags), deadline, || {
                let readiness = stream.readiness();
                let answer = if flags & libc::MSG_PEEK != 0 {
                    peek(&stream, &mut rest)
                } else {
                    stream.poll_read_vectored(&mut rest, None)
                };
                match answer {
                    Poll::Ready(answer) => Some(answer.map_err(|error| broken(Errno::from(error), &readiness))),
                    Poll::Pending => None,
                }
            });
            match got {
                Ok(count) => {
                    done += count;
                    if count > 0 && done < wanted && wants_all {
                        continue;
                    }
                }
                Err(_) if done > 0 => {}
                Err(error) => return Err(error),
            }
            return Ok(Received { count: done, ..Received::default() });
        }
    }

    pub fn shut_down(&self, how: Shutdown) -> Result<(), Errno> {
        let mut state = lock(&self.state);
        let stream = match &state.role {
            Role::Fresh => return Err(Errno(libc::ENOTCONN)),
            Role::Listening(_) if how == Shutdown::Write => return Ok(()),
            Role::Listening(_) => {
                // It listens no more, and may do so again. Those in line are reset when nothing is locked.
                let role = std::mem::take(&mut state.role);
                drop(state);
                drop(role);
                return Ok(());
            }
            Role::Connection { stream, .. } => handle(stream).ok_or(Errno(libc::ENOTCONN))?,
        };
        state.shut.0 |= how != Shutdown::Write;
        state.shut.1 |= how != Shutdown::Read;
        drop(state);
        stream.shutdown(how).map_err(Errno::from)
    }

    /// The last descriptor has gone. With a time to linger, the call waits until all is acknowledged; with none at all the
    /// peer is told that the rest is lost.
    pub fn close(&self, table: &Descriptors, open: &Open) {
        let linger = lock(&self.settings).linger;
        let role = std::mem::take(&mut lock(&self.state).role);
        let Role::Connection { stream, .. } = role else { return };
        match linger {
            Some(Duration::ZERO) => stream.wish(xylem_core::Setting::Abort),
            Some(limit) if stream.unread() == 0 && !stream.readiness().gone => {
                // One that has gone has nothing to linger for.
                let _shut = stream.shutdown(Shutdown::Write);
                let deadline = table.deadline(Some(limit));
                // Whatever the wait says, the connection goes on alone from here.
                let _answer = table.wait(&open.bell, false, deadline, || stream.readiness().drained.then_some(Ok(())));
            }
            _ => {}
        }
        stream.watch(None);
    }

    /// Closing waits for nothing.
    pub fn linger_no_more(&self) {
        let mut settings = lock(&self.settings);
        settings.linger = settings.linger.filter(|limit| limit.is_zero());
    }

    /// What has happened and nobody was told (SO_ERROR).
    pub fn take_error(&self) -> Option<Errno> {
        let stream = self.connection()?;
        let readiness = stream.readiness();
        take_error(&stream, &readiness)
    }

    /// How its connection is doing.
    pub fn status(&self) -> Option<Status> {
        self.connection().and_then(|stream| stream.status().ok())
    }

    /// What poll(2) finds, in its bits.
    pub fn readiness(&self) -> i16 {
        let mut state = lock(&self.state);
        let shut = state.shut;
        let stream = match &mut state.role {
            Role::Fresh => return libc::POLLOUT | libc::POLLWRNORM | libc::POLLHUP,
            Role::Listening(listening) => {
                return if listening.is_ready() { libc::POLLIN | libc::POLLRDNORM } else { 0 };
            }
            Role::Connection { stream, .. } => handle(stream),
        };
        drop(state);
        let Some(stream) = stream else { return libc::POLLERR };
        let readiness = stream.readiness();
        if readiness.opening {
            return 0;
        }
        let mut found = 0;
        let has_enough_unsent = || {
            let limit = lock(&self.settings).unsent_low_water;
            limit.is_some_and(|limit| self.status().is_some_and(|status| status.unsent >= limit))
        };
        if readiness.readable {
            found |= libc::POLLIN | libc::POLLRDNORM;
        }
        if readiness.writable && !has_enough_unsent() {
            found |= libc::POLLOUT | libc::POLLWRNORM;
        }
        let (receives_no_more, sends_no_more) = (readiness.peer_closed || shut.0, shut.1);
        if receives_no_more {
            found |= libc::POLLRDHUP;
        }
        if (receives_no_more && sends_no_more) || readiness.gone {
            found |= libc::POLLHUP | libc::POLLRDHUP;
        }
        if readiness.failed {
            found |= libc::POLLERR;
        }
        found
    }
}

/// Another handle on the same connection.
fn handle(stream: &TcpStream) -> Option<TcpStream> {
    stream.try_clone().ok()
}

/// Rings `bell` whenever something happens to `stream`.
fn watch(stream: &TcpStream, bell: &Arc<Bell>) {
    let bell = Arc::clone(bell);
    stream.watch(Some(Arc::new(move || bell.ring())));
}

fn take_error(stream: &TcpStream, readiness: &Readiness) -> Option<Errno> {
    // The standard library's signature: asking cannot fail.
    let error = stream.take_error().ok().flatten()?;
    Some(broken(Errno::from(error), readiness))
}

/// A reset behind the peer's end is a broken pipe: there was nothing more to come (Linux, tcp_reset).
pub(crate) fn broken(error: Errno, readiness: &Readiness) -> Errno {
    if error == Errno(libc::ECONNRESET) && readiness.peer_closed { Errno(libc::EPIPE) } else { error }
}

/// The slices behind the first `done` bytes.
fn skip<'a>(into: &'a mut [IoSliceMut<'_>], mut done: usize) -> Vec<IoSliceMut<'a>> {
    let mut rest = Vec::with_capacity(into.len());
    for slice in into {
        let from = done.min(slice.len());
        done -= from;
        rest.push(IoSliceMut::new(&mut slice[from..]));
    }
    rest
}

/// Looks at what could be read into several slices.
fn peek(stream: &TcpStream, into: &mut [IoSliceMut<'_>]) -> Poll<std::io::Result<usize>> {
    if let [one] = into {
        return stream.poll_peek(one, None);
    }
    let mut all = vec![0; into.iter().map(|slice| slice.len()).sum()];
    stream.poll_peek(&mut all, None).map_ok(|count| {
        let mut rest = &all[..count];
        for slice in into {
            let (front, back) = rest.split_at(rest.len().min(slice.len()));
            slice[..front.len()].copy_from_slice(front);
            rest = back;
        }
        count
    })
}

/// All of this host's addresses, and no port chosen.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
