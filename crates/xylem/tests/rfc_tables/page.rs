//! Rules and places side by side: what is missing, and the pages of `docs/rfc` in Markdown.

use super::labels::Label;
use super::places::{Kind, Place};
use super::rules::{Level, Rule, Rules};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What writes the pages, for whoever finds them stale.
pub const COMMAND: &str = "cargo run -p xylem --example write_rfc_tables";

/// Everything wrong with the evidence: a label nobody knows, a rule without code or test and without a reason for it.
pub fn problems(all: &[Rules], places: &BTreeSet<Place>) -> Vec<String> {
    let mut problems: Vec<String> = all.iter().flat_map(Rules::problems).collect();
    let known: BTreeSet<Label> = all.iter().flat_map(|rules| rules.all().map(|rule| rules.label(rule))).collect();
    for place in places.iter().filter(|place| !known.contains(&place.label)) {
        problems.push(format!("{}: {} is in no list of docs/rfc", place.file, place.label));
    }
    for rules in all {
        for rule in rules.all().filter(|rule| rule.exception.is_none() && rule.level() != Level::May) {
            let label = rules.label(rule);
            for (kind, what) in [(Kind::Code, "place in code"), (Kind::Test, "test")] {
                if of(places, &label, kind).next().is_none() {
                    problems.push(format!("{label} has no {what}: it asks that {}", rule.asks));
                }
            }
        }
    }
    problems
}

/// The page of an RFC: its name in `docs/rfc`, and its text.
pub fn page(rules: &Rules, places: &BTreeSet<Place>) -> (String, String) {
    let mut text = format!(
        "# RFC {}: {}\n\nWritten by `{COMMAND}` from `rfc{}.toml` and from the places that name a rule by its label; a test \
         fails when it is stale.\n",
        rules.rfc, rules.title, rules.rfc
    );
    if !rules.note.is_empty() {
        let _ = write!(text, "\n{}\n", rules.note.trim());
    }
    let _ = write!(text, "\n{}\n", summary(rules, places));
    for group in &rules.group {
        let _ = write!(text, "\n## {}\n\n", group.title);
        text += "| label | level | section | what it asks | code | tests | exception |\n";
        text += "| --- | --- | --- | --- | --- | --- | --- |\n";
        for rule in &group.rules {
            text += &row(rules, rule, places);
        }
    }
    (format!("rfc{}.md", rules.rfc), text)
}

/// The page that leads to the others.
pub fn contents(all: &[Rules], places: &BTreeSet<Place>) -> (String, String) {
    let mut text = format!(
        "# What TCP does of its RFCs\n\nEach rule with the place in code that meets it, the tests that show it, and the reason \
         where it is not done. The lists are `rfc*.toml`; the pages are written by `{COMMAND}`, and a test fails when a \
         rule that must be met has no test, when a label is unknown, or when a page is stale.\n\n\
         RFC 9293 has labels of its own (`MUST-12`). A rule of another RFC is named by its section, and a step of it where \
         there are several (`RFC 5961 3.2-1`): this spelling, without a comma, is what is looked for in comments of code \
         and tests and in the heading `rfc:` of packet scripts.\n\n| RFC | what | rules |\n| --- | --- | --- |\n"
    );
    for rules in all {
        let number = rules.rfc;
        let _ = writeln!(text, "| [{number}](rfc{number}.md) | {} | {} |", rules.title, summary(rules, places));
    }
    ("README.md".to_owned(), text)
}

fn summary(rules: &Rules, places: &BTreeSet<Place>) -> String {
    let count = |level| {
        let of_level: Vec<&Rule> = rules.all().filter(|rule| rule.level() == level).collect();
        let is_tested = |rule: &&&Rule| of(places, &rules.label(rule), Kind::Test).next().is_some();
        let tested = of_level.iter().filter(is_tested).count();
        let excepted = of_level.iter().filter(|rule| rule.exception.is_some()).count();
        format!("{} {}: {tested} tested, {excepted} excepted", of_level.len(), level.name())
    };
    format!("{}; {}; {}.", count(Level::Must), count(Level::Should), count(Level::May))
}

fn of<'a>(places: &'a BTreeSet<Place>, label: &Label, kind: Kind) -> impl Iterator<Item = &'a Place> {
    places.iter().filter(move |place| place.label == *label && place.kind == kind)
}

fn row(rules: &Rules, rule: &Rule, places: &BTreeSet<Place>) -> String {
    let label = rules.label(rule);
    let list = |kind| of(places, &label, kind).map(link).collect::<Vec<_>>().join("<br>");
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        rule.label,
        rule.level().name(),
        rule.section(),
        cell(&rule.asks),
        list(Kind::Code),
        list(Kind::Test),
        cell(rule.exception.as_deref().unwrap_or_default()),
    )
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A place as a link: the item, or for a script its folder and name.
fn link(place: &Place) -> String {
    let short = place.file.strip_prefix("tests/wire/tcp/").unwrap_or(&place.file);
    let short = short.strip_prefix("crates/xylem-protocols/src/").unwrap_or(short);
    let text = if place.item.is_empty() { short.to_owned() } else { format!("{} in {short}", place.item) };
    format!("[{text}](../../{})", place.file)
}
