//! Threads that wait in the sockets of a stack whose turns somebody else takes. Each sleeps by the one condition they
//! share; how many of them are awake is counted, so that who moves the clock can let them see what time it is first. The
//! thread that moves the clock may wait itself: nobody else would move it then, so it goes on from one thing that is due
//! to the next.

use super::{Ended, turn_once};
use crate::lock;
use crate::stack::Core;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use xylem_core::time::earlier;
use xylem_graph::instance::Wake as Wanted;

/// How long who moves the clock waits, in real time, for a thread that got what it slept for and has not come back to say
/// what it makes of it.
const DEPARTED_WAIT_MAX: Duration = Duration::from_millis(100);

/// All threads that wait in one stack.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those that are called, or have not lain down yet.
    awake: usize,
    /// Those that have slept and got what they waited for, and have not been here since.
    departed: Vec<ThreadId>,
    /// Who moves the clock.
    driver: Option<ThreadId>,
    /// Goes up when all are called.
    alarms: u64,
}

/// One of them.
struct Waiter {
    all: Arc<Waiters>,
    mood: Mutex<Mood>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Awake,
    /// Called while it was awake: it does not lie down.
    Restless,
    Asleep,
    /// It waits no more.
    Gone,
}

impl Wake for Waiter {
    fn wake(self: Arc<Waiter>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Waiter>) {
        let mut state = lock(&self.all.state);
        let mut mood = lock(&self.mood);
        match *mood {
            Mood::Awake => *mood = Mood::Restless,
            Mood::Asleep => {
                *mood = Mood::Awake;
                // Counted by the caller, who may look before the sleeper has got up.
                state.awake += 1;
                self.all.changed.notify_all();
            }
            Mood::Restless | Mood::Gone => {}
        }
    }
}

impl Waiters {
    /// See [`Stack::settle`](crate::stack::Stack::settle).
    pub fn settle(&self, limit: Duration) -> bool {
        let is_here = |state: &State| state.driver == Some(thread::current().id());
        let state = lock(&self.state);
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.awake > 0);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let settled = state.awake == 0;
        if state.departed.is_empty() || !is_here(&state) {
            return settled;
        }
        let waited = self.changed.wait_timeout_while(state, DEPARTED_WAIT_MAX, |state| !state.departed.is_empty());
        // Whoever has not come back by now does not mean to.
        waited.unwrap_or_else(PoisonError::into_inner).0.departed.clear();
        settled
    }

    /// See [`Stack::drive_from_here`](crate::stack::Stack::drive_from_here).
    pub fn drive_from_here(&self) {
        lock(&self.state).driver = Some(thread::current().id());
    }

    /// See [`Stack::arrive`](crate::stack::Stack::arrive).
    pub fn arrive(&self) -> bool {
        let mut state = lock(&self.state);
        let here = thread::current().id();
        let place = state.departed.iter().position(|departed| *departed == here);
        if let Some(place) = place {
            state.departed.swap_remove(place);
            self.changed.notify_all();
        }
        place.is_some()
    }

    /// The stack has stopped: all look up.
    pub fn call_all(&self) {
        lock(&self.state).alarms += 1;
        self.changed.notify_all();
    }
}

/// As [`wait`](super::wait), for a stack that is driven. The deadline is of real time.
pub(super) fn wait<T>(
    core: &Core,
    deadline: Option<Instant>,
    mut poll: impl FnMut(&Waker) -> Poll<T>,
) -> Result<T, Ended> {
    let all = &core.waiters;
    let waiter = Arc::new(Waiter { all: Arc::clone(all), mood: Mutex::new(Mood::Awake) });
    let waker = Waker::from(Arc::clone(&waiter));
    lock(&all.state).awake += 1;
    let mut has_slept = false;
    let result = loop {
        if let Poll::Ready(value) = poll(&waker) {
            break Ok(value);
        }
        if core.is_stopped() {
            break Err(Ended::Stopped);
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            break Err(Ended::TimedOut);
        }
        if !waiter.drive(core) {
            waiter.sleep(core, deadline);
            has_slept = true;
        }
    };
    let mut state = lock(&all.state);
    *lock(&waiter.mood) = Mood::Gone;
    state.awake -= 1;
    let here = thread::current().id();
    if has_slept && state.driver != Some(here) {
        state.departed.push(here);
    }
    all.changed.notify_all();
    result
}

impl Waiter {
    /// If this is the thread that moves the clock: takes a turn, and if that calls nobody moves the clock on to what is due
    /// next. False if nothing is, or somebody else moves it.
    fn drive(&self, core: &Core) -> bool {
        if lock(&self.all.state).driver != Some(thread::current().id()) {
            return false;
        }
        let Some(hands) = core.clock.hands() else { return false };
        turn_once(core);
        let was_called = std::mem::replace(&mut *lock(&self.mood), Mood::Awake) == Mood::Restless;
        let next = match core.wake() {
            Wanted::Now => return true,
            Wanted::At(at) => earlier(Some(at), hands.next()),
            Wanted::Never => hands.next(),
        };
        match next {
            _ if was_called => true,
            Some(at) => {
                hands.advance(at);
                true
            }
            None => false,
        }
    }

    /// Lies down unless it was called; gets up when it is called, the stack stops, or the deadline comes.
    fn sleep(&self, core: &Core, deadline: Option<Instant>) {
        let mut state = lock(&self.all.state);
        let alarms = state.alarms;
        let was_called = std::mem::replace(&mut *lock(&self.mood), Mood::Asleep) == Mood::Restless;
        if was_called || core.is_stopped() {
            *lock(&self.mood) = Mood::Awake;
            return;
        }
        state.awake -= 1;
        self.all.changed.notify_all();
        while *lock(&self.mood) == Mood::Asleep {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if state.alarms != alarms || left == Some(Duration::ZERO) {
                *lock(&self.mood) = Mood::Awake;
                state.awake += 1;
                return;
            }
            state = match left {
                None => self.all.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.all.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
