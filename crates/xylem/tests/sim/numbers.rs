//! The numbers by which protocols know each other, where virtual protocols stand between them.

use xylem::{catalogue, graphs};
use xylem_graph::build::build;
use xylem_graph::instance::{DeviceFacts, Instance, Limits};

fn built() -> Instance {
    let graph = graphs::builtin("toy").expect("it is built in");
    let device = DeviceFacts { name: "wire0".into(), frame_max: 1514, checksum_offload: false, segment_offload: false };
    build(&graph, &catalogue::builtin(), vec![device], Limits::default(), 1).expect("its options go together")
}

#[test]
fn a_virtual_protocol_is_known_on_each_lower_by_the_number_its_upper_has_there() {
    let instance = built();
    let numbers = |name: &str| {
        let node = instance.nodes().iter().find(|node| node.name == name).expect("the graph has it");
        node.lowers.iter().map(|lower| lower.number).collect::<Vec<_>>()
    };
    // A call is number 18 on the network and 5 on the fragmenter; VSIZE stands for it on both.
    assert_eq!((numbers("pieces"), numbers("size"), numbers("call")), (vec![17], vec![18, 5], vec![18]));
    assert_eq!((numbers("lossy"), numbers("stream"), numbers("record")), (vec![6], vec![6], vec![0]));
}
