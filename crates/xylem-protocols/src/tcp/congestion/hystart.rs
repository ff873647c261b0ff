//! HyStart++ (RFC 9406): leaves the first slow start when round trips grow, before the buffer overflows. It watches the
//! shortest round trip of each round; when that has grown, the window grows at a quarter of the speed for some rounds
//! (conservative slow start), which either show that it was a mistake, or end slow start.
//!
//! Two things differ from the RFC's text because one acknowledgment may stand for many segments. Growth for one
//! acknowledgment has no limit L, as for a sender that paces. And of the eight samples that a round needs, one
//! acknowledgment gives as many as a receiver would have sent that acknowledges every second segment: merging took the
//! others away, and what they would have said is what this one says or less, so that the judgement may come late by a
//! part of a round and never from a single round trip of few segments.

use serde::{Deserialize, Serialize};
use xylem_core::Duration;

/// The least growth of the round trip that counts, in microseconds (RFC 9406, section 4.3: MIN_RTT_THRESH).
const GROWTH_MIN_MICROS: u32 = 4_000;
/// The growth that counts in any case (MAX_RTT_THRESH).
const GROWTH_MAX_MICROS: u32 = 16_000;
/// In between it is this part of the round trip (MIN_RTT_DIVISOR).
const GROWTH_DIVISOR: u32 = 8;
/// Samples that a round must have to say something (N_RTT_SAMPLE).
const SAMPLES_MIN: u32 = 8;
/// How much slower the window grows in conservative slow start (CSS_GROWTH_DIVISOR).
const CAREFUL_DIVISOR: u32 = 4;
/// Rounds of it (CSS_ROUNDS).
const CAREFUL_ROUNDS: u8 = 5;
/// No round trip yet.
const NONE: u32 = u32::MAX;

/// See the module's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HyStart {
    phase: Phase,
    /// The shortest round trip of the last round and of this one, in microseconds.
    last_round: u32,
    this_round: u32,
    samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Slow start as ever.
    Fast,
    /// Conservative slow start, entered with this shortest round trip, for so many more rounds.
    Careful { baseline: u32, rounds: u8 },
    /// Slow start is over, and so is the watch.
    Over,
}

/// How the window shall grow in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// By so many bytes.
    By(u32),
    /// Slow start is over: the threshold is the window.
    Leave,
}

impl HyStart {
    pub fn new() -> HyStart {
        HyStart { phase: Phase::Fast, last_round: NONE, this_round: NONE, samples: 0 }
    }

    /// A loss, a mark or a timeout has ended the first slow start; later ones know where to stop.
    pub fn end(&mut self) {
        self.phase = Phase::Over;
    }

    /// `delivered` bytes of segments of `segment` bytes were delivered in slow start, and their round trip measured.
    pub fn acknowledged(
        &mut self,
        delivered: u32,
        segment: u32,
        round_trip: Option<Duration>,
        round_start: bool,
    ) -> Growth {
        if self.phase == Phase::Over {
            return Growth::By(delivered);
        }
        if round_start && self.next_round() {
            return Growth::Leave;
        }
        if let Some(round_trip) = round_trip {
            let micros = u32::try_from(round_trip.as_micros()).unwrap_or(NONE - 1);
            self.this_round = self.this_round.min(micros);
            self.samples = self.samples.saturating_add(delivered.div_ceil(2 * segment).max(1));
            self.judge();
        }
        match self.phase {
            Phase::Fast | Phase::Over => Growth::By(delivered),
            Phase::Careful { .. } => Growth::By((delivered / CAREFUL_DIVISOR).max(1)),
        }
    }

    /// Another round begins. `true`: conservative slow start has lasted long enough.
    fn next_round(&mut self) -> bool {
        (self.last_round, self.this_round, self.samples) = (self.this_round, NONE, 0);
        match &mut self.phase {
            Phase::Careful { rounds: 0 | 1, .. } => {
                self.phase = Phase::Over;
                true
            }
            Phase::Careful { rounds, .. } => {
                *rounds -= 1;
                false
            }
            Phase::Fast | Phase::Over => false,
        }
    }

    fn judge(&mut self) {
        if self.samples < SAMPLES_MIN {
            return;
        }
        match self.phase {
            Phase::Fast if self.last_round != NONE => {
                let growth = (self.last_round / GROWTH_DIVISOR).clamp(GROWTH_MIN_MICROS, GROWTH_MAX_MICROS);
                if self.this_round >= self.last_round.saturating_add(growth) {
                    self.phase = Phase::Careful { baseline: self.this_round, rounds: CAREFUL_ROUNDS };
                }
            }
            // The round trip has shrunk again: leaving would have been a mistake.
            Phase::Careful { baseline, .. } if self.this_round < baseline => self.phase = Phase::Fast,
            Phase::Fast | Phase::Careful { .. } | Phase::Over => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u32 = 1000;

    /// A round of `count` acknowledgments of two segments each with the same round trip in milliseconds; the last growth.
    fn round(hystart: &mut HyStart, count: u32, ms: u64) -> Growth {
        let mut growth = Growth::By(0);
        for index in 0..count {
            growth = hystart.acknowledged(2 * S, S, Some(Duration::from_millis(ms)), index == 0);
            if growth == Growth::Leave {
                break;
            }
        }
        growth
    }

    /// RFC 9438 4.10.
    #[test]
    fn growth_of_an_eighth_slows_down_and_five_rounds_later_it_is_over() {
        let mut hystart = HyStart::new();
        assert_eq!(round(&mut hystart, 8, 80), Growth::By(2 * S));
        assert_eq!(round(&mut hystart, 8, 89), Growth::By(2 * S), "less than an eighth");
        assert_eq!(round(&mut hystart, 7, 101), Growth::By(2 * S), "too few samples");
        assert_eq!(round(&mut hystart, 8, 114), Growth::By(S / 2), "101 + 101 / 8 = 113.6");
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, 8, 114), Growth::By(S / 2));
        }
        assert_eq!(round(&mut hystart, 8, 114), Growth::Leave);
        assert_eq!(round(&mut hystart, 8, 500), Growth::By(2 * S), "nothing is watched any more");
    }

    #[test]
    fn a_round_trip_that_shrinks_again_was_a_mistake() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 8, 20);
        assert_eq!(round(&mut hystart, 8, 24), Growth::By(S / 2), "4 ms are enough, although an eighth is less");
        assert_eq!(round(&mut hystart, 8, 23), Growth::By(2 * S));
    }

    /// Sixteen segments in one acknowledgment say as much as eight acknowledgments of two.
    #[test]
    fn merged_acknowledgments_are_enough_samples() {
        let mut hystart = HyStart::new();
        let ms = Duration::from_millis;
        hystart.acknowledged(16 * S, S, Some(ms(20)), true);
        assert_eq!(hystart.acknowledged(14 * S, S, Some(ms(30)), true), Growth::By(14 * S), "seven are too few");
        assert_eq!(hystart.acknowledged(2 * S, S, Some(ms(30)), false), Growth::By(S / 2));
    }
}
