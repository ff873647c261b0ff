//! `xylem graph`: is a graph right, what does it look like, and which combinations of choices run.

use crate::catalogue;
use crate::cli::{Ending, complain, note, say};
use crate::graphs;
use clap::Subcommand;
use serde_json::{Value as Json, json};
use xylem_graph::build::Catalogue;
use xylem_graph::file::{self, Graph, Lower, Node, Value};

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
    /// Draw a graph in the terminal, applications above, devices below
    #[command(after_help = "Examples:\n  xylem graph show host\n  xylem graph show my.graph --json\n  \
        xylem graph show router --text > my.graph")]
    Show {
        /// A graph file, or the name of a graph that comes with Xylem (host, router, toy)
        #[arg(value_name = "FILE")]
        file: String,
        /// Print it as JSON instead
        #[arg(long, conflicts_with = "text")]
        json: bool,
        /// Print its text instead, in the one form that every graph file can have
        #[arg(long)]
        text: bool,
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
            GraphCommand::Show { file, json, text } => show(&file, json, text),
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
fn show(name: &str, json: bool, text: bool) -> Ending {
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
    say(match (json, text) {
        (true, _) => format!("{:#}\n", as_json(&graph)),
        (_, true) => graph.to_string(),
        _ => file::draw(&graph),
    });
    let problems = file::check(&graph, &catalogue::builtin());
    note(file::report(name, &problems));
    if problems.is_empty() { Ending::Right } else { Ending::Wrong }
}

fn as_json(graph: &Graph) -> Json {
    json!({
        "nodes": graph.nodes.iter().map(|node| node_as_json(graph, node)).collect::<Vec<_>>(),
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
