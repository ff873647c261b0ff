//! What BBR knows about the path (draft-ietf-ccwg-bbr, section 5.5): the most that was delivered in a second, the shortest
//! round trip, how much comes at once, and two bounds that losses have taught: a short one for the time being, and a long
//! one for what the path bears at all.

use super::super::{Progress, Sample};
use xylem_core::{Duration, Instant};

/// How long the shortest round trip is believed (section 2.7: MinRTTFilterLen).
const ROUND_TRIP_BELIEVED: Duration = Duration::from_secs(10);
/// How often it is measured anew (ProbeRTTInterval).
const ROUND_TRIP_EVERY: Duration = Duration::from_secs(5);
/// What a loss leaves of a short bound, in percent (Beta).
pub(super) const BETA_PERCENT: u64 = 70;
/// What is left free of the long bound, in percent (Headroom).
const HEADROOM_PERCENT: u64 = 15;
/// More than this lost in a round is too much, in percent (LossThresh).
const LOSS_PERCENT: u64 = 2;
/// Rounds for which a burst of acknowledgments is remembered (ExtraAckedFilterLen), and before the pipe is full.
const AGGREGATION_ROUNDS: u32 = 10;

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The largest rate of the cycle before, and of this one, in bytes a second.
    rates: [u64; 2],
    cycle: u32,
    round_trip_min: Option<(Duration, Instant)>,
    /// The shortest since the last probe, and when.
    probed: Option<(Duration, Instant)>,
    /// It is time to measure it anew.
    pub round_trip_is_old: bool,
    pub bounds: Bounds,
    /// A round is over with this acknowledgment.
    pub round_start: bool,
    /// Rounds so far.
    rounds: u32,
    round_ends: u32,
    delivered_total: u32,
    loss_round_ends: u32,
    loss_round_start: bool,
    /// Something was lost in this round, and in how many acknowledgments.
    lost_in_round: bool,
    pub losses_in_round: u32,
    /// The best of this round.
    pub rate_latest: u64,
    delivered_latest: u32,
    aggregation: Aggregation,
}

/// What losses have taught. `u32::MAX` and `u64::MAX` stand for "nothing".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Bytes a second, for the time being.
    pub rate: u64,
    /// Bytes in flight, for the time being.
    pub short: u32,
    /// Bytes in flight that the path bears.
    pub long: u32,
}

/// How much comes beyond what the rate explains (section 5.5.9).
#[derive(Clone, Copy, Debug)]
struct Aggregation {
    from: Instant,
    delivered: u64,
    /// The most of some rounds, and of those before.
    most: [u32; 2],
    turned_at: u32,
}

impl Bounds {
    const NONE: Bounds = Bounds { rate: u64::MAX, short: u32::MAX, long: u32::MAX };

    /// The long bound with room left for others (section 5.6.4.7).
    pub fn with_headroom(&self, segment: u32, least: u32) -> u32 {
        if self.long == u32::MAX {
            return u32::MAX;
        }
        let headroom = (u64::from(self.long) * HEADROOM_PERCENT / 100) as u32;
        self.long.saturating_sub(headroom.max(segment)).max(least)
    }

    /// The short bounds are forgotten: what comes now shows anew.
    pub fn forget_short(&mut self) {
        (self.rate, self.short) = (u64::MAX, u32::MAX);
    }

    /// A loss was none.
    pub fn restore(&mut self, before: &Bounds) {
        self.rate = self.rate.max(before.rate);
        self.short = self.short.max(before.short);
        self.long = self.long.max(before.long);
    }
}

impl Model {
    pub fn new(now: Instant) -> Model {
        Model {
            rates: [0; 2],
            cycle: 0,
            round_trip_min: None,
            probed: None,
            round_trip_is_old: false,
            bounds: Bounds::NONE,
            round_start: false,
            rounds: 0,
            round_ends: 0,
            delivered_total: 0,
            loss_round_ends: 0,
            loss_round_start: false,
            lost_in_round: false,
            losses_in_round: 0,
            rate_latest: 0,
            delivered_latest: 0,
            aggregation: Aggregation { from: now, delivered: 0, most: [0; 2], turned_at: 0 },
        }
    }

    /// Takes over what another instance knew.
    pub fn go_on(&mut self, bandwidth: u64, round_trip_min: Option<Duration>, now: Instant) {
        self.rates = [bandwidth; 2];
        self.round_trip_min = round_trip_min.map(|it| (it, now));
        self.probed = self.round_trip_min;
    }

    /// The most that was delivered in a second, in this probing cycle or the one before, in bytes.
    pub fn bandwidth_max(&self) -> u64 {
        self.rates[0].max(self.rates[1])
    }

    /// The same under the short bound.
    pub fn bandwidth(&self) -> u64 {
        self.bandwidth_max().min(self.bounds.rate)
    }

    pub fn round_trip_min(&self) -> Option<Duration> {
        self.round_trip_min.map(|(round_trip, _)| round_trip)
    }

    /// Bytes that come beyond what the rate explains.
    pub fn aggregated(&self) -> u32 {
        self.aggregation.most[0].max(self.aggregation.most[1])
    }

    /// A round begins now, whatever there was.
    pub fn begin_round(&mut self) {
        self.round_ends = self.delivered_total;
    }

    /// What is measured as coming at once begins now.
    pub fn aggregation_begins(&mut self, now: Instant) {
        (self.aggregation.from, self.aggregation.delivered) = (now, 0);
    }

    /// Something was marked in this round.
    pub fn note_loss(&mut self) {
        self.lost_in_round = true;
    }

    /// Losses that were none.
    pub fn forget_losses(&mut self) {
        self.lost_in_round = false;
    }

    /// The round trip has just been measured with an empty path.
    pub fn round_trip_is_new(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.probed {
            *at = now;
        }
        self.round_trip_is_old = false;
    }

    /// Takes an acknowledgment in. `cycle` counts probing cycles; while the bandwidth is being probed, losses do not
    /// lower the short bounds.
    pub fn observe(&mut self, progress: &Progress, cycle: u32, is_probing: bool, window: u32) {
        self.round_start = false;
        self.loss_round_start = false;
        if let Some(sample) = &progress.rate {
            self.observe_rate(sample, cycle);
        }
        if progress.lost > 0 {
            self.lost_in_round = true;
            self.losses_in_round = self.losses_in_round.saturating_add(1);
        }
        if self.loss_round_start {
            if self.lost_in_round && !is_probing {
                self.lower(window);
            }
            self.lost_in_round = false;
        }
        self.observe_aggregation(progress, window);
        self.observe_round_trip(progress);
    }

    /// The end of an acknowledgment (section 5.5.10.3).
    pub fn advance(&mut self, progress: &Progress) {
        if self.loss_round_start {
            self.losses_in_round = u32::from(progress.lost > 0);
            if let Some(sample) = &progress.rate {
                (self.rate_latest, self.delivered_latest) = (sample.rate(), sample.delivered);
            }
        }
    }

    fn observe_rate(&mut self, sample: &Sample, cycle: u32) {
        let is_over = |ends: u32| sample.delivered_then.wrapping_sub(ends) as i32 >= 0;
        self.delivered_total = sample.delivered_total;
        if is_over(self.round_ends) {
            self.round_start = true;
            self.rounds = self.rounds.wrapping_add(1);
            self.round_ends = sample.delivered_total;
        }
        if is_over(self.loss_round_ends) {
            self.loss_round_start = true;
            self.loss_round_ends = sample.delivered_total;
        }
        if cycle != self.cycle {
            (self.cycle, self.rates) = (cycle, [self.rates[1], 0]);
        }
        let rate = sample.rate().min(super::RATE_MAX);
        self.rate_latest = self.rate_latest.max(rate);
        self.delivered_latest = self.delivered_latest.max(sample.delivered);
        if rate >= self.bandwidth_max() || !sample.application_limited {
            self.rates[1] = self.rates[1].max(rate);
        }
    }

    /// A round with a loss lowers the short bounds, not below what got through (section 5.5.10.3).
    fn lower(&mut self, window: u32) {
        let lowered = |bound: u64| bound * BETA_PERCENT / 100;
        let rate = if self.bounds.rate == u64::MAX { self.bandwidth_max() } else { self.bounds.rate };
        let short = if self.bounds.short == u32::MAX { window } else { self.bounds.short };
        // What was delivered is less than the path gave by the margin of the pace: without taking that out again, each
        // lossy round would lower the bound by itself.
        let latest = self.rate_latest.saturating_mul(100) / (100 - super::MARGIN_PERCENT);
        self.bounds.rate = latest.max(lowered(rate)).min(rate);
        self.bounds.short = self.delivered_latest.max(lowered(u64::from(short)) as u32);
    }

    fn observe_aggregation(&mut self, progress: &Progress, window: u32) {
        let it = &mut self.aggregation;
        let nanoseconds = progress.now.since(it.from).as_nanos();
        let rate = self.rates[0].max(self.rates[1]).min(self.bounds.rate);
        let explained = |nanoseconds: u128| (u128::from(rate) * nanoseconds / 1_000_000_000).min(1 << 62) as u64;
        let mut expected = explained(nanoseconds);
        if it.delivered <= expected {
            (it.from, it.delivered, expected) = (progress.now, 0, 0);
        }
        it.delivered += u64::from(progress.delivered);
        let extra = it.delivered.saturating_sub(expected).min(u64::from(window)) as u32;
        if self.rounds.wrapping_sub(it.turned_at) >= AGGREGATION_ROUNDS / 2 {
            (it.turned_at, it.most) = (self.rounds, [it.most[1], 0]);
        }
        it.most[1] = it.most[1].max(extra);
    }

    /// Section 5.3.4.2.
    fn observe_round_trip(&mut self, progress: &Progress) {
        let now = progress.now;
        self.round_trip_is_old = self.probed.is_some_and(|(_, at)| now.since(at) > ROUND_TRIP_EVERY);
        let Some(round_trip) = progress.round_trip else { return };
        if self.round_trip_is_old || self.probed.is_none_or(|(least, _)| round_trip <= least) {
            self.probed = Some((round_trip, now));
        }
        let is_stale = self.round_trip_min.is_some_and(|(_, at)| now.since(at) > ROUND_TRIP_BELIEVED);
        if let Some(probed) = self.probed
            && (is_stale || self.round_trip_min.is_none_or(|(least, _)| probed.0 <= least))
        {
            self.round_trip_min = Some(probed);
        }
    }

    /// Whether more was lost of a flight than the path may lose (section 5.5.10.2).
    pub fn is_too_much(sample: &Sample) -> bool {
        u64::from(sample.lost_since) * 100 > u64::from(sample.in_flight_then) * LOSS_PERCENT
    }

    /// The most that was delivered within a round trip of this round.
    pub fn delivered_latest(&self) -> u32 {
        self.delivered_latest
    }

    /// Whether a round of losses is over.
    pub fn is_loss_round_start(&self) -> bool {
        self.loss_round_start
    }
}
