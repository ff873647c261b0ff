//! Bytes over streams: what is sent is a pattern that differs from place to place and from seed to seed, so that whoever
//! receives knows every byte without having been told any.

use super::place::{at_kernel, at_xylem, content};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;
use xylem_host::namespace::Namespace;
use xylem_host::net as x;
use xylem_host::stack::Stack;

/// How long any call on a socket may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The period of the pattern: a prime, so that no displacement by segments, buffers or pages goes unseen.
const PERIOD: usize = 1_048_573;
/// The bytes of one read or write.
const PIECE: usize = 256 << 10;

/// A stream of bytes without end that everybody who knows its seed can make.
pub struct Pattern {
    /// A period, and a piece more, so that a piece never wraps.
    bytes: Vec<u8>,
    place: usize,
}

impl Pattern {
    pub fn new(seed: u64) -> Pattern {
        let mut bytes = content(PERIOD, seed);
        bytes.extend_from_within(..PIECE);
        Pattern { bytes, place: 0 }
    }

    /// The next `length` bytes, at most a piece; [`pass`](Pattern::pass) says how many of them were used.
    pub fn next(&self, length: usize) -> &[u8] {
        &self.bytes[self.place..self.place + length.min(PIECE)]
    }

    pub fn pass(&mut self, count: usize) {
        self.place = (self.place + count) % PERIOD;
    }
}

/// Writes `length` bytes of the pattern.
pub fn pour(mut stream: impl Write, seed: u64, length: usize) -> std::io::Result<()> {
    let (mut pattern, mut left) = (Pattern::new(seed), length);
    while left > 0 {
        let piece = pattern.next(left);
        let count = piece.len();
        stream.write_all(piece)?;
        pattern.pass(count);
        left -= count;
    }
    Ok(())
}

/// Reads until the end, and says how many bytes came. Every one of them is compared.
pub fn catch(mut stream: impl Read, seed: u64) -> std::io::Result<usize> {
    let (mut pattern, mut buffer, mut total) = (Pattern::new(seed), vec![0; PIECE], 0);
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(total);
        }
        assert!(pattern.next(count) == &buffer[..count], "{count} bytes after the first {total} arrived changed");
        pattern.pass(count);
        total += count;
    }
}

/// What the two kinds of streams have in common here.
pub trait Duplex: Send + Sync {
    fn reader(&self) -> impl Read + Send;
    fn writer(&self) -> impl Write + Send;
    fn end(&self);
    fn patience(&self);
}

impl Duplex for std::net::TcpStream {
    fn reader(&self) -> impl Read + Send {
        self
    }
    fn writer(&self) -> impl Write + Send {
        self
    }
    fn end(&self) {
        self.shutdown(Shutdown::Write).expect("it is open");
    }
    fn patience(&self) {
        self.set_read_timeout(Some(PATIENCE)).expect("above zero");
        self.set_write_timeout(Some(PATIENCE)).expect("above zero");
    }
}

impl Duplex for x::TcpStream {
    fn reader(&self) -> impl Read + Send {
        self
    }
    fn writer(&self) -> impl Write + Send {
        self
    }
    fn end(&self) {
        self.shutdown(Shutdown::Write).expect("it is open");
    }
    fn patience(&self) {
        self.set_read_timeout(Some(PATIENCE)).expect("above zero");
        self.set_write_timeout(Some(PATIENCE)).expect("above zero");
    }
}

/// How a conversation goes: the client sends `forth` bytes and the server `back`, at the same time or one after the
/// other.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub forth: usize,
    pub back: usize,
    pub at_once: bool,
    pub seed: u64,
}

impl Load {
    /// As many bytes each way at the same time.
    pub fn both_at_once(bytes: usize, seed: u64) -> Load {
        Load { forth: bytes, back: bytes, at_once: true, seed }
    }

    /// As many bytes each way, the client's first.
    pub fn in_turn(bytes: usize, seed: u64) -> Load {
        Load { forth: bytes, back: bytes, at_once: false, seed }
    }
}

/// The client's part: everything is compared.
fn ask(stream: &impl Duplex, load: Load) {
    stream.patience();
    let send = || {
        pour(stream.writer(), load.seed, load.forth).expect("the server reads");
        stream.end();
    };
    let receive = || {
        let count = catch(stream.reader(), load.seed + 1).expect("the server answers");
        assert_eq!(count, load.back, "so many bytes came of {load:?}");
    };
    thread::scope(|scope| {
        scope.spawn(send);
        receive();
    });
}

/// The server's part.
fn answer(stream: &impl Duplex, load: Load) {
    stream.patience();
    let send = || {
        pour(stream.writer(), load.seed + 1, load.back).expect("the client reads");
        stream.end();
    };
    let receive = || {
        let count = catch(stream.reader(), load.seed).expect("the client sends");
        assert_eq!(count, load.forth, "so many bytes came of {load:?}");
    };
    if load.at_once {
        thread::scope(|scope| {
            scope.spawn(receive);
            send();
        });
    } else {
        receive();
        send();
    }
}

/// A kernel client and a server on Xylem: a connection for each of the loads.
pub fn kernel_asks_xylem(namespace: &Namespace, stack: &Stack, port: u16, loads: &[Load]) {
    let listener = x::TcpListener::bind_on(stack, at_xylem(port)).expect("the port is free");
    thread::scope(|scope| {
        scope.spawn(|| {
            for load in loads {
                let (stream, _) = listener.accept().expect("a connection");
                answer(&stream, *load);
            }
        });
        let client = || {
            for load in loads {
                ask(&std::net::TcpStream::connect(at_xylem(port)).expect("Xylem listens"), *load);
            }
        };
        namespace.enter(client).expect("root enters");
    });
}

/// A client on Xylem and a kernel server: a connection for each of the loads.
pub fn xylem_asks_kernel(namespace: &Namespace, stack: &Stack, port: u16, loads: &[Load]) {
    let bind = || std::net::TcpListener::bind(at_kernel(port)).expect("the port is free");
    let listener = namespace.enter(bind).expect("root enters");
    thread::scope(|scope| {
        scope.spawn(|| {
            for load in loads {
                let (stream, _) = listener.accept().expect("a connection");
                answer(&stream, *load);
            }
        });
        for load in loads {
            ask(&x::TcpStream::connect_on(stack, at_kernel(port)).expect("the kernel listens"), *load);
        }
    });
}
