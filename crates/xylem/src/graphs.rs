//! The graphs that come with Xylem, by name: every instance that no file describes is built from one of these. The program
//! carries their text, and `xylem graph show` prints it, so that a user's own graph begins as a copy.

use std::{fmt, fs, io};
use xylem_graph::file::{self, Graph};

/// Every graph that comes with Xylem: its name and its text.
const TEXTS: [(&str, &str); 7] = [
    ("calls", include_str!("../../../graphs/calls.graph")),
    ("host", include_str!("../../../graphs/host.graph")),
    ("point", include_str!("../../../graphs/point.graph")),
    ("records", include_str!("../../../graphs/records.graph")),
    ("router", include_str!("../../../graphs/router.graph")),
    ("sized-calls", include_str!("../../../graphs/sized-calls.graph")),
    ("toy", include_str!("../../../graphs/toy.graph")),
];

/// The names of the graphs that come with Xylem.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

/// The text of the graph of this name.
pub fn text(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The graph of this name, as its file says it. It passes the check of [`catalogue::builtin`](crate::catalogue::builtin);
/// options set in code ([`Graph::set`]) are checked again with [`check`](file::check()).
pub fn builtin(name: &str) -> Option<Graph> {
    text(name).map(|text| file::parse(text).expect("a test parses every graph that the program carries"))
}

/// The text of a graph: of the one that comes with Xylem under exactly this name, else of the file at this path. A file in
/// the current folder that is called like one is `./host`.
///
/// # Errors
/// [`Unreadable`] if there is neither.
pub fn read(name: &str) -> Result<String, Unreadable> {
    if let Some(text) = text(name) {
        return Ok(text.to_owned());
    }
    fs::read_to_string(name).map_err(|error| Unreadable { name: name.to_owned(), error })
}

/// A graph that is neither built in nor a file that can be read.
#[derive(Debug)]
pub struct Unreadable {
    name: String,
    error: io::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = names().collect();
        let (name, names) = (&self.name, names.join(", "));
        write!(f, "cannot read {name}: {}; expected a graph file, or one of: {names}", self.error)
    }
}

impl std::error::Error for Unreadable {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use xylem_graph::file::Descriptions;

    #[test]
    fn every_graph_of_the_tree_comes_with_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../graphs");
        let entries = fs::read_dir(folder).expect("the folder of graph files is in the tree");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("its entries can be read").file_name()).collect();
        files.sort();
        assert_eq!(files, names().map(|name| std::ffi::OsString::from(format!("{name}.graph"))).collect::<Vec<_>>());
    }

    #[test]
    fn every_graph_that_the_program_carries_passes_the_check() {
        let catalogue = catalogue::builtin();
        for name in names() {
            let graph = builtin(name).expect("its name is listed");
            let problems = file::check(&graph, &catalogue);
            assert!(problems.is_empty(), "{}", file::report(name, &problems));
        }
        assert!(catalogue.names().contains(&"ipv4"));
        assert!(builtin("nothing").is_none());
    }
}
