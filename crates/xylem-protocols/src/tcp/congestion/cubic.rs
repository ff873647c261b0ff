//! CUBIC (RFC 9438): after a loss the window comes back to where it was along a cubic curve of time, flat around the old
//! place and steep far from it, so that growth does not depend on the round trip; where Reno would be faster, it grows as
//! Reno. Slow start is watched by HyStart++. All in whole numbers: windows in bytes with sixteen binary places where
//! small parts add up, times in microseconds.

use super::hystart::{Growth, HyStart};
use super::root::cube_root;
use super::{CongestionControl, Loss, Progress, Sent, Start, WINDOW_MAX, after_idle};
use serde::{Deserialize, Serialize};
use xylem_core::{BadRecord, Duration, Instant, Record};

/// What is left of the window after a loss (RFC 9438 4.6-1: beta 0.7), in tenths.
const BETA_TENTHS: u64 = 7;
/// The constant C of the curve, 0.4 segments / s^3 (RFC 9438 5.1), in tenths.
const C_TENTHS: u128 = 4;
/// Microseconds of a second, cubed.
const CUBIC_SECOND: u128 = 1_000_000_000_000_000_000;
/// Times on the curve end here, in microseconds: more than an hour, long after any window is full. Its cube times a
/// segment stays far below 2^128.
const TIME_MAX: u64 = u32::MAX as u64;
/// Binary places of what adds up slowly.
const PLACES: u32 = 16;

/// See the module's text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cubic {
    window: u32,
    threshold: u32,
    segment: u32,
    initial: u32,
    /// The part of a byte by which the window has grown, in 2^-16.
    part: u32,
    /// Where the curve is flat: the window before the last loss, or less for fast convergence (W_max); 0 before one.
    flat: u32,
    /// The window before the last loss (cwnd_prior).
    prior: u32,
    /// The growth since congestion avoidance began, if it has.
    epoch: Option<Epoch>,
    hystart: HyStart,
    /// A timeout ended what was before: the curve begins where avoidance does, and in slow start jumps are no measure.
    after_timeout: bool,
    /// When the last acknowledgment came. Times do not move.
    #[serde(skip)]
    heard_at: Option<Instant>,
    /// What it was before the last loss, in case it was none (RFC 9438 4.9).
    #[serde(skip)]
    before: Option<Box<Cubic>>,
}

const _: () = assert!(size_of::<Cubic>() <= 160, "a connection that does nothing costs little");

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Epoch {
    /// How long it has lasted, in microseconds, without the time in which the application sent little (RFC 9438 4.2-3).
    elapsed: u64,
    /// When the curve is flat, in microseconds after the stage began (K).
    to_flat: u64,
    /// The window there, in bytes.
    flat: u32,
    /// What Reno's window would be, in bytes with sixteen binary places (W_est).
    reno: u64,
}

impl Cubic {
    /// One for a new connection.
    pub fn new(start: &Start) -> Cubic {
        Cubic {
            window: start.window,
            threshold: WINDOW_MAX,
            segment: start.segment,
            initial: start.initial,
            part: 0,
            flat: 0,
            prior: 0,
            epoch: None,
            hystart: HyStart::new(),
            after_timeout: false,
            heard_at: None,
            before: None,
        }
    }

    /// One that goes on from a record.
    ///
    /// # Errors
    /// [`BadRecord`] if there is none, or it holds what no CUBIC ever was.
    pub fn import(record: &mut Record) -> Result<Cubic, BadRecord> {
        let cubic: Cubic = record.take("the state of CUBIC")?;
        let is_sane = (1..=u32::from(u16::MAX)).contains(&cubic.segment)
            && (cubic.segment..=WINDOW_MAX).contains(&cubic.window)
            && [cubic.threshold, cubic.flat, cubic.prior, cubic.initial].iter().all(|it| *it <= WINDOW_MAX)
            && cubic.part < 1 << PLACES
            && cubic.epoch.is_none_or(|epoch| epoch.is_sane());
        let wrong = BadRecord { at: 0, expected: "a state that CUBIC can be in" };
        is_sane.then_some(cubic).ok_or(wrong)
    }

    /// A window, or a flight, after a loss (RFC 9438 4.6-1), and two segments at least (RFC 9438 4.6-2).
    fn reduced(&self, bytes: u32) -> u32 {
        let less = u64::from(bytes) * BETA_TENTHS / 10;
        // Less than a window is less than 2^32.
        (less as u32).max(2 * self.segment)
    }

    /// Remembers the place of a loss (RFC 9438 4.7) and where to come back to if it was none (RFC 9438 4.9).
    fn remember_loss(&mut self, in_flight: u32) {
        self.before = None;
        self.before = Some(Box::new(self.clone()));
        self.prior = self.window;
        // Fast convergence: lost before the window was back means that somebody else has come, and gets room.
        let lowered = u64::from(self.window) * (10 + BETA_TENTHS) / 20;
        self.flat = if self.window < self.flat { lowered as u32 } else { self.window };
        self.threshold = self.reduced(in_flight);
        self.epoch = None;
        self.part = 0;
        self.hystart.end();
    }

    /// Adds bytes with binary places to the window.
    fn grow(&mut self, by: u64) {
        let sum = (u64::from(self.window) << PLACES) + u64::from(self.part) + by;
        let whole = sum >> PLACES;
        if whole >= u64::from(WINDOW_MAX) {
            (self.window, self.part) = (WINDOW_MAX, 0);
        } else {
            self.window = whole as u32;
            self.part = (sum & ((1 << PLACES) - 1)) as u32;
        }
    }

    /// RFC 9438 4.10.
    fn slow_start(&mut self, progress: &Progress) {
        let growth =
            self.hystart.acknowledged(progress.delivered, self.segment, progress.round_trip, progress.round_start);
        match growth {
            Growth::By(bytes) => {
                // After a timeout an acknowledgment may cover what had arrived before it.
                let most = if self.after_timeout { 2 * self.segment } else { u32::MAX };
                self.grow(u64::from(bytes.min(most)) << PLACES);
            }
            Growth::Leave => (self.threshold, self.prior) = (self.window, self.window),
        }
    }

    /// A stage of congestion avoidance begins (RFC 9438 4.2-1; after a timeout RFC 9438 4.8).
    fn begin_epoch(&mut self) -> Epoch {
        let is_below = !self.after_timeout && self.flat > self.window;
        self.after_timeout = false;
        let flat = if is_below { self.flat } else { self.window };
        Epoch {
            elapsed: 0,
            to_flat: time_to(flat - self.window, self.segment),
            flat,
            reno: u64::from(self.window) << PLACES,
        }
    }

    fn avoid(&mut self, progress: &Progress, passed: Duration) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(),
        };
        epoch.elapsed = epoch.elapsed.saturating_add(micros(passed)).min(TIME_MAX);
        epoch.reno = (epoch.reno + self.reno_growth(&epoch, progress.delivered)).min(u64::from(WINDOW_MAX) << PLACES);
        let reno = (epoch.reno >> PLACES) as u32;
        if epoch.window(epoch.elapsed, self.segment) < reno {
            // RFC 9438 4.3-1: where Reno would be ahead, this is Reno.
            if reno > self.window {
                (self.window, self.part) = (reno, 0);
            }
        } else {
            let round_trip = micros(progress.smoothed.or(progress.round_trip).unwrap_or_default());
            let target = epoch.window(epoch.elapsed.saturating_add(round_trip).min(TIME_MAX), self.segment);
            // At most half as much again in a round trip (RFC 9438 4.2-2).
            let target = target.clamp(self.window, (self.window + self.window / 2).min(WINDOW_MAX));
            let missing = u64::from(target - self.window);
            // Both factors are below 2^30, so that places for sixteen more bits need 128.
            let by = ((u128::from(missing) * u128::from(progress.delivered)) << PLACES) / u128::from(self.window);
            self.grow(by.min(u128::from(missing) << PLACES) as u64);
        }
        self.epoch = Some(epoch);
    }

    /// How much Reno's window grows for `delivered` bytes, with sixteen binary places (RFC 9438 4.3-2): by alpha = 3 * (1 -
    /// beta) / (1 + beta) = 9 / 17 segments a window until it is where it was before the loss, by one segment afterwards.
    fn reno_growth(&self, epoch: &Epoch, delivered: u32) -> u64 {
        let (part, whole) = if epoch.reno < u64::from(self.prior) << PLACES { (9, 17) } else { (1, 1) };
        let segments = (u128::from(delivered) * u128::from(self.segment)) << PLACES;
        (segments * part / (whole * u128::from(self.window))) as u64
    }
}

impl Epoch {
    fn is_sane(&self) -> bool {
        self.elapsed <= TIME_MAX
            && self.to_flat <= TIME_MAX
            && self.flat <= WINDOW_MAX
            && self.reno >> PLACES <= u64::from(WINDOW_MAX)
    }

    /// W_cubic (RFC 9438 4.2-1, figure 1): the window on the curve after `elapsed` microseconds, in bytes.
    fn window(&self, elapsed: u64, segment: u32) -> u32 {
        let distance = u128::from(elapsed.abs_diff(self.to_flat));
        let bytes = C_TENTHS * u128::from(segment) * distance.pow(3) / (10 * CUBIC_SECOND);
        let bytes = bytes.min(u128::from(WINDOW_MAX)) as u32;
        if elapsed < self.to_flat {
            self.flat.saturating_sub(bytes)
        } else {
            self.flat.saturating_add(bytes).min(WINDOW_MAX)
        }
    }
}

/// K (RFC 9438 4.2-1, figure 2): how long the curve takes to rise by `bytes`, in microseconds.
fn time_to(bytes: u32, segment: u32) -> u64 {
    cube_root(u128::from(bytes) * 10 * CUBIC_SECOND / (C_TENTHS * u128::from(segment))).min(TIME_MAX)
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl CongestionControl for Cubic {
    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        self.threshold
    }

    fn acknowledged(&mut self, progress: &Progress) {
        let passed = self.heard_at.map_or(Duration::ZERO, |at| progress.now.since(at));
        self.heard_at = Some(progress.now);
        if progress.in_recovery || !progress.limited {
            return;
        }
        if self.window < self.threshold {
            self.slow_start(progress);
        } else {
            self.avoid(progress, passed);
        }
    }

    fn sent(&mut self, sent: &Sent) {
        if sent.in_flight_before == 0 {
            // Nothing was under way: the time until now is not the network's.
            self.heard_at = Some(sent.now);
        }
    }

    fn lost(&mut self, loss: &Loss) {
        self.remember_loss(loss.in_flight);
        self.window = self.threshold;
    }

    fn marked(&mut self, loss: &Loss) {
        self.lost(loss);
        // The threshold has a floor of two segments, the window of one (RFC 3168, section 6.1.2).
        let left = u64::from(loss.in_flight) * BETA_TENTHS / 10;
        self.window = self.window.min((left as u32).max(self.segment));
    }

    fn timed_out(&mut self, loss: &Loss, again: bool) {
        if !again {
            self.remember_loss(loss.in_flight);
        }
        (self.window, self.part) = (self.segment, 0);
        self.after_timeout = true;
    }

    fn recovered(&mut self, in_flight: u32, _now: Instant) {
        // No burst into an empty network (RFC 6582, section 3.2, step 3).
        self.window = self.threshold.min(in_flight.max(self.segment) + self.segment);
    }

    fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            let window = self.window.max(before.window);
            let (segment, initial, heard_at) = (self.segment, self.initial, self.heard_at);
            *self = Cubic { window, segment, initial, heard_at, ..*before };
        }
    }

    fn idle(&mut self, idle: Duration, timeout: Duration, _now: Instant) {
        let was = self.window;
        after_idle(&mut self.window, &mut self.threshold, self.initial, idle, timeout);
        if self.window < was {
            (self.part, self.epoch) = (0, None);
        }
    }

    fn resize(&mut self, bytes: u32) {
        let bytes = bytes.clamp(1, u32::from(u16::MAX));
        self.window = self.window.max(bytes);
        self.initial = self.initial.max(bytes);
        if bytes != self.segment {
            // The curve is drawn in segments.
            self.epoch = None;
        }
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
    const ROUND: Duration = Duration::from_millis(100);

    fn loss(in_flight: u32) -> Loss {
        Loss { now: Instant::ZERO, in_flight, bytes: S }
    }

    /// A window of `segments` at a loss.
    fn lost_at(segments: u32) -> Cubic {
        let mut cubic = Cubic::new(&Start::new(S, 10, Instant::ZERO, 0));
        cubic.window = segments * S;
        cubic.lost(&loss(segments * S));
        cubic
    }

    /// Whole windows acknowledged, in ten acknowledgments each, over `rounds` rounds from `from` on.
    fn run(cubic: &mut Cubic, from: Instant, rounds: u32, round: Duration) -> Instant {
        let mut now = from;
        for _ in 0..rounds {
            let window = cubic.window();
            for _ in 0..10 {
                now = now + round / 10;
                let progress = Progress::in_order(now, window / 10, window);
                cubic.acknowledged(&Progress { smoothed: Some(round), ..progress });
            }
        }
        now
    }

    /// RFC 9438 4.2-1, RFC 9438 5.1, RFC 9438 4.6-1 by hand: W_max = 100 segments, window 70 after the loss: K = cbrt(30 / 0.4) = 4.2172 s, and W(t) = 0.4 *
    /// (t - 4.2172)^3 + 100: 95.5... after 2 s: 0.4 * (-2.2172)^3 = -4.36.
    #[test]
    fn the_curve_is_the_formula() {
        let mut cubic = lost_at(100);
        assert_eq!(cubic.window(), 70 * S);
        let epoch = cubic.begin_epoch();
        assert_eq!(epoch.to_flat, 4_217_163);
        // 100 - 0.4 * 2.217163^3 = 95.6404, and 100 + 0.4 * 2.999837^3 = 110.7982.
        for (ms, bytes) in [(0, 70_000), (2_000, 95_640), (4_217, 100_000), (7_217, 110_798)] {
            let window = epoch.window(ms * 1000, S);
            assert!(window.abs_diff(bytes) <= 1, "{window} after {ms} ms");
        }
        assert_eq!(epoch.window(TIME_MAX, S), WINDOW_MAX);
    }

    /// RFC 9438 4.2-1: followed acknowledgment by acknowledgment, the window is on the curve: within a segment after K, and a half more
    /// after another three seconds.
    #[test]
    fn the_window_follows_the_curve() {
        let mut cubic = lost_at(1000);
        // K = cbrt(300 / 0.4) = 9.0856 s.
        let now = run(&mut cubic, Instant::ZERO, 91, ROUND);
        assert!(cubic.window().abs_diff(1000 * S) <= 2 * S, "{}", cubic.window());
        run(&mut cubic, now, 60, ROUND);
        // 0.4 * (15.1 - 9.0856)^3 = 87 segments above.
        assert!(cubic.window().abs_diff(1087 * S) <= 8 * S, "{}", cubic.window());
    }

    /// RFC 9438 4.3-1, RFC 9438 4.3-2: with a short round trip and a small window Reno's growth is faster than the curve, and is taken: 9/17
    /// of a segment a round until the old window, one segment afterwards.
    #[test]
    fn where_reno_is_faster_it_is_reno() {
        let mut cubic = lost_at(20);
        run(&mut cubic, Instant::ZERO, 10, Duration::from_millis(1));
        // 14 segments + 10 * 9 / 17 = 19.3, a little less since the window grows within a round.
        assert!((19_000..=19_300).contains(&cubic.window()), "{}", cubic.window());
        run(&mut cubic, Instant::ZERO + Duration::from_millis(10), 12, Duration::from_millis(1));
        // Two more rounds to 20, and ten by one segment.
        assert!((29_000..=31_000).contains(&cubic.window()), "{}", cubic.window());
    }

    /// RFC 9438 4.7.
    #[test]
    fn a_loss_before_the_window_was_back_makes_room() {
        let mut cubic = lost_at(100);
        cubic.window = 80 * S;
        cubic.lost(&loss(80 * S));
        assert_eq!((cubic.flat, cubic.window()), (68 * S, 56 * S), "80 * 1.7 / 2, and 80 * 0.7");
        cubic.window = 90 * S;
        cubic.lost(&loss(90 * S));
        assert_eq!(cubic.flat, 90 * S, "beyond the last place: no one is made room for");
    }

    /// RFC 9438 4.8: one segment, slow start to 0.7 of the flight, and a curve that begins there.
    #[test]
    fn after_a_timeout_the_curve_begins_where_avoidance_does() {
        let mut cubic = Cubic::new(&Start::new(S, 10, Instant::ZERO, 0));
        cubic.window = 100 * S;
        cubic.timed_out(&loss(100 * S), false);
        cubic.timed_out(&loss(S), true);
        assert_eq!((cubic.window(), cubic.threshold()), (S, 70 * S));
        while cubic.window() < cubic.threshold() {
            cubic.acknowledged(&Progress::in_order(Instant::ZERO, 10 * S, 10 * S));
        }
        let begun = cubic.window();
        cubic.acknowledged(&Progress::in_order(Instant::ZERO, S, begun));
        let epoch = cubic.epoch.expect("avoidance has begun");
        assert_eq!((epoch.to_flat, epoch.flat), (0, begun));
    }

    /// RFC 9438 4.9.
    #[test]
    fn a_loss_that_was_none_is_taken_back() {
        let mut cubic = lost_at(100);
        let now = run(&mut cubic, Instant::ZERO, 5, ROUND);
        let (window, flat) = (cubic.window(), cubic.flat);
        cubic.timed_out(&loss(window), false);
        cubic.undo();
        assert_eq!((cubic.window(), cubic.flat, cubic.threshold()), (window, flat, 70 * S));
        cubic.undo();
        run(&mut cubic, now, 1, ROUND);
        assert!(cubic.window() > window, "and goes on growing");
    }

    /// RFC 9438 4.2-3: a pause of the application is no time on the curve; and a window that is not used does not grow.
    #[test]
    fn time_that_the_application_takes_is_not_counted() {
        let mut cubic = lost_at(100);
        let mut now = run(&mut cubic, Instant::ZERO, 5, ROUND);
        let before = cubic.epoch.expect("in avoidance").elapsed;
        for _ in 0..50 {
            now = now + ROUND;
            cubic.acknowledged(&Progress { limited: false, ..Progress::in_order(now, S, S) });
        }
        now = now + Duration::from_secs(5);
        cubic.sent(&Sent { now, bytes: S, in_flight_before: 0, again: false, application_limited: true });
        let window = cubic.window();
        run(&mut cubic, now, 1, ROUND);
        assert_eq!(cubic.epoch.expect("still").elapsed, before + 100_000);
        assert!(cubic.window() - window < 5 * S, "{window} {}", cubic.window());
    }

    #[test]
    fn a_record_holds_the_state_and_nothing_impossible_is_taken() {
        let mut cubic = lost_at(100);
        run(&mut cubic, Instant::ZERO, 5, ROUND);
        let mut record = Record::default();
        cubic.export(&mut record);
        let copy = Cubic::import(&mut record).expect("its own record");
        assert_eq!((copy.window(), copy.threshold(), copy.flat), (cubic.window(), cubic.threshold(), cubic.flat));
        for wrong in [Cubic { window: 0, ..cubic.clone() }, Cubic { segment: 0, ..cubic.clone() }] {
            let mut record = Record::default();
            wrong.export(&mut record);
            assert!(Cubic::import(&mut record).is_err());
        }
    }

    /// RFC 9438 4.2-2: however far the curve has run ahead, a round trip adds half of the window at most.
    #[test]
    fn a_round_trip_adds_half_of_the_window_at_most() {
        let mut cubic = lost_at(100);
        let now = run(&mut cubic, Instant::ZERO, 1, ROUND);
        let before = cubic.window();
        // Three minutes later the curve is far beyond every window.
        let later = now + Duration::from_secs(180);
        let progress = Progress::in_order(later, before, before);
        cubic.acknowledged(&Progress { smoothed: Some(ROUND), ..progress });
        assert!((before * 3 / 2 - S..=before * 3 / 2).contains(&cubic.window()), "{before} {}", cubic.window());
    }

    /// RFC 9438 4.6-2.
    #[test]
    fn a_loss_leaves_two_segments_at_least() {
        let mut cubic = Cubic::new(&Start::new(S, 2, Instant::ZERO, 0));
        cubic.lost(&loss(S));
        assert_eq!((cubic.window(), cubic.threshold()), (2 * S, 2 * S));
    }
}
