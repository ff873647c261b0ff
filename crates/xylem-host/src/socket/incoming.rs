//! What a connection has received and nobody has read: messages, in order. There are two queues, one that the stack
//! fills and one that readers empty, exchanged when the readers' is empty: so the stack never waits for a reader's copy.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use xylem_core::Message;

/// The readers' side.
#[derive(Default)]
pub(super) struct Incoming {
    queue: VecDeque<Message>,
    /// Bytes read for which the path has not got credit yet.
    owed: usize,
}

/// Credit that is put off: so many bytes read are worth a step of the path at once. It is less than any window that is
/// worth having, so putting it off closes none; and a reader that finds nothing pays its debts before it waits.
const CREDIT_LATER_MAX: usize = 2048;

impl Incoming {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.queue.iter().map(Message::len).sum()
    }

    /// Copies as much as there is room for; `exchange` swaps the empty queue for the stack's. Returns how much.
    pub fn read(&mut self, into: &mut [IoSliceMut<'_>], exchange: impl Fn(&mut VecDeque<Message>)) -> usize {
        let mut total = 0;
        for slice in into {
            let mut done = 0;
            while done < slice.len() && self.refill(&exchange) {
                let front = &mut self.queue[0];
                let count = front.copy_to(&mut slice[done..]);
                done += count;
                if count == front.len() {
                    self.queue.pop_front();
                } else {
                    front.trim_front(count);
                }
            }
            total += done;
            if done < slice.len() {
                break;
            }
        }
        self.owed += total;
        total
    }

    /// Copies what is there without taking it; `append` moves what the stack's queue has behind the readers'.
    pub fn peek(&mut self, into: &mut [u8], append: impl FnOnce(&mut VecDeque<Message>)) -> usize {
        append(&mut self.queue);
        let mut done = 0;
        for message in &self.queue {
            if done == into.len() {
                break;
            }
            done += message.copy_to(&mut into[done..]);
        }
        done
    }

    /// Makes sure that the queue has a message, if there is one.
    fn refill(&mut self, exchange: impl Fn(&mut VecDeque<Message>)) -> bool {
        if self.queue.is_empty() {
            exchange(&mut self.queue);
        }
        !self.queue.is_empty()
    }

    /// The credit to give now, if any; all of it if the reader is about to wait.
    pub fn credit(&mut self, waits: bool) -> Option<usize> {
        let due = self.owed > 0 && (waits || self.owed >= CREDIT_LATER_MAX);
        due.then(|| std::mem::take(&mut self.owed))
    }

    /// Gives back the memory of an empty queue.
    pub fn shrink(&mut self) {
        self.queue.shrink_to_fit();
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Incoming::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn bytes_come_in_order_through_both_queues_and_pieces() {
        let arrived = RefCell::new(VecDeque::from([Message::from_bytes(b"one"), Message::from_bytes(b"two")]));
        let exchange = |queue: &mut VecDeque<Message>| std::mem::swap(queue, &mut arrived.borrow_mut());
        let mut incoming = Incoming::default();
        let mut seen = [0; 8];
        assert_eq!(incoming.peek(&mut seen, |queue| queue.append(&mut arrived.borrow_mut())), 6);
        let (mut a, mut b) = ([0; 2], [0; 3]);
        assert_eq!(incoming.read(&mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)], exchange), 5);
        assert_eq!((&a, &b), (b"on", b"etw"));
        arrived.borrow_mut().push_back(Message::from_bytes(b"three"));
        assert_eq!(incoming.read(&mut [IoSliceMut::new(&mut seen)], exchange), 6);
        assert_eq!(&seen[..6], b"othree");
        assert_eq!(incoming.credit(false), None);
        assert_eq!(incoming.credit(true), Some(11));
        assert_eq!(incoming.credit(true), None);
    }
}
