//! A thread that waits. Its waker may be registered in any number of places and called any number of times, by any
//! thread, late or for no reason; a call between the thread's look and its sleep keeps it from sleeping.

use crate::device::Alarm;
use crate::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

thread_local! {
    static CURRENT: Parker = Parker::new();
}

/// Runs `work` with the parker of the calling thread.
pub(super) fn with_current<T>(work: impl FnOnce(&Parker) -> T) -> T {
    CURRENT.with(work)
}

/// See the module's text.
pub(crate) struct Parker {
    waiter: Arc<Waiter>,
    waker: Waker,
}

/// What a waker holds on to.
struct Waiter {
    thread: Thread,
    called: AtomicBool,
    /// The alarm it sleeps by while it takes the turns of a stack.
    alarm: Mutex<Option<Alarm>>,
}

impl Wake for Waiter {
    fn wake(self: Arc<Waiter>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Waiter>) {
        if self.called.swap(true, Ordering::SeqCst) || self.thread.id() == current() {
            // Called already, or by itself: it is awake, and looks before it sleeps.
            return;
        }
        self.thread.unpark();
        if let Some(alarm) = &*lock(&self.alarm) {
            alarm.ring();
        }
    }
}

/// The calling thread, without touching the count of its handle's holders each time.
fn current() -> ThreadId {
    thread_local! {
        static ID: ThreadId = thread::current().id();
    }
    ID.with(|id| *id)
}

impl Parker {
    fn new() -> Parker {
        let waiter = Waiter { thread: thread::current(), called: AtomicBool::new(false), alarm: Mutex::new(None) };
        let waiter = Arc::new(waiter);
        Parker { waker: Waker::from(Arc::clone(&waiter)), waiter }
    }

    /// What others call.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Forgets the calls so far; done before the look.
    pub fn rest(&self) {
        self.waiter.called.store(false, Ordering::SeqCst);
    }

    /// Whether it was called since it rested.
    pub fn is_called(&self) -> bool {
        self.waiter.called.load(Ordering::SeqCst)
    }

    /// Looks for a call for as long as `time`; says whether one came.
    pub fn spin(&self, time: Duration) -> bool {
        if !time.is_zero() {
            let start = Instant::now();
            while start.elapsed() < time {
                if self.is_called() {
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        self.is_called()
    }

    /// Sleeps until it is called or the deadline passes.
    pub fn park(&self, deadline: Option<Instant>) {
        while !self.is_called() {
            match deadline {
                None => thread::park(),
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => thread::park_timeout(left),
                    _ => return,
                },
            }
        }
    }

    /// While it takes the turns of a stack it sleeps by that stack's alarm, which a call rings.
    pub fn sleeps_by(&self, alarm: Option<Alarm>) {
        *lock(&self.waiter.alarm) = alarm;
    }
}
