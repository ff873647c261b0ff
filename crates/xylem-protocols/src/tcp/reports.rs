//! What a receiver reports about data that came out of order (RFC 2018, section 4; RFC 2883, section 4): first what came
//! twice, if something did, then the run of bytes in which the last segment arrived, then those reported most recently,
//! each with the extent it has now. It remembers where something arrived and no extents: those stand in the reorder queue.

use super::reorder::Reorder;
use xylem_wire::{SackBlock, SackBlocks, SequenceNumber};

/// How many arrivals are remembered: some, so that as many runs as a segment has room for are left when runs have grown
/// together.
const REMEMBERED: usize = 2 * SackBlocks::MAX;

/// See the module's text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reports {
    /// A byte of each run, the most recent first.
    recent: [SequenceNumber; REMEMBERED],
    count: u8,
    /// What came twice and has not been reported: once is enough (RFC 2883, section 4).
    doubled: Option<(SequenceNumber, SequenceNumber)>,
}

impl Reports {
    /// A segment arrived early, its first byte numbered `at`.
    pub fn arrived(&mut self, at: SequenceNumber) {
        let known = self.recent[..usize::from(self.count)].iter().position(|known| *known == at);
        let last = known.unwrap_or_else(|| {
            // No more than fit are remembered: the oldest makes way.
            self.count = (self.count + 1).min(REMEMBERED as u8);
            usize::from(self.count) - 1
        });
        self.recent[..=last].rotate_right(1);
        self.recent[0] = at;
    }

    /// The bytes from `left` to before `right` came and were here already.
    pub fn doubled(&mut self, left: SequenceNumber, right: SequenceNumber) {
        if left.is_before(right) {
            self.doubled = Some((left, right));
        }
    }

    /// At most `most` blocks for an acknowledgment of `next`, `early` being what is here beyond it.
    pub fn blocks(&mut self, early: &Reorder, next: SequenceNumber, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        if let Some((left, right)) = self.doubled.take().filter(|_| most > 0) {
            blocks.push(SackBlock { left, right });
        }
        let remembered = std::mem::take(&mut self.count);
        let mut reported = [SequenceNumber(0); REMEMBERED];
        for place in 0..usize::from(remembered) {
            let at = self.recent[place];
            let Some((left, right)) = early.run_around(at).filter(|(left, _)| left.is_after(next)) else { continue };
            let known = usize::from(self.count);
            if reported[..known].contains(&left) {
                continue;
            }
            // Runs that grew together are remembered once.
            (reported[known], self.recent[known]) = (left, at);
            self.count += 1;
            if blocks.len() < most {
                blocks.push(SackBlock { left, right });
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Message;

    fn at(number: u32) -> SequenceNumber {
        SequenceNumber(number)
    }

    /// A receiver that expects byte 1000.
    #[derive(Default)]
    struct Receiver {
        early: Reorder,
        reports: Reports,
    }

    impl Receiver {
        fn early(&mut self, number: u32, length: usize) -> &mut Receiver {
            self.early.insert(at(number), &mut Message::from_bytes(&vec![0; length]), 100, 1 << 20).unwrap();
            self.reports.arrived(at(number));
            self
        }

        fn blocks(&mut self, most: usize) -> Vec<(u32, u32)> {
            let blocks = self.reports.blocks(&self.early, at(1000), most);
            blocks.iter().map(|block| (block.left.0, block.right.0)).collect()
        }
    }

    /// The example of RFC 2018, section 8, case 3: every second segment of eight is lost.
    #[test]
    fn the_most_recent_run_comes_first_and_others_are_repeated() {
        let mut receiver = Receiver::default();
        assert_eq!(receiver.early(1500, 500).blocks(3), [(1500, 2000)]);
        assert_eq!(receiver.early(2500, 500).blocks(3), [(2500, 3000), (1500, 2000)]);
        assert_eq!(receiver.early(3500, 500).blocks(3), [(3500, 4000), (2500, 3000), (1500, 2000)]);
        assert_eq!(receiver.early(4500, 500).blocks(3), [(4500, 5000), (3500, 4000), (2500, 3000)]);
        // The hole between the last two is filled: they are one, and one that had no room comes back.
        assert_eq!(receiver.early(4000, 500).blocks(3), [(3500, 5000), (2500, 3000), (1500, 2000)]);
        assert_eq!(receiver.blocks(1), [(3500, 5000)]);
        assert_eq!(receiver.blocks(0), []);
    }

    /// RFC 2018, section 4: the first block holds the segment that caused the acknowledgment.
    #[test]
    fn what_grows_becomes_the_most_recent() {
        let mut receiver = Receiver::default();
        receiver.early(1500, 100).early(2500, 100).early(1600, 100);
        assert_eq!(receiver.blocks(4), [(1500, 1700), (2500, 2600)]);
        receiver.early(2600, 100_000);
        assert_eq!(receiver.blocks(4), [(2500, 102_600), (1500, 1700)], "a run of several pieces is one");
    }

    #[test]
    fn what_is_taken_is_reported_no_more() {
        let mut receiver = Receiver::default();
        receiver.early(1001, 99).early(3000, 10);
        assert!(receiver.early.take(at(1001)).is_some());
        assert_eq!(receiver.blocks(4), [(3000, 3010)]);
        receiver.early(1000, 10);
        assert_eq!(receiver.blocks(4), [(3000, 3010)], "what begins at the acknowledgment is about to be taken");
    }

    /// RFC 2883, section 4.
    #[test]
    fn what_came_twice_comes_first_and_once() {
        let mut receiver = Receiver::default();
        receiver.early(2000, 500);
        receiver.reports.doubled(at(500), at(1000));
        assert_eq!(receiver.blocks(3), [(500, 1000), (2000, 2500)]);
        assert_eq!(receiver.blocks(3), [(2000, 2500)]);
        // Section 4.2: inside a run, which follows.
        receiver.early(4000, 500).reports.doubled(at(2100), at(2200));
        receiver.reports.arrived(at(2100));
        assert_eq!(receiver.blocks(3), [(2100, 2200), (2000, 2500), (4000, 4500)]);
        receiver.reports.doubled(at(7), at(7));
        assert_eq!(receiver.blocks(3), [(2000, 2500), (4000, 4500)], "nothing came twice");
    }

    #[test]
    fn more_runs_than_are_remembered_are_no_trouble() {
        let mut receiver = Receiver::default();
        for number in 0..50 {
            receiver.early(2000 + number * 20, 10);
        }
        assert_eq!(receiver.blocks(4), [(2980, 2990), (2960, 2970), (2940, 2950), (2920, 2930)]);
    }
}
