//! A bell at every descriptor: it is rung whenever the descriptor may have become ready, from whichever thread that
//! happens on. Threads that wait are called once and hang themselves up again; instances of epoll stay on the list.

use crate::epoll::Interests;
use crate::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Weak};
use std::task::Waker;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    rings: AtomicU64,
}

#[derive(Default)]
struct State {
    wakers: Vec<Waker>,
    hooks: Vec<Hook>,
}

/// An instance of epoll that wants to hear, and under which number it knows the descriptor.
#[derive(Clone)]
pub(crate) struct Hook {
    pub interests: Weak<Interests>,
    pub descriptor: i32,
}

impl Hook {
    fn is(&self, other: &Hook) -> bool {
        self.descriptor == other.descriptor && self.interests.ptr_eq(&other.interests)
    }
}

impl Bell {
    /// Calls everybody. No lock of the caller's may be one that a hearer takes.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        let mut state = lock(&self.state);
        let wakers = std::mem::take(&mut state.wakers);
        state.hooks.retain(|hook| hook.interests.strong_count() > 0);
        let hooks = state.hooks.clone();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        for hook in hooks {
            if let Some(interests) = hook.interests.upgrade() {
                interests.heard(hook.descriptor);
            }
        }
    }

    /// How often it was rung.
    pub fn rings(&self) -> u64 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Has `waker` called at the next ring.
    pub fn register(&self, waker: &Waker) {
        let mut state = lock(&self.state);
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
    }

    /// A waiter goes.
    pub fn forget(&self, waker: &Waker) {
        lock(&self.state).wakers.retain(|known| !known.will_wake(waker));
    }

    /// Has an instance of epoll called at every ring.
    pub fn hang(&self, hook: Hook) {
        let mut state = lock(&self.state);
        if !state.hooks.iter().any(|known| known.is(&hook)) {
            state.hooks.push(hook);
        }
    }

    /// Takes it off again.
    pub fn unhang(&self, hook: &Hook) {
        lock(&self.state).hooks.retain(|known| !known.is(hook));
    }
}
