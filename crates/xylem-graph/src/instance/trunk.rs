//! Trunks: paths on which other paths stand. All conversations with the same participants share one; it is made when the
//! first of them opens and closed when the last has gone.

use super::linker::PathLinker;
use super::paths::Top;
use super::{Instance, Shepherd, Work, World, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use xylem_core::{Binding, Facts, Instant, OpenError, Participants, PathId, Random};

/// The trunks of an instance.
#[derive(Default)]
pub(super) struct Trunks {
    by_key: HashMap<(u8, Participants), Trunk>,
    /// Trunks whose last user has gone.
    idle: Arc<Mutex<Vec<PathId>>>,
}

struct Trunk {
    id: PathId,
    facts: Facts,
    completed: Participants,
    users: Arc<()>,
}

/// One user's hold on a trunk.
struct User {
    id: PathId,
    users: Arc<()>,
    idle: Arc<Mutex<Vec<PathId>>>,
}

impl Drop for User {
    fn drop(&mut self) {
        // The table and this user hold the count: nobody else does.
        if Arc::strong_count(&self.users) <= 2 {
            lock(&self.idle).push(self.id);
        }
    }
}

impl Instance {
    /// The trunk of `node` between `participants`, made if there is none; what it offers, and who they are in full.
    pub(super) fn trunk(
        &self,
        node: u8,
        participants: Participants,
        now: Instant,
        random: &mut Random,
    ) -> Result<(PathId, Facts, Participants), OpenError> {
        let key = (node, participants);
        if let Some(trunk) = lock(&self.trunks).by_key.get(&key) {
            return Ok((trunk.id, trunk.facts.clone(), trunk.completed.clone()));
        }
        let id = self.reserve_path()?;
        let linker = PathLinker::new(self, node, id, now);
        let opened = linker.open_node(node, 0, key.1.clone(), random, None);
        let offer = opened.as_ref().ok().map(|opened| (opened.facts.clone(), opened.participants.clone()));
        self.settle_in(id, opened, Top::Node(node))?;
        let (facts, completed) = offer.expect("what failed to open has returned above");
        let facts = facts.expect("what opens says what it offers");
        let trunk = Trunk { id, facts: facts.clone(), completed: completed.clone(), users: Arc::new(()) };
        lock(&self.trunks).by_key.insert(key, trunk);
        Ok((id, facts, completed))
    }

    /// A hold on trunk `id` for one more user.
    pub(super) fn trunk_user(&self, id: PathId) -> Binding {
        let trunks = lock(&self.trunks);
        let trunk = trunks.by_key.values().find(|trunk| trunk.id == id).expect("its user has just opened it");
        Box::new(User { id, users: Arc::clone(&trunk.users), idle: Arc::clone(&trunks.idle) })
    }

    /// Closes the trunks whose last user has gone.
    pub(super) fn close_idle_trunks<W: World + ?Sized>(&self, _world: &W, shepherd: &mut Shepherd) {
        let mut trunks = lock(&self.trunks);
        let idle = std::mem::take(&mut *lock(&trunks.idle));
        for id in idle {
            let unused = |trunk: &Trunk| trunk.id == id && Arc::strong_count(&trunk.users) == 1;
            let before = trunks.by_key.len();
            trunks.by_key.retain(|_, trunk| !unused(trunk));
            if trunks.by_key.len() < before {
                shepherd.pending.push_back((id, Work::Close));
            }
        }
    }
}
