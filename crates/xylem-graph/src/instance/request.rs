//! What applications ask of an instance: opens, enables, and work for their paths. Any thread with a shepherd may ask; a
//! path that another thread holds gets the work into its inbox.

use super::linker::{EnableWay, PathLinker};
use super::paths::{Cell, Sleeper, Tenancy, Tenant, Top};
use super::reply::Key;
use super::{Instance, Shepherd, Work, World, lock};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use xylem_core::{
    Acceptor, Anchor, Binding, Control, EnableError, EnableId, EnableWish, Instant, Message, OpenError, Opened,
    Participants, Path, PathId, Record, Setting,
};

/// A standing passive open.
pub(super) struct Enable {
    pub acceptor: Arc<dyn Acceptor>,
    /// The node the application enabled at: paths reach from there down.
    pub top: u8,
    pub participants: Participants,
    bindings: Mutex<SmallVec<[Binding; 1]>>,
}

/// An enable as its application knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Its name.
    pub id: EnableId,
    /// Its participants, a chosen port included.
    pub participants: Participants,
}

/// A path on its way to another instance.
#[derive(Debug)]
pub struct Emigrant {
    /// Its sessions' state.
    pub record: Record,
    /// What was still to be done for it, in order.
    pub inbox: Vec<Work>,
    /// Who converses.
    pub participants: Participants,
    /// The most room it ever had, in bytes: what is no larger may wait for room on the other side, too.
    pub room_most: usize,
}

impl Instance {
    /// Opens a path from `node` down between `participants`; `anchor` gets what arrives. It may not be open for data at
    /// once: a transport tells `Event::Opened`.
    pub fn open<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        participants: Participants,
        anchor: Arc<dyn Anchor>,
    ) -> Result<PathId, OpenError> {
        self.open_with(world, shepherd, node, participants, anchor, Work::Look)
    }

    /// As [`open`](Instance::open), and does `first` for the path before it has sent anything: what is pushed may go with
    /// the first segment.
    pub fn open_with<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        participants: Participants,
        anchor: Arc<dyn Anchor>,
        first: Work,
    ) -> Result<PathId, OpenError> {
        shepherd.at(world.now());
        let id = self.reserve_path()?;
        let linker = PathLinker::new(self, node, id, shepherd.out.now);
        let opened = linker.open_node(node, 0, participants, &mut self.random(), None);
        self.settle_in(id, node, shepherd.out.now, opened, Top::Anchor(anchor))?;
        self.request(world, shepherd, id, first);
        Ok(id)
    }

    /// As [`open_with`](Instance::open_with), and what is wished of the path it knows before it does anything: its first
    /// segment says so already.
    #[allow(clippy::too_many_arguments)] // Those of `open_with` and the wishes.
    pub fn open_wishing<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        participants: Participants,
        anchor: Arc<dyn Anchor>,
        wishes: &[Setting],
        mut first: Work,
    ) -> Result<PathId, OpenError> {
        shepherd.at(world.now());
        let id = self.reserve_path()?;
        let linker = PathLinker::new(self, node, id, shepherd.out.now);
        let opened = linker.open_node(node, 0, participants, &mut self.random(), None);
        self.settle_in(id, node, shepherd.out.now, opened, Top::Anchor(anchor))?;
        if let Some(cell) = self.paths.find(id.index, id.generation)
            && let Tenancy::Awake(tenant) = &mut *cell.lock()
        {
            for wish in wishes {
                // What no session knows is nobody's business here: a graph may be without it.
                let _handled = tenant.path.control(&mut Control::Set(*wish), &mut shepherd.out);
            }
            self.step(world, shepherd, &cell, tenant, &mut first);
        }
        self.request(world, shepherd, id, Work::Look);
        Ok(id)
    }

    /// Who converses on a path, the parts that its protocols chose (a free port, the local host) included; `None` if it
    /// has gone.
    pub fn participants(&self, id: PathId) -> Option<Participants> {
        let cell = self.paths.find(id.index, id.generation)?;
        match &*cell.lock() {
            Tenancy::Awake(tenant) => Some(tenant.path.participants.clone()),
            Tenancy::Resting(sleeper) => Some(sleeper.path.read().0),
            Tenancy::Empty => None,
        }
    }

    /// Asks something of a path; a path that has gone hears nothing.
    pub fn request<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, id: PathId, mut work: Work) {
        self.request_in_place(world, shepherd, id, &mut work);
    }

    /// As [`request`](Instance::request), for work that lies where it is taken from: what is left there means nothing.
    pub fn request_in_place<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, id: PathId, work: &mut Work) {
        shepherd.at(world.now());
        self.serve(world, shepherd, id, work);
        self.settle_pending(world, shepherd);
    }

    /// Enables passive opens at `node`, or messages without paths if the wish is wild.
    pub fn enable(&self, node: u8, wish: EnableWish, acceptor: Arc<dyn Acceptor>) -> Result<Listening, EnableError> {
        self.enable_early(node, wish, 0, acceptor)
    }

    /// As [`enable`](Instance::enable), for passive opens of which `early_max` at once may bring data before their peer has
    /// proven that it is there (TCP Fast Open, RFC 7413).
    pub fn enable_early(
        &self,
        node: u8,
        wish: EnableWish,
        early_max: usize,
        acceptor: Arc<dyn Acceptor>,
    ) -> Result<Listening, EnableError> {
        let (index, generation) = self.enables.reserve().ok_or(EnableError::Full("enables"))?;
        let id = EnableId { index, generation };
        let way = EnableWay { instance: self, node, id, early_max };
        match way.enable_node(node, wish, &mut self.random()) {
            Ok(enabled) => {
                let participants = enabled.participants.clone();
                let enable = Enable {
                    acceptor,
                    top: node,
                    participants: enabled.participants,
                    bindings: Mutex::new(enabled.bindings),
                };
                self.enables.fill(index, Arc::new(enable));
                Ok(Listening { id, participants })
            }
            Err(error) => {
                self.enables.remove(index, generation);
                Err(error)
            }
        }
    }

    /// Ends an enable. Paths that opened on its behalf stay.
    pub fn disable(&self, id: EnableId) {
        if let Some(enable) = self.enables.remove(id.index, id.generation) {
            // The keys go now, though a thread that is delivering may hold the enable a moment longer.
            lock(&enable.bindings).clear();
        }
    }

    /// Sends a message without a path of its own from a wild enable to `participants` (whose local part says from where).
    pub fn send_wild<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        id: EnableId,
        participants: Participants,
        message: Message,
    ) -> Result<(), OpenError> {
        shepherd.at(world.now());
        let enable = self.enables.find(id.index, id.generation).ok_or(OpenError::NoEmbryo)?;
        let path = self.kept_path(shepherd, Key::At(enable.top, id, participants))?;
        shepherd.pending.push_back((path, Work::Push(message)));
        self.settle_pending(world, shepherd);
        Ok(())
    }

    /// The last message of a handshake has come: makes the path that the enable's acceptor is offered. `None` if it did
    /// not come to be.
    pub(super) fn open_for_enable<W: World + ?Sized>(
        &self,
        _world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        enable_id: EnableId,
        participants: Participants,
    ) -> Option<PathId> {
        let enable = self.enables.find(enable_id.index, enable_id.generation)?;
        let id = self.reserve_path().ok()?;
        let linker = PathLinker::new(self, enable.top, id, shepherd.out.now).passive_at(node, enable_id, participants);
        let top = enable.participants.clone();
        let opened = linker.open_node(enable.top, 0, top, &mut self.random(), None);
        let who = opened.as_ref().map(|opened| opened.participants.clone()).ok();
        // The acceptor is asked while the path is not yet in the table: nothing can reach it before its anchor stands.
        let anchor = who.and_then(|who| enable.acceptor.accept(id, &who));
        let refused = anchor.is_none();
        let top = anchor.map_or(Top::Nobody, Top::Anchor);
        self.settle_in(id, enable.top, shepherd.out.now, opened, top).ok()?;
        if refused {
            shepherd.pending.push_back((id, Work::Control(xylem_core::Control::Set(xylem_core::Setting::Abort))));
            shepherd.pending.push_back((id, Work::Close));
        }
        Some(id)
    }

    /// Takes a path out, to go on in another instance: its keys are free when this returns. `None` if it has gone.
    pub fn emigrate(&self, id: PathId) -> Option<Emigrant> {
        let cell = self.paths.find(id.index, id.generation)?;
        let tenancy = cell.lock().take();
        let mut tenant = match tenancy {
            Tenancy::Awake(tenant) => tenant,
            Tenancy::Resting(sleeper) => return Some(self.emigrate_resting(id, &cell, *sleeper)),
            Tenancy::Empty => return None,
        };
        self.paths.remove(id.index, id.generation);
        self.counters.gone.fetch_add(1, Ordering::Relaxed);
        // What waited for room was asked before what waits in the inbox.
        let held = std::mem::take(&mut tenant.held);
        let inbox = held.into_iter().chain(std::iter::from_fn(|| cell.take())).collect();
        let record = tenant.path.export();
        tenant.path.release();
        let (participants, room_most) = (tenant.path.participants.clone(), tenant.room_most);
        Some(Emigrant { record, inbox, participants, room_most })
    }

    /// A path at rest is its record already.
    fn emigrate_resting(&self, id: PathId, cell: &Cell, sleeper: Sleeper) -> Emigrant {
        self.paths.remove(id.index, id.generation);
        self.counters.gone.fetch_add(1, Ordering::Relaxed);
        self.counters.resting.fetch_sub(1, Ordering::Relaxed);
        let (participants, _, record) = sleeper.path.read();
        let inbox = std::iter::from_fn(|| cell.take()).collect();
        Emigrant { record, inbox, participants, room_most: sleeper.room_most }
    }

    /// Takes a path in that comes from another instance, and goes on with it.
    pub fn immigrate<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        mut emigrant: Emigrant,
        anchor: Arc<dyn Anchor>,
    ) -> Result<PathId, OpenError> {
        shepherd.at(world.now());
        let id = self.reserve_path()?;
        let linker = PathLinker::new(self, node, id, shepherd.out.now);
        let record = Some(&mut emigrant.record);
        let opened = linker.open_node(node, 0, emigrant.participants, &mut self.random(), record);
        self.settle_in(id, node, shepherd.out.now, opened, Top::Anchor(anchor))?;
        if let Some(cell) = self.paths.find(id.index, id.generation)
            && let Tenancy::Awake(tenant) = &mut *cell.lock()
        {
            tenant.room_most = emigrant.room_most;
        }
        self.request(world, shepherd, id, Work::Look);
        for work in emigrant.inbox {
            self.request(world, shepherd, id, work);
        }
        Ok(id)
    }

    pub(super) fn reserve_path(&self) -> Result<PathId, OpenError> {
        let (index, generation) = self.paths.reserve().ok_or(OpenError::Full("paths"))?;
        Ok(PathId { index, generation })
    }

    /// Gives what has opened its place in the table, or the place back if it has not.
    pub(super) fn settle_in(
        &self,
        id: PathId,
        node: u8,
        now: Instant,
        opened: Result<Opened, OpenError>,
        top: Top,
    ) -> Result<(), OpenError> {
        match opened {
            Ok(opened) => {
                let path = Path::new(opened, self.random());
                let tenant = Tenant::new(path, top, node, now);
                self.paths.fill(id.index, Arc::new(Cell::new(id, tenant)));
                self.counters.opened.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.paths.remove(id.index, id.generation);
                Err(error)
            }
        }
    }
}
