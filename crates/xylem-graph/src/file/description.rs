//! What a protocol says about itself so that a graph can be checked before anything runs.
//!
//! A description is plain data in a constant: what it stands over, what it offers upward, how it is numbered, its options.
//! The built-in protocols and a user's own register with the same value; nothing in the check knows a protocol by name.

use super::graph::{Graph, Node};
use super::option::{OptionDescription, Presence};
use super::problem::Problem;

/// What a protocol says about itself.
///
/// Start from [`Description::PLAIN`] and say what differs:
///
/// ```
/// use xylem_graph::file::{Description, Kind, Numbered, On, Number, Provides, Role, Slot, Space, Uppers};
///
/// const CHIRP: Description = Description {
///     name: "chirp",
///     summary: "one-byte messages, for teaching",
///     role: Role::Endpoint,
///     over: &[Slot::one("network", &[Kind::NETWORK])],
///     provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::One },
///     numbers: &[Numbered { on: On::Space(Space::IP), number: Number::Fixed(253) }],
///     ..Description::PLAIN
/// };
/// assert!(CHIRP.faults().is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The protocol's name, as a graph file writes it.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// What it is for in a graph.
    pub role: Role,
    /// What it stands over: each lower fills a place in the first slot that takes it and still has room.
    pub over: &'static [Slot],
    /// What it offers to those above.
    pub provides: Provides,
    /// How those below know it, one entry a number space or protocol it may stand over.
    pub numbers: &'static [Numbered],
    /// Its options.
    pub options: &'static [OptionDescription],
    /// Whether the edges above it may be cut: it and its uppers may then live in different address spaces.
    pub cuttable: bool,
    /// What cannot be said as data: a rule of its own over the node, run after all other checks found nothing wrong with
    /// the graph's names, lowers and options.
    pub rule: Option<fn(&Graph, &Node) -> Vec<Problem>>,
}

/// What a protocol is for in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It carries for those above; with nobody above it does nothing (Ethernet, ARP, a fragmenter).
    Carrier,
    /// A virtual protocol: adds no header, and does nothing with nobody above.
    Virtual,
    /// It does work by itself or the application opens it directly, so it may be the highest (ICMP, UDP, TCP).
    Endpoint,
    /// The application's side, the anchor at the top.
    Anchor,
}

/// The kind of interface one protocol offers and another stands on. The set is open: a program adds its own constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind(pub &'static str);

impl Kind {
    /// Whole frames, as a device carries them.
    pub const DEVICE: Kind = Kind("device");
    /// Payloads to hardware addresses, told apart by a type number.
    pub const LINK: Kind = Kind("link");
    /// Answers which hardware address a network address has.
    pub const RESOLVER: Kind = Kind("resolver");
    /// Datagrams to network addresses, told apart by a protocol number.
    pub const NETWORK: Kind = Kind("network");
    /// Whole messages, each kept or lost as one.
    pub const MESSAGES: Kind = Kind("messages");
    /// Ordered bytes.
    pub const STREAM: Kind = Kind("stream");
    /// The calls of an application.
    pub const SOCKETS: Kind = Kind("sockets");
}

/// A group of lowers of the same kind.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// What one of them is, in the singular, for messages: `link`.
    pub what: &'static str,
    /// The kinds it takes; one of them is enough.
    pub kinds: &'static [Kind],
    /// How many there must be.
    pub least: usize,
    /// How many there may be.
    pub most: usize,
}

impl Slot {
    /// Exactly one lower.
    pub const fn one(what: &'static str, kinds: &'static [Kind]) -> Slot {
        Slot { what, kinds, least: 1, most: 1 }
    }

    /// One lower or none.
    pub const fn at_most_one(what: &'static str, kinds: &'static [Kind]) -> Slot {
        Slot { what, kinds, least: 0, most: 1 }
    }

    /// As many lowers as the limits say.
    pub const fn several(what: &'static str, kinds: &'static [Kind], least: usize, most: usize) -> Slot {
        Slot { what, kinds, least, most }
    }

    /// The slot in words: `exactly one link`, `at most one resolver`, `2 to 16 links`.
    pub fn expected(&self) -> String {
        let (what, least, most) = (self.what, self.least, self.most);
        match (least, most) {
            (1, 1) => format!("exactly one {what}"),
            (0, 1) => format!("at most one {what}"),
            (0, most) => format!("at most {most} {what}s"),
            (least, most) if least == most => format!("exactly {least} {what}s"),
            (least, most) => format!("{least} to {most} {what}s"),
        }
    }
}

/// What a protocol offers to those above.
#[derive(Clone, Copy, Debug)]
pub enum Provides {
    /// Nothing can stand over it.
    Nothing,
    /// These kinds.
    Kinds {
        /// The kinds it offers.
        kinds: &'static [Kind],
        /// How it tells several uppers apart.
        uppers: Uppers,
    },
    /// What it stands over, unchanged: kinds, numbers and limits are those of the lower (a virtual protocol). With several
    /// lowers it offers the kinds that all of them offer, and those above are numbered on each.
    AsBelow,
}

/// How a protocol tells its uppers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uppers {
    /// It does not: one upper at most.
    One,
    /// By what they open (ports, keys), so any number may stand over it.
    Many,
    /// By a number in its header.
    Numbered(Space),
}

/// A set of numbers by which a header names what follows. The set of spaces is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Space(pub &'static str);

impl Space {
    /// The type field of Ethernet II frames (IEEE 802.3, IANA's "ieee-802-numbers").
    pub const ETHERTYPE: Space = Space("ethertype");
    /// The protocol field of IPv4 and the next-header field of IPv6 (RFC 791 section 3.1, RFC 8200 section 3).
    pub const IP: Space = Space("ip protocol");
}

/// How those below know a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Numbered {
    /// Where the number counts.
    pub on: On,
    /// The number.
    pub number: Number,
}

/// Where a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// On every protocol that tells its uppers apart by this space.
    Space(Space),
    /// On the protocol of this name; this wins over the space.
    Protocol(&'static str),
}

/// A number, or the option that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Always this one.
    Fixed(u32),
    /// What the node's whole-number option of this name says, so that several nodes of one protocol can share a lower.
    Option(&'static str),
}

impl Description {
    /// A protocol that says nothing yet: a carrier over nothing that offers nothing. For `..Description::PLAIN`.
    pub const PLAIN: Description = Description {
        name: "",
        summary: "",
        role: Role::Carrier,
        over: &[],
        provides: Provides::Nothing,
        numbers: &[],
        options: &[],
        cuttable: false,
        rule: None,
    };

    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&OptionDescription> {
        self.options.iter().find(|option| option.name == name)
    }

    /// The number by which a lower protocol of that name and number space knows this one.
    pub fn number_on(&self, protocol: &str, space: Space) -> Option<Number> {
        let named = |numbered: &&Numbered| matches!(numbered.on, On::Protocol(name) if name == protocol);
        let counted = |numbered: &&Numbered| numbered.on == On::Space(space);
        let found = self.numbers.iter().find(named).or_else(|| self.numbers.iter().find(counted));
        found.map(|numbered| numbered.number)
    }

    /// What is wrong with the description itself, which is its author's fault and not the graph's; empty when all is well.
    /// A catalogue asks this when a protocol registers.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let name = self.name;
        if let Err(error) = super::Name::new(name) {
            faults.push(format!("protocol {name:?}: {error}"));
        }
        for slot in self.over.iter().filter(|slot| slot.least > slot.most || slot.kinds.is_empty()) {
            faults.push(format!("{name}: no number of lowers fits the slot `{}`", slot.what));
        }
        if matches!(self.provides, Provides::AsBelow) && self.over.is_empty() {
            faults.push(format!("{name}: offers what is below, yet stands over nothing"));
        }
        for (index, option) in self.options.iter().enumerate() {
            faults
                .extend(super::Name::new(option.name).err().map(|e| format!("{name}: option {:?}: {e}", option.name)));
            if self.options[..index].iter().any(|before| before.name == option.name) {
                faults.push(format!("{name}: option `{}` is described twice", option.name));
            }
            if let Presence::Default(default) = option.presence
                && option.kind.accepts(&default.value()).is_err()
            {
                let (value, expected) = (default.value(), option.kind.expected());
                faults.push(format!("{name}: option `{}` has default {value}; expected {expected}", option.name));
            }
        }
        for numbered in self.numbers {
            if let Number::Option(option) = numbered.number
                && self.option(option).is_none()
            {
                faults.push(format!("{name}: is numbered by option `{option}`, which it does not describe"));
            }
        }
        faults
    }
}

/// The protocols a program knows: its catalogue, as the check sees it.
pub trait Descriptions {
    /// The description of the protocol of that name.
    fn description(&self, name: &str) -> Option<&Description>;

    /// The names of all protocols, in the order to show them.
    fn names(&self) -> Vec<&str>;
}

impl Descriptions for &[Description] {
    fn description(&self, name: &str) -> Option<&Description> {
        self.iter().find(|description| description.name == name)
    }

    fn names(&self) -> Vec<&str> {
        self.iter().map(|description| description.name).collect()
    }
}

impl Descriptions for Vec<Description> {
    fn description(&self, name: &str) -> Option<&Description> {
        self.iter().find(|description| description.name == name)
    }

    fn names(&self) -> Vec<&str> {
        self.iter().map(|description| description.name).collect()
    }
}
