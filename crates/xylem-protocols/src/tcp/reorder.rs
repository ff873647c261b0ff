//! The reorder queue: data that arrived too early, sorted, without overlaps, bounded in pieces and in bytes of buffers.
//! Neighbours are joined up to 64 KB, so that a hole in a large window costs few pieces; a small message in a large
//! buffer is copied into one of its size.

use xylem_core::{Message, SharedBuffer, Slice};
use xylem_wire::SequenceNumber;

/// Neighbours are joined up to so many bytes: joined further, taking bytes off their front would cost too much.
const JOINED_MAX: usize = 65_536;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Reorder {
    pieces: Vec<Piece>,
    /// Payload bytes in it.
    bytes: u32,
    /// Bytes of buffers it keeps alive.
    capacity: usize,
}

#[derive(Debug)]
struct Piece {
    start: SequenceNumber,
    message: Message,
    capacity: usize,
}

impl Piece {
    fn end(&self) -> SequenceNumber {
        self.start + self.message.len() as u32
    }
}

/// There is no room for more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Reorder {
    /// Payload bytes in it.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes the message's bytes, which begin at `start`, as far as they are not there yet. `Ok(false)`: all were.
    ///
    /// # Errors
    /// [`Full`] beyond `pieces_max` pieces or `capacity_max` bytes of buffers.
    pub fn insert(
        &mut self,
        mut start: SequenceNumber,
        message: &mut Message,
        pieces_max: usize,
        capacity_max: usize,
    ) -> Result<bool, Full> {
        let mut rest = std::mem::take(message);
        let mut is_new = false;
        while !rest.is_empty() {
            // Everything before `at` ends before our first byte, or with it.
            let at = self.pieces.partition_point(|piece| piece.end().is_at_or_before(start));
            let gap = match self.pieces.get(at) {
                Some(piece) if piece.start.is_at_or_before(start) => {
                    let known = (piece.end().since(start) as usize).min(rest.len());
                    rest.trim_front(known);
                    start += known as u32;
                    continue;
                }
                Some(piece) => (piece.start.since(start) as usize).min(rest.len()),
                None => rest.len(),
            };
            let behind = if gap < rest.len() { rest.split_off(gap) } else { Message::default() };
            self.place(at, start, rest, pieces_max, capacity_max)?;
            start += gap as u32;
            rest = behind;
            is_new = true;
        }
        Ok(is_new)
    }

    /// Puts bytes that overlap with nothing in front of piece number `at`.
    fn place(
        &mut self,
        at: usize,
        start: SequenceNumber,
        message: Message,
        pieces_max: usize,
        capacity_max: usize,
    ) -> Result<(), Full> {
        let message = compact(message);
        let capacity = message.capacity();
        if self.capacity + capacity > capacity_max {
            return Err(Full);
        }
        let length = message.len();
        let count = self.pieces.len();
        let joins = at.checked_sub(1).map(|before| &mut self.pieces[before]).filter(|piece| {
            piece.end() == start
                && piece.message.len() + length <= JOINED_MAX
                && piece.message.attributes.urgent == message.attributes.urgent
        });
        match joins {
            Some(piece) => {
                piece.message.append(message);
                piece.capacity += capacity;
            }
            None if count >= pieces_max => return Err(Full),
            None => self.pieces.insert(at, Piece { start, message, capacity }),
        }
        self.bytes += length as u32;
        self.capacity += capacity;
        Ok(())
    }

    /// The next piece if it begins at or before `next`, without what lies before that: an empty message if that is all
    /// of it.
    pub fn take(&mut self, next: SequenceNumber) -> Option<Message> {
        if !self.is_ready(next) {
            return None;
        }
        let mut piece = self.pieces.remove(0);
        self.bytes -= piece.message.len() as u32;
        self.capacity -= piece.capacity;
        // It begins at or before `next`, so the distance is not negative.
        let known = (next.since(piece.start) as usize).min(piece.message.len());
        piece.message.trim_front(known);
        Some(piece.message)
    }

    /// Whether the first piece begins at or before `next`.
    pub fn is_ready(&self, next: SequenceNumber) -> bool {
        self.pieces.first().is_some_and(|piece| piece.start.is_at_or_before(next))
    }

    /// The run of bytes without a hole in which `number` stands: its first number, and the one behind its last.
    pub fn run_around(&self, number: SequenceNumber) -> Option<(SequenceNumber, SequenceNumber)> {
        let at = self.pieces.partition_point(|piece| piece.end().is_at_or_before(number));
        let holder = self.pieces.get(at).filter(|piece| piece.start.is_at_or_before(number))?;
        let (mut left, mut right) = (holder.start, holder.end());
        for piece in self.pieces[..at].iter().rev() {
            if piece.end() != left {
                break;
            }
            left = piece.start;
        }
        for piece in &self.pieces[at + 1..] {
            if piece.start != right {
                break;
            }
            right = piece.end();
        }
        Some((left, right))
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        *self = Reorder::default();
    }

    /// Gives back what memory an empty queue still holds.
    pub fn shrink(&mut self) {
        if self.pieces.is_empty() {
            self.pieces = Vec::new();
        }
    }
}

/// The message, in a buffer of its size if it would keep more than twice its bytes alive.
pub(super) fn compact(message: Message) -> Message {
    if message.capacity() <= 2 * message.len() + xylem_core::HEADROOM {
        return message;
    }
    let mut buffer = xylem_core::Buffer::unpooled(message.len());
    message.copy_to(&mut buffer);
    let buffer: SharedBuffer = buffer.share();
    let length = buffer.len();
    let mut compact = Message::default();
    compact.attributes = message.attributes.clone();
    compact.append_slice(Slice::new(buffer, 0, length));
    compact
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Random;

    /// Against the obvious model: a map of bytes. Random overlapping pieces over the wrap of the numbers.
    #[test]
    fn whatever_comes_early_comes_out_in_order_once() {
        for seed in 0..300 {
            let mut random = Random::seeded(seed);
            let base = SequenceNumber(u32::MAX - 1000);
            let mut queue = Reorder::default();
            let mut known = vec![false; 3000];
            for _ in 0..random.below(40) {
                let (at, length) = (1 + random.below(2000) as usize, 1 + random.below(500) as usize);
                let bytes: Vec<u8> = (at..at + length).map(|place| place as u8).collect();
                let expect_new = known[at..at + length].iter().any(|known| !known);
                let inserted = queue.insert(base + at as u32, &mut Message::from_bytes(&bytes), 1000, usize::MAX);
                assert_eq!(inserted, Ok(expect_new), "seed {seed}");
                known[at..at + length].fill(true);
            }
            assert_eq!(queue.bytes() as usize, known.iter().filter(|known| **known).count(), "seed {seed}");
            let mut next = 0;
            while next < known.len() {
                match queue.take(base + next as u32) {
                    Some(message) => {
                        assert!(!message.is_empty(), "nothing overlaps");
                        let bytes = message.to_vec();
                        let expected: Vec<u8> = (next..next + bytes.len()).map(|place| place as u8).collect();
                        assert_eq!(bytes, expected, "seed {seed}");
                        assert!(known[next..next + bytes.len()].iter().all(|known| *known));
                        next += bytes.len();
                    }
                    None => {
                        assert!(!known[next], "seed {seed}: byte {next} is there and did not come out");
                        next += 1;
                    }
                }
            }
            assert!(queue.is_empty() && queue.bytes() == 0 && queue.capacity == 0);
        }
    }

    #[test]
    fn it_is_bounded_in_pieces_and_in_memory() {
        let mut queue = Reorder::default();
        let mut put = |at: u32, bytes: usize, pieces, capacity| {
            queue.insert(SequenceNumber(at), &mut Message::from_bytes(&vec![0; bytes]), pieces, capacity)
        };
        assert_eq!(put(10, 5, 2, 10_000), Ok(true));
        assert_eq!(put(20, 5, 2, 10_000), Ok(true));
        assert_eq!(put(30, 5, 2, 10_000), Err(Full), "a third piece");
        assert_eq!(put(25, 5, 2, 10_000), Ok(true), "a neighbour is no new piece");
        assert_eq!(put(100, 9000, 9, 9000), Err(Full), "more memory than allowed");
        assert_eq!(put(10, 20, 9, 10_000), Ok(true), "the holes between are filled");
    }

    #[test]
    fn a_small_message_does_not_keep_a_large_buffer() {
        let mut queue = Reorder::default();
        let buffer = xylem_core::Buffer::unpooled(65_536);
        queue.insert(SequenceNumber(5), &mut Message::from_buffer(buffer, 0, 10), 9, 1000).unwrap();
        assert_eq!(queue.capacity, 10);
    }
}
