//! The end of a run: the rows as a table for people and as JSON for programs. Figures are medians of the repetitions with
//! their spread; a ratio stands only where both rows did the same work, and names both wires.

use super::contestant::Terms;
use super::measure::{Figures, Ratio, Row, ratio};
use super::order::{Latency, Memory, Task};
use super::samples::Middle;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// The rows of a run.
pub struct Report {
    /// What all rows have in common.
    pub terms: Terms,
    /// The machine, as JSON.
    pub machine: Json,
    /// The rows.
    pub rows: Vec<Row>,
    /// What a reader has to know beside the figures.
    pub notes: Vec<String>,
    /// Repetitions.
    pub repetitions: usize,
}

impl Report {
    /// True if no row failed.
    pub fn is_right(&self) -> bool {
        self.rows.iter().all(|row| row.failure.is_none())
    }

    /// As JSON: the keys stand in docs/bench.md.
    pub fn json(&self) -> Json {
        json!({
            "bench": self.terms.task.name(),
            "machine": self.machine,
            "repetitions": self.repetitions,
            "rows": self.rows.iter().map(|row| self.row(row)).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    fn row(&self, row: &Row) -> Json {
        let xylem = row.contestant.xylem;
        let mut object = Map::new();
        let mut put = |key: &str, value: Json| drop(object.insert(key.into(), value));
        put("stack", json!(row.contestant.stack()));
        put("device", json!(row.contestant.device()));
        put("placement", json!(xylem.map(|_| "app")));
        put("demux", json!(xylem.map(|_| &self.terms.demux)));
        put("data", json!(xylem.map(|_| &self.terms.data)));
        put("mode", json!(xylem.map(|_| "exclusive")));
        put("ends", json!(row.contestant.ends()));
        put("role", json!(row.contestant.role()));
        put("shell", json!(xylem.map(|entry| entry.turns.to_string())));
        put("waiting", json!(row.contestant.waiting.to_string()));
        if let (Task::Stream, Some(role)) = (self.terms.task, row.contestant.role()) {
            // The client sends.
            put("direction", json!(if role == "client" { "to" } else { "from" }));
        }
        put("bytes", json!(row.work.bytes));
        put("repetitions", json!(row.figures.len()));
        let operations: u64 = row.figures.iter().map(|figures| figures.operations).sum();
        put("operations", json!(operations));
        let mut middle = |key: &str, middle: Option<Middle>| {
            put(key, json!(middle.map(|it| rounded(it.median))));
            put(&format!("{key}_spread"), json!(middle.map(|it| [rounded(it.least), rounded(it.most)])));
        };
        let latency = |of: fn(&Latency) -> f64| row.middle(move |figures| figures.latency.as_ref().map(of));
        middle("p50_us", latency(|it| it.p50));
        middle("p90_us", latency(|it| it.p90));
        middle("p99_us", latency(|it| it.p99));
        middle("p99_9_us", latency(|it| it.p99_9));
        middle("gbps", row.middle(|figures| figures.gbps));
        middle("per_second", row.middle(|figures| figures.per_second));
        for (end, name) in ["client", "server"].into_iter().enumerate() {
            middle(&format!("cpu_us_{name}"), row.middle(|figures| Some(figures.cpu_us?[end])));
            middle(&format!("cpu_ns_per_byte_{name}"), row.middle(|figures| Some(figures.cpu_ns_per_byte?[end])));
        }
        middle("frames_in_per_operation", row.middle(|figures| Some(figures.frames?[0])));
        middle("frames_out_per_operation", row.middle(|figures| Some(figures.frames?[1])));
        middle("bytes_per_frame", row.middle(|figures| figures.bytes_per_frame));
        if self.terms.task == Task::Idle {
            for (end, name) in ["client", "server"].into_iter().enumerate() {
                let key = format!("resident_bytes_per_connection_{name}");
                middle(&key, row.middle(|figures| resident(figures, end, row)));
            }
            middle("slab_bytes_per_connection", row.middle(|figures| slab(figures, row)));
        }
        put("strays", json!(row.figures.iter().map(|figures| figures.strays).sum::<u64>()));
        match ratio(self.terms.task, row, &self.rows) {
            Ratio::Of { measure, names, base, each, middle } => {
                put("ratio_to_linux", json!(rounded(middle.median)));
                let each: Vec<f64> = each.into_iter().map(rounded).collect();
                let spread = [rounded(middle.least), rounded(middle.most)];
                put("ratio", json!({ "of": measure, "wires": names, "base": base, "spread": spread, "each": each }));
            }
            Ratio::Refused(reason) => {
                put("ratio_to_linux", Json::Null);
                put("ratio", json!({ "refused": reason }));
            }
        }
        put("each", json!(row.figures));
        put("failure", json!(row.failure));
        put("work", json!(row.work));
        Json::Object(object)
    }

    /// As a table for people.
    pub fn table(&self) -> String {
        let mut lines = vec![self.headings().iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>()];
        lines.extend(self.rows.iter().map(|row| self.line(row)));
        let columns = lines[0].len();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for line in &lines {
            let cells = (0..columns).map(|column| match column {
                0 => format!("{:<width$}", line[column], width = width(column)),
                _ if column + 1 == columns => line[column].clone(),
                _ => format!("{:>width$}", line[column], width = width(column)),
            });
            let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("   ").trim_end());
        }
        for row in self.rows.iter().filter(|row| row.contestant.xylem.is_some() && self.terms.task != Task::Idle) {
            if let Ratio::Refused(reason) = ratio(self.terms.task, row, &self.rows) {
                let _ = writeln!(text, "\n  No ratio for {}: {reason}", row.contestant.title());
            }
        }
        for row in &self.rows {
            if let Some(failure) = &row.failure {
                let _ = writeln!(text, "\n  FAILED: {}: {failure}", row.contestant.title());
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n  Note: {note}");
        }
        text
    }

    fn headings(&self) -> &'static [&'static str] {
        match self.terms.task {
            Task::Rr => &[
                "round trips",
                "p50 us",
                "p90",
                "p99",
                "p99.9",
                "/s",
                "CPU us client+server",
                "frames in+out",
                "p50, ratio",
            ],
            Task::Crr => &[
                "connections",
                "p50 us",
                "p90",
                "p99",
                "p99.9",
                "/s",
                "CPU us client+server",
                "frames in+out",
                "rate, ratio",
            ],
            Task::Stream => &["stream", "Gbit/s", "CPU ns/byte sender+receiver", "bytes a frame", "Gbit/s, ratio"],
            Task::Idle => &["idle connections", "client B each", "server B each", "kernel B each", "made /s", ""],
        }
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let text = |middle: Option<Middle>, digits: usize| {
            middle.map_or("-".to_owned(), |middle| format!("{:.digits$}", middle.median))
        };
        let spread = |middle: Option<Middle>, digits: usize| {
            middle.map_or("-".to_owned(), |Middle { median, least, most }| {
                format!("{median:.digits$} ({least:.digits$}..{most:.digits$})")
            })
        };
        let pair = |of: fn(&Figures) -> Option<[f64; 2]>, digits: usize| {
            let end = |end: usize| text(row.middle(|figures| Some(of(figures)?[end])), digits);
            if row.middle(|figures| Some(of(figures)?[0])).is_none() {
                return "-".to_owned();
            }
            format!("{} + {}", end(0), end(1))
        };
        let mut cells = vec![row.contestant.title()];
        match self.terms.task {
            Task::Rr | Task::Crr => {
                let latency = |of: fn(&Latency) -> f64| row.middle(move |figures| figures.latency.as_ref().map(of));
                cells.push(spread(latency(|it| it.p50), 1));
                for of in [|it: &Latency| it.p90, |it: &Latency| it.p99, |it: &Latency| it.p99_9] {
                    cells.push(text(latency(of), 1));
                }
                cells.push(spread(row.middle(|figures| figures.per_second), 0));
                cells.push(pair(|figures| figures.cpu_us, 1));
                cells.push(pair(|figures| figures.frames, 2));
            }
            Task::Stream => {
                cells.push(spread(row.middle(|figures| figures.gbps), 1));
                cells.push(pair(|figures| figures.cpu_ns_per_byte, 2));
                cells.push(text(row.middle(|figures| figures.bytes_per_frame), 0));
            }
            Task::Idle => {
                for end in [0, 1] {
                    cells.push(text(row.middle(|figures| resident(figures, end, row)), 0));
                }
                cells.push(text(row.middle(|figures| slab(figures, row)), 0));
                cells.push(text(row.middle(|figures| figures.per_second), 0));
            }
        }
        cells.push(match ratio(self.terms.task, row, &self.rows) {
            Ratio::Of { names, base, middle, .. } => {
                format!("{:.2} {names} ({:.2}..{:.2}) of {base}", middle.median, middle.least, middle.most)
            }
            Ratio::Refused(_) if row.contestant.xylem.is_none() || self.terms.task == Task::Idle => String::new(),
            Ratio::Refused(_) => "-".into(),
        });
        cells
    }
}

/// The resident bytes of one end for a connection.
fn resident(figures: &Figures, end: usize, row: &Row) -> Option<f64> {
    let Memory { resident_before, resident_after, .. } = figures.memory?[end];
    Some(resident_after.saturating_sub(resident_before) as f64 / row.work.connections? as f64)
}

/// The kernel's own bytes for a connection, on the whole machine: of both ends where both are the kernel's.
fn slab(figures: &Figures, row: &Row) -> Option<f64> {
    let Memory { slab_before, slab_after, .. } = figures.memory?[1];
    Some(slab_after.saturating_sub(slab_before) as f64 / row.work.connections? as f64)
}

/// More than three decimals is more than the machine repeats.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
