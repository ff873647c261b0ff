//! Orders to the kernel's routing tables: addresses, routes, neighbours. Route netlink (rtnetlink(7)) because the older
//! ioctls know one address an interface and no IPv6. A request is a header, a fixed part and attributes, each padded to
//! four bytes; the answer is an error number, zero for done.

use crate::system::socket;
use std::fs::File;
use std::io::{self, Read, Write};

/// The bytes of `struct nlmsghdr`: length, kind, flags, sequence number, port.
const HEADER_BYTES: usize = 16;

/// The most bytes of an answer we look at: an acknowledgement is 36, and one that quotes our request at most 400.
const ANSWER_BYTES_MAX: usize = 8192;

/// A socket on which orders are given one after the other.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: File,
    sequence: u32,
}

impl Netlink {
    /// A socket to the network namespace of the calling thread, for good.
    pub(crate) fn open() -> io::Result<Netlink> {
        Ok(Netlink { socket: socket::route_netlink_socket()?, sequence: 0 })
    }

    /// Gives the order and waits for the kernel's word on it.
    pub(crate) fn order(&mut self, mut request: Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = request.bytes.len() as u32;
        request.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        request.bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        self.socket.write_all(&request.bytes)?;
        let mut answer = [0u8; ANSWER_BYTES_MAX];
        loop {
            let count = self.socket.read(&mut answer)?;
            if let Some(outcome) = outcome(&answer[..count], self.sequence) {
                return outcome;
            }
        }
    }
}

/// The word on the order numbered `sequence`, if this answer is that.
fn outcome(answer: &[u8], sequence: u32) -> Option<io::Result<()>> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if i32::from(kind) != libc::NLMSG_ERROR || word(8)? != sequence {
        return None;
    }
    match word(HEADER_BYTES)? as i32 {
        0 => Some(Ok(())),
        error => Some(Err(io::Error::from_raw_os_error(error.saturating_neg()))),
    }
}

/// An order in the making.
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// An order of this kind (`RTM_*`) with these flags (`NLM_F_*`, beyond asking for an acknowledgement) and the fixed
    /// part its kind wants.
    pub(crate) fn new(kind: u16, flags: i32, fixed: &[u8]) -> Request {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        let mut request = Request { bytes };
        request.pad();
        request
    }

    /// The order with an attribute more.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Request {
        let length = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.pad();
        self
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_their_lengths_are_not() {
        let request = Request::new(7, 0, &[1, 2, 3, 4]).with(9, &[5, 6, 7, 8, 9, 10]).with(10, &[]);
        assert_eq!(request.bytes.len(), HEADER_BYTES + 4 + 12 + 4);
        let attribute = &request.bytes[HEADER_BYTES + 4..];
        assert_eq!(attribute[..2], 10u16.to_ne_bytes());
        assert_eq!(attribute[2..4], 9u16.to_ne_bytes());
        assert_eq!(attribute[4..12], [5, 6, 7, 8, 9, 10, 0, 0]);
    }

    #[test]
    fn answers_to_other_orders_and_short_ones_are_passed_over() {
        let mut answer = [0u8; 36];
        answer[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        answer[8..12].copy_from_slice(&5u32.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
        let error = outcome(&answer, 5).expect("it is ours").expect_err("it is an error");
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
        assert!(outcome(&answer, 6).is_none());
        for short in 0..20 {
            assert!(outcome(&answer[..short], 5).is_none());
        }
    }
}
