//! What parse says of bytes that are no header. It is the peer's kind of wrong: whoever parses counts a drop and goes
//! on; nothing here allocates or panics. Each form says what was expected and what stood there.

use core::fmt;

/// Why bytes are not the header (or the option) that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// The bytes end before the fixed part does. Both counts are in bytes.
    Short {
        /// Bytes of the fixed part.
        expected: usize,
        /// Bytes that were there.
        got: usize,
    },
    /// A field that the declaration requires to be a constant holds something else.
    Value {
        /// The field's name in the declaration.
        field: &'static str,
        /// The constant that is required.
        expected: u64,
        /// What stood there.
        got: u64,
    },
    /// A length written inside the header is impossible. All counts are in bytes.
    Length {
        /// The least the length may be: the fixed part.
        minimum: usize,
        /// The most it may be: what is there.
        maximum: usize,
        /// The length as written.
        got: usize,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Malformed::Short { expected, got } => write!(out, "expected at least {expected} bytes, got {got}"),
            Malformed::Value { field, expected, got } => write!(out, "{field}: expected {expected}, got {got}"),
            // A fixed part longer than the bytes at hand leaves no length that would do.
            Malformed::Length { minimum, maximum, got } if minimum > maximum => {
                write!(out, "length: expected at least {minimum} bytes where {maximum} are left, got {got}")
            }
            Malformed::Length { minimum, maximum, got } => {
                write!(out, "length: expected {minimum} to {maximum} bytes, got {got}")
            }
        }
    }
}

impl core::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_says_expected_and_got() {
        let forms = [
            Malformed::Short { expected: 8, got: 7 },
            Malformed::Value { field: "version", expected: 4, got: 6 },
            Malformed::Length { minimum: 20, maximum: 40, got: 60 },
            Malformed::Length { minimum: 2, maximum: 1, got: 2 },
        ];
        for form in forms {
            let text = form.to_string();
            assert!(text.contains("expected") && text.contains("got"), "{text}");
        }
        assert_eq!(forms[1].to_string(), "version: expected 4, got 6");
    }
}
