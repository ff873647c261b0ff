//! Pictures: whatever the graph, the SVG is well-formed, has a box for every node, none on another, and every text in its box.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

use super::{descriptions, files, strategies};
use crate::file::draw::Face;
use crate::file::*;

/// An element of a picture with what lies in it.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn number(&self, attribute: &str) -> i64 {
        self.attributes[attribute].parse().expect("a whole number of pixels")
    }

    fn class(&self) -> &str {
        self.attributes.get("class").map_or("", String::as_str)
    }
}

/// Reads a document, or says why it is none: the part of XML that pictures use, and strict about it.
fn read(text: &str) -> Result<Element, String> {
    let mut open: Vec<Element> = vec![Element::default()];
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let here = open.last_mut().expect("the root stays open");
        here.text.push_str(&plain(&rest[..at])?);
        let end = rest.find('>').ok_or("a tag does not end")?;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let closed =
                open.pop().filter(|element| element.name == name).ok_or(format!("</{name}> closes nothing"))?;
            open.last_mut().ok_or("too much is closed")?.children.push(closed);
            continue;
        }
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut said) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut element = Element { name: name.to_owned(), ..Element::default() };
        while !said.trim().is_empty() {
            let (key, value) = said.trim_start().split_once("=\"").ok_or("an attribute has no value")?;
            let (value, after) = value.split_once('"').ok_or("a value does not end")?;
            if element.attributes.insert(key.to_owned(), plain(value)?).is_some() {
                return Err(format!("{key} is said twice"));
            }
            said = after;
        }
        match empty {
            true => open.last_mut().ok_or("nothing is open")?.children.push(element),
            false => open.push(element),
        }
    }
    let mut root = open.pop().filter(|_| open.is_empty()).ok_or("something stays open")?;
    if root.children.len() != 1 || !rest.trim().is_empty() {
        return Err("not one element in all".into());
    }
    Ok(root.children.remove(0))
}

/// Text without its escapes.
fn plain(text: &str) -> Result<String, String> {
    if text.contains('<') {
        return Err("a bare <".into());
    }
    let mut plain = String::new();
    let mut parts = text.split('&');
    plain.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let (entity, after) = part.split_once(';').ok_or("a bare &")?;
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            other => return Err(format!("&{other}; is not known")),
        });
        plain.push_str(after);
    }
    Ok(plain)
}

/// Left, top, right, bottom.
type Edges = (i64, i64, i64, i64);

fn edges(rectangle: &Element) -> Edges {
    let (x, y) = (rectangle.number("x"), rectangle.number("y"));
    (x, y, x + rectangle.number("width"), y + rectangle.number("height"))
}

fn touch(one: &Edges, other: &Edges) -> bool {
    one.0 <= other.2 && other.0 <= one.2 && one.1 <= other.3 && other.1 <= one.3
}

/// Left and right of a text, by the table.
fn span(text: &Element) -> (i64, i64) {
    let face = Face::ALL.into_iter().find(|face| face.class() == text.class()).expect("every text has a face");
    let (x, width) = (text.number("x"), face.width(&text.text) as i64);
    match text.attributes["text-anchor"].as_str() {
        "middle" => (x - width / 2 - 1, x + width / 2 + 1),
        _ => (x, x + width),
    }
}

/// What is wrong with a picture of `graph`.
fn faults(svg: &str, graph: &Graph) -> Vec<String> {
    let document = match read(svg) {
        Ok(document) => document,
        Err(error) => return vec![error],
    };
    let mut faults = Vec::new();
    let paper = (0, 0, document.number("width"), document.number("height"));
    let mut boxes: Vec<(String, Edges)> = Vec::new();
    for item in document.children.iter().filter(|element| element.class() == "item") {
        let own = edges(&item.children[0]);
        let name = item.attributes["id"].clone();
        for text in &item.children[1..] {
            let ((left, right), y) = (span(text), text.number("y"));
            if left < own.0 + 4 || right > own.2 - 4 || y < own.1 + 8 || y > own.3 - 4 {
                faults.push(format!("{:?} is not inside {name}", text.text));
            }
        }
        boxes.push((name, own));
    }
    for (at, (name, own)) in boxes.iter().enumerate() {
        faults
            .extend(boxes[..at].iter().filter(|(_, other)| touch(own, other)).map(|(it, _)| format!("{it} on {name}")));
        if own.0 < paper.0 || own.1 < paper.1 || own.2 > paper.2 || own.3 > paper.3 {
            faults.push(format!("{name} leaves the paper"));
        }
    }
    let nodes = graph.nodes.iter().map(|node| node.name.value.to_string());
    let device = |node: &Node| -> Vec<String> {
        node.devices().map(|(branch, _)| format!("{}.{branch}", node.name.value)).collect()
    };
    let mut wanted: Vec<String> = nodes.chain(graph.nodes.iter().flat_map(device)).collect();
    let mut shown: Vec<String> = boxes.iter().map(|(name, _)| name.clone()).collect();
    wanted.sort();
    shown.sort();
    if wanted != shown {
        faults.push(format!("boxes {shown:?} for {wanted:?}"));
    }
    let areas =
        |class: &'static str| document.children.iter().filter(move |element| element.class().starts_with(class));
    for node in graph.nodes.iter().filter(|_| areas("ground").next().is_some()) {
        let own = boxes.iter().find(|(name, _)| *name == *node.name.value.as_str()).map(|(_, own)| *own);
        let Some(own) = own else { continue };
        let around: BTreeSet<&str> =
            areas("ground").filter(|area| touch(&edges(area), &own)).map(|it| it.class()).collect();
        let wanted = format!("ground {}", graph.placement(&node.name.value));
        if around != BTreeSet::from([wanted.as_str()]) {
            faults.push(format!("{} stands in {around:?}, not in {wanted}", node.name.value));
        }
    }
    for text in document.children.iter().filter(|element| element.name == "text") {
        let (left, right) = span(text);
        if left < 0 || right > paper.2 || text.number("y") > paper.3 {
            faults.push(format!("{:?} leaves the paper", text.text));
        }
    }
    faults
}

fn is_list(svg: &str) -> bool {
    !svg.contains("class=\"item\"")
}

/// The graph files of the tree, and what stands for more: placements, odd values, the tests' own protocols.
fn graphs() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../graphs");
    let entries = std::fs::read_dir(folder).expect("the folder of graph files is in the tree");
    let paths = entries.map(|entry| entry.expect("its entries can be read").path());
    let mut all: Vec<(String, String)> = paths
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).expect("a graph file can be read")))
        .collect();
    assert!(all.len() >= 6, "the graph files were not found");
    all.extend(files::ALL.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
    let host = files::ALL[0].1;
    all.push(("placed".into(), format!("{host}\nplace app : sock tcp udp ip link0\ndemux = kernel")));
    all.push((
        "three".into(),
        format!("{host}\nplace app : sock\nplace server : tcp udp icmp\nplace processor : ip arp link0"),
    ));
    all.push((
        "mixed".into(),
        format!("{host}\nplace app : sock udp\nplace server : tcp arp\nplace processor : ip icmp link0"),
    ));
    all.push((
        "odd".into(),
        "a over auto { note = \"<&\\\"> grüße\", other = 7 }\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb = a over a".into(),
    ));
    all
}

#[test]
fn every_graph_file_has_a_picture_without_faults() {
    for (name, text) in graphs() {
        let graph = parse(&text).unwrap_or_else(|problems| panic!("{}", report(&name, &problems)));
        let picture = svg(&graph, &descriptions::catalogue(), &name);
        assert!(!is_list(&picture), "{name}");
        assert_eq!(faults(&picture, &graph), [""; 0], "{name}\n{picture}");
        assert_eq!(picture, svg(&graph, &descriptions::catalogue(), &name), "the same graph is the same picture");
    }
}

/// The reader above must see faults; otherwise the tests here prove nothing.
#[test]
fn a_fault_in_a_picture_is_seen() {
    let graph = parse(&graphs().iter().find(|(name, _)| name == "placed").expect("it is there").1).expect("a graph");
    let picture = svg(&graph, &descriptions::catalogue(), "placed");
    assert_eq!(faults(&picture, &graph), [""; 0]);
    let at = |what: &str| picture.find(what).unwrap_or_else(|| panic!("{what} is not in\n{picture}"));
    let changed = |from: usize, right: &str, wrong: &str| {
        let place = from + picture[from..].find(right).expect("it is there");
        format!("{}{wrong}{}", &picture[..place], &picture[place + right.len()..])
    };
    for (fault, wrong) in [
        ("is not closed", changed(0, "</svg>", "")),
        ("has a bare &", changed(0, "<title>", "<title>&")),
        ("loses a box", changed(at("id=\"udp\""), "udp", "upd")),
        ("moves a box", changed(at("id=\"udp\""), " x=\"", " x=\"1")),
        ("has a long text", changed(at(">tcp<"), ">tcp<", ">tcp, which is a very long name<")),
        ("forgets a region", changed(at("ground server"), "ground server", "ground app")),
    ] {
        assert_ne!(faults(&wrong, &graph), [""; 0], "a picture that {fault} reads the same");
    }
}

#[test]
fn a_box_says_what_differs_from_the_defaults() {
    let graph =
        parse("link0 = ethernet over tap { mtu = 1500 }\nip = ipv4 over link0 { ttl = 64, address = \"10.0.0.2/24\" }")
            .expect("a graph");
    let picture = svg(&graph, &descriptions::catalogue(), "defaults");
    assert!(picture.contains(">address 10.0.0.2/24<") && !picture.contains("ttl"), "{picture}");
    let unknown = svg(&graph, &Vec::new(), "no descriptions");
    assert!(unknown.contains(">ttl 64<"), "without a description nothing goes without saying: {unknown}");
}

#[test]
fn what_is_no_drawing_of_boxes_is_a_picture_of_a_list() {
    let graph = parse("a over b, lost\nb = p over a, tap").expect("it parses");
    let picture = svg(&graph, &descriptions::catalogue(), "circle");
    assert!(is_list(&picture) && picture.contains("└─ over lost (unknown)"), "{picture}");
    assert!(read(&picture).is_ok());
    assert!(read(&svg(&Graph::default(), &descriptions::catalogue(), "")).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_graph_has_a_picture_without_faults(
        graph in strategies::descending(1..16),
        placed in proptest::collection::vec(0usize..3, 16),
    ) {
        let mut graph = graph;
        graph.places.clear();
        for (node, placement) in graph.nodes.iter().zip(&placed) {
            graph.places.push(Place { placement: Placement::ALL[*placement], node: node.name.clone() });
        }
        let picture = svg(&graph, &descriptions::catalogue(), "any");
        if !is_list(&picture) {
            prop_assert_eq!(faults(&picture, &graph), [""; 0], "\n{}\n{}", graph, picture);
        }
    }
}
