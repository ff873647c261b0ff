//! A node of a running graph: a protocol with its place among the others.

use smallvec::SmallVec;
use std::sync::Arc;
use xylem_core::Protocol;

/// What stands below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lower {
    /// Who.
    pub below: Below,
    /// The number by which the lower one knows this node; 0 if it needs none.
    pub number: u32,
}

/// Who stands below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Another node.
    Node(u8),
    /// A device.
    Device(u16),
}

/// A protocol in a running graph.
#[derive(Clone)]
pub struct Node {
    /// Its name in the graph.
    pub name: String,
    /// The name of its protocol.
    pub kind: String,
    /// The protocol; `None` for an anchor, which is the application's side.
    pub protocol: Option<Arc<dyn Protocol>>,
    /// What it stands over, in the graph's order.
    pub lowers: Vec<Lower>,
}

/// Who stands over whom, the other way round than the nodes say it: what every arriving frame asks.
pub(super) struct Over {
    devices: Vec<Option<u8>>,
    nodes: Vec<SmallVec<[(u32, u8); 4]>>,
}

impl Over {
    /// The relation of `nodes` over each other and over `devices` devices.
    pub fn new(nodes: &[Node], devices: usize) -> Over {
        let mut over = Over { devices: vec![None; devices], nodes: vec![SmallVec::new(); nodes.len()] };
        for (index, node) in nodes.iter().enumerate() {
            for lower in &node.lowers {
                match lower.below {
                    // Over a device stands one node, whatever the number.
                    Below::Device(device) => {
                        over.devices[usize::from(device)].get_or_insert(index as u8);
                    }
                    Below::Node(below) => over.nodes[usize::from(below)].push((lower.number, index as u8)),
                }
            }
        }
        over
    }

    /// The node over a device.
    pub fn device(&self, device: u16) -> Option<u8> {
        self.devices[usize::from(device)]
    }

    /// The node that stands over another under this number.
    pub fn node(&self, below: u8, number: u32) -> Option<u8> {
        self.nodes[usize::from(below)].iter().find(|(known, _)| *known == number).map(|(_, node)| *node)
    }
}
