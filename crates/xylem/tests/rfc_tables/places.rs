//! Where rules are named: functions and types of the sources, tests beside them and in `tests`, and packet scripts. Only
//! what the test runner runs counts as a test, and of scripts only those that hold for our TCP.

use super::files;
use super::items::item;
use super::labels::{Label, in_heading, in_line};
use std::collections::BTreeSet;

/// A place that names a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub label: Label,
    pub kind: Kind,
    /// The file, counted from the root.
    pub file: String,
    /// The item in it; empty for the whole.
    pub item: String,
}

/// What a place shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The rule is met here.
    Code,
    /// It is shown to be met.
    Test,
    /// It is only spoken of: beside tests and not in one, or in a script that is not for our TCP.
    Mention,
}

/// Files that speak of labels as such.
const OURSELVES: [&str; 2] = ["crates/xylem/tests/labels.rs", "crates/xylem/tests/rfc_tables/"];

/// All places of the tree.
pub fn all() -> BTreeSet<Place> {
    let rust =
        files("crates", ".rs").into_iter().filter(|(name, _)| !OURSELVES.iter().any(|own| name.starts_with(own)));
    let mut places: BTreeSet<Place> = rust.flat_map(|(name, text)| in_rust(&name, &text)).collect();
    places.extend(files("tests/wire", ".wire").into_iter().flat_map(|(name, text)| in_script(&name, &text)));
    places
}

/// Those in a Rust file.
pub fn in_rust(file: &str, text: &str) -> Vec<Place> {
    let lines: Vec<&str> = text.lines().collect();
    let is_beside = !file.contains("/src/") || file.contains("/tests/") || file.ends_with("/tests.rs");
    // Tests stand last in a file.
    let tests_from = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    let tests_from = if is_beside { 0 } else { tests_from.unwrap_or(lines.len()) };
    let mut places = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        for label in in_line(line) {
            let item = item(&lines, index);
            let kind = match (index >= tests_from, item.is_test) {
                (_, true) => Kind::Test,
                (true, false) => Kind::Mention,
                (false, false) => Kind::Code,
            };
            places.push(Place { label, kind, file: file.to_owned(), item: item.name });
        }
    }
    places
}

/// Those in a packet script.
pub fn in_script(file: &str, text: &str) -> Vec<Place> {
    let heading = |name| move |line: &'_ str| line.strip_prefix(name).map(|rest: &str| rest.trim().to_owned());
    let kind = if text.lines().any(|line| line.starts_with("xylem:")) { Kind::Mention } else { Kind::Test };
    let labels = text.lines().filter_map(heading("rfc:")).filter_map(|rule| in_heading(&rule));
    labels.map(|label| Place { label, kind, file: file.to_owned(), item: String::new() }).collect()
}
