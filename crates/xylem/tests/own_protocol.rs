//! The worked example of a user's own protocol does what it says, and the pages that show it show it as it is.

#[path = "../examples/own-protocol/main.rs"]
mod own_protocol;

use own_protocol::{real, simulated};
use std::path::Path;
use xylem_host::device::WireDevice;

/// All letters, each once and in order.
fn all() -> String {
    let numbers: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    format!("20 of 20 arrived: {}", numbers.join(" "))
}

#[test]
fn letters_arrive_where_udp_loses() {
    let link = "loss=33% delay=5ms";
    for seed in 0..12 {
        let letters = simulated("letter", link, seed).expect("it runs");
        assert_eq!(letters, all(), "seed {seed}");
        let datagrams = simulated("udp", link, seed).expect("it runs");
        assert_ne!(datagrams, all(), "seed {seed}: a link that loses a third lost nothing");
    }
    for seed in 0..12 {
        let letters =
            simulated("letter", "loss=10% duplicate=20% reorder=20% delay=5ms jitter=50ms", seed).expect("it runs");
        assert_eq!(letters, all(), "seed {seed}");
    }
}

#[test]
fn letters_to_nobody_are_given_up() {
    assert_eq!(simulated("letter", "loss=100%", 1).expect("it ends"), "0 of 20 arrived: ");
}

#[test]
fn letters_arrive_over_a_wire() {
    let (one, other) = WireDevice::pair();
    assert_eq!(real([Box::new(one), Box::new(other)]).expect("a wire is always there"), all());
}

#[test]
fn the_whole_example_runs() {
    own_protocol::main().expect("on a TAP or a wire");
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of a page between fences that begin with one of these words.
fn blocks(page: &str, fences: &[&str]) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if fences.contains(&kind) {
            blocks.push(body.join("\n"));
        }
    }
    blocks
}

/// The blocks that are not, indented alike or not, consecutive lines of one of these files.
fn untrue(blocks: Vec<String>, files: &[String]) -> Vec<String> {
    let bare = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let files: Vec<String> = files.iter().map(|file| bare(file)).collect();
    blocks.into_iter().filter(|block| !files.iter().any(|file| file.contains(&bare(block)))).collect()
}

#[test]
fn the_pages_show_the_example_as_it_is() {
    let folder = "crates/xylem/examples/own-protocol";
    let files = ["letter.rs", "main.rs", "letter.graph"].map(|file| read(&format!("{folder}/{file}")));
    let shown = blocks(&read("docs/own-protocol.md"), &["rust", "graph"]);
    assert!(shown.len() >= 6, "the page shows only {} excerpts", shown.len());
    assert_eq!(untrue(shown, &files), [""; 0]);
    let shown = blocks(&read("README.md"), &["rust,ignore"]);
    assert_eq!(shown.len(), 1, "the README shows the protocol");
    assert_eq!(untrue(shown, &files), [""; 0]);
    assert_eq!(untrue(vec!["let x = 1;".into()], &files).len(), 1, "what is not there is seen");
}
