//! The server: one thread, all its sockets, and one place where it waits. Connections beyond the limit are left to the
//! stack's backlog until one ends; those that say nothing for too long are closed.

use super::{Conversation, DatagramService, Progress, SCRATCH_BYTES, Service};
use crate::net::{Datagrams, Interrupt, Net, Token};
use slab::Slab;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Connections accepted, or datagrams answered, of one listener before the others get their turn.
const ACCEPT_BURST_MAX: usize = 256;

/// How often silent connections are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What one server takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections that wait to be accepted, for each listener.
    pub backlog: usize,
    /// How long a connection may be silent in both directions.
    pub silence: Duration,
}

impl Default for Limits {
    /// 16 384 connections, a backlog of 1 024, five minutes.
    fn default() -> Limits {
        Limits { connections: 16_384, backlog: 1_024, silence: Duration::from_secs(300) }
    }
}

/// What a server has done so far. Shared: it may be read while the server runs.
#[derive(Debug, Default)]
pub struct Tally {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Connections that ended with an error or after too long a silence.
    pub failed: AtomicU64,
    /// Datagrams that came.
    pub datagrams: AtomicU64,
}

/// Stops a server from another thread.
#[derive(Clone)]
pub struct Stop {
    stopped: Arc<AtomicBool>,
    interrupt: Arc<dyn Interrupt>,
}

impl Stop {
    /// Makes [`Server::run`] return soon. Its connections are closed when the server is dropped.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.interrupt.interrupt();
    }
}

/// A server of services over one network. See the module's text.
pub struct Server<N: Net> {
    net: N,
    limits: Limits,
    /// Every socket; its place is its token.
    sockets: Slab<Socket<N>>,
    /// Those of them that are connections.
    connections: usize,
    /// A listener has connections waiting that were above the limit.
    postponed: bool,
    /// Who could have gone on, in order.
    again: VecDeque<Token>,
    scratch: Vec<u8>,
    swept: Instant,
    stopped: Arc<AtomicBool>,
    tally: Arc<Tally>,
}

enum Socket<N: Net> {
    Listener {
        listener: N::Listener,
        service: Arc<dyn Service>,
    },
    Datagrams {
        socket: N::Datagrams,
        service: Arc<dyn DatagramService>,
    },
    Connection {
        /// Before the stream: when the peer sees the end, what the conversation held has gone.
        conversation: Box<dyn Conversation>,
        stream: N::Stream,
        heard: Instant,
    },
    /// Its token is being spoken for.
    Opening,
}

impl<N: Net> Server<N> {
    /// A server without services over `net`.
    pub fn new(net: N, limits: Limits) -> Server<N> {
        Server {
            net,
            limits,
            sockets: Slab::new(),
            connections: 0,
            postponed: false,
            again: VecDeque::new(),
            scratch: vec![0; SCRATCH_BYTES],
            swept: Instant::now(),
            stopped: Arc::default(),
            tally: Arc::default(),
        }
    }

    /// Offers `service` to connections at `at`.
    ///
    /// # Errors
    /// The address is not of this host or in use.
    pub fn offer(&mut self, at: SocketAddr, service: Arc<dyn Service>) -> io::Result<()> {
        let token = Token(self.sockets.insert(Socket::Opening));
        match self.net.listen(at, self.limits.backlog, token) {
            Ok(listener) => self.sockets[token.0] = Socket::Listener { listener, service },
            Err(error) => {
                self.sockets.remove(token.0);
                return Err(error);
            }
        }
        // A connection may have come before readiness was watched.
        self.again.push_back(token);
        Ok(())
    }

    /// Offers `service` to datagrams at `at`.
    ///
    /// # Errors
    /// The address is not of this host or in use.
    pub fn offer_datagrams(&mut self, at: SocketAddr, service: Arc<dyn DatagramService>) -> io::Result<()> {
        let token = Token(self.sockets.insert(Socket::Opening));
        match self.net.datagrams(at, token) {
            Ok(socket) => self.sockets[token.0] = Socket::Datagrams { socket, service },
            Err(error) => {
                self.sockets.remove(token.0);
                return Err(error);
            }
        }
        self.again.push_back(token);
        Ok(())
    }

    /// What stops the server from another thread.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn stop(&mut self) -> io::Result<Stop> {
        Ok(Stop { stopped: Arc::clone(&self.stopped), interrupt: Arc::new(self.net.interrupt()?) })
    }

    /// What it has done so far.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// The network is gone.
    pub fn run(&mut self) -> io::Result<()> {
        let mut ready = Vec::new();
        while !self.stopped.load(Ordering::SeqCst) {
            let timeout = if self.again.is_empty() { SWEEP_EVERY } else { Duration::ZERO };
            self.net.wait(&mut ready, Some(timeout))?;
            let now = Instant::now();
            for token in ready.drain(..) {
                self.serve(token, now);
            }
            for _ in 0..self.again.len() {
                // The count is that of the queue, and only its end grows in the loop.
                let Some(token) = self.again.pop_front() else { break };
                self.serve(token, now);
            }
            if now.duration_since(self.swept) >= SWEEP_EVERY {
                self.sweep(now);
            }
        }
        Ok(())
    }

    /// Lets the socket with this token go on; a token of a socket that has gone is nobody's.
    fn serve(&mut self, token: Token, now: Instant) {
        let again = match self.sockets.get_mut(token.0) {
            Some(Socket::Connection { stream, conversation, heard }) => {
                *heard = now;
                match conversation.advance(stream, &mut self.scratch) {
                    Ok(Progress::Waiting) => false,
                    Ok(Progress::Again) => true,
                    Ok(Progress::Over) => return self.close(token),
                    Err(_) => {
                        self.tally.failed.fetch_add(1, Ordering::Relaxed);
                        return self.close(token);
                    }
                }
            }
            Some(Socket::Listener { .. }) => self.accept(token, now),
            Some(Socket::Datagrams { .. }) => self.answer(token),
            Some(Socket::Opening) | None => false,
        };
        if again {
            self.again.push_back(token);
        }
    }

    /// Accepts what waits at a listener; true if there may be more.
    fn accept(&mut self, token: Token, now: Instant) -> bool {
        for _ in 0..ACCEPT_BURST_MAX {
            if self.connections >= self.limits.connections {
                self.postponed = true;
                return false;
            }
            let key = Token(self.sockets.insert(Socket::Opening));
            let Socket::Listener { listener, service } = &self.sockets[token.0] else {
                unreachable!("the token is a listener's");
            };
            let (stream, peer) = match self.net.accept(listener, key) {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.sockets.remove(key.0);
                    match error.kind() {
                        ErrorKind::WouldBlock => return false,
                        // This one is gone before we came; there may be others.
                        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted => continue,
                        // Too many sockets: those who wait are looked at again with the next sweep.
                        _ => {
                            self.postponed = true;
                            return false;
                        }
                    }
                }
            };
            // Answers leave at once; a stream that cannot do that still serves.
            let _ = crate::net::Stream::set_nodelay(&stream, true);
            let conversation = service.converse(peer);
            self.sockets[key.0] = Socket::Connection { stream, conversation, heard: now };
            self.connections += 1;
            self.tally.accepted.fetch_add(1, Ordering::Relaxed);
            // What it has sent already was announced before anybody listened.
            self.serve(key, now);
        }
        true
    }

    /// Answers what waits at a datagram socket; true if there may be more.
    fn answer(&mut self, token: Token) -> bool {
        let Some(Socket::Datagrams { socket, service }) = self.sockets.get(token.0) else {
            unreachable!("the token is a datagram socket's");
        };
        for _ in 0..ACCEPT_BURST_MAX {
            match socket.recv_from(&mut self.scratch) {
                Ok((length, from)) => {
                    self.tally.datagrams.fetch_add(1, Ordering::Relaxed);
                    if let Some(length) = service.answer(&mut self.scratch, length) {
                        // A datagram that finds no room is lost, as datagrams may be.
                        let _ = socket.send_to(&self.scratch[..length], from);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // An error that an earlier answer brought back; the socket is as good as before.
                Err(_) => {}
            }
        }
        true
    }

    fn close(&mut self, token: Token) {
        self.sockets.remove(token.0);
        self.connections -= 1;
        if std::mem::take(&mut self.postponed) {
            self.look_at_listeners();
        }
    }

    fn look_at_listeners(&mut self) {
        let listeners = self.sockets.iter().filter(|(_, socket)| matches!(socket, Socket::Listener { .. }));
        self.again.extend(listeners.map(|(key, _)| Token(key)));
    }

    /// Closes who has been silent for too long.
    fn sweep(&mut self, now: Instant) {
        self.swept = now;
        let silence = self.limits.silence;
        let is_silent = |socket: &Socket<N>| match socket {
            Socket::Connection { heard, .. } => now.duration_since(*heard) > silence,
            Socket::Listener { .. } | Socket::Datagrams { .. } | Socket::Opening => false,
        };
        let silent = self.sockets.iter().filter(|(_, socket)| is_silent(socket));
        let silent: Vec<usize> = silent.map(|(key, _)| key).collect();
        for key in silent {
            self.tally.failed.fetch_add(1, Ordering::Relaxed);
            self.close(Token(key));
        }
        if std::mem::take(&mut self.postponed) {
            self.look_at_listeners();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::kernel::Kernel;
    use crate::services::echo::Echo;
    use crate::services::small::{Chargen, Daytime, Discard};
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpStream, UdpSocket};
    use std::thread;

    /// Runs a server with `offer` set up in it, and `client` against it.
    fn with_server(limits: Limits, offer: impl FnOnce(&mut Server<Kernel>), client: impl FnOnce()) -> Arc<Tally> {
        let mut server = Server::new(Kernel::new().expect("an epoll"), limits);
        offer(&mut server);
        let (stop, tally) = (server.stop().expect("a waker"), server.tally());
        let thread = thread::spawn(move || server.run().expect("the network stays"));
        client();
        stop.stop();
        thread.join().expect("the server does not panic");
        tally
    }

    fn local(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn echo_returns_all_bytes_in_order_even_to_a_client_that_reads_late() {
        let sent: Vec<u8> = (0..8_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let client = || {
            let stream = TcpStream::connect(local(41_007)).expect("the server listens");
            let mut writer = stream.try_clone().expect("a descriptor");
            let mut reader = stream;
            let expected = sent.clone();
            let writing = thread::spawn(move || {
                writer.write_all(&sent).expect("the server reads");
                writer.shutdown(Shutdown::Write).expect("it is open");
            });
            // Long enough for both socket buffers to fill, so that the server has to hold back.
            thread::sleep(Duration::from_millis(200));
            let mut got = Vec::new();
            reader.read_to_end(&mut got).expect("the server writes");
            writing.join().expect("the writer does not panic");
            assert!(got == expected, "{} bytes came back of {}", got.len(), expected.len());
        };
        let offer =
            |server: &mut Server<Kernel>| server.offer(local(41_007), Arc::new(Echo)).expect("the port is free");
        let tally = with_server(Limits::default(), offer, client);
        assert_eq!((tally.accepted.load(Ordering::Relaxed), tally.failed.load(Ordering::Relaxed)), (1, 0));
    }

    #[test]
    fn datagrams_are_echoed_daytime_says_a_line_discard_is_silent_and_chargen_never_ends() {
        let offer = |server: &mut Server<Kernel>| {
            server.offer_datagrams(local(41_107), Arc::new(Echo)).expect("the port is free");
            server.offer(local(41_113), Arc::new(Daytime)).expect("the port is free");
            server.offer(local(41_109), Arc::new(Discard)).expect("the port is free");
            server.offer(local(41_119), Arc::new(Chargen)).expect("the port is free");
        };
        let client = || {
            let socket = UdpSocket::bind(local(0)).expect("a port");
            socket.send_to(b"there and back", local(41_107)).expect("it is local");
            let mut buffer = [0; 64];
            let (length, _) = socket.recv_from(&mut buffer).expect("it comes back");
            assert_eq!(&buffer[..length], b"there and back");

            let mut line = String::new();
            let mut daytime = TcpStream::connect(local(41_113)).expect("the server listens");
            daytime.read_to_string(&mut line).expect("a line, then the end");
            assert!(line.ends_with(" GMT\r\n") && line.lines().count() == 1, "{line:?}");

            let mut discard = TcpStream::connect(local(41_109)).expect("the server listens");
            discard.write_all(&[7; 100_000]).expect("it reads");
            discard.shutdown(Shutdown::Write).expect("it is open");
            assert_eq!(discard.read(&mut buffer).expect("the end"), 0);

            let mut chargen = TcpStream::connect(local(41_119)).expect("the server listens");
            let mut lines = vec![0; 3_000_000];
            chargen.read_exact(&mut lines).expect("it never ends");
            // Three million bytes go through several turns of the server: the pattern has no seam.
            for (number, line) in lines.chunks_exact(74).enumerate() {
                assert_eq!(line[0], b' ' + (number % 95) as u8, "line {number}");
            }
        };
        with_server(Limits::default(), offer, client);
    }

    #[test]
    fn connections_above_the_limit_wait_and_silent_ones_are_closed() {
        let limits = Limits { connections: 2, silence: Duration::from_millis(1500), ..Limits::default() };
        let offer =
            |server: &mut Server<Kernel>| server.offer(local(41_207), Arc::new(Echo)).expect("the port is free");
        let client = || {
            let connect = || TcpStream::connect(local(41_207)).expect("the backlog takes it");
            let (mut first, _second, mut third) = (connect(), connect(), connect());
            third.write_all(b"?").expect("the backlog takes it");
            third.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
            let mut byte = [0];
            let error = third.read(&mut byte).expect_err("nobody serves the third");
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            // The first two are silent: they are closed, and the third is served.
            first.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            assert_eq!(first.read(&mut byte).expect("it is closed"), 0);
            third.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            third.read_exact(&mut byte).expect("its turn has come");
            assert_eq!(&byte, b"?");
        };
        let tally = with_server(limits, offer, client);
        assert_eq!((tally.accepted.load(Ordering::Relaxed), tally.failed.load(Ordering::Relaxed)), (3, 2));
    }
}
