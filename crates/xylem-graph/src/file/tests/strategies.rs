//! Generated graphs: any graph that can be said in a file, and graphs whose edges lead downwards.

use proptest::prelude::*;
use std::time::Duration;

use crate::file::*;

fn name() -> impl Strategy<Value = Name> {
    // Option names and protocols may be words of the language; only nodes may not.
    let word = prop_oneof![
        8 => proptest::collection::vec(prop::sample::select(b"abcxyzABC0189_-".to_vec()), 0..8),
        1 => prop::sample::select(vec!["place", "over", "true", "tap", "demux", "data"]).prop_map(|w| w.as_bytes().to_vec()),
    ];
    word.prop_map(|tail| {
        let text = String::from_utf8_lossy(&tail).into_owned();
        Name::new(&text)
            .unwrap_or_else(|_| Name::new(&format!("n{text}")).expect("a letter and name characters are a name"))
    })
}

fn node_name() -> impl Strategy<Value = Name> {
    name().prop_filter("nodes cannot be named by words of the language", |name| !is_reserved(name))
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::Text),
        // Strings leave control characters out, which are what needs escapes.
        proptest::collection::vec(prop_oneof![any::<char>(), (0..0x20u8).prop_map(char::from)], 0..8)
            .prop_map(|characters| Value::Text(characters.into_iter().collect())),
        prop::sample::select(vec!["", "\"", "\\", "a\nb\r\tc", "# no comment", "true", "30s", "\u{202e}x\u{0}"])
            .prop_map(|text| Value::Text(text.to_owned())),
        any::<i64>().prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Bool),
        (any::<u64>(), 0..1_000_000_000u32).prop_map(|(s, ns)| Value::Duration(Duration::new(s, ns))),
        (0..100_000u64).prop_map(|ms| Value::Duration(Duration::from_millis(ms))),
        any::<u64>().prop_map(Value::Size),
        (0..60u32).prop_map(|shift| Value::Size(1 << shift)),
    ]
}

fn device_name() -> impl Strategy<Value = DeviceName> {
    prop_oneof![Just(DeviceName::Auto), prop::sample::select(Device::ALL.to_vec()).prop_map(DeviceName::Kind),]
}

fn setting() -> impl Strategy<Value = Setting> {
    (name(), value()).prop_map(|(name, value)| Setting { name: Located::nowhere(name), value: Located::nowhere(value) })
}

fn node() -> impl Strategy<Value = Node> {
    let lower = prop_oneof![node_name().prop_map(Lower::Node), device_name().prop_map(Lower::Device)];
    let names = prop_oneof![(node_name(), name()), node_name().prop_map(|name| (name.clone(), name)),];
    (names, proptest::collection::vec(lower, 0..5), proptest::collection::vec(setting(), 0..6)).prop_map(
        |((name, protocol), lowers, options)| Node {
            lowers: lowers.into_iter().map(Located::nowhere).collect(),
            options,
            ..Node::new(name, protocol)
        },
    )
}

/// Any graph that a file can say, sensible or not.
pub(super) fn graph() -> impl Strategy<Value = Graph> {
    let place = (prop::sample::select(Placement::ALL.to_vec()), name())
        .prop_map(|(placement, node)| Place { placement, node: Located::nowhere(node) });
    (
        proptest::collection::vec(node(), 0..8),
        proptest::collection::vec(place, 0..8),
        prop::sample::select(Demux::ALL.to_vec()),
        prop::sample::select(Data::ALL.to_vec()),
        device_name(),
    )
        .prop_map(|(nodes, places, demux, data, device)| Graph {
            nodes,
            places,
            demux: Located::nowhere(demux),
            data: Located::nowhere(data),
            device: Located::nowhere(device),
        })
}

/// A graph of so many nodes whose edges all lead to earlier nodes or devices; names are `n0`, `n1` and on.
pub(super) fn descending(nodes: std::ops::Range<usize>) -> impl Strategy<Value = Graph> {
    let wishes = proptest::collection::vec(proptest::collection::vec(any::<prop::sample::Index>(), 0..4), nodes);
    wishes.prop_map(|wishes| {
        let named = |index: usize| Name::new(&format!("n{index}")).expect("a letter and digits are a name");
        let mut graph = Graph::default();
        for (at, wishes) in wishes.into_iter().enumerate() {
            let mut node = Node::new(named(at), Name::new("p").expect("a letter is a name"));
            for wish in wishes {
                // One more choice than there are earlier nodes: the device.
                let lower = match wish.index(at + 1) {
                    below if below < at => Lower::Node(named(below)),
                    _ => Lower::Device(DeviceName::Auto),
                };
                if matches!(lower, Lower::Device(_)) || !node.stands_over(lower.word()) {
                    node.lowers.push(Located::nowhere(lower));
                }
            }
            graph.nodes.push(node);
        }
        graph
    })
}
