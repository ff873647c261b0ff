//! BBR, version 3 as its draft has it (draft-ietf-ccwg-bbr): sends as fast as data is delivered, with as much in flight as
//! the path holds, instead of filling its buffers until something is lost. `model` knows the path - how fast, how long,
//! how much it bears -, `phase` decides what is tried when, and this file turns both into a window and a pace.
//!
//! The draft handles each lost packet by itself; here one acknowledgment's losses are judged together, for one may stand
//! for forty. Gains are whole percents, rates bytes a second, and chance comes from a seed.

mod model;
mod phase;

use super::{CongestionControl, Loss, Progress, Sent, Start, WINDOW_MAX};
use model::Model;
use phase::{Gains, Phases};
use serde::{Deserialize, Serialize};
use xylem_core::{BadRecord, Duration, Instant, Record};

/// Segments that must be in flight so that acknowledgments keep coming (section 2.7: MinPipeCwnd).
const SEGMENTS_MIN: u32 = 4;
/// The pace stays so many percent below the estimate, so that queues drain (section 2.7).
const MARGIN_PERCENT: u64 = 1;
/// The round trip assumed before one is measured (section 5.6.2).
const ROUND_TRIP_ASSUMED: Duration = Duration::from_millis(1);
/// No round trip of a record is believed to be longer: connections are given up sooner.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(3600);
/// No pace is faster than this, in bytes a second: 2^40, more than any link.
const RATE_MAX: u64 = 1 << 40;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Bbr {
    segment: u32,
    /// The initial window in bytes.
    initial: u32,
    window: u32,
    /// Bytes a second.
    pace: u64,
    model: Model,
    phases: Phases,
    /// The window before a recovery, a timeout or a round-trip probe reduced it.
    saved: u32,
    recovery: Recovery,
    /// Bytes delivered so far, at most the initial window: the window grows at least that far.
    delivered: u32,
    /// Sending went on after a pause: an old estimate of the round trip is no reason to probe for it now.
    restarted: bool,
    /// What the model was before the last loss, in case it was none.
    before: Option<model::Bounds>,
}

/// What a loss does to the window for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// Nothing.
    None,
    /// Until a round is over, what is delivered is replaced and no more (packet conservation, section 5.6.4.4).
    Conserving,
    /// The rest of a recovery.
    Repairing,
}

/// What moves with a connection: the path, as far as it is known. The rest is found again in a round or two.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct BbrRecord {
    segment: u32,
    initial: u32,
    window: u32,
    bandwidth: u64,
    round_trip_min: Option<Duration>,
    full: bool,
    seed: u32,
}

impl Bbr {
    /// One for a new connection.
    pub fn new(start: &Start) -> Bbr {
        let mut bbr = Bbr {
            segment: start.segment,
            initial: start.initial,
            window: start.window,
            pace: 0,
            model: Model::new(start.now),
            phases: Phases::new(start.seed, start.now),
            saved: 0,
            recovery: Recovery::None,
            delivered: 0,
            restarted: false,
            before: None,
        };
        bbr.begin_pace(ROUND_TRIP_ASSUMED);
        bbr
    }

    /// One that goes on from a record: with the path as it was known, and a fresh look at it.
    ///
    /// # Errors
    /// [`BadRecord`] if there is none, or it holds what no BBR ever was.
    pub fn import(start: &Start, record: &mut Record) -> Result<Bbr, BadRecord> {
        let record: BbrRecord = record.take("the state of BBR")?;
        let is_sane = (1..=u32::from(u16::MAX)).contains(&record.segment)
            && (record.segment..=WINDOW_MAX).contains(&record.window)
            && (record.segment..=WINDOW_MAX).contains(&record.initial)
            && record.bandwidth <= RATE_MAX
            && record.round_trip_min.is_none_or(|round_trip| round_trip <= ROUND_TRIP_MAX);
        if !is_sane {
            return Err(BadRecord { at: 0, expected: "a state that BBR can be in" });
        }
        let (segment, initial, window) = (record.segment, record.initial, record.window);
        let mut bbr = Bbr::new(&Start { segment, initial, window, now: start.now, seed: record.seed });
        bbr.model.go_on(record.bandwidth, record.round_trip_min, start.now);
        if record.full && record.bandwidth > 0 {
            bbr.phases.go_on(start.now);
            bbr.set_pace(bbr.phases.gains());
        }
        Ok(bbr)
    }

    fn least(&self) -> u32 {
        SEGMENTS_MIN * self.segment
    }

    /// The pace before anything is known: the initial window in a round trip, with the gain of Startup.
    fn begin_pace(&mut self, round_trip: Duration) {
        let nanoseconds = round_trip.as_nanos().max(1);
        let nominal = u128::from(self.window) * 1_000_000_000 / nanoseconds;
        self.pace = percent(nominal.min(u128::from(RATE_MAX)) as u64, self.phases.gains().pace).min(RATE_MAX);
    }

    /// Bytes that go at once (section 5.6.3): a millisecond's worth, at least two segments.
    fn quantum(&self) -> u32 {
        ((self.pace / 1000).min(64 * 1024) as u32).max(2 * self.segment)
    }

    /// A volume raised to what the unevenness of sending needs (section 5.6.4.2).
    fn with_quanta(&self, bytes: u32) -> u32 {
        let raised = bytes.max(3 * self.quantum()).max(self.least());
        if self.phases.is_up() { raised + 2 * self.segment } else { raised }
    }

    /// The volume in flight that `gain_percent` of the path holds.
    fn in_flight_at(&self, gain_percent: u64) -> u32 {
        self.with_quanta(self.volume(self.model.bandwidth_max(), gain_percent))
    }

    /// What a path of this bandwidth holds in its shortest round trip, times a gain; the initial window while unknown.
    fn volume(&self, bandwidth: u64, gain_percent: u64) -> u32 {
        let product = match self.model.round_trip_min() {
            Some(round_trip) => u128::from(bandwidth) * round_trip.as_nanos() / 1_000_000_000,
            None => u128::from(self.initial),
        };
        (product * u128::from(gain_percent) / 100).min(u128::from(WINDOW_MAX)) as u32
    }

    fn set_pace(&mut self, gains: Gains) {
        let rate = percent(percent(self.model.bandwidth(), gains.pace), 100 - MARGIN_PERCENT).min(RATE_MAX);
        if rate > 0 && (self.phases.is_full() || rate > self.pace) {
            self.pace = rate;
        }
    }

    /// Section 5.6.4.6 and its parts.
    fn set_window(&mut self, progress: &Progress, gains: Gains) {
        let most =
            self.with_quanta(self.volume(self.model.bandwidth(), gains.window).saturating_add(self.model.aggregated()));
        let delivered = progress.delivered;
        let mut window = self.window;
        if self.recovery != Recovery::None && progress.lost > 0 {
            window = window.saturating_sub(progress.lost).max(self.segment);
        }
        if self.recovery == Recovery::Conserving {
            window = window.max(progress.in_flight.saturating_add(delivered));
        } else if self.phases.is_full() {
            window = window.saturating_add(delivered).min(most);
        } else if window < most || self.delivered < self.initial {
            window = window.saturating_add(delivered);
        }
        window = window.max(self.least());
        if self.phases.is_probing_round_trip() {
            window = window.min(self.probing_window());
        }
        self.window = window.min(self.model_bound()).min(WINDOW_MAX);
    }

    /// The window of the round-trip probe (section 5.3.4.3).
    fn probing_window(&self) -> u32 {
        self.volume(self.model.bandwidth(), phase::PROBE_ROUND_TRIP_WINDOW).max(self.least())
    }

    /// What losses have taught about the volume that the path bears (section 5.6.4.7).
    fn model_bound(&self) -> u32 {
        let long = if self.phases.leaves_headroom() {
            self.model.bounds.with_headroom(self.segment, self.least())
        } else if self.phases.is_probing_bandwidth_cycle() {
            self.model.bounds.long
        } else {
            u32::MAX
        };
        long.min(self.model.bounds.short).max(self.least())
    }

    fn save_window(&mut self) {
        let is_reduced = self.recovery != Recovery::None || self.phases.is_probing_round_trip();
        self.saved = if is_reduced { self.saved.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.saved);
    }
}

fn percent(number: u64, percent: u64) -> u64 {
    number.saturating_mul(percent) / 100
}

impl CongestionControl for Bbr {
    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        // There is none: what stands for slow start is the phase.
        if self.phases.is_full() { self.window } else { WINDOW_MAX }
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pace)
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn sent(&mut self, sent: &Sent) {
        if sent.in_flight_before > 0 || !sent.application_limited {
            return;
        }
        // Section 5.4.1: after a pause, at the pace of the path and no faster.
        self.restarted = true;
        self.model.aggregation_begins(sent.now);
        if self.phases.is_probing_bandwidth_cycle() {
            let pace = percent(self.model.bandwidth(), 100 - MARGIN_PERCENT).min(RATE_MAX);
            self.pace = if pace > 0 { pace } else { self.pace };
        }
    }

    fn acknowledged(&mut self, progress: &Progress) {
        self.delivered = self.delivered.saturating_add(progress.delivered).min(WINDOW_MAX);
        let had_round_trip = self.model.round_trip_min().is_some();
        let cycle = self.phases.cycle();
        self.model.observe(progress, cycle, self.phases.is_probing_bandwidth(), self.window);
        if self.model.round_start && self.recovery == Recovery::Conserving {
            self.recovery = Recovery::Repairing;
        }
        let was_probing = self.phases.is_probing_round_trip();
        self.step(progress);
        if self.phases.is_probing_round_trip() && !was_probing {
            self.save_window();
        } else if was_probing && !self.phases.is_probing_round_trip() {
            self.restore_window();
        }
        if progress.delivered > 0 {
            self.restarted = false;
        }
        if let (false, Some(round_trip), false) = (had_round_trip, self.model.round_trip_min(), self.phases.is_full()) {
            self.begin_pace(round_trip);
        }
        self.model.advance(progress);
        let gains = self.phases.gains();
        self.set_pace(gains);
        self.set_window(progress, gains);
    }

    fn lost(&mut self, _loss: &Loss) {
        self.before = Some(self.model.bounds);
        self.save_window();
        self.recovery = Recovery::Conserving;
        self.model.begin_round();
    }

    fn timed_out(&mut self, _loss: &Loss, again: bool) {
        if !again {
            self.before = Some(self.model.bounds);
            self.save_window();
        }
        // All in flight counts as lost: one segment goes, and the window comes back as what goes is delivered.
        self.recovery = Recovery::None;
        self.window = self.segment;
    }

    fn recovered(&mut self, _in_flight: u32, _now: Instant) {
        if self.recovery != Recovery::None {
            self.recovery = Recovery::None;
            self.restore_window();
        }
    }

    fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.model.bounds.restore(&before);
            self.model.forget_losses();
            self.recovery = Recovery::None;
            self.restore_window();
        }
    }

    fn marked(&mut self, _loss: &Loss) {
        // The draft leaves marks open; those of RFC 3168 say what a loss says: this round was too much.
        self.model.note_loss();
    }

    fn resize(&mut self, bytes: u32) {
        self.segment = bytes.clamp(1, u32::from(u16::MAX));
        self.window = self.window.max(self.segment);
        self.initial = self.initial.max(self.segment);
    }

    fn export(&self, record: &mut Record) {
        record.put(&BbrRecord {
            segment: self.segment,
            initial: self.initial,
            window: self.window,
            bandwidth: self.model.bandwidth_max(),
            round_trip_min: self.model.round_trip_min(),
            full: self.phases.is_full(),
            seed: self.phases.seed(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_no_bbr_ever_was_is_refused() {
        let start = Start::new(1000, 10, Instant::ZERO, 7);
        let whole = BbrRecord {
            segment: 1000,
            initial: 10_000,
            window: 20_000,
            bandwidth: 1_000_000,
            round_trip_min: Some(Duration::from_millis(40)),
            full: true,
            seed: 1,
        };
        let read = |record: BbrRecord| {
            let mut bytes = Record::default();
            bytes.put(&record);
            Bbr::import(&start, &mut bytes).is_ok()
        };
        assert!(read(whole));
        assert!(!read(BbrRecord { segment: 0, ..whole }));
        assert!(!read(BbrRecord { segment: 70_000, window: 80_000, initial: 80_000, ..whole }));
        assert!(!read(BbrRecord { window: 999, ..whole }));
        assert!(!read(BbrRecord { window: WINDOW_MAX + 1, ..whole }));
        assert!(!read(BbrRecord { initial: 999, ..whole }));
        assert!(!read(BbrRecord { bandwidth: RATE_MAX + 1, ..whole }));
        assert!(!read(BbrRecord { round_trip_min: Some(ROUND_TRIP_MAX + Duration::from_nanos(1)), ..whole }));
    }
}
