//! The four choices: places name nodes, cuts run through edges that can be cut, and the combination is one that works.

use super::Site;
use crate::file::choice::{Data, Demux, Device, DeviceName, Placement};
use crate::file::combination::{Combination, Status, combination, combinations};
use crate::file::graph::{Graph, Lower};
use crate::file::nearest::{nearest, one_of};
use crate::file::problem::{Position, Problem};

pub(super) fn check(site: &Site<'_>, problems: &mut Vec<Problem>) {
    places(site.graph, problems);
    cuts(site, problems);
    combined(site.graph, problems);
}

fn places(graph: &Graph, problems: &mut Vec<Problem>) {
    for (index, place) in graph.places.iter().enumerate() {
        let (name, position) = (&place.node.value, place.node.position);
        if graph.node(name).is_none() {
            let names = || graph.nodes.iter().map(|node| node.name.as_str());
            let mend = nearest(name, names()).map_or("remove it".to_owned(), |near| format!("write `{near}`"));
            let what = format!("no node is named `{name}`, so it cannot be placed");
            problems.push(Problem::new(position, what, one_of(names()), mend));
        }
        if let Some(before) = graph.places[..index].iter().find(|before| before.node == place.node) {
            problems.push(Problem::new(
                position,
                format!("`{name}` is already placed in `{}`", before.placement),
                "one place for each node",
                "remove one of them",
            ));
        }
    }
}

/// An edge between two placements becomes a portal, which the lower end must allow.
fn cuts(site: &Site<'_>, problems: &mut Vec<Problem>) {
    let graph = site.graph;
    for (upper, branch, lower) in site.edges() {
        let edge = &graph.nodes[upper].lowers[branch];
        let (above, below) = (&graph.nodes[upper].name.value, &graph.nodes[lower].name.value);
        // With `demux = kernel` the trusted side keeps what no line places and answers by facts pages, not through a portal.
        let kept = graph.placed(above).is_none() || graph.placed(below).is_none();
        let (here, there) = (graph.placement(above), graph.placement(below));
        let cuttable = site.described[lower].is_none_or(|description| description.cuttable);
        if here == there || cuttable || (kept && graph.demux.value == Demux::Kernel) {
            continue;
        }
        problems.push(Problem::new(
            edge.position,
            format!("`{above}` in `{here}` and `{below}` in `{there}` cut an edge that cannot be cut"),
            format!("both in one place: {} cannot be used from another", graph.nodes[lower].protocol.value),
            format!("write `{above}` and `{below}` in one `place` line"),
        ));
    }
}

/// One of the graph's placements with one of its devices, and where the file says them.
struct Chosen {
    placement: (Placement, Position),
    device: (DeviceName, Position),
    /// Whether the device stands on an edge, and not in the `device` line.
    on_edge: bool,
}

fn combined(graph: &Graph, problems: &mut Vec<Problem>) {
    for chosen in chosen(graph) {
        let (demux, data, placement) = (graph.demux.value, graph.data.value, chosen.placement.0);
        let status = best(placement, demux, data, chosen.device.0);
        if status == Status::Works {
            continue;
        }
        let device = match chosen.device.0 {
            DeviceName::Auto => "any device".to_owned(),
            DeviceName::Kind(device) => format!("device {device}"),
        };
        let changes = changes(graph, &chosen);
        let position = changes.first().map_or(chosen.placement.1, |(_, position)| *position);
        let words: Vec<&str> = changes.iter().map(|(words, _)| words.as_str()).collect();
        problems.push(Problem::new(
            position,
            format!("placement {placement}, demux {demux}, data {data} and {device}: {status}"),
            "a combination that works (`xylem graph combinations` lists all)",
            format!("write {}", words.join(" and ")),
        ));
    }
}

/// Every placement of a node beside every device, each pair once. Nodes that no line places count as `app`: with
/// `demux = kernel` the trusted side keeps only what no path crosses.
fn chosen(graph: &Graph) -> Vec<Chosen> {
    let mut placements: Vec<(Placement, Position)> = Vec::new();
    let known = graph.places.iter().filter(|place| graph.node(&place.node.value).is_some());
    let said = known.map(|place| (place.placement, place.node.position));
    let unsaid = graph.nodes.iter().filter(|node| graph.placed(&node.name).is_none());
    for (placement, position) in said.chain(unsaid.map(|node| (Placement::App, node.name.position))) {
        if placements.iter().all(|(known, _)| *known != placement) {
            placements.push((placement, position));
        }
    }
    let mut devices: Vec<(DeviceName, Position, bool)> = Vec::new();
    for lower in graph.nodes.iter().flat_map(|node| &node.lowers) {
        let Lower::Device(name) = lower.value else { continue };
        let device = graph.device_on_edge(name);
        let on_edge = name != DeviceName::Auto;
        if devices.iter().all(|(known, ..)| *known != device) {
            devices.push((device, if on_edge { lower.position } else { graph.device.position }, on_edge));
        }
    }
    if devices.is_empty() {
        devices.push((graph.device.value, graph.device.position, false));
    }
    let pair = |&placement| {
        let with = move |&(device, position, on_edge)| Chosen { placement, device: (device, position), on_edge };
        devices.iter().map(with)
    };
    placements.iter().flat_map(pair).collect()
}

/// The best that any device the name allows comes to: with `auto` the program chooses one that works if there is one.
fn best(placement: Placement, demux: Demux, data: Data, device: DeviceName) -> Status {
    let all = match device {
        DeviceName::Kind(device) => return combination(placement, demux, data, device),
        DeviceName::Auto => Device::ALL.iter().map(|&device| combination(placement, demux, data, device)),
    };
    let rank = |status: &Status| match status {
        Status::Works => 0,
        Status::NotYet => 1,
        Status::Illegal(_) => 2,
    };
    all.min_by_key(rank).expect("there are devices, so one of them is the best")
}

/// What a nearest row that works says differently, in the words of the file, each with the place to change.
fn changes(graph: &Graph, chosen: &Chosen) -> Vec<(String, Position)> {
    let table = combinations();
    let works = table.rows.iter().filter(|row| row.status == Status::Works);
    let differing = |row: &Combination| {
        let mut changes = Vec::new();
        if row.demux != graph.demux.value {
            changes.push((format!("`demux = {}`", row.demux), graph.demux.position));
        }
        if row.data != graph.data.value {
            changes.push((format!("`data = {}`", row.data), graph.data.position));
        }
        if row.placement != chosen.placement.0 {
            changes.push((format!("`place {} : …`", row.placement), chosen.placement.1));
        }
        if chosen.device.0 != DeviceName::Auto && chosen.device.0 != DeviceName::Kind(row.device) {
            let words = if chosen.on_edge { "over" } else { "device =" };
            changes.push((format!("`{words} {}`", row.device), chosen.device.1));
        }
        changes
    };
    works.map(differing).min_by_key(Vec::len).unwrap_or_default()
}
