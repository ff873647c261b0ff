//! Times of single operations, kept one by one in memory that was touched before the first of them, so that no page
//! fault falls into a measurement; and the middle of a few repetitions.

use super::order::Latency;
use std::time::Duration;

/// The most times that are kept: some 12 seconds of the fastest round trips there are.
pub const SAMPLES_MAX: usize = 2 << 20;

/// The times of operations, in nanoseconds.
pub struct Samples {
    nanoseconds: Vec<u32>,
}

impl Default for Samples {
    fn default() -> Samples {
        // Written and not only reserved: the system has no page for what nobody has written.
        let mut nanoseconds = vec![u32::MAX; SAMPLES_MAX];
        nanoseconds.clear();
        Samples { nanoseconds }
    }
}

impl Samples {
    /// Keeps one; false if there is no room for another.
    pub fn add(&mut self, span: Duration) -> bool {
        // Four seconds and more are all the same.
        self.nanoseconds.push(u32::try_from(span.as_nanos()).unwrap_or(u32::MAX));
        self.nanoseconds.len() < SAMPLES_MAX
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len() as u64
    }

    /// The percentiles; `None` without any.
    pub fn latency(mut self) -> Option<Latency> {
        self.nanoseconds.sort_unstable();
        let last = self.nanoseconds.len().checked_sub(1)?;
        // The smallest one that so many of a thousand do not exceed (the nearest-rank method).
        let within = |per_mille: usize| {
            let rank = (self.nanoseconds.len() * per_mille).div_ceil(1000);
            f64::from(self.nanoseconds[rank.saturating_sub(1).min(last)]) / 1000.0
        };
        Some(Latency { p50: within(500), p90: within(900), p99: within(990), p99_9: within(999) })
    }
}

/// The middle of several repetitions, with their spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The median; of an even number the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Middle {
    /// Of these; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Middle> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 };
        Some(Middle { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks_of_the_sorted_times() {
        let mut samples = Samples::default();
        for micros in (1..=1000).rev() {
            assert!(samples.add(Duration::from_micros(micros)));
        }
        let latency = samples.latency().expect("there are some");
        assert_eq!(latency, Latency { p50: 500.0, p90: 900.0, p99: 990.0, p99_9: 999.0 });
        let mut one = Samples::default();
        one.add(Duration::from_secs(60));
        assert_eq!(one.latency().expect("there is one").p50, f64::from(u32::MAX) / 1000.0);
        assert_eq!(Samples::default().latency(), None);
    }

    #[test]
    fn the_middle_of_odd_and_even_numbers() {
        assert_eq!(Middle::of([3.0, 1.0, 2.0]), Some(Middle { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Middle::of([4.0, 1.0]), Some(Middle { median: 2.5, least: 1.0, most: 4.0 }));
        assert_eq!(Middle::of([]), None);
    }
}
