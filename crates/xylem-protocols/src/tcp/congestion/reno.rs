//! NewReno: slow start and congestion avoidance (RFC 5681), counted in bytes (RFC 3465), from an initial window of ten
//! segments (RFC 6928). Every byte acknowledged counts, however many segments one acknowledgment stands for: where
//! segments are merged on arrival, one acknowledgment does the work of many, and must open the window as they would.

use super::{CongestionControl, Loss, Progress, Start, WINDOW_MAX, after_idle};
use serde::{Deserialize, Serialize};
use xylem_core::{BadRecord, Duration, Instant, Record};

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
    /// Window and threshold before the last loss, in case it was none.
    #[serde(skip)]
    before: Option<(u32, u32)>,
}

impl NewReno {
    /// One for a new connection.
    pub fn new(start: &Start) -> NewReno {
        let (window, segment) = (start.window, start.segment);
        NewReno {
            window,
            threshold: WINDOW_MAX,
            segment,
            initial: start.initial,
            counted: 0,
            after_timeout: false,
            before: None,
        }
    }

    /// One that goes on from a record.
    ///
    /// # Errors
    /// [`BadRecord`] if there is none, or it holds what no Reno ever was.
    pub fn import(record: &mut Record) -> Result<NewReno, BadRecord> {
        let reno: NewReno = record.take("the state of Reno")?;
        let is_sane = (1..=u32::from(u16::MAX)).contains(&reno.segment)
            && (reno.segment..=WINDOW_MAX).contains(&reno.window)
            && reno.threshold <= WINDOW_MAX
            && reno.initial <= WINDOW_MAX;
        let wrong = BadRecord { at: 0, expected: "a state that Reno can be in" };
        is_sane.then_some(reno).ok_or(wrong)
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
        if progress.in_recovery || !progress.limited {
            return;
        }
        if self.window < self.threshold {
            // After a timeout an acknowledgment may cover what had arrived before it: such a jump is not a measure.
            let most = if self.after_timeout { 2 * self.segment } else { u32::MAX };
            self.window = self.window.saturating_add(progress.delivered.min(most)).min(WINDOW_MAX);
            return;
        }
        self.after_timeout = false;
        self.counted = self.counted.saturating_add(progress.delivered);
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window = (self.window + self.segment).min(WINDOW_MAX);
        }
    }

    fn lost(&mut self, loss: &Loss) {
        self.before = Some((self.window, self.threshold));
        self.threshold = self.halved(loss.in_flight);
        self.window = self.threshold;
        self.counted = 0;
    }

    fn marked(&mut self, loss: &Loss) {
        self.lost(loss);
        // The threshold has a floor of two segments, the window of one (RFC 3168, section 6.1.2).
        self.window = self.window.min((loss.in_flight / 2).max(self.segment));
    }

    fn timed_out(&mut self, loss: &Loss, again: bool) {
        if !again {
            self.before = Some((self.window, self.threshold));
            self.threshold = self.halved(loss.in_flight);
        }
        self.window = self.segment;
        self.counted = 0;
        self.after_timeout = true;
    }

    fn recovered(&mut self, in_flight: u32, _now: Instant) {
        // RFC 6582, section 3.2, step 3, the first way: no burst into an empty network.
        self.window = self.threshold.min(in_flight.max(self.segment) + self.segment);
    }

    fn undo(&mut self) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
            self.after_timeout = false;
        }
    }

    fn idle(&mut self, idle: Duration, timeout: Duration, _now: Instant) {
        after_idle(&mut self.window, &mut self.threshold, self.initial, idle, timeout);
    }

    fn resize(&mut self, bytes: u32) {
        let bytes = bytes.clamp(1, u32::from(u16::MAX));
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

    const S: u32 = 1000;

    fn reno() -> NewReno {
        NewReno::new(&Start::new(S, 10, Instant::ZERO, 0))
    }

    fn progress(bytes: u32, in_flight: u32) -> Progress {
        Progress::in_order(Instant::ZERO, bytes, in_flight)
    }

    fn loss(in_flight: u32) -> Loss {
        Loss { now: Instant::ZERO, in_flight, bytes: S }
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_segment_a_round() {
        let mut reno = reno();
        reno.acknowledged(&progress(10_000, 10_000));
        assert_eq!(reno.window(), 20_000);
        reno.lost(&loss(20_000));
        assert_eq!((reno.window(), reno.threshold()), (10_000, 10_000));
        for _ in 0..10 {
            reno.acknowledged(&progress(1_000, 10_000));
        }
        assert_eq!(reno.window(), 11_000);
    }

    #[test]
    fn a_window_that_was_not_used_does_not_grow() {
        let mut reno = reno();
        reno.acknowledged(&Progress { limited: false, ..progress(1_000, 1_000) });
        assert_eq!(reno.window(), 10_000);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_half_the_flight_as_threshold_once() {
        let mut reno = reno();
        reno.timed_out(&loss(8_000), false);
        assert_eq!((reno.window(), reno.threshold()), (1_000, 4_000));
        reno.timed_out(&loss(1_000), true);
        assert_eq!(reno.threshold(), 4_000, "the same data again says nothing new");
        reno.acknowledged(&progress(7_000, 1_000));
        assert_eq!(reno.window(), 3_000, "a jump after a timeout counts as two segments");
        reno.idle(Duration::from_secs(1), Duration::from_secs(1), Instant::ZERO);
        assert_eq!(reno.window(), 3_000);
    }

    #[test]
    fn recovery_ends_without_a_burst() {
        let mut reno = reno();
        reno.lost(&loss(40_000));
        reno.recovered(2_000, Instant::ZERO);
        assert_eq!(reno.window(), 3_000);
    }

    #[test]
    fn a_loss_that_was_none_is_taken_back_once() {
        let mut reno = reno();
        reno.acknowledged(&progress(10_000, 10_000));
        reno.timed_out(&loss(20_000), false);
        reno.timed_out(&loss(20_000), true);
        reno.undo();
        assert_eq!((reno.window(), reno.threshold()), (20_000, WINDOW_MAX));
        reno.lost(&loss(20_000));
        reno.undo();
        reno.undo();
        assert_eq!(reno.window(), 20_000);
    }
}
