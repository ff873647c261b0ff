//! One face for two networks: the kernel's sockets and Xylem's, so that the same server is compiled over both and a
//! comparison compares nothing but the stacks. The face is the non-blocking one: a server asks, is told "not now", and
//! waits for all its sockets at once ([`Net::wait`]); whoever wants to block uses the sockets themselves.

pub mod kernel;
pub mod xylem;

/// Xylem's own sockets, shaped like the standard library's.
pub use xylem_host::net::{TcpListener, TcpStream, UdpSocket};

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

/// What a server calls one of its sockets; it chooses the number itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub usize);

/// A network: where sockets come from, and what waits for them.
///
/// Readiness is told once for each change (edge-triggered): after a token has been named, the server reads, writes or
/// accepts until the socket says [`io::ErrorKind::WouldBlock`], or comes back by itself. A token may be named without
/// cause.
pub trait Net {
    /// The sockets that take connections.
    type Listener;
    /// One end of a connection.
    type Stream: Stream;
    /// The sockets that take datagrams.
    type Datagrams: Datagrams;
    /// Ends a wait from another thread.
    type Interrupt: Interrupt;

    /// A name for people: `kernel` or `xylem`.
    fn name(&self) -> &'static str;

    /// Takes connections at `at`, up to `backlog` of them before they are accepted.
    ///
    /// # Errors
    /// The address is not of this host, or in use, or this process has too many sockets.
    fn listen(&mut self, at: SocketAddr, backlog: usize, token: Token) -> io::Result<Self::Listener>;

    /// The next connection, whose readiness will be told by `token`.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; otherwise this one connection failed, or the process has too
    /// many sockets.
    fn accept(&mut self, listener: &Self::Listener, token: Token) -> io::Result<(Self::Stream, SocketAddr)>;

    /// Begins to connect to `to`. The stream's token is named when there is news; [`Stream::is_connected`] says which.
    ///
    /// # Errors
    /// There is no way to that address, or this process has too many sockets.
    fn connect(&mut self, to: SocketAddr, token: Token) -> io::Result<Self::Stream>;

    /// Takes datagrams at `at`.
    ///
    /// # Errors
    /// As [`listen`](Net::listen).
    fn datagrams(&mut self, at: SocketAddr, token: Token) -> io::Result<Self::Datagrams>;

    /// Waits until something may be ready, `timeout` has passed or the wait is interrupted, and appends the tokens to
    /// `ready`. Zero looks and returns.
    ///
    /// # Errors
    /// The network is gone.
    fn wait(&mut self, ready: &mut Vec<Token>, timeout: Option<Duration>) -> io::Result<()>;

    /// What ends a [`wait`](Net::wait) from another thread; it may be asked for any number of times.
    ///
    /// # Errors
    /// The process has too many open files.
    fn interrupt(&mut self) -> io::Result<Self::Interrupt>;
}

/// Ends a wait from another thread.
pub trait Interrupt: Send + Sync + 'static {
    /// Ends the wait going on now, or the next one.
    fn interrupt(&self);
}

/// One end of a connection. Neither reading nor writing waits; a read of zero bytes is the peer's end of stream.
pub trait Stream: Read + Write {
    /// Whether a connection that was begun stands.
    ///
    /// # Errors
    /// It came to nothing: refused, unreachable, timed out.
    fn is_connected(&self) -> io::Result<bool>;

    /// Closes one direction or both.
    ///
    /// # Errors
    /// The connection is gone.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Whether small writes leave at once (true), or wait for what is on the way (RFC 9293, section 3.7.4).
    ///
    /// # Errors
    /// The connection is gone.
    fn set_nodelay(&self, nodelay: bool) -> io::Result<()>;
}

/// A socket for datagrams. Neither verb waits.
pub trait Datagrams {
    /// The next datagram: its length and its sender. What does not fit the buffer is cut off.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none, or an error that arrived for an earlier one.
    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends one datagram.
    ///
    /// # Errors
    /// It is too long, there is no room now, or an error arrived for an earlier one.
    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize>;
}
