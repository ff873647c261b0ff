//! Tests of the graph file as a whole: texts in, graphs, problems, texts and drawings out.

mod descriptions;
mod drawings;
mod files;
mod law;
mod misfits;
mod mistakes;
mod pictures;
mod rubbish;
mod strategies;
mod together;

use super::*;

/// What is wrong with a text, one line each: of the text itself, else of its graph. (What is said of both at once is in
/// `together`.)
fn problems(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => lines(load(text, &descriptions::catalogue())),
        Err(problems) => lines(Err(problems)),
    }
}

fn lines(read: Result<Graph, Vec<Problem>>) -> Vec<String> {
    read.err().unwrap_or_default().iter().map(|problem| problem.to_string()).collect()
}

/// Asserts that these and no other problems are said about a text.
#[track_caller]
fn says(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "about\n{text}");
}
