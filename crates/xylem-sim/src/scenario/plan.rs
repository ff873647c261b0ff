//! A scenario brought together with its graphs and a catalogue: every graph found, its options set and checked, every
//! cable plugged in. What is left to go wrong in a run is what the run is about.

use super::{CableWish, GraphName, HostWish, PlugWish, Scenario};
use crate::sim::{HostId, Plug};
use std::net::IpAddr;
use xylem_graph::build::{Catalogue, DeviceEdge, build, device_edges};
use xylem_graph::file::{
    Descriptions, Device, DeviceName, Graph, Located, OptionKind, Position, Problem, Settings, check,
};
use xylem_graph::instance::{DeviceFacts, Limits};
use xylem_graph::link::LINK_HEADER_BYTES;

/// Where the graphs of a scenario come from: the built-in ones and files.
///
/// The error says what is wrong with the graph, in a line or several.
pub type Source<'a> = &'a dyn Fn(&GraphName) -> Result<Graph, String>;

/// The largest payload of a frame of a device without a cable, in bytes: the usual Ethernet.
const USUAL_MTU: usize = 1500;

/// A scenario that can be run, any number of times and with any seed.
pub struct Plan<'a> {
    /// What is to be run.
    pub scenario: Scenario,
    pub(super) catalogue: &'a Catalogue,
    pub(super) hosts: Vec<Prepared>,
    /// Where each cable is plugged in.
    pub(super) plugs: Vec<[Plug; 2]>,
}

/// A host ready to be built.
pub(super) struct Prepared {
    pub graph: Graph,
    pub devices: Vec<DeviceFacts>,
    /// Its first address, if it has one.
    pub address: Option<IpAddr>,
    edges: Vec<DeviceEdge>,
}

impl<'a> Plan<'a> {
    /// Brings a scenario together with its graphs.
    ///
    /// # Errors
    /// All that is wrong: with graphs, with options that the scenario sets, with cables that fit nowhere, with traffic to a
    /// host without an address.
    pub fn new(scenario: Scenario, catalogue: &'a Catalogue, source: Source<'_>) -> Result<Plan<'a>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut hosts = Vec::new();
        for host in &scenario.hosts {
            hosts.extend(prepare(host, catalogue, source, &mut problems));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut plan = Plan { scenario, catalogue, hosts, plugs: Vec::new() };
        plan.plug_in(&mut problems);
        plan.try_traffic(&mut problems);
        if problems.is_empty() {
            plan.try_build(&mut problems);
        }
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    /// Finds the device of every end of every cable.
    fn plug_in(&mut self, problems: &mut Vec<Problem>) {
        let mut taken: Vec<Plug> = Vec::new();
        for cable in &self.scenario.cables {
            let mut ends = Vec::new();
            for end in &cable.ends {
                match self.plug(end, &taken) {
                    Ok(plug) => {
                        taken.push(plug);
                        ends.push(plug);
                        self.hosts[plug.0.0].devices[usize::from(plug.1)] = facts(cable, end);
                    }
                    Err(problem) => problems.push(problem),
                }
            }
            if let [one, other] = ends[..] {
                self.plugs.push([one, other]);
            }
        }
    }

    /// The device of one end: the node's that is named, else the host's only one.
    fn plug(&self, end: &Located<PlugWish>, taken: &[Plug]) -> Result<Plug, Problem> {
        let host = &self.hosts[end.host];
        let name = self.scenario.hosts[end.host].name.as_str();
        let nodes = host.edges.iter().map(|edge| format!("{name}:{}", edge.node)).collect::<Vec<_>>().join(", ");
        let wrong = |what: String, mend: &str| Err(Problem::new(end.position, what, format!("one of: {nodes}"), mend));
        let found = match &end.node {
            Some(node) => host.edges.iter().position(|edge| edge.node == *node),
            None if host.edges.len() == 1 => Some(0),
            None => return wrong(format!("`{name}` has {} devices", host.edges.len()), "say which"),
        };
        let Some(device) = found else {
            return wrong(
                format!("`{}` stands over no device", end.node.as_deref().unwrap_or(name)),
                "name another node",
            );
        };
        // A graph has at most 256 nodes of 64 lowers each.
        let plug = (HostId(end.host), device as u16);
        if taken.contains(&plug) {
            let what = format!("`{name}:{}` has a cable already", host.edges[device].node);
            return wrong(what, "plug it in elsewhere");
        }
        Ok(plug)
    }

    /// Every traffic has an address to go to.
    fn try_traffic(&self, problems: &mut Vec<Problem>) {
        for wish in &self.scenario.traffic {
            if wish.address.is_none() && self.hosts[wish.server].address.is_none() {
                let what = format!("`{}` has no address", *self.scenario.hosts[wish.server].name);
                problems.push(Problem::new(wish.name.position, what, "an address to go to", "say `address = …`"));
            }
        }
    }

    /// Builds every host once: what only a protocol can find wrong with its options is found here.
    fn try_build(&self, problems: &mut Vec<Problem>) {
        for (wish, host) in self.scenario.hosts.iter().zip(&self.hosts) {
            if let Err(what) = build(&host.graph, self.catalogue, host.devices.clone(), Limits::default(), 0) {
                let what = format!("`{}` cannot be built: {what}", *wish.name);
                problems.push(Problem::new(wish.name.position, what, "options that go together", "correct them"));
            }
        }
    }
}

/// The graph of a host with the scenario's options, checked.
fn prepare(
    wish: &HostWish,
    catalogue: &Catalogue,
    source: Source<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Prepared> {
    let before = problems.len();
    let graph = source(&wish.graph).map_err(|what| {
        let what = format!("the graph {} is not usable: {}", *wish.graph, what.trim_end());
        problems.push(Problem::new(wish.graph.position, what, "a graph that passes the check", "correct it"));
    });
    let mut graph = graph.ok()?;
    let mut said = Vec::new();
    for one in &wish.overrides {
        match graph.set(&one.node, &one.option, one.value.value.clone()) {
            Ok(()) => {
                place(&mut graph, &one.node, &one.option, one.node.position, one.value.position);
                said.extend([one.node.position, one.value.position]);
            }
            Err(error) => {
                let what = format!("`{}.{}`: {error}", *one.node, one.option);
                problems.push(Problem::new(one.node.position, what, "an option of a node of the graph", "correct it"));
            }
        }
    }
    for mut problem in check(&graph, catalogue) {
        if !said.contains(&problem.position) {
            problem.what = format!("in the graph {}, {problem}", *wish.graph);
            problem.position = wish.name.position;
        }
        problems.push(problem);
    }
    let edges = device_edges(&graph);
    for edge in &edges {
        if !matches!(edge.device, DeviceName::Auto | DeviceName::Kind(Device::Wire)) {
            let what = format!("`{}` stands over `{}` in the graph {}", edge.node, edge.device, *wish.graph);
            let expected = "`auto` or `wire`, which is what the simulator has";
            problems.push(Problem::new(wish.graph.position, what, expected, "write `auto`"));
        }
    }
    if problems.len() > before {
        return None;
    }
    let address = first_address(&graph, catalogue);
    let device = |edge: &DeviceEdge| DeviceFacts::plain(&*edge.node, USUAL_MTU + LINK_HEADER_BYTES);
    Some(Prepared { address, devices: edges.iter().map(device).collect(), edges, graph })
}

/// Gives an option that was set the place where the scenario says it.
fn place(graph: &mut Graph, node: &str, option: &str, name_at: Position, value_at: Position) {
    let found = graph.nodes.iter_mut().find(|found| *found.name.value == *node);
    let setting = found.and_then(|node| node.options.iter_mut().find(|said| *said.name.value == *option));
    if let Some(setting) = setting {
        setting.name.position = name_at;
        setting.value.position = value_at;
    }
}

/// The first address that a graph's options say: the first option that its protocol describes as an address of ours, which
/// is one with the length of its network's prefix.
fn first_address(graph: &Graph, catalogue: &Catalogue) -> Option<IpAddr> {
    graph.nodes.iter().find_map(|node| {
        let description = catalogue.description(&node.protocol.value)?;
        let settings = Settings::new(node, description);
        description.options.iter().find_map(|option| match option.kind {
            OptionKind::Cidr => settings.cidr(option.name).map(|(address, _)| address),
            OptionKind::List(OptionKind::Cidr) => settings.cidrs(option.name).first().map(|(address, _)| *address),
            _ => None,
        })
    })
}

fn facts(cable: &CableWish, end: &Located<PlugWish>) -> DeviceFacts {
    let name = end.node.as_deref().unwrap_or(&cable.name);
    DeviceFacts::plain(name, cable.model.mtu + LINK_HEADER_BYTES)
}
