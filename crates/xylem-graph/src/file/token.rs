//! The words and marks of a graph file, each with its place.
//!
//! The whole text becomes tokens in one pass; what is no token is said as a problem at once and stands in the list as `Bad`,
//! so that the parser does not complain a second time. Any text is accepted here, however odd.

use super::problem::{Position, Problem};
use super::value::VALUE_BYTES_MAX;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// Letters, digits and what may stand inside names, numbers and addresses.
    Word(&'a str),
    /// A text that was in quotes, its escapes resolved.
    Text(String),
    Equals,
    Comma,
    Colon,
    Open,
    Close,
    LineEnd,
    /// The end of the text; always the last token, and there only.
    End,
    /// Something that a problem was already said about.
    Bad,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub position: Position,
}

impl Kind<'_> {
    /// The token in words, for the `what` of a message.
    pub fn described(&self) -> String {
        match self {
            Kind::Word(word) => format!("`{}`", shortened(word)),
            Kind::Text(text) => format!("the text \"{}\"", shortened(&text.escape_debug().to_string())),
            Kind::Equals => "`=`".to_owned(),
            Kind::Comma => "`,`".to_owned(),
            Kind::Colon => "`:`".to_owned(),
            Kind::Open => "`{`".to_owned(),
            Kind::Close => "`}`".to_owned(),
            Kind::LineEnd => "the end of the line".to_owned(),
            Kind::End => "the end of the file".to_owned(),
            Kind::Bad => "something unreadable".to_owned(),
        }
    }
}

/// The beginning of a word that may be as long as the file.
pub(super) fn shortened(word: &str) -> String {
    const SHOWN_MAX: usize = 40;
    match word.char_indices().nth(SHOWN_MAX) {
        None => word.to_owned(),
        Some((end, _)) => format!("{}…", &word[..end]),
    }
}

/// True for the characters that words are made of; more than names allow, so that a message can show the whole word.
fn in_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '/' | '+')
}

/// Cuts a text into tokens, the last of which is `End`, and says what is no token.
pub(super) fn tokens(text: &str) -> (Vec<Token<'_>>, Vec<Problem>) {
    let mut lexer = Lexer { rest: text, line: 1, column: 1, tokens: Vec::new(), problems: Vec::new() };
    while let Some(character) = lexer.peek() {
        lexer.token(character);
    }
    lexer.emit(Kind::End, lexer.here());
    (lexer.tokens, lexer.problems)
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
    tokens: Vec<Token<'a>>,
    problems: Vec<Problem>,
}

impl<'a> Lexer<'a> {
    fn here(&self) -> Position {
        Position { line: self.line, column: self.column }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Steps over one character. A text is below 2^20 bytes, so the counters cannot overflow.
    fn step(&mut self, character: char) {
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }

    fn emit(&mut self, kind: Kind<'a>, position: Position) {
        self.tokens.push(Token { kind, position });
    }

    fn token(&mut self, character: char) {
        let position = self.here();
        let mark = match character {
            '\n' => Some(Kind::LineEnd),
            '=' => Some(Kind::Equals),
            ',' => Some(Kind::Comma),
            ':' => Some(Kind::Colon),
            '{' => Some(Kind::Open),
            '}' => Some(Kind::Close),
            _ => None,
        };
        if let Some(kind) = mark {
            self.step(character);
            return self.emit(kind, position);
        }
        match character {
            '#' => self.skip_while(|c| c != '\n'),
            '"' => self.text(position),
            // A byte order mark at the start of a file is no more than a space.
            c if c.is_whitespace() || c == '\u{feff}' => self.step(c),
            c if in_word(c) => self.word(position),
            other => self.stranger(other, position),
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while let Some(character) = self.peek().filter(|c| wanted(*c)) {
            self.step(character);
        }
    }

    fn word(&mut self, position: Position) {
        let whole = self.rest;
        self.skip_while(in_word);
        let length = whole.len() - self.rest.len();
        self.emit(Kind::Word(&whole[..length]), position);
    }

    /// A run of characters that mean nothing is one problem.
    fn stranger(&mut self, character: char, position: Position) {
        self.skip_while(|c| !in_word(c) && !c.is_whitespace() && !"=,:{}#\"".contains(c));
        self.problems.push(Problem::new(
            position,
            format!("`{}` means nothing outside quotes", character.escape_debug()),
            "a word, a number, a text in quotes, or one of `=` `,` `:` `{` `}` `#`",
            "remove it, or put the text it belongs to in quotes",
        ));
        self.emit(Kind::Bad, position);
    }

    /// A text in quotes. It ends on its line; a wrong escape is said and the rest of the text still read.
    fn text(&mut self, position: Position) {
        self.step('"');
        let mut text = String::new();
        let mut good = true;
        loop {
            let place = self.here();
            match self.peek() {
                None | Some('\n') => {
                    self.problems.push(Problem::new(
                        position,
                        "the text that begins here has no end on its line",
                        "a closing `\"`",
                        "write `\"` at its end, and `\\n` for a line end inside it",
                    ));
                    return self.emit(Kind::Bad, position);
                }
                Some('"') => {
                    self.step('"');
                    break;
                }
                Some('\\') => match self.escape() {
                    Some(character) => text.push(character),
                    None => good &= self.wrong_escape(place),
                },
                Some(character) => {
                    self.step(character);
                    text.push(character);
                }
            }
        }
        if text.len() > VALUE_BYTES_MAX {
            let what = format!("the text that begins here has {} bytes", text.len());
            let expected = format!("at most {VALUE_BYTES_MAX} bytes");
            self.problems.push(Problem::new(position, what, expected, "shorten it"));
            good = false;
        }
        self.emit(if good { Kind::Text(text) } else { Kind::Bad }, position);
    }

    fn wrong_escape(&mut self, position: Position) -> bool {
        self.problems.push(Problem::new(
            position,
            "this `\\` does not begin a known escape",
            "`\\\"`, `\\\\`, `\\n`, `\\t`, `\\r` or `\\u{…}` with one to six hexadecimal digits",
            "write `\\\\` for the character itself",
        ));
        false
    }

    /// The character an escape stands for. Of a wrong escape only the backslash and the letter after it are stepped over.
    fn escape(&mut self) -> Option<char> {
        self.step('\\');
        let letter = self.peek().filter(|c| *c != '\n')?;
        self.step(letter);
        match letter {
            '"' | '\\' => Some(letter),
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'u' => {
                let (digits, _) = self.rest.strip_prefix('{')?.split_once('}')?;
                if digits.is_empty() || digits.len() > 6 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                for part in "{".chars().chain(digits.chars()).chain("}".chars()) {
                    self.step(part);
                }
                Some(character)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        tokens(text).0.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn words_and_marks_are_told_apart() {
        use Kind::*;
        let word = Word;
        assert_eq!(
            kinds("ip=ipv4 over a,b{x=\"#\\u{41}\"} # c\n"),
            [
                word("ip"),
                Equals,
                word("ipv4"),
                word("over"),
                word("a"),
                Comma,
                word("b"),
                Open,
                word("x"),
                Equals,
                Text("#A".into()),
                Close,
                LineEnd,
                End
            ]
        );
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        let (found, problems) = tokens("\u{feff}ü\u{a0}=\r\n  ö");
        let places: Vec<_> = found.iter().map(|t| (t.position.line, t.position.column)).collect();
        assert_eq!(places, [(1, 2), (1, 4), (1, 6), (2, 3), (2, 4)]);
        assert!(problems.is_empty());
    }
}
