//! The toy graphs: those of the tree, with a planted fault put in by the test.

use super::fault::{ENTRY, Fault};
use xylem::catalogue;
use xylem_core::{Part, Participants};
use xylem_graph::build::build;
use xylem_graph::file::{Graph, Value, load, report};
use xylem_graph::instance::{DeviceFacts, Instance, Limits};
use xylem_protocols::vdrop::VdropConfig;
use xylem_wire::Port;

/// The port at which toy streams are served.
pub const PORT: Port = Port(80);

/// An instance of a graph of the tree, `fault` standing over the node `below` and under what stood there.
fn instance(
    name: &str,
    host: u32,
    bad: Option<VdropConfig>,
    below: &str,
    fault: Fault,
    frame_max: usize,
    seed: u64,
) -> Instance {
    let mut catalogue = catalogue::builtin();
    catalogue.register(ENTRY);
    let text = xylem::graphs::text(name).expect("the graph comes with Xylem");
    let lines = text.lines().map(|line| match line.split_once(" over ") {
        Some((upper, lower)) if lower.trim() == below => format!("{upper} over faulty"),
        _ => line.to_owned(),
    });
    let text = lines.chain([format!("faulty over {below}")]).collect::<Vec<_>>().join("\n");
    let mut graph = load(&text, &catalogue).unwrap_or_else(|problems| panic!("{}", report(name, &problems)));
    set(&mut graph, "net", "host", Value::Integer(i64::from(host)));
    set(&mut graph, "faulty", "fault", Value::Integer(fault as i64));
    if let Some(bad) = bad {
        let parts = [
            ("drop_per_million", bad.drop_per_million),
            ("duplicate_per_million", bad.duplicate_per_million),
            ("reorder_per_million", bad.reorder_per_million),
            ("corrupt_per_million", bad.corrupt_per_million),
        ];
        for (option, parts) in parts {
            set(&mut graph, "lossy", option, Value::Integer(i64::from(parts)));
        }
        set(&mut graph, "lossy", "delay_max", Value::Duration(bad.delay_max));
        set(&mut graph, "lossy", "both_ways", Value::Bool(bad.both_ways));
    }
    let device = DeviceFacts { name: "toy0".into(), frame_max, checksum_offload: false, segment_offload: false };
    let limits = Limits { paths: 4096, enables: 16, small_buffers: 4096, large_buffers: 16 };
    build(&graph, &catalogue, vec![device], limits, seed).expect("the options are right")
}

fn set(graph: &mut Graph, node: &str, option: &str, value: Value) {
    graph.set(node, option, value).expect("the graph has that node");
}

/// `record` over a planted fault over `stream` over VDROP over `network`. The last node is the top.
pub fn records(host: u32, bad: VdropConfig, fault: Fault, frame_max: usize, seed: u64) -> Instance {
    instance("records", host, Some(bad), "stream", fault, frame_max, seed)
}

/// A planted fault over `call` over the `fragment` trunk over VDROP over `network`.
pub fn calls(host: u32, bad: VdropConfig, fault: Fault, frame_max: usize, seed: u64) -> Instance {
    instance("calls", host, Some(bad), "call", fault, frame_max, seed)
}

/// `call` over VSIZE, whose small messages go straight to `network` and whose large ones go by the `fragment` trunk.
pub fn sized_calls(host: u32, frame_max: usize, seed: u64) -> Instance {
    instance("sized-calls", host, None, "call", Fault::None, frame_max, seed)
}

/// The topmost node of any of these graphs.
pub const TOP: u8 = 4;

/// From a free port of host 1 to the port served by host 2.
pub fn stream_to_server() -> Participants {
    Participants::new([Part::Number(1)], [Part::Number(2), Part::Port(PORT)])
}

/// Whoever comes to the port of host 2.
pub fn stream_server() -> Participants {
    Participants::new([Part::Number(2), Part::Port(PORT)], [])
}

/// From host 1 to host 2 on a channel.
pub fn channel_to_server(channel: u32) -> Participants {
    Participants::new([Part::Number(1)], [Part::Number(2), Part::Number(channel)])
}

/// Whoever calls host 2.
pub fn call_server() -> Participants {
    Participants::new([Part::Number(2)], [])
}
