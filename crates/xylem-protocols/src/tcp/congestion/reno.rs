//! NewReno: slow start and congestion avoidance (RFC 5681), counted in bytes (RFC 3465), from an initial window of ten
//! segments (RFC 6928). Every byte acknowledged counts, however many segments one acknowledgment stands for: where
//! segments are merged on arrival, one acknowledgment does the work of many, and must open the window as they would.

use super::{CongestionControl, Progress};
use serde::{Deserialize, Serialize};
use xylem_core::{Instant, Record};

/// No window grows beyond what a scaled window can express (RFC 7323, section 2.3).
const WINDOW_MAX: u32 = 0x3fff_c000;

/// See the module's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewReno {
    window: u32,
    threshold: u32,
    segment: u32,
    initial: u32,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    counted: u32,
    /// The slow start after a timeout is the careful one (RFC 3465, section 2.3).
    after_timeout: bool,
}

impl NewReno {
    /// Starts with `initial` segments of `segment` bytes: at most ten, and less of large ones (RFC 6928).
    pub fn new(segment: u32, initial: u32) -> NewReno {
        let segment = segment.max(1);
        let initial = (initial * segment).min((2 * segment).max(14_600)).max(segment);
        NewReno { window: initial, threshold: WINDOW_MAX, segment, initial, counted: 0, after_timeout: false }
    }

    fn halved(&self, in_flight: u32) -> u32 {
        (in_flight / 2).max(2 * self.segment)
    }
}

impl CongestionControl for NewReno {
    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        self.threshold
    }

    fn acknowledged(&mut self, progress: &Progress) {
        let slow = self.window < self.threshold;
        // A window that was not used was not tested either: it does not grow.
        let used = if slow { progress.in_flight.saturating_mul(2) } else { progress.in_flight + 2 * self.segment };
        if used < self.window {
            return;
        }
        if slow {
            // After a timeout an acknowledgment may cover what had arrived before it: such a jump is not a measure.
            let most = if self.after_timeout { 2 * self.segment } else { u32::MAX };
            self.window = self.window.saturating_add(progress.bytes.min(most)).min(WINDOW_MAX);
            return;
        }
        self.after_timeout = false;
        self.counted = self.counted.saturating_add(progress.bytes);
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window = (self.window + self.segment).min(WINDOW_MAX);
        }
    }

    fn lost(&mut self, in_flight: u32, _now: Instant) {
        self.threshold = self.halved(in_flight);
        self.window = self.threshold;
        self.counted = 0;
    }

    fn recovered(&mut self, in_flight: u32) {
        // RFC 6582, section 3.2, step 3, the first way: no burst into an empty network.
        self.window = self.threshold.min(in_flight.max(self.segment) + self.segment);
    }

    fn timed_out(&mut self, in_flight: u32, again: bool) {
        if !again {
            self.threshold = self.halved(in_flight);
        }
        self.window = self.segment;
        self.counted = 0;
        self.after_timeout = true;
    }

    fn idle(&mut self) {
        self.window = self.window.min(self.initial);
    }

    fn resize(&mut self, bytes: u32) {
        let bytes = bytes.max(1);
        // The window is counted in segments where it is small: it stays as many of them.
        self.window = self.window.max(bytes);
        self.initial = self.initial.max(bytes);
        self.segment = bytes;
    }

    fn export(&self, record: &mut Record) {
        record.put(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(bytes: u32, in_flight: u32) -> Progress {
        Progress { bytes, in_flight, now: Instant::ZERO }
    }

    #[test]
    fn the_initial_window_follows_rfc_6928() {
        assert_eq!(NewReno::new(1460, 10).window(), 14_600);
        assert_eq!(NewReno::new(536, 10).window(), 5_360);
        assert_eq!(NewReno::new(9000, 10).window(), 18_000, "two large segments, more than 14600 bytes");
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_segment_a_round() {
        let mut reno = NewReno::new(1000, 10);
        reno.acknowledged(&progress(10_000, 10_000));
        assert_eq!(reno.window(), 20_000);
        reno.lost(20_000, Instant::ZERO);
        assert_eq!((reno.window(), reno.threshold()), (10_000, 10_000));
        for _ in 0..10 {
            reno.acknowledged(&progress(1_000, 10_000));
        }
        assert_eq!(reno.window(), 11_000);
    }

    #[test]
    fn a_window_that_was_not_used_does_not_grow() {
        let mut reno = NewReno::new(1000, 10);
        reno.acknowledged(&progress(1_000, 1_000));
        assert_eq!(reno.window(), 10_000);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_half_the_flight_as_threshold_once() {
        let mut reno = NewReno::new(1000, 10);
        reno.timed_out(8_000, false);
        assert_eq!((reno.window(), reno.threshold()), (1_000, 4_000));
        reno.timed_out(1_000, true);
        assert_eq!(reno.threshold(), 4_000, "the same data again says nothing new");
        reno.acknowledged(&progress(7_000, 1_000));
        assert_eq!(reno.window(), 3_000, "a jump after a timeout counts as two segments");
        reno.idle();
        assert_eq!(reno.window(), 3_000);
    }

    #[test]
    fn recovery_ends_without_a_burst() {
        let mut reno = NewReno::new(1000, 10);
        reno.lost(40_000, Instant::ZERO);
        reno.recovered(2_000);
        assert_eq!(reno.window(), 3_000);
    }
}
