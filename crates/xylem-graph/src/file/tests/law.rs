//! Law 6: print(parse(graph)) = graph, for any graph that a file can say; and printing is a fixed point.

use proptest::prelude::*;

use super::strategies;
use crate::file::*;

/// The law for one graph and one printer; what breaks it, if anything does.
fn broken_by(graph: &Graph, print: &dyn Fn(&Graph) -> String) -> Option<String> {
    let text = print(graph);
    let again = match parse(&text) {
        Ok(again) => again,
        Err(problems) => return Some(format!("the printed text does not parse:\n{}", report("printed", &problems))),
    };
    if again != *graph {
        return Some(format!("reads back as another graph:\n{text}"));
    }
    (print(&again) != text).then(|| format!("prints differently the second time:\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn printed_graphs_read_back_the_same(graph in strategies::graph()) {
        prop_assert_eq!(broken_by(&graph, &Graph::to_string), None);
    }
}

/// Printers with one fault each must be caught; otherwise the law above proves nothing.
#[test]
fn printing_faults_break_the_law() {
    let text = "ip = ipv4 over tap, arp { address = \"10.0.0.2/24\", ttl = 9, note = \"a\\\"b\" }\n\
                arp over tap\nplace app : ip\nplace server : arp\ndemux = kernel\n";
    let graph = parse(text).expect("the text is a graph");
    assert_eq!(broken_by(&graph, &Graph::to_string), None);
    type Printer<'a> = &'a dyn Fn(&Graph) -> String;
    let faults: [(&str, Printer<'_>); 7] = [
        ("drops an option", &|graph| {
            let mut graph = graph.clone();
            graph.nodes[0].options.remove(1);
            graph.to_string()
        }),
        ("turns lowers round", &|graph| {
            let mut graph = graph.clone();
            graph.nodes[0].lowers.reverse();
            graph.to_string()
        }),
        ("forgets the places", &|graph| Graph { places: Vec::new(), ..graph.clone() }.to_string()),
        ("forgets a choice", &|graph| graph.to_string().replace("demux  = kernel\n", "")),
        ("forgets a name", &|graph| graph.to_string().replace("ip = ipv4", "ipv4")),
        ("does not escape", &|graph| graph.to_string().replace("\\\"", "\"")),
        ("changes a value", &|graph| graph.to_string().replace("ttl = 9", "ttl = 90")),
    ];
    for (fault, print) in faults {
        assert!(broken_by(&graph, print).is_some(), "a printer that {fault} keeps the law");
    }
    // A printer that never comes to rest reads back the same, yet is no fixed point.
    let calls = std::cell::Cell::new(0);
    let restless = |graph: &Graph| {
        calls.set(calls.get() + 1);
        format!("{graph}# printed {} times\n", calls.get())
    };
    assert!(broken_by(&graph, &restless).is_some_and(|fault| fault.starts_with("prints differently")));
}

#[test]
fn the_printed_form_is_aligned_and_says_every_choice() {
    let text = "# a comment\nlink0=ethernet over auto{interface=\"tap0\"}\narp over link0 # another\n\
                ip = ipv4 over link0,arp { address = \"10.0.0.2/24\",\n\n  ttl = 0x40 }\nplace app : ip arp\nplace app : link0";
    let printed = "\
link0 = ethernet over auto      { interface = \"tap0\" }
arp              over link0
ip    = ipv4     over link0, arp { address = \"10.0.0.2/24\", ttl = 64 }

place app : ip arp link0
demux  = layered
data   = layered
device = auto
";
    assert_eq!(parse(text).expect("the text is a graph").to_string(), printed.replace("auto      {", "auto       {"));
}

#[test]
fn many_options_stand_one_a_line() {
    let options: Vec<String> = (0..12).map(|index| format!("option_{index} = {index}s")).collect();
    let text = format!("tcp over ip {{ {} }}", options.join(", "));
    let graph = parse(&text).expect("the text is a graph");
    let printed = graph.to_string();
    assert!(printed.starts_with("tcp over ip {\n    option_0 = 0s,\n    option_1 = 1s,\n"), "{printed}");
    assert_eq!(broken_by(&graph, &Graph::to_string), None);
}

#[test]
fn equality_ignores_places_and_spelling() {
    let left = parse("udp over ip { wait = 60s, room = 1KiB, kind = word }").expect("a graph");
    let right = parse("\n\n  udp\tover ip {\n wait = 1min\n room = 1024B\n kind = \"word\"\n}\ndata = layered")
        .expect("a graph");
    assert_eq!(left, right);
    assert_ne!(left.nodes[0].name.position, right.nodes[0].name.position);
}
