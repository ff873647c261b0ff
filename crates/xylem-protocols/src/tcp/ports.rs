//! Ports for those who do not ask for one: any of a range, the first choice at random (RFC 6056, section 3.3.1).

use std::fmt;
use std::str::FromStr;
use xylem_wire::Port;

/// Ports from one to another, both included, of which there is at least one. The default are the dynamic ones (RFC 6335,
/// section 6), 16 384 of them: so many connections one address can have to one port of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: Port,
    last: Port,
}

impl Default for PortRange {
    fn default() -> PortRange {
        PortRange { first: Port::DYNAMIC_FIRST, last: Port(u16::MAX) }
    }
}

impl PortRange {
    /// From `first` to `last`; `None` if there is none between them, or if zero is among them, which names no port.
    pub fn new(first: Port, last: Port) -> Option<PortRange> {
        (first.0 > 0 && first <= last).then_some(PortRange { first, last })
    }

    /// The first one.
    pub fn first(self) -> Port {
        self.first
    }

    /// How many there are: 1 to 65 535.
    pub fn count(self) -> u32 {
        u32::from(self.last.0 - self.first.0) + 1
    }

    /// All of them, beginning with number `number` (modulo their count) and coming round to the ones before it.
    pub(super) fn beginning_at(self, number: u32) -> impl Iterator<Item = Port> {
        let count = self.count();
        // A remainder below the count leaves the sum within the range.
        (0..count).map(move |step| Port(self.first.0 + ((number % count + step) % count) as u16))
    }
}

/// `FIRST-LAST`.
impl FromStr for PortRange {
    type Err = NoPortRange;

    fn from_str(text: &str) -> Result<PortRange, NoPortRange> {
        let wrong = || NoPortRange { got: text.into() };
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let port = |text: &str| text.parse().map(Port).map_err(|_| wrong());
        PortRange::new(port(first)?, port(last)?).ok_or_else(wrong)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

/// A text that is no range of ports: the caller's mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPortRange {
    /// The text.
    pub got: String,
}

impl fmt::Display for NoPortRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected ports such as 49152-65535, from 1 on and in order, got `{}`", self.got)
    }
}

impl std::error::Error for NoPortRange {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_port_of_a_range_comes_once_wherever_it_begins() {
        for (text, number) in [("1024-65535", 70_000), ("1-65535", 65_534), ("7-7", 5), ("49152-65535", 0)] {
            let range: PortRange = text.parse().expect("a range");
            let ports: Vec<Port> = range.beginning_at(number).collect();
            let all: BTreeSet<Port> = ports.iter().copied().collect();
            assert_eq!((ports.len(), all.len()), (range.count() as usize, range.count() as usize), "{text}");
            assert_eq!((all.first(), all.last()), (Some(&range.first), Some(&range.last)), "{text}");
            assert_eq!(range.to_string(), text);
        }
        assert_eq!(PortRange::default().to_string(), "49152-65535");
    }

    #[test]
    fn what_is_no_range_is_an_error() {
        for text in ["", "80", "0-100", "200-100", "1-65536", "a-b", "1-2-3"] {
            let error = text.parse::<PortRange>().expect_err(text).to_string();
            assert!(error.ends_with(&format!("got `{text}`")), "{error}");
        }
    }
}
