//! Scenario files: hosts with their graphs, cables with what they do to frames, traffic, and what must hold in the end.
//! [`parse`] turns a text into a [`Scenario`], [`Plan::new`] brings it together with graphs and a catalogue, and
//! [`Plan::run`] runs it in virtual time and reports. A scenario and a seed are all there is to a run.
//!
//! ```text
//! # Everything random comes from the seed; the time is the simulation's.
//! seed = 1
//! time = 60s
//!
//! client = host                     { ip.address = "10.0.0.1/24" }
//! server = host                     { graph = "my.graph", ip.address = "10.0.0.2/24", tcp.msl = 1s }
//! cable  = link client -- server    { loss = 1%, delay = 5ms, rate = 100Mb/s }
//! bulk   = transfer client -> server { there = 1MiB, back = 1B..64KiB }
//! pull cable                        { at = 2s, back = 4s }
//!
//! check delivered
//! check quiet
//! golden = 0123456789abcdef
//! ```
//!
//! | line | options |
//! | --- | --- |
//! | `seed = N`, `time = SPAN`, `golden = HASH` | the seed (1), the time limit (1min), the hash that the scenario's own seed must give |
//! | `NAME = host` | `graph` (a built-in name, or a file in quotes; `host`), and options of its nodes as `node.option` |
//! | `NAME = link HOST -- HOST` | what the cable does: `rate`, `delay`, `jitter`, `loss`, `reorder`, `duplicate`, `corrupt`, `mtu`, `queue`; an end is `HOST` or `HOST:NODE` |
//! | `NAME = transfer HOST -> HOST` | `there` (64KiB), `back` (0B), `count` (1), `every` (0s), `start` (0s), `address`, `port` (7000), `protocol` (tcp), `outcome` (`right`, `any` or `fails`) |
//! | `NAME = datagrams HOST -> HOST` | `count` (10), `size` (512B), `every` (10ms), `start`, `patience` (5s), `returned` (all), `address`, `port`, `protocol` (udp) |
//! | `NAME = ping HOST -> HOST` | `count` (3), `size` (56B), `every` (1s), `start`, `patience` (5s), `returned` (all), `address`, `protocol` (icmp) |
//! | `pull CABLE` | `at`, and `back` if it is put back |
//! | `check delivered` | all traffic is done and right |
//! | `check within SPAN` | all traffic is done by then |
//! | `check quiet` | when it has been closed for `after` (3min), nothing is left: no paths, no deadlines that keep coming, no buffers |
//! | `check drops` | `HOST = N`: it dropped at most so many messages |
//! | `check dropped` | `HOST = "PROTOCOL: WHY"`: it dropped at least one for this reason |
//! | `check paths` | `HOST = N`: so many paths stand in the end, kept ones not counted |
//!
//! The golden hash covers every frame that the scenario's own seed causes, with its time. A change that is meant to change
//! frames refreshes all of them with `xylem sim scenarios/*.sim --write-golden`; they are not edited by hand.
//!
//! A size written `1B..64KiB` is drawn from the seed; `count` makes that many conversations alike, on ports that follow
//! each other. Names of hosts, cables and traffic are in one space.

mod fields;
mod judge;
mod line;
mod plan;
mod read;
mod report;
mod run;

pub use line::TEXT_BYTES_MAX;
pub use plan::{Plan, Source};
pub use read::parse;
pub use report::{Checked, Dropped, Drove, HostReport, LinkReport, Report};

use std::net::IpAddr;
use std::time::Duration;
use xylem_core::Random;
use xylem_graph::file::{Located, Value};
use xylem_graph::link::LinkModel;

/// The most hosts of a scenario.
pub const HOSTS_MAX: usize = 256;
/// The most conversations of a scenario.
pub const CONVERSATIONS_MAX: u64 = 10_000;

/// A scenario as its file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The seed, unless the caller of [`Plan::run`] names another.
    pub seed: u64,
    /// How long it may last in virtual time.
    pub time: Duration,
    /// The hash that its own seed must give.
    pub golden: Option<Located<String>>,
    /// The hosts.
    pub hosts: Vec<HostWish>,
    /// The cables.
    pub cables: Vec<CableWish>,
    /// What the applications do.
    pub traffic: Vec<TrafficWish>,
    /// Which cables are pulled, and when.
    pub pulls: Vec<Pull>,
    /// What must hold in the end.
    pub checks: Vec<Located<Check>>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWish {
    /// Its name.
    pub name: Located<String>,
    /// Its graph.
    pub graph: Located<GraphName>,
    /// Options that take the place of the graph's.
    pub overrides: Vec<Override>,
}

/// Where a graph comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphName {
    /// One that comes with the program, by name.
    Builtin(String),
    /// A file, named relative to the scenario's.
    File(String),
}

impl std::fmt::Display for GraphName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GraphName::Builtin(name) => f.write_str(name),
            GraphName::File(file) => write!(f, "\"{file}\""),
        }
    }
}

/// One option of one node of a host's graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The node.
    pub node: Located<String>,
    /// The option.
    pub option: String,
    /// Its value.
    pub value: Located<Value>,
}

/// A cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableWish {
    /// Its name.
    pub name: Located<String>,
    /// Where it is plugged in.
    pub ends: [Located<PlugWish>; 2],
    /// What it does to frames, in both directions.
    pub model: LinkModel,
}

/// Where a cable is plugged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlugWish {
    /// The number of the host.
    pub host: usize,
    /// The node over the device, if the host has several.
    pub node: Option<String>,
}

/// What an application does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficWish {
    /// Its name.
    pub name: Located<String>,
    /// What it is.
    pub kind: Kind,
    /// The number of the host that begins.
    pub client: usize,
    /// The number of the host that answers.
    pub server: usize,
    /// The protocol at which both stand.
    pub protocol: Located<String>,
    /// The address the client opens to; otherwise the server's first.
    pub address: Option<IpAddr>,
    /// The server's port, the first of `count` if there are several conversations.
    pub port: u16,
    /// When the first message goes out or the first connection opens.
    pub start: Duration,
    /// Time from one message, or one connection, to the next.
    pub every: Duration,
    /// Messages, or connections.
    pub count: u64,
}

/// What traffic is, with what only its kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes over a stream.
    Transfer {
        /// Bytes from client to server.
        there: Extent,
        /// Bytes from server to client.
        back: Extent,
        /// How it must end.
        ending: Ending,
    },
    /// Messages that come back from the server.
    Datagrams(Echoed),
    /// Messages that come back from the server's protocol itself.
    Ping(Echoed),
}

/// Messages that come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echoed {
    /// Bytes of each.
    pub size: Extent,
    /// How long the last one is waited for.
    pub patience: Duration,
    /// How many must come back; all if it is not said.
    pub returned: Option<u64>,
}

/// How a transfer must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every byte arrives, and both ends close.
    Right,
    /// Or the connection fails, every byte that arrived being right.
    Any,
    /// The connection fails.
    Fails,
}

/// A number, or one that is drawn between two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Extent {
    /// Always `number`.
    pub const fn of(number: u64) -> Extent {
        Extent { least: number, most: number }
    }

    /// A number of it. One draw whatever the extent, so that narrowing one leaves the others as they were.
    pub fn draw(self, random: &mut Random) -> u64 {
        // Sizes are below 2^63: the sum does not overflow.
        self.least + random.below(self.most - self.least + 1)
    }
}

/// A cable that is pulled, and perhaps put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The number of the cable.
    pub cable: usize,
    /// When it is pulled.
    pub at: Duration,
    /// When it is put back.
    pub back: Option<Duration>,
}

/// What must hold in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// All traffic is done and right.
    Delivered,
    /// All traffic is done by then.
    Within(Duration),
    /// Nothing is left so long after all was closed.
    Quiet(Duration),
    /// A host dropped at most so many messages.
    Drops(usize, u64),
    /// A host dropped at least one message for this reason: protocol, why.
    Dropped(usize, String, String),
    /// So many paths of a host stand in the end.
    Paths(usize, u64),
}
