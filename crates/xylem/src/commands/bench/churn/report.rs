//! The end of a churn: what was made and what failed, memory over the time, and whether it stayed flat.

use super::order::{Answer, Peer, Sample};
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// The first seconds do not count: tables and pools grow to what they need, and TIME-WAIT fills.
pub const SETTLES_FOR: f64 = 5.0;

/// Memory is flat if over the rest of the time it grows by less than this part of itself: a hash table that clears itself
/// of what has gone may once double, and that is no leak.
pub const FLAT_SHARE: f64 = 0.02;

/// Memory over the time, by the straight line that fits it best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Bytes resident when it had settled, by the line.
    pub settled: f64,
    /// Growth in bytes a second.
    pub slope: f64,
    /// How long was looked at, in seconds.
    pub seconds: f64,
}

impl Trend {
    /// The trend behind the first seconds; `None` if there are fewer than three looks.
    pub fn of(samples: &[Sample]) -> Option<Trend> {
        let points: Vec<(f64, f64)> = samples
            .iter()
            .filter(|sample| sample.at >= SETTLES_FOR)
            .map(|sample| (sample.at, sample.resident as f64))
            .collect();
        let [(first, _), _, .., (last, _)] = points[..] else { return None };
        let count = points.len() as f64;
        let middle = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (at, resident) = (middle(|it| it.0), middle(|it| it.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x - at, y - resident)).sum::<f64>();
        let slope = sum(&|x, y| x * y) / sum(&|x, _| x * x).max(f64::MIN_POSITIVE);
        Some(Trend { settled: resident - slope * (at - first), slope, seconds: last - first })
    }

    /// Growth over the time looked at, as a part of what there was.
    pub fn growth(&self) -> f64 {
        self.slope * self.seconds / self.settled.max(1.0)
    }

    /// Whether it stayed where it was.
    pub fn is_flat(&self) -> bool {
        self.growth() < FLAT_SHARE
    }
}

/// One peer's run.
pub struct Row {
    /// Who was at the other end.
    pub peer: Peer,
    /// What the client said, or why there is nothing.
    pub answer: Result<Answer, String>,
}

impl Row {
    /// Everything that is wrong with it, a sentence each.
    pub fn faults(&self, established: u64) -> Vec<String> {
        let answer = match &self.answer {
            Ok(answer) => answer,
            Err(error) => return vec![error.clone()],
        };
        let churned = &answer.churned;
        let mut faults = Vec::new();
        let mut expect = |right: bool, what: String| {
            if !right {
                faults.push(what);
            }
        };
        let first = churned.first_failure.as_deref().unwrap_or("-");
        expect(churned.failed == 0, format!("expected no connection to fail, got {}: {first}", churned.failed));
        expect(churned.silent == 0, format!("expected an answer on every connection, got none on {}", churned.silent));
        let lost = churned.lost_wake_ups;
        expect(lost == 0, format!("expected every wake-up to arrive, got {lost} lost"));
        let answered = answer.answered;
        expect(
            answered == established,
            format!("expected an answer on all {established} that stayed, got one on {answered}"),
        );
        let left = answer.left;
        expect((left.paths, left.time_waits) == (0, 0), format!("expected nothing to be left, got {left:?}"));
        if let Some(trend) = Trend::of(&answer.samples) {
            let growth = 100.0 * trend.growth();
            expect(trend.is_flat(), format!("expected memory to stay flat, got a growth of {growth:.1} %"));
        }
        faults
    }

    /// As JSON.
    pub fn json(&self, established: u64) -> Json {
        let trend = self.answer.as_ref().ok().and_then(|answer| Trend::of(&answer.samples));
        json!({
            "peer": self.peer,
            "answer": self.answer.as_ref().ok(),
            "slope_bytes_per_second": trend.map(|trend| trend.slope.round()),
            "growth": trend.map(|trend| (trend.growth() * 1e5).round() / 1e5),
            "flat": trend.map(|trend| trend.is_flat()),
            "faults": self.faults(established),
        })
    }

    /// For people.
    pub fn text(&self, established: u64) -> String {
        let name = match self.peer {
            Peer::Xylem => "xylem, both ends in one process",
            Peer::Kernel => "xylem to a kernel with several addresses, over a TAP",
        };
        let mut text = format!("  {name}\n");
        if let Ok(answer) = &self.answer {
            let (standing, churned) = (&answer.standing, &answer.churned);
            let each = standing.resident_after.saturating_sub(standing.resident_before) / standing.made.max(1);
            let _ = writeln!(
                text,
                "    {} established in {:.1} s, {each} bytes each{}",
                standing.made,
                standing.seconds,
                if self.peer == Peer::Xylem { " (both ends)" } else { "" }
            );
            let _ = writeln!(
                text,
                "    churn: {} begun, {} made, used and closed in {:.1} s ({:.0}/s); p50 {:.0} us, p99 {:.0} us",
                churned.begun,
                churned.made,
                churned.seconds,
                churned.made as f64 / churned.seconds.max(1e-9),
                churned.p50_us,
                churned.p99_us
            );
            let _ = writeln!(
                text,
                "    failed {}, silent {}, lost wake-ups {}, held back {}; of those that stayed {} answered again",
                churned.failed, churned.silent, churned.lost_wake_ups, churned.held_back, answer.answered
            );
            let _ = writeln!(
                text,
                "    {:>6} {:>10} {:>10} {:>9} {:>10} {:>10}",
                "s", "MB", "TIME-WAIT", "paths", "deadlines", "made"
            );
            for sample in thinned(&answer.samples) {
                let _ = writeln!(
                    text,
                    "    {:>6.0} {:>10.2} {:>10} {:>9} {:>10} {:>10}",
                    sample.at,
                    sample.resident as f64 / 1e6,
                    sample.time_waits,
                    sample.paths,
                    sample.deadlines,
                    sample.made
                );
            }
            if let Some(trend) = Trend::of(&answer.samples) {
                let _ = writeln!(
                    text,
                    "    memory behind the first {SETTLES_FOR} s: {:.2} MB, {:+.1} kB/s, {:+.2} % in {:.0} s: {}",
                    trend.settled / 1e6,
                    trend.slope / 1e3,
                    100.0 * trend.growth(),
                    trend.seconds,
                    if trend.is_flat() { "flat" } else { "NOT FLAT" }
                );
            }
            let left = answer.left;
            let _ = writeln!(text, "    left: {} paths, {} in TIME-WAIT", left.paths, left.time_waits);
        }
        for fault in self.faults(established) {
            let _ = writeln!(text, "    WRONG: {fault}");
        }
        text
    }
}

/// The most lines of a table of looks.
const LINES_MAX: usize = 16;

/// Some of the looks, evenly, the first and the last among them.
fn thinned(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    let step = samples.len().div_ceil(LINES_MAX).max(1);
    let last = samples.len().saturating_sub(1);
    samples.iter().enumerate().filter(move |(index, _)| index % step == 0 || *index == last).map(|(_, sample)| sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(resident: impl Fn(u64) -> u64) -> Vec<Sample> {
        (0..=60).map(|at| Sample { at: at as f64, resident: resident(at), ..Sample::default() }).collect()
    }

    #[test]
    fn what_grows_behind_the_first_seconds_is_not_flat() {
        let leak = Trend::of(&samples(|at| 100_000_000 + at * 50_000)).expect("many looks");
        assert!((leak.slope - 50_000.0).abs() < 1.0 && !leak.is_flat(), "{leak:?}");
        let settles =
            Trend::of(&samples(|at| 100_000_000 + at.min(4) * 5_000_000 + at % 2 * 1000)).expect("many looks");
        assert!(settles.is_flat() && settles.growth().abs() < 0.001, "{settles:?}");
        assert_eq!(Trend::of(&samples(|_| 1)[..7]), None, "two looks are no trend");
    }

    #[test]
    fn every_fault_is_named() {
        let mut answer = Answer { answered: 10, ..Answer::default() };
        let row = |answer: &Answer| Row { peer: Peer::Xylem, answer: Ok(answer.clone()) };
        assert_eq!(row(&answer).faults(10), Vec::<String>::new());
        answer.churned.failed = 1;
        answer.churned.silent = 2;
        answer.churned.lost_wake_ups = 3;
        answer.left.paths = 4;
        answer.samples = samples(|at| 1_000_000 * (1 + at));
        assert_eq!(row(&answer).faults(11).len(), 6);
        assert_eq!(Row { peer: Peer::Kernel, answer: Err("why".into()) }.faults(0), ["why"]);
    }
}
