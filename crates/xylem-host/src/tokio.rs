//! The asynchronous face of the sockets: tokio's traits, and futures for what takes more than a read or a write. It
//! needs no runtime of a certain kind and no reactor, only wakers. The stack needs a thread of its own
//! ([`Shell::Thread`](crate::shell::Shell::Thread) or `Spin`): tasks do not take turns for it.

use crate::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use crate::stack::Stack;
use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

impl TcpStream {
    /// Connects without keeping a thread waiting.
    ///
    /// # Errors
    /// As [`connect_on`](TcpStream::connect_on).
    pub async fn connect_async(stack: &Stack, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::open(stack, None, address)?;
        poll_fn(|context| stream.poll_opened(context.waker())).await?;
        Ok(stream)
    }
}

impl TcpListener {
    /// The next connection, without keeping a thread waiting.
    pub async fn accept_async(&self) -> (TcpStream, SocketAddr) {
        poll_fn(|context| self.poll_accept(context.waker())).await
    }
}

impl UdpSocket {
    /// The next datagram, without keeping a thread waiting. Sending never waits.
    ///
    /// # Errors
    /// As [`recv_from`](UdpSocket::recv_from).
    pub async fn recv_from_async(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        poll_fn(|context| self.poll_recv_from(into, context.waker())).await
    }
}

impl AsyncRead for &TcpStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = ready!(TcpStream::poll_read(*self, into.initialize_unfilled(), context.waker()))?;
        into.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for &TcpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        TcpStream::poll_write(*self, &[IoSlice::new(from)], context.waker())
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        TcpStream::poll_write(*self, from, context.waker())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown(Shutdown::Write))
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut &*self), context, into)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut &*self), context, from)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write_vectored(Pin::new(&mut &*self), context, from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut &*self), context)
    }
}
