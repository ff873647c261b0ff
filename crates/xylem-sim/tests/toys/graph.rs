//! The toy graphs. Numbers by which lowers know their uppers are the protocols' own business; here each gets one.

use super::fault::{Fault, Faulty};
use std::sync::Arc;
use xylem_core::{Part, Participants, Protocol, Random};
use xylem_graph::instance::{Below, DeviceFacts, Instance, Limits, Lower, Node};
use xylem_protocols::toy::HostNumber;
use xylem_protocols::toy::call::CallProtocol;
use xylem_protocols::toy::fragment::FragmentProtocol;
use xylem_protocols::toy::network::NetworkProtocol;
use xylem_protocols::toy::record::RecordProtocol;
use xylem_protocols::toy::stream::StreamProtocol;
use xylem_protocols::vdrop::{VdropConfig, VdropProtocol};
use xylem_protocols::vsize::{VsizeConfig, VsizeProtocol};
use xylem_wire::Port;

/// The port at which toy streams are served.
pub const PORT: Port = Port(80);

fn node(kind: &str, protocol: impl Protocol + 'static, lowers: &[(u8, u32)]) -> Node {
    let lowers = lowers.iter().map(|&(below, number)| Lower { below: Below::Node(below), number }).collect();
    Node { name: kind.into(), kind: kind.into(), protocol: Some(Arc::new(protocol)), lowers }
}

fn instance(mut nodes: Vec<Node>, frame_max: usize, seed: u64) -> Instance {
    nodes[0].lowers = vec![Lower { below: Below::Device(0), number: 0 }];
    let device = DeviceFacts { name: "toy0".into(), frame_max, checksum_offload: false, segment_offload: false };
    let limits = Limits { paths: 4096, enables: 16, small_buffers: 4096, large_buffers: 16 };
    Instance::new(nodes, vec![device], limits, seed)
}

/// `record` over a planted fault over `stream` over VDROP over `network`. The last node is the top.
pub fn records(host: u32, bad: VdropConfig, fault: Fault, frame_max: usize, seed: u64) -> Instance {
    let mut random = Random::seeded(seed ^ 0x5eed);
    let nodes = vec![
        node("network", NetworkProtocol::new(HostNumber(host)), &[]),
        node("vdrop", VdropProtocol::new(bad), &[(0, 6)]),
        node("stream", StreamProtocol::new(&mut random), &[(1, 0)]),
        node("faulty", Faulty(fault), &[(2, 0)]),
        node("record", RecordProtocol, &[(3, 0)]),
    ];
    instance(nodes, frame_max, seed)
}

/// `call` over a planted fault over the `fragment` trunk over VDROP over `network`.
pub fn calls(host: u32, bad: VdropConfig, fault: Fault, frame_max: usize, seed: u64) -> Instance {
    let mut random = Random::seeded(seed ^ 0x5eed);
    let nodes = vec![
        node("network", NetworkProtocol::new(HostNumber(host)), &[]),
        node("vdrop", VdropProtocol::new(bad), &[(0, 17)]),
        node("fragment", FragmentProtocol::new(&mut random), &[(1, 0)]),
        node("call", CallProtocol::new(&mut random), &[(2, 5)]),
        node("faulty", Faulty(fault), &[(3, 0)]),
    ];
    instance(nodes, frame_max, seed)
}

/// `call` over VSIZE, whose small messages go straight to `network` and whose large ones go by the `fragment` trunk.
pub fn sized_calls(host: u32, frame_max: usize, seed: u64) -> Instance {
    let mut random = Random::seeded(seed ^ 0x5eed);
    let nodes = vec![
        node("network", NetworkProtocol::new(HostNumber(host)), &[]),
        node("fragment", FragmentProtocol::new(&mut random), &[(0, 17)]),
        node("vsize", VsizeProtocol::new(VsizeConfig::default()), &[(0, 18), (1, 5)]),
        node("call", CallProtocol::new(&mut random), &[(2, 0)]),
        node("faulty", Faulty(Fault::None), &[(3, 0)]),
    ];
    instance(nodes, frame_max, seed)
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
