//! The turn: one round of everything an instance has to do. Real hosts and the simulator call the same one, so even the
//! order of the event loop is what the simulator tests.

use super::serve::Ticket;
use super::{Due, Instance, Shepherd, Work, World, lock};
use std::sync::atomic::Ordering;
use xylem_core::{Batch, Instant};

/// When the next turn is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once: there was more than one turn does.
    Now,
    /// At this time, or when a frame arrives.
    At(Instant),
    /// When a frame arrives.
    Never,
}

impl Instance {
    /// Receives a batch, brings each frame to its path, expires what is due, and says when to come again.
    pub fn turn<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd) -> Wake {
        if self.turn_awake(world, shepherd) { Wake::Now } else { self.wake() }
    }

    /// A turn by somebody who does not sleep behind it: only says whether there was more than one turn does.
    pub fn turn_awake<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd) -> bool {
        shepherd.at(world.now());
        let received = self.receive(world, shepherd);
        let expired = self.expire(world, shepherd);
        self.start(world, shepherd);
        received == Batch::LIMIT || expired == EXPIRE_LIMIT
    }

    /// When the next turn is wanted; remembered, so that an earlier deadline nudges the sleeper.
    pub fn wake(&self) -> Wake {
        // Under the wheel's lock, as is the reading in `arm`: a deadline put in now either is seen here or nudges.
        let wheel = lock(&self.wheel);
        let next = wheel.next();
        self.asleep_until.store(next.map_or(u64::MAX, Instant::as_nanos), Ordering::SeqCst);
        drop(wheel);
        next.map_or(Wake::Never, Wake::At)
    }

    /// One batch of frames, in order; neighbours of the same path go up together.
    fn receive<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd) -> usize {
        let mut arrivals = std::mem::take(&mut shepherd.arrivals);
        world.receive(&mut arrivals, Batch::LIMIT);
        let count = arrivals.len();
        self.counters.frames_in.fetch_add(count as u64, Ordering::Relaxed);
        let mut batch = std::mem::take(&mut shepherd.batch);
        let mut path: Option<Ticket> = None;
        for (device, mut frame) in arrivals.drain(..) {
            frame.attributes.arrived = shepherd.out.now;
            let found = self.climb_from_device(world, shepherd, device, &mut frame);
            if let Some(current) = path.take_if(|current| found.as_ref().is_none_or(|found| found.id != current.id)) {
                self.arrive(world, shepherd, current, &mut batch);
            }
            let Some(ticket) = found else { continue };
            frame.attributes.branch = ticket.leaf;
            if count == 1 {
                // What comes alone has no neighbours to go up with.
                self.arrive_alone(world, shepherd, ticket, frame);
                break;
            }
            batch.add(frame);
            path = Some(ticket);
        }
        if let Some(current) = path {
            self.arrive(world, shepherd, current, &mut batch);
        }
        shepherd.arrivals = arrivals;
        shepherd.batch = batch;
        self.settle_pending(world, shepherd);
        count
    }

    /// What is due, up to a limit.
    fn expire<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd) -> usize {
        for count in 0..EXPIRE_LIMIT {
            let Some((deadline, due)) = self.expire_one(shepherd.out.now) else { return count };
            match due {
                Due::Path(id) => self.serve(world, shepherd, id, &mut Work::Timeout(deadline)),
                Due::Node(node) => {
                    lock(&self.node_armed)[usize::from(node)] = None;
                    self.node_timeout(world, shepherd, node);
                }
            }
            self.settle_pending(world, shepherd);
        }
        EXPIRE_LIMIT
    }

    /// The next deadline that has come. Most turns find none, and need no lock to know it.
    fn expire_one(&self, now: Instant) -> Option<(Instant, Due)> {
        if now.as_nanos() < self.next_due.load(Ordering::SeqCst) {
            return None;
        }
        let mut wheel = lock(&self.wheel);
        let expired = wheel.expire(now);
        if expired.is_none() {
            self.note_next_due(&wheel);
        }
        expired
    }

    /// Gives every protocol its first look at the time.
    fn start<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd) {
        if self.counters.started.load(Ordering::Acquire) || self.counters.started.swap(true, Ordering::AcqRel) {
            return;
        }
        for node in 0..self.nodes.len() as u8 {
            self.node_timeout(world, shepherd, node);
        }
        self.settle_pending(world, shepherd);
    }

    fn node_timeout<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, node: u8) {
        let Some(protocol) = self.nodes[usize::from(node)].protocol.clone() else { return };
        self.node_verb(world, shepherd, node, |out| protocol.timeout(out));
        self.arm_node(world, node);
    }
}

/// The most deadlines one turn serves.
const EXPIRE_LIMIT: usize = 256;
