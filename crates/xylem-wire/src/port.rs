//! A port: the end-point number of UDP and TCP, and nothing else. Its own type keeps it from being mixed up with the
//! lengths and identifications that are also sixteen bits wide.

use core::fmt;
use serde::{Deserialize, Serialize};

/// A UDP or TCP port (RFC 768, RFC 9293 section 3.1). Zero names no end-point on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Port(pub u16);

impl Port {
    /// The first port of the range for short-lived clients (RFC 6335, section 6).
    pub const DYNAMIC_FIRST: Port = Port(49152);
}

crate::newtype_field!(Port(u16));

impl From<u16> for Port {
    fn from(number: u16) -> Port {
        Port(number)
    }
}

impl From<Port> for u16 {
    fn from(port: Port) -> u16 {
        port.0
    }
}

impl fmt::Display for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
