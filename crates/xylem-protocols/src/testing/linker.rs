//! Opens and enables on their way down through the test host's graph.

use std::sync::Arc;
use xylem_core::{
    EnableError, EnableId, EnableLinker, EnableWish, Enabled, Enabling, End, Facts, Instant, Leaf, Linker, OpenError,
    Opened, Opening, Participants, PathId, Protocol, Random, Record,
};

/// Who stands below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    Node(usize),
    Device(u16),
}

/// A protocol with its lowers: who, and the number by which it is known there.
#[derive(Clone)]
pub struct Node {
    pub protocol: Arc<dyn Protocol>,
    pub lowers: Vec<(Below, u32)>,
}

/// Opens one path, seen from one node.
#[derive(Clone)]
pub struct PathLinker {
    pub nodes: Arc<Vec<Node>>,
    pub node: usize,
    pub path: PathId,
    pub now: Instant,
    pub frame_max: usize,
    /// At which node the open is passive.
    pub enable: Option<(usize, EnableId)>,
}

impl PathLinker {
    /// Opens `node` itself, which knows the one above by `number`.
    pub fn open_node(
        &self,
        node: usize,
        number: u32,
        participants: Participants,
        random: &mut Random,
        record: Option<&mut Record>,
    ) -> Result<Opened, OpenError> {
        let mut nested = PathLinker { node, ..self.clone() };
        let mut opening = Opening::new(self.path, participants, self.now, random, &mut nested);
        opening.number = number;
        opening.record = record;
        opening.enable = self.enable.filter(|(at, _)| *at == node).map(|(_, enable)| enable);
        let facts = self.nodes[node].protocol.open(&mut opening)?;
        Ok(opening.finish(facts))
    }
}

impl Linker for PathLinker {
    fn open_below(
        &mut self,
        lower: usize,
        participants: Participants,
        random: &mut Random,
        record: Option<&mut Record>,
    ) -> Result<Opened, OpenError> {
        let nodes = Arc::clone(&self.nodes);
        let (below, number) = *nodes[self.node].lowers.get(lower).ok_or(OpenError::NoLower(lower))?;
        match below {
            Below::Node(below) => self.open_node(below, number, participants, random, record),
            Below::Device(device) => {
                let facts =
                    Facts { mtu: self.frame_max, segment_max: 65_549, headroom: 0, local: None, remote: None, number };
                let leaf = Leaf { end: End::Device(device), way: Default::default() };
                Ok(Opened { leaves: [leaf].into_iter().collect(), facts: Some(facts), ..Opened::default() })
            }
        }
    }
}

/// Enables, seen from one node.
pub struct EnableWay {
    pub nodes: Arc<Vec<Node>>,
    pub node: usize,
    pub id: EnableId,
}

impl EnableWay {
    pub fn enable_node(&self, node: usize, wish: EnableWish, random: &mut Random) -> Result<Enabled, EnableError> {
        let mut nested = EnableWay { nodes: Arc::clone(&self.nodes), node, id: self.id };
        let mut enabling = Enabling::new(self.id, wish, random, &mut nested);
        self.nodes[node].protocol.open_enable(&mut enabling)?;
        Ok(enabling.finish())
    }
}

impl EnableLinker for EnableWay {
    fn enable_below(&mut self, lower: usize, wish: EnableWish, random: &mut Random) -> Result<Enabled, EnableError> {
        match self.nodes[self.node].lowers.get(lower) {
            Some((Below::Node(below), _)) => self.enable_node(*below, wish, random),
            _ => Err(EnableError::NotHere),
        }
    }
}
