//! The kernel's sockets behind the common face. They wait in one epoll (by mio), as a server written for Linux would; the
//! sockets belong to the network namespace of the thread that opens them.

use super::{Datagrams, Interrupt, Net, Stream, Token};
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How many readiness events one wait takes from the kernel.
const EVENTS_MAX: usize = 1024;

/// The token of the waker; no server has that many sockets.
const WAKER: mio::Token = mio::Token(usize::MAX);

/// The kernel's network.
pub struct Kernel {
    poll: mio::Poll,
    events: mio::Events,
    waker: Arc<mio::Waker>,
    congestion: Option<String>,
}

impl Kernel {
    /// The kernel's network as the calling thread sees it.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn new() -> io::Result<Kernel> {
        let poll = mio::Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), WAKER)?);
        Ok(Kernel { poll, events: mio::Events::with_capacity(EVENTS_MAX), waker, congestion: None })
    }

    /// Connections taken from now on control congestion by the algorithm of this name (tcp(7), TCP_CONGESTION).
    pub fn set_congestion(&mut self, name: &str) {
        self.congestion = Some(name.into());
    }

    fn register(&self, source: &mut impl mio::event::Source, token: Token) -> io::Result<()> {
        let interests = mio::Interest::READABLE | mio::Interest::WRITABLE;
        self.poll.registry().register(source, mio::Token(token.0), interests)
    }
}

impl Net for Kernel {
    type Listener = mio::net::TcpListener;
    type Stream = mio::net::TcpStream;
    type Datagrams = mio::net::UdpSocket;
    type Interrupt = Arc<mio::Waker>;

    fn name(&self) -> &'static str {
        "kernel"
    }

    fn listen(&mut self, at: SocketAddr, _backlog: usize, token: Token) -> io::Result<mio::net::TcpListener> {
        // The standard library's backlog is 128 and the kernel's own limit 4096: connections beyond are retried by the
        // peer. Good enough for the services, whose loop accepts before it does anything else.
        let mut listener = mio::net::TcpListener::bind(at)?;
        if let Some(name) = &self.congestion {
            // The connections it takes inherit it.
            rustix::net::sockopt::set_tcp_congestion(&listener, name)?;
        }
        self.register(&mut listener, token)?;
        Ok(listener)
    }

    fn accept(&mut self, listener: &mio::net::TcpListener, token: Token) -> io::Result<(Self::Stream, SocketAddr)> {
        let (mut stream, peer) = listener.accept()?;
        self.register(&mut stream, token)?;
        Ok((stream, peer))
    }

    fn connect(&mut self, to: SocketAddr, token: Token) -> io::Result<mio::net::TcpStream> {
        let mut stream = mio::net::TcpStream::connect(to)?;
        self.register(&mut stream, token)?;
        Ok(stream)
    }

    fn datagrams(&mut self, at: SocketAddr, token: Token) -> io::Result<mio::net::UdpSocket> {
        let mut socket = mio::net::UdpSocket::bind(at)?;
        self.register(&mut socket, token)?;
        Ok(socket)
    }

    fn wait(&mut self, ready: &mut Vec<Token>, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            answer => answer?,
        }
        let tokens = self.events.iter().map(mio::event::Event::token).filter(|token| *token != WAKER);
        ready.extend(tokens.map(|token| Token(token.0)));
        Ok(())
    }

    fn interrupt(&mut self) -> io::Result<Arc<mio::Waker>> {
        Ok(Arc::clone(&self.waker))
    }
}

impl Interrupt for Arc<mio::Waker> {
    fn interrupt(&self) {
        // It fails only if the poll is gone, and then nobody waits.
        let _ = self.wake();
    }
}

impl Stream for mio::net::TcpStream {
    fn is_connected(&self) -> io::Result<bool> {
        match self.take_error()? {
            Some(error) => Err(error),
            None => Ok(self.peer_addr().is_ok()),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        mio::net::TcpStream::shutdown(self, how)
    }

    fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        mio::net::TcpStream::set_nodelay(self, nodelay)
    }
}

impl Datagrams for mio::net::UdpSocket {
    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        mio::net::UdpSocket::recv_from(self, buffer)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        mio::net::UdpSocket::send_to(self, datagram, to)
    }
}
