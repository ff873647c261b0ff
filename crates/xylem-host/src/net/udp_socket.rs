//! A socket for datagrams, as `std::net::UdpSocket` has it. It stands on a wild enable: a connected one takes from its
//! peer only and knows where to send.

use super::options::Options;
use super::tcp_stream::waiting;
use super::{SocketAddr, ToSocketAddrs, each_address};
use crate::socket::{
    DATAGRAM_BYTES_MAX, Datagrams, conversation, enable_error, local_address, local_only, no_buffer, no_protocol,
    open_error,
};
use crate::stack::{Core, Stack, default_stack};
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;
use xylem_core::{EnableId, EnableWish, HEADROOM, Message, Pool, Slice, pool};

/// See the module's text. All handles are equal; the last one to go closes the socket.
pub struct UdpSocket {
    handle: Arc<Handle>,
}

struct Handle {
    stack: Stack,
    datagrams: Arc<Datagrams>,
    enable: EnableId,
    local: SocketAddr,
    options: Options,
    broadcast: AtomicBool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stack.instance().disable(self.enable);
    }
}

impl UdpSocket {
    /// Binds on the process's default stack.
    ///
    /// # Errors
    /// There is no default stack; or as [`bind_on`](UdpSocket::bind_on).
    pub fn bind<A: ToSocketAddrs>(addresses: A) -> io::Result<UdpSocket> {
        UdpSocket::bind_on(&default_stack()?, addresses)
    }

    /// Binds to the first of `addresses` that is free, on `stack`. The unspecified host stands for all of the stack's
    /// addresses, port zero for a free port.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable`; `Unsupported` if the stack's graph has no UDP.
    pub fn bind_on<A: ToSocketAddrs>(stack: &Stack, addresses: A) -> io::Result<UdpSocket> {
        each_address(addresses, |address| UdpSocket::bind_one(stack, address))
    }

    fn bind_one(stack: &Stack, address: SocketAddr) -> io::Result<UdpSocket> {
        let core = stack.core();
        let node = core.udp.ok_or_else(|| no_protocol("udp"))?;
        let datagrams = Arc::<Datagrams>::default();
        let wish = EnableWish { participants: local_only(address), wild: true, backlog: 0, shared: false };
        let listening = core.instance.enable(node, wish, Arc::clone(&datagrams) as _).map_err(enable_error)?;
        let mut local = local_address(&listening.participants);
        if local.ip().is_unspecified() {
            local.set_ip(address.ip());
        }
        let handle = Handle {
            stack: stack.clone(),
            datagrams,
            enable: listening.id,
            local,
            options: Options::default(),
            broadcast: AtomicBool::new(false),
        };
        Ok(UdpSocket { handle: Arc::new(handle) })
    }

    fn core(&self) -> &Core {
        self.handle.stack.core()
    }

    /// Sends a datagram to the first of `addresses`.
    ///
    /// # Errors
    /// `InvalidInput` if it is too long; `NetworkUnreachable` without a route; `PermissionDenied` if it is a broadcast
    /// and [`set_broadcast`](UdpSocket::set_broadcast) was not called; `OutOfMemory` if there is no buffer.
    pub fn send_to<A: ToSocketAddrs>(&self, bytes: &[u8], addresses: A) -> io::Result<usize> {
        let none = || io::Error::new(ErrorKind::InvalidInput, "expected an address to send to, got none");
        self.send_one(bytes, addresses.to_socket_addrs()?.next().ok_or_else(none)?)
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    /// `NotConnected` if the socket has no peer; what the network said of an earlier datagram; or as
    /// [`send_to`](UdpSocket::send_to).
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let peer = self.handle.datagrams.peer().ok_or(ErrorKind::NotConnected)?;
        if let Some(error) = self.handle.datagrams.take_failure() {
            return Err(error);
        }
        self.send_one(bytes, peer)
    }

    fn send_one(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        if bytes.len() > DATAGRAM_BYTES_MAX {
            let text = format!("expected a datagram of at most {DATAGRAM_BYTES_MAX} bytes, got {}", bytes.len());
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        if matches!(to, SocketAddr::V4(to) if to.ip().is_broadcast()) && !self.broadcast()? {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let core = self.core();
        let message = copy(core.instance.pool(), bytes).ok_or_else(no_buffer)?;
        let participants = conversation(self.handle.local, to);
        core.with_shepherd(|shepherd| {
            core.instance.send_wild(core, shepherd, self.handle.enable, participants, message).map_err(open_error)
        })?;
        Ok(bytes.len())
    }

    /// The next datagram: its length, cut to the room there is, and its sender.
    ///
    /// # Errors
    /// `WouldBlock` if calls do not wait or have waited long enough; what the network said of an earlier datagram.
    pub fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(into, true)
    }

    /// The next datagram, which stays there.
    ///
    /// # Errors
    /// As [`recv_from`](UdpSocket::recv_from).
    pub fn peek_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(into, false)
    }

    /// The next datagram of the peer.
    ///
    /// # Errors
    /// `NotConnected` if the socket has no peer; or as [`recv_from`](UdpSocket::recv_from).
    pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
        self.peer_addr()?;
        self.receive(into, true).map(|(count, _)| count)
    }

    /// The next datagram of the peer, which stays there.
    ///
    /// # Errors
    /// As [`recv`](UdpSocket::recv).
    pub fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        self.peer_addr()?;
        self.receive(into, false).map(|(count, _)| count)
    }

    fn receive(&self, into: &mut [u8], take: bool) -> io::Result<(usize, SocketAddr)> {
        let options = &self.handle.options;
        waiting(self.core(), options, options.read().deadline(), |waker| {
            self.handle.datagrams.poll_receive(into, take, waker)
        })
    }

    /// The next datagram, left there unless `take`, or `waker`, if there is one, is called when there is one.
    pub fn poll_receive(
        &self,
        into: &mut [u8],
        take: bool,
        waker: Option<&Waker>,
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.handle.datagrams.poll_receive(into, take, waker)
    }

    /// The length of the next datagram, if one waits.
    pub fn next_length(&self) -> Option<usize> {
        self.handle.datagrams.next_length()
    }

    /// For tasks: the next datagram, or `waker` is called when there is one.
    pub fn poll_recv_from(&self, into: &mut [u8], waker: &Waker) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.handle.datagrams.poll_receive(into, true, Some(waker))
    }

    /// Takes datagrams from the first of `addresses` only, and sends there.
    ///
    /// # Errors
    /// No address was given.
    pub fn connect<A: ToSocketAddrs>(&self, addresses: A) -> io::Result<()> {
        each_address(addresses, |address| {
            self.handle.datagrams.connect(address);
            Ok(())
        })
    }

    /// Our end.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.handle.local)
    }

    /// The peer.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.handle.datagrams.peer().ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// Another handle on the same socket.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn try_clone(&self) -> io::Result<UdpSocket> {
        Ok(UdpSocket { handle: Arc::clone(&self.handle) })
    }

    /// Lets calls fail with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.handle.options.set_nonblocking(nonblocking);
        Ok(())
    }

    /// How long receives wait before they fail with `WouldBlock`; `None` for ever.
    ///
    /// # Errors
    /// `InvalidInput` for zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.handle.options.read().set(timeout)
    }

    /// How long receives wait.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(self.handle.options.read().value())
    }

    /// Sends never wait, so this is kept for the standard library's signature only.
    ///
    /// # Errors
    /// `InvalidInput` for zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.handle.options.write().set(timeout)
    }

    /// Allows datagrams to everybody.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.handle.broadcast.store(broadcast, Ordering::Relaxed);
        Ok(())
    }

    /// Whether datagrams to everybody are allowed.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(self.handle.broadcast.load(Ordering::Relaxed))
    }

    /// The error that has happened and that no call has returned yet.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.handle.datagrams.take_failure())
    }

    /// Datagrams dropped because too many waited here.
    pub fn dropped(&self) -> u64 {
        self.handle.datagrams.dropped()
    }

    /// Whether a receive would not wait: for event loops.
    pub fn is_ready(&self) -> bool {
        self.handle.datagrams.is_ready()
    }

    /// Calls `watcher` whenever a datagram or an error has come, on whichever thread that happens: it must neither wait
    /// nor call this socket. `None` ends it.
    pub fn watch(&self, watcher: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.handle.datagrams.watch(watcher);
    }
}

/// Copies a datagram into a buffer of the pool, once.
fn copy(pool: &Pool, bytes: &[u8]) -> Option<Message> {
    if bytes.len() <= pool::SMALL - HEADROOM {
        let mut buffer = pool.take(pool::SMALL)?;
        let end = HEADROOM + bytes.len();
        buffer[HEADROOM..end].copy_from_slice(bytes);
        return Some(Message::from_buffer(buffer, HEADROOM, end));
    }
    // The headers get a small buffer of their own, in front.
    let mut buffer = pool.take(pool::LARGE)?;
    buffer[..bytes.len()].copy_from_slice(bytes);
    let mut message = Message::new(pool)?;
    message.append_slice(Slice::new(buffer.share(), 0, bytes.len()));
    Some(message)
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UdpSocket").field("addr", &self.handle.local).finish()
    }
}
