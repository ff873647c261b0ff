//! The lines of a scenario file: `name = words { option = value, … }`, each part with its place. This is only the shape;
//! what the words mean is read in `read.rs`. Any text is accepted, however odd: what has no such shape is a problem.

use xylem_graph::file::{Located, Position, Problem};

/// The longest scenario, in bytes.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// One line, its options included wherever they end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// What stands before the `=`, if there is one.
    pub name: Option<Located<String>>,
    /// The words; at least one.
    pub words: Vec<Located<String>>,
    /// The options in their order.
    pub options: Vec<Entry>,
}

/// One `name = value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: Located<String>,
    pub value: Located<Written>,
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub text: String,
    /// It stood in quotes, so it is a text whatever it looks like.
    pub quoted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Word(Written),
    Equals,
    Comma,
    Open,
    Close,
    LineEnd,
}

/// Reads the lines of a text; what has no shape of a line is said and left out.
pub(super) fn lines(text: &str) -> (Vec<Line>, Vec<Problem>) {
    let mut problems = Vec::new();
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the scenario has {} bytes", text.len());
        problems.push(problem(
            Position { line: 1, column: 1 },
            what,
            &format!("at most {TEXT_BYTES_MAX}"),
            "shorten it",
        ));
        return (Vec::new(), problems);
    }
    let marks = marks(text, &mut problems);
    let mut reader = Reader { marks: &marks, problems };
    let mut lines = Vec::new();
    while !reader.marks.is_empty() {
        match reader.line() {
            Ok(line) => lines.extend(line),
            Err(problem) => {
                reader.problems.push(problem);
                reader.skip_line();
            }
        }
    }
    (lines, reader.problems)
}

fn problem(position: Position, what: impl Into<String>, expected: &str, mend: &str) -> Problem {
    Problem::new(position, what, expected, mend)
}

/// Cuts a text into marks; the last one ends the last line.
fn marks(text: &str, problems: &mut Vec<Problem>) -> Vec<(Mark, Position)> {
    let mut marks = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            // A text is shorter than 2^32 characters.
            let position = Position { line, column: at as u32 + 1 };
            let (mark, length) = match character {
                '#' => break,
                '=' => (Mark::Equals, 1),
                ',' => (Mark::Comma, 1),
                '{' => (Mark::Open, 1),
                '}' => (Mark::Close, 1),
                '"' => quoted(&characters[at..], position, problems),
                space if space.is_whitespace() || space == '\u{feff}' => {
                    at += 1;
                    continue;
                }
                _ => word(&characters[at..]),
            };
            marks.push((mark, position));
            at += length;
        }
        marks.push((Mark::LineEnd, Position { line, column: characters.len() as u32 + 1 }));
    }
    marks
}

fn word(characters: &[char]) -> (Mark, usize) {
    let ends = |character: &char| character.is_whitespace() || "=,{}\"#".contains(*character);
    let length = characters.iter().position(ends).unwrap_or(characters.len());
    (Mark::Word(Written { text: characters[..length].iter().collect(), quoted: false }), length)
}

/// A text in quotes; there are no escapes, since nothing a scenario says needs a quote inside.
fn quoted(characters: &[char], position: Position, problems: &mut Vec<Problem>) -> (Mark, usize) {
    let end = characters[1..].iter().position(|character| *character == '"');
    let Some(length) = end else {
        problems.push(problem(position, "a text has no end", "a closing quote on the same line", "add `\"`"));
        let text = characters[1..].iter().collect();
        return (Mark::Word(Written { text, quoted: true }), characters.len());
    };
    (Mark::Word(Written { text: characters[1..=length].iter().collect(), quoted: true }), length + 2)
}

struct Reader<'a> {
    marks: &'a [(Mark, Position)],
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn take(&mut self) -> Option<(Mark, Position)> {
        let (first, rest) = self.marks.split_first()?;
        self.marks = rest;
        Some(first.clone())
    }

    fn peek(&self) -> Option<&Mark> {
        self.marks.first().map(|(mark, _)| mark)
    }

    fn skip_line(&mut self) {
        while let Some((mark, _)) = self.take() {
            if mark == Mark::LineEnd {
                return;
            }
        }
    }

    /// One line; `None` for an empty one. On an error the rest of the line is still there.
    fn line(&mut self) -> Result<Option<Line>, Problem> {
        let mut line = Line { name: None, words: Vec::new(), options: Vec::new() };
        while let Some((mark, position)) = self.marks.first().cloned() {
            match mark {
                Mark::LineEnd => break,
                Mark::Word(written) => {
                    self.take();
                    line.words.push(Located::at(position, written.text));
                }
                Mark::Equals if line.name.is_none() && line.words.len() == 1 => {
                    self.take();
                    line.name = line.words.pop();
                }
                Mark::Open => {
                    self.take();
                    line.options = self.options(position)?;
                    break;
                }
                other => {
                    let expected = "`name = words { option = value }`";
                    return Err(problem(position, format!("{} stands here", said(&other)), expected, "take it out"));
                }
            }
        }
        // What is wrong is said before the end of the line is taken: the rest is skipped up to there.
        let is_empty = line.words.is_empty();
        match &line.name {
            Some(name) if is_empty => {
                let what = format!("`{}` is nothing", **name);
                let (expected, mend) = ("what it is, behind the `=`", "write, for example, `client = host`");
                return Err(problem(name.position, what, expected, mend));
            }
            None if is_empty && !line.options.is_empty() => {
                let position = line.options[0].name.position;
                return Err(problem(position, "options of nothing", "a word first", "say whose"));
            }
            Some(_) | None => self.end()?,
        }
        Ok((!is_empty).then_some(line))
    }

    /// After the closing brace nothing else stands on the line.
    fn end(&mut self) -> Result<(), Problem> {
        match self.take() {
            None | Some((Mark::LineEnd, _)) => Ok(()),
            Some((other, position)) => Err(problem(
                position,
                format!("{} follows `}}`", said(&other)),
                "the end of the line",
                "begin a new line",
            )),
        }
    }

    /// The options behind the `{` at `open`, up to and with `}`.
    fn options(&mut self, open: Position) -> Result<Vec<Entry>, Problem> {
        let mut options: Vec<Entry> = Vec::new();
        loop {
            while matches!(self.peek(), Some(Mark::Comma | Mark::LineEnd)) {
                self.take();
            }
            match self.take() {
                Some((Mark::Close, _)) => return Ok(options),
                Some((Mark::Word(name), position)) => {
                    let name = Located::at(position, name.text);
                    self.equals(&name)?;
                    let value = self.value(&name)?;
                    if let Some(before) = options.iter().find(|before| before.name == name) {
                        let what = format!("`{}` is said twice, first at line {}", *name, before.name.position.line);
                        self.problems.push(problem(name.position, what, "each option once", "take one out"));
                    }
                    options.push(Entry { name, value });
                }
                Some((other, position)) => {
                    let what = format!("{} stands here", said(&other));
                    return Err(problem(position, what, "`option = value` or `}`", "take it out"));
                }
                None => return Err(problem(open, "the options have no end", "`}`", "add `}`")),
            }
        }
    }

    fn equals(&mut self, name: &Located<String>) -> Result<(), Problem> {
        match self.peek() {
            Some(Mark::Equals) => {
                self.take();
                Ok(())
            }
            _ => Err(problem(
                name.position,
                format!("the option `{}` has no value", **name),
                "`option = value`",
                "write `=` and a value behind it",
            )),
        }
    }

    fn value(&mut self, name: &Located<String>) -> Result<Located<Written>, Problem> {
        match self.marks.first().cloned() {
            Some((Mark::Word(written), position)) => {
                self.take();
                Ok(Located::at(position, written))
            }
            _ => Err(problem(
                name.position,
                format!("the option `{}` has no value", **name),
                "a value behind the `=`",
                "write one",
            )),
        }
    }
}

fn said(mark: &Mark) -> &'static str {
    match mark {
        Mark::Word(_) => "a word",
        Mark::Equals => "`=`",
        Mark::Comma => "`,`",
        Mark::Open => "`{`",
        Mark::Close => "`}`",
        Mark::LineEnd => "the end of the line",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_about(text: &str) -> Vec<String> {
        lines(text).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_line_has_a_name_words_and_options_with_their_places() {
        let text = "# nothing\n\nc = link a -- b:left { loss = 1%,\n  note = \"x = {1}\" } # the end\ncheck quiet";
        let (lines, problems) = lines(text);
        assert_eq!(problems, []);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].name.as_ref().map(|name| name.as_str()), Some("c"));
        let words: Vec<&str> = lines[0].words.iter().map(|word| word.as_str()).collect();
        assert_eq!(words, ["link", "a", "--", "b:left"]);
        let note = &lines[0].options[1];
        assert_eq!((note.value.text.as_str(), note.value.quoted), ("x = {1}", true));
        assert_eq!(note.value.position, Position { line: 4, column: 10 });
        assert_eq!(lines[1].words[1].position, Position { line: 5, column: 7 });
    }

    #[test]
    fn what_has_no_such_shape_is_said_and_the_next_line_is_read() {
        let (lines, problems) = lines("= 3\na = host { b }\nc =\nd = host {} e\nseed = 4");
        assert_eq!(lines.last().map(|line| line.words[0].as_str()), Some("4"));
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert_eq!(
            said_about("a = host { b = 1, b = 2 }"),
            ["1:19: `b` is said twice, first at line 1; expected each option once; mend: take one out"]
        );
        assert_eq!(said_about("a = host { b = 1"), ["1:10: the options have no end; expected `}`; mend: add `}`"]);
        assert!(said_about("a = \"b")[0].starts_with("1:5: a text has no end"));
    }

    #[test]
    fn no_text_makes_the_reader_panic_or_go_on_for_ever() {
        let mut random = xylem_core::Random::seeded(3);
        let letters: Vec<char> = "a={}\",#\n \u{feff}é%-:".chars().collect();
        for _ in 0..5000 {
            let length = random.below(40);
            let text: String = (0..length).map(|_| letters[random.below(letters.len() as u64) as usize]).collect();
            let _ = lines(&text);
        }
    }
}
