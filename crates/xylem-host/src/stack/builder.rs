//! From a graph, a catalogue and devices to a running stack. Everything can go wrong here, and nothing later: the graph
//! is checked, the devices are counted, the protocols are made before the first thread starts.

use super::{Core, Stack};
use crate::clock::{Clock, entropy_seed};
use crate::device::Device;
use crate::shell::{Shell, ShellThread};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use xylem_graph::build::{Catalogue, DeviceEdge, build, device_edges};
use xylem_graph::file::{Graph, Problem, check, load, report};
use xylem_graph::instance::Limits;

/// What a stack shall be; see [`Stack::builder`].
#[derive(Default)]
pub struct Builder {
    graph: Option<GraphSource>,
    catalogue: Catalogue,
    devices: Vec<Box<dyn Device>>,
    open: Option<Opener>,
    shell: Shell,
    spin: Duration,
    limits: Limits,
    seed: Option<u64>,
    clock: Option<Clock>,
}

type Opener = Box<dyn FnMut(&DeviceEdge) -> io::Result<Box<dyn Device>>>;

/// A graph, as text or already read.
pub enum GraphSource {
    /// The text of a graph file.
    Text(String),
    /// A graph.
    Graph(Box<Graph>),
}

impl From<&str> for GraphSource {
    fn from(text: &str) -> GraphSource {
        GraphSource::Text(text.into())
    }
}

impl From<String> for GraphSource {
    fn from(text: String) -> GraphSource {
        GraphSource::Text(text)
    }
}

impl From<Graph> for GraphSource {
    fn from(graph: Graph) -> GraphSource {
        GraphSource::Graph(Box::new(graph))
    }
}

impl Builder {
    /// The graph to run: its text, or a [`Graph`].
    pub fn graph(mut self, graph: impl Into<GraphSource>) -> Builder {
        self.graph = Some(graph.into());
        self
    }

    /// The protocols the graph may name.
    pub fn catalogue(mut self, catalogue: Catalogue) -> Builder {
        self.catalogue = catalogue;
        self
    }

    /// One more device: they are taken for the graph's device edges in the order of the file.
    pub fn device(mut self, device: impl Device + 'static) -> Builder {
        self.devices.push(Box::new(device));
        self
    }

    /// Opens the devices by what the graph says of each edge, behind those given already.
    pub fn devices(mut self, open: impl FnMut(&DeviceEdge) -> io::Result<Box<dyn Device>> + 'static) -> Builder {
        self.open = Some(Box::new(open));
        self
    }

    /// How it is run; [`Shell::Thread`] by default.
    pub fn shell(mut self, shell: Shell) -> Builder {
        self.shell = shell;
        self
    }

    /// How long whoever waits looks again and again before sleeping: lower latency for a busy processor. Zero by
    /// default.
    pub fn spin(mut self, spin: Duration) -> Builder {
        self.spin = spin;
        self
    }

    /// The instance's limits.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = limits;
        self
    }

    /// The seed of all its randomness; one that nobody can guess by default.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = Some(seed);
        self
    }

    /// Its clock: one that runs by itself by default. One that somebody moves ([`Hands`](crate::clock::Hands)) wants
    /// [`Shell::Driven`]: nobody else knows when its time has come.
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.clock = Some(clock);
        self
    }

    /// Builds the stack and starts it.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(mut self) -> Result<Stack, BuildError> {
        let graph = match self.graph.take().ok_or(BuildError::NoGraph)? {
            GraphSource::Text(text) => load(&text, &self.catalogue).map_err(BuildError::Graph)?,
            GraphSource::Graph(graph) => match check(&graph, &self.catalogue) {
                problems if problems.is_empty() => *graph,
                problems => return Err(BuildError::Graph(problems)),
            },
        };
        let edges = device_edges(&graph);
        if let Some(open) = &mut self.open {
            for edge in edges.iter().skip(self.devices.len()) {
                let device = open(edge).map_err(|source| BuildError::Device { node: edge.node.clone(), source })?;
                self.devices.push(device);
            }
        }
        if edges.len() != self.devices.len() {
            return Err(BuildError::Devices { expected: edges.len(), got: self.devices.len() });
        }
        let facts = self.devices.iter().map(|device| device.facts()).collect();
        let seed = self.seed.map_or_else(entropy_seed, Ok).map_err(BuildError::System)?;
        let instance = build(&graph, &self.catalogue, facts, self.limits, seed).map_err(BuildError::Protocol)?;
        let clock = self.clock.unwrap_or_else(Clock::start);
        let core = Core::new(instance, self.devices, self.shell, self.spin, clock);
        let core = Arc::new(core.map_err(BuildError::System)?);
        let thread = ShellThread::start(&core).map_err(BuildError::System)?;
        Ok(Stack { core, thread: Arc::new(thread) })
    }
}

/// A stack that did not come to be.
#[derive(Debug)]
pub enum BuildError {
    /// No graph was given.
    NoGraph,
    /// The graph is wrong.
    Graph(Vec<Problem>),
    /// The graph has another number of device edges than there are devices.
    Devices {
        /// The graph's.
        expected: usize,
        /// The builder's.
        got: usize,
    },
    /// A device could not be opened.
    Device {
        /// The node that stands over it.
        node: String,
        /// Why.
        source: io::Error,
    },
    /// A protocol found its options wrong: `NODE: what`.
    Protocol(String),
    /// The system had no descriptor, thread or randomness left.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoGraph => formatter.write_str("build a stack: expected a graph, got none"),
            BuildError::Graph(problems) => formatter.write_str(report("graph", problems).trim_end()),
            BuildError::Devices { expected, got } => {
                write!(formatter, "build a stack: the graph expected {expected} devices, got {got}")
            }
            BuildError::Device { node, source } => write!(formatter, "open the device of `{node}`: {source}"),
            BuildError::Protocol(what) => formatter.write_str(what),
            BuildError::System(source) => write!(formatter, "start a stack: {source}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Device { source, .. } | BuildError::System(source) => Some(source),
            _ => None,
        }
    }
}
