//! Names: every node has one of its own, every protocol and lower is known, and nothing stands over itself.

use std::collections::HashSet;

use super::Site;
use crate::file::choice::{Device, is_reserved};
use crate::file::graph::{Located, Lower, Node};
use crate::file::nearest::{nearest, one_of};
use crate::file::parse::reserved;
use crate::file::problem::{Position, Problem};

pub(super) fn check(site: &Site<'_>, problems: &mut Vec<Problem>) {
    if site.graph.nodes.is_empty() {
        problems.push(Problem::new(
            Position { line: 1, column: 1 },
            "the graph has no nodes",
            "at least one protocol over a device",
            "write `link0 = ethernet over auto`",
        ));
    }
    own_names(site, problems);
    lowers(site, problems);
    cycles(site, problems);
}

/// Each node's own name and its protocol's.
pub(super) fn own_names(site: &Site<'_>, problems: &mut Vec<Problem>) {
    for (index, node) in site.graph.nodes.iter().enumerate() {
        own_name(site, index, node, problems);
        protocol(site, node, problems);
    }
}

/// The names of lowers.
pub(super) fn lowers(site: &Site<'_>, problems: &mut Vec<Problem>) {
    for node in &site.graph.nodes {
        for (branch, lower) in node.lowers.iter().enumerate() {
            known_lower(site, node, branch, lower, problems);
        }
    }
}

fn own_name(site: &Site<'_>, index: usize, node: &Node, problems: &mut Vec<Problem>) {
    // The parser refuses such names; a graph built in code can have them.
    if is_reserved(&node.name.value) {
        problems.push(reserved(&node.name));
    }
    let first = site.by_name[node.name.as_str()];
    if first != index {
        let line = site.graph.nodes[first].name.position.line;
        problems.push(Problem::new(
            node.name.position,
            format!("`{}` is already the name of the node in line {line}", node.name.value),
            "a name of its own for each node",
            format!("write another name before the protocol, as in `{}-2 = {}`", node.name.value, node.protocol.value),
        ));
    }
}

fn protocol(site: &Site<'_>, node: &Node, problems: &mut Vec<Problem>) {
    let word = &node.protocol.value;
    if site.descriptions.description(word).is_some() {
        return;
    }
    let mut names = site.descriptions.names();
    names.sort_unstable();
    let mend = match nearest(word, names.iter().copied()) {
        Some(near) => format!("write `{near}`"),
        None => "write one of these, or register the protocol with the program".to_owned(),
    };
    problems.push(Problem::new(node.protocol.position, format!("protocol `{word}` is unknown"), one_of(names), mend));
}

fn known_lower(site: &Site<'_>, node: &Node, branch: usize, lower: &Located<Lower>, problems: &mut Vec<Problem>) {
    let Lower::Node(name) = &lower.value else { return };
    if site.index_of(&lower.value).is_none() {
        problems.push(unknown_lower(site, node, lower.position, name));
    } else if node.lowers[..branch].iter().any(|before| before == lower) {
        problems.push(Problem::new(
            lower.position,
            format!("`{}` stands over `{name}` twice", node.name.value),
            "each lower node once",
            "remove one of them",
        ));
    }
}

fn unknown_lower(site: &Site<'_>, node: &Node, position: Position, name: &str) -> Problem {
    let others = || site.graph.nodes.iter().filter(|other| other.name != node.name);
    let names = || others().map(|other| other.name.as_str());
    let by_protocol = others().find(|other| *other.protocol.value == *name).map(|other| other.name.as_str());
    let devices = ["auto"].into_iter().chain(Device::ALL.iter().map(|device| device.word()));
    let mend = match by_protocol.or_else(|| nearest(name, names().chain(devices))) {
        Some(near) => format!("write `{near}`"),
        None => format!("add a line for `{name}`"),
    };
    Problem::new(
        position,
        format!("no node is named `{name}`"),
        match others().count() {
            0 => "a device".to_owned(),
            1 => format!("a device or {}", one_of(names())),
            _ => format!("a device, {}", one_of(names())),
        },
        mend,
    )
}

/// Says each circle once: walks down from every node, and what is met again while still on the way down is a circle.
fn cycles(site: &Site<'_>, problems: &mut Vec<Problem>) {
    let mut done = HashSet::new();
    for start in 0..site.graph.nodes.len() {
        descend(site, start, &mut Vec::new(), &mut done, problems);
    }
}

/// Recursion is at most as deep as the graph has nodes, which `NODES_MAX` bounds.
fn descend(
    site: &Site<'_>,
    index: usize,
    way: &mut Vec<usize>,
    done: &mut HashSet<usize>,
    problems: &mut Vec<Problem>,
) {
    if done.contains(&index) {
        return;
    }
    way.push(index);
    for lower in &site.graph.nodes[index].lowers {
        let Some(below) = site.index_of(&lower.value) else { continue };
        match way.iter().position(|&on_way| on_way == below) {
            None => descend(site, below, way, done, problems),
            Some(entry) => {
                let circle = way[entry..].iter().chain([&below]).map(|&each| site.graph.nodes[each].name.as_str());
                problems.push(Problem::new(
                    lower.position,
                    format!("a circle: {}", circle.collect::<Vec<_>>().join(" over ")),
                    "lowers that lead down to a device",
                    format!("let `{}` stand over something else", site.graph.nodes[index].name.value),
                ));
            }
        }
    }
    way.pop();
    done.insert(index);
}
