//! The names a graph file may use for nodes, protocols and options.
//!
//! A name is checked once, when it is made; from then on it is a value that can always be printed and read back.
//! It is kept plain (ASCII, no spaces) so that it needs no quotes in a file, a log, a command line or a metric.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// The longest name, in bytes: two of them and an arrow fit a line of a terminal.
pub const NAME_BYTES_MAX: usize = 32;

/// A checked name: an ASCII letter or `_`, then letters, digits, `_` and `-`, at most [`NAME_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Checks `text` and keeps it.
    ///
    /// # Errors
    ///
    /// [`NameError`] when `text` is empty, too long, or has a character that a name cannot have.
    pub fn new(text: &str) -> Result<Name, NameError> {
        let mut characters = text.chars();
        let Some(first) = characters.next() else {
            return Err(NameError::Empty);
        };
        if !(first.is_ascii_alphabetic() || first == '_') {
            return Err(NameError::Start(first));
        }
        if let Some(other) = characters.find(|c| !(c.is_ascii_alphanumeric() || *c == '_' || *c == '-')) {
            return Err(NameError::Character(other));
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::Long(text.len()));
        }
        Ok(Name(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The text is empty.
    Empty,
    /// The text is longer than [`NAME_BYTES_MAX`]; its length in bytes.
    Long(usize),
    /// The text starts with this character, which is neither an ASCII letter nor `_`.
    Start(char),
    /// The text has this character, which is not an ASCII letter, a digit, `_` or `-`.
    Character(char),
}

impl NameError {
    /// What a name looks like, for the `expected` of a message.
    pub(super) const EXPECTED: &'static str = "an ASCII letter or `_`, then letters, digits, `_` or `-`";
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => write!(f, "a name is empty; expected {}", NameError::EXPECTED),
            NameError::Long(bytes) => {
                write!(f, "a name has {bytes} bytes; expected at most {NAME_BYTES_MAX}")
            }
            NameError::Start(found) => {
                write!(f, "a name starts with {found:?}; expected {}", NameError::EXPECTED)
            }
            NameError::Character(found) => {
                write!(f, "a name has {found:?}; expected {}", NameError::EXPECTED)
            }
        }
    }
}

impl std::error::Error for NameError {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_once() {
        assert_eq!(Name::new("link0").unwrap(), "link0");
        assert_eq!(Name::new("_request-reply_2").unwrap(), "_request-reply_2");
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert_eq!(Name::new("0link"), Err(NameError::Start('0')));
        assert_eq!(Name::new("lïnk"), Err(NameError::Character('ï')));
        assert_eq!(Name::new("a b"), Err(NameError::Character(' ')));
        assert_eq!(Name::new(&"n".repeat(NAME_BYTES_MAX)).unwrap().len(), NAME_BYTES_MAX);
        assert_eq!(Name::new(&"n".repeat(NAME_BYTES_MAX + 1)), Err(NameError::Long(NAME_BYTES_MAX + 1)));
    }
}
