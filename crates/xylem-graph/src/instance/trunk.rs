//! Trunks: paths on which other paths stand. All conversations with the same participants share one; it is made when the
//! first of them opens and closed when the last has gone.

use super::linker::PathLinker;
use super::paths::Top;
use super::{Instance, Shepherd, Work, World, lock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use xylem_core::{Binding, Facts, Instant, OpenError, Participants, PathId, Random};

/// The trunks of an instance.
#[derive(Default)]
pub(super) struct Trunks {
    by_key: HashMap<(u8, Participants), Trunk>,
}

/// Trunks whose last user has gone. Every step looks whether there are any.
#[derive(Default)]
pub(super) struct IdleTrunks {
    any: AtomicBool,
    list: Mutex<Vec<PathId>>,
}

impl IdleTrunks {
    fn add(&self, id: PathId) {
        lock(&self.list).push(id);
        self.any.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<PathId> {
        if !self.any.load(Ordering::Relaxed) || !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *lock(&self.list))
    }
}

struct Trunk {
    id: PathId,
    facts: Facts,
    completed: Participants,
    users: Arc<AtomicUsize>,
}

/// One user's hold on a trunk.
struct User {
    id: PathId,
    users: Arc<AtomicUsize>,
    idle: Arc<IdleTrunks>,
}

impl Drop for User {
    fn drop(&mut self) {
        // However many let go at once, one of them is the last.
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.idle.add(self.id);
        }
    }
}

/// What one more user of a trunk gets.
pub(super) struct Standing {
    pub id: PathId,
    pub facts: Facts,
    /// Who converses, in full.
    pub completed: Participants,
    /// The user's hold: the trunk stays as long as somebody has one.
    pub hold: Binding,
}

impl Trunks {
    /// Lets one more user stand on the trunk of `key`. Found and held under one lock: in between it could be closed.
    fn stand(&self, key: &(u8, Participants), idle: &Arc<IdleTrunks>) -> Option<Standing> {
        let trunk = self.by_key.get(key)?;
        trunk.users.fetch_add(1, Ordering::AcqRel);
        let hold = User { id: trunk.id, users: Arc::clone(&trunk.users), idle: Arc::clone(idle) };
        let (facts, completed) = (trunk.facts.clone(), trunk.completed.clone());
        Some(Standing { id: trunk.id, facts, completed, hold: Box::new(hold) })
    }
}

impl Instance {
    /// The trunk of `node` between `participants`, made if there is none.
    pub(super) fn trunk(
        &self,
        node: u8,
        participants: Participants,
        now: Instant,
        random: &mut Random,
    ) -> Result<Standing, OpenError> {
        let key = (node, participants);
        if let Some(standing) = lock(&self.trunks).stand(&key, &self.idle_trunks) {
            return Ok(standing);
        }
        // A trunk may stand on another, of a lower node: so these locks are always taken from above to below.
        let _making = lock(&self.making_trunk[usize::from(node)]);
        if let Some(standing) = lock(&self.trunks).stand(&key, &self.idle_trunks) {
            return Ok(standing);
        }
        let id = self.reserve_path()?;
        let linker = PathLinker::new(self, node, id, now);
        let opened = linker.open_node(node, 0, key.1.clone(), random, None);
        let offer = opened.as_ref().ok().map(|opened| (opened.facts.clone(), opened.participants.clone()));
        self.settle_in(id, node, now, opened, Top::Node(node))?;
        let (facts, completed) = offer.expect("what failed to open has returned above");
        let facts = facts.expect("what opens says what it offers");
        let mut trunks = lock(&self.trunks);
        trunks.by_key.insert(key.clone(), Trunk { id, facts, completed, users: Arc::default() });
        Ok(trunks.stand(&key, &self.idle_trunks).expect("it has just been put there"))
    }

    /// Closes the trunks whose last user has gone.
    pub(super) fn close_idle_trunks<W: World + ?Sized>(&self, _world: &W, shepherd: &mut Shepherd) {
        let idle = self.idle_trunks.take();
        if idle.is_empty() {
            return;
        }
        let mut trunks = lock(&self.trunks);
        for id in idle {
            let unused = |trunk: &Trunk| trunk.id == id && trunk.users.load(Ordering::Acquire) == 0;
            let before = trunks.by_key.len();
            trunks.by_key.retain(|_, trunk| !unused(trunk));
            if trunks.by_key.len() < before {
                shepherd.pending.push_back((id, Work::Close));
            }
        }
    }
}
