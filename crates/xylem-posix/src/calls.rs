//! The calls on one descriptor, by the names they have in C. Each finds the open file and lets it do the work.

use crate::address::{self, Name};
use crate::datagram::DatagramSocket;
use crate::errno::Errno;
use crate::lock;
use crate::settings::Settings;
use crate::stream::{ANYWHERE, Received, Role, StreamSocket};
use crate::table::{Descriptors, File, Open};
use std::io::{IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where ports are looked for that nobody asked for (ip(7), ip_local_port_range).
const FREE_PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Bytes that are sent and not acknowledged, and of those that are not sent (sockios.h of Linux).
const SIOCOUTQ: u64 = libc::TIOCOUTQ;
const SIOCOUTQNSD: u64 = 0x894B;
/// Whether the urgent bytes have been read (sockatmark(3)).
const SIOCATMARK: u64 = 0x8905;

impl Descriptors {
    /// socket(2): AF_INET or AF_INET6, SOCK_STREAM or SOCK_DGRAM, with SOCK_NONBLOCK and SOCK_CLOEXEC.
    ///
    /// # Errors
    /// EAFNOSUPPORT, EPROTONOSUPPORT, EINVAL for an unknown flag, EMFILE.
    pub fn socket(&self, domain: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
        if domain != libc::AF_INET && domain != libc::AF_INET6 {
            return Err(Errno(libc::EAFNOSUPPORT));
        }
        let flags = kind & !0xf;
        if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let settings = Settings::new(&self.defaults());
        let file = match (kind & 0xf, protocol) {
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => File::Stream(StreamSocket::new(domain, settings)),
            (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => File::Datagram(DatagramSocket::new(domain, settings)),
            _ => return Err(Errno(libc::EPROTONOSUPPORT)),
        };
        self.give(Open::new(file, Arc::default(), flags & libc::SOCK_NONBLOCK != 0), 0)
    }

    /// bind(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EINVAL (bound already), EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL.
    pub fn bind(&self, descriptor: i32, address: &[u8]) -> Result<(), Errno> {
        let open = self.find(descriptor)?;
        match &open.file {
            File::Stream(stream) => stream.bind(self, address::read(address, stream.domain)?),
            File::Datagram(socket) => socket.bind(self, &open.bell, address::read(address, socket.domain)?),
            File::Epoll(_) | File::Pipe(_) => Err(Errno(libc::ENOTSOCK)),
        }
    }

    /// An address as it can be bound: of this host, with a port that no other descriptor of this table holds.
    pub(crate) fn claim(&self, address: SocketAddr, reuses: bool, _kind: i32) -> Result<SocketAddr, Errno> {
        if !address.ip().is_unspecified() && !self.is_ours(address)? {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
        let taken: Vec<(SocketAddr, bool)> = self.all().iter().filter_map(|open| held(open)).collect();
        let is_free = |wanted: SocketAddr| {
            taken.iter().all(|(other, shares)| {
                let apart = !other.ip().is_unspecified() && !wanted.ip().is_unspecified() && other.ip() != wanted.ip();
                other.port() != wanted.port() || apart || (reuses && *shares)
            })
        };
        if address.port() != 0 {
            return if is_free(address) { Ok(address) } else { Err(Errno(libc::EADDRINUSE)) };
        }
        // One after the other: nobody is told which it will be, and nothing depends on it.
        let mut free = FREE_PORTS.map(|port| SocketAddr::new(address.ip(), port));
        free.find(|wanted| is_free(*wanted)).ok_or(Errno(libc::EADDRINUSE))
    }

    /// Whether the stack has this address: it says so when a socket of datagrams is bound there.
    fn is_ours(&self, address: SocketAddr) -> Result<bool, Errno> {
        let probe = xylem_host::net::UdpSocket::bind_on(&self.stack, SocketAddr::new(address.ip(), 0));
        match probe.map_err(Errno::from) {
            Ok(_) => Ok(true),
            Err(Errno(libc::EADDRNOTAVAIL)) => Ok(false),
            // A graph without datagrams cannot be asked; whoever listens or connects will hear of it.
            Err(_) => Ok(true),
        }
    }

    /// listen(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EOPNOTSUPP, EINVAL (connected), EADDRINUSE.
    pub fn listen(&self, descriptor: i32, backlog: i32) -> Result<(), Errno> {
        let open = self.find(descriptor)?;
        open.stream()?.listen(self, &open, backlog)
    }

    /// accept4(2): the new descriptor and the peer's name.
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EOPNOTSUPP, EINVAL (does not listen, or an unknown flag), EAGAIN, EMFILE.
    pub fn accept(&self, descriptor: i32, flags: i32) -> Result<(i32, Name), Errno> {
        if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let open = self.find(descriptor)?;
        let stream = open.stream()?;
        let (accepted, peer) = stream.accept(self, &open, flags)?;
        Ok((self.give(accepted, 0)?, Name::new(peer, stream.domain)))
    }

    /// connect(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EINVAL, EAFNOSUPPORT, EINPROGRESS, EALREADY, EISCONN; ECONNREFUSED, ETIMEDOUT, ENETUNREACH,
    /// EHOSTUNREACH, EADDRNOTAVAIL.
    pub fn connect(&self, descriptor: i32, address: &[u8]) -> Result<(), Errno> {
        let open = self.find(descriptor)?;
        match &open.file {
            File::Stream(stream) => stream.connect(self, &open, address),
            File::Datagram(socket) => socket.connect(self, &open.bell, address),
            File::Epoll(_) | File::Pipe(_) => Err(Errno(libc::ENOTSOCK)),
        }
    }

    /// recv(2), recvfrom(2), recvmsg(2) by their flags: MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_TRUNC.
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EAGAIN, ENOTCONN, EINVAL (MSG_OOB: urgent bytes stay in the stream); ECONNRESET, EPIPE,
    /// ETIMEDOUT, ECONNREFUSED.
    pub fn receive(&self, descriptor: i32, into: &mut [IoSliceMut<'_>], flags: i32) -> Result<Received, Errno> {
        let open = self.find(descriptor)?;
        match &open.file {
            File::Pipe(_) | File::Epoll(_) => Err(Errno(libc::ENOTSOCK)),
            File::Stream(_) | File::Datagram(_) => self.receive_on(&open, into, flags),
        }
    }

    /// read(2), readv(2).
    ///
    /// # Errors
    /// As [`receive`](Descriptors::receive), but for ENOTSOCK; EINVAL on an instance of epoll.
    pub fn read(&self, descriptor: i32, into: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        self.receive_on(&*self.find(descriptor)?, into, 0).map(|received| received.count)
    }

    pub(crate) fn receive_on(&self, open: &Open, into: &mut [IoSliceMut<'_>], flags: i32) -> Result<Received, Errno> {
        match &open.file {
            File::Stream(stream) => stream.receive(self, open, into, flags),
            File::Datagram(socket) => socket.receive(self, open, into, flags),
            File::Pipe(end) => end.read(self, open, into).map(|count| Received { count, ..Received::default() }),
            File::Epoll(_) => Err(Errno(libc::EINVAL)),
        }
    }

    /// send(2), sendto(2), sendmsg(2) by their flags: MSG_DONTWAIT, MSG_MORE, MSG_OOB, MSG_FASTOPEN; MSG_NOSIGNAL is
    /// always so.
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EAGAIN, EPIPE, EDESTADDRREQ, EMSGSIZE, EOPNOTSUPP (an unknown flag); with MSG_FASTOPEN as connect.
    pub fn send(&self, descriptor: i32, from: &[IoSlice<'_>], flags: i32, to: Option<&[u8]>) -> Result<usize, Errno> {
        let open = self.find(descriptor)?;
        match &open.file {
            File::Pipe(_) | File::Epoll(_) => Err(Errno(libc::ENOTSOCK)),
            File::Stream(_) | File::Datagram(_) => self.send_on(&open, from, flags, to),
        }
    }

    /// write(2), writev(2).
    ///
    /// # Errors
    /// As [`send`](Descriptors::send), but for ENOTSOCK; EINVAL on an instance of epoll.
    pub fn write(&self, descriptor: i32, from: &[IoSlice<'_>]) -> Result<usize, Errno> {
        self.send_on(&*self.find(descriptor)?, from, 0, None)
    }

    pub(crate) fn send_on(
        &self,
        open: &Open,
        from: &[IoSlice<'_>],
        flags: i32,
        to: Option<&[u8]>,
    ) -> Result<usize, Errno> {
        match &open.file {
            File::Stream(stream) => stream.send(self, open, from, flags, to),
            File::Datagram(socket) => socket.send(self, open, from, flags, to),
            File::Pipe(end) => end.write(self, open, from),
            File::Epoll(_) => Err(Errno(libc::EINVAL)),
        }
    }

    /// shutdown(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EINVAL, ENOTCONN.
    pub fn shutdown(&self, descriptor: i32, how: i32) -> Result<(), Errno> {
        let open = self.find(descriptor)?;
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno(libc::EINVAL)),
        };
        let result = match &open.file {
            File::Stream(stream) => stream.shut_down(how),
            File::Datagram(socket) => socket.shut_down(&open.bell, how),
            File::Epoll(_) | File::Pipe(_) => return Err(Errno(libc::ENOTSOCK)),
        };
        open.bell.ring();
        result
    }

    /// getsockname(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK.
    pub fn local_name(&self, descriptor: i32) -> Result<Name, Errno> {
        let open = self.find(descriptor)?;
        let (domain, address) = match &open.file {
            File::Stream(stream) => {
                let bound = lock(&stream.state).bound;
                (stream.domain, stream.connection().and_then(|it| it.local_addr().ok()).or(bound))
            }
            File::Datagram(socket) => (socket.domain, socket.socket().and_then(|it| it.local_addr().ok())),
            File::Epoll(_) | File::Pipe(_) => return Err(Errno(libc::ENOTSOCK)),
        };
        Ok(Name::new(address.unwrap_or(ANYWHERE), domain))
    }

    /// getpeername(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, ENOTCONN.
    pub fn peer_name(&self, descriptor: i32) -> Result<Name, Errno> {
        let open = self.find(descriptor)?;
        let (domain, address) = match &open.file {
            File::Stream(stream) => {
                let connection = stream.connection().filter(|it| !it.readiness().opening);
                (stream.domain, connection.and_then(|it| it.peer_addr().ok()))
            }
            File::Datagram(socket) => (socket.domain, socket.socket().and_then(|it| it.peer_addr().ok())),
            File::Epoll(_) | File::Pipe(_) => return Err(Errno(libc::ENOTSOCK)),
        };
        address.map(|address| Name::new(address, domain)).ok_or(Errno(libc::ENOTCONN))
    }

    /// fcntl(2): F_GETFL, F_SETFL (O_NONBLOCK), F_GETFD, F_SETFD, F_DUPFD and F_DUPFD_CLOEXEC.
    ///
    /// # Errors
    /// EBADF, EINVAL, EMFILE.
    pub fn fcntl(&self, descriptor: i32, command: i32, argument: i32) -> Result<i32, Errno> {
        let open = self.find(descriptor)?;
        match command {
            libc::F_GETFL => {
                let waits = !open.nonblocking.load(Ordering::Relaxed);
                Ok(libc::O_RDWR | if waits { 0 } else { libc::O_NONBLOCK })
            }
            libc::F_SETFL => {
                open.nonblocking.store(argument & libc::O_NONBLOCK != 0, Ordering::Relaxed);
                Ok(0)
            }
            // Nothing here outlives an exec, whatever the flag says.
            libc::F_GETFD => Ok(libc::FD_CLOEXEC),
            libc::F_SETFD => Ok(0),
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC if argument < 0 => Err(Errno(libc::EINVAL)),
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => self.give(open, argument),
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    /// ioctl(2) with an int behind its pointer: SIOCINQ (FIONREAD), SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, FIONBIO. What it
    /// writes there, if it does.
    ///
    /// # Errors
    /// EBADF, EINVAL (a listener has no queues), ENOTTY for other requests.
    pub fn ioctl(&self, descriptor: i32, request: u64, argument: i32) -> Result<Option<i32>, Errno> {
        let open = self.find(descriptor)?;
        if request == libc::FIONBIO {
            open.nonblocking.store(argument != 0, Ordering::Relaxed);
            return Ok(None);
        }
        let count = |count: usize| Ok(Some(i32::try_from(count).unwrap_or(i32::MAX)));
        match &open.file {
            File::Stream(stream) => {
                if matches!(lock(&stream.state).role, Role::Listening(_)) {
                    return Err(Errno(libc::EINVAL));
                }
                let status = || stream.status().unwrap_or_default();
                match request {
                    libc::FIONREAD => count(stream.connection().map_or(0, |connection| connection.unread())),
                    SIOCOUTQ => count(status().in_flight + status().unsent),
                    SIOCOUTQNSD => count(status().unsent),
                    SIOCATMARK => Ok(Some(i32::from(status().urgent == 0))),
                    _ => Err(Errno(libc::ENOTTY)),
                }
            }
            File::Datagram(socket) => match request {
                libc::FIONREAD => count(socket.socket().and_then(|socket| socket.next_length()).unwrap_or(0)),
                SIOCOUTQ => count(0),
                _ => Err(Errno(libc::ENOTTY)),
            },
            File::Pipe(end) if request == libc::FIONREAD => count(end.len()),
            File::Pipe(_) | File::Epoll(_) => Err(Errno(libc::ENOTTY)),
        }
    }

    /// What poll(2) finds at a descriptor, in its bits, and where it is rung.
    pub(crate) fn readiness_of(open: &Open) -> i16 {
        match &open.file {
            File::Stream(stream) => stream.readiness(),
            File::Datagram(socket) => socket.readiness(),
            File::Pipe(end) => end.readiness(),
            File::Epoll(epoll) => epoll.readiness(),
        }
    }
}

/// The address a stream holds by being bound, and whether it would share it.
fn held(open: &Open) -> Option<(SocketAddr, bool)> {
    let File::Stream(stream) = &open.file else { return None };
    let reuses = lock(&stream.settings).reuse_address;
    let state = lock(&stream.state);
    state.bound.map(|bound| (bound, reuses && !matches!(state.role, Role::Listening(_))))
}
