//! Graph files of the tree, and one of the tests' own protocols: each parses, passes the check and prints as a fixed point.

use super::descriptions;
use crate::file::*;

/// The files, by name. The last one is of protocols that only the tests describe.
pub(super) const ALL: &[(&str, &str)] = &[
    ("host.graph", include_str!("../../../../../graphs/host.graph")),
    ("router.graph", include_str!("../../../../../graphs/router.graph")),
    ("toy.graph", include_str!("toy.graph")),
];

#[test]
fn the_files_pass_and_print_as_a_fixed_point() {
    for (file, text) in ALL {
        let graph = match load(text, &descriptions::catalogue()) {
            Ok(graph) => graph,
            Err(problems) => panic!("{}", report(file, &problems)),
        };
        let printed = graph.to_string();
        let again = parse(&printed).unwrap_or_else(|problems| panic!("{}", report(file, &problems)));
        assert_eq!(again, graph, "{file}");
        assert_eq!(again.to_string(), printed, "{file}");
    }
}

#[test]
fn a_graph_is_built_from_the_bottom_up() {
    let graph = parse(ALL[0].1).expect("the host's graph is right");
    let order = |graph: &Graph| -> Option<Vec<String>> {
        Some(graph.bottom_up()?.iter().map(|node| node.name.value.to_string()).collect())
    };
    assert_eq!(order(&graph).expect("no circles"), ["link0", "arp", "ip", "icmp", "udp", "tcp", "sock"]);
    let mut turned = graph.clone();
    turned.nodes.reverse();
    assert_eq!(order(&turned).expect("no circles"), ["link0", "arp", "ip", "tcp", "udp", "icmp", "sock"]);
    for no_order in ["a over b\nb over a", "a over lost", "a over tap\na over wire"] {
        assert_eq!(order(&parse(no_order).expect("it parses")), None, "{no_order}");
    }
    let uppers: Vec<&str> = graph.uppers("ip").map(|node| node.name.as_str()).collect();
    assert_eq!(uppers, ["icmp", "udp", "tcp"]);
    let link = graph.node("link0").expect("it is in the file");
    assert_eq!(link.devices().collect::<Vec<_>>(), [(0, DeviceName::Auto)]);
}

#[test]
fn settings_are_the_file_over_the_defaults() {
    let graph = load(ALL[1].1, &descriptions::catalogue()).expect("the router's graph is right");
    let ip = Settings::new(graph.node("ip").expect("it is in the file"), &descriptions::IPV4);
    assert_eq!(ip.bool("forwarding"), Some(true));
    assert_eq!(ip.integer("ttl"), Some(64));
    assert_eq!(ip.address("gateway"), None);
    let first = "10.0.1.1".parse().expect("an address");
    assert_eq!(ip.cidrs("address")[0], (first, 24));
    assert_eq!(ip.list("routes"), ["10.1.0.0/16 via 10.0.1.9", "10.2.0.0/16 via 10.0.2.9"]);
    let toy = load(ALL[2].1, &descriptions::catalogue()).expect("the toy's graph is right");
    let link = Settings::new(toy.node("link0").expect("it is in the file"), &descriptions::ETHERNET);
    assert_eq!(link.hardware("address"), Some([2, 0, 0, 0, 0, 2]));
    assert_eq!(link.size("mtu"), Some(1500));
    assert_eq!(link.text("interface"), None);
}

#[test]
#[should_panic(expected = "udp asks for its option `mtu`, which it does not describe")]
fn a_protocol_that_asks_for_what_it_does_not_describe_is_stopped() {
    let graph = parse(ALL[0].1).expect("the host's graph is right");
    let udp = graph.node("udp").expect("it is in the file");
    let _ = Settings::new(udp, &descriptions::UDP).size("mtu");
}

#[test]
fn places_have_defaults() {
    let graph = parse("a over tap\nb over a\nplace server : a").expect("a graph");
    assert_eq!((graph.placement("a"), graph.placement("b")), (Placement::Server, Placement::App));
    let graph = parse("a over tap\nb over a\nplace app : b\ndemux = kernel").expect("a graph");
    assert_eq!((graph.placement("a"), graph.placement("b")), (Placement::Server, Placement::App));
}
