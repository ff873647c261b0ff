//! Why messages are dropped. Every drop has a reason with a name, counted per protocol by whoever links the sessions;
//! no protocol writes a line of code for it.

use std::collections::BTreeMap;

/// The reason for a drop: which protocol decided it, and why, in words a person reads in a table.
///
/// Protocols declare theirs as statics: `pub static BAD_CHECKSUM: DropReason = DropReason::new("udp", "bad checksum");`
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DropReason {
    /// The protocol that decided.
    pub protocol: &'static str,
    /// Why, in a few words.
    pub why: &'static str,
}

impl DropReason {
    /// A reason of `protocol`.
    pub const fn new(protocol: &'static str, why: &'static str) -> DropReason {
        DropReason { protocol, why }
    }
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.protocol, self.why)
    }
}

/// Reasons that belong to the linker rather than to a protocol.
pub mod linker {
    use super::DropReason;

    /// The pool had no buffer left.
    pub static NO_BUFFER: DropReason = DropReason::new("linker", "no buffer left in the pool");
    /// No upper protocol has the number the header names.
    pub static NO_UPPER: DropReason = DropReason::new("linker", "no protocol above has this number");
    /// The message named a path that has gone.
    pub static NO_PATH: DropReason = DropReason::new("linker", "the path has gone");
    /// The path was made for sending only, and nobody reads it.
    pub static NOBODY: DropReason = DropReason::new("linker", "nobody reads this path");
    /// The path was at rest, and could not be opened again.
    pub static NOT_WOKEN: DropReason = DropReason::new("linker", "the path could not be woken");
    /// The path's inbox was full.
    pub static INBOX_FULL: DropReason = DropReason::new("linker", "the path's inbox is full");
    /// The path had no room for what was pushed without asking.
    pub static REFUSED: DropReason = DropReason::new("linker", "the path had no room");
    /// The device took no more.
    pub static DEVICE_FULL: DropReason = DropReason::new("linker", "the device took no more");
    /// A reply found no way down.
    pub static NO_WAY: DropReason = DropReason::new("linker", "no way to the participant");
    /// The message was larger than the device carries and could not be cut.
    pub static TOO_LARGE: DropReason = DropReason::new("linker", "larger than the device carries");
    /// An error message quotes something whose protocol cannot be told.
    pub static NOT_QUOTED: DropReason = DropReason::new("linker", "the quoted message is nobody's");
    /// The demultiplexer climbed higher than any graph stands.
    pub static TOO_DEEP: DropReason = DropReason::new("linker", "too many layers in one frame");
}

/// How often each reason occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops(BTreeMap<(&'static str, &'static str), u64>);

impl Drops {
    /// Counts one drop.
    pub fn count(&mut self, reason: &'static DropReason) {
        *self.0.entry((reason.protocol, reason.why)).or_default() += 1;
    }

    /// How often `reason` occurred.
    pub fn of(&self, reason: &DropReason) -> u64 {
        self.0.get(&(reason.protocol, reason.why)).copied().unwrap_or(0)
    }

    /// All reasons that occurred, by protocol and name: (protocol, why, count).
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        self.0.iter().map(|(&(protocol, why), &count)| (protocol, why, count))
    }

    /// All drops together.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_by_protocol_and_name() {
        static WHY: DropReason = DropReason::new("toy", "no reason");
        let mut drops = Drops::default();
        drops.count(&WHY);
        drops.count(&WHY);
        drops.count(&linker::NO_PATH);
        assert_eq!(drops.of(&WHY), 2);
        assert_eq!(drops.total(), 3);
        assert_eq!(drops.iter().last(), Some(("toy", "no reason", 2)));
    }
}
