//! The send queue: what the application pushed and the peer has not acknowledged, as a list of slices of shared buffers.
//! Sending shares slices and copies nothing; only a small message may be copied behind the last slice, so that a stream
//! of small writes fills one buffer instead of many. Its budget counts the buffers kept alive, not their payload.

use std::collections::VecDeque;
use xylem_core::{Message, Slice};

/// Messages up to so many bytes are copied behind the last slice where there is room: about what a copy costs less than
/// another slice in every list that follows.
const COPY_MAX: usize = 512;

/// An empty queue keeps the memory of so many chunks for the next message.
const CHUNKS_KEPT_MAX: usize = 64;

/// See the module's text. Positions count bytes since the queue began.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    chunks: VecDeque<Chunk>,
    /// Position of the first byte that is not acknowledged.
    start: u64,
    /// Position behind the last byte.
    end: u64,
    /// Bytes of buffers that the chunks keep alive.
    capacity: usize,
}

#[derive(Debug)]
struct Chunk {
    slice: Slice,
    /// Position of its first byte.
    at: u64,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.at + self.slice.len() as u64
    }
}

impl Queue {
    /// Bytes in it.
    pub fn len(&self) -> u32 {
        // The budget is below 2^30, and one message above it at most.
        (self.end - self.start) as u32
    }

    /// Bytes of buffers it keeps alive: what the budget counts.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes the message's bytes behind the others, and leaves an empty message.
    pub fn append(&mut self, message: &mut Message) {
        let length = message.len();
        if length <= COPY_MAX && self.end > self.start {
            self.copy_behind_last(message);
        }
        for slice in std::mem::take(message).into_slices().filter(|slice| !slice.is_empty()) {
            let chunk = Chunk { at: self.end, slice };
            self.end = chunk.end();
            self.capacity += chunk.slice.capacity();
            if self.chunks.capacity() == 0 {
                // Where requests and responses alternate there is never more than one.
                self.chunks.reserve_exact(1);
            }
            self.chunks.push_back(chunk);
        }
    }

    /// Copies as much of the message as fits behind the last slice, and takes it off the message's front.
    fn copy_behind_last(&mut self, message: &mut Message) {
        let Some(last) = self.chunks.back_mut() else { return };
        let mut copied = 0;
        for piece in message.slices() {
            let count = last.slice.extend(piece);
            copied += count;
            if count < piece.len() {
                break;
            }
        }
        self.end += copied as u64;
        message.trim_front(copied);
    }

    /// Shares `length` bytes, `offset` bytes behind the first unacknowledged one, to the end of `message`.
    ///
    /// # Panics
    /// If there are fewer: whoever plans a segment knows what is queued.
    pub fn share(&self, message: &mut Message, offset: u32, length: u32) {
        assert!(offset + length <= self.len(), "{offset}+{length} bytes of a queue of {}", self.len());
        let from = self.start + u64::from(offset);
        let to = from + u64::from(length);
        let first = self.chunks.partition_point(|chunk| chunk.end() <= from);
        for chunk in self.chunks.range(first..) {
            if chunk.at >= to {
                break;
            }
            let begin = from.saturating_sub(chunk.at) as usize;
            let end = (to.min(chunk.end()) - chunk.at) as usize;
            message.append_slice(chunk.slice.part(begin, end));
        }
    }

    /// Lets go of the first `bytes`: they are acknowledged.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn release(&mut self, bytes: u32) {
        assert!(bytes <= self.len(), "{bytes} bytes acknowledged of a queue of {}", self.len());
        self.start += u64::from(bytes);
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= self.start) {
            let chunk = self.chunks.pop_front();
            self.capacity -= chunk.map_or(0, |chunk| chunk.slice.capacity());
        }
        if self.chunks.is_empty() && self.chunks.capacity() > CHUNKS_KEPT_MAX {
            self.shrink();
        }
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        *self = Queue::default();
    }

    /// Gives back what memory an empty queue still holds.
    pub fn shrink(&mut self) {
        if self.chunks.is_empty() {
            self.chunks = VecDeque::new();
        }
    }

    /// All bytes in it, for a record.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut message = Message::default();
        self.share(&mut message, 0, self.len());
        message.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::{Pool, Random};

    /// Against the obvious model, a vector: random appends, shares and releases.
    #[test]
    fn a_queue_is_its_bytes() {
        for seed in 0..200 {
            let mut random = Random::seeded(seed);
            let pool = Pool::new(4096, 8);
            let (mut queue, mut model, mut next) = (Queue::default(), Vec::new(), 0u8);
            for _ in 0..60 {
                let size = if random.chance_per_million(500_000) { 20 } else { 3000 };
                let bytes: Vec<u8> = (0..random.below(size))
                    .map(|_| {
                        next = next.wrapping_add(1);
                        next
                    })
                    .collect();
                let mut message = Message::new(&pool).unwrap();
                let room = 2048 - xylem_core::HEADROOM;
                if bytes.len() <= room {
                    let mut buffer = pool.take(2048).unwrap();
                    buffer[..bytes.len()].copy_from_slice(&bytes);
                    message.append(Message::from_buffer(buffer, 0, bytes.len()));
                } else {
                    message.append(Message::from_bytes(&bytes));
                }
                queue.append(&mut message);
                assert!(message.is_empty());
                model.extend(bytes);
                let offset = random.below(model.len() as u64 + 1) as usize;
                let length = random.below((model.len() - offset) as u64 + 1) as usize;
                let mut shared = Message::default();
                queue.share(&mut shared, offset as u32, length as u32);
                assert_eq!(shared.to_vec(), &model[offset..offset + length], "seed {seed}");
                let released = random.below(model.len() as u64 + 1) as usize;
                if random.chance_per_million(300_000) {
                    queue.release(released as u32);
                    model.drain(..released);
                }
                assert_eq!(queue.len() as usize, model.len());
                assert!(queue.capacity() >= model.len());
            }
            queue.release(queue.len());
            assert_eq!(queue.capacity(), 0, "seed {seed}: an empty queue keeps a buffer alive");
            assert_eq!(pool.held(), (0, 0));
        }
    }

    #[test]
    fn small_messages_share_a_buffer_while_nobody_else_holds_it() {
        let pool = Pool::new(8, 1);
        let mut queue = Queue::default();
        let small = || {
            let mut buffer = pool.take(100).unwrap();
            buffer[..5].copy_from_slice(b"hello");
            Message::from_buffer(buffer, 0, 5)
        };
        for _ in 0..4 {
            queue.append(&mut small());
        }
        assert_eq!((queue.len(), queue.capacity()), (20, 2048));
        let mut in_flight = Message::default();
        queue.share(&mut in_flight, 0, 20);
        queue.append(&mut small());
        assert_eq!((queue.len(), queue.capacity()), (25, 4096), "a buffer in flight is not written to");
        assert_eq!(queue.to_vec(), b"hellohellohellohellohello");
    }
}
