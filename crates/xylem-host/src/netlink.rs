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
    pub(crate) fn order(&mut self, request: Request) -> io::Result<()> {
        self.ask(request).map(drop)
    }

    /// Asks, and waits for the kernel's word: the answer's fixed part and attributes, empty if the word was only "done".
    pub(crate) fn ask(&mut self, mut request: Request) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = request.bytes.len() as u32;
        request.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        request.bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        self.socket.write_all(&request.bytes)?;
        let mut bytes = [0u8; ANSWER_BYTES_MAX];
        let mut found = Vec::new();
        loop {
            let count = self.socket.read(&mut bytes)?;
            if let Some(outcome) = outcome(&bytes[..count], self.sequence) {
                return outcome.map(|()| found);
            }
            if let Some(answer) = answer(&bytes[..count], self.sequence) {
                found = answer.to_vec();
            }
        }
    }
}

/// What stands behind the header of the answer to the question numbered `sequence`, if this is one.
fn answer(bytes: &[u8], sequence: u32) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = word(0)? as usize;
    (word(8)? == sequence).then(|| bytes.get(HEADER_BYTES..length)).flatten()
}

/// The value of the attribute of this kind among `attributes`.
pub(crate) fn value_of(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(0..2)?.try_into().ok()?));
        let found = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        let value = attributes.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
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
        pad(&mut bytes);
        Request { bytes }
    }

    /// The order with an attribute more.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Request {
        attribute(&mut self.bytes, kind, value);
        self
    }
}

/// Appends an attribute to `bytes`, which may be the value of another: length, kind, value, padding.
pub(crate) fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = (4 + value.len()) as u16;
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    pad(bytes);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
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

    #[test]
    fn attributes_are_found_and_hostile_lengths_end_the_search() {
        let mut bytes = Vec::new();
        attribute(&mut bytes, 9, &[1, 2, 3]);
        attribute(&mut bytes, 10, &[4]);
        assert_eq!((value_of(&bytes, 9), value_of(&bytes, 10)), (Some(&[1, 2, 3][..]), Some(&[4][..])));
        assert_eq!(value_of(&bytes, 11), None);
        for length in [0u16, 1, 3, 4, 200] {
            bytes[..2].copy_from_slice(&length.to_ne_bytes());
            let _ends = value_of(&bytes, 10);
        }
    }
}
