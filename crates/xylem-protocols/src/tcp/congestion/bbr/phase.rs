//! What BBR tries when (draft-ietf-ccwg-bbr, section 5.3): Startup finds the bandwidth by doubling, Drain empties the queue
//! that made, then ProbeBW goes round - down, cruise, refill, up - to find more without harm, and now and then ProbeRTT
//! empties the path to see how long it is.

use super::super::{Progress, Sample};
use super::Bbr;
use super::model::{BETA_PERCENT, Model};
use xylem_core::{Duration, Instant};

/// The window of the round-trip probe, in percent of what the path holds.
pub(super) const PROBE_ROUND_TRIP_WINDOW: u64 = 50;
/// How long the path is kept nearly empty to measure it (section 2.7: ProbeRTTDuration).
const PROBE_ROUND_TRIP_FOR: Duration = Duration::from_millis(200);
/// Growth below this, in percent of what it was, is none (section 5.3.1.2).
const GROWTH_PERCENT: u64 = 125;
/// Rounds without growth that mean the pipe is full.
const ROUNDS_WITHOUT_GROWTH: u8 = 3;
/// Acknowledgments of one round that report losses, and so end Startup (StartupFullLossCnt).
const STARTUP_LOSSES: u32 = 6;
/// The wait between probes for bandwidth: two to three seconds (section 5.3.3.4),
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// or as many rounds as Reno would take to come back, at most so many.
const PROBE_ROUNDS_MAX: u32 = 63;
/// The growth of the long bound doubles each round while it is probed, so often at most.
const UP_ROUNDS_MAX: u32 = 30;

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    /// Measuring the round trip: `until` when, once the flight is small enough; a round must pass too.
    ProbeRoundTrip {
        until: Option<Instant>,
        round_done: bool,
    },
}

/// What acknowledgments tell about the last probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    None,
    /// The probe has begun; what comes was sent before it.
    Starting,
    Coming,
    /// It is over; what comes was sent in it, until a round has passed.
    Stopping,
}

/// The factors of a phase, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gains {
    pub pace: u64,
    pub window: u64,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Phases {
    phase: Phase,
    feedback: Feedback,
    /// The pipe was full once.
    is_full: bool,
    /// It is full now, as far as this phase can tell; what was reached, and for how many rounds it has not grown.
    is_full_now: bool,
    full_rate: u64,
    rounds_without_growth: u8,
    /// Probing cycles so far.
    cycle: u32,
    cycle_began: Instant,
    probe_wait: Duration,
    rounds_since_probe: u32,
    /// Losses now come from probing.
    samples_are_probes: bool,
    up_rounds: u32,
    up_delivered: u32,
    /// Bytes that must be delivered for the long bound to grow by a segment.
    up_each: u32,
    /// The state of the random stream: never zero.
    random: u32,
}

impl Phases {
    pub fn new(seed: u32, now: Instant) -> Phases {
        Phases {
            phase: Phase::Startup,
            feedback: Feedback::None,
            is_full: false,
            is_full_now: false,
            full_rate: 0,
            rounds_without_growth: 0,
            cycle: 0,
            cycle_began: now,
            probe_wait: PROBE_WAIT,
            rounds_since_probe: 0,
            samples_are_probes: false,
            up_rounds: 0,
            up_delivered: 0,
            up_each: u32::MAX,
            random: seed | 1,
        }
    }

    /// The path was known already where the connection came from.
    pub fn go_on(&mut self, now: Instant) {
        (self.is_full, self.phase, self.cycle_began) = (true, Phase::Cruise, now);
    }

    pub fn gains(&self) -> Gains {
        let (pace, window) = match self.phase {
            // 4 * ln 2: the least that doubles each round.
            Phase::Startup => (277, 200),
            Phase::Drain => (50, 200),
            Phase::Down => (90, 200),
            Phase::Cruise | Phase::Refill => (100, 200),
            Phase::Up => (125, 225),
            Phase::ProbeRoundTrip { .. } => (100, PROBE_ROUND_TRIP_WINDOW),
        };
        Gains { pace, window }
    }

    pub fn seed(&self) -> u32 {
        self.random
    }

    pub fn cycle(&self) -> u32 {
        self.cycle
    }

    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    pub fn is_probing_round_trip(&self) -> bool {
        matches!(self.phase, Phase::ProbeRoundTrip { .. })
    }

    /// Whether more than the known bandwidth may be in the path, so that losses are no news.
    pub fn is_probing_bandwidth(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up)
    }

    /// Whether it goes round.
    pub fn is_probing_bandwidth_cycle(&self) -> bool {
        matches!(self.phase, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// Whether others are left some room.
    pub fn leaves_headroom(&self) -> bool {
        matches!(self.phase, Phase::Cruise | Phase::ProbeRoundTrip { .. })
    }

    fn reset_full(&mut self, rate: u64) {
        (self.is_full_now, self.full_rate, self.rounds_without_growth) = (false, rate, 0);
    }

    /// Section 5.3.1.2: three rounds without a quarter more.
    fn check_full(&mut self, rate: u64) {
        if self.is_full_now {
            return;
        }
        if rate >= self.full_rate * GROWTH_PERCENT / 100 {
            self.reset_full(rate);
            return;
        }
        self.rounds_without_growth += 1;
        self.is_full_now = self.rounds_without_growth >= ROUNDS_WITHOUT_GROWTH;
        self.is_full |= self.is_full_now;
    }

    /// Marsaglia's xorshift: enough so that connections do not probe in step.
    fn draw(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    /// The next growth of the long bound, per round twice as much (section 5.3.3.4).
    fn steepen(&mut self, window: u32, segment: u32) {
        let growth = segment.saturating_mul(1 << self.up_rounds);
        self.up_rounds = (self.up_rounds + 1).min(UP_ROUNDS_MAX);
        self.up_each = (u64::from(window) * u64::from(segment) / u64::from(growth)).max(u64::from(segment)) as u32;
    }
}

impl Bbr {
    /// What an acknowledgment moves (section 5.2.3). The model has taken it in.
    pub(super) fn step(&mut self, progress: &Progress) {
        let sample = progress.rate.as_ref();
        let round = self.model.round_start;
        if round {
            self.phases.rounds_since_probe = self.phases.rounds_since_probe.saturating_add(1);
            if !self.phases.is_probing_round_trip() && sample.is_some_and(|sample| !sample.application_limited) {
                self.phases.check_full(self.model.rate_latest);
            }
        }
        self.check_startup(sample);
        if self.phases.phase == Phase::Drain && progress.in_flight <= self.in_flight_at(100) {
            self.go_down(progress.now);
        }
        self.cycle_on(progress, sample);
        self.probe_round_trip(progress, round);
    }

    fn check_startup(&mut self, sample: Option<&Sample>) {
        if self.phases.phase != Phase::Startup {
            return;
        }
        // Section 5.3.1.3: losses in many places of one round say that it is full, before the rate does.
        let is_lossy = self.model.is_loss_round_start() && self.model.losses_in_round >= STARTUP_LOSSES;
        if is_lossy && sample.is_some_and(Model::is_too_much) {
            self.phases.is_full = true;
            let holds = self.volume(self.model.bandwidth_max(), 100);
            self.model.bounds.long = holds.max(self.model.delivered_latest()).max(self.least());
        }
        if self.phases.is_full {
            self.phases.phase = Phase::Drain;
        }
    }

    fn go_down(&mut self, now: Instant) {
        self.model.forget_losses();
        let (rounds, wait) = (self.phases.draw() & 1, self.phases.draw() % 1000);
        let phases = &mut self.phases;
        phases.up_each = u32::MAX;
        phases.rounds_since_probe = rounds;
        phases.probe_wait = PROBE_WAIT + Duration::from_millis(u64::from(wait));
        phases.cycle_began = now;
        phases.feedback = Feedback::Stopping;
        phases.phase = Phase::Down;
        self.model.begin_round();
    }

    fn refill(&mut self) {
        self.model.bounds.forget_short();
        (self.phases.up_rounds, self.phases.up_delivered) = (0, 0);
        self.phases.feedback = Feedback::None;
        self.phases.phase = Phase::Refill;
        self.model.begin_round();
    }

    fn go_up(&mut self, now: Instant) {
        self.phases.feedback = Feedback::Starting;
        self.phases.reset_full(self.model.rate_latest);
        self.phases.cycle_began = now;
        self.phases.phase = Phase::Up;
        self.phases.steepen(self.window, self.segment);
        self.model.begin_round();
    }

    /// Section 5.3.3.6.
    fn cycle_on(&mut self, progress: &Progress, sample: Option<&Sample>) {
        if !self.phases.is_full {
            return;
        }
        if let Some(sample) = sample {
            self.adapt_long(progress, sample);
        }
        let now = progress.now;
        match self.phases.phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(now) => self.refill(),
            Phase::Down if self.is_time_to_cruise(progress.in_flight) => self.phases.phase = Phase::Cruise,
            Phase::Refill if self.model.round_start => {
                self.phases.samples_are_probes = true;
                self.go_up(now);
            }
            Phase::Up => {
                if self.is_time_to_go_down(progress) {
                    self.go_down(now);
                }
            }
            Phase::Startup
            | Phase::Drain
            | Phase::Down
            | Phase::Cruise
            | Phase::Refill
            | Phase::ProbeRoundTrip { .. } => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        let holds = self.volume(self.model.bandwidth(), 100).min(self.window);
        let reno = (holds / self.segment).min(PROBE_ROUNDS_MAX);
        now.since(self.phases.cycle_began) > self.phases.probe_wait || self.phases.rounds_since_probe >= reno.max(1)
    }

    fn is_time_to_cruise(&self, in_flight: u32) -> bool {
        let bound = self.model.bounds.with_headroom(self.segment, self.least());
        in_flight <= bound.min(self.in_flight_at(100))
    }

    fn is_time_to_go_down(&mut self, progress: &Progress) -> bool {
        if progress.limited && self.window >= self.model.bounds.long {
            // What holds it back is the bound, not the path: more may come when the bound has grown.
            self.phases.reset_full(self.model.rate_latest);
            return false;
        }
        self.phases.is_full_now
    }

    /// What a probe, or its loss, says about the volume that the path bears (section 5.5.10.2).
    fn adapt_long(&mut self, progress: &Progress, sample: &Sample) {
        if self.model.round_start {
            match self.phases.feedback {
                Feedback::Starting => self.phases.feedback = Feedback::Coming,
                Feedback::Stopping => {
                    self.phases.samples_are_probes = false;
                    self.phases.feedback = Feedback::None;
                    if self.phases.is_probing_bandwidth_cycle() && !sample.application_limited {
                        self.phases.cycle = self.phases.cycle.wrapping_add(1);
                    }
                }
                Feedback::None | Feedback::Coming => {}
            }
        }
        if Model::is_too_much(sample) {
            if self.phases.samples_are_probes {
                self.bound_long(progress.now, sample);
            }
            return;
        }
        if self.model.bounds.long == u32::MAX {
            return;
        }
        self.model.bounds.long = self.model.bounds.long.max(sample.in_flight_then);
        if self.phases.is_up() {
            self.raise_long(progress);
        }
    }

    fn bound_long(&mut self, now: Instant, sample: &Sample) {
        self.phases.samples_are_probes = false;
        if !sample.application_limited {
            let holds = self.volume(self.model.bandwidth(), 100).min(self.window);
            let target = (u64::from(holds) * BETA_PERCENT / 100) as u32;
            self.model.bounds.long = sample.in_flight_then.max(target).max(self.least());
        }
        if self.phases.is_up() {
            self.go_down(now);
        }
    }

    fn raise_long(&mut self, progress: &Progress) {
        if !progress.limited || self.window < self.model.bounds.long {
            return;
        }
        self.phases.up_delivered = self.phases.up_delivered.saturating_add(progress.delivered);
        if self.phases.up_delivered >= self.phases.up_each {
            let segments = self.phases.up_delivered / self.phases.up_each;
            self.phases.up_delivered -= segments * self.phases.up_each;
            let raised = self.model.bounds.long.saturating_add(segments.saturating_mul(self.segment));
            self.model.bounds.long = raised.min(super::WINDOW_MAX);
        }
        if self.model.round_start {
            self.phases.steepen(self.window, self.segment);
        }
    }

    /// Section 5.3.4.
    fn probe_round_trip(&mut self, progress: &Progress, round: bool) {
        let now = progress.now;
        if !self.phases.is_probing_round_trip() && self.model.round_trip_is_old && !self.restarted {
            self.phases.phase = Phase::ProbeRoundTrip { until: None, round_done: false };
            self.phases.feedback = Feedback::Stopping;
            self.model.begin_round();
        }
        let Phase::ProbeRoundTrip { until, round_done } = self.phases.phase else { return };
        match until {
            None if progress.in_flight <= self.probing_window() => {
                let until = Some(now + PROBE_ROUND_TRIP_FOR);
                self.phases.phase = Phase::ProbeRoundTrip { until, round_done: false };
                self.model.begin_round();
            }
            None => {}
            Some(at) if (round_done || round) && now > at => self.leave_round_trip_probe(now),
            Some(_) => self.phases.phase = Phase::ProbeRoundTrip { until, round_done: round_done || round },
        }
    }

    fn leave_round_trip_probe(&mut self, now: Instant) {
        self.model.round_trip_is_new(now);
        self.model.bounds.forget_short();
        if self.phases.is_full {
            self.go_down(now);
            self.phases.phase = Phase::Cruise;
        } else {
            self.phases.phase = Phase::Startup;
        }
    }
}
