//! Small services, and the server that runs them for thousands of clients at once in one thread. A service is a factory
//! of conversations; a conversation is a state machine that goes on whenever its stream may be ready, over any network
//! that [`crate::net`] knows. Nothing here waits but the server, in one place.

pub mod echo;
pub mod iperf3;
pub mod server;
pub mod small;

pub use server::{Limits, Server, Stop};

use crate::net::Stream;
use std::io;
use std::net::SocketAddr;

/// The bytes of the buffer that all conversations of one server share, one at a time.
pub const SCRATCH_BYTES: usize = 256 << 10;

/// The bytes a conversation moves before others get their turn.
pub const TURN_BYTES: usize = 1 << 20;

/// What a conversation wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// Nothing before the stream is ready again.
    Waiting,
    /// It could go on at once; the others come first.
    Again,
    /// It is over: the stream may be closed.
    Over,
}

/// The server's end of one connection, as a state machine.
pub trait Conversation: Send {
    /// Goes on until the stream says [`io::ErrorKind::WouldBlock`], [`TURN_BYTES`] have moved, or it is over. `scratch`
    /// has [`SCRATCH_BYTES`] bytes of nobody's.
    ///
    /// Over a stream that blocks the same code serves one connection in a thread of its own.
    ///
    /// # Errors
    /// The connection failed, or the peer broke the rules in a way that has no answer: the stream is to be closed.
    fn advance(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress>;
}

/// A service over streams.
pub trait Service: Send + Sync {
    /// What it is called on the command line.
    fn name(&self) -> &str;

    /// A conversation with a new client.
    fn converse(&self, peer: SocketAddr) -> Box<dyn Conversation>;
}

/// A service over datagrams: one answer at most for each datagram.
pub trait DatagramService: Send + Sync {
    /// What it is called on the command line.
    fn name(&self) -> &str;

    /// Answers the datagram in the first `length` bytes of `scratch`; the answer, if there is one, is put there too and
    /// its length returned.
    fn answer(&self, scratch: &mut [u8], length: usize) -> Option<usize>;
}

/// One read or write of a stream that does not wait: `None` for "not now", and once more if a signal came first.
pub(crate) fn without_waiting(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
