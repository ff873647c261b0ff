//! The sockets of both contestants as an application sees them, behind one small face, so that the same loops run over
//! both. Who spins has non-blocking sockets and asks again; who blocks has blocking ones, and asks once.

use super::order::Waiting;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};
use xylem_host::stack::Stack;

/// Where sockets come from.
pub trait Network {
    /// A socket that takes connections.
    type Listener;
    /// One end of a connection.
    type Stream: Read + Write;

    /// Takes connections at `at`.
    ///
    /// # Errors
    /// The address is not this host's, or in use.
    fn listen(&self, at: SocketAddr) -> io::Result<Self::Listener>;

    /// The next connection; who spins may be told that there is none yet.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`], or what went wrong.
    fn accept(&self, listener: &Self::Listener) -> io::Result<Self::Stream>;

    /// A connection to `to`. For who spins it may not stand yet: its first write says.
    ///
    /// # Errors
    /// It came to nothing.
    fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream>;

    /// Lets small writes leave at once.
    ///
    /// # Errors
    /// The connection is gone.
    fn send_at_once(&self, stream: &Self::Stream) -> io::Result<()>;

    /// Says that nothing more is to be sent.
    ///
    /// # Errors
    /// The connection is gone.
    fn finish(&self, stream: &Self::Stream) -> io::Result<()>;

    /// Frames received and sent so far, where the stack is ours to ask.
    fn frames(&self) -> Option<[u64; 2]> {
        None
    }

    /// Stays until what was closed has been said to the peer.
    fn settle(&self) {}

    /// Does nothing for `span` but what the stack itself wants done.
    fn settle_briefly(&self, span: Duration) {
        std::thread::sleep(span);
    }
}

/// Frames received and sent between two looks at [`Network::frames`].
pub fn frames_between(before: Option<[u64; 2]>, after: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let ([received, sent], [received_after, sent_after]) = before.zip(after)?;
    Some([received_after - received, sent_after - sent])
}

/// Calls `attempt` until it no longer says "not now": at once for who blocks, after looking again for who spins.
///
/// # Errors
/// What went wrong.
pub fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            // Xylem's pool of buffers may be empty for a moment, which a non-blocking write says by this.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::OutOfMemory) =>
            {
                std::hint::spin_loop();
            }
            answer => return answer,
        }
    }
}

/// Writes all of `bytes`.
///
/// # Errors
/// The connection is gone.
pub fn write_all(stream: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match patiently(|| stream.write(bytes))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

/// Reads until at least `least` bytes stand in `into`: how many do. Fewer only at the end of the stream.
///
/// # Errors
/// The connection is gone.
pub fn read_least(stream: &mut impl Read, into: &mut [u8], least: usize) -> io::Result<usize> {
    let mut filled = 0;
    while filled < least {
        match patiently(|| stream.read(&mut into[filled..]))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// The kernel's sockets.
pub struct Kernel {
    /// How the application waits.
    pub waiting: Waiting,
}

impl Kernel {
    fn flags(&self) -> SocketFlags {
        match self.waiting {
            Waiting::Spin => SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Waiting::Block => SocketFlags::CLOEXEC,
        }
    }
}

impl Network for Kernel {
    type Listener = std::net::TcpListener;
    type Stream = std::net::TcpStream;

    fn listen(&self, at: SocketAddr) -> io::Result<std::net::TcpListener> {
        // Everywhere, for the interface may be made after this.
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, at.port()))?;
        listener.set_nonblocking(self.waiting == Waiting::Spin)?;
        Ok(listener)
    }

    fn accept(&self, listener: &std::net::TcpListener) -> io::Result<std::net::TcpStream> {
        // One call: the standard library needs a second one for a socket that does not block.
        Ok(rustix::net::accept_with(listener, self.flags())?.into())
    }

    fn connect(&self, to: SocketAddr) -> io::Result<std::net::TcpStream> {
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, self.flags(), None)?;
        match rustix::net::connect(&socket, &to) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn send_at_once(&self, stream: &std::net::TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)
    }

    fn finish(&self, stream: &std::net::TcpStream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }
}

/// Xylem's sockets on one stack.
pub struct Xylem {
    /// The stack.
    pub stack: Stack,
    /// How the application waits.
    pub waiting: Waiting,
}

/// How long the peer may take to acknowledge what was closed.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// How often a stack without a thread of its own gets a turn while its application has nothing to do.
const TURN_PAUSE: Duration = Duration::from_millis(1);

impl Network for Xylem {
    type Listener = xylem_host::net::TcpListener;
    type Stream = xylem_host::net::TcpStream;

    fn listen(&self, at: SocketAddr) -> io::Result<Self::Listener> {
        let listener = Self::Listener::bind_on(&self.stack, at)?;
        listener.set_nonblocking(self.waiting == Waiting::Spin)?;
        Ok(listener)
    }

    fn accept(&self, listener: &Self::Listener) -> io::Result<Self::Stream> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(self.waiting == Waiting::Spin)?;
        Ok(stream)
    }

    fn connect(&self, to: SocketAddr) -> io::Result<Self::Stream> {
        match self.waiting {
            Waiting::Spin => {
                let stream = Self::Stream::open(&self.stack, None, to)?;
                stream.set_nonblocking(true)?;
                Ok(stream)
            }
            Waiting::Block => Self::Stream::connect_on(&self.stack, to),
        }
    }

    fn send_at_once(&self, stream: &Self::Stream) -> io::Result<()> {
        stream.set_nodelay(true)
    }

    fn finish(&self, stream: &Self::Stream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }

    fn frames(&self) -> Option<[u64; 2]> {
        let reading = self.stack.reading();
        Some([reading.frames_in, reading.frames_out])
    }

    fn settle(&self) {
        self.stack.drain(DRAIN_TIME_MAX);
    }

    fn settle_briefly(&self, span: Duration) {
        let until = Instant::now() + span;
        while Instant::now() < until {
            self.stack.turn();
            std::thread::sleep(TURN_PAUSE);
        }
    }
}
