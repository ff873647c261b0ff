//! Opening and enabling: what a protocol is handed to take its part in making a path or a standing passive open. An open
//! travels down the graph before it builds anything, and sessions are put together on the way back up.

use crate::branches::Branches;
use crate::control::Facts;
use crate::drop::DropReason;
use crate::participants::Participants;
use crate::path::{EnableId, Leaf, PathId};
use crate::random::Random;
use crate::record::{BadRecord, Record};
use crate::session::Session;
use crate::time::Instant;
use smallvec::SmallVec;
use std::any::Any;
use std::net::IpAddr;

/// Why a path did not open. The caller's to mend.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// A part of an address was expected and is not there.
    MissingParticipant {
        /// Which protocol wanted it.
        protocol: &'static str,
        /// What it wanted.
        expected: &'static str,
    },
    /// Somebody converses with these participants already.
    InUse,
    /// No route leads there.
    NoRoute(IpAddr),
    /// That address is not this host's.
    NotOurAddress(IpAddr),
    /// A connection cannot be made with that participant (a group, for example).
    NotAPeer(IpAddr),
    /// All ports are taken.
    NoFreePort,
    /// A limit is reached; it is named.
    Full(&'static str),
    /// The graph has no such protocol below this one.
    NoLower(usize),
    /// The graph has no node of this name.
    NoNode(String),
    /// The record to go on from is not right.
    Record(BadRecord),
    /// The handshake this open belongs to is no longer there.
    NoEmbryo,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::MissingParticipant { protocol, expected } => {
                write!(f, "{protocol} expected {expected}, got none")
            }
            OpenError::InUse => f.write_str("these participants converse already"),
            OpenError::NoRoute(host) => write!(f, "no route leads to {host}"),
            OpenError::NotOurAddress(host) => write!(f, "{host} is not an address of this host"),
            OpenError::NotAPeer(host) => write!(f, "{host} is not one host: expected a unicast address"),
            OpenError::NoFreePort => f.write_str("all ports are taken"),
            OpenError::Full(limit) => write!(f, "the limit is reached: {limit}"),
            OpenError::NoNode(name) => write!(f, "the graph has no node `{name}`: expected the name of one"),
            OpenError::NoLower(index) => write!(f, "the graph has no lower number {index} here"),
            OpenError::Record(error) => error.fmt(f),
            OpenError::NoEmbryo => f.write_str("the handshake is no longer there"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<BadRecord> for OpenError {
    fn from(error: BadRecord) -> OpenError {
        OpenError::Record(error)
    }
}

/// Why an enable was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnableError {
    /// A part of an address was expected and is not there.
    MissingParticipant {
        /// Which protocol wanted it.
        protocol: &'static str,
        /// What it wanted.
        expected: &'static str,
    },
    /// Somebody else holds it.
    InUse,
    /// That address is not this host's.
    NotOurAddress(IpAddr),
    /// All ports are taken.
    NoFreePort,
    /// A limit is reached; it is named.
    Full(&'static str),
    /// This protocol takes no enables.
    NotHere,
    /// The graph has no node of this name.
    NoNode(String),
}

impl std::fmt::Display for EnableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EnableError::MissingParticipant { protocol, expected } => {
                write!(f, "{protocol} expected {expected}, got none")
            }
            EnableError::InUse => f.write_str("somebody else listens there"),
            EnableError::NotOurAddress(host) => write!(f, "{host} is not an address of this host"),
            EnableError::NoFreePort => f.write_str("all ports are taken"),
            EnableError::Full(limit) => write!(f, "the limit is reached: {limit}"),
            EnableError::NoNode(name) => write!(f, "the graph has no node `{name}`: expected the name of one"),
            EnableError::NotHere => f.write_str("this protocol takes no enables"),
        }
    }
}

impl std::error::Error for EnableError {}

/// A key held in some protocol's map; dropping it frees the key. Paths and enables own theirs.
pub type Binding = Box<dyn Any + Send + Sync>;

/// What is open below: sessions (lowest first), where they end, and the keys they hold.
#[derive(Default)]
pub struct Opened {
    /// Sessions of a plain chain, lowest first.
    pub sessions: Vec<Box<dyn Session>>,
    /// Where it ends, from left to right.
    pub leaves: SmallVec<[Leaf; 1]>,
    /// The keys its protocols hold for it.
    pub bindings: SmallVec<[Binding; 1]>,
    /// Its participants in full, as each protocol completed them.
    pub participants: Participants,
    /// What it offers to the one above.
    pub facts: Option<Facts>,
}

/// What the linker does for a protocol that opens.
pub trait Linker {
    /// Opens lower number `lower` of the protocol at hand, going on from `record` if there is one.
    fn open_below(
        &mut self,
        lower: usize,
        participants: Participants,
        random: &mut Random,
        record: Option<&mut Record>,
    ) -> Result<Opened, OpenError>;
}

/// One protocol's part in making a path.
pub struct Opening<'a> {
    /// The path being made.
    pub path: PathId,
    /// Who shall converse. Each protocol takes its own parts off the top before it opens what is below.
    pub participants: Participants,
    /// The number by which this protocol knows the one above; 0 if it needs none.
    pub number: u32,
    /// The enable on whose behalf the path opens, if it opens passively.
    pub enable: Option<EnableId>,
    /// What to go on from, if the path comes from elsewhere.
    pub record: Option<&'a mut Record>,
    /// The time.
    pub now: Instant,
    /// The path's random stream.
    pub random: &'a mut Random,
    linker: &'a mut dyn Linker,
    below: Vec<Opened>,
    opened: Opened,
}

impl<'a> Opening<'a> {
    /// An opening of `path`; `linker` knows what is below.
    pub fn new(
        path: PathId,
        participants: Participants,
        now: Instant,
        random: &'a mut Random,
        linker: &'a mut dyn Linker,
    ) -> Opening<'a> {
        Opening {
            path,
            participants,
            number: 0,
            enable: None,
            record: None,
            now,
            random,
            linker,
            below: Vec::new(),
            opened: Opened::default(),
        }
    }

    /// Opens the (first) lower with the participants that are left, and returns what it offers.
    pub fn below(&mut self) -> Result<Facts, OpenError> {
        self.branch(0)
    }

    /// Opens lower number `lower`. The second one opened becomes branch 1, and so on.
    pub fn branch(&mut self, lower: usize) -> Result<Facts, OpenError> {
        let record = self.record.as_deref_mut();
        let mut opened = self.linker.open_below(lower, self.participants.clone(), self.random, record)?;
        let facts = opened.facts.take().expect("what opens says what it offers");
        self.opened.participants = std::mem::take(&mut opened.participants);
        self.below.push(opened);
        Ok(facts)
    }

    /// Leaves this protocol's session on top of what is open below.
    pub fn stand(&mut self, session: impl Session + 'static) {
        self.stand_boxed(Box::new(session));
    }

    /// As [`stand`](Opening::stand), for a session whose type was chosen at run time.
    pub fn stand_boxed(&mut self, session: Box<dyn Session>) {
        self.join();
        self.opened.sessions.push(session);
    }

    /// Holds `binding` for as long as the path lives.
    pub fn bind(&mut self, binding: Binding) {
        self.opened.bindings.push(binding);
    }

    /// The participants as the layers below completed them, with this protocol's own parts to be added by
    /// [`complete`](Opening::complete).
    pub fn lower_participants(&self) -> &Participants {
        &self.opened.participants
    }

    /// Adds this protocol's own parts to the completed participants.
    pub fn complete(&mut self, local: crate::participants::Part, remote: crate::participants::Part) {
        self.opened.participants.local.push(local);
        self.opened.participants.remote.push(remote);
    }

    /// For the linker: what this protocol and those below have made.
    pub fn finish(mut self, facts: Facts) -> Opened {
        self.join();
        self.opened.facts = Some(facts);
        self.opened
    }

    /// Takes what is open below in: one lower as it is, several as branches.
    fn join(&mut self) {
        let mut below = std::mem::take(&mut self.below);
        for opened in &mut below {
            self.opened.leaves.append(&mut opened.leaves.clone());
            self.opened.bindings.append(&mut opened.bindings);
        }
        if below.len() == 1 {
            self.opened.sessions.append(&mut below[0].sessions);
        } else if !below.is_empty() {
            let branches = below.into_iter().map(|mut opened| {
                opened.sessions.reverse();
                let leaves = opened.leaves.len() as u8;
                let session: Box<dyn Session> = if opened.sessions.is_empty() {
                    Box::new(crate::branches::Straight)
                } else {
                    Box::new(crate::stack::Chain::new(opened.sessions))
                };
                (session, leaves)
            });
            self.opened.sessions.push(Box::new(Branches::new(branches.collect())));
        }
    }
}

/// What is wanted of an enable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnableWish {
    /// Who may be on both ends; parts may be missing.
    pub participants: Participants,
    /// Whether messages shall be delivered without paths.
    pub wild: bool,
    /// How many half-open connections, and how many open ones not yet accepted, it may have.
    pub backlog: usize,
    /// Several enables may share the key (groups).
    pub shared: bool,
}

/// What an enable has got.
pub struct Enabled {
    /// The participants with the parts that were chosen (a free port).
    pub participants: Participants,
    /// The keys its protocols hold for it.
    pub bindings: SmallVec<[Binding; 1]>,
}

/// What the linker does for a protocol that is enabled.
pub trait EnableLinker {
    /// Enables lower number `lower` of the protocol at hand.
    fn enable_below(&mut self, lower: usize, wish: EnableWish, random: &mut Random) -> Result<Enabled, EnableError>;
}

/// One protocol's part in making an enable.
pub struct Enabling<'a> {
    /// The enable being made.
    pub id: EnableId,
    /// Who may be on both ends; parts may be missing, and a protocol that chooses one writes it here.
    pub participants: Participants,
    /// Whether messages shall be delivered without paths.
    pub wild: bool,
    /// How many half-open connections, and how many open ones not yet accepted, it may have.
    pub backlog: usize,
    /// Several enables may share the key (groups).
    pub shared: bool,
    /// How many of its connections may bring data before their peer has proven that it is there (RFC 7413); none: 0.
    pub early_max: usize,
    /// The random stream.
    pub random: &'a mut Random,
    linker: &'a mut dyn EnableLinker,
    bindings: SmallVec<[Binding; 1]>,
}

impl<'a> Enabling<'a> {
    /// An enable to be made.
    pub fn new(
        id: EnableId,
        wish: EnableWish,
        random: &'a mut Random,
        linker: &'a mut dyn EnableLinker,
    ) -> Enabling<'a> {
        let EnableWish { participants, wild, backlog, shared } = wish;
        Enabling { id, participants, wild, backlog, shared, early_max: 0, random, linker, bindings: SmallVec::new() }
    }

    /// Passes the enable on to lower number `lower`, and takes over what was chosen there.
    pub fn below(&mut self, lower: usize) -> Result<(), EnableError> {
        let wish = EnableWish {
            participants: self.participants.clone(),
            wild: self.wild,
            backlog: self.backlog,
            shared: self.shared,
        };
        let mut enabled = self.linker.enable_below(lower, wish, self.random)?;
        self.participants = enabled.participants;
        self.bindings.append(&mut enabled.bindings);
        Ok(())
    }

    /// Holds `binding` for as long as the enable stands.
    pub fn bind(&mut self, binding: Binding) {
        self.bindings.push(binding);
    }

    /// For the linker: what it has got.
    pub fn finish(self) -> Enabled {
        Enabled { participants: self.participants, bindings: self.bindings }
    }
}

/// A passive open that came too late.
pub static NO_EMBRYO: DropReason = DropReason::new("linker", "the handshake is no longer there");
