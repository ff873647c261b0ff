//! Traffic: what the applications of a simulation do, and what they check while they do it.

pub mod datagrams;
mod numbers;
pub mod ping;
pub mod transfer;

pub use datagrams::Datagrams;
pub use ping::Ping;
pub use transfer::{Transfer, Wish};

use crate::host::Host;
use xylem_core::Instant;

/// One conversation, or several alike, that the simulator drives.
pub trait Traffic {
    /// Does what can be done now; `true` if something was done.
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool;

    /// When it wants to do something by itself next.
    fn next(&self) -> Option<Instant> {
        None
    }

    /// How far it is.
    fn progress(&self) -> Progress;

    /// What it is and how it went, for people and reports.
    fn outline(&self) -> Outline;
}

/// How far some traffic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not done.
    Going,
    /// Done, and everything was right.
    Right,
    /// Done or given up, and something was not right.
    Wrong,
}

/// What some traffic was and how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// What it is, as a phrase.
    pub what: String,
    /// How it went, as a phrase.
    pub how: String,
    /// The conversation itself ended before its time: its protocol said so.
    pub failed: bool,
    /// Bytes that arrived and were right.
    pub bytes: u64,
    /// When it was done.
    pub done_at: Option<Instant>,
}
