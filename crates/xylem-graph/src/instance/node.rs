//! A node of a running graph: a protocol with its place among the others.

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
