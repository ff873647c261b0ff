//! The application's ends in the simulator: anchors that keep what arrives until a driver looks at it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::{Acceptor, Anchor, Control, Event, Message, Participants, PathId};

/// The application's side of one path.
#[derive(Debug, Default)]
pub struct End(Mutex<State>);

/// What an end has been told so far.
#[derive(Debug, Default)]
pub struct State {
    /// What arrived and was not read yet.
    pub arrived: VecDeque<Message>,
    /// Everything told, in order.
    pub told: Vec<Control>,
    /// Bytes the path takes now.
    pub room: usize,
    /// The path is gone.
    pub gone: bool,
}

impl End {
    /// An end for a new path.
    pub fn new() -> Arc<End> {
        Arc::default()
    }

    /// What it has been told.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether this event has been told.
    pub fn saw(&self, event: Event) -> bool {
        self.told.contains(&Control::Event(event))
    }

    /// The event that ended the conversation before its time, if one did.
    pub fn failure(&self) -> Option<Event> {
        let fatal = [Event::Refused, Event::Reset, Event::TimedOut, Event::Unreachable];
        fatal.into_iter().find(|event| self.saw(*event))
    }
}

impl Anchor for End {
    fn deliver(&self, message: Message) {
        self.state().arrived.push_back(message);
    }
    fn told(&self, control: Control) {
        self.state().told.push(control);
    }
    fn room(&self, room: usize) {
        self.state().room = room;
    }
    fn gone(&self) {
        self.state().gone = true;
    }
}

/// The application's side of an enable: keeps the paths that opened, and what came without a path.
#[derive(Debug, Default)]
pub struct Listener {
    accepted: Mutex<VecDeque<Accepted>>,
    wild: Mutex<VecDeque<Message>>,
}

/// A path that opened on a listener's behalf.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Its name.
    pub path: PathId,
    /// Who converses.
    pub participants: Participants,
    /// Its end.
    pub end: Arc<End>,
}

impl Listener {
    /// A listener for a new enable.
    pub fn new() -> Arc<Listener> {
        Arc::default()
    }

    /// The next path that opened.
    pub fn accept(&self) -> Option<Accepted> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next message that came without a path.
    pub fn receive(&self) -> Option<Message> {
        self.wild.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Acceptor for Listener {
    fn accept(&self, path: PathId, participants: &Participants) -> Option<Arc<dyn Anchor>> {
        let end = End::new();
        let accepted = Accepted { path, participants: participants.clone(), end: Arc::clone(&end) };
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push_back(accepted);
        Some(end)
    }

    fn deliver(&self, message: Message) {
        self.wild.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
    }
}
