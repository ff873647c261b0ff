//! The world of an instance whose only device leads to the fuzzer: what it sends is kept for whoever is there, and time
//! passes as the fuzzer likes.

use std::cell::RefCell;
use std::collections::VecDeque;
use xylem_core::{HEADROOM, Instant, Message, Pool, pool};
use xylem_graph::instance::{Instance, Shepherd, Wake, World};

/// Frames of the instance's that are kept; the oldest makes way.
const KEPT_MAX: usize = 256;
/// Turns at one time: far more than what is there takes.
const TURNS_MAX: usize = 1000;

/// See the module's text.
pub(super) struct Road {
    now: RefCell<Instant>,
    arrived: RefCell<Vec<Message>>,
    sent: RefCell<VecDeque<Vec<u8>>>,
    pool: Pool,
}

impl Road {
    pub fn new(pool: Pool) -> Road {
        Road { now: RefCell::default(), arrived: RefCell::default(), sent: RefCell::default(), pool }
    }

    /// A frame reaches the device, as far as there are buffers.
    pub fn frame(&self, bytes: &[u8]) {
        let Some(mut buffer) = self.pool.take((HEADROOM + bytes.len()).min(pool::LARGE)) else { return };
        let length = bytes.len().min(buffer.len() - HEADROOM);
        buffer[HEADROOM..HEADROOM + length].copy_from_slice(&bytes[..length]);
        self.arrived.borrow_mut().push(Message::from_buffer(buffer, HEADROOM, HEADROOM + length));
    }

    /// One turn, and so long later.
    pub fn pass(&self, instance: &Instance, shepherd: &mut Shepherd, nanoseconds: u64) {
        instance.turn(self, shepherd);
        self.go_on(nanoseconds);
    }

    /// Turns until nothing is left to do at this time.
    pub fn settle(&self, instance: &Instance, shepherd: &mut Shepherd) -> Wake {
        for _ in 0..TURNS_MAX {
            let wake = instance.turn(self, shepherd);
            if wake != Wake::Now && self.arrived.borrow().is_empty() {
                return wake;
            }
        }
        panic!("{TURNS_MAX} turns, and still something to do");
    }

    /// Time passes, from one thing that is due to the next.
    pub fn wait(&self, instance: &Instance, shepherd: &mut Shepherd, nanoseconds: u64) {
        let end = Instant::from_nanos(self.now.borrow().as_nanos() + nanoseconds);
        while let Wake::At(at) = self.settle(instance, shepherd) {
            if at > end {
                break;
            }
            let now = *self.now.borrow();
            *self.now.borrow_mut() = at.max(now);
        }
        *self.now.borrow_mut() = end;
        self.settle(instance, shepherd);
    }

    fn go_on(&self, nanoseconds: u64) {
        let now = self.now.borrow().as_nanos();
        *self.now.borrow_mut() = Instant::from_nanos(now + nanoseconds);
    }

    /// The next frame that the instance has sent.
    pub fn sent(&self) -> Option<Vec<u8>> {
        self.sent.borrow_mut().pop_front()
    }
}

impl World for Road {
    fn now(&self) -> Instant {
        *self.now.borrow()
    }

    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, _limit: usize) {
        arrivals.extend(self.arrived.borrow_mut().drain(..).map(|frame| (0, frame)));
    }

    fn transmit(&self, _device: u16, frame: &mut Message) -> bool {
        let mut sent = self.sent.borrow_mut();
        if sent.len() == KEPT_MAX {
            sent.pop_front();
        }
        sent.push_back(frame.to_vec());
        *frame = Message::default();
        true
    }
}
