//! The table of an instance's paths, and the cell each lives in. A cell has a lock and an inbox: whoever has work for a
//! path puts it into the inbox and takes the lock if it is free; who holds the lock empties the inbox before and after
//! letting go. So work is done in order, nobody waits, and a shepherd that finds a path busy leaves.
//! (Jain, Hutchinson and Peterson 1995, section 3.4: a processor per message.)

use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use xylem_core::{Anchor, Batch, Control, Instant, Leaf, Message, Path, PathId, Resting, Setting};

/// What can be asked of a path.
#[derive(Debug)]
pub enum Work {
    /// A message for it has arrived; its leaf is in the branch attribute.
    Arrive(Message),
    /// The application, or a path that stands on it, sends a message.
    Push(Message),
    /// The application has consumed so many bytes.
    Credit(usize),
    /// A deadline has come.
    Timeout(Instant),
    /// A control, from above or below.
    Control(Control),
    /// The application has closed.
    Close,
    /// Nothing but a look at what it wants (after it has been made).
    Look,
}

/// Who stands on top of a path.
pub(crate) enum Top {
    /// The application.
    Anchor(Arc<dyn Anchor>),
    /// A node of the graph that demultiplexes: the path is a trunk.
    Node(u8),
    /// Nobody: the path was made for replies.
    Nobody,
}

/// Who lives in a cell. Only the holder of the cell's lock sees it.
pub(crate) enum Tenancy {
    /// A path and what the instance must know of it.
    Awake(Box<Tenant>),
    /// A path at rest: see `rest.rs`.
    Resting(Box<Sleeper>),
    /// Nobody: the path has not come yet, or has gone.
    Empty,
}

/// What is kept of a tenant whose path is at rest.
pub(crate) struct Sleeper {
    pub path: Resting,
    pub anchor: Arc<dyn Anchor>,
    /// See [`Tenant`].
    pub node: u8,
    pub room_most: usize,
}

/// A path with what the instance must know of it.
pub(crate) struct Tenant {
    pub path: Path,
    pub top: Top,
    /// The node it was opened at.
    pub node: u8,
    /// When something last happened to it.
    pub active_at: Instant,
    /// Deadlines that stand on the wheel for it, the soonest last.
    pub armed: SmallVec<[Instant; 2]>,
    /// The room last told to the anchor.
    pub room: usize,
    /// The most room it ever had: a message that exceeds it will never fit.
    pub room_most: usize,
    /// What the application asked for behind a push that found no room, in order.
    pub held: VecDeque<Work>,
    /// It has said that it is finished.
    pub finished: bool,
    /// What it leaves with its protocol when it goes.
    pub linger: Option<SmallVec<[u8; 64]>>,
}

pub(crate) struct Cell {
    pub id: PathId,
    /// The leaves, if there are several.
    leaves: Option<Box<[Leaf]>>,
    tenancy: Mutex<Tenancy>,
    /// Made when it is first needed: few paths are ever found busy.
    #[allow(clippy::box_collection, reason = "a pointer is all that a path pays that was never found busy")]
    inbox: Mutex<Option<Box<VecDeque<Work>>>>,
    waiting: AtomicU32,
}

/// The most arrived messages that wait in one path's inbox.
pub const INBOX_MAX: usize = 4 * Batch::LIMIT;

impl Tenancy {
    /// Takes it out.
    pub fn take(&mut self) -> Tenancy {
        std::mem::replace(self, Tenancy::Empty)
    }
}

impl Tenant {
    pub fn new(path: Path, top: Top, node: u8, now: Instant) -> Tenant {
        let (armed, held) = (SmallVec::new(), VecDeque::new());
        Tenant { path, top, node, active_at: now, armed, room: 0, room_most: 0, held, finished: false, linger: None }
    }

    /// Whether `work` has to wait for room, or behind work that does. The anchor hears of room between steps, so what it
    /// pushes meanwhile may find less: such a push is late, not wrong, and what follows it stays behind it.
    pub fn must_wait(&self, work: &Work) -> bool {
        match work {
            Work::Push(message) => {
                let waits = !self.held.is_empty() || message.len() > self.path.room();
                waits && message.len() <= self.room_most
            }
            Work::Close | Work::Control(Control::Set(Setting::SendClosed)) => !self.held.is_empty(),
            _ => false,
        }
    }

    /// The next work that waited for room and has it now.
    pub fn released(&mut self) -> Option<Work> {
        match self.held.front()? {
            Work::Push(message) if message.len() > self.path.room() => None,
            _ => self.held.pop_front(),
        }
    }
}

impl Cell {
    pub fn new(id: PathId, tenant: Tenant) -> Cell {
        let leaves = &tenant.path.leaves;
        let leaves = (leaves.len() > 1).then(|| leaves.iter().cloned().collect());
        let tenancy = Mutex::new(Tenancy::Awake(Box::new(tenant)));
        Cell { id, leaves, tenancy, inbox: Mutex::default(), waiting: AtomicU32::new(0) }
    }

    /// Which leaf a message came in by, having climbed `way`.
    pub fn leaf_of(&self, way: &[u8]) -> u8 {
        let leaves = self.leaves.as_deref().unwrap_or_default();
        leaves.iter().position(|leaf| way.starts_with(&leaf.way)).unwrap_or(0) as u8
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, Tenancy>> {
        match self.tenancy.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Tenancy> {
        self.tenancy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn inbox_is_empty(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }

    /// Puts work into the inbox; `false` if it is a message or a control and there is no room for it. Credit adds up, and a
    /// close always fits.
    #[must_use]
    pub fn put(&self, work: Work) -> bool {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let inbox = inbox.get_or_insert_default();
        if let (Work::Credit(more), Some(Work::Credit(sum))) = (&work, inbox.back_mut()) {
            *sum += more;
            return true;
        }
        if inbox.len() >= INBOX_MAX && matches!(work, Work::Arrive(_)) {
            return false;
        }
        inbox.push_back(work);
        self.waiting.store(inbox.len() as u32, Ordering::SeqCst);
        // Pairs with the fence in `left_empty`: either the holder sees this work, or we find the lock free.
        fence(Ordering::SeqCst);
        true
    }

    pub fn take(&self) -> Option<Work> {
        if self.inbox_is_empty() {
            return None;
        }
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let inbox = inbox.as_mut()?;
        let work = inbox.pop_front();
        self.waiting.store(inbox.len() as u32, Ordering::SeqCst);
        work
    }

    /// Called after letting go of the lock: whether no work came in meanwhile.
    pub fn left_empty(&self) -> bool {
        fence(Ordering::SeqCst);
        self.inbox_is_empty()
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// A table whose names go stale: a place that is used again has another generation.
pub(crate) struct Table<T>(RwLock<Slots<T>>);

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    limit: usize,
}

impl<T: Clone> Table<T> {
    pub fn new(limit: usize) -> Table<T> {
        Table(RwLock::new(Slots { slots: Vec::new(), free: Vec::new(), limit }))
    }

    /// Takes a place; `None` if the table is full. The place is empty until `fill`.
    pub fn reserve(&self) -> Option<(u32, u32)> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = table.free.pop() {
            return Some((index, table.slots[index as usize].generation));
        }
        if table.slots.len() >= table.limit {
            return None;
        }
        table.slots.push(Slot { generation: 0, value: None });
        Some((table.slots.len() as u32 - 1, 0))
    }

    pub fn fill(&self, index: u32, value: T) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).slots[index as usize].value = Some(value);
    }

    pub fn find(&self, index: u32, generation: u32) -> Option<T> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.slots.get(index as usize).filter(|slot| slot.generation == generation)?.value.clone()
    }

    /// Frees a place, filled or only reserved.
    pub fn remove(&self, index: u32, generation: u32) -> Option<T> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let slot = table.slots.get_mut(index as usize).filter(|slot| slot.generation == generation)?;
        slot.generation = slot.generation.wrapping_add(1);
        let value = slot.value.take();
        table.free.push(index);
        value
    }

    pub fn len(&self) -> usize {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.slots.len() - table.free.len()
    }
}
