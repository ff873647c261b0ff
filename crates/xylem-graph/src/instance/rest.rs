//! Paths at rest. A conversation in which nothing happens for a second is kept as its record, as if it were on its way to
//! another instance, with its keys held: ten thousand idle connections cost what their records cost. Whatever happens
//! next opens it again. Only an instance does this: the sessions see an export and an open, as when a path moves.

use super::linker::PathLinker;
use super::paths::{Cell, Sleeper, Tenancy, Tenant, Top, Work};
use super::{Instance, Shepherd};
use std::sync::atomic::Ordering;
use std::time::Duration;
use xylem_core::drop::linker;
use xylem_core::{Control, Event, Instant, Path};

/// How long nothing must happen before a path comes to rest. Waking costs some microseconds, so a path that is used a
/// few times a second stays awake.
pub const REST_AFTER: Duration = Duration::from_secs(1);
/// The same where many are awake: still thousands of times what waking costs.
pub const REST_SOON_AFTER: Duration = Duration::from_millis(20);
/// With more paths awake than this they come to rest sooner. Thousands of connections that open at once and are then
/// idle need memory as if there were only so many of them.
pub const AWAKE_MANY: usize = 64;

impl Tenant {
    /// When to look whether it may come to rest, for a path without a deadline of its own.
    pub fn rests_at(&self, now: Instant, after: Duration) -> Option<Instant> {
        let due = self.active_at + after;
        (due > now && self.may_rest()).then_some(due)
    }

    /// Whether to lay it to rest now. How long it has to be idle is asked only of one that has been for the least time
    /// that may be: this is looked at after every step.
    pub fn wants_rest(&self, now: Instant, after: impl FnOnce() -> Duration) -> bool {
        self.active_at + REST_SOON_AFTER <= now && self.active_at + after() <= now && self.may_rest()
    }

    fn may_rest(&self) -> bool {
        matches!(self.top, Top::Anchor(_)) && self.held.is_empty() && !self.finished && self.path.may_rest()
    }
}

impl Instance {
    /// How long nothing must happen now before a path comes to rest.
    pub(super) fn rest_after(&self) -> Duration {
        let awake = self.paths.len().saturating_sub(self.counters.resting.load(Ordering::Relaxed));
        if awake > AWAKE_MANY { REST_SOON_AFTER } else { REST_AFTER }
    }

    /// How many paths are at rest.
    pub fn resting_count(&self) -> usize {
        self.counters.resting.load(Ordering::Relaxed)
    }

    /// Keeps a tenant as its record.
    pub(super) fn lay_to_rest(&self, tenancy: &mut Tenancy) {
        let Tenancy::Awake(tenant) = tenancy.take() else { unreachable!("only who is awake is laid to rest") };
        let Tenant { path, top: Top::Anchor(anchor), node, room_most, .. } = *tenant else {
            unreachable!("only a path with an anchor rests")
        };
        self.counters.resting.fetch_add(1, Ordering::Relaxed);
        anchor.rests();
        *tenancy = Tenancy::Resting(Box::new(Sleeper { path: path.rest(), anchor, node, room_most }));
    }

    /// The tenant that `work` is for, awake; `None` if there is nobody, or the work is no reason to wake.
    pub(super) fn awake<'t>(
        &self,
        shepherd: &mut Shepherd,
        cell: &Cell,
        tenancy: &'t mut Tenancy,
        work: &Work,
    ) -> Option<&'t mut Tenant> {
        let is_needless = matches!(work, Work::Timeout(_) | Work::Look | Work::Control(Control::Answer(_)));
        if is_needless && matches!(tenancy, Tenancy::Resting(_)) {
            // Whoever rests waits for nothing: this is what it waited for before.
            return None;
        }
        self.awaken(shepherd, cell, tenancy)
    }

    /// The tenant of a cell, woken if it rests.
    pub(super) fn awaken<'t>(
        &self,
        shepherd: &mut Shepherd,
        cell: &Cell,
        tenancy: &'t mut Tenancy,
    ) -> Option<&'t mut Tenant> {
        if matches!(tenancy, Tenancy::Resting(_)) {
            let Tenancy::Resting(sleeper) = tenancy.take() else { unreachable!("it rested a line ago") };
            *tenancy = self.wake_up(shepherd.out.now, cell, *sleeper);
        }
        match tenancy {
            Tenancy::Awake(tenant) => Some(tenant),
            Tenancy::Resting(_) | Tenancy::Empty => None,
        }
    }

    /// Opens a path again from its record.
    fn wake_up(&self, now: Instant, cell: &Cell, sleeper: Sleeper) -> Tenancy {
        self.counters.resting.fetch_sub(1, Ordering::Relaxed);
        let Sleeper { path: resting, anchor, node, room_most } = sleeper;
        let (participants, mut random, mut record) = resting.read();
        let linker = PathLinker::new(self, node, cell.id, now);
        match linker.open_node(node, 0, participants, &mut random, Some(&mut record)) {
            Ok(opened) => {
                let mut tenant = Tenant::new(Path::new(opened, random), Top::Anchor(anchor), node, now);
                tenant.room_most = room_most;
                Tenancy::Awake(Box::new(tenant))
            }
            Err(_) => {
                // The graph below has changed since (a route has gone): the conversation cannot go on.
                self.paths.remove(cell.id.index, cell.id.generation);
                self.dropped(&linker::NOT_WOKEN);
                anchor.told(Control::Event(Event::Unreachable));
                anchor.gone();
                Tenancy::Empty
            }
        }
    }
}
