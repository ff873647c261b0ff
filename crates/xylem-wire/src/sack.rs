//! Selective acknowledgments: which runs of bytes arrived though something before them is missing. A segment has room
//! for four at most, so they are kept in place, without an allocation.

use crate::{Header, SequenceNumber, header};

header! {
    /// A run of bytes that arrived out of order (RFC 2018, section 3).
    pub struct SackBlock {
        /// Its first byte.
        left: SequenceNumber = Data,
        /// The byte after its last.
        right: SequenceNumber = Data,
    }
}

/// The runs that one segment reports, most recent first (RFC 2018, section 4). They are what the peer wrote: whether a
/// run makes sense is for TCP to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    // Places beyond the count hold `UNUSED`, so that equal runs are equal values.
    blocks: [SackBlock; SackBlocks::MAX],
    count: u8,
}

impl SackBlocks {
    /// Most runs that a segment has room for: forty bytes of options take two and eight a run.
    pub const MAX: usize = 4;
    /// No runs.
    pub const NONE: SackBlocks = SackBlocks { blocks: [UNUSED; SackBlocks::MAX], count: 0 };

    /// Reads the data of the option: whole runs, one to [`SackBlocks::MAX`]; `None` if they are not that.
    pub(crate) fn parse(data: &[u8]) -> Option<SackBlocks> {
        let (whole, rest) = data.as_chunks::<{ SackBlock::LEN }>();
        if whole.is_empty() || whole.len() > SackBlocks::MAX || !rest.is_empty() {
            return None;
        }
        let mut blocks = SackBlocks::NONE;
        for block in whole {
            blocks.push(SackBlock::parse(block).ok()?);
        }
        Some(blocks)
    }

    /// Appends a run; false, and nothing done, if there is no place left.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *place = block;
        self.count += 1;
        true
    }

    /// The runs in order.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// How many runs there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The runs in order.
    pub fn iter(&self) -> core::slice::Iter<'_, SackBlock> {
        self.as_slice().iter()
    }
}

const UNUSED: SackBlock = SackBlock { left: SequenceNumber(0), right: SequenceNumber(0) };

impl Default for SackBlocks {
    fn default() -> SackBlocks {
        SackBlocks::NONE
    }
}

impl<'a> IntoIterator for &'a SackBlocks {
    type Item = &'a SackBlock;
    type IntoIter = core::slice::Iter<'a, SackBlock>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_have_a_place_and_a_fifth_has_none() {
        let block = |number| SackBlock { left: SequenceNumber(number), right: SequenceNumber(number + 1) };
        let mut blocks = SackBlocks::NONE;
        for number in 0..4 {
            assert!(blocks.push(block(number)));
        }
        let full = blocks;
        assert!(!blocks.push(block(4)));
        assert_eq!(blocks, full);
        assert_eq!(blocks.iter().map(|block| block.left.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn the_data_is_one_to_four_whole_runs() {
        let data = [0; 48];
        for length in 0..=data.len() {
            let whole = length % 8 == 0 && (8..=32).contains(&length);
            assert_eq!(SackBlocks::parse(&data[..length]).map(|blocks| blocks.len()), whole.then_some(length / 8));
        }
    }
}
