//! Loss recovery without selective acknowledgments: limited transmit (RFC 3042), fast retransmit and NewReno's fast
//! recovery (RFC 5681, section 3.2; RFC 6582). It says what an acknowledgment means; the congestion control says how
//! large the window is. SACK and RACK will stand in its place.

use serde::{Deserialize, Serialize};
use xylem_wire::SequenceNumber;

/// Duplicate acknowledgments that mean a loss.
const DUPLICATES_FOR_LOSS: u32 = 3;

/// See the module's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recovery {
    /// Duplicate acknowledgments in a row.
    duplicates: u32,
    /// Where the current recovery ends, or the last one ended (RFC 6582's "recover").
    recover: SequenceNumber,
    active: bool,
    /// The first partial acknowledgment of this recovery has come.
    partial: bool,
    /// Bytes by which duplicates have inflated the window.
    inflation: u32,
}

/// What to do about an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing out of the ordinary.
    Go,
    /// A loss was found: tell the congestion control, send the oldest segment again.
    Enter,
    /// Another loss of the same window: send the oldest segment again. The timer restarts only the first time
    /// (RFC 6582, section 3.2, step 3: the impatient variant).
    Again {
        /// Whether it is the first such acknowledgment.
        first: bool,
    },
    /// The recovery is over: tell the congestion control.
    Leave,
}

impl Recovery {
    /// A connection whose SYN has number `initial`.
    pub fn new(initial: SequenceNumber) -> Recovery {
        Recovery { duplicates: 0, recover: initial, active: false, partial: false, inflation: 0 }
    }

    /// Bytes beyond the congestion window that may be in flight: what has left the network, as duplicates tell, and
    /// before a recovery one segment for each of the first two (RFC 3042).
    pub fn allowance(&self, segment: u32) -> u32 {
        if self.active { self.inflation } else { self.duplicates.min(2) * segment }
    }

    /// A duplicate acknowledgment of `unacknowledged`, while `highest` is the end of what was sent.
    pub fn duplicate(&mut self, unacknowledged: SequenceNumber, highest: SequenceNumber, segment: u32) -> Step {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.active {
            self.inflation = self.inflation.saturating_add(segment);
            return Step::Go;
        }
        // Duplicates that answer what a timeout or the last recovery sent again say nothing (RFC 6582, section 3.2).
        if self.duplicates == DUPLICATES_FOR_LOSS && (unacknowledged - 1).is_at_or_after(self.recover) {
            (self.active, self.partial, self.recover) = (true, false, highest);
            self.inflation = DUPLICATES_FOR_LOSS * segment;
            return Step::Enter;
        }
        Step::Go
    }

    /// `bytes` of new data are acknowledged, up to `acknowledgment`.
    pub fn progress(&mut self, acknowledgment: SequenceNumber, bytes: u32, segment: u32) -> Step {
        self.duplicates = 0;
        if !self.active {
            return Step::Go;
        }
        if acknowledgment.is_at_or_after(self.recover) {
            (self.active, self.inflation) = (false, 0);
            return Step::Leave;
        }
        self.inflation = self.inflation.saturating_sub(bytes);
        if bytes >= segment {
            self.inflation += segment;
        }
        let first = !std::mem::replace(&mut self.partial, true);
        Step::Again { first }
    }

    /// The retransmission timer went off.
    pub fn timed_out(&mut self, highest: SequenceNumber) {
        *self = Recovery { recover: highest, ..Recovery::new(highest) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u32 = 1000;

    fn at(number: u32) -> SequenceNumber {
        SequenceNumber(number)
    }

    #[test]
    fn the_third_duplicate_is_a_loss_and_partial_acknowledgments_are_more() {
        let mut recovery = Recovery::new(at(0));
        assert_eq!(recovery.duplicate(at(5_000), at(15_000), S), Step::Go);
        assert_eq!(recovery.allowance(S), S, "limited transmit: one new segment");
        assert_eq!(recovery.duplicate(at(5_000), at(15_000), S), Step::Go);
        assert_eq!(recovery.allowance(S), 2 * S);
        assert_eq!(recovery.duplicate(at(5_000), at(17_000), S), Step::Enter);
        assert_eq!(recovery.allowance(S), 3 * S);
        assert_eq!(recovery.duplicate(at(5_000), at(17_000), S), Step::Go);
        assert_eq!(recovery.allowance(S), 4 * S);
        assert_eq!(recovery.progress(at(8_000), 3_000, S), Step::Again { first: true });
        assert_eq!(recovery.allowance(S), 2 * S, "deflated by what left, inflated by one");
        assert_eq!(recovery.progress(at(9_000), 1_000, S), Step::Again { first: false });
        assert_eq!(recovery.progress(at(17_000), 8_000, S), Step::Leave);
        assert_eq!(recovery.allowance(S), 0);
    }

    #[test]
    fn duplicates_of_what_a_timeout_sent_again_are_no_loss() {
        let mut recovery = Recovery::new(at(0));
        recovery.timed_out(at(15_000));
        for _ in 0..5 {
            assert_eq!(recovery.duplicate(at(5_000), at(15_000), S), Step::Go);
        }
        recovery.progress(at(15_001), 10_001, S);
        for _ in 0..2 {
            assert_eq!(recovery.duplicate(at(15_001), at(20_000), S), Step::Go);
        }
        assert_eq!(recovery.duplicate(at(15_001), at(20_000), S), Step::Enter);
    }
}
