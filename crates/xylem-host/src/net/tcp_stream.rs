//! A TCP connection, as `std::net::TcpStream` has it, and what TCP has beyond that: keep-alive, user timeout, status.

use super::options::Options;
use super::{Readiness, Shutdown, SocketAddr, ToSocketAddrs, each_address};
use crate::shell::{self, Ended, Shell};
use crate::socket::{
    Stream, conversation, ended, first_message, local_address, no_buffer, no_protocol, open_error, peer_address,
};
use crate::stack::{Core, Stack, default_stack};
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use xylem_core::{Anchor, Setting, Status};
use xylem_graph::instance::Work;

/// A connection. All its handles are equal; when the last one goes the connection is closed, as the kernel does: what
/// is unsent is still sent, but with bytes unread the peer is told that they are lost (a reset).
pub struct TcpStream {
    pub(crate) handle: Arc<Handle>,
}

/// What the handles share.
pub(crate) struct Handle {
    stack: Stack,
    stream: Arc<Stream>,
    options: Options,
    no_delay: AtomicU8,
    hop_limit: AtomicU8,
}

/// The time to live of what is sent unless something else was set (RFC 1700 and the kernel's choice).
const HOP_LIMIT: u8 = 64;

/// How long a writer waits for buffers before it looks again.
const STARVED_PAUSE: Duration = Duration::from_millis(1);

impl Handle {
    fn core(&self) -> &Core {
        self.stack.core()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stream.release(self.core(), false);
    }
}

impl TcpStream {
    /// Connects on the process's default stack.
    ///
    /// # Errors
    /// There is no default stack; or as [`connect_on`](TcpStream::connect_on).
    pub fn connect<A: ToSocketAddrs>(addresses: A) -> io::Result<TcpStream> {
        TcpStream::connect_on(&default_stack()?, addresses)
    }

    /// Connects to the first of `addresses` that answers, on `stack`.
    ///
    /// # Errors
    /// `ConnectionRefused`, `TimedOut`, `HostUnreachable`, `NetworkUnreachable` and so on, as the standard library;
    /// `Unsupported` if the stack's graph has no TCP.
    pub fn connect_on<A: ToSocketAddrs>(stack: &Stack, addresses: A) -> io::Result<TcpStream> {
        each_address(addresses, |address| TcpStream::open(stack, None, address)?.opened(None))
    }

    /// As [`connect`](TcpStream::connect), but for no longer than `timeout`.
    ///
    /// # Errors
    /// `TimedOut` if the connection did not open in time; `InvalidInput` for no time at all.
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        TcpStream::connect_timeout_on(&default_stack()?, address, timeout)
    }

    /// As [`connect_timeout`](TcpStream::connect_timeout), on `stack`.
    ///
    /// # Errors
    /// As there.
    pub fn connect_timeout_on(stack: &Stack, address: &SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        if timeout.is_zero() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "expected a timeout above zero, got zero"));
        }
        TcpStream::open(stack, None, *address)?.opened(Instant::now().checked_add(timeout))
    }

    /// Connects from an address of ours: a host among several, a port, or both.
    ///
    /// # Errors
    /// As [`connect_on`](TcpStream::connect_on); `AddrInUse` if the two ends converse already, `AddrNotAvailable` if the
    /// address is not ours.
    pub fn connect_from(stack: &Stack, local: SocketAddr, remote: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::open(stack, Some(local), remote)?.opened(None)
    }

    /// Begins to connect, and waits for nothing: the stream is usable when [`poll_opened`](TcpStream::poll_opened) says
    /// so.
    ///
    /// # Errors
    /// As [`connect_on`](TcpStream::connect_on), as far as known at once.
    pub fn open(stack: &Stack, local: Option<SocketAddr>, remote: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::begin(stack, local, remote, &[], Work::Look)
    }

    /// Connects and sends `data` on the way: where the server's cookie is known from an earlier connection it goes with the
    /// very first segment, a round trip sooner, otherwise behind the handshake (TCP Fast Open, RFC 7413). Since a network
    /// may double a first segment, the server may see this data twice: it should be something that may be asked twice.
    /// Returns the open connection, and how many bytes of `data` it has taken; what is left is the caller's to write.
    ///
    /// # Errors
    /// As [`connect_on`](TcpStream::connect_on); `OutOfMemory` if there is no buffer for `data`.
    pub fn connect_with<A: ToSocketAddrs>(stack: &Stack, addresses: A, data: &[u8]) -> io::Result<(TcpStream, usize)> {
        each_address(addresses, |address| {
            let (stream, taken) = TcpStream::open_with(stack, None, address, data)?;
            stream.opened(None).map(|stream| (stream, taken))
        })
    }

    /// As [`connect_with`](TcpStream::connect_with), and waits for nothing, as [`open`](TcpStream::open).
    ///
    /// # Errors
    /// As there, as far as known at once.
    pub fn open_with(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        data: &[u8],
    ) -> io::Result<(TcpStream, usize)> {
        if data.is_empty() {
            return TcpStream::open(stack, local, remote).map(|stream| (stream, 0));
        }
        let (message, taken) = first_message(stack.core(), data).ok_or_else(no_buffer)?;
        TcpStream::begin(stack, local, remote, &[], Work::Push(message)).map(|stream| (stream, taken))
    }

    /// As [`open_with`](TcpStream::open_with), for a connection of which something is wished before its first segment.
    ///
    /// # Errors
    /// As there.
    pub fn open_wishing(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        wishes: &[Setting],
        data: &[u8],
    ) -> io::Result<(TcpStream, usize)> {
        let (first, taken) = match data {
            [] => (Work::Look, 0),
            data => {
                let (message, taken) = first_message(stack.core(), data).ok_or_else(no_buffer)?;
                (Work::Push(message), taken)
            }
        };
        TcpStream::begin(stack, local, remote, wishes, first).map(|stream| (stream, taken))
    }

    fn begin(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        wishes: &[Setting],
        first: Work,
    ) -> io::Result<TcpStream> {
        let core = stack.core();
        let node = core.tcp.ok_or_else(|| no_protocol("tcp"))?;
        if core.is_stopped() {
            return Err(ended(Ended::Stopped));
        }
        let local = local.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
        let participants = conversation(local, remote);
        let stream = Arc::new(Stream::default());
        let anchor: Arc<dyn Anchor> = Arc::clone(&stream) as Arc<dyn Anchor>;
        let path = core.with_shepherd(|shepherd| {
            let who = participants.clone();
            let opened = core.instance.open_wishing(&**core, shepherd, node, who, anchor, wishes, first);
            opened.map_err(open_error)
        })?;
        // A path that has gone already tells its name no more; its error is waiting in the stream.
        let participants = core.instance.participants(path).unwrap_or(participants);
        stream.named(path, local_address(&participants), peer_address(&participants));
        Ok(TcpStream::of(stack, stream))
    }

    /// Waits until the connection has opened.
    fn opened(self, deadline: Option<Instant>) -> io::Result<TcpStream> {
        match shell::wait(self.core(), deadline, |waker| self.handle.stream.poll_open(waker)) {
            Ok(Ok(())) => Ok(self),
            Ok(Err(error)) => Err(error),
            Err(Ended::TimedOut) => Err(io::Error::new(ErrorKind::TimedOut, "connection timed out")),
            Err(why) => Err(ended(why)),
        }
    }

    /// Ready when a connection that was begun has opened, or has failed; otherwise `waker` is called when it has.
    pub fn poll_opened(&self, waker: &Waker) -> Poll<io::Result<()>> {
        self.handle.stream.poll_open(waker)
    }

    /// A socket around a connection.
    pub(super) fn of(stack: &Stack, stream: Arc<Stream>) -> TcpStream {
        let handle = Handle {
            stack: stack.clone(),
            stream,
            options: Options::default(),
            no_delay: AtomicU8::new(0),
            hop_limit: AtomicU8::new(HOP_LIMIT),
        };
        TcpStream { handle: Arc::new(handle) }
    }

    fn core(&self) -> &Core {
        self.handle.core()
    }

    /// The stack it lives on.
    pub fn stack(&self) -> &Stack {
        &self.handle.stack
    }

    /// Our end.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.handle.stream.local())
    }

    /// The peer's end.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.handle.stream.peer())
    }

    /// Another handle on the same connection.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn try_clone(&self) -> io::Result<TcpStream> {
        Ok(TcpStream { handle: Arc::clone(&self.handle) })
    }

    /// Ends one direction or both, for all handles. `Write` sends what is unsent and then says so to the peer; `Read`
    /// lets reads return zero when what has arrived is read.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let (send, receive) = match how {
            Shutdown::Read => (false, true),
            Shutdown::Write => (true, false),
            Shutdown::Both => (true, true),
        };
        self.handle.stream.shut_down(self.core(), send, receive)
    }

    /// What could be read, without reading it.
    ///
    /// # Errors
    /// As a read.
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        self.reading(|waker| self.handle.stream.poll_peek(into, waker))
    }

    /// Lets calls fail with `WouldBlock` instead of waiting, for all handles.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.handle.options.set_nonblocking(nonblocking);
        Ok(())
    }

    /// How long reads wait before they fail with `WouldBlock`; `None` for ever.
    ///
    /// # Errors
    /// `InvalidInput` for zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.handle.options.read().set(timeout)
    }

    /// How long writes wait before they fail with `WouldBlock`; `None` for ever.
    ///
    /// # Errors
    /// `InvalidInput` for zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.handle.options.write().set(timeout)
    }

    /// How long reads wait.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.handle.options.read().value())
    }

    /// How long writes wait.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.handle.options.write().value())
    }

    /// Sends small segments at once instead of waiting for acknowledgments (RFC 9293, MUST-17).
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn set_nodelay(&self, no_delay: bool) -> io::Result<()> {
        self.handle.no_delay.store(u8::from(no_delay), Ordering::Relaxed);
        self.set(Setting::NoDelay(no_delay))
    }

    /// Whether small segments are sent at once.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.handle.no_delay.load(Ordering::Relaxed) != 0)
    }

    /// Sets the time to live of what is sent.
    ///
    /// # Errors
    /// `InvalidInput` for zero and for more than 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hop_limit = hop_limit(ttl)?;
        self.handle.hop_limit.store(hop_limit, Ordering::Relaxed);
        self.set(Setting::HopLimit(hop_limit))
    }

    /// The time to live of what is sent.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.handle.hop_limit.load(Ordering::Relaxed).into())
    }

    /// The error that has happened and that no call has returned yet.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.handle.stream.take_failure())
    }

    /// Probes an idle peer after this time (RFC 9293, MUST-24); `None` switches it off.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        self.set(Setting::KeepAlive(idle))
    }

    /// Gives up when data stays unacknowledged this long (RFC 5482); `None` is TCP's own patience.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.set(Setting::UserTimeout(timeout))
    }

    /// Bytes that are buffered at most for a peer that does not read.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.set(Setting::SendBuffer(bytes))
    }

    /// Bytes that are buffered at most while nobody reads.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        self.set(Setting::ReceiveBuffer(bytes))
    }

    /// Ends the connection at once, with a reset.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn abort(&self) -> io::Result<()> {
        self.set(Setting::Abort)
    }

    fn set(&self, setting: Setting) -> io::Result<()> {
        if self.readiness().gone {
            return Err(ErrorKind::NotConnected.into());
        }
        self.handle.stream.set(self.core(), setting);
        Ok(())
    }

    /// How the connection is doing, by TCP's own account.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn status(&self) -> io::Result<Status> {
        self.handle.stream.ask_status(self.core());
        // Mostly the path is free and has answered by now. Then there is nothing to wait for, and whoever asks while it
        // waits for something else keeps the calls it got for that.
        if let Poll::Ready(status) = self.handle.stream.poll_status(Waker::noop()) {
            return status;
        }
        let status = shell::wait(self.core(), None, |waker| self.handle.stream.poll_status(waker)).map_err(ended)?;
        shell::look_again();
        status
    }

    /// What would not wait now: for event loops.
    pub fn readiness(&self) -> Readiness {
        self.handle.stream.readiness()
    }

    /// Calls `watcher` whenever the connection may have become ready, on whichever thread that happens: it must neither
    /// wait nor call this socket. `None` ends it.
    pub fn watch(&self, watcher: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.handle.stream.watch(watcher);
    }

    fn reading<T>(&self, poll: impl FnMut(Option<&Waker>) -> Poll<io::Result<T>>) -> io::Result<T> {
        waiting(self.core(), &self.handle.options, self.handle.options.read().deadline(), poll)
    }

    /// Reads what is there into `into`, or has `waker`, if there is one, called when there is something to read.
    pub fn poll_read_vectored(&self, into: &mut [IoSliceMut<'_>], waker: Option<&Waker>) -> Poll<io::Result<usize>> {
        self.handle.stream.poll_read(self.core(), into, waker)
    }

    /// As [`poll_read_vectored`](TcpStream::poll_read_vectored), and leaves it there.
    pub fn poll_peek(&self, into: &mut [u8], waker: Option<&Waker>) -> Poll<io::Result<usize>> {
        self.handle.stream.poll_peek(into, waker)
    }

    /// Writes what there is room for, or has `waker`, if there is one, called when there is room. `urgent` marks the last
    /// byte (RFC 9293, section 3.8.5).
    pub fn poll_write_vectored(
        &self,
        from: &[IoSlice<'_>],
        urgent: bool,
        waker: Option<&Waker>,
    ) -> Poll<io::Result<usize>> {
        self.handle.stream.poll_write(self.core(), from, urgent, waker)
    }

    /// Bytes that could be read now.
    pub fn unread(&self) -> usize {
        self.handle.stream.unread()
    }

    /// Wishes something of the connection; one that has gone does not hear it.
    pub fn wish(&self, setting: Setting) {
        self.handle.stream.set(self.core(), setting);
    }

    /// For tasks: reads, or has `waker` called when there is something to read.
    pub(crate) fn poll_read(&self, into: &mut [u8], waker: &Waker) -> Poll<io::Result<usize>> {
        self.handle.stream.poll_read(self.core(), &mut [IoSliceMut::new(into)], Some(waker))
    }

    /// For tasks: writes, or has `waker` called when there is room.
    pub(crate) fn poll_write(&self, from: &[IoSlice<'_>], waker: &Waker) -> Poll<io::Result<usize>> {
        self.handle.stream.poll_write(self.core(), from, false, Some(waker))
    }
}

/// Runs a call that may have to wait, by the socket's options.
pub(super) fn waiting<T>(
    core: &Core,
    options: &Options,
    deadline: Option<Instant>,
    mut poll: impl FnMut(Option<&Waker>) -> Poll<io::Result<T>>,
) -> io::Result<T> {
    if options.is_nonblocking() {
        if let Poll::Ready(result) = poll(None) {
            return result;
        }
        if core.shell == Shell::Inline {
            // Nobody else would ever receive anything.
            shell::turn_once(core);
            if let Poll::Ready(result) = poll(None) {
                return result;
            }
        }
        return Err(ErrorKind::WouldBlock.into());
    }
    shell::wait(core, deadline, |waker| poll(Some(waker))).map_err(ended)?
}

/// A time to live as the header holds it.
pub(super) fn hop_limit(ttl: u32) -> io::Result<u8> {
    let error = || io::Error::new(ErrorKind::InvalidInput, format!("expected a time to live of 1 to 255, got {ttl}"));
    u8::try_from(ttl).ok().filter(|ttl| *ttl > 0).ok_or_else(error)
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.reading(|waker| self.handle.stream.poll_read(self.core(), into, waker))
    }
}

impl Write for &TcpStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(from)])
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        let options = &self.handle.options;
        let deadline = options.write().deadline();
        loop {
            let written = waiting(self.core(), options, deadline, |waker| {
                self.handle.stream.poll_write(self.core(), from, false, waker)
            });
            // Buffers come back, and nobody is called for it: a writer that may wait looks again.
            let starved = written.as_ref().is_err_and(|error| error.kind() == ErrorKind::OutOfMemory);
            let patient = !options.is_nonblocking() && deadline.is_none_or(|deadline| Instant::now() < deadline);
            if !(starved && patient) {
                return written;
            }
            std::thread::sleep(STARVED_PAUSE);
            shell::turn_once(self.core());
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(into)
    }
}

impl Write for TcpStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        (&*self).write(from)
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (local, peer) = (self.handle.stream.local(), self.handle.stream.peer());
        formatter.debug_struct("TcpStream").field("addr", &local).field("peer", &peer).finish()
    }
}
