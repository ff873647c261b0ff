//! Serving a path: the only place from which push, pop and timeout are called, by whichever thread holds the path. What
//! the verbs leave in the outbox is carried on from here: up to the anchor or the protocols above a trunk, down to the
//! device's edge, and questions to the protocols.

use super::paths::{Cell, Tenancy, Tenant, Top, Work};
use super::{Due, Instance, Shepherd, World, lock};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use xylem_core::drop::linker;
use xylem_core::{Answer, Batch, Control, End, Handled, Instant, Message, Outbox, PathId, Question, Setting, Wheel};

/// A path that has been found, and the leaf a message came in by.
pub(super) struct Ticket {
    pub id: PathId,
    pub leaf: u8,
    pub cell: Arc<Cell>,
}

/// Paths that wait for a neighbour's link address.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    by_address: BTreeMap<IpAddr, Vec<PathId>>,
    count: usize,
}

/// The most paths that are remembered as waiting; others ask again by themselves.
const WAITERS_MAX: usize = 16_384;
/// How often one step may be followed by another that was due at once.
const AT_ONCE_MAX: usize = 64;

impl Waiters {
    fn add(&mut self, address: IpAddr, id: PathId) {
        let waiting = self.by_address.entry(address).or_default();
        if !waiting.contains(&id) && self.count < WAITERS_MAX {
            waiting.push(id);
            self.count += 1;
        }
    }

    fn take(&mut self, address: IpAddr) -> Vec<PathId> {
        let waiting = self.by_address.remove(&address).unwrap_or_default();
        self.count -= waiting.len();
        waiting
    }
}

impl Instance {
    /// Does `work` for a path, or leaves it to whoever holds the path.
    pub(super) fn serve<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, id: PathId, work: &mut Work) {
        match self.paths.find(id.index, id.generation) {
            Some(cell) => self.serve_cell(world, shepherd, &cell, work),
            None if matches!(work, Work::Arrive(_) | Work::Push(_)) => self.dropped(&linker::NO_PATH),
            None => {}
        }
    }

    /// Pops one message into a path that has been found, or leaves it to whoever holds the path.
    pub(super) fn arrive_alone<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        ticket: Ticket,
        message: Message,
    ) {
        self.serve_cell(world, shepherd, &ticket.cell, &mut Work::Arrive(message));
    }

    /// The work is taken out of its place, which may be forgotten. It is large and passes several hands, so it is not
    /// handed over by value.
    fn serve_cell<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, cell: &Arc<Cell>, work: &mut Work) {
        if let Some(mut guard) = cell.inbox_is_empty().then(|| cell.try_lock()).flatten() {
            match self.awake(shepherd, cell, &mut guard, work) {
                Some(tenant) => self.step(world, shepherd, cell, tenant, work),
                None if matches!(work, Work::Arrive(_) | Work::Push(_)) => self.dropped(&linker::NO_PATH),
                None => {}
            }
            return self.empty_inbox(world, shepherd, cell, guard);
        }
        if !cell.put(std::mem::replace(work, Work::Look)) {
            self.dropped(&linker::INBOX_FULL);
        }
        if let Some(guard) = cell.try_lock() {
            self.empty_inbox(world, shepherd, cell, guard);
        }
    }

    /// Pops a batch into a path, or leaves it to whoever holds the path.
    pub(super) fn arrive<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        ticket: Ticket,
        batch: &mut Batch,
    ) {
        let cell = ticket.cell;
        if let Some(mut guard) = cell.inbox_is_empty().then(|| cell.try_lock()).flatten() {
            match self.awaken(shepherd, &cell, &mut guard) {
                Some(tenant) => {
                    tenant.active_at = shepherd.out.now;
                    tenant.path.pop_batch(batch, &mut shepherd.out);
                    self.settle(world, shepherd, &cell, tenant);
                }
                None => batch.drain().for_each(|_| self.dropped(&linker::NO_PATH)),
            }
            return self.empty_inbox(world, shepherd, &cell, guard);
        }
        for message in batch.drain() {
            if !cell.put(Work::Arrive(message)) {
                self.dropped(&linker::INBOX_FULL);
            }
        }
        if let Some(guard) = cell.try_lock() {
            self.empty_inbox(world, shepherd, &cell, guard);
        }
    }

    /// Whoever has held a path does what waits in its inbox before it lets go, and looks again when it has, for as long as
    /// nobody else holds the path.
    fn empty_inbox<'c, W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        cell: &'c Arc<Cell>,
        mut guard: MutexGuard<'c, Tenancy>,
    ) {
        loop {
            while let Some(mut work) = cell.take() {
                let Some(tenant) = self.awake(shepherd, cell, &mut guard, &work) else { break };
                self.step(world, shepherd, cell, tenant, &mut work);
            }
            match &*guard {
                Tenancy::Empty => return,
                Tenancy::Awake(tenant) if tenant.finished => {
                    let Tenancy::Awake(tenant) = guard.take() else { unreachable!("it was awake a line ago") };
                    drop(guard);
                    return self.bury(world, shepherd, cell, *tenant);
                }
                Tenancy::Awake(tenant) if tenant.wants_rest(shepherd.out.now, || self.rest_after()) => {
                    self.lay_to_rest(&mut guard)
                }
                Tenancy::Awake(_) | Tenancy::Resting(_) => {}
            }
            drop(guard);
            if cell.left_empty() {
                return;
            }
            guard = match cell.try_lock() {
                Some(guard) => guard,
                None => return,
            };
        }
    }

    /// Work that came up for other paths meanwhile.
    pub(super) fn settle_pending<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd) {
        loop {
            while let Some((id, mut work)) = shepherd.pending.pop_front() {
                self.serve(world, shepherd, id, &mut work);
            }
            self.close_idle_trunks(world, shepherd);
            if shepherd.pending.is_empty() {
                return;
            }
        }
    }

    /// One verb and all that follows from it.
    pub(super) fn step<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        cell: &Cell,
        tenant: &mut Tenant,
        work: &mut Work,
    ) {
        if tenant.must_wait(work) {
            tenant.held.push_back(std::mem::replace(work, Work::Look));
            return;
        }
        if !matches!(work, Work::Timeout(_)) {
            tenant.active_at = shepherd.out.now;
        }
        self.act(&mut shepherd.out, tenant, work);
        self.settle(world, shepherd, cell, tenant);
    }

    /// One verb.
    fn act(&self, out: &mut Outbox, tenant: &mut Tenant, work: &mut Work) {
        match work {
            Work::Arrive(message) => tenant.path.pop(message, out),
            Work::Push(message) => {
                if !tenant.path.push(message, out) {
                    self.dropped(&linker::REFUSED);
                }
            }
            Work::Credit(bytes) => tenant.path.credit(*bytes, out),
            Work::Timeout(deadline) => {
                tenant.armed.retain(|armed| armed != deadline);
                if tenant.path.deadline().is_some_and(|deadline| deadline <= out.now) {
                    tenant.path.timeout(out);
                }
            }
            Work::Control(control) => {
                if *control == Control::Set(Setting::Abort) {
                    tenant.held.clear();
                }
                match (tenant.path.control(control, out), control) {
                    (Handled::Yes, Control::Question(_, answer)) => {
                        answer.take().into_iter().for_each(|answer| out.tell(Control::Answer(answer)));
                    }
                    (Handled::Yes, _) => {}
                    (Handled::No, control) if control.travels_down() => out.advise(control.clone()),
                    (Handled::No, control) => out.tell(control.clone()),
                }
            }
            Work::Close => tenant.path.close(out),
            Work::Look => {}
        }
    }

    /// Carries on what is in the outbox until nothing is, and sees to the path's deadline.
    fn settle<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, cell: &Cell, tenant: &mut Tenant) {
        let mut round = 0;
        let deadline = loop {
            while !shepherd.out.is_untouched() {
                self.carry(world, shepherd, cell, tenant);
            }
            let levels = shepherd.out.take_levels();
            let _consumed_by_the_device = shepherd.out.take_credit();
            if levels.finished {
                tenant.finished = true;
                tenant.linger = shepherd.out.take_linger();
                return;
            }
            if let Some(mut work) = tenant.released() {
                self.act(&mut shepherd.out, tenant, &mut work);
                continue;
            }
            let deadline = tenant.path.deadline();
            if deadline.is_none_or(|deadline| deadline > shepherd.out.now) || round == AT_ONCE_MAX {
                break deadline;
            }
            tenant.path.timeout(&mut shepherd.out);
            round += 1;
        };
        if let Some(deadline) = deadline.or_else(|| tenant.rests_at(shepherd.out.now, self.rest_after())) {
            self.arm_path(world, cell.id, tenant, deadline);
        }
        if let Top::Anchor(anchor) = &tenant.top {
            let room = tenant.path.room();
            if room != tenant.room {
                tenant.room = room;
                tenant.room_most = tenant.room_most.max(room);
                anchor.room(room);
            }
        }
    }

    /// Empties the outbox once.
    fn carry<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, cell: &Cell, tenant: &mut Tenant) {
        // Few steps leave more than one kind of thing, so a lane is looked into only if something is there.
        if shepherd.out.has_dropped() {
            shepherd.out.drain_dropped().for_each(|reason| self.dropped(reason));
        }
        if shepherd.out.has_raised() {
            self.carry_up(world, shepherd, tenant);
        }
        for mut message in shepherd.out.drain_down() {
            // The branch named a leaf of this path; to what is below it says nothing.
            let leaf = std::mem::take(&mut message.attributes.branch);
            match tenant.path.leaves[usize::from(leaf)].end {
                End::Device(device) => self.emit(world, device, &mut message, &tenant.path),
                End::Trunk(trunk) => shepherd.pending.push_back((trunk, Work::Push(message))),
            }
        }
        if shepherd.out.has_advice() {
            let advice: SmallVec<[Control; 4]> = shepherd.out.drain_advice().collect();
            for control in advice {
                self.ask(world, shepherd, cell, tenant, control);
            }
        }
        assert!(shepherd.out.next_reply().is_none(), "a session replied: only protocols do");
    }

    fn carry_up<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, tenant: &mut Tenant) {
        match &tenant.top {
            Top::Anchor(anchor) => {
                shepherd.out.drain_up().for_each(|message| anchor.deliver(message));
                shepherd.out.drain_told().for_each(|control| anchor.told(control));
            }
            Top::Node(node) => {
                let (node, participants) = (*node, tenant.path.participants.clone());
                let messages: Vec<Message> = shepherd.out.drain_up().collect();
                shepherd.out.drain_told().for_each(drop);
                for mut message in messages {
                    let who = participants.clone();
                    if let Some(ticket) = self.climb_from_trunk(world, shepherd, node, who, &mut message) {
                        message.attributes.branch = ticket.leaf;
                        shepherd.pending.push_back((ticket.id, Work::Arrive(message)));
                    }
                }
            }
            Top::Nobody => {
                shepherd.out.drain_up().for_each(|_| self.dropped(&linker::NOBODY));
                shepherd.out.drain_told().for_each(drop);
            }
        }
    }

    /// A control that no session of the path handled goes to the protocols; an answer comes straight back.
    fn ask<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        cell: &Cell,
        tenant: &mut Tenant,
        mut control: Control,
    ) {
        if let Control::Question(Question::Neighbour(address), _) = &control {
            lock(&self.waiters).add(*address, cell.id);
        }
        self.offer(world, shepherd, None, &mut control);
        if let Control::Question(_, Some(answer)) = control {
            let mut answer = Control::Answer(answer);
            if tenant.path.control(&mut answer, &mut shepherd.out) == Handled::No {
                shepherd.out.tell(answer);
            }
        }
    }

    /// Offers a control to the protocols (but for the one it comes from) until one has dealt with it.
    fn offer<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, from: Option<u8>, control: &mut Control) {
        for node in (0..self.nodes.len() as u8).filter(|node| Some(*node) != from) {
            let Some(protocol) = &self.nodes[usize::from(node)].protocol else { continue };
            let handled = self.node_verb(world, shepherd, node, |out| protocol.control(control, out));
            self.arm_node(world, node);
            if handled == Handled::Yes {
                return;
            }
        }
    }

    /// Runs a verb of a node's protocol with its own random stream, and carries on what it left.
    pub(super) fn node_verb<W: World + ?Sized, R>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        verb: impl FnOnce(&mut Outbox) -> R,
    ) -> R {
        let (out, random) = (&mut shepherd.node_out, &mut shepherd.randoms[usize::from(node)]);
        std::mem::swap(&mut out.random, random);
        out.begin(usize::MAX);
        let result = verb(out);
        std::mem::swap(&mut out.random, random);
        if !out.is_untouched() {
            self.carry_node(world, shepherd, node);
        }
        result
    }

    fn carry_node<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, node: u8) {
        let out = &mut shepherd.node_out;
        out.drain_dropped().for_each(|reason| self.dropped(reason));
        assert!(out.drain_down().next().is_none(), "a protocol pushed without a path: it replies instead");
        assert!(out.drain_up().next().is_none(), "a protocol raised without a path: it puts into the view instead");
        // A protocol leaves one kind of thing at a time: places to collect the others are not made for nothing.
        let has_advice = out.has_advice();
        let told: SmallVec<[Control; 1]> = out.drain_told().collect();
        while let Some(reply) = shepherd.node_out.next_reply() {
            self.send_reply(world, shepherd, node, reply);
        }
        for control in told {
            if let Control::Answer(Answer::Neighbour { address, .. }) = &control {
                for id in lock(&self.waiters).take(*address) {
                    shepherd.pending.push_back((id, Work::Control(control.clone())));
                }
            }
        }
        if has_advice {
            let advice: SmallVec<[Control; 2]> = shepherd.node_out.drain_advice().collect();
            for mut control in advice {
                self.offer(world, shepherd, Some(node), &mut control);
            }
        }
        self.arm_node(world, node);
    }

    /// Puts a path's next deadline on the wheel, unless an earlier one stands there already.
    fn arm_path<W: World + ?Sized>(&self, world: &W, id: PathId, tenant: &mut Tenant, deadline: Instant) {
        if tenant.armed.last().is_some_and(|armed| *armed <= deadline) {
            return;
        }
        tenant.armed.push(deadline);
        self.arm(world, deadline, Due::Path(id));
    }

    /// Puts a protocol's next deadline on the wheel, unless an earlier one stands there already.
    pub(super) fn arm_node<W: World + ?Sized>(&self, world: &W, node: u8) {
        let Some(deadline) = self.nodes[usize::from(node)].protocol.as_ref().and_then(|it| it.deadline()) else {
            return;
        };
        let armed = &mut lock(&self.node_armed)[usize::from(node)];
        if armed.is_none_or(|armed| deadline < armed) {
            *armed = Some(deadline);
            self.arm(world, deadline, Due::Node(node));
        }
    }

    pub(super) fn arm<W: World + ?Sized>(&self, world: &W, deadline: Instant, due: Due) {
        let mut wheel = lock(&self.wheel);
        wheel.insert(deadline, due);
        self.note_next_due(&wheel);
        let sleeps = deadline.as_nanos() < self.asleep_until.load(Ordering::SeqCst);
        drop(wheel);
        if sleeps {
            world.nudge();
        }
    }

    /// Remembers when a turn has to look at the wheel again. It is what [`wake`](Instance::wake) says to sleepers, so that
    /// who comes when told to finds the wheel moving on. Called under the wheel's lock.
    pub(super) fn note_next_due(&self, wheel: &Wheel<Due>) {
        self.next_due.store(wheel.next().map_or(u64::MAX, Instant::as_nanos), Ordering::SeqCst);
    }

    /// The path is finished: what lingers goes to its protocol, its keys are freed, and its anchor is told. In this order,
    /// so that no segment finds neither the path nor what it left.
    fn bury<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, cell: &Cell, tenant: Tenant) {
        self.paths.remove(cell.id.index, cell.id.generation);
        while cell.take().is_some() {}
        self.counters.gone.fetch_add(1, Ordering::Relaxed);
        let Tenant { path, top, linger, .. } = tenant;
        if let Some(entry) = linger {
            let takes = |node: &super::Node| {
                node.protocol.as_ref().is_some_and(|it| it.linger(&entry, shepherd.out.now) == Handled::Yes)
            };
            let taker = self.nodes.iter().position(takes).expect("some protocol takes what its session left behind");
            self.arm_node(world, taker as u8);
        }
        drop(path);
        if let Top::Anchor(anchor) = top {
            anchor.gone();
        }
    }
}
