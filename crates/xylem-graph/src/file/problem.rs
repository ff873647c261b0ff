//! What is wrong with a graph file, said so that its author can mend it.
//!
//! A problem names the place, what was found, what was expected and a mend. All problems of a text are said at once, up to
//! [`PROBLEMS_MAX`], sorted by place.

use std::fmt;

/// A place in a graph file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The line, counted from 1; 0 for what was built in code.
    pub line: u32,
    /// The column, counted in characters from 1; 0 for what was built in code.
    pub column: u32,
}

impl Position {
    /// The place of what no file says: items built in code, and defaults.
    pub const NOWHERE: Position = Position { line: 0, column: 0 };
}

/// The most problems said about one text; the last one then says that there are more.
pub const PROBLEMS_MAX: usize = 64;

/// One thing that is wrong, at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it is.
    pub position: Position,
    /// What is wrong, naming what was found.
    pub what: String,
    /// What would be right here.
    pub expected: String,
    /// What to write instead.
    pub mend: String,
}

impl Problem {
    /// A problem at a place, in its three parts; none of them ends with a full stop.
    pub fn new(
        position: Position,
        what: impl Into<String>,
        expected: impl Into<String>,
        mend: impl Into<String>,
    ) -> Problem {
        Problem { position, what: what.into(), expected: expected.into(), mend: mend.into() }
    }

    /// The problem as one line that starts with the file's name: `FILE:LINE:COLUMN: what; expected …; mend: …`.
    pub fn in_file<'a>(&'a self, file: &'a str) -> impl fmt::Display + 'a {
        InFile { problem: self, file }
    }
}

/// Without a file name: `LINE:COLUMN: what; expected …; mend: …`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        write!(f, "{line}:{column}: {}; expected {}; mend: {}", self.what, self.expected, self.mend)
    }
}

impl std::error::Error for Problem {}

struct InFile<'a> {
    problem: &'a Problem,
    file: &'a str,
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.problem)
    }
}

/// All problems as a text of one line each, every line starting with the file's name.
pub fn report(file: &str, problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{}\n", problem.in_file(file))).collect()
}

/// Sorts by place, drops what is said twice, and keeps at most [`PROBLEMS_MAX`].
pub(super) fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort();
    problems.dedup();
    if problems.len() > PROBLEMS_MAX {
        let more = problems.len() - (PROBLEMS_MAX - 1);
        let position = problems[PROBLEMS_MAX - 1].position;
        problems.truncate(PROBLEMS_MAX - 1);
        problems.push(Problem::new(
            position,
            format!("{more} more problems from here on are not shown"),
            format!("at most {PROBLEMS_MAX} problems"),
            "mend the problems above first",
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_with_its_place() {
        let problem = Problem::new(Position { line: 3, column: 9 }, "`upd` is unknown", "a protocol", "write `udp`");
        assert_eq!(
            problem.in_file("web.graph").to_string(),
            "web.graph:3:9: `upd` is unknown; expected a protocol; mend: write `udp`"
        );
        assert_eq!(
            report("a.graph", &[problem.clone(), problem]),
            "a.graph:3:9: `upd` is unknown; expected a protocol; mend: write `udp`\n".repeat(2)
        );
    }

    #[test]
    fn a_flood_of_problems_is_cut_and_says_so() {
        let flood =
            (1..=200).rev().map(|line| Problem::new(Position { line, column: 1 }, "bad", "good", "mend it")).collect();
        let said = in_order(flood);
        assert_eq!(said.len(), PROBLEMS_MAX);
        assert_eq!(said[0].position.line, 1);
        assert_eq!(said[PROBLEMS_MAX - 1].what, "137 more problems from here on are not shown");
        assert_eq!(said[PROBLEMS_MAX - 1].position.line, 64);
    }
}
