//! `xylem graph`: is a graph right, what does it look like, and which combinations of choices run.

use crate::catalogue;
use crate::cli::{Ending, complain, note, say};
use crate::graphs;
use clap::Subcommand;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use xylem_graph::build::Catalogue;
use xylem_graph::file::{self, Graph, Lower, Node, Placement, Value};

/// See the module's text.
#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Check graphs: all problems at once, as FILE:LINE:COLUMN: what; expected …; mend: …
    #[command(after_help = "Examples:\n  xylem graph check my.graph\n  xylem graph check graphs/*.graph")]
    Check {
        /// Graph files, or names of graphs that come with Xylem (host, router, toy)
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
    },
    /// Draw a graph in the terminal or as a picture, applications above, devices below
    #[command(after_help = "Examples:\n  xylem graph show host\n  xylem graph show my.graph --json\n  \
        xylem graph show router --text > my.graph\n  xylem graph show my.graph --svg my.svg")]
    Show {
        /// A graph file, or the name of a graph that comes with Xylem (host, router, toy)
        #[arg(value_name = "FILE")]
        file: String,
        /// Print it as JSON instead
        #[arg(long, conflicts_with_all = ["text", "svg"])]
        json: bool,
        /// Print its text instead, in the one form that every graph file can have
        #[arg(long, conflicts_with = "svg")]
        text: bool,
        /// Write it as a picture for a document to this file instead; - is standard output
        #[arg(long, value_name = "OUT")]
        svg: Option<PathBuf>,
    },
    /// List every combination of placement, demultiplexing, data pass and device: works, not yet, or illegal and why
    #[command(after_help = "Example:\n  xylem graph combinations | grep works")]
    Combinations {
        /// Print them as JSON instead
        #[arg(long)]
        json: bool,
    },
}

impl GraphCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        match self {
            GraphCommand::Check { files } => check(&files),
            GraphCommand::Show { file, json, text, svg } => show(&file, json, text, svg.as_deref()),
            GraphCommand::Combinations { json } => {
                let combinations = file::combinations();
                say(if json { combinations.json() } else { combinations.to_string() });
                Ending::Right
            }
        }
    }
}

/// Reads and checks a graph. The error has been said.
fn load(name: &str, catalogue: &Catalogue) -> Result<Graph, Ending> {
    let text = graphs::read(name).map_err(|error| {
        complain(error.to_string());
        Ending::Unasked
    })?;
    file::load(&text, catalogue).map_err(|problems| {
        note(file::report(name, &problems));
        Ending::Wrong
    })
}

fn check(files: &[String]) -> Ending {
    let catalogue = catalogue::builtin();
    let mut ending = Ending::Right;
    for name in files {
        match load(name, &catalogue) {
            Ok(graph) => say(format!("{name}: ok: {}\n", summary(&graph))),
            // What could not be read outweighs what is wrong.
            Err(worse) if ending != Ending::Unasked => ending = worse,
            Err(_) => {}
        }
    }
    ending
}

fn summary(graph: &Graph) -> String {
    let devices: usize = graph.nodes.iter().map(|node| node.devices().count()).sum();
    format!(
        "{} nodes over {devices} {}; demux = {}, data = {}, device = {}",
        graph.nodes.len(),
        if devices == 1 { "device" } else { "devices" },
        graph.demux.value,
        graph.data.value,
        graph.device.value
    )
}

/// Shows what can be shown: a graph that has problems is drawn all the same if it can be read, and then they are said.
fn show(name: &str, json: bool, text: bool, svg: Option<&Path>) -> Ending {
    let read = match graphs::read(name) {
        Ok(read) => read,
        Err(error) => {
            complain(error.to_string());
            return Ending::Unasked;
        }
    };
    let graph = match file::parse(&read) {
        Ok(graph) => graph,
        Err(problems) => {
            note(file::report(name, &problems));
            return Ending::Wrong;
        }
    };
    let catalogue = catalogue::builtin();
    match (json, text, svg) {
        (true, ..) => say(format!("{:#}\n", as_json(&graph))),
        (_, true, _) => say(graph.to_string()),
        (.., Some(out)) => {
            let picture = file::svg(&graph, &catalogue, &format!("The graph {name}"));
            if out == Path::new("-") {
                say(picture);
            } else if let Err(error) = std::fs::write(out, picture) {
                complain(format!("cannot write {}: {error}; expected a file that can be made", out.display()));
                return Ending::Unasked;
            }
        }
        _ => say(file::draw(&graph)),
    }
    let problems = file::check(&graph, &catalogue);
    note(file::report(name, &problems));
    if problems.is_empty() { Ending::Right } else { Ending::Wrong }
}

/// The nodes with all they say, and the same by kinds: edges between nodes, edges to devices, placements, choices.
fn as_json(graph: &Graph) -> Json {
    let mut edges = Vec::new();
    let mut device_edges = Vec::new();
    for node in &graph.nodes {
        let name = node.name.value.as_str();
        for (branch, lower) in node.lowers.iter().enumerate() {
            match &lower.value {
                Lower::Node(lower) => edges.push(json!({ "upper": name, "branch": branch, "lower": lower.as_str() })),
                Lower::Device(device) => {
                    let device = graph.device_on_edge(*device).word();
                    device_edges.push(json!({ "upper": name, "branch": branch, "device": device }));
                }
            }
        }
    }
    let placed = |placement: &Placement| {
        let nodes = graph.nodes.iter().map(|node| node.name.value.as_str());
        let nodes: Vec<&str> = nodes.filter(|name| graph.placement(name) == *placement).collect();
        (placement.word().to_owned(), json!(nodes))
    };
    json!({
        "nodes": graph.nodes.iter().map(|node| node_as_json(graph, node)).collect::<Vec<_>>(),
        "edges": edges,
        "device_edges": device_edges,
        "placements": Placement::ALL.iter().map(placed).collect::<serde_json::Map<_, _>>(),
        "demux": graph.demux.value.word(),
        "data": graph.data.value.word(),
        "device": graph.device.value.word(),
    })
}

fn node_as_json(graph: &Graph, node: &Node) -> Json {
    let lower = |lower: &Lower| match lower {
        Lower::Node(name) => json!({ "node": name.as_str() }),
        Lower::Device(device) => json!({ "device": graph.device_on_edge(*device).word() }),
    };
    let options = node.options.iter().map(|said| (said.name.value.to_string(), value_as_json(&said.value.value)));
    json!({
        "name": node.name.value.as_str(),
        "protocol": node.protocol.value.as_str(),
        "over": node.lowers.iter().map(|it| lower(&it.value)).collect::<Vec<_>>(),
        "options": options.collect::<serde_json::Map<_, _>>(),
        "placement": graph.placement(&node.name.value).word(),
    })
}

/// Numbers and truths as such; what has a unit as the text that the graph file has.
fn value_as_json(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Integer(number) => json!(number),
        Value::Bool(truth) => json!(truth),
        Value::Duration(_) | Value::Size(_) => json!(value.to_string()),
    }
}
