//! An instance: a running graph. Its nodes are the protocols, its paths the conversations; whoever runs it (a thread of
//! its own, the application's thread, the simulator) calls [`turn`](Instance::turn) in a world that has a clock and
//! devices. What an application asks for is work for a path, done by whichever thread finds the path free.
//!
//! | file | what |
//! | --- | --- |
//! | `turn.rs` | the loop: receive, demultiplex, pop, expire, report |
//! | `climb.rs` | a frame's way up through the protocols to its path |
//! | `serve.rs` | the only caller of push, pop and timeout; what becomes of an outbox |
//! | `linker.rs` | opens and enables, down through the graph |
//! | `request.rs` | what applications ask for |
//! | `hosting.rs` | the same, as a host offers it to applications |
//! | `reply.rs` | messages without a path of their own |
//! | `rest.rs` | idle paths, kept as their records |
//! | `trunk.rs` | paths on which other paths stand |
//! | `edge.rs` | the device's edge: late cutting, checksums |

mod climb;
mod edge;
mod hosting;
mod linker;
mod node;
mod paths;
mod reply;
mod request;
mod rest;
mod serve;
mod shepherd;
#[cfg(test)]
mod tests;
mod trunk;
mod turn;
mod world;

pub use hosting::{BACKLOG, Hosting};
pub use node::{Below, Lower, Node};
pub use paths::{INBOX_MAX, Work};
pub use reply::KEPT_PATHS_MAX;
pub use request::{Emigrant, Listening};
pub use rest::{AWAKE_MANY, REST_AFTER, REST_SOON_AFTER};
pub use shepherd::Shepherd;
pub use turn::Wake;
pub use world::{DeviceFacts, World};

use node::Over;
use paths::{Cell, Table};
use reply::KeptPaths;
use request::Enable;
use serve::Waiters;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trunk::{IdleTrunks, Trunks};
use xylem_core::{DropReason, Drops, Instant, PathId, Pool, Random, Wheel};

/// Limits of one instance, fixed when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Paths, those for replies included.
    pub paths: usize,
    /// Enables.
    pub enables: usize,
    /// Small buffers.
    pub small_buffers: usize,
    /// Large buffers.
    pub large_buffers: usize,
}

impl Default for Limits {
    /// 128 Ki paths, 16 Ki enables, and buffers of at most 128 MiB of each size (taken as they are needed).
    fn default() -> Limits {
        Limits { paths: 131_072, enables: 16_384, small_buffers: 65_536, large_buffers: 2_048 }
    }
}

/// What the wheel wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Path(PathId),
    Node(u8),
}

/// A running graph. See the module's text.
pub struct Instance {
    nodes: Vec<Node>,
    over: Over,
    devices: Vec<DeviceFacts>,
    pool: Pool,
    paths: Table<Arc<Cell>>,
    enables: Table<Arc<Enable>>,
    wheel: Mutex<Wheel<Due>>,
    /// Nothing on the wheel is due before this, in nanoseconds.
    next_due: AtomicU64,
    /// The deadline of each node that stands on the wheel, so that it does so once.
    node_armed: Mutex<Vec<Option<Instant>>>,
    /// When the shell that runs the instance will wake by itself, in nanoseconds.
    asleep_until: AtomicU64,
    waiters: Mutex<Waiters>,
    kept: Mutex<KeptPaths>,
    trunks: Mutex<Trunks>,
    idle_trunks: Arc<IdleTrunks>,
    /// For each node: held by whoever makes a trunk there, so that two who want the same one do not both make it.
    making_trunk: Vec<Mutex<()>>,
    drops: Mutex<Drops>,
    counters: Counters,
    random: Mutex<Random>,
}

/// What an instance counts beside its drops.
#[derive(Debug, Default)]
struct Counters {
    started: AtomicBool,
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    opened: AtomicU64,
    gone: AtomicU64,
    /// Paths that are at rest now.
    resting: AtomicUsize,
}

/// A reading of the counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Frames received from devices.
    pub frames_in: u64,
    /// Frames given to devices; a message the device cuts by itself counts once.
    pub frames_out: u64,
    /// Paths opened, those for replies included.
    pub opened: u64,
    /// Paths gone.
    pub gone: u64,
    /// Why messages were dropped.
    pub drops: Drops,
    /// Small and large buffers in somebody's hands.
    pub buffers_held: (usize, usize),
}

impl Instance {
    /// An instance of `nodes` (each below those that stand over it) and `devices`; all its randomness comes from `seed`.
    pub fn new(nodes: Vec<Node>, devices: Vec<DeviceFacts>, limits: Limits, seed: u64) -> Instance {
        assert!(nodes.len() <= 250, "a graph of {} nodes; the limit is 250", nodes.len());
        let pool = Pool::new(limits.small_buffers, limits.large_buffers);
        let making_trunk = nodes.iter().map(|_| Mutex::default()).collect();
        Instance {
            node_armed: Mutex::new(vec![None; nodes.len()]),
            over: Over::new(&nodes, devices.len()),
            nodes,
            devices,
            pool,
            paths: Table::new(limits.paths),
            enables: Table::new(limits.enables),
            wheel: Mutex::default(),
            next_due: AtomicU64::new(0),
            asleep_until: AtomicU64::new(0),
            waiters: Mutex::default(),
            kept: Mutex::default(),
            trunks: Mutex::default(),
            idle_trunks: Arc::default(),
            making_trunk,
            drops: Mutex::default(),
            counters: Counters::default(),
            random: Mutex::new(Random::seeded(seed)),
        }
    }

    /// A shepherd for one more thread.
    pub fn shepherd(&self) -> Shepherd {
        Shepherd::new(self.pool.clone(), self.nodes.len(), &mut lock(&self.random))
    }

    /// The pool that devices fill and applications write into.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The nodes, as the graph lists them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The devices.
    pub fn devices(&self) -> &[DeviceFacts] {
        &self.devices
    }

    /// The first node of this protocol: where an application opens by protocol rather than by name.
    pub fn node_of_kind(&self, kind: &str) -> Option<u8> {
        self.nodes.iter().position(|node| node.kind == kind).map(|index| index as u8)
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<u8> {
        self.nodes.iter().position(|node| node.name == name).map(|index| index as u8)
    }

    /// The counters.
    pub fn reading(&self) -> Reading {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            frames_in: load(&self.counters.frames_in),
            frames_out: load(&self.counters.frames_out),
            opened: load(&self.counters.opened),
            gone: load(&self.counters.gone),
            drops: lock(&self.drops).clone(),
            buffers_held: self.pool.held(),
        }
    }

    /// How many paths there are, those for replies included.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// How many of the paths are chains kept for replies and for unconnected senders.
    pub fn kept_path_count(&self) -> usize {
        lock(&self.kept).len()
    }

    /// How many conversations are over and not yet forgotten (TIME-WAIT): entries of protocols, without paths.
    pub fn lingering_count(&self) -> usize {
        self.nodes.iter().filter_map(|node| node.protocol.as_ref()).map(|protocol| protocol.lingering()).sum()
    }

    /// How many deadlines stand on the wheel.
    pub fn deadline_count(&self) -> usize {
        lock(&self.wheel).len()
    }

    fn dropped(&self, reason: &'static DropReason) {
        lock(&self.drops).count(reason);
    }
}

/// A panic while a lock is held ends the program (release) or the test, so there is nothing to be careful about.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
