//! Short words for describing options: what must be said, what may be, and what has a default. Everything is `const`, so
//! that a description is data in the program and not work at its start.

use std::time::Duration;
use xylem_graph::file::{DefaultValue, OptionDescription, OptionKind, Presence};

/// An option that every node must say.
pub(super) const fn required(name: &'static str, kind: OptionKind, summary: &'static str) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Required, summary }
}

/// An option that a node may leave out.
pub(super) const fn optional(name: &'static str, kind: OptionKind, summary: &'static str) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Optional, summary }
}

/// An option with a value for nodes that leave it out.
pub(super) const fn with_default(
    name: &'static str,
    kind: OptionKind,
    default: DefaultValue,
    summary: &'static str,
) -> OptionDescription {
    OptionDescription { name, kind, presence: Presence::Default(default), summary }
}

/// A truth value with its default.
pub(super) const fn truth(name: &'static str, default: bool, summary: &'static str) -> OptionDescription {
    with_default(name, OptionKind::Bool, DefaultValue::Bool(default), summary)
}

/// A whole number between `min` and `max`, both included, with its default.
pub(super) const fn number(
    name: &'static str,
    (min, max): (i64, i64),
    default: i64,
    summary: &'static str,
) -> OptionDescription {
    with_default(name, OptionKind::Integer { min, max }, DefaultValue::Integer(default), summary)
}

/// A duration between `min` and `max` milliseconds, both included, with its default in milliseconds.
pub(super) const fn milliseconds(
    name: &'static str,
    (min, max): (u64, u64),
    default: u64,
    summary: &'static str,
) -> OptionDescription {
    let kind = OptionKind::Duration { min: Duration::from_millis(min), max: Duration::from_millis(max) };
    with_default(name, kind, DefaultValue::Duration(Duration::from_millis(default)), summary)
}

/// A size between `min` and `max` bytes, both included, with its default in bytes.
pub(super) const fn bytes(
    name: &'static str,
    (min, max): (u64, u64),
    default: u64,
    summary: &'static str,
) -> OptionDescription {
    with_default(name, OptionKind::Size { min, max }, DefaultValue::Size(default), summary)
}
