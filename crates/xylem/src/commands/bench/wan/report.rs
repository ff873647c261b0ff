//! The end of a run over the long link: a line a cell, the geometric mean, the worst cell, and what does not count and why.

use super::super::samples::Middle;
use super::measure::{Figures, OBJECTS, Row, Terms};
use super::order::{OBJECT_BYTES, Side};
use super::place::TUNING;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// A cell whose median ratio is below this is named.
pub const RATIO_MIN: f64 = 0.9;

/// The rows of a run.
pub struct Report {
    /// What all cells have in common.
    pub terms: Terms,
    /// The machine, as JSON.
    pub machine: Json,
    /// One a cell.
    pub rows: Vec<Row>,
    /// What a reader has to know beside the figures.
    pub notes: Vec<String>,
}

/// All cells in one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Cells that count.
    pub cells: usize,
    /// The geometric mean of their goodput ratios.
    pub goodput: Option<f64>,
    /// The geometric mean of the ratios of the times of small objects: of their medians and of their 99 %.
    pub objects: Option<[f64; 2]>,
    /// The cell with the least ratio, by name.
    pub worst: Option<(String, f64)>,
    /// Cells below [`RATIO_MIN`].
    pub below: Vec<String>,
}

impl Report {
    /// True if every cell was measured. Void cells have been, and are told.
    pub fn is_right(&self) -> bool {
        self.rows.iter().all(|row| row.failure.is_none())
    }

    /// What all cells that count come to.
    pub fn summary(&self) -> Summary {
        let counting: Vec<&Row> = self.rows.iter().filter(|row| row.void().is_none()).collect();
        let ratios: Vec<(String, f64)> =
            counting.iter().filter_map(|row| Some((row.cell.to_string(), row.goodput_ratio()?.median))).collect();
        let objects = |hundredths| {
            let times = |figures: &[Figures]| Row::object_percentile(figures, hundredths);
            geometric_mean(counting.iter().filter_map(|row| Some(times(&row.xylem)? / times(&row.kernel)?)))
        };
        Summary {
            cells: ratios.len(),
            goodput: geometric_mean(ratios.iter().map(|(_, ratio)| *ratio)),
            objects: objects(50).zip(objects(99)).map(|(half, most)| [half, most]),
            worst: ratios.iter().min_by(|one, other| one.1.total_cmp(&other.1)).cloned(),
            below: ratios.iter().filter(|(_, ratio)| *ratio < RATIO_MIN).map(|(name, _)| name.clone()).collect(),
        }
    }

    /// As JSON: the keys stand in docs/bench.md.
    pub fn json(&self) -> Json {
        let summary = self.summary();
        json!({
            "bench": "wan",
            "machine": self.machine,
            "congestion": self.terms.congestion,
            "direction": self.direction(),
            "seeds": self.terms.seeds,
            "objects": if self.terms.objects { OBJECTS } else { 0 },
            "object_bytes": OBJECT_BYTES,
            "tuning": TUNING.map(|(name, value)| format!("{name}={value}")),
            "rows": self.rows.iter().map(|row| self.row(row)).collect::<Vec<_>>(),
            "summary": {
                "cells": summary.cells,
                "goodput_ratio": summary.goodput,
                "object_p50_ratio": summary.objects.map(|it| it[0]),
                "object_p99_ratio": summary.objects.map(|it| it[1]),
                "worst": summary.worst,
                "below_nine_tenths": summary.below,
            },
            "notes": self.notes,
        })
    }

    fn row(&self, row: &Row) -> Json {
        let ratio = row.goodput_ratio();
        let object = |figures: &[Figures], hundredths| Row::object_percentile(figures, hundredths);
        json!({
            "cell": row.cell.to_string(),
            "link": row.cell.link().to_string(),
            "stream_seconds": self.terms.stream_in(&row.cell).as_secs_f64(),
            "goodput_ratio": ratio.map(|it| it.median),
            "goodput_ratio_spread": ratio.map(|it| [it.least, it.most]),
            "object_p50_ms": { "kernel": object(&row.kernel, 50), "xylem": object(&row.xylem, 50) },
            "object_p99_ms": { "kernel": object(&row.kernel, 99), "xylem": object(&row.xylem, 99) },
            "kernel": row.kernel,
            "xylem": row.xylem,
            "void": row.void(),
        })
    }

    fn direction(&self) -> &'static str {
        match self.terms.side {
            Side::Sender => "to",
            Side::Receiver => "from",
        }
    }

    /// As a table for people.
    pub fn table(&self) -> String {
        let side = match self.terms.side {
            Side::Sender => "sending to a kernel",
            Side::Receiver => "receiving from a kernel",
        };
        let mut text = format!(
            "  Xylem {side} and a kernel doing the same, {}, {} seeds\n\n",
            self.terms.congestion,
            self.terms.seeds.len(),
        );
        let _ = writeln!(
            text,
            "  {:<34} {:>15} {:>20} {:>13} {:>15} {:>15} {:>5}",
            "cell, kernel | xylem", "goodput Mb/s", "ratio", "again %", "object p50 ms", "object p99 ms", "link"
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", Report::line(row));
        }
        for row in &self.rows {
            if let Some(why) = row.void() {
                let _ = writeln!(text, "\n  VOID: {}: {why}", row.cell);
            }
        }
        let summary = self.summary();
        if let Some(goodput) = summary.goodput {
            let _ =
                write!(text, "\n  {} cells count: geometric mean of the goodput ratios {goodput:.3}", summary.cells);
        }
        if let Some((worst, ratio)) = &summary.worst {
            let _ = write!(text, ", worst {worst} with {ratio:.2}");
        }
        if let Some([half, most]) = summary.objects {
            let _ =
                write!(text, "\n  times of small objects: geometric mean of p50 ratios {half:.3}, of p99 {most:.3}");
        }
        match summary.below.as_slice() {
            [] => text.push('\n'),
            below => {
                let _ = writeln!(text, "\n  below {RATIO_MIN}: {}", below.join(", "));
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n  Note: {note}");
        }
        text
    }

    fn line(row: &Row) -> String {
        let middle = |figures: &[Figures], of: fn(&Figures) -> f64| {
            Middle::of(figures.iter().map(of)).map_or(f64::NAN, |middle| middle.median)
        };
        let pair = |of: fn(&Figures) -> f64, digits: usize| {
            format!("{:.digits$} | {:.digits$}", middle(&row.kernel, of), middle(&row.xylem, of))
        };
        let objects = |hundredths| {
            let time = |figures: &[Figures]| Row::object_percentile(figures, hundredths);
            match (time(&row.kernel), time(&row.xylem)) {
                (Some(kernel), Some(xylem)) => format!("{kernel:.0} | {xylem:.0}"),
                _ => "-".to_owned(),
            }
        };
        let ratio = row
            .goodput_ratio()
            .map_or("-".to_owned(), |Middle { median, least, most }| format!("{median:.2} ({least:.2}..{most:.2})"));
        let share = row.kernel.iter().chain(&row.xylem).map(|figures| figures.link_per_mille).max().unwrap_or(0);
        format!(
            "  {:<34} {:>15} {ratio:>20} {:>13} {:>15} {:>15} {:>4}%{}",
            row.cell,
            pair(|figures| figures.goodput_mbps, 1),
            pair(|figures| 100.0 * figures.retransmitted_share, 2),
            objects(50),
            objects(99),
            share / 10,
            if row.void().is_some() { " void" } else { "" }
        )
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value.max(1e-9).ln()));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_geometric_mean_of_a_half_and_its_double_is_one() {
        assert_eq!(geometric_mean([].into_iter()), None);
        let mean = geometric_mean([0.5, 2.0].into_iter()).expect("two values");
        assert!((mean - 1.0).abs() < 1e-9, "{mean}");
    }
}
