//! A graph as a list, for graphs that are too wide for boxes or are not well formed.
//!
//! Each node stands on a line of its own, with what it stands over on the lines below it. The order is the file's, turned
//! upside down, so that uppers come first as in a drawing.

use super::title;
use crate::file::graph::{Graph, Lower};

/// The list. Names are at most 32 characters, so that no line is longer than a drawing is wide.
pub(super) fn listing(graph: &Graph) -> String {
    let mut text = String::new();
    for node in graph.nodes.iter().rev() {
        text.push_str(&format!("{}\n", title(graph, node)));
        for (branch, lower) in node.lowers.iter().enumerate() {
            let last = branch + 1 == node.lowers.len();
            let known = match &lower.value {
                Lower::Node(name) if graph.node(name).is_none() => " (unknown)",
                Lower::Node(_) => "",
                Lower::Device(_) => " (device)",
            };
            text.push_str(&format!("{} over {}{known}\n", if last { "└─" } else { "├─" }, lower.word()));
        }
    }
    text
}
