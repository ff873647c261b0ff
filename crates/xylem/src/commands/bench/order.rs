//! What an end is told to do and what it answers. Each end of a measurement is a process of its own (both ends of an
//! in-process wire are two threads of one); the order goes to it as one JSON object on its command line, the answer
//! comes back as one on its standard output.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Round trips on one connection.
    Rr,
    /// A stream of bytes in one direction.
    Stream,
    /// Connections: connect, request, response, close.
    Crr,
    /// Memory of connections on which nothing happens.
    Idle,
}

impl Task {
    /// Its name on the command line and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Task::Rr => "rr",
            Task::Stream => "stream",
            Task::Crr => "crr",
            Task::Idle => "idle",
        }
    }
}

/// How an application waits for its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// It never sleeps: it asks the non-blocking socket again and again.
    Spin,
    /// It sleeps in a blocking call.
    Block,
}

/// What carries the frames of a stack of Xylem's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A TAP whose other side is the kernel, the peer.
    Tap,
    /// Packet sockets on one end of a veth pair, with the kernel as the peer at the other.
    Packet,
    /// A wire inside one process, with Xylem at both ends.
    Wire,
}

/// How the stack gets its turns (`xylem_host::shell::Shell`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// By the application's own thread.
    Inline,
    /// By a thread of its own that sleeps.
    Thread,
    /// By a thread of its own that never sleeps.
    Spin,
}

/// Which end a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The one that connects, asks, and sends the stream.
    Client,
    /// The one that listens, answers, and receives the stream.
    Server,
    /// Both, a thread each.
    Both,
}

/// Whose TCP an end uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sockets {
    /// The kernel's sockets.
    Kernel,
    /// Xylem's.
    Xylem {
        /// What carries its frames.
        carrier: Carrier,
        /// How it gets its turns.
        turns: Turns,
        /// The text of its graph; the address is said by the end itself.
        graph: String,
    },
}

/// Everything an end has to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// What is measured.
    pub task: Task,
    /// Which end this is.
    pub side: Side,
    /// Whose sockets it uses.
    pub sockets: Sockets,
    /// How it waits.
    pub waiting: Waiting,
    /// Bytes of a request, of a response, or of one write of the stream.
    pub bytes: usize,
    /// How long it shall be measured, warm-up included.
    pub seconds: f64,
    /// The most connections.
    pub connections: usize,
    /// The processors of client, server and (where there are so many) the stack's own thread.
    pub processors: [Option<usize>; 3],
}

/// The part of the time that does not count yet: caches, branch predictors and windows settle.
const WARM_UP: f64 = 0.1;

impl Order {
    /// How long it shall be measured, warm-up included.
    pub fn span(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// How long the beginning is that does not count.
    pub fn warm_up(&self) -> Duration {
        self.span().mul_f64(WARM_UP)
    }
}

/// The client's address.
pub const CLIENT: Ipv4Addr = crate::place::CLIENT;
/// The server's address.
pub const SERVER: Ipv4Addr = crate::place::SERVER;
/// The server's port: "discard", which none of these services is.
const PORT: u16 = 9;

/// Where the server listens.
pub fn server_at() -> SocketAddr {
    SocketAddr::from((SERVER, PORT))
}

/// The last line an end says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What the client measured.
    pub client: Option<Outcome>,
    /// What the server measured.
    pub server: Option<Outcome>,
    /// Why there is nothing to say.
    pub error: Option<String>,
    /// What priority it was given, for people.
    pub tuned: String,
    /// What its device asked for and was not given, a sentence each.
    pub notes: Vec<String>,
}

/// What one end measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Round trips or connections that count.
    pub operations: u64,
    /// Bytes of the stream that count.
    pub bytes: u64,
    /// The time in which they were done, in seconds.
    pub seconds: f64,
    /// The processor time of this end meanwhile, user and system together, in seconds.
    pub cpu_seconds: f64,
    /// Times of single operations, at the end that began them.
    pub latency: Option<Latency>,
    /// Answers that were not the one to the last question, and bytes that were not those sent. None is right.
    pub strays: u64,
    /// Frames that Xylem's stack received and sent meanwhile, if this end is Xylem's; one that the device cuts or has
    /// merged counts once.
    pub frames: Option<[u64; 2]>,
    /// The memory of this end.
    pub memory: Option<Memory>,
}

/// Times of operations in microseconds: so many of all took no longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p99_9: f64,
}

/// Memory before the first connection and with all of them, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Resident pages of this process (proc_pid_statm(5)), before.
    pub resident_before: u64,
    /// The same, with all connections.
    pub resident_after: u64,
    /// The kernel's own objects on the whole machine (`Slab` of proc_meminfo(5)), before.
    pub slab_before: u64,
    /// The same, with all connections.
    pub slab_after: u64,
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Waiting::Spin => "spin",
            Waiting::Block => "block",
        })
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Carrier::Tap => "tap",
            Carrier::Packet => "packet",
            Carrier::Wire => "wire",
        })
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Turns::Inline => "inline",
            Turns::Thread => "thread",
            Turns::Spin => "spin",
        })
    }
}
