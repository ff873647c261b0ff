//! Sockets shaped like the standard library's: the same names, the same meaning, the same kinds of errors. What differs
//! is where they live: on a stack named with the call, or on the process's default stack.
//!
//! ```no_run
//! use xylem_host::net::TcpStream;
//! use std::io::{Read, Write};
//!
//! # fn main() -> std::io::Result<()> {
//! // Some stack has been made the default before.
//! let mut stream = TcpStream::connect("10.0.0.1:7")?;
//! stream.write_all(b"hello")?;
//! let mut answer = [0; 5];
//! stream.read_exact(&mut answer)?;
//! # Ok(())
//! # }
//! ```

mod options;
mod tcp_listener;
mod tcp_stream;
mod udp_socket;

pub use crate::socket::Readiness;
pub use tcp_listener::{BACKLOG, Incoming, TcpListener};
pub use tcp_stream::TcpStream;
pub use udp_socket::UdpSocket;

/// The errors of std's `Shutdown` and addresses are used as they are.
pub use std::net::{Shutdown, SocketAddr, ToSocketAddrs};

use std::io;

/// Tries each of the addresses a caller's argument stands for, as the standard library does: the last error counts.
fn each_address<A: ToSocketAddrs, T>(
    addresses: A,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = None;
    for address in addresses.to_socket_addrs()? {
        match attempt(address) {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
    }
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "expected at least one address, got none");
    Err(last.unwrap_or_else(none))
}
