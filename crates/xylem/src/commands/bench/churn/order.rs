//! What the ends of a churn are told and what they answer.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};

/// Bytes of a request and of its response.
pub const BYTES: usize = 64;

/// Addresses of the kernel's side: so many peers share out the connections.
pub const PEER_ADDRESSES: u8 = 4;

/// Ports that each of them listens on. The kernel's server has a process for each: a connection is a descriptor there, of
/// which one process may have only so many.
const PEER_PORTS: u16 = 8;

/// The first of them: none of the services' that a reader would look for here.
const FIRST_PORT: u16 = 900;

/// Xylem's client.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

/// The bits of all addresses that name their network.
pub const PREFIX_BITS: u8 = 24;

/// The addresses of the server, the first of them its only one where it is Xylem's.
pub fn servers() -> Vec<Ipv4Addr> {
    (0..PEER_ADDRESSES).map(|number| Ipv4Addr::new(10, 78, 0, 101 + number)).collect()
}

/// The ports the server listens on.
pub fn ports() -> impl Iterator<Item = u16> + Clone {
    (0..PEER_PORTS).map(|number| FIRST_PORT + number)
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// Xylem, in the same process, at the other end of an in-process wire.
    Xylem,
    /// The kernel, on the other side of a TAP, with several addresses.
    Kernel,
}

/// Which end a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Xylem's client, and where the peer is Xylem its server too.
    Client,
    /// The kernel's server.
    Server,
}

/// Everything an end has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which end.
    pub side: Side,
    /// The port of this process, of the kernel's server.
    pub port: u16,
    /// Who is at the other.
    pub peer: Peer,
    /// Connections that are made first and stay.
    pub established: usize,
    /// Connections begun in a second.
    pub rate: u64,
    /// How long, in seconds.
    pub seconds: u64,
    /// The text of Xylem's graph, without its address.
    pub graph: String,
}

impl Order {
    /// The ends to connect to, in turn.
    pub fn targets(&self) -> Vec<SocketAddr> {
        let servers = match self.peer {
            Peer::Xylem => servers()[..1].to_vec(),
            Peer::Kernel => servers(),
        };
        ports().flat_map(|port| servers.iter().map(move |server| SocketAddr::from((*server, port)))).collect()
    }

    /// Connections that one process of the kernel's server has at once, with some to spare.
    pub fn descriptors_max(&self) -> usize {
        self.established / usize::from(PEER_PORTS) + self.rate as usize / 4 + 1024
    }

    /// Connections that may be there at once, with room for those in TIME-WAIT.
    pub fn connections_max(&self) -> usize {
        self.established + 4 * self.rate as usize + 4096
    }
}

/// What the client did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Why there is nothing to say.
    pub error: Option<String>,
    /// Making those that stay.
    pub standing: Standing,
    /// The churn.
    pub churned: Churned,
    /// A look each second of the churn.
    pub samples: Vec<Sample>,
    /// Those that stayed and answered once more behind the churn.
    pub answered: u64,
    /// What is left when all have been closed and have waited.
    pub left: Left,
    /// What its device asked for and was not given.
    pub notes: Vec<String>,
}

/// The connections that stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// How many there are.
    pub made: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Resident memory of the process before them, in bytes.
    pub resident_before: u64,
    /// The same with all of them, at rest.
    pub resident_after: u64,
}

/// What became of the connections of the churn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Churned {
    /// Begun.
    pub begun: u64,
    /// Made, used and closed.
    pub made: u64,
    /// Not begun in time, since too many were under way: the machine was too slow for the rate.
    pub held_back: u64,
    /// Came to nothing.
    pub failed: u64,
    /// What the first of them said.
    pub first_failure: Option<String>,
    /// Made no progress for too long, and a look at them found nothing: the peer is silent.
    pub silent: u64,
    /// Made no progress for too long, and a look at them found that they could: nobody had been woken.
    pub lost_wake_ups: u64,
    /// How long the churn took, in seconds.
    pub seconds: f64,
    /// Half of the connections took no longer from connecting to the whole response, in microseconds.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
}

/// One look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the churn began.
    pub at: f64,
    /// Resident memory of the process, in bytes.
    pub resident: u64,
    /// Connections in TIME-WAIT.
    pub time_waits: u64,
    /// Paths of the client's stack.
    pub paths: u64,
    /// Deadlines on its wheel.
    pub deadlines: u64,
    /// Connections made so far.
    pub made: u64,
}

/// What is left in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Paths of conversations in the client's stack.
    pub paths: u64,
    /// Connections in TIME-WAIT.
    pub time_waits: u64,
    /// Buffers in somebody's hands.
    pub buffers: u64,
}
