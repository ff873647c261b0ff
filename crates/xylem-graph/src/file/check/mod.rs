//! Everything that can be said about a graph before it runs.
//!
//! The check is pure and knows no protocol: it compares the graph with the descriptions that a program hands over. Its parts
//! do not stop each other, so that all that is wrong is said at once; a part keeps silent where an earlier one already
//! complained about the same words.

mod choices;
mod lowers;
mod names;
mod numbers;
mod options;

use std::collections::HashMap;

use super::description::{Description, Descriptions};
use super::graph::{Graph, LOWERS_MAX, Lower, NODES_MAX, Node, OPTIONS_MAX};
use super::parse::Reading;
use super::problem::{Position, Problem, in_order};

/// Everything that is wrong with the graph, in the order of its file; empty when it can be built.
pub fn check(graph: &Graph, descriptions: &dyn Descriptions) -> Vec<Problem> {
    let mut problems = beyond_limits(graph);
    if !problems.is_empty() {
        return in_order(problems);
    }
    let site = Site::of(graph, descriptions);
    names::check(&site, &mut problems);
    options::check(&site, &mut problems);
    let misplaced = lowers::check(&site, &mut problems);
    numbers::check(&site, &misplaced, &mut problems);
    choices::check(&site, &mut problems);
    // A protocol's own rule may rely on all that was checked before.
    if problems.is_empty() {
        for (node, description) in site.described_nodes() {
            problems.extend(description.rule.into_iter().flat_map(|rule| rule(graph, node)));
        }
    }
    in_order(problems)
}

/// What can be said of a graph of which only a part could be read: what is wrong whatever the rest may be.
pub(super) fn check_partly(reading: &Reading, descriptions: &dyn Descriptions) -> Vec<Problem> {
    let site = Site::of(&reading.graph, descriptions);
    let mut problems = Vec::new();
    names::own_names(&site, &mut problems);
    if !reading.lost_a_name {
        names::lowers(&site, &mut problems);
    }
    options::said(&site, &mut problems);
    for (index, node) in reading.graph.nodes.iter().enumerate() {
        if let Some(description) = site.described[index].filter(|_| !reading.damaged.contains(&index)) {
            options::missing(node, description, &mut problems);
        }
    }
    problems
}

/// A parsed graph keeps these limits; one built in code is measured first, because the other checks rely on them.
fn beyond_limits(graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut limit = |count: usize, most: usize, of: String, position: Position| {
        if count > most {
            let what = format!("{count} {of}");
            problems.push(Problem::new(position, what, format!("at most {most}"), "split the graph"));
        }
    };
    limit(graph.nodes.len(), NODES_MAX, "nodes".to_owned(), Position::NOWHERE);
    limit(graph.places.len(), NODES_MAX, "placed nodes".to_owned(), Position::NOWHERE);
    for node in graph.nodes.iter().take(NODES_MAX) {
        let position = node.name.position;
        limit(node.lowers.len(), LOWERS_MAX, format!("lowers of `{}`", node.name.value), position);
        limit(node.options.len(), OPTIONS_MAX, format!("options of `{}`", node.name.value), position);
    }
    problems
}

/// A graph beside the descriptions of its protocols, with the look-ups that the parts of the check share. Nodes are known by
/// their index; of two nodes with one name the first one counts.
struct Site<'a> {
    graph: &'a Graph,
    descriptions: &'a dyn Descriptions,
    /// The description of each node's protocol, where there is one.
    described: Vec<Option<&'a Description>>,
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Site<'a> {
    fn of(graph: &'a Graph, descriptions: &'a dyn Descriptions) -> Site<'a> {
        let described = graph.nodes.iter().map(|node| descriptions.description(&node.protocol.value)).collect();
        let mut by_name = HashMap::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            by_name.entry(node.name.as_str()).or_insert(index);
        }
        Site { graph, descriptions, described, by_name }
    }

    /// The nodes whose protocol is known.
    fn described_nodes(&self) -> impl Iterator<Item = (&'a Node, &'a Description)> + '_ {
        self.graph.nodes.iter().zip(&self.described).filter_map(|(node, found)| found.map(|found| (node, found)))
    }

    /// The index of the node a lower names, if it names a node of the graph.
    fn index_of(&self, lower: &Lower) -> Option<usize> {
        match lower {
            Lower::Node(name) => self.by_name.get(name.as_str()).copied(),
            Lower::Device(_) => None,
        }
    }

    /// The edges between nodes: upper, branch, lower.
    fn edges(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.graph.nodes.iter().enumerate().flat_map(move |(upper, node)| {
            let known = move |(branch, lower)| Some((upper, branch, self.index_of(lower)?));
            node.lowers.iter().map(|lower| &lower.value).enumerate().filter_map(known)
        })
    }

    /// True when some edge names a node that does not exist; what seems to be missing may then just be misspelt.
    fn has_unknown_lowers(&self) -> bool {
        let lowers = self.graph.nodes.iter().flat_map(|node| &node.lowers);
        let mut nodes = lowers.map(|lower| &lower.value).filter(|lower| matches!(lower, Lower::Node(_)));
        nodes.any(|lower| self.index_of(lower).is_none())
    }
}

/// How a message names a node: its name, with the protocol where that differs.
fn called(node: &Node) -> String {
    if node.name == node.protocol {
        format!("`{}`", node.name.value)
    } else {
        format!("`{}` ({})", node.name.value, node.protocol.value)
    }
}
