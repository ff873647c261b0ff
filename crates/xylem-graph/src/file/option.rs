//! The options of a protocol, described as data: name, kind, presence, default and a summary.
//!
//! The check reads a file's values by these descriptions, the documentation lists them, and [`Settings`](super::Settings)
//! hands the values to the protocol. Nothing here knows any particular protocol.

use std::net::IpAddr;
use std::time::Duration;

use super::value::{Value, duration_text, size_text};

/// One option of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct OptionDescription {
    /// What the file writes to the left of `=`.
    pub name: &'static str,
    /// What the value must be.
    pub kind: OptionKind,
    /// Whether it must be said, may be said, or has a default.
    pub presence: Presence,
    /// One line for people, with the unit where there is one.
    pub summary: &'static str,
}

/// What an option's value must be.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// Any text.
    Text,
    /// A whole number without a unit, both limits included.
    Integer {
        /// The least that is accepted.
        min: i64,
        /// The most that is accepted.
        max: i64,
    },
    /// A duration, both limits included.
    Duration {
        /// The least that is accepted.
        min: Duration,
        /// The most that is accepted.
        max: Duration,
    },
    /// `true` or `false`.
    Bool,
    /// An IPv4 or IPv6 address.
    Address,
    /// An IPv4 or IPv6 address with a prefix length.
    Cidr,
    /// A 48-bit hardware address as six hexadecimal pairs with colons.
    Hardware,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number of bytes, both limits included.
    Size {
        /// The least that is accepted, in bytes.
        min: u64,
        /// The most that is accepted, in bytes.
        max: u64,
    },
    /// A text of several values of one kind, separated by commas: `"10.0.1.1/24, 10.0.2.1/24"`.
    List(&'static OptionKind),
    /// A text that a protocol of its own mind reads itself.
    Custom {
        /// What it is, for messages: `a route such as "10.1.0.0/16 via 10.0.0.9"`.
        expected: &'static str,
        /// Whether a text is one. Must not panic on any text.
        accepts: fn(&str) -> bool,
    },
}

/// Whether an option must be said.
#[derive(Clone, Copy, Debug)]
pub enum Presence {
    /// A node without it is refused.
    Required,
    /// It may be missing, and the protocol then does without.
    Optional,
    /// It may be missing, and then has this value.
    Default(DefaultValue),
}

/// A [`Value`] that can stand in a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// A text.
    Text(&'static str),
    /// A whole number.
    Integer(i64),
    /// A truth value.
    Bool(bool),
    /// A duration.
    Duration(Duration),
    /// A number of bytes.
    Size(u64),
}

impl DefaultValue {
    /// The same value, owned.
    pub fn value(self) -> Value {
        match self {
            DefaultValue::Text(text) => Value::Text(text.to_owned()),
            DefaultValue::Integer(number) => Value::Integer(number),
            DefaultValue::Bool(truth) => Value::Bool(truth),
            DefaultValue::Duration(duration) => Value::Duration(duration),
            DefaultValue::Size(bytes) => Value::Size(bytes),
        }
    }
}

/// How a value fails an option's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It is of another kind.
    Kind,
    /// It is of the kind, but beyond its limits.
    Range,
}

impl OptionKind {
    /// Whether a value is of this kind and within its limits.
    ///
    /// # Errors
    ///
    /// [`Misfit`] says which of the two it is not; [`OptionKind::expected`] says what would be.
    pub fn accepts(&self, value: &Value) -> Result<(), Misfit> {
        let text = |fits: &dyn Fn(&str) -> bool| of_kind(value.text().is_some_and(fits));
        match self {
            OptionKind::Text => of_kind(value.text().is_some()),
            OptionKind::Integer { min, max } => within(value.integer(), min, max),
            OptionKind::Duration { min, max } => within(value.duration(), min, max),
            OptionKind::Bool => of_kind(value.bool().is_some()),
            OptionKind::Address => text(&|text| address(text).is_some()),
            OptionKind::Cidr => text(&|text| cidr(text).is_some()),
            OptionKind::Hardware => text(&|text| hardware(text).is_some()),
            OptionKind::Choice(words) => text(&|text| words.contains(&text)),
            OptionKind::Size { min, max } => within(value.size(), min, max),
            OptionKind::List(each) => list(value, each),
            OptionKind::Custom { accepts, .. } => text(&|text| accepts(text)),
        }
    }

    /// What a value of this kind looks like, for messages and documentation.
    pub fn expected(&self) -> String {
        match self {
            OptionKind::Text => "a text in quotes".to_owned(),
            OptionKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            OptionKind::Duration { min, max } => {
                format!("a duration from {} to {}", duration_text(*min), duration_text(*max))
            }
            OptionKind::Bool => "true or false".to_owned(),
            OptionKind::Address => "an address such as \"10.0.0.1\"".to_owned(),
            OptionKind::Cidr => "an address with its prefix length such as \"10.0.0.2/24\"".to_owned(),
            OptionKind::Hardware => "a hardware address such as \"02:00:00:00:00:01\"".to_owned(),
            OptionKind::Choice(words) => super::nearest::one_of(words.iter().copied()),
            OptionKind::Size { min, max } => {
                format!("a size from {} to {}", size_text(*min), size_text(*max))
            }
            OptionKind::List(each) => format!("a list with commas, each item {}", each.expected()),
            OptionKind::Custom { expected, .. } => (*expected).to_owned(),
        }
    }
}

fn of_kind(fits: bool) -> Result<(), Misfit> {
    if fits { Ok(()) } else { Err(Misfit::Kind) }
}

fn within<T: PartialOrd>(value: Option<T>, min: &T, max: &T) -> Result<(), Misfit> {
    let value = value.ok_or(Misfit::Kind)?;
    if value < *min || value > *max { Err(Misfit::Range) } else { Ok(()) }
}

/// An item of a list is judged as if it stood alone: in quotes, or as a bare word where that is a number.
fn list(value: &Value, each: &OptionKind) -> Result<(), Misfit> {
    let Some(text) = value.text() else {
        return each.accepts(value);
    };
    text.split(',').map(str::trim).try_for_each(|item| {
        let quoted = Value::Text(item.to_owned());
        let bare = Value::from_word(item).unwrap_or_else(|_| quoted.clone());
        each.accepts(&quoted).or_else(|_| each.accepts(&bare))
    })
}

/// Reads an IPv4 or IPv6 address.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// Reads an address and a prefix length that is not longer than the address.
pub(super) fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (host, length) = text.split_once('/')?;
    let host: IpAddr = host.parse().ok()?;
    // `parse` alone would let `+24` and `024` pass, and these would not print back.
    let canonical = length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit());
    let canonical = canonical && (length == "0" || !length.starts_with('0'));
    let length: u8 = if canonical { length.parse().ok()? } else { return None };
    let most = if host.is_ipv4() { 32 } else { 128 };
    (length <= most).then_some((host, length))
}

/// Reads six hexadecimal pairs with colons between them.
pub(super) fn hardware(text: &str) -> Option<[u8; 6]> {
    let mut pairs = text.split(':');
    let mut bytes = [0; 6];
    for byte in &mut bytes {
        let pair = pairs.next()?;
        if pair.len() != 2 || !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    pairs.next().is_none().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn kinds_accept_and_refuse() {
        let port = OptionKind::Integer { min: 1, max: 65535 };
        assert_eq!(port.accepts(&Value::Integer(65535)), Ok(()));
        assert_eq!(port.accepts(&Value::Integer(0)), Err(Misfit::Range));
        assert_eq!(port.accepts(&Value::Bool(true)), Err(Misfit::Kind));
        let life = OptionKind::Duration { min: Duration::from_secs(1), max: Duration::from_secs(60) };
        assert_eq!(life.accepts(&text("30s")), Ok(()));
        assert_eq!(life.accepts(&text("2min")), Err(Misfit::Range));
        assert_eq!(life.accepts(&Value::Integer(30)), Err(Misfit::Kind));
        let congestion = OptionKind::Choice(&["reno", "cubic"]);
        assert_eq!(congestion.accepts(&text("cubic")), Ok(()));
        assert_eq!(congestion.accepts(&text("bbr")), Err(Misfit::Kind));
        assert_eq!(congestion.expected(), "`reno` or `cubic`");
    }

    #[test]
    fn addresses_are_read_whole_or_not_at_all() {
        assert!(cidr("10.0.0.2/24").is_some() && cidr("fd00::1/64").is_some() && cidr("0.0.0.0/0").is_some());
        for wrong in ["10.0.0.2", "10.0.0.2/33", "10.0.0.2/+24", "10.0.0.2/024", "10.0.0/24", "/", "10.0.0.2/"] {
            assert_eq!(cidr(wrong), None, "{wrong}");
        }
        assert_eq!(hardware("02:00:00:00:00:0a"), Some([2, 0, 0, 0, 0, 10]));
        for wrong in ["02:00:00:00:00", "02:00:00:00:00:0a:00", "2:0:0:0:0:a", "+2:00:00:00:00:0a", ""] {
            assert_eq!(hardware(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_list_is_as_good_as_its_worst_item() {
        let list = OptionKind::List(&OptionKind::Cidr);
        assert_eq!(list.accepts(&text("10.0.1.1/24, 10.0.2.1/24")), Ok(()));
        assert_eq!(list.accepts(&text("10.0.1.1/24, 10.0.2.1")), Err(Misfit::Kind));
        let ports = OptionKind::List(&OptionKind::Integer { min: 1, max: 9 });
        assert_eq!(ports.accepts(&text("1, 9")), Ok(()));
        assert_eq!(ports.accepts(&text("1, 10")), Err(Misfit::Range));
        assert_eq!(ports.accepts(&Value::Integer(5)), Ok(()));
    }
}
