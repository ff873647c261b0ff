//! `--write-golden`: a scenario's own seed gives a hash over every frame, and the scenario file carries it. A change that
//! is meant to change frames refreshes it with this command; a change that is not meant to is found by it.

use super::replay;
use crate::cli::{Ending, complain, say};
use std::fs;
use xylem_graph::file::Located;
use xylem_sim::scenario::Plan;

/// What a check of the hash itself is called in a report.
const GOLDEN: &str = "golden hash";

/// Runs a scenario with its own seed and writes the hash into its file, if every other check holds.
pub(super) fn write(scenario: &str, plan: &Plan<'_>) -> Ending {
    let report = plan.run(plan.scenario.seed);
    let mut wrong = report.checks.iter().filter(|check| !check.right && check.what != GOLDEN).peekable();
    if wrong.peek().is_some() {
        let wrong: Vec<String> = wrong.map(ToString::to_string).collect();
        complain(format!("{scenario}: not written, since a check does not hold\n{}", wrong.join("\n")));
        complain(format!("replay: {}", replay(scenario, report.seed)));
        return Ending::Wrong;
    }
    let written = fs::read_to_string(scenario).and_then(|text| {
        let changed = with_golden(&text, plan.scenario.golden.as_ref(), &report.hash);
        if changed == text { Ok(false) } else { fs::write(scenario, changed).map(|()| true) }
    });
    match written {
        Ok(true) => say(format!("{scenario}: golden = {}\n", report.hash)),
        Ok(false) => say(format!("{scenario}: as it was\n")),
        Err(error) => {
            complain(format!("cannot write {scenario}: {error}"));
            return Ending::Unasked;
        }
    }
    Ending::Right
}

/// The text with this hash: in the place of the one it has, else in a line at its end.
fn with_golden(text: &str, golden: Option<&Located<String>>, hash: &str) -> String {
    let Some(golden) = golden else { return format!("{}\ngolden = {hash}\n", text.trim_end()) };
    let line = golden.position.line as usize - 1;
    let change = |(number, said): (usize, &str)| match number == line {
        true => format!("{}\n", said.replacen(golden.as_str(), hash, 1)),
        false => format!("{said}\n"),
    };
    text.lines().enumerate().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_sim::scenario::parse;

    #[test]
    fn the_hash_takes_the_place_of_the_old_one_or_a_line_at_the_end() {
        let text = "a = host\ngolden = 0123456789abcdef # the hash\ncheck quiet\n";
        let golden = parse(text).expect("a scenario").golden;
        let changed = with_golden(text, golden.as_ref(), "fedcba9876543210");
        assert_eq!(changed, "a = host\ngolden = fedcba9876543210 # the hash\ncheck quiet\n");
        assert_eq!(with_golden("check quiet\n\n", None, "00"), "check quiet\ngolden = 00\n");
    }
}
