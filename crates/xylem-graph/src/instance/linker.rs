//! Opens and enables on their way down through the graph. The linker knows who stands below whom; the protocols take
//! their own part. A passive open is an ordinary one: only the protocol that keeps the enable is told of it.

use super::trunk::Standing;
use super::{Below, Instance, lock};
use smallvec::SmallVec;
use xylem_core::Instant;
use xylem_core::{
    EnableError, EnableId, EnableLinker, EnableWish, Enabled, Enabling, End, Facts, HEADROOM, Leaf, Linker, OpenError,
    Opened, Opening, Participants, PathId, Random, Record,
};

/// Links the opens of one path, seen from one node.
pub(super) struct PathLinker<'i> {
    instance: &'i Instance,
    node: u8,
    path: PathId,
    now: Instant,
    /// At which node the open turns passive: for which enable, and who converses.
    passive: Option<(u8, EnableId, Participants)>,
}

impl<'i> PathLinker<'i> {
    pub fn new(instance: &'i Instance, node: u8, path: PathId, now: Instant) -> PathLinker<'i> {
        PathLinker { instance, node, path, now, passive: None }
    }

    /// Makes the open passive at `node`.
    pub fn passive_at(mut self, node: u8, enable: EnableId, participants: Participants) -> PathLinker<'i> {
        self.passive = Some((node, enable, participants));
        self
    }

    /// Opens `node` itself, its upper known to it by `number`.
    pub fn open_node(
        &self,
        node: u8,
        number: u32,
        mut participants: Participants,
        random: &mut Random,
        record: Option<&mut Record>,
    ) -> Result<Opened, OpenError> {
        let protocol = self.instance.nodes[usize::from(node)].protocol.as_ref().ok_or(OpenError::NoLower(0))?;
        let mut enable = None;
        if let Some((at, id, who)) = &self.passive
            && *at == node
        {
            enable = Some(*id);
            participants = who.clone();
        }
        let mut nested = PathLinker { node, passive: self.passive.clone(), ..*self };
        let mut opening = Opening::new(self.path, participants, self.now, random, &mut nested);
        opening.number = number;
        opening.enable = enable;
        opening.record = record;
        let facts = protocol.open(&mut opening)?;
        let mut opened = opening.finish(facts);
        // A fork belongs to no leaf alone: from there on all leaves lead to the same path.
        if let [leaf] = opened.leaves.as_mut_slice() {
            leaf.way.try_push(node).map_err(|_| OpenError::Full("height of the graph"))?;
        }
        Ok(opened)
    }
}

impl Linker for PathLinker<'_> {
    fn open_below(
        &mut self,
        lower: usize,
        participants: Participants,
        random: &mut Random,
        record: Option<&mut Record>,
    ) -> Result<Opened, OpenError> {
        let this = &self.instance.nodes[usize::from(self.node)];
        let lower = this.lowers.get(lower).ok_or(OpenError::NoLower(lower))?;
        match lower.below {
            Below::Device(device) => Ok(self.device(device, lower.number)),
            Below::Node(below) if self.instance.is_trunk(below) => {
                self.trunk(below, lower.number, participants, random)
            }
            Below::Node(below) => self.open_node(below, lower.number, participants, random, record),
        }
    }
}

impl PathLinker<'_> {
    /// The bottom: a leaf and what the device offers.
    fn device(&self, device: u16, number: u32) -> Opened {
        let facts = &self.instance.devices[usize::from(device)];
        let facts =
            Facts { mtu: facts.frame_max, segment_max: SEGMENT_MAX, headroom: 0, local: None, remote: None, number };
        let leaf = Leaf { end: End::Device(device), way: Default::default() };
        Opened { leaves: SmallVec::from_buf([leaf]), facts: Some(facts), ..Opened::default() }
    }

    /// A trunk: the path that all conversations with these participants share, made when the first one needs it.
    fn trunk(
        &self,
        node: u8,
        number: u32,
        participants: Participants,
        random: &mut Random,
    ) -> Result<Opened, OpenError> {
        let Standing { id, mut facts, completed, hold } = self.instance.trunk(node, participants, self.now, random)?;
        facts.number = number;
        let leaf = Leaf { end: End::Trunk(id), way: [node].into_iter().collect() };
        Ok(Opened {
            leaves: SmallVec::from_buf([leaf]),
            facts: Some(facts),
            participants: completed,
            bindings: SmallVec::from_iter([hold]),
            ..Opened::default()
        })
    }
}

/// The largest frame that may be handed to a device to stand for several: an IP packet of 65 535 bytes and a link header.
const SEGMENT_MAX: usize = 65_535 + 14;

const _: () = assert!(HEADROOM >= 14 + 4 + 40 + 60, "the headroom holds Ethernet with a tag, IPv6 and all of TCP");

/// Links the opens of one enable, seen from one node.
pub(super) struct EnableWay<'i> {
    pub instance: &'i Instance,
    pub node: u8,
    pub id: EnableId,
    /// How many of its connections may bring data before their peer has proven that it is there.
    pub early_max: usize,
}

impl EnableWay<'_> {
    /// Enables at `node` itself.
    pub fn enable_node(&self, node: u8, wish: EnableWish, random: &mut Random) -> Result<Enabled, EnableError> {
        let protocol = self.instance.nodes[usize::from(node)].protocol.as_ref().ok_or(EnableError::NotHere)?;
        let mut nested = EnableWay { instance: self.instance, node, id: self.id, early_max: 0 };
        let mut enabling = Enabling::new(self.id, wish, random, &mut nested);
        enabling.early_max = self.early_max;
        protocol.open_enable(&mut enabling)?;
        Ok(enabling.finish())
    }
}

impl EnableLinker for EnableWay<'_> {
    fn enable_below(&mut self, lower: usize, wish: EnableWish, random: &mut Random) -> Result<Enabled, EnableError> {
        let this = &self.instance.nodes[usize::from(self.node)];
        match this.lowers.get(lower).map(|lower| lower.below) {
            Some(Below::Node(below)) => self.enable_node(below, wish, random),
            _ => Err(EnableError::NotHere),
        }
    }
}

impl Instance {
    fn is_trunk(&self, node: u8) -> bool {
        self.nodes[usize::from(node)].protocol.as_ref().is_some_and(|protocol| protocol.is_trunk())
    }

    /// A child of the instance's random stream.
    pub(super) fn random(&self) -> Random {
        lock(&self.random).child()
    }
}
