//! The value of an option, and the words that stand for durations and sizes.
//!
//! A value is what the file says, not yet what an option means: `"30s"` in quotes is a text that a duration option reads as
//! thirty seconds. Every value has exactly one printed form, and that form reads back as the same value (law 6).

use std::fmt;
use std::time::Duration;

/// What a graph file writes to the right of an option's `=`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A text, printed in quotes; a plain word in the file is a text too.
    Text(String),
    /// A whole number without a unit.
    Integer(i64),
    /// `true` or `false`.
    Bool(bool),
    /// A whole number with `ns`, `us`, `ms`, `s`, `min` or `h`.
    Duration(Duration),
    /// A whole number of bytes with `B`, `kB`, `MB`, `GB` (powers of 1000) or `KiB`, `MiB`, `GiB` (powers of 1024).
    Size(u64),
}

/// The longest text of one value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4096;

/// The duration units in nanoseconds. Printing uses the first four only, so `1min` prints as `60s`.
const DURATION_UNITS: [(&str, u128); 6] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The size units in bytes. Printing uses the first four only. `KB` is missing on purpose: half the world reads 1024 there.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// The units a number may carry, for messages.
pub(super) const UNITS: &str = "ns, us, ms, s, min, h, B, kB, KiB, MB, MiB, GB or GiB";

/// Why a word without quotes is not a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordFault {
    /// The number does not fit.
    Large,
    /// A number with a fraction.
    Fraction,
    /// A number followed by an unknown unit.
    Unit(String),
    /// Neither a number nor a plain word.
    Quotes,
}

impl Value {
    /// The value a word without quotes stands for.
    pub(super) fn from_word(word: &str) -> Result<Value, WordFault> {
        match word {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            _ => {}
        }
        let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
        if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word, unsigned);
        }
        let plain = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if plain { Ok(Value::Text(word.to_owned())) } else { Err(WordFault::Quotes) }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if it is one without a unit.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The duration, written bare (`30s`) or in quotes (`"30s"`).
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Value::Duration(duration) => Some(*duration),
            Value::Text(text) => match Value::from_word(text) {
                Ok(Value::Duration(duration)) => Some(duration),
                _ => None,
            },
            _ => None,
        }
    }

    /// The size in bytes, written bare (`64KiB`), in quotes (`"64KiB"`) or as a plain number of bytes (`65536`).
    pub fn size(&self) -> Option<u64> {
        match self {
            Value::Size(bytes) => Some(*bytes),
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            Value::Text(text) => match Value::from_word(text) {
                Ok(Value::Size(bytes)) => Some(bytes),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Reads a word that starts like a number; `unsigned` is the word without its sign.
fn number(word: &str, unsigned: &str) -> Result<Value, WordFault> {
    if let Some(digits) = unsigned.strip_prefix("0x") {
        let plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
        if !plain || word != unsigned {
            return Err(WordFault::Quotes);
        }
        return i64::from_str_radix(digits, 16).map(Value::Integer).map_err(|_| WordFault::Large);
    }
    let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let (digits, unit) = unsigned.split_at(end);
    if unit.is_empty() {
        return word.parse().map(Value::Integer).map_err(|_| WordFault::Large);
    }
    if let Some(rest) = unit.strip_prefix('.') {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let fraction = after.len() < rest.len() && after.chars().all(|c| c.is_ascii_alphabetic());
        return Err(if fraction { WordFault::Fraction } else { WordFault::Quotes });
    }
    if !unit.chars().all(|c| c.is_ascii_alphabetic()) || word != unsigned {
        return Err(WordFault::Quotes);
    }
    if let Some((_, nanoseconds)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) {
        let total = digits.parse::<u128>().ok().and_then(|count| count.checked_mul(*nanoseconds));
        return total.and_then(from_nanoseconds).map(Value::Duration).ok_or(WordFault::Large);
    }
    if let Some((_, bytes)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
        let total = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(*bytes));
        return total.map(Value::Size).ok_or(WordFault::Large);
    }
    Err(WordFault::Unit(unit.to_owned()))
}

/// The duration of a count of nanoseconds, if it fits.
fn from_nanoseconds(total: u128) -> Option<Duration> {
    let seconds = u64::try_from(total / 1_000_000_000).ok()?;
    // The remainder is below 10^9, so it fits 32 bits.
    Some(Duration::new(seconds, (total % 1_000_000_000) as u32))
}

/// The one printed form of a duration: the largest of `s`, `ms`, `us`, `ns` that divides it.
pub(super) fn duration_text(duration: Duration) -> String {
    let total = duration.as_nanos();
    let divides = |unit: &&(&str, u128)| total.is_multiple_of(unit.1);
    // The fourth unit is one nanosecond, which divides everything.
    let (unit, nanoseconds) = DURATION_UNITS[..4].iter().find(divides).unwrap_or(&DURATION_UNITS[3]);
    format!("{}{unit}", total / nanoseconds)
}

/// The one printed form of a size: the largest of `GiB`, `MiB`, `KiB`, `B` that divides it.
pub(super) fn size_text(bytes: u64) -> String {
    if bytes == 0 {
        return "0B".to_owned();
    }
    let divides = |unit: &&(&str, u64)| bytes.is_multiple_of(unit.1);
    // The fourth unit is one byte, which divides everything.
    let (unit, each) = SIZE_UNITS[..4].iter().find(divides).unwrap_or(&SIZE_UNITS[3]);
    format!("{}{unit}", bytes / each)
}

/// As a graph file writes it; a text is quoted, and what could end its line or hide is escaped.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => quoted(text, f),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Duration(duration) => f.write_str(&duration_text(*duration)),
            Value::Size(bytes) => f.write_str(&size_text(*bytes)),
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            other if hides(other) => write!(f, "\\u{{{:x}}}", u32::from(other))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// Characters that a terminal would obey or not show: control characters, line separators, direction marks, the BOM.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_values() {
        let millisecond = Duration::from_millis(1);
        for (word, value) in [
            ("true", Value::Bool(true)),
            ("cubic", Value::Text("cubic".into())),
            ("-5", Value::Integer(-5)),
            ("0x0800", Value::Integer(2048)),
            ("9223372036854775807", Value::Integer(i64::MAX)),
            ("200ms", Value::Duration(200 * millisecond)),
            ("2min", Value::Duration(120_000 * millisecond)),
            ("64KiB", Value::Size(65536)),
            ("64kB", Value::Size(64000)),
        ] {
            assert_eq!(Value::from_word(word), Ok(value), "{word}");
        }
    }

    #[test]
    fn other_words_say_what_is_wrong_with_them() {
        for (word, fault) in [
            ("9223372036854775808", WordFault::Large),
            ("99999999999999999999GiB", WordFault::Large),
            ("18446744073709551616s", WordFault::Large),
            ("1.5s", WordFault::Fraction),
            ("64KB", WordFault::Unit("KB".into())),
            ("10.0.0.2/24", WordFault::Quotes),
            ("-5ms", WordFault::Quotes),
            ("0x", WordFault::Quotes),
            ("a.b", WordFault::Quotes),
            ("größe", WordFault::Quotes),
        ] {
            assert_eq!(Value::from_word(word), Err(fault), "{word}");
        }
    }

    #[test]
    fn the_largest_values_print_and_read_back() {
        for value in [
            Value::Duration(Duration::MAX),
            Value::Duration(Duration::ZERO),
            Value::Size(u64::MAX),
            Value::Size(0),
            Value::Integer(i64::MIN),
        ] {
            assert_eq!(Value::from_word(&value.to_string()), Ok(value));
        }
    }

    #[test]
    fn quoted_numbers_are_read_by_those_who_ask() {
        assert_eq!(Value::Text("30s".into()).duration(), Some(Duration::from_secs(30)));
        assert_eq!(Value::Text("64KiB".into()).size(), Some(65536));
        assert_eq!(Value::Integer(1500).size(), Some(1500));
        assert_eq!(Value::Integer(-1).size(), None);
        assert_eq!(Value::Integer(30).duration(), None);
    }
}
