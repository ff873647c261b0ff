//! The application's side of paths and enables: it stores what it is told, and the test looks when it likes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::{Acceptor, Anchor, Control, Message, Participants, PathId};

/// What an application was told.
#[derive(Debug)]
pub enum Said {
    Message(Message),
    Told(Control),
    Gone,
}

/// The top anchor of one path.
#[derive(Debug, Default)]
pub struct End {
    said: Mutex<VecDeque<Said>>,
    room: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl End {
    /// The next thing that was said, in order.
    pub fn next(&self) -> Option<Said> {
        lock(&self.said).pop_front()
    }

    /// The room of which the path told last.
    pub fn room_now(&self) -> usize {
        self.room.load(Ordering::SeqCst)
    }
}

impl Anchor for End {
    fn deliver(&self, message: Message) {
        lock(&self.said).push_back(Said::Message(message));
    }
    fn told(&self, control: Control) {
        lock(&self.said).push_back(Said::Told(control));
    }
    fn room(&self, room: usize) {
        self.room.store(room, Ordering::SeqCst);
    }
    fn gone(&self) {
        lock(&self.said).push_back(Said::Gone);
    }
}

/// The application's side of an enable: it accepts everybody.
#[derive(Debug, Default)]
pub struct Door {
    accepted: Mutex<VecDeque<(PathId, Participants, Arc<End>)>>,
}

impl Door {
    /// The next path that was accepted.
    pub fn next(&self) -> Option<(PathId, Participants, Arc<End>)> {
        lock(&self.accepted).pop_front()
    }
}

impl Acceptor for Door {
    fn accept(&self, path: PathId, participants: &Participants) -> Option<Arc<dyn Anchor>> {
        let end = Arc::new(End::default());
        lock(&self.accepted).push_back((path, participants.clone(), Arc::clone(&end)));
        Some(end)
    }
    fn deliver(&self, _message: Message) {}
}
