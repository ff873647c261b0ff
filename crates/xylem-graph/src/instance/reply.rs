//! Messages that go down without a path of a conversation: what protocols send by themselves (resets, echo replies,
//! errors, forwarded packets) and what unconnected sockets send. They go through chains that are kept for a while, since
//! who was answered once is often answered again, and since one may have to wait for its neighbour.

use super::linker::PathLinker;
use super::paths::Top;
use super::{Instance, Shepherd, Work, World, lock};
use std::collections::{HashMap, VecDeque};
use xylem_core::drop::linker;
use xylem_core::{EnableId, Linker as _, OpenError, Participants, PathId, Reply};

/// The most chains kept; the oldest goes first.
pub const KEPT_PATHS_MAX: usize = 1024;

/// What a chain is kept for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Replies of a node's protocol: the chain below one of its lowers.
    Below(u8, usize, Participants),
    /// Messages of a wild enable: the chain from the node down.
    At(u8, EnableId, Participants),
}

/// The chains kept, oldest first.
#[derive(Debug, Default)]
pub(super) struct KeptPaths {
    by_key: HashMap<Key, PathId>,
    order: VecDeque<Key>,
}

impl KeptPaths {
    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}

impl Instance {
    /// Sends a reply of node `node` on its way: work for the chain that leads there.
    pub(super) fn send_reply<W: World + ?Sized>(&self, _world: &W, shepherd: &mut Shepherd, node: u8, reply: Reply) {
        match self.kept_path(shepherd, Key::Below(node, reply.lower, reply.participants)) {
            Ok(id) => shepherd.pending.push_back((id, Work::Push(reply.message))),
            Err(_) => self.dropped(&linker::NO_WAY),
        }
    }

    /// The chain kept for `key`, opened if there is none; the oldest goes if there are too many.
    pub(super) fn kept_path(&self, shepherd: &mut Shepherd, key: Key) -> Result<PathId, OpenError> {
        if let Some(id) = lock(&self.kept).by_key.get(&key) {
            return Ok(*id);
        }
        let id = self.open_kept(shepherd, &key)?;
        let mut kept = lock(&self.kept);
        if let Some(other) = kept.by_key.get(&key) {
            // Another shepherd was faster.
            shepherd.pending.push_back((id, Work::Close));
            return Ok(*other);
        }
        if kept.order.len() >= KEPT_PATHS_MAX
            && let Some(oldest) = kept.order.pop_front()
            && let Some(old) = kept.by_key.remove(&oldest)
        {
            shepherd.pending.push_back((old, Work::Close));
        }
        kept.order.push_back(key.clone());
        kept.by_key.insert(key, id);
        Ok(id)
    }

    fn open_kept(&self, shepherd: &mut Shepherd, key: &Key) -> Result<PathId, OpenError> {
        let id = self.reserve_path()?;
        let (now, mut random) = (shepherd.out.now, self.random());
        let opened = match key {
            Key::Below(node, lower, participants) => {
                let mut linker = PathLinker::new(self, *node, id, now);
                linker.open_below(*lower, participants.clone(), &mut random, None)
            }
            Key::At(node, enable, participants) => {
                let linker = PathLinker::new(self, *node, id, now);
                let linker = linker.passive_at(*node, *enable, participants.clone());
                linker.open_node(*node, 0, participants.clone(), &mut random, None)
            }
        };
        // A protocol straight on its device has no session below; its replies cannot go through a chain.
        let opened = opened.and_then(|it| if it.sessions.is_empty() { Err(OpenError::NoLower(0)) } else { Ok(it) });
        let node = match key {
            Key::Below(node, ..) | Key::At(node, ..) => *node,
        };
        self.settle_in(id, node, now, opened, Top::Nobody)?;
        Ok(id)
    }
}
