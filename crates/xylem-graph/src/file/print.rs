//! A graph back to its text, in one canonical form.
//!
//! Law 6: what is printed reads back as the same graph, and printing that again gives the same text. Comments and spacing do
//! not survive; the order of nodes, lowers, options and places does, and the three choices are always said.

use std::fmt;

use super::graph::{Graph, Lower, Node};

/// A line of options longer than this is broken, one option a line.
const LINE_CHARACTERS_MAX: usize = 100;

/// The canonical text of the graph.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = Columns::of(&self.nodes);
        for node in &self.nodes {
            print_node(node, &columns, f)?;
        }
        if !self.nodes.is_empty() {
            writeln!(f)?;
        }
        // Neighbours with one placement share a line, which keeps the order of the places.
        for run in self.places.chunk_by(|left, right| left.placement == right.placement) {
            write!(f, "place {} :", run[0].placement)?;
            for place in run {
                write!(f, " {}", place.node.value)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "demux  = {}", self.demux.value)?;
        writeln!(f, "data   = {}", self.data.value)?;
        writeln!(f, "device = {}", self.device.value)
    }
}

/// The widths that make names, protocols and lowers stand below each other.
struct Columns {
    name: usize,
    head: usize,
    lowers: usize,
}

impl Columns {
    fn of(nodes: &[Node]) -> Columns {
        let named = nodes.iter().filter(|node| node.name != node.protocol);
        let name = named.map(|node| node.name.len()).max().unwrap_or(0);
        let head = nodes.iter().map(|node| head(node, name).len()).max().unwrap_or(0);
        // Only lines with options have anything after the lowers; one long list of lowers must not push all others away.
        let with_options = nodes.iter().filter(|node| !node.options.is_empty());
        let lowers = with_options.map(|node| lowers(node).len()).filter(|width| *width <= 24).max().unwrap_or(0);
        Columns { name, head, lowers }
    }
}

fn head(node: &Node, name_width: usize) -> String {
    if node.name == node.protocol {
        return node.name.to_string();
    }
    format!("{:name_width$} = {}", node.name.value, node.protocol.value)
}

fn lowers(node: &Node) -> String {
    if node.lowers.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = node.lowers.iter().map(|lower| Lower::word(lower)).collect();
    format!("over {}", words.join(", "))
}

fn print_node(node: &Node, columns: &Columns, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (name, head_width, lowers_width) = (columns.name, columns.head, columns.lowers);
    let line = format!("{:head_width$} {:lowers_width$}", head(node, name), lowers(node));
    if node.options.is_empty() {
        return writeln!(f, "{}", line.trim_end());
    }
    let options: Vec<String> =
        node.options.iter().map(|option| format!("{} = {}", option.name.value, option.value.value)).collect();
    let whole = format!("{line} {{ {} }}", options.join(", "));
    if whole.chars().count() <= LINE_CHARACTERS_MAX {
        return writeln!(f, "{whole}");
    }
    writeln!(f, "{line} {{")?;
    for option in options {
        writeln!(f, "    {option},")?;
    }
    writeln!(f, "}}")
}
