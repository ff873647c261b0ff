//! The words of one line of a script, each with its place, and one way to say what is wrong with a word. Options between
//! `<` and `>` are one word.

use std::time::Duration;
use xylem_graph::file::{Position, Problem};

/// The longest span in a script: a day.
const SPAN_MAX: Duration = Duration::from_secs(24 * 3600);

/// A word and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub position: Position,
}

/// The words of a line that were not read yet.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    end: Position,
}

impl<'a> Words<'a> {
    /// The words of `text`, whose first character is the `column`th of the line; a comment behind `#` is none.
    pub fn of(text: &'a str, line: u32, column: u32) -> Words<'a> {
        let text = text.split('#').next().unwrap_or_default();
        let at = |offset: usize| {
            // A script is far shorter than 2^32 characters.
            let characters = text[..offset].chars().count() as u32;
            Position { line, column: column + characters }
        };
        let mut words = Vec::new();
        let mut from = 0;
        while let Some(skipped) = text[from..].find(|character: char| !character.is_whitespace()) {
            let begin = from + skipped;
            let rest = &text[begin..];
            let is_options = rest.starts_with('<') && !rest[1..].starts_with(|next: char| next.is_whitespace());
            let length = match is_options && rest.len() > 1 {
                true => rest.find('>').map_or(rest.len(), |end| end + 1),
                false => rest.find(char::is_whitespace).unwrap_or(rest.len()),
            };
            words.push(Word { text: &rest[..length], position: at(begin) });
            from = begin + length;
        }
        Words { words, next: 0, end: at(text.trim_end().len()) }
    }

    /// The next word, not taken.
    pub fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    /// Takes the next word.
    pub fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub fn take_if(&mut self, text: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.text == text);
        self.next += usize::from(is);
        is
    }

    /// Takes the next word, which must be there.
    ///
    /// # Errors
    /// What was expected is missing.
    pub fn need(&mut self, expected: &str) -> Result<Word<'a>, Problem> {
        self.take().ok_or_else(|| Problem::new(self.end, "the line ends here", expected, "add it"))
    }

    /// Takes a word and reads it.
    ///
    /// # Errors
    /// It is missing, or not what was expected.
    pub fn read<T>(&mut self, expected: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Problem> {
        let word = self.need(expected)?;
        read(word.text).ok_or_else(|| word.wrong(expected))
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// Something is.
    pub fn finish(&self) -> Result<(), Problem> {
        match self.peek() {
            None => Ok(()),
            Some(word) => {
                let what = format!("`{}` is too much", word.text);
                Err(Problem::new(word.position, what, "the end of the line", "take it out"))
            }
        }
    }
}

impl Word<'_> {
    /// It is not what was expected.
    pub fn wrong(&self, expected: &str) -> Problem {
        Problem::new(self.position, format!("`{}` is not understood", self.text), expected, "correct it")
    }
}

/// What a span of time looks like.
pub(super) const SPAN: &str = "a time such as 500us, 200ms or 3s";

/// Reads a span of time.
pub(super) fn span(text: &str) -> Option<Duration> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let span = match unit {
        "us" => Duration::from_micros(number),
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "min" => Duration::from_secs(number.checked_mul(60)?),
        "" if number == 0 => Duration::ZERO,
        _ => return None,
    };
    (span <= SPAN_MAX).then_some(span)
}

/// Reads a whole number without a sign.
pub(super) fn whole<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Reads a whole number that may be negative, as far as sequence numbers go.
pub(super) fn signed(text: &str) -> Option<i64> {
    let number: i64 = match text.strip_prefix('-') {
        Some(digits) => -whole::<i64>(digits)?,
        None => whole(text)?,
    };
    (number.unsigned_abs() <= u64::from(u32::MAX)).then_some(number)
}

/// Reads bytes written as pairs of hexadecimal digits.
pub(super) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_one_word_and_directions_are_words_too() {
        let words = Words::of("+1s < S 0 <mss 1460, nop> # why <so>", 3, 1);
        let texts: Vec<&str> = words.words.iter().map(|word| word.text).collect();
        assert_eq!(texts, ["+1s", "<", "S", "0", "<mss 1460, nop>"]);
        assert_eq!(words.words[4].position, Position { line: 3, column: 11 });
    }

    #[test]
    fn spans_and_numbers() {
        assert_eq!(span("200ms"), Some(Duration::from_millis(200)));
        assert_eq!((span("0"), span("5"), span("25h"), span("99999999s")), (Some(Duration::ZERO), None, None, None));
        assert_eq!((signed("-3"), signed("4294967296"), signed("--1")), (Some(-3), None, None));
        assert_eq!((hexadecimal("00fF"), hexadecimal("0"), hexadecimal("0g")), (Some(vec![0, 255]), None, None));
    }
}
