//! A socket of the kind SOCK_DGRAM: bound when it is told to, or when it first sends.

use crate::address;
use crate::bell::Bell;
use crate::errno::Errno;
use crate::lock;
use crate::settings::Settings;
use crate::stream::{ANYWHERE, Received};
use crate::table::{Descriptors, Open};
use std::io::{IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use xylem_host::net::UdpSocket;

/// See the module's text.
pub(crate) struct DatagramSocket {
    pub domain: i32,
    pub settings: Mutex<Settings>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    socket: Option<UdpSocket>,
    shut: (bool, bool),
}

/// The most bytes of one datagram that are looked at: what IPv4 carries.
const DATAGRAM_BYTES_MAX: usize = 65_507;

impl DatagramSocket {
    pub fn new(domain: i32, settings: Settings) -> DatagramSocket {
        DatagramSocket { domain, settings: Mutex::new(settings), state: Mutex::default() }
    }

    /// The stack's socket, if it is bound.
    pub fn socket(&self) -> Option<UdpSocket> {
        lock(&self.state).socket.as_ref().and_then(|socket| socket.try_clone().ok())
    }

    pub fn bind(&self, table: &Descriptors, bell: &Arc<Bell>, address: SocketAddr) -> Result<(), Errno> {
        let mut state = lock(&self.state);
        if state.socket.is_some() {
            return Err(Errno(libc::EINVAL));
        }
        let socket = UdpSocket::bind_on(&table.stack, address)?;
        let ringer = Arc::clone(bell);
        socket.watch(Some(Arc::new(move || ringer.ring())));
        state.socket = Some(socket);
        Ok(())
    }

    fn bound(&self, table: &Descriptors, bell: &Arc<Bell>) -> Result<UdpSocket, Errno> {
        match self.socket() {
            Some(socket) => Ok(socket),
            None => {
                self.bind(table, bell, ANYWHERE)?;
                self.socket().ok_or(Errno(libc::EBADF))
            }
        }
    }

    pub fn connect(&self, table: &Descriptors, bell: &Arc<Bell>, to: &[u8]) -> Result<(), Errno> {
        let to = address::read(to, self.domain)?;
        self.bound(table, bell)?.connect(to).map_err(Errno::from)
    }

    pub fn send(
        &self,
        table: &Descriptors,
        open: &Open,
        from: &[IoSlice<'_>],
        flags: i32,
        to: Option<&[u8]>,
    ) -> Result<usize, Errno> {
        if flags & (libc::MSG_OOB | libc::MSG_FASTOPEN) != 0 {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        if lock(&self.state).shut.1 {
            return Err(Errno(libc::EPIPE));
        }
        let count: usize = from.iter().map(|slice| slice.len()).sum();
        if count > DATAGRAM_BYTES_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        let to = to.map(|to| address::read(to, self.domain)).transpose()?;
        let bytes: Vec<u8> = from.iter().flat_map(|slice| slice.iter().copied()).collect();
        let socket = match (to, self.socket()) {
            (None, None) => return Err(Errno(libc::EDESTADDRREQ)),
            (_, Some(socket)) => socket,
            (Some(_), None) => self.bound(table, &open.bell)?,
        };
        socket.set_broadcast(lock(&self.settings).broadcast)?;
        let sent = match to {
            Some(to) if to.port() == 0 => return Err(Errno(libc::EINVAL)),
            Some(to) => socket.send_to(&bytes, to),
            None => socket.send(&bytes),
        };
        match sent.map_err(Errno::from) {
            Err(Errno(libc::ENOTCONN)) => Err(Errno(libc::EDESTADDRREQ)),
            sent => sent,
        }
    }

    pub fn receive(
        &self,
        table: &Descriptors,
        open: &Open,
        into: &mut [IoSliceMut<'_>],
        flags: i32,
    ) -> Result<Received, Errno> {
        if flags & libc::MSG_OOB != 0 {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        if flags & libc::MSG_ERRQUEUE != 0 {
            return Err(Errno(libc::EAGAIN));
        }
        let deadline = table.deadline(lock(&self.settings).receive_timeout);
        let mut bytes = vec![0; DATAGRAM_BYTES_MAX];
        let takes = flags & libc::MSG_PEEK == 0;
        let (count, from) = table.wait(&open.bell, open.may_not_wait(flags), deadline, || {
            let Some(socket) = self.socket() else {
                // Nothing can come, unless another thread binds it; the end if reading was given up.
                return lock(&self.state).shut.0.then_some(Ok((0, ANYWHERE)));
            };
            match socket.poll_receive(&mut bytes, takes, None) {
                Poll::Ready(answer) => Some(answer.map_err(Errno::from)),
                Poll::Pending => lock(&self.state).shut.0.then_some(Ok((0, ANYWHERE))),
            }
        })?;
        let mut rest = &bytes[..count];
        let mut copied = 0;
        for slice in into {
            let (front, back) = rest.split_at(rest.len().min(slice.len()));
            slice[..front.len()].copy_from_slice(front);
            copied += front.len();
            rest = back;
        }
        let says_all = flags & libc::MSG_TRUNC != 0;
        let from = Some(from).filter(|from| *from != ANYWHERE);
        Ok(Received { count: if says_all { count } else { copied }, from, is_cut: copied < count })
    }

    pub fn shut_down(&self, bell: &Bell, how: Shutdown) -> Result<(), Errno> {
        let mut state = lock(&self.state);
        if state.socket.as_ref().is_none_or(|socket| socket.peer_addr().is_err()) {
            return Err(Errno(libc::ENOTCONN));
        }
        state.shut.0 |= how != Shutdown::Write;
        state.shut.1 |= how != Shutdown::Read;
        drop(state);
        bell.ring();
        Ok(())
    }

    /// What poll(2) finds, in its bits.
    pub fn readiness(&self) -> i16 {
        let shut = lock(&self.state).shut;
        let mut found = libc::POLLOUT | libc::POLLWRNORM;
        if shut.0 || self.socket().is_some_and(|socket| socket.is_ready()) {
            found |= libc::POLLIN | libc::POLLRDNORM;
        }
        if shut.0 && shut.1 {
            found |= libc::POLLHUP;
        }
        found
    }
}
