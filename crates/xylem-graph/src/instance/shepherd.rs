//! A shepherd: what one thread needs to bring messages through an instance. Everything in it is scratch that is empty
//! between steps, so a shepherd belongs to no path and an instance may have any number of them.

use super::paths::Work;
use std::collections::VecDeque;
use xylem_core::{Batch, Instant, Message, Outbox, PathId, Pool, Random};

/// See the module's text.
#[derive(Debug)]
pub struct Shepherd {
    /// For the verbs of paths.
    pub(crate) out: Outbox,
    /// For the verbs of protocols.
    pub(crate) node_out: Outbox,
    /// A stream for each node's protocol.
    pub(crate) randoms: Vec<Random>,
    /// Work for other paths that came up while one was locked.
    pub(crate) pending: VecDeque<(PathId, Work)>,
    pub(crate) arrivals: Vec<(u16, Message)>,
    pub(crate) batch: Batch,
}

impl Shepherd {
    pub(crate) fn new(pool: Pool, nodes: usize, random: &mut Random) -> Shepherd {
        Shepherd {
            out: Outbox::new(Instant::ZERO, random.child(), pool.clone()),
            node_out: Outbox::new(Instant::ZERO, random.child(), pool),
            randoms: (0..nodes).map(|_| random.child()).collect(),
            pending: VecDeque::new(),
            arrivals: Vec::new(),
            batch: Batch::default(),
        }
    }

    /// Sets the time for the steps that follow.
    pub(crate) fn at(&mut self, now: Instant) {
        self.out.now = now;
        self.node_out.now = now;
    }
}
