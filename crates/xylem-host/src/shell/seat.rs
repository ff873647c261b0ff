//! The seat: whoever sits there takes the turns of a stack, one thread at a time. With a shell that has a thread of its
//! own that thread sits there for good; inline the threads that wait sit there by turns, and those that find it taken
//! are enlisted, so that one of them is called when it becomes free.

use super::parker::Parker;
use crate::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;
use xylem_graph::instance::Shepherd;

/// See the module's text.
pub(crate) struct Seat {
    shepherd: Mutex<Shepherd>,
    enlisted: Mutex<Vec<Waker>>,
    count: AtomicUsize,
}

impl Seat {
    /// A free seat, with the shepherd for whoever sits there.
    pub fn new(shepherd: Shepherd) -> Seat {
        Seat { shepherd: Mutex::new(shepherd), enlisted: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Sits down, if the seat is free.
    pub fn take(&self) -> Option<MutexGuard<'_, Shepherd>> {
        match self.shepherd.try_lock() {
            Ok(shepherd) => Some(shepherd),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sits down as soon as the seat is free.
    pub fn take_for_good(&self) -> MutexGuard<'_, Shepherd> {
        self.shepherd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_free(&self) -> bool {
        self.take().is_some()
    }

    /// Puts a waiting thread on the list.
    pub fn enlist(&self, parker: &Parker) {
        let mut enlisted = lock(&self.enlisted);
        enlisted.push(parker.waker().clone());
        self.count.store(enlisted.len(), Ordering::SeqCst);
    }

    /// Takes a thread off the list.
    pub fn strike_off(&self, parker: &Parker) {
        let mut enlisted = lock(&self.enlisted);
        enlisted.retain(|waker| !waker.will_wake(parker.waker()));
        self.count.store(enlisted.len(), Ordering::SeqCst);
    }

    /// Calls one of the enlisted if the seat is free.
    pub fn pass_on(&self) {
        if self.count.load(Ordering::SeqCst) > 0
            && self.is_free()
            && let Some(waker) = lock(&self.enlisted).first()
        {
            waker.wake_by_ref();
        }
    }

    /// Calls all of the enlisted: the stack has stopped.
    pub fn call_all(&self) {
        lock(&self.enlisted).iter().for_each(Waker::wake_by_ref);
    }
}
