//! Xylem's sockets behind the common face. With the inline shell one thread does it all: it takes the stack's turns, and
//! between them serves the sockets that became ready, so that nothing is handed from thread to thread; it sleeps on the
//! device itself, or never. With a shell that has a thread of its own the server's thread is woken by the stack's.

use super::{Datagrams, Interrupt, Net, Stream, Token};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use xylem_core::time::earlier;
use xylem_graph::instance::Wake;
use xylem_host::net::{TcpListener, TcpStream, UdpSocket};
use xylem_host::poll::{self, Source, Waker};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;

/// Xylem's network on one stack.
pub struct Xylem {
    stack: Stack,
    ready: Arc<Ready>,
    idle: Idle,
}

/// What the inline shell's thread does when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It sleeps until a frame arrives.
    Sleep,
    /// It looks again and again: the lowest latency, for a processor.
    Spin,
}

/// The sockets that have become ready.
struct Ready {
    sockets: Mutex<Vec<Arc<Watched>>>,
    /// The server's thread sleeps, or is about to.
    asleep: AtomicBool,
    interrupted: AtomicBool,
    waker: Waker,
}

/// One socket, as the stack's side knows it.
struct Watched {
    token: Token,
    /// It stands among the ready ones already.
    queued: AtomicBool,
}

impl Ready {
    /// A socket may have become ready. Called by whichever thread brought the news.
    fn note(&self, socket: &Arc<Watched>) {
        if !socket.queued.swap(true, Ordering::AcqRel) {
            self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(socket));
            self.ring();
        }
    }

    /// Wakes the server's thread if it sleeps. What it is to find stands there before.
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    /// Moves the tokens of the ready sockets to `into`; false if there were none.
    fn drain(&self, into: &mut Vec<Token>) -> bool {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let before = into.len();
        for socket in sockets.drain(..) {
            // Before the server looks at the socket: news from then on is noted again.
            socket.queued.store(false, Ordering::Release);
            into.push(socket.token);
        }
        into.len() > before
    }

    fn is_empty(&self) -> bool {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Xylem {
    /// The sockets of `stack`. With the inline shell nobody else may need the stack's turns.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn new(stack: &Stack, idle: Idle) -> io::Result<Xylem> {
        let ready = Ready {
            sockets: Mutex::default(),
            asleep: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            waker: Waker::new()?,
        };
        Ok(Xylem { stack: stack.clone(), ready: Arc::new(ready), idle })
    }

    /// What a socket with this token calls when it may have become ready.
    fn watcher(&self, token: Token) -> Arc<dyn Fn() + Send + Sync> {
        let ready = Arc::clone(&self.ready);
        let watched = Arc::new(Watched { token, queued: AtomicBool::new(false) });
        Arc::new(move || ready.note(&watched))
    }

    /// Sleeps until a socket is ready, the inline stack wants a turn, `timeout` has passed, or it is interrupted.
    fn sleep(&self, timeout: Option<Duration>) -> io::Result<()> {
        let inline = self.stack.shell() == Shell::Inline;
        self.ready.asleep.store(true, Ordering::SeqCst);
        if inline {
            // Before the look at the devices and the deadlines: what comes behind it rings.
            self.stack.alarm().lie_down();
        }
        fence(Ordering::SeqCst);
        let mut timeout = timeout;
        let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
        if inline {
            let devices = || (0..).map_while(|index| self.stack.device(index));
            descriptors.extend(devices().filter_map(|device| device.descriptor()));
            let due = devices().fold(None, |soonest, device| earlier(soonest, device.deadline()));
            let due = match self.stack.instance().wake() {
                // A frame that no descriptor tells of is as good as due.
                _ if devices().any(|device| device.is_ready()) => Some(self.stack.now()),
                Wake::Now => Some(self.stack.now()),
                Wake::At(time) => earlier(due, Some(time)),
                Wake::Never => due,
            };
            let until = due.map(|due| due.since(self.stack.now()));
            timeout = match (timeout, until) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        // Behind the flag: whoever has news from here on sees it and rings.
        if self.ready.is_empty() && !self.ready.interrupted.load(Ordering::SeqCst) {
            let mut sources = vec![Source::readable(&self.ready.waker)];
            sources.extend(descriptors.iter().map(Source::readable));
            if inline {
                sources.push(Source::readable(self.stack.alarm().waker()));
            }
            poll::wait(&mut sources, timeout)?;
        }
        if inline {
            self.stack.alarm().rise();
        }
        if !self.ready.asleep.swap(false, Ordering::SeqCst) {
            self.ready.waker.rest();
        }
        Ok(())
    }
}

impl Net for Xylem {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagrams = UdpSocket;
    type Interrupt = Interrupter;

    fn name(&self) -> &'static str {
        "xylem"
    }

    fn listen(&mut self, at: SocketAddr, backlog: usize, token: Token) -> io::Result<TcpListener> {
        let listener = TcpListener::bind_with_backlog(&self.stack, at, backlog)?;
        listener.set_nonblocking(true)?;
        listener.watch(Some(self.watcher(token)));
        Ok(listener)
    }

    fn accept(&mut self, listener: &TcpListener, token: Token) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = listener.accept()?;
        stream.set_nonblocking(true)?;
        stream.watch(Some(self.watcher(token)));
        Ok((stream, peer))
    }

    fn connect(&mut self, to: SocketAddr, token: Token) -> io::Result<TcpStream> {
        let stream = TcpStream::open(&self.stack, None, to)?;
        stream.set_nonblocking(true)?;
        let watcher = self.watcher(token);
        stream.watch(Some(Arc::clone(&watcher)));
        // It may stand already, and then nothing more would be said.
        watcher();
        Ok(stream)
    }

    fn datagrams(&mut self, at: SocketAddr, token: Token) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind_on(&self.stack, at)?;
        socket.set_nonblocking(true)?;
        socket.watch(Some(self.watcher(token)));
        Ok(socket)
    }

    fn wait(&mut self, ready: &mut Vec<Token>, timeout: Option<Duration>) -> io::Result<()> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if self.stack.shell() == Shell::Inline {
                self.stack.turn();
            }
            if self.ready.drain(ready) || self.ready.interrupted.swap(false, Ordering::SeqCst) {
                return Ok(());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            match self.idle {
                Idle::Spin => std::hint::spin_loop(),
                Idle::Sleep => self.sleep(left)?,
            }
        }
    }

    fn interrupt(&mut self) -> io::Result<Interrupter> {
        Ok(Interrupter(Arc::clone(&self.ready)))
    }
}

/// Ends a wait for Xylem's sockets from another thread.
pub struct Interrupter(Arc<Ready>);

impl Interrupt for Interrupter {
    fn interrupt(&self) {
        self.0.interrupted.store(true, Ordering::SeqCst);
        self.0.ring();
    }
}

impl Stream for TcpStream {
    fn is_connected(&self) -> io::Result<bool> {
        match self.poll_opened(std::task::Waker::noop()) {
            Poll::Ready(answer) => answer.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        TcpStream::shutdown(self, how)
    }

    fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        TcpStream::set_nodelay(self, nodelay)
    }
}

impl Datagrams for UdpSocket {
    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        UdpSocket::recv_from(self, buffer)
    }

    fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        UdpSocket::send_to(self, datagram, to)
    }
}
