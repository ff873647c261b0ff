//! The top anchor: the application's side of a path, and of an enable. The linker hands over what the topmost session
//! lets pass; what the application does in return reaches the path as requests, not as calls.

use crate::control::Control;
use crate::message::Message;
use crate::participants::Participants;
use crate::path::PathId;
use std::sync::Arc;

/// The application's side of one path. Its verbs are called with the path locked: they store and wake, and do no more.
pub trait Anchor: Send + Sync {
    /// The next message, in order. Its bytes count against the path's budget until credit for them comes back.
    fn deliver(&self, message: Message);

    /// An event, a changed fact, an error or an answer. After an event that ends the conversation the path stays until it
    /// is closed.
    fn told(&self, control: Control);

    /// The path takes `room` bytes more now. Called after every step in which it may have changed.
    fn room(&self, _room: usize) {}

    /// Nothing has happened for a while, and the path has come to rest: memory kept for the next message may go.
    fn rests(&self) {}

    /// The path is gone; nothing follows.
    fn gone(&self) {}
}

/// The application's side of an enable.
pub trait Acceptor: Send + Sync {
    /// A path is opening on this enable's behalf. `None` refuses it: the path is closed at once. The path is not in the
    /// instance's table yet: what is asked of it before its anchor has been called for the first time is lost.
    fn accept(&self, path: PathId, participants: &Participants) -> Option<Arc<dyn Anchor>>;

    /// For a wild enable: a message with its participants attached.
    fn deliver(&self, message: Message);

    /// For a wild enable: an error that quotes a message sent without a path.
    fn told(&self, _control: Control) {}
}
