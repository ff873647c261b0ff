//! A graph as its file says it: nodes over lowers, places, and the other three choices.
//!
//! Everything keeps the place it was read at, so that later checks can point at it; equality ignores places, so that two
//! texts that say the same are the same graph. Reading is in `parse`, printing in `print`, judging in `check`.

use std::fmt;
use std::ops::Deref;

use super::choice::{Data, Demux, DeviceName, Placement};
use super::name::{Name, NameError};
use super::nearest::one_of;
use super::problem::Position;
use super::value::Value;

/// The most nodes of one graph.
pub const NODES_MAX: usize = 256;
/// The most lowers of one node.
pub const LOWERS_MAX: usize = 64;
/// The most options of one node.
pub const OPTIONS_MAX: usize = 64;

/// Something a file says, with the place where it says it. Equality and hashing see the value only.
#[derive(Clone, Copy, Debug)]
pub struct Located<T> {
    /// What is said.
    pub value: T,
    /// Where it is said.
    pub position: Position,
}

impl<T> Located<T> {
    /// A value read at a place.
    pub const fn at(position: Position, value: T) -> Located<T> {
        Located { value, position }
    }

    /// A value that no file says: built in code, or a default.
    pub const fn nowhere(value: T) -> Located<T> {
        Located { value, position: Position::NOWHERE }
    }
}

impl<T> Deref for Located<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Located<T>) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

/// A whole graph file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The nodes in the order of the file.
    pub nodes: Vec<Node>,
    /// What the `place` lines say, one entry a node, in the order of the file.
    pub places: Vec<Place>,
    /// How frames find their path; `layered` when the file does not say.
    pub demux: Located<Demux>,
    /// How payload bytes are touched; `layered` when the file does not say.
    pub data: Located<Data>,
    /// What `auto` on an edge stands for; `auto` when the file does not say, and then the program chooses.
    pub device: Located<DeviceName>,
}

/// One use of a protocol. Several nodes of one graph may use the same protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What other lines call it; the protocol's name when the file gives none.
    pub name: Located<Name>,
    /// The protocol.
    pub protocol: Located<Name>,
    /// What it stands over; the index is the branch number.
    pub lowers: Vec<Located<Lower>>,
    /// Its options in the order of the file.
    pub options: Vec<Setting>,
}

/// What a node stands over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lower {
    /// Another node, by name.
    Node(Name),
    /// A device; each such edge is a device of its own.
    Device(DeviceName),
}

/// One `name = value` of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option's name.
    pub name: Located<Name>,
    /// The option's value.
    pub value: Located<Value>,
}

/// One node of one `place` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the node runs.
    pub placement: Placement,
    /// The node.
    pub node: Located<Name>,
}

impl Default for Graph {
    fn default() -> Graph {
        Graph {
            nodes: Vec::new(),
            places: Vec::new(),
            demux: Located::nowhere(Demux::Layered),
            data: Located::nowhere(Data::Layered),
            device: Located::nowhere(DeviceName::Auto),
        }
    }
}

impl Graph {
    /// The node of that name (the first, should an unchecked graph have several).
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| *node.name.value == *name)
    }

    /// The nodes that stand over the node of that name, in the order of the file.
    pub fn uppers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().filter(move |node| node.stands_over(name))
    }

    /// The nodes so that each comes after all its lowers, otherwise in the order of the file: the order to build them in.
    /// `None` when nodes stand over themselves, over names that no node has, or share a name; a checked graph does neither.
    pub fn bottom_up(&self) -> Option<Vec<&Node>> {
        let mut order: Vec<&Node> = Vec::with_capacity(self.nodes.len());
        let mut waiting: Vec<&Node> = self.nodes.iter().collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain(|node| {
                let ready = node.lowers.iter().all(|lower| match &lower.value {
                    Lower::Device(_) => true,
                    Lower::Node(name) => order.iter().any(|done| done.name.value == *name),
                }) && order.iter().all(|done| done.name != node.name);
                if ready {
                    order.push(node);
                }
                !ready
            });
            if waiting.len() == before {
                return None;
            }
        }
        Some(order)
    }

    /// Says an option of a node in code: it takes the place of what the file says, or is added. The graph is to be checked
    /// afterwards, as if the file had said it.
    ///
    /// # Errors
    ///
    /// [`SetError`] if no node has that name, the node has no place for another option, or the option's name is none.
    pub fn set(&mut self, node: &str, option: &str, value: Value) -> Result<(), SetError> {
        let name = Name::new(option).map_err(SetError::Name)?;
        let Some(found) = self.nodes.iter_mut().find(|found| *found.name.value == *node) else {
            let names = self.nodes.iter().map(|node| node.name.value.to_string()).collect();
            return Err(SetError::NoNode { expected: names, got: node.to_owned() });
        };
        if let Some(said) = found.options.iter_mut().find(|said| said.name.value == name) {
            said.value = Located::nowhere(value);
            return Ok(());
        }
        if found.options.len() == OPTIONS_MAX {
            return Err(SetError::Full);
        }
        found.options.push(Setting { name: Located::nowhere(name), value: Located::nowhere(value) });
        Ok(())
    }

    /// Where the file places a node, if it says so.
    pub fn placed(&self, name: &str) -> Option<Placement> {
        self.places.iter().find(|place| *place.node.value == *name).map(|place| place.placement)
    }

    /// Where a node runs: where the file places it; else in `app`, except that with `demux = kernel` the trusted side keeps
    /// what no line places (DESIGN.md section 4).
    pub fn placement(&self, name: &str) -> Placement {
        let unsaid = match self.demux.value {
            Demux::Kernel => Placement::Server,
            Demux::Layered | Demux::Integrated | Demux::Direct => Placement::App,
        };
        self.placed(name).unwrap_or(unsaid)
    }

    /// What a device name on an edge means in this graph: `auto` becomes what the `device` line says.
    pub fn device_on_edge(&self, name: DeviceName) -> DeviceName {
        match name {
            DeviceName::Auto => self.device.value,
            DeviceName::Kind(_) => name,
        }
    }
}

impl Node {
    /// A node built in code, without lowers and options.
    pub fn new(name: Name, protocol: Name) -> Node {
        Node {
            name: Located::nowhere(name),
            protocol: Located::nowhere(protocol),
            lowers: Vec::new(),
            options: Vec::new(),
        }
    }

    /// What the file says for an option, if anything; defaults are [`Settings`](super::Settings)' business.
    pub fn option(&self, name: &str) -> Option<&Located<Value>> {
        self.options.iter().find(|setting| *setting.name.value == *name).map(|setting| &setting.value)
    }

    /// True when one of the lowers is the node of that name.
    pub fn stands_over(&self, name: &str) -> bool {
        self.lowers.iter().any(|lower| matches!(&lower.value, Lower::Node(node) if **node == *name))
    }

    /// The devices among the lowers, with their branch numbers.
    pub fn devices(&self) -> impl Iterator<Item = (usize, DeviceName)> + '_ {
        self.lowers.iter().enumerate().filter_map(|(branch, lower)| match &lower.value {
            Lower::Device(device) => Some((branch, *device)),
            Lower::Node(_) => None,
        })
    }
}

impl Lower {
    /// The lower as the file writes it.
    pub fn word(&self) -> &str {
        match self {
            Lower::Node(name) => name,
            Lower::Device(device) => device.word(),
        }
    }
}

/// Why [`Graph::set`] could not say an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No node has that name.
    NoNode {
        /// The names of the graph's nodes.
        expected: Vec<String>,
        /// The name that was asked for.
        got: String,
    },
    /// The option's name is none.
    Name(NameError),
    /// The node has [`OPTIONS_MAX`] options already.
    Full,
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::NoNode { expected, got } => {
                write!(f, "no node is called `{got}`; expected {}", one_of(expected.iter().map(String::as_str)))
            }
            SetError::Name(error) => error.fmt(f),
            SetError::Full => write!(f, "the node has {OPTIONS_MAX} options already; expected at most so many"),
        }
    }
}

impl std::error::Error for SetError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::parse;

    #[test]
    fn an_option_said_in_code_takes_the_files_place_or_is_added() {
        let mut graph = parse("link over tap { mtu = 1500 }").expect("a graph");
        graph.set("link", "mtu", Value::Integer(576)).expect("the node is there");
        graph.set("link", "interface", Value::Text("tap7".into())).expect("the node is there");
        let said = parse("link over tap { mtu = 576, interface = \"tap7\" }").expect("a graph");
        assert_eq!(graph, said);
    }

    #[test]
    fn an_option_of_nobody_and_an_option_without_a_name_are_refused() {
        let mut graph = parse("a over tap\nb over a").expect("a graph");
        let before = graph.clone();
        let error = graph.set("c", "mtu", Value::Integer(576)).unwrap_err();
        assert_eq!(error.to_string(), "no node is called `c`; expected `a` or `b`");
        let error = graph.set("a", "m t u", Value::Integer(576)).unwrap_err();
        assert!(error.to_string().starts_with("a name has ' '"), "{error}");
        for option in 0..OPTIONS_MAX {
            graph.set("a", &format!("option_{option}"), Value::Bool(true)).expect("there is room");
        }
        assert_eq!(graph.set("a", "one_more", Value::Bool(true)), Err(SetError::Full));
        assert_ne!(graph, before);
    }
}
