//! A socket that listens: connections are taken over from the stack's own line as they come, so that those whose
//! application wants to hear of them only with their first bytes (TCP_DEFER_ACCEPT) can wait here.

use crate::bell::Bell;
use crate::errno::Errno;
use crate::lock;
use crate::settings::Settings;
use crate::stream::{ANYWHERE, Role, StreamSocket};
use crate::table::{Descriptors, File, Open};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use xylem_core::Instant;
use xylem_host::net::{TcpListener, TcpStream};

/// The most connections that wait to be accepted, whatever an application asks for (somaxconn(7)).
const BACKLOG_MAX: usize = 4096;

/// See the module's text.
pub(crate) struct Listening {
    listener: TcpListener,
    line: VecDeque<(TcpStream, SocketAddr, Instant)>,
    /// How long one waits for its first bytes.
    defer: Option<Duration>,
    bell: Arc<Bell>,
}

impl Listening {
    fn begin(
        table: &Descriptors,
        bell: &Arc<Bell>,
        at: SocketAddr,
        backlog: usize,
        settings: &Settings,
    ) -> Result<Listening, Errno> {
        let listener = TcpListener::bind_fast_open(&table.stack, at, backlog, settings.fast_open)?;
        let ringer = Arc::clone(bell);
        listener.watch(Some(Arc::new(move || ringer.ring())));
        Ok(Listening { listener, line: VecDeque::new(), defer: settings.defer_accept, bell: Arc::clone(bell) })
    }

    /// Where it listens.
    pub fn local(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Takes over those that have come.
    fn gather(&mut self) {
        while let Poll::Ready((stream, peer)) = self.listener.poll_accept(Waker::noop()) {
            let bell = Arc::clone(&self.bell);
            stream.watch(Some(Arc::new(move || bell.ring())));
            let now = stream.stack().now();
            self.line.push_back((stream, peer, now));
        }
    }

    /// The first that may be accepted.
    fn first(&mut self) -> Option<usize> {
        self.gather();
        let Some(defer) = self.defer else { return (!self.line.is_empty()).then_some(0) };
        self.line
            .iter()
            .position(|(stream, _, since)| stream.readiness().readable || stream.stack().now().since(*since) >= defer)
    }

    /// Whether one may be accepted.
    pub fn is_ready(&mut self) -> bool {
        self.first().is_some()
    }

    fn take(&mut self) -> Option<(TcpStream, SocketAddr)> {
        let index = self.first()?;
        self.line.remove(index).map(|(stream, peer, _)| (stream, peer))
    }

    /// When the oldest one has waited long enough.
    fn deadline(&self) -> Option<Instant> {
        let (_, _, since) = self.line.front()?;
        self.defer.map(|defer| *since + defer)
    }
}

impl StreamSocket {
    pub fn listen(&self, table: &Descriptors, open: &Open, backlog: i32) -> Result<(), Errno> {
        let settings = lock(&self.settings).clone();
        let mut state = lock(&self.state);
        match &state.role {
            Role::Fresh => {}
            // The line keeps its length.
            Role::Listening(_) => return Ok(()),
            Role::Connection { .. } => return Err(Errno(libc::EINVAL)),
        }
        // One more than asked for, as Linux counts.
        let backlog = usize::try_from(backlog).unwrap_or(BACKLOG_MAX).saturating_add(1).min(BACKLOG_MAX);
        let listening = Listening::begin(table, &open.bell, state.bound.unwrap_or(ANYWHERE), backlog, &settings)?;
        state.bound = listening.local();
        state.role = Role::Listening(listening);
        Ok(())
    }

    /// The next connection, as an open file, with its peer's address.
    pub fn accept(&self, table: &Descriptors, open: &Open, flags: i32) -> Result<(Arc<Open>, SocketAddr), Errno> {
        let timeout = lock(&self.settings).receive_timeout;
        let deadline = table.deadline(timeout);
        loop {
            let own = match &lock(&self.state).role {
                Role::Listening(listening) => listening.deadline(),
                Role::Fresh | Role::Connection { .. } => return Err(Errno(libc::EINVAL)),
            };
            let soonest = xylem_core::time::earlier(deadline, own);
            let answer = table.wait(&open.bell, open.may_not_wait(0), soonest, || self.try_accept());
            let is_own = soonest != deadline && soonest.is_some_and(|at| at <= table.stack.now());
            match answer {
                // One has waited for its first bytes long enough.
                Err(Errno(libc::EAGAIN)) if is_own && !open.may_not_wait(0) => continue,
                answer => {
                    let (stream, peer) = answer?;
                    return Ok((self.accepted_file(stream, flags), peer));
                }
            }
        }
    }

    fn try_accept(&self) -> Option<Result<(TcpStream, SocketAddr), Errno>> {
        match &mut lock(&self.state).role {
            Role::Listening(listening) => listening.take().map(Ok),
            // Another thread has ended it meanwhile.
            Role::Fresh | Role::Connection { .. } => Some(Err(Errno(libc::EINVAL))),
        }
    }

    fn accepted_file(&self, stream: TcpStream, flags: i32) -> Arc<Open> {
        let settings = Settings { defer_accept: None, fast_open: 0, ..lock(&self.settings).clone() };
        let bell = Arc::<Bell>::default();
        let socket = StreamSocket::accepted(self.domain, settings, stream, &bell);
        Open::new(File::Stream(socket), bell, flags & libc::SOCK_NONBLOCK != 0)
    }
}
