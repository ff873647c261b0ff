//! What a node's options come to: what the file says, else the description's defaults.
//!
//! A protocol reads its options here when an instance is built. The graph has passed the check by then, so asking for an
//! option that is not described, or for a value of another kind, is a fault of the protocol and an assertion.

use std::net::IpAddr;
use std::time::Duration;

use super::description::Description;
use super::graph::Node;
use super::option::{Presence, address, cidr, hardware};
use super::value::Value;

/// The options of one node of a checked graph. Every question names a described option; `None` means that the file does not
/// say it and that it has no default.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    node: &'a Node,
    description: &'a Description,
}

impl<'a> Settings<'a> {
    /// The options of a node by its protocol's description.
    ///
    /// # Panics
    ///
    /// When the description is of another protocol.
    pub fn new(node: &'a Node, description: &'a Description) -> Settings<'a> {
        assert_eq!(&*node.protocol.value, description.name, "the description is of another protocol");
        Settings { node, description }
    }

    /// The value of an option, whatever its kind.
    ///
    /// # Panics
    ///
    /// When the option is not described, or its value is not of its kind (the graph was not checked).
    pub fn value(&self, option: &str) -> Option<Value> {
        let Some(described) = self.description.option(option) else {
            panic!("{} asks for its option `{option}`, which it does not describe", self.description.name);
        };
        let value = match self.node.option(option) {
            Some(said) => said.value.clone(),
            None => match described.presence {
                Presence::Default(default) => default.value(),
                Presence::Optional | Presence::Required => return None,
            },
        };
        assert!(described.kind.accepts(&value).is_ok(), "option `{option}` has {value}: the graph was not checked");
        Some(value)
    }

    /// A text, a choice, or what a protocol reads itself.
    pub fn text(&self, option: &str) -> Option<String> {
        self.read(option, "a text", |value| value.text().map(str::to_owned))
    }

    /// A whole number.
    pub fn integer(&self, option: &str) -> Option<i64> {
        self.read(option, "a whole number", Value::integer)
    }

    /// A truth value.
    pub fn bool(&self, option: &str) -> Option<bool> {
        self.read(option, "true or false", Value::bool)
    }

    /// A duration.
    pub fn duration(&self, option: &str) -> Option<Duration> {
        self.read(option, "a duration", Value::duration)
    }

    /// A number of bytes.
    pub fn size(&self, option: &str) -> Option<u64> {
        self.read(option, "a size", Value::size)
    }

    /// An IPv4 or IPv6 address.
    pub fn address(&self, option: &str) -> Option<IpAddr> {
        self.read(option, "an address", |value| value.text().and_then(address))
    }

    /// An address and its prefix length in bits.
    pub fn cidr(&self, option: &str) -> Option<(IpAddr, u8)> {
        self.read(option, "an address with a prefix length", |value| value.text().and_then(cidr))
    }

    /// A hardware address.
    pub fn hardware(&self, option: &str) -> Option<[u8; 6]> {
        self.read(option, "a hardware address", |value| value.text().and_then(hardware))
    }

    /// The items of a list, each without the spaces around it; a single value that is no text is a list of itself.
    pub fn list(&self, option: &str) -> Vec<String> {
        match self.value(option) {
            None => Vec::new(),
            Some(Value::Text(text)) => text.split(',').map(|item| item.trim().to_owned()).collect(),
            Some(other) => vec![other.to_string()],
        }
    }

    /// The items of a list of addresses with prefix lengths.
    ///
    /// # Panics
    ///
    /// When the option is described as a list of something else.
    pub fn cidrs(&self, option: &str) -> Vec<(IpAddr, u8)> {
        let read = |item: &String| cidr(item);
        self.list(option).iter().map(|item| self.of_kind(option, "a list of addresses", read(item))).collect()
    }

    fn read<T>(&self, option: &str, kind: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        self.value(option).map(|value| self.of_kind(option, kind, read(&value)))
    }

    fn of_kind<T>(&self, option: &str, kind: &str, value: Option<T>) -> T {
        let Some(value) = value else {
            panic!("{} reads its option `{option}` as {kind}, which it is not described as", self.description.name);
        };
        value
    }
}
