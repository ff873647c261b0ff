//! From a checked graph to a running instance: the protocols are made bottom up by the catalogue that the program hands
//! over. Every instance, in programs and in tests, comes to be here.

use crate::file::{
    Description, Descriptions, DeviceName, Graph, Lower as FileLower, Node as FileNode, Number, OptionKind, Provides,
    Settings, Uppers,
};
use crate::instance::{Below, DeviceFacts, Instance, Limits, Lower, Node};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use xylem_core::{Neighbours, Protocol, Random};
use xylem_wire::EthernetAddress;

/// What a maker returns: the protocol, nothing for an anchor, or what is wrong with the options in words.
pub type Made = Result<Option<Arc<dyn Protocol>>, String>;

/// A protocol as a program registers it: what it says of itself, and how one is made.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What it says of itself.
    pub description: Description,
    /// Makes one for a node of a graph.
    pub make: fn(&mut Making<'_>) -> Made,
}

/// The protocols a program knows.
#[derive(Clone, Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
    offered: Vec<Offered>,
}

/// What a program's own word for an option stands for.
#[derive(Clone)]
struct Offered {
    protocol: &'static str,
    option: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Catalogue {
    /// A catalogue of `entries`.
    ///
    /// # Panics
    /// If a description is at odds with itself or a name occurs twice: the author's mistake.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for entry in entries {
            catalogue.register(entry);
        }
        catalogue
    }

    /// Adds a protocol: a user's own stands beside the built-in ones.
    ///
    /// # Panics
    /// As [`new`](Catalogue::new).
    pub fn register(&mut self, entry: Entry) {
        let faults = entry.description.faults();
        assert!(faults.is_empty(), "the description is at odds with itself: {faults:?}");
        let name = entry.description.name;
        assert!(self.entry(name).is_none(), "protocol {name} is registered already");
        self.entries.push(entry);
    }

    /// Adds a word to those that `option` of `protocol` may be, and hands what it stands for to the protocol's maker
    /// ([`Making::offered`]): how a user's own algorithm comes to be named in a graph. The longer list of words is kept
    /// for as long as the program runs, as the list it takes the place of is; so offer when the program begins.
    ///
    /// # Panics
    /// If there is no such protocol, its option is not a choice of words, or the word is taken: the author's mistake.
    pub fn offer<T: Any + Send + Sync>(
        &mut self,
        protocol: &'static str,
        option: &'static str,
        word: &'static str,
        value: T,
    ) {
        let entry = self.entries.iter_mut().find(|entry| entry.description.name == protocol);
        let entry = entry.unwrap_or_else(|| panic!("expected a registered protocol, got {protocol}"));
        let mut options = entry.description.options.to_vec();
        let choice = options.iter_mut().find(|it| it.name == option).map(|it| &mut it.kind);
        let Some(OptionKind::Choice(words)) = choice else {
            panic!("expected an option of {protocol} that is a choice of words, got {option}")
        };
        assert!(!words.contains(&word), "`{option} = {word}` has a meaning already");
        *words = Vec::leak([*words, &[word]].concat());
        entry.description.options = Vec::leak(options);
        self.offered.push(Offered { protocol, option, value: Arc::new(value) });
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.description.name == name)
    }
}

impl Descriptions for Catalogue {
    fn description(&self, name: &str) -> Option<&Description> {
        self.entry(name).map(|entry| &entry.description)
    }

    fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.description.name).collect()
    }
}

/// What the maker of one node sees: its options, its place in the graph, and the pages it shares with others.
pub struct Making<'a> {
    /// The node's name.
    pub name: &'a str,
    /// Its options.
    pub settings: Settings<'a>,
    /// A random stream of its own.
    pub random: Random,
    graph: &'a Graph,
    catalogue: &'a Catalogue,
    pages: &'a mut Pages,
    devices: &'a [DeviceFacts],
    edges: &'a [DeviceEdge],
}

/// The facts pages of an instance, by the link they belong to.
#[derive(Default)]
struct Pages {
    neighbours: BTreeMap<String, Arc<Neighbours>>,
    addresses: BTreeMap<String, EthernetAddress>,
    random: Option<Random>,
}

impl<'a> Making<'a> {
    /// What the program has offered as values of this node's option, as far as it is a `T`.
    pub fn offered<T: Any>(&self, option: &str) -> Vec<&'a T> {
        let protocol = self.protocol_of(self.name);
        let catalogue = self.catalogue;
        let ours = catalogue.offered.iter().filter(|it| it.protocol == protocol && it.option == option);
        ours.filter_map(|it| it.value.downcast_ref()).collect()
    }

    /// The page of neighbours of the link with this name.
    pub fn neighbours(&mut self, link: &str) -> Arc<Neighbours> {
        Arc::clone(self.pages.neighbours.entry(link.to_owned()).or_default())
    }

    /// The hardware address of the link with this name: `said` if its options say one, else one of the instance's own
    /// choice (locally administered), the same for all who ask.
    pub fn hardware_address(&mut self, link: &str, said: Option<[u8; 6]>) -> EthernetAddress {
        let random = self.pages.random.as_mut().expect("set when building begins");
        *self.pages.addresses.entry(link.to_owned()).or_insert_with(|| {
            let mut address = [0; 6];
            random.fill(&mut address);
            // IEEE 802, section 8.4: the second lowest bit says "local", the lowest would say "group".
            address[0] = address[0] & !1 | 2;
            EthernetAddress(said.unwrap_or(address))
        })
    }

    /// The names of the nodes it stands over, with their protocols, in order; a device has no name.
    pub fn lowers(&self) -> Vec<Option<(&'a str, &'a str)>> {
        self.lowers_of(self.name)
    }

    /// What another node stands over, as [`lowers`](Making::lowers).
    ///
    /// # Panics
    /// If the graph has no such node: names come from [`lowers`](Making::lowers) and [`uppers`](Making::uppers).
    pub fn lowers_of(&self, name: &str) -> Vec<Option<(&'a str, &'a str)>> {
        let graph = self.graph;
        let node = graph.node(name).expect("the name comes from the graph");
        let named = |lower: &'a FileLower| match lower {
            FileLower::Node(name) => graph.node(name).map(|node| (&*node.name.value, &*node.protocol.value)),
            FileLower::Device(_) => None,
        };
        node.lowers.iter().map(|lower| named(&lower.value)).collect()
    }

    /// The nodes that stand over this one: names and protocols.
    pub fn uppers(&self) -> Vec<(&'a str, &'a str)> {
        self.uppers_of(self.name)
    }

    /// The nodes that stand over another one, as [`uppers`](Making::uppers).
    pub fn uppers_of(&self, name: &str) -> Vec<(&'a str, &'a str)> {
        let graph = self.graph;
        graph
            .nodes
            .iter()
            .filter(|node| node.stands_over(name))
            .map(|node| (&*node.name.value, &*node.protocol.value))
            .collect()
    }

    /// The numbers by which this node knows those that stand over it, in the order of the file; 0 for one without.
    pub fn numbers_above(&self) -> Vec<u32> {
        let graph = self.graph;
        let uppers = graph.nodes.iter().filter(|node| node.stands_over(self.name));
        uppers.map(|upper| number_on(graph, self.catalogue, upper, self.name).unwrap_or(0)).collect()
    }

    /// The options of another node.
    ///
    /// # Panics
    /// If the graph has no such node: names come from [`lowers`](Making::lowers) and [`uppers`](Making::uppers).
    pub fn settings_of(&self, name: &str) -> Settings<'a> {
        let node = self.graph.node(name).expect("the name comes from the graph");
        let description = self.catalogue.description(&node.protocol.value).expect("the graph has been checked");
        Settings::new(node, description)
    }

    /// The facts of the device this node stands over, if it does.
    pub fn device(&self) -> Option<&'a DeviceFacts> {
        self.device_of(self.name)
    }

    /// The facts of the device another node stands over, if it does.
    pub fn device_of(&self, name: &str) -> Option<&'a DeviceFacts> {
        let index = self.edges.iter().position(|edge| edge.node == name)?;
        self.devices.get(index)
    }

    /// The protocol of a node.
    ///
    /// # Panics
    /// If the graph has no such node: names come from [`lowers`](Making::lowers) and [`uppers`](Making::uppers).
    pub fn protocol_of(&self, name: &str) -> &'a str {
        let graph = self.graph;
        &graph.node(name).expect("the name comes from the graph").protocol.value
    }

    /// Whether a protocol adds no header: what stands over its node stands, in effect, over what is below it.
    pub fn is_virtual(&self, protocol: &str) -> bool {
        self.catalogue.description(protocol).is_some_and(|it| matches!(it.provides, Provides::AsBelow))
    }
}

/// An edge of the graph that ends at a device, for the program to open one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceEdge {
    /// The node that stands over it.
    pub node: String,
    /// Which device.
    pub device: DeviceName,
}

/// The devices a graph needs, in the order of their numbers.
pub fn device_edges(graph: &Graph) -> Vec<DeviceEdge> {
    let edge = |node: &FileNode, device| DeviceEdge {
        node: node.name.value.to_string(),
        device: graph.device_on_edge(device),
    };
    graph.nodes.iter().flat_map(|node| node.devices().map(move |(_, device)| edge(node, device))).collect()
}

/// Builds an instance of a checked graph over `devices` (one for each of [`device_edges`], in that order).
///
/// # Errors
/// What a protocol found wrong with its options beyond what the check knows: `NODE: what`.
///
/// # Panics
/// If the graph has not passed the check, or the number of devices is not the number of edges.
pub fn build(
    graph: &Graph,
    catalogue: &Catalogue,
    devices: Vec<DeviceFacts>,
    limits: Limits,
    seed: u64,
) -> Result<Instance, String> {
    let edges = device_edges(graph);
    assert_eq!(edges.len(), devices.len(), "a device for each edge that ends at one");
    let mut random = Random::seeded(seed);
    let mut pages = Pages { random: Some(random.child()), ..Pages::default() };
    let order = graph.bottom_up().expect("a checked graph has no cycle");
    let index_of = |name: &str| order.iter().position(|node| &*node.name.value == name).expect("the name is known");
    let mut device = 0u16..;
    let mut device_numbers: BTreeMap<(usize, usize), u16> = BTreeMap::new();
    for node in &graph.nodes {
        for (branch, _) in node.devices() {
            device_numbers.insert((index_of(&node.name.value), branch), device.next().expect("fewer than 2^16 edges"));
        }
    }
    let mut nodes = Vec::with_capacity(order.len());
    for (index, node) in order.iter().enumerate() {
        let entry = catalogue.entry(&node.protocol.value).expect("the graph has been checked");
        let mut making = Making {
            name: &node.name.value,
            settings: Settings::new(node, &entry.description),
            random: random.child(),
            graph,
            catalogue,
            pages: &mut pages,
            devices: &devices,
            edges: &edges,
        };
        let protocol = (entry.make)(&mut making).map_err(|what| format!("{}: {what}", &*node.name.value))?;
        let lower = |(branch, lower): (usize, &FileLower)| match lower {
            FileLower::Device(_) => Lower { below: Below::Device(device_numbers[&(index, branch)]), number: 0 },
            FileLower::Node(name) => Lower {
                below: Below::Node(index_of(name) as u8),
                number: number_on(graph, catalogue, node, name).unwrap_or(0),
            },
        };
        nodes.push(Node {
            name: node.name.value.to_string(),
            kind: node.protocol.value.to_string(),
            protocol,
            lowers: node.lowers.iter().map(|lower| &lower.value).enumerate().map(lower).collect(),
        });
    }
    Ok(Instance::new(nodes, devices, limits, random.next()))
}

/// The number by which the node `lower` knows `node`. A virtual protocol is known by the number of the one above it, as
/// this lower counts: over several lowers it may be another one on each.
fn number_on(graph: &Graph, catalogue: &Catalogue, node: &FileNode, lower: &str) -> Option<u32> {
    let (numbering, space) = numbering(graph, catalogue, graph.node(lower)?)?;
    let mut known = node;
    let mut description = catalogue.description(&known.protocol.value)?;
    while matches!(description.provides, Provides::AsBelow) {
        known = graph.uppers(&known.name.value).next()?;
        description = catalogue.description(&known.protocol.value)?;
    }
    match description.number_on(&numbering, space)? {
        Number::Fixed(number) => Some(number),
        Number::Option(option) => Settings::new(known, description).integer(option).map(|number| number as u32),
    }
}

/// The protocol that numbers those above `node`, and its space: a virtual protocol leaves that to its lower.
fn numbering(graph: &Graph, catalogue: &Catalogue, node: &FileNode) -> Option<(String, crate::file::Space)> {
    match catalogue.description(&node.protocol.value)?.provides {
        Provides::Kinds { uppers: Uppers::Numbered(space), .. } => Some((node.protocol.value.to_string(), space)),
        Provides::AsBelow => node.lowers.iter().find_map(|lower| match &lower.value {
            FileLower::Node(name) => numbering(graph, catalogue, graph.node(name)?),
            FileLower::Device(_) => None,
        }),
        Provides::Kinds { .. } | Provides::Nothing => None,
    }
}
