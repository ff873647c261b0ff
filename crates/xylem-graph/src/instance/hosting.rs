//! What an application may ask of the host it runs on, real or simulated. One trait for both, so that what was tried in the
//! simulator runs on a device with the same lines; sockets are made of the same requests.

use super::{Instance, Listening, Shepherd, Work, World};
use std::sync::Arc;
use xylem_core::{Acceptor, Anchor, EnableError, EnableWish, Message, OpenError, Participants, PathId};

/// The most half-open connections, and open ones not yet accepted, of an enable made by [`Hosting::enable`].
pub const BACKLOG: usize = 128;

/// A host as its applications see it. `node` is a node's name in the host's graph.
pub trait Hosting {
    /// Runs `ask` with what it takes to ask something of the instance.
    fn asking<R>(&mut self, ask: impl FnOnce(&Instance, &dyn World, &mut Shepherd) -> R) -> R;

    /// Opens a path from `node` down between `participants`; `anchor` gets what arrives.
    ///
    /// # Errors
    /// As [`Instance::open`]; [`OpenError::NoNode`] if the graph has no such node.
    fn open(&mut self, node: &str, participants: Participants, anchor: Arc<dyn Anchor>) -> Result<PathId, OpenError> {
        self.asking(|instance, world, shepherd| {
            let node = instance.node(node).ok_or_else(|| OpenError::NoNode(node.to_owned()))?;
            instance.open(world, shepherd, node, participants, anchor)
        })
    }

    /// Enables passive opens at `node`: each peer's first message makes a path, which `acceptor` is offered.
    ///
    /// # Errors
    /// As [`Instance::enable`]; [`EnableError::NoNode`] if the graph has no such node.
    fn enable(
        &mut self,
        node: &str,
        participants: Participants,
        acceptor: Arc<dyn Acceptor>,
    ) -> Result<Listening, EnableError> {
        self.asking(|instance, _, _| {
            let node = instance.node(node).ok_or_else(|| EnableError::NoNode(node.to_owned()))?;
            let wish = EnableWish { participants, wild: false, backlog: BACKLOG, shared: false };
            instance.enable(node, wish, acceptor)
        })
    }

    /// Sends a message on a path. What the path has no room for waits.
    fn push(&mut self, path: PathId, bytes: &[u8]) {
        self.request(path, Work::Push(Message::from_bytes(bytes)));
    }

    /// Asks something else of a path; a path that has gone hears nothing.
    fn request(&mut self, path: PathId, work: Work) {
        self.asking(|instance, world, shepherd| instance.request(world, shepherd, path, work));
    }
}
