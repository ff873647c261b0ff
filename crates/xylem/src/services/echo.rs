//! The echo service (RFC 862): over a stream every byte comes back in order, over datagrams each datagram does. What a
//! slow client does not take stays at most one buffer, and nothing more is read from it until it does.

use super::{Conversation, DatagramService, Progress, SCRATCH_BYTES, Service, TURN_BYTES, without_waiting};
use crate::net::Stream;
use std::io;
use std::net::SocketAddr;

/// The service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl Service for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn converse(&self, _peer: SocketAddr) -> Box<dyn Conversation> {
        Box::new(Echoing { owed: Vec::new(), paid: 0 })
    }
}

impl DatagramService for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn answer(&self, _scratch: &mut [u8], length: usize) -> Option<usize> {
        Some(length)
    }
}

/// One client of the echo service.
struct Echoing {
    /// What was read and could not be sent at once; empty, without memory, for a client that reads.
    owed: Vec<u8>,
    /// How many of these have been sent since.
    paid: usize,
}

impl Echoing {
    /// Sends what is owed; false if the client does not take it now.
    fn pay(&mut self, stream: &mut dyn Stream) -> io::Result<bool> {
        while self.paid < self.owed.len() {
            match without_waiting(|| stream.write(&self.owed[self.paid..]))? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(count) => self.paid += count,
                None => return Ok(false),
            }
        }
        (self.owed, self.paid) = (Vec::new(), 0);
        Ok(true)
    }
}

impl Conversation for Echoing {
    fn advance(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
        let mut moved = 0;
        while moved < TURN_BYTES {
            if !self.pay(stream)? {
                return Ok(Progress::Waiting);
            }
            let read = match without_waiting(|| stream.read(scratch))? {
                None => return Ok(Progress::Waiting),
                Some(0) => return Ok(Progress::Over),
                Some(count) => count,
            };
            debug_assert!(read <= SCRATCH_BYTES, "a read of {read} bytes into a buffer of {SCRATCH_BYTES}");
            let mut sent = 0;
            while sent < read {
                match without_waiting(|| stream.write(&scratch[sent..read]))? {
                    Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Some(count) => sent += count,
                    None => {
                        self.owed.extend_from_slice(&scratch[sent..read]);
                        return Ok(Progress::Waiting);
                    }
                }
            }
            moved += read;
        }
        Ok(Progress::Again)
    }
}
