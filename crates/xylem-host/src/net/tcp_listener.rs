//! A socket that takes connections, as `std::net::TcpListener` has it.

use super::options::Options;
use super::tcp_stream::{TcpStream, hop_limit, waiting};
use super::{SocketAddr, ToSocketAddrs, each_address};
use crate::socket::{Listener, enable_error, local_address, local_only, no_protocol};
use crate::stack::{Stack, default_stack};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Poll, Waker};
use xylem_core::{EnableId, EnableWish, Setting};

/// How many connections wait to be accepted unless something else is asked for, and how many may be half open.
pub const BACKLOG: usize = 128;

/// A standing passive open. All its handles are equal; the last one to go ends it, and connections that nobody has
/// accepted are reset.
pub struct TcpListener {
    handle: Arc<Handle>,
}

struct Handle {
    stack: Stack,
    listener: Arc<Listener>,
    enable: EnableId,
    local: SocketAddr,
    options: Options,
    /// Zero: as the stack has it.
    hop_limit: AtomicU8,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stack.instance().disable(self.enable);
        self.listener.close(self.stack.core());
    }
}

impl TcpListener {
    /// Listens on the process's default stack.
    ///
    /// # Errors
    /// There is no default stack; or as [`bind_on`](TcpListener::bind_on).
    pub fn bind<A: ToSocketAddrs>(addresses: A) -> io::Result<TcpListener> {
        TcpListener::bind_on(&default_stack()?, addresses)
    }

    /// Listens at the first of `addresses` that is free, on `stack`. The unspecified host stands for all of the stack's
    /// addresses, port zero for a free port.
    ///
    /// # Errors
    /// `AddrInUse`, `AddrNotAvailable`; `Unsupported` if the stack's graph has no TCP.
    pub fn bind_on<A: ToSocketAddrs>(stack: &Stack, addresses: A) -> io::Result<TcpListener> {
        each_address(addresses, |address| TcpListener::bind_with_backlog(stack, address, BACKLOG))
    }

    /// As [`bind_on`](TcpListener::bind_on), with room for `backlog` connections that nobody has accepted.
    ///
    /// # Errors
    /// As there.
    pub fn bind_with_backlog(stack: &Stack, address: SocketAddr, backlog: usize) -> io::Result<TcpListener> {
        TcpListener::bind_fast_open(stack, address, backlog, 0)
    }

    /// As [`bind_with_backlog`](TcpListener::bind_with_backlog), and takes data with the peers' first segments (TCP Fast
    /// Open, RFC 7413): of at most `early` peers at once that have not yet proven that they are there. A network may
    /// double such a segment, so what comes first must be something that may be asked twice.
    ///
    /// # Errors
    /// As there.
    pub fn bind_fast_open(stack: &Stack, address: SocketAddr, backlog: usize, early: usize) -> io::Result<TcpListener> {
        let core = stack.core();
        let node = core.tcp.ok_or_else(|| no_protocol("tcp"))?;
        let listener = Listener::new(backlog);
        let wish = EnableWish { participants: local_only(address), wild: false, backlog, shared: false };
        let listening =
            core.instance.enable_early(node, wish, early, Arc::clone(&listener) as _).map_err(enable_error)?;
        let mut local = local_address(&listening.participants);
        if local.ip().is_unspecified() {
            local.set_ip(address.ip());
        }
        let handle = Handle {
            stack: stack.clone(),
            listener,
            enable: listening.id,
            local,
            options: Options::default(),
            hop_limit: AtomicU8::new(0),
        };
        Ok(TcpListener { handle: Arc::new(handle) })
    }

    /// The next connection, with its peer's address.
    ///
    /// # Errors
    /// `WouldBlock` if calls do not wait and none is there; `NotConnected` if the stack was stopped.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let handle = &self.handle;
        let stream =
            waiting(handle.stack.core(), &handle.options, None, |waker| handle.listener.poll_accept(waker).map(Ok))?;
        Ok(self.accepted(stream))
    }

    /// For tasks: the next connection, or `waker` is called when there is one.
    pub fn poll_accept(&self, waker: &Waker) -> Poll<(TcpStream, SocketAddr)> {
        self.handle.listener.poll_accept(Some(waker)).map(|stream| self.accepted(stream))
    }

    fn accepted(&self, stream: Arc<crate::socket::Stream>) -> (TcpStream, SocketAddr) {
        let peer = stream.peer();
        let hop_limit = self.handle.hop_limit.load(Ordering::Relaxed);
        if hop_limit > 0 {
            stream.set(self.handle.stack.core(), Setting::HopLimit(hop_limit));
        }
        (TcpStream::of(&self.handle.stack, stream), peer)
    }

    /// Connection after connection, for ever.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Where it listens; the port is the one that was chosen.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.handle.local)
    }

    /// Another handle on the same socket.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn try_clone(&self) -> io::Result<TcpListener> {
        Ok(TcpListener { handle: Arc::clone(&self.handle) })
    }

    /// Lets [`accept`](TcpListener::accept) fail with `WouldBlock` instead of waiting.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.handle.options.set_nonblocking(nonblocking);
        Ok(())
    }

    /// Sets the time to live of what accepted connections send.
    ///
    /// # Errors
    /// `InvalidInput` for zero and for more than 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.handle.hop_limit.store(hop_limit(ttl)?, Ordering::Relaxed);
        Ok(())
    }

    /// The error that has happened and that no call has returned yet: none, a listener has no errors of its own.
    ///
    /// # Errors
    /// None; the standard library's signature.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Whether an accept would not wait: for event loops.
    pub fn is_ready(&self) -> bool {
        self.handle.listener.is_ready()
    }

    /// Calls `watcher` whenever a connection waits to be accepted, on whichever thread that happens: it must neither
    /// wait nor call this socket. `None` ends it.
    pub fn watch(&self, watcher: Option<Arc<dyn Fn() + Send + Sync>>) {
        self.handle.listener.watch(watcher);
    }
}

/// See [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TcpListener").field("addr", &self.handle.local).finish()
    }
}
