//! The options of one line, read by name and kind. Whoever reads a line asks for each option it knows; what nobody has
//! asked for is unknown, and the message then lists what is known.

use super::Extent;
use super::line::{Line, Written};
use std::net::IpAddr;
use std::time::Duration;
use xylem_graph::file::{Located, Position, Problem, Value};

/// The options of a line, and what is wrong with them so far.
pub(super) struct Fields<'a> {
    line: &'a Line,
    known: Vec<&'static str>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub fn new(line: &'a Line, problems: &'a mut Vec<Problem>) -> Fields<'a> {
        Fields { line, known: Vec::new(), problems }
    }

    /// An option as it is written.
    pub fn written(&mut self, name: &'static str) -> Option<&'a Located<Written>> {
        self.known.push(name);
        self.line.options.iter().find(|entry| **entry.name == *name).map(|entry| &entry.value)
    }

    /// A text or a word.
    pub fn text(&mut self, name: &'static str) -> Option<Located<String>> {
        self.written(name).map(|written| Located::at(written.position, written.text.clone()))
    }

    /// One of these words.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)], default: T) -> T {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let read = |text: &str| choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        self.read(name, &words.join(", "), read).unwrap_or(default)
    }

    pub fn span(&mut self, name: &'static str) -> Option<Duration> {
        self.read(name, SPAN, span)
    }

    /// A number of bytes, or an extent of them, of at most `most`.
    pub fn extent(&mut self, name: &'static str, most: u64, default: u64) -> Extent {
        let expected = format!("a size such as 64KiB, or 1B..64KiB to have it drawn, of at most {most} bytes");
        self.read(name, &expected, |text| extent(text, most)).unwrap_or(Extent::of(default))
    }

    /// A whole number between `least` and `most`.
    pub fn number(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let expected = format!("a whole number from {least} to {most}");
        self.read(name, &expected, |text| whole(text).filter(|number| (least..=most).contains(number)))
    }

    pub fn address(&mut self, name: &'static str) -> Option<IpAddr> {
        self.read(name, "an address such as 10.0.0.2", |text| text.parse().ok())
    }

    /// Says which options nobody has asked for.
    pub fn finish(self) {
        let unknown = self.line.options.iter().filter(|entry| !self.known.contains(&entry.name.as_str()));
        for entry in unknown {
            let expected = match self.known.is_empty() {
                true => "no options".to_owned(),
                false => self.known.join(", "),
            };
            let what = format!("`{}` is no option of `{}`", *entry.name, self.line.words[0].as_str());
            self.problems.push(Problem::new(entry.name.position, what, expected, "take it out or correct it"));
        }
    }

    /// Says that something is wrong.
    pub fn wrong(&mut self, position: Position, what: String, expected: &str, mend: &str) {
        self.problems.push(Problem::new(position, what, expected, mend));
    }

    fn read<T>(&mut self, name: &'static str, expected: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let written = self.written(name)?;
        let value = read(&written.text);
        if value.is_none() {
            let what = format!("`{name}` is `{}`", written.text);
            self.problems.push(Problem::new(written.position, what, expected, format!("correct `{name}`")));
        }
        value
    }
}

/// What a span of time looks like.
pub(super) const SPAN: &str = "a time such as 500ms, 30s or 2min";

/// Reads a span of time as graph files write it.
pub(super) fn span(text: &str) -> Option<Duration> {
    Value::Text(text.to_owned()).duration().filter(|span| *span <= SPAN_MAX)
}

/// The longest span in a scenario: a year. Sums of a few stay far below what virtual time can hold (584 years).
const SPAN_MAX: Duration = Duration::from_secs(366 * 86_400);

pub(super) fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn size(text: &str) -> Option<u64> {
    whole(text).or_else(|| Value::Text(text.to_owned()).size())
}

fn extent(text: &str, most: u64) -> Option<Extent> {
    let extent = match text.split_once("..") {
        Some((least, most)) => Extent { least: size(least)?, most: size(most)? },
        None => Extent::of(size(text)?),
    };
    (extent.least <= extent.most && extent.most <= most).then_some(extent)
}

/// The value of a graph's option as a scenario writes it: numbers, truths and texts; the option's own kind reads spans and
/// sizes out of a text.
pub(super) fn graph_value(written: &Written) -> Value {
    let number = || written.text.parse::<i64>().ok().map(Value::Integer);
    match written.text.as_str() {
        _ if written.quoted => Value::Text(written.text.clone()),
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => number().unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_extents() {
        assert_eq!(extent("64KiB", 1 << 20), Some(Extent::of(65_536)));
        assert_eq!(extent("100", 100), Some(Extent::of(100)));
        assert_eq!(extent("1B..2kB", 1 << 20), Some(Extent { least: 1, most: 2000 }));
        for wrong in ["2..1", "101", "..", "1..", "-1", "1.5kB", "1..2..3", "many"] {
            assert_eq!(extent(wrong, 100), None, "{wrong}");
        }
    }

    #[test]
    fn a_value_in_quotes_is_a_text() {
        let value = |text: &str, quoted| graph_value(&Written { text: text.to_owned(), quoted });
        assert_eq!(value("5", false), Value::Integer(5));
        assert_eq!(value("5", true), Value::Text("5".into()));
        assert_eq!(value("true", false), Value::Bool(true));
        assert_eq!(value("2s", false).duration(), Some(Duration::from_secs(2)));
    }
}
