//! What a run came to: for people as text, for programs as values that serialise. Everything in it follows from the
//! scenario and the seed, so that two reports of the same run are equal.

use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A run of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// `done`, `stuck` (something is not done and nothing will happen any more) or `time up`.
    pub outcome: &'static str,
    /// When that was, in nanoseconds of virtual time.
    pub done_at_ns: u64,
    /// Frames that left or reached a host.
    pub events: u64,
    /// The hash over these events: sixteen hexadecimal digits.
    pub hash: String,
    /// What the applications did, conversation by conversation.
    pub traffic: Vec<Drove>,
    /// What each cable did, direction by direction.
    pub links: Vec<LinkReport>,
    /// What each host counted.
    pub hosts: Vec<HostReport>,
    /// What was checked.
    pub checks: Vec<Checked>,
}

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drove {
    /// Its name in the scenario; several alike share it.
    pub name: String,
    /// What it was to do.
    pub what: String,
    /// How it went.
    pub how: String,
    /// Whether it ended as it should.
    pub right: bool,
    /// Bytes that arrived and were right.
    pub bytes: u64,
    /// When it was done, in nanoseconds of virtual time.
    pub done_at_ns: Option<u64>,
}

/// One direction of a cable, in frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // The names are the words of the link model.
pub struct LinkReport {
    pub name: String,
    pub from: String,
    pub to: String,
    pub sent: u64,
    pub delivered: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub lost: u64,
    pub down: u64,
    pub too_big: u64,
    pub queue_full: u64,
}

/// What a host counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Frames from devices.
    pub frames_in: u64,
    /// Frames to devices.
    pub frames_out: u64,
    /// Paths opened, those for replies included.
    pub paths_opened: u64,
    /// Paths that stand in the end, those kept for replies not counted.
    pub paths_left: u64,
    /// Frames that found no buffer when they arrived.
    pub frames_without_buffer: u64,
    /// What was dropped, by protocol and reason.
    pub drops: Vec<Dropped>,
}

/// One reason for drops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Whose reason.
    pub protocol: String,
    /// The reason.
    pub why: String,
    /// How often.
    pub count: u64,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// What was checked.
    pub what: String,
    /// Whether it holds.
    pub right: bool,
    /// What was found.
    pub said: String,
}

impl Report {
    /// Whether every check holds.
    pub fn is_right(&self) -> bool {
        self.checks.iter().all(|check| check.right)
    }

    /// The checks that do not hold, a line each.
    pub fn failures(&self) -> String {
        self.checks.iter().filter(|check| !check.right).map(|check| format!("{check}\n")).collect()
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}: {}", if self.right { "holds" } else { "FAILS" }, self.what, self.said)
    }
}

/// Conversations that the text lists one by one; more are summed up.
const LISTED_MAX: usize = 12;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = seconds(self.done_at_ns);
        writeln!(f, "seed {}: {} after {time}, {} events, hash {}", self.seed, self.outcome, self.events, self.hash)?;
        writeln!(f, "\ntraffic")?;
        for drove in self.traffic.iter().filter(|drove| !drove.right).chain(self.right()).take(LISTED_MAX) {
            let mark = if drove.right { "right" } else { "WRONG" };
            let when = drove.done_at_ns.map_or("never".to_owned(), seconds);
            writeln!(f, "  {mark}  {}  {}: {} (done at {when})", drove.name, drove.what, drove.how)?;
        }
        if let Some(more) = self.traffic.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
            writeln!(f, "  and {more} more; {} of all {} are right", self.right().count(), self.traffic.len())?;
        }
        writeln!(
            f,
            "\nlinks{:>31}{:>10}{:>6}{:>6}{:>6}{:>6}{:>6}{:>6}",
            "sent", "delivered", "lost", "dup", "reord", "corr", "down", "full"
        )?;
        for link in &self.links {
            let way = format!("{}: {} -> {}", link.name, link.from, link.to);
            let LinkReport { sent, delivered, lost, duplicated, reordered, corrupted, down, queue_full, .. } = link;
            write!(
                f,
                "  {way:24}{sent:>10}{delivered:>10}{lost:>6}{duplicated:>6}{reordered:>6}{corrupted:>6}{down:>6}"
            )?;
            writeln!(f, "{:>6}", queue_full + link.too_big)?;
        }
        writeln!(f, "\nhosts")?;
        for host in &self.hosts {
            let HostReport { name, frames_in, frames_out, paths_opened, paths_left, .. } = host;
            writeln!(
                f,
                "  {name}: {frames_in} frames in, {frames_out} out, {paths_opened} paths opened, {paths_left} left"
            )?;
            for Dropped { protocol, why, count } in &host.drops {
                writeln!(f, "    dropped {count} by {protocol}: {why}")?;
            }
            if host.frames_without_buffer > 0 {
                writeln!(f, "    {} frames found no buffer", host.frames_without_buffer)?;
            }
        }
        writeln!(f, "\nchecks")?;
        self.checks.iter().try_for_each(|check| writeln!(f, "  {check}"))
    }
}

impl Report {
    fn right(&self) -> impl Iterator<Item = &Drove> {
        self.traffic.iter().filter(|drove| drove.right)
    }
}

/// Nanoseconds as seconds, to the microsecond.
pub(super) fn seconds(nanoseconds: u64) -> String {
    let span = Duration::from_nanos(nanoseconds);
    format!("{}.{:06} s", span.as_secs(), span.subsec_micros())
}
