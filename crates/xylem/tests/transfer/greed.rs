//! Congestion controls that break their law, each in its own way, to show that somebody notices. Beneath they are Reno.

use xylem_core::Instant;
use xylem_protocols::tcp::congestion::{Algorithm, CongestionControl, Loss, NewReno, Progress};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greed {
    /// The window grows by twice what is acknowledged.
    Hasty,
    /// The window is less than a segment.
    Nothing,
    /// The threshold falls to one byte.
    NoThreshold,
}

pub const ALL: [Greed; 3] = [Greed::Hasty, Greed::Nothing, Greed::NoThreshold];

static HASTY: Algorithm = Algorithm::new("hasty", |start| Box::new(Greedy(Greed::Hasty, NewReno::new(start), 0)));
static NOTHING: Algorithm = Algorithm::new("nothing", |start| Box::new(Greedy(Greed::Nothing, NewReno::new(start), 0)));
static NO_THRESHOLD: Algorithm =
    Algorithm::new("no-threshold", |start| Box::new(Greedy(Greed::NoThreshold, NewReno::new(start), 0)));

pub static ALGORITHMS: [&Algorithm; 3] = [&HASTY, &NOTHING, &NO_THRESHOLD];

impl Greed {
    pub fn name(self) -> &'static str {
        match self {
            Greed::Hasty => "hasty",
            Greed::Nothing => "nothing",
            Greed::NoThreshold => "no-threshold",
        }
    }
}

#[derive(Debug)]
struct Greedy(Greed, NewReno, u32);

impl CongestionControl for Greedy {
    fn window(&self) -> u32 {
        match self.0 {
            Greed::Hasty => self.1.window() + self.2,
            Greed::Nothing => self.1.window().min(100),
            Greed::NoThreshold => self.1.window(),
        }
    }

    fn threshold(&self) -> u32 {
        if self.0 == Greed::NoThreshold { 1 } else { self.1.threshold() }
    }

    fn acknowledged(&mut self, progress: &Progress) {
        self.2 += 2 * progress.delivered;
        self.1.acknowledged(progress);
    }

    fn lost(&mut self, loss: &Loss) {
        self.1.lost(loss);
    }

    fn timed_out(&mut self, loss: &Loss, again: bool) {
        self.1.timed_out(loss, again);
    }

    fn recovered(&mut self, in_flight: u32, now: Instant) {
        self.1.recovered(in_flight, now);
    }

    fn resize(&mut self, bytes: u32) {
        self.1.resize(bytes);
    }
}
