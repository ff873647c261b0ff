//! The place of integrated layer processing in the interface: what the pass over the data yields, handed to each
//! session that contributed a stage when the pass is over. The passes themselves are not built yet.

use xylem_wire::Sum;

/// What the stages of one integrated pass found out (Braun and Diot's final control).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sealed {
    /// Bytes that went through the pass.
    pub length: usize,
    /// Their Internet checksum's sum, if a checksum stage was among them.
    pub sum: Option<Sum>,
}
