//! A message: headers and data moving through sessions. It is a cheap handle: headers are pushed into and popped from
//! the head buffer that it owns, the rest is a list of slices of shared buffers, and splitting, joining and trimming
//! copy nothing. A small attribute block travels with it.

use crate::attributes::{Attributes, Checksum};
use crate::pool::{Buffer, Pool, SharedBuffer};
use smallvec::SmallVec;
use xylem_wire::Sum;
use xylem_wire::{Header, Malformed};

/// Room kept in front of data for the headers of a whole stack: Ethernet with a tag, IPv6, TCP with all its options,
/// and some for what stands above (RFC 9293 allows TCP 60 bytes).
pub const HEADROOM: usize = 128;

/// A part of a shared buffer, with the checksum of all of it once somebody has summed it.
#[derive(Clone, Debug)]
pub struct Slice {
    buffer: SharedBuffer,
    start: u32,
    end: u32,
    sum: Option<Sum>,
}

impl Slice {
    /// `buffer[start..end]`.
    pub fn new(buffer: SharedBuffer, start: usize, end: usize) -> Slice {
        assert!(start <= end && end <= buffer.len(), "the slice {start}..{end} is not within {}", buffer.len());
        Slice { buffer, start: start as u32, end: end as u32, sum: None }
    }

    /// The same slice, with the sum of its bytes that the copy into it already yielded.
    pub fn with_sum(mut self, sum: Sum) -> Slice {
        self.sum = Some(sum);
        self
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    /// How many bytes of memory it keeps alive.
    pub fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// The Internet checksum's sum of its bytes, computed at most once for an uncut slice.
    pub fn sum(&self) -> Sum {
        self.sum.unwrap_or_else(|| Sum::of(self.bytes()))
    }

    /// `self[from..to]`, sharing the buffer.
    pub fn part(&self, from: usize, to: usize) -> Slice {
        assert!(from <= to && to <= self.len(), "the part {from}..{to} is not within {}", self.len());
        let whole = from == 0 && to == self.len();
        Slice {
            buffer: self.buffer.clone(),
            start: self.start + from as u32,
            end: self.start + to as u32,
            sum: if whole { self.sum } else { None },
        }
    }

    /// Appends as many of `bytes` as the buffer has room for behind this slice, if nobody else holds it. Returns how
    /// many. So a stream of small writes fills one buffer instead of many.
    pub fn extend(&mut self, bytes: &[u8]) -> usize {
        let end = self.end as usize;
        let Some(room) = self.buffer.writable().and_then(|all| all.get_mut(end..)) else { return 0 };
        let count = room.len().min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.end += count as u32;
        if count > 0 {
            self.sum = None;
        }
        count
    }
}

#[derive(Debug)]
struct Head {
    buffer: Buffer,
    start: u32,
    end: u32,
}

impl Head {
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

/// Headers and data on their way through sessions. See the module's text.
#[derive(Debug, Default)]
pub struct Message {
    head: Option<Head>,
    body: SmallVec<[Slice; 2]>,
    body_length: usize,
    /// What travels with the bytes.
    pub attributes: Attributes,
}

impl Message {
    /// An empty message with [`HEADROOM`] bytes for headers, or `None` if the pool is empty.
    pub fn new(pool: &Pool) -> Option<Message> {
        Some(Message::from_buffer(pool.take(HEADROOM)?, HEADROOM, HEADROOM))
    }

    /// A message of `bytes`, outside any pool: for the control plane and tests.
    pub fn from_bytes(bytes: &[u8]) -> Message {
        let mut buffer = Buffer::unpooled(HEADROOM + bytes.len());
        buffer[HEADROOM..].copy_from_slice(bytes);
        Message::from_buffer(buffer, HEADROOM, HEADROOM + bytes.len())
    }

    /// A message of `buffer[start..end]`; what lies before `start` is headroom.
    pub fn from_buffer(buffer: Buffer, start: usize, end: usize) -> Message {
        assert!(start <= end && end <= buffer.len(), "the message {start}..{end} is not within {}", buffer.len());
        Message { head: Some(Head { buffer, start: start as u32, end: end as u32 }), ..Message::default() }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.head.as_ref().map_or(0, Head::len) + self.body_length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes of buffers it keeps alive: what budgets count.
    pub fn capacity(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.buffer.len()) + self.body.iter().map(Slice::capacity).sum::<usize>()
    }

    /// Its bytes, piece by piece, front to back. No piece is empty.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let head = self.head.as_ref().map(Head::bytes);
        head.into_iter().chain(self.body.iter().map(Slice::bytes)).filter(|bytes| !bytes.is_empty())
    }

    /// Its bytes in a new vector: for tests, records and prints.
    pub fn to_vec(&self) -> Vec<u8> {
        self.slices().flatten().copied().collect()
    }

    /// Copies as much of it as `into` has room for; returns how much.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        let mut done = 0;
        for piece in self.slices() {
            let count = piece.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&piece[..count]);
            done += count;
        }
        done
    }

    /// The first `count` bytes in one piece (copied together first if they are not), or `None` if there are fewer.
    pub fn front(&mut self, count: usize) -> Option<&[u8]> {
        if self.head.as_ref().map_or(0, Head::len) < count {
            self.pull_up(count)?;
        }
        Some(self.head.as_ref().map_or(&[], |head| &head.bytes()[..count]))
    }

    /// The first `count` bytes for writing, as [`front`](Message::front). Sums kept of shared bytes stay true, since
    /// only the message's own head is handed out.
    pub fn front_mut(&mut self, count: usize) -> Option<&mut [u8]> {
        self.front(count)?;
        match &mut self.head {
            None => Some(&mut []),
            Some(head) => {
                let start = head.start as usize;
                Some(&mut head.buffer[start..start + count])
            }
        }
    }

    /// The header that stands in front, left where it is.
    pub fn header<H: Header>(&mut self) -> Result<H, Malformed> {
        let length = self.len();
        let ready = self.head.as_ref().map_or(0, Head::len);
        if ready < H::LEN && length > ready {
            self.pull_up(H::LEN.min(length));
        }
        let header = H::parse(self.head.as_ref().map_or(&[], Head::bytes));
        match header {
            // The variable part may lie beyond the head: the fixed part has said how long it is.
            Err(Malformed::Short { expected, .. } | Malformed::Length { got: expected, .. })
                if expected <= length && expected > ready =>
            {
                self.pull_up(expected);
                H::parse(self.head.as_ref().map_or(&[], Head::bytes))
            }
            other => other,
        }
    }

    /// Takes the header in front away, its variable part with it.
    pub fn pop_header<H: Header>(&mut self) -> Result<H, Malformed> {
        let header = self.header::<H>()?;
        self.trim_front(header.header_length());
        Ok(header)
    }

    /// Puts `header` in front.
    pub fn push_header<H: Header>(&mut self, header: &H) {
        header.build(self.prepend(H::LEN));
    }

    /// Makes room for `count` bytes in front and hands them out to be filled; they hold whatever was there.
    ///
    /// # Panics
    /// If `count` exceeds [`HEADROOM`]: no header is that long.
    pub fn prepend(&mut self, count: usize) -> &mut [u8] {
        assert!(count <= HEADROOM, "a header of {count} bytes; the headroom is {HEADROOM}");
        if self.head.as_ref().is_none_or(|head| (head.start as usize) < count) {
            self.freeze();
            self.head = Some(Head { buffer: Buffer::unpooled(HEADROOM), start: HEADROOM as u32, end: HEADROOM as u32 });
        }
        let head = self.head.as_mut().expect("made above when it was missing");
        head.start -= count as u32;
        let start = head.start as usize;
        &mut head.buffer[start..start + count]
    }

    /// Drops the first `count` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn trim_front(&mut self, mut count: usize) {
        assert!(count <= self.len(), "{count} bytes to trim from a message of {}", self.len());
        if let Some(head) = &mut self.head {
            let here = count.min(head.len());
            head.start += here as u32;
            count -= here;
        }
        self.body_length -= count;
        while count > 0 {
            let first = &mut self.body[0];
            if first.len() <= count {
                count -= first.len();
                self.body.remove(0);
            } else {
                *first = first.part(count, first.len());
                count = 0;
            }
        }
    }

    /// Keeps the first `length` bytes; does nothing if there are no more.
    pub fn truncate(&mut self, length: usize) {
        let head = self.head.as_ref().map_or(0, Head::len);
        if length <= head {
            if let Some(head) = &mut self.head {
                head.end = head.start + length as u32;
            }
            self.body.clear();
            self.body_length = 0;
            return;
        }
        while head + self.body_length > length {
            let excess = head + self.body_length - length;
            let last = self.body.last_mut().expect("a body of some length has a slice");
            if last.len() <= excess {
                self.body_length -= last.len();
                self.body.pop();
            } else {
                *last = last.part(0, last.len() - excess);
                self.body_length -= excess;
            }
        }
    }

    /// Cuts it in two: keeps the first `at` bytes and returns the rest, which shares the buffers and the attributes.
    ///
    /// # Panics
    /// If there are fewer than `at` bytes.
    pub fn split_off(&mut self, at: usize) -> Message {
        let mut rest = self.share();
        rest.trim_front(at);
        self.truncate(at);
        rest
    }

    /// Another handle on the same bytes, with the same attributes.
    pub fn share(&mut self) -> Message {
        self.freeze();
        Message {
            head: None,
            body: self.body.clone(),
            body_length: self.body_length,
            attributes: self.attributes.clone(),
        }
    }

    /// Puts `other`'s bytes behind its own. Its own attributes stay.
    pub fn append(&mut self, mut other: Message) {
        other.freeze();
        for slice in other.body {
            self.append_slice(slice);
        }
    }

    /// Puts a slice behind its bytes.
    pub fn append_slice(&mut self, slice: Slice) {
        if !slice.is_empty() {
            self.body_length += slice.len();
            self.body.push(slice);
        }
    }

    /// Takes its bytes apart into slices.
    pub fn into_slices(mut self) -> impl Iterator<Item = Slice> {
        self.freeze();
        self.body.into_iter()
    }

    /// The sum of its bytes from offset `from` on. Sums kept with whole slices are not computed again.
    pub fn sum(&self, from: usize) -> Sum {
        let mut sum = Sum::ZERO;
        let mut at = 0; // offset of the next byte, counted from `from`
        let mut skip = from;
        let mut add = |bytes: &[u8], known: Option<Sum>, skip: &mut usize| {
            let cut = bytes.len().min(*skip);
            *skip -= cut;
            let part = if cut == 0 { known } else { None }.unwrap_or_else(|| Sum::of(&bytes[cut..]));
            sum = sum.add_at(at, part);
            at += bytes.len() - cut;
        };
        if let Some(head) = &self.head {
            add(head.bytes(), None, &mut skip);
        }
        for slice in &self.body {
            add(slice.bytes(), slice.sum, &mut skip);
        }
        assert!(skip == 0, "a sum from {from} of a message of {}", self.len());
        sum
    }

    /// Completes a partial checksum in software (what a device with checksum offload does by itself).
    pub fn complete_checksum(&mut self) {
        let Checksum::Partial { start, field } = self.attributes.checksum else { return };
        let (start, field) = (usize::from(start), usize::from(field));
        // The field holds the folded sum of the pseudo header, so the sum from `start` on includes it.
        let sum = self.sum(start).checksum();
        // A computed zero is sent as all ones, which means the same to every protocol and, in UDP, is not "none".
        let sum = if sum == 0 { 0xffff } else { sum };
        let bytes = self.front_mut(start + field + 2).expect("a partial checksum lies within its message");
        bytes[start + field..].copy_from_slice(&sum.to_be_bytes());
        self.attributes.checksum = Checksum::Verified;
    }

    /// Turns the head into the first slice of the body, so that it can be shared.
    fn freeze(&mut self) {
        let Some(head) = self.head.take() else { return };
        if head.len() > 0 {
            let slice = Slice::new(head.buffer.share(), head.start as usize, head.end as usize);
            self.body_length += slice.len();
            self.body.insert(0, slice);
        }
    }

    /// Makes the first `count` bytes contiguous and owned; `None` if there are fewer.
    fn pull_up(&mut self, count: usize) -> Option<()> {
        if self.len() < count {
            return None;
        }
        let have = self.head.as_ref().map_or(0, Head::len);
        let missing = count - have;
        let fits = self.head.as_ref().is_some_and(|head| head.end as usize + missing <= head.buffer.len());
        if !fits {
            let mut buffer = Buffer::unpooled(HEADROOM + count);
            if let Some(head) = &self.head {
                buffer[HEADROOM..HEADROOM + have].copy_from_slice(head.bytes());
            }
            self.head = Some(Head { buffer, start: HEADROOM as u32, end: (HEADROOM + have) as u32 });
        }
        let mut head = self.head.take().expect("made above when it was missing or too small");
        let mut at = head.end as usize;
        head.end += missing as u32;
        let mut left = missing;
        for slice in &self.body {
            let part = slice.len().min(left);
            head.buffer[at..at + part].copy_from_slice(&slice.bytes()[..part]);
            at += part;
            left -= part;
        }
        self.trim_front(missing);
        self.head = Some(head);
        Some(())
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
