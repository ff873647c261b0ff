//! From the text of a graph file to a graph, or to everything that is wrong with the text.
//!
//! One line is read at a time; after a mistake reading goes on at the next line (inside braces at the next option), so that
//! all mistakes are said at once. The parser knows the grammar only; what the names mean is the check's business.

use super::choice::{Data, Demux, Device, DeviceName, Placement};
use super::graph::{Graph, LOWERS_MAX, Located, Lower, NODES_MAX, Node, OPTIONS_MAX, Place, Setting};
use super::name::{NAME_BYTES_MAX, Name, NameError};
use super::nearest::{nearest, one_of};
use super::problem::{PROBLEMS_MAX, Position, Problem, in_order};
use super::token::{Kind, Token, shortened, tokens};
use super::value::{UNITS, Value, WordFault};

/// The longest graph file, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Reads a graph.
///
/// # Errors
///
/// Everything that is wrong with the text, in the order of the text.
pub fn parse(text: &str) -> Result<Graph, Vec<Problem>> {
    let read = read(text);
    if read.problems.is_empty() { Ok(read.graph) } else { Err(in_order(read.problems)) }
}

/// What could be read of a text, right or not.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// All that could be read; the whole graph if there are no problems.
    pub graph: Graph,
    /// What is wrong with the text, in no order.
    pub problems: Vec<Problem>,
    /// The nodes, by index, of which only a part could be read.
    pub damaged: Vec<usize>,
    /// A line was lost with the name it may have given to a node.
    pub lost_a_name: bool,
}

/// Reads as much of a graph as there is.
pub(super) fn read(text: &str) -> Reading {
    if text.len() > TEXT_BYTES_MAX {
        let problem = Problem::new(
            Position { line: 1, column: 1 },
            format!("the file has {} bytes", text.len()),
            format!("at most {TEXT_BYTES_MAX} bytes"),
            "split the graph",
        );
        return Reading { problems: vec![problem], lost_a_name: true, ..Reading::default() };
    }
    let (tokens, problems) = tokens(text);
    // A character that is no token is stepped over, and nobody knows what it was part of.
    let lost_a_name = !problems.is_empty();
    let graph = Graph::default();
    let mut parser = Parser { tokens, next: 0, problems, graph, said: Vec::new(), damaged: Vec::new(), lost_a_name };
    parser.file();
    let Parser { graph, problems, damaged, lost_a_name, .. } = parser;
    Reading { graph, problems, damaged, lost_a_name }
}

/// A line or an option could not be read; the problem is already said.
struct Unreadable;
type Read<T> = Result<T, Unreadable>;

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    problems: Vec<Problem>,
    graph: Graph,
    /// The choices that were already said.
    said: Vec<&'static str>,
    /// See [`Reading`].
    damaged: Vec<usize>,
    lost_a_name: bool,
}

impl<'a> Parser<'a> {
    fn file(&mut self) {
        // Whoever has this many mistakes mends the first ones first; the lists must not grow with the file.
        while *self.peek() != Kind::End && self.problems.len() <= 2 * PROBLEMS_MAX {
            if *self.peek() == Kind::LineEnd {
                self.next += 1;
            } else if self.line().and_then(|()| self.line_end()).is_err() {
                self.skip_line();
            }
        }
    }

    fn line(&mut self) -> Read<()> {
        let first = match self.peek() {
            Kind::Word(word) => *word,
            _ => {
                self.lost_a_name = true;
                return Err(self.unexpected("a name, `place`, `demux`, `data` or `device`", "begin the line with one"));
            }
        };
        let names_node = *self.peek_after(1) == Kind::Equals;
        match first {
            "place" if !names_node => self.place_line(),
            "demux" | "data" | "device" => self.choice_line(),
            _ => self.node_line(),
        }
    }

    /// `name = protocol over lower, lower { … }`, where all but the protocol may be missing.
    fn node_line(&mut self) -> Read<()> {
        let problems = self.problems.len();
        let (name, protocol) = self.node_names().inspect_err(|_| self.lost_a_name = true)?;
        let mut node = Node { name, protocol, lowers: Vec::new(), options: Vec::new() };
        let read = self.node_rest(&mut node);
        if self.graph.nodes.len() >= NODES_MAX {
            self.say_limit(node.name.position, "nodes", NODES_MAX);
            return Err(Unreadable);
        }
        if self.problems.len() > problems {
            self.damaged.push(self.graph.nodes.len());
        }
        self.graph.nodes.push(node);
        read
    }

    fn node_names(&mut self) -> Read<(Located<Name>, Located<Name>)> {
        let first = self.name("a node or protocol")?;
        let (name, protocol) =
            if self.take(&Kind::Equals) { (first, self.name("a protocol")?) } else { (first.clone(), first) };
        if super::is_reserved(&name.value) {
            self.problems.push(reserved(&name));
        }
        Ok((name, protocol))
    }

    /// What follows a node's names: its lowers and options, as many as can be read.
    fn node_rest(&mut self, node: &mut Node) -> Read<()> {
        if *self.peek() == Kind::Word("over") {
            self.next += 1;
            self.lowers(&mut node.lowers)?;
        } else if let Kind::Word(word) = *self.peek() {
            let mend = match nearest(word, ["over"]) {
                Some(_) => "write `over`".to_owned(),
                None => format!("write `over {}`", shortened(word)),
            };
            return Err(self.unexpected("`over`, `{` or the end of the line", &mend));
        }
        if *self.peek() == Kind::Open {
            node.options = self.options();
        }
        Ok(())
    }

    fn lowers(&mut self, lowers: &mut Vec<Located<Lower>>) -> Read<()> {
        loop {
            let name = self.name("a lower node or a device")?;
            let lower = match DeviceName::from_word(&name.value) {
                Some(device) => Lower::Device(device),
                None => Lower::Node(name.value),
            };
            if lowers.len() >= LOWERS_MAX {
                self.say_limit(name.position, "lowers of one node", LOWERS_MAX);
                return Err(Unreadable);
            }
            lowers.push(Located::at(name.position, lower));
            if self.take(&Kind::Comma) {
                continue;
            }
            if let Kind::Word(_) = self.peek() {
                return Err(self.unexpected("`,`, `{` or the end of the line", "write `,` between lowers"));
            }
            return Ok(());
        }
    }

    /// `{ option = value, … }`; a line end separates like a comma. Mistakes inside are said and stepped over here.
    fn options(&mut self) -> Vec<Setting> {
        let (opened, first) = (self.position(), self.next);
        self.next += 1;
        let mut options: Vec<Setting> = Vec::new();
        loop {
            match self.peek() {
                Kind::Close => {
                    self.next += 1;
                    return options;
                }
                Kind::Comma if !options.is_empty() && *self.peek_before() != Kind::Comma => self.next += 1,
                Kind::LineEnd if !self.node_begins(self.next + 1) => self.next += 1,
                Kind::LineEnd | Kind::End => {
                    // A text without an end takes the `}` behind it along; that was said already.
                    if self.tokens[first..self.next].iter().all(|token| token.kind != Kind::Bad) {
                        let mend = "write `}` after the last option";
                        self.problems.push(Problem::new(
                            opened,
                            "the options that begin here have no end",
                            "`}`",
                            mend,
                        ));
                    }
                    return options;
                }
                _ => match self.setting() {
                    Ok(setting) if options.len() < OPTIONS_MAX => options.push(setting),
                    Ok(setting) => self.say_limit(setting.name.position, "options of one node", OPTIONS_MAX),
                    Err(Unreadable) => self.skip_option(),
                },
            }
        }
    }

    /// `option = value` and a look at what separates it from the next one.
    fn setting(&mut self) -> Read<Setting> {
        let name = self.name("an option")?;
        if !self.take(&Kind::Equals) {
            return Err(self.unexpected("`=` and a value", &format!("write `{} = …`", name.value)));
        }
        let position = self.position();
        let value = self.value(&name.value)?;
        match self.peek() {
            Kind::Comma | Kind::LineEnd | Kind::Close | Kind::End => {}
            Kind::Word(_) if *self.peek_after(1) == Kind::Equals => {
                // The next option is whole, so both are read and only the comma is missed.
                let _ = self.unexpected("`,`, `}` or the end of the line", "write `,` between options");
            }
            _ => return Err(self.unexpected("`,`, `}` or the end of the line", "write `,` between options")),
        }
        Ok(Setting { name, value: Located::at(position, value) })
    }

    fn value(&mut self, option: &str) -> Read<Value> {
        let position = self.position();
        let value = match self.peek().clone() {
            Kind::Text(text) => Ok(Value::Text(text)),
            // Hardware and IPv6 addresses have colons, which end a word.
            Kind::Word(_) if *self.peek_after(1) == Kind::Colon => Err(WordFault::Quotes),
            Kind::Word(word) => Value::from_word(word),
            _ => {
                let expected = "a text in quotes, a word, a number, a duration or a size";
                return Err(self.unexpected(expected, &format!("give `{option}` a value, or remove it")));
            }
        };
        let found = match (self.peek(), self.peek_after(1)) {
            (Kind::Word(word), Kind::Colon) => format!("`{}:…`", shortened(word)),
            (other, _) => other.described(),
        };
        let fault = match value {
            Ok(value) => {
                self.next += 1;
                return Ok(value);
            }
            Err(fault) => fault,
        };
        let (what, expected, mend) = match fault {
            WordFault::Large => (
                format!("{found} does not fit"),
                "a number below 2^63, or below 2^64 with a unit".to_owned(),
                "lower it",
            ),
            WordFault::Fraction => {
                (format!("{found} has a fraction"), "a whole number".to_owned(), "use a smaller unit: 1500ms for 1.5 s")
            }
            WordFault::Unit(unit) => (
                format!("{found} has the unknown unit `{}`", shortened(&unit)),
                UNITS.to_owned(),
                if unit == "KB" { "write kB for 1000 bytes or KiB for 1024" } else { "use one of these units" },
            ),
            WordFault::Quotes => (
                format!("{found} is neither a number nor a plain word"),
                "a text in quotes".to_owned(),
                "put the whole value in quotes",
            ),
        };
        self.problems.push(Problem::new(position, what, expected, mend));
        Err(Unreadable)
    }

    /// `place app : name name`
    fn place_line(&mut self) -> Read<()> {
        self.next += 1;
        let placement = self.word_of(Placement::from_word, Placement::ALL.iter().map(|each| each.word()))?;
        if !self.take(&Kind::Colon) {
            return Err(self.unexpected("`:`", "write `place app : name name`"));
        }
        if matches!(self.peek(), Kind::LineEnd | Kind::End) {
            return Err(self.unexpected("the names of nodes", "name the nodes to place, or remove the line"));
        }
        while !matches!(self.peek(), Kind::LineEnd | Kind::End) {
            if *self.peek() == Kind::Comma {
                return Err(self.unexpected("the names of nodes", "write spaces, not `,`, between the names"));
            }
            let node = self.name("a node")?;
            if self.graph.places.len() >= NODES_MAX {
                self.say_limit(node.position, "placed nodes", NODES_MAX);
                return Err(Unreadable);
            }
            self.graph.places.push(Place { placement: placement.value, node });
        }
        Ok(())
    }

    /// `demux = …`, `data = …` and `device = …`, each at most once.
    fn choice_line(&mut self) -> Read<()> {
        let position = self.position();
        let choice = match self.peek() {
            Kind::Word("demux") => "demux",
            Kind::Word("data") => "data",
            _ => "device",
        };
        self.next += 1;
        if !self.take(&Kind::Equals) {
            let mend = format!("write `{choice} = …`; a node cannot be named `{choice}`");
            return Err(self.unexpected("`=`", &mend));
        }
        match choice {
            "demux" => self.graph.demux = self.word_of(Demux::from_word, Demux::ALL.iter().map(|each| each.word()))?,
            "data" => self.graph.data = self.word_of(Data::from_word, Data::ALL.iter().map(|each| each.word()))?,
            _ => {
                let words = ["auto"].into_iter().chain(Device::ALL.iter().map(|each| each.word()));
                self.graph.device = self.word_of(DeviceName::from_word, words)?;
            }
        }
        if self.said.contains(&choice) {
            let what = format!("`{choice}` is chosen a second time");
            self.problems.push(Problem::new(position, what, format!("one `{choice} = …` line"), "remove one of them"));
        }
        self.said.push(choice);
        Ok(())
    }

    /// One word of a closed set.
    fn word_of<T>(
        &mut self,
        read: impl Fn(&str) -> Option<T>,
        words: impl Iterator<Item = &'static str> + Clone,
    ) -> Read<Located<T>> {
        let position = self.position();
        let expected = one_of(words.clone());
        let Kind::Word(word) = *self.peek() else {
            return Err(self.unexpected(&expected, "write one of these"));
        };
        if let Some(value) = read(word) {
            self.next += 1;
            return Ok(Located::at(position, value));
        }
        let mend = nearest(word, words).map_or("write one of these".to_owned(), |near| format!("write `{near}`"));
        Err(self.unexpected(&expected, &mend))
    }

    /// A name, of what `of` says.
    fn name(&mut self, of: &str) -> Read<Located<Name>> {
        let position = self.position();
        let Kind::Word(word) = *self.peek() else {
            return Err(self.unexpected(&format!("the name of {of}"), "write the name"));
        };
        match Name::new(word) {
            Ok(name) => {
                self.next += 1;
                Ok(Located::at(position, name))
            }
            Err(error) => {
                let what = format!("`{}` cannot be the name of {of}", shortened(word));
                let (expected, mend) = match error {
                    NameError::Long(_) => (format!("at most {NAME_BYTES_MAX} characters"), "shorten it"),
                    _ => (NameError::EXPECTED.to_owned(), "rename it"),
                };
                self.problems.push(Problem::new(position, what, expected, mend));
                Err(Unreadable)
            }
        }
    }

    /// Nothing may follow a whole line.
    fn line_end(&mut self) -> Read<()> {
        match self.peek() {
            Kind::LineEnd | Kind::End => Ok(()),
            _ => Err(self.unexpected("the end of the line", "remove it, or begin a new line")),
        }
    }

    /// Says that the next token is not what should stand here, unless it was already said to be bad.
    fn unexpected(&mut self, expected: &str, mend: &str) -> Unreadable {
        let found = self.peek();
        if *found != Kind::Bad {
            let what = format!("found {}", found.described());
            let position = self.position();
            self.problems.push(Problem::new(position, what, expected, mend));
        }
        Unreadable
    }

    fn say_limit(&mut self, position: Position, of: &str, most: usize) {
        let problem =
            Problem::new(position, format!("more than {most} {of}"), format!("at most {most}"), "split the graph");
        self.problems.push(problem);
    }

    /// Steps over the rest of a line; options that open on it are stepped over whole, on however many lines they stand.
    fn skip_line(&mut self) {
        let mut inside = false;
        loop {
            match self.peek() {
                Kind::End => return,
                Kind::LineEnd if !inside || self.node_begins(self.next + 1) => return,
                Kind::Open => inside = true,
                Kind::Close => inside = false,
                _ => {}
            }
            self.next += 1;
        }
    }

    /// Steps over the rest of an option; at least one token, unless it is one that ends an option.
    fn skip_option(&mut self) {
        while !matches!(self.peek(), Kind::Comma | Kind::LineEnd | Kind::Close | Kind::End) {
            self.next += 1;
        }
        if *self.peek() == Kind::Comma {
            self.next += 1;
        }
    }

    /// True when the tokens from `at` on can only be a new node or `place` line, so that open braces were never closed.
    fn node_begins(&self, at: usize) -> bool {
        let kind = |offset: usize| self.tokens.get(at + offset).map(|token| &token.kind);
        let over = Some(&Kind::Word("over"));
        match (kind(0), kind(1)) {
            (Some(Kind::Word("place")), Some(Kind::Word(_))) => true,
            (Some(Kind::Word(_)), second) if second == over => true,
            (Some(Kind::Word(_)), Some(Kind::Equals)) => matches!(kind(2), Some(Kind::Word(_))) && kind(3) == over,
            _ => false,
        }
    }

    fn peek(&self) -> &Kind<'a> {
        self.peek_after(0)
    }

    /// The token so many after the next one; the last token is `End`, and stays so however far one looks.
    fn peek_after(&self, tokens: usize) -> &Kind<'a> {
        &self.tokens[(self.next + tokens).min(self.tokens.len() - 1)].kind
    }

    fn peek_before(&self) -> &Kind<'a> {
        &self.tokens[self.next.saturating_sub(1).min(self.tokens.len() - 1)].kind
    }

    fn position(&self) -> Position {
        self.tokens[self.next.min(self.tokens.len() - 1)].position
    }

    fn take(&mut self, kind: &Kind<'_>) -> bool {
        let taken = self.peek() == kind;
        self.next += usize::from(taken);
        taken
    }
}

/// The problem of a node whose name is a word of the language.
pub(super) fn reserved(name: &Located<Name>) -> Problem {
    Problem::new(
        name.position,
        format!("a node cannot be named `{}`, a word of the graph language", name.value),
        "any other name",
        format!("name it `{}0`", name.value),
    )
}
