//! The end of the demonstration: a table of both contestants in the same run, and the same as JSON. A ratio names what
//! was divided, rows are divided only where both sides did the same work, and where Xylem's figure is the worse one the
//! row says so with what was measured meanwhile.

use super::load::Load;
use super::mill::Milled;
use super::parallel::Parallel;
use super::serving::Share;
use super::turn::{Measured, Ran};
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::time::Duration;

/// What a figure counts, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Millions of bits of files a second: more is better.
    Megabits,
    /// Requests a second: more is better.
    Rate,
    /// Microseconds: less is better.
    Micros,
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Unit::Megabits if value >= 10_000.0 => format!("{:.1} Gb/s", value / 1000.0),
            Unit::Megabits => format!("{value:.0} Mb/s"),
            Unit::Rate => format!("{value:.0} /s"),
            Unit::Micros => format!("{value:.0} us"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Megabits => "Mb/s",
            Unit::Rate => "requests/s",
            Unit::Micros => "us",
        }
    }

    /// Whether the first figure is worse by more than noise: less than 97 % as good.
    fn is_worse(self, xylem: f64, kernel: f64) -> bool {
        match self {
            Unit::Megabits | Unit::Rate => xylem < 0.97 * kernel,
            Unit::Micros => 0.97 * xylem > kernel,
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was done.
    pub what: String,
    /// What the figures count.
    pub unit: Unit,
    /// Xylem's figure.
    pub xylem: f64,
    /// The kernel's, if it had a turn.
    pub kernel: Option<f64>,
    /// The kernel's with its usual congestion control, where that was measured.
    pub cubic: Option<f64>,
    /// What was divided: `tap/veth`.
    pub ratio: &'static str,
    /// What was measured beside the figure.
    pub measured: Vec<String>,
}

impl Row {
    /// The quotient of the two figures, Xylem's above.
    pub fn quotient(&self) -> Option<f64> {
        self.kernel.filter(|kernel| *kernel > 0.0).map(|kernel| self.xylem / kernel)
    }

    fn is_worse(&self) -> bool {
        self.kernel.is_some_and(|kernel| self.unit.is_worse(self.xylem, kernel))
    }
}

/// Everything that is reported.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What really ran, a turn each.
    pub ran: Vec<Ran>,
    /// Both ends' processors.
    pub processors: String,
    /// The rows.
    pub rows: Vec<Row>,
    /// What did not run as it should, a sentence each.
    pub notes: Vec<String>,
    /// The way of one request.
    pub walk: Json,
    /// Transfers and answers that were not byte for byte what they should be.
    pub wrong: usize,
    /// Transfers and answers that were compared.
    pub compared: usize,
    /// How long it all took, in seconds.
    pub seconds: f64,
}

impl Report {
    /// True if every byte was right.
    pub fn is_right(&self) -> bool {
        self.wrong == 0 && self.compared > 0
    }

    /// As JSON.
    pub fn json(&self) -> Json {
        let row = |row: &Row| {
            json!({
                "what": row.what,
                "unit": row.unit.name(),
                "xylem": rounded(row.xylem),
                "kernel": row.kernel.map(rounded),
                "kernel_cubic": row.cubic.map(rounded),
                "ratio": { "of": row.ratio, "value": row.quotient().map(rounded) },
                "worse": row.is_worse(),
                "measured": row.measured,
            })
        };
        json!({
            "right": self.is_right(),
            "compared": self.compared,
            "wrong": self.wrong,
            "seconds": rounded(self.seconds),
            "processors": self.processors,
            "ran": self.ran.iter().map(Ran::json).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "walk": self.walk,
            "notes": self.notes,
        })
    }

    /// As a table for people.
    pub fn table(&self) -> String {
        let mut text = String::from("What ran\n");
        for ran in &self.ran {
            let link = ran.link.as_ref().map_or(String::new(), |link| format!(", link {link}"));
            let _ = writeln!(
                text,
                "  {:<7} {}{link}; {}; congestion control {}; client: {}",
                ran.stack, ran.device, ran.mode, ran.congestion, ran.client
            );
        }
        let _ = writeln!(text, "  {}\n", self.processors);
        let mut lines = vec![["", "Xylem", "kernel", "kernel, cubic", "ratio"].map(String::from)];
        for row in &self.rows {
            let text = |value: Option<f64>| value.map_or("-".into(), |value| row.unit.text(value));
            let ratio = row.quotient().map_or("-".into(), |quotient| format!("{quotient:.2} {}", row.ratio));
            let star = if row.is_worse() { " *" } else { "" };
            lines.push([row.what.clone(), text(Some(row.xylem)), text(row.kernel), text(row.cubic), ratio + star]);
        }
        let columns =
            if self.rows.iter().any(|row| row.cubic.is_some()) { vec![0, 1, 2, 3, 4] } else { vec![0, 1, 2, 4] };
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        for line in &lines {
            let cells = columns.iter().map(|&column| match column {
                0 | 4 => format!("{:<width$}", line[column], width = width(column)),
                _ => format!("{:>width$}", line[column], width = width(column)),
            });
            let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("   ").trim_end());
        }
        for row in self.rows.iter().filter(|row| row.is_worse()) {
            // A row that begins with spaces is another figure of the work above it, which has said why.
            if row.what.starts_with(' ')
                && self
                    .rows
                    .iter()
                    .any(|other| other.is_worse() && other.measured == row.measured && !other.what.starts_with(' '))
            {
                continue;
            }
            let _ = writeln!(text, "\n  * {}: Xylem is the slower one. Measured:", row.what.trim());
            for measured in &row.measured {
                let _ = writeln!(text, "      {measured}");
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n  Note: {note}");
        }
        let verdict = match self.is_right() {
            true => "Every byte was right",
            false => "NOT every byte was right",
        };
        let (compared, wrong, seconds) = (self.compared, self.wrong, self.seconds);
        let _ = writeln!(
            text,
            "\n{verdict}: {compared} transfers and answers compared, {wrong} wrong; {seconds:.0} s in all."
        );
        text
    }
}

/// Three significant decimals are more than the machine repeats.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The transfer whose throughput is the middle one.
pub fn median(mut transfers: Vec<Measured>) -> Option<Measured> {
    transfers.sort_by(|one, other| one.transfer.seconds.total_cmp(&other.transfer.seconds));
    transfers.get(transfers.len() / 2).copied()
}

/// What was measured beside a transfer, for a reader who asks why.
pub fn beside(who: &str, measured: &Measured) -> String {
    let gigabytes = measured.transfer.bytes as f64 / 1e9;
    let cost = measured.server.ran.as_secs_f64() / gigabytes;
    let mut text = format!("{who}: {}, {cost:.2} s a GB", shares(measured.server, measured.transfer.seconds));
    if let Some(loads) = measured.transfer.loads {
        let [client, server] = loads.map(Load::per_cent);
        let say = |(user, system, interrupt)| format!("{user} % programs, {system} % kernel, {interrupt} % interrupts");
        let _ = write!(text, "; its CPU: {}; the client's CPU: {}", say(server), say(client));
    }
    text
}

/// What was measured beside many requests.
pub fn beside_requests(who: &str, milled: &Milled, server: Share) -> String {
    let count = milled.latencies.len().max(1) as f64;
    let cost = server.ran.as_secs_f64() * 1e6 / count;
    format!("{who}: {}, {cost:.1} us a request", shares(server, milled.span.as_secs_f64()))
}

/// What was measured beside the requests that curl made.
pub fn beside_parallel(who: &str, parallel: &Parallel, server: Share) -> String {
    let count = parallel.requests.max(1) as f64;
    let cost = server.ran.as_secs_f64() * 1e6 / count;
    let mut text = format!("{who}: {}, {cost:.1} us a request", shares(server, parallel.seconds));
    if let (Some(busy), Some(processor)) = (parallel.busy(), parallel.processor) {
        let cost = processor.as_secs_f64() * 1e6 / count;
        let _ = write!(text, "; curl ran {:.0} % of the time, {cost:.0} us a request", 100.0 * busy);
    }
    let _ = write!(text, ", on {} connections by its own account", parallel.connections);
    text
}

/// Why Xylem's figure is the worse one of those that curl measured: curl itself may have been what had no time left.
pub fn cause_by_curl(xylem: (Parallel, Share), kernel: Option<(Parallel, Share)>) -> String {
    let (parallel, share) = xylem;
    let of_server = share.ran.as_secs_f64() / parallel.seconds.max(1e-9);
    match parallel.busy() {
        Some(busy) if busy > BUSY && busy > of_server => {
            let times = kernel.and_then(|(kernel, _)| {
                let kernel = kernel.processor.filter(|processor| !processor.is_zero())?;
                Some(parallel.processor?.as_secs_f64() / kernel.as_secs_f64())
            });
            let more = times.map_or(String::new(), |times| {
                format!("; it needed {times:.1} times the processor time that it needed with the kernel's server")
            });
            format!("cause: curl, which is one thread, had no time left{more}")
        }
        _ => cause(share, kernel.map(|(_, share)| share), parallel.seconds),
    }
}

/// The part of the time from which on a thread counts as one that had no time left.
const BUSY: f64 = 0.8;

fn shares(share: Share, seconds: f64) -> String {
    let part = |span: Duration| 100.0 * span.as_secs_f64() / seconds.max(1e-9);
    let (ran, waited) = (part(share.ran), part(share.waited));
    format!("the server's thread ran {ran:.0} % of the time and waited {waited:.0} % for a CPU that other threads had")
}

/// What the measurements say about why Xylem's figure is the worse one.
pub fn cause(xylem: Share, kernel: Option<Share>, seconds: f64) -> String {
    let part = |span: Duration| span.as_secs_f64() / seconds.max(1e-9);
    if part(xylem.waited) > 0.2 {
        return "cause: other threads had the CPU; measure again on a machine that does nothing else".into();
    }
    let more = kernel.filter(|kernel| !kernel.ran.is_zero()).map_or(String::new(), |kernel| {
        let times = xylem.ran.as_secs_f64() / kernel.ran.as_secs_f64();
        format!("; it needed {times:.1} times the processor time of the kernel's server thread")
    });
    if part(xylem.ran) > BUSY {
        return format!("cause: Xylem's one thread, which is stack, device calls and server, had no time left{more}");
    }
    "cause: not the processor, Xylem's thread was idle part of the time: it waited for the link or the client".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: Unit, xylem: f64, kernel: Option<f64>) -> Row {
        let measured = vec!["why".into()];
        Row { what: "it".into(), unit, xylem, kernel, cubic: None, ratio: "tap/veth", measured }
    }

    #[test]
    fn the_worse_figure_is_marked_with_what_was_measured_and_the_better_one_is_not() {
        let mut report = Report { compared: 2, ..Report::default() };
        report.rows = vec![row(Unit::Megabits, 50.0, Some(100.0)), row(Unit::Micros, 50.0, Some(100.0))];
        let text = report.table();
        assert_eq!(text.matches("slower one").count(), 1, "{text}");
        assert!(
            text.contains("0.50 tap/veth *\n") && text.contains("0.50 tap/veth\n") && text.contains("why"),
            "{text}"
        );
        assert_eq!(report.json()["rows"][0]["worse"], true);
        report.rows = vec![row(Unit::Micros, 101.0, Some(100.0)), row(Unit::Rate, 5.0, None)];
        assert!(!report.table().contains("slower one"));
    }

    #[test]
    fn a_curl_without_time_is_the_cause_and_an_idle_one_is_not() {
        let millis = Duration::from_millis;
        let of = |processor, ran| {
            let processor = Some(millis(processor));
            let parallel = Parallel { requests: 2000, wrong: 0, connections: 50, seconds: 0.2, processor };
            (parallel, Share { ran: millis(ran), waited: millis(0) })
        };
        let text = cause_by_curl(of(190, 100), Some(of(95, 100)));
        assert!(text.starts_with("cause: curl") && text.contains("2.0 times"), "{text}");
        let text = cause_by_curl(of(100, 190), Some(of(100, 95)));
        assert!(text.starts_with("cause: Xylem's one thread") && text.contains("2.0 times"), "{text}");
        assert!(cause_by_curl(of(100, 100), None).starts_with("cause: not the processor"));
        let (parallel, share) = of(190, 100);
        let text = beside_parallel("Xylem", &parallel, share);
        assert!(text.contains("curl ran 95 % of the time, 95 us a request"), "{text}");
        assert!(text.contains("on 50 connections"), "{text}");
    }

    #[test]
    fn one_wrong_byte_or_nothing_compared_is_not_right() {
        assert!(!Report::default().is_right());
        assert!(!Report { compared: 5, wrong: 1, ..Report::default() }.is_right());
        assert!(Report { compared: 5, ..Report::default() }.is_right());
    }
}
