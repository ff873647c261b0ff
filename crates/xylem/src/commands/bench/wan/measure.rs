//! The repetitions: for each cell and each seed both contestants take their turn over a link made anew, so that what the
//! machine does meanwhile happens to both; whose turn is first changes from seed to seed. Ratios are taken within a seed.

use super::super::ends::Ends;
use super::super::order::server_at;
use super::super::samples::Middle;
use super::cell::Cell;
use super::order::{Answer, FETCHERS, OBJECT_TIME_MAX, OBJECTS_EACH, Order, Side};
use super::place::{Carried, Place};
use crate::commands::interruption::{Interrupted, Interruption};
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// A cell whose link took more of a processor than this in any second is void, in thousandths.
pub const SHARE_MAX: u64 = 700;

/// What a repetition may take beyond its stream and its objects.
const AROUND: Duration = Duration::from_secs(20);

/// What is the same for all cells.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The congestion control of both contestants.
    pub congestion: String,
    /// Which end is Xylem's when it is its turn; the other end is the kernel's for both.
    pub side: Side,
    /// The text of its graph, with everything said.
    pub graph: String,
    /// How long a stream lasts, if it is the same in all cells.
    pub stream: Option<Duration>,
    /// Whether small objects are fetched.
    pub objects: bool,
    /// The seeds of the links.
    pub seeds: Vec<u64>,
}

impl Terms {
    /// How long a stream lasts in this cell.
    pub fn stream_in(&self, cell: &Cell) -> Duration {
        self.stream.unwrap_or_else(|| cell.stream())
    }
}

/// Who has the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The kernel at both ends.
    Kernel,
    /// Xylem at one of them.
    Xylem,
}

/// What one contestant did with one seed.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// What the receiving application read, in Mb/s over the whole time of the stream, its handshake included.
    pub goodput_mbps: f64,
    /// Segments that went again, of all that went.
    pub retransmitted_share: f64,
    /// How long each small object took, in milliseconds.
    pub objects_ms: Vec<f64>,
    /// Small objects that did not arrive.
    pub objects_failed: u64,
    /// Reads with wrong bytes.
    pub strays: u64,
    /// The link's largest share of a processor in a second, in thousandths.
    pub link_per_mille: u64,
    /// Frames that the kernel dropped before the link could take them.
    pub link_missed: u64,
    /// How late 99 % of the frames left the link at most, in microseconds.
    pub link_late_us: f64,
    /// Frames that its queue dropped, towards the receiver.
    pub link_overflows: u64,
}

/// What happened in one cell.
pub struct Row {
    /// Which.
    pub cell: Cell,
    /// The kernel's, one a seed.
    pub kernel: Vec<Figures>,
    /// Xylem's.
    pub xylem: Vec<Figures>,
    /// Why it did not go on.
    pub failure: Option<String>,
}

impl Row {
    /// A row before its first repetition.
    pub fn new(cell: Cell) -> Row {
        Row { cell, kernel: Vec::new(), xylem: Vec::new(), failure: None }
    }

    /// Both contestants with the seed of this place.
    ///
    /// # Errors
    /// The user has had enough; whatever else goes wrong is the row's failure.
    pub fn repeat(&mut self, terms: &Terms, index: usize, interruption: &Interruption) -> io::Result<()> {
        let mut turns = [Contestant::Kernel, Contestant::Xylem];
        turns.rotate_left(index % 2);
        for contestant in turns {
            if self.failure.is_some() {
                return Ok(());
            }
            match turn(&self.cell, terms, terms.seeds[index], contestant, interruption) {
                Ok(figures) => {
                    if figures.strays > 0 {
                        let strays = figures.strays;
                        self.failure = Some(format!("expected the bytes that were sent, got {strays} wrong reads"));
                    }
                    match contestant {
                        Contestant::Kernel => self.kernel.push(figures),
                        Contestant::Xylem => self.xylem.push(figures),
                    }
                }
                Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Interrupted>()) => return Err(error),
                Err(error) => self.failure = Some(format!("{contestant:?}, seed {}: {error}", terms.seeds[index])),
            }
        }
        Ok(())
    }

    /// Why its figures do not count, if they do not.
    pub fn void(&self) -> Option<String> {
        let all = || self.kernel.iter().chain(&self.xylem);
        if let Some(failure) = &self.failure {
            return Some(failure.clone());
        }
        let share = all().map(|figures| figures.link_per_mille).max().unwrap_or(0);
        if share > SHARE_MAX {
            return Some(format!("the link took {} % of a processor, more than {} %", share / 10, SHARE_MAX / 10));
        }
        let missed: u64 = all().map(|figures| figures.link_missed).sum();
        (missed > 0)
            .then(|| format!("{missed} frames were lost before the link: it was not given the processor in time"))
    }

    /// The quotients of the goodput within each seed.
    pub fn goodput_ratio(&self) -> Option<Middle> {
        let quotient = |(own, other): (&Figures, &Figures)| own.goodput_mbps / other.goodput_mbps.max(1e-6);
        Middle::of(self.xylem.iter().zip(&self.kernel).map(quotient))
    }

    /// The time in which so many hundredths of all small objects of the cell were there, in milliseconds.
    pub fn object_percentile(figures: &[Figures], hundredths: usize) -> Option<f64> {
        let mut times: Vec<f64> = figures.iter().flat_map(|figures| figures.objects_ms.iter().copied()).collect();
        times.sort_by(f64::total_cmp);
        let rank = (times.len() * hundredths).div_ceil(100);
        times.get(rank.checked_sub(1)?).copied()
    }
}

/// One contestant, one seed.
fn turn(
    cell: &Cell,
    terms: &Terms,
    seed: u64,
    contestant: Contestant,
    interruption: &Interruption,
) -> io::Result<Figures> {
    interruption.check()?;
    let xylem = (contestant == Contestant::Xylem).then_some(terms.side);
    let place = Place::make(cell, seed, xylem)?;
    let stream = terms.stream_in(cell);
    let order = |side| Order {
        side,
        graph: (xylem == Some(side)).then(|| terms.graph.clone()),
        congestion: terms.congestion.clone(),
        at: server_at(),
        stream_ms: stream.as_millis() as u64,
        objects: terms.objects,
    };
    let objects = OBJECT_TIME_MAX * if terms.objects { OBJECTS_EACH as u32 } else { 0 };
    let until = Instant::now() + stream + objects + AROUND;
    let start = |side| Ends::start(Some(place.of(side)), "wan-end", &order(side));
    let sender = start(Side::Sender)?;
    sender.ready(until, interruption)?;
    let receiver = start(Side::Receiver)?;
    let received: Answer = match receiver.hear(until, interruption) {
        Ok(answer) => answer,
        // The sender may be the one that went wrong, and then it says why.
        Err(error) => return Err(sender.excuse().map_or(error, io::Error::other)),
    };
    let sent: Answer = sender.hear(until, interruption)?;
    drop((sender, receiver));
    let carried = place.finish()?;
    Ok(Figures::of(stream, &received, &sent, &carried))
}

impl Figures {
    fn of(stream: Duration, received: &Answer, sent: &Answer, carried: &Carried) -> Figures {
        let segments = received.bytes as f64 / (sent.segment_size.max(1)) as f64;
        let again = sent.retransmitted as f64;
        let [there, back] = &carried.ways;
        Figures {
            goodput_mbps: 8e-6 * received.bytes as f64 / stream.as_secs_f64(),
            retransmitted_share: again / (segments + again).max(1.0),
            objects_ms: received.objects_ms.clone(),
            objects_failed: received.objects_failed,
            strays: received.strays,
            link_per_mille: carried.per_mille_max,
            link_missed: there.tail_drops + back.tail_drops + there.refused + back.refused,
            link_late_us: there.lateness.within(990).as_secs_f64() * 1e6,
            link_overflows: there.link.queue_full,
        }
    }
}

/// Small objects of one contestant in one cell and seed.
pub const OBJECTS: usize = FETCHERS * OBJECTS_EACH;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(goodput_mbps: f64, objects_ms: Vec<f64>) -> Figures {
        Figures {
            goodput_mbps,
            retransmitted_share: 0.0,
            objects_ms,
            objects_failed: 0,
            strays: 0,
            link_per_mille: 100,
            link_missed: 0,
            link_late_us: 0.0,
            link_overflows: 0,
        }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_quotients_and_a_busy_link_voids_it() {
        let mut row = Row::new(Cell::usual()[0]);
        for (kernel, xylem) in [(10.0, 9.0), (20.0, 30.0), (5.0, 5.0)] {
            row.kernel.push(figures(kernel, vec![1.0, 2.0]));
            row.xylem.push(figures(xylem, vec![3.0]));
        }
        assert_eq!(row.goodput_ratio(), Some(Middle { median: 1.0, least: 0.9, most: 1.5 }));
        assert_eq!(row.void(), None);
        assert_eq!(Row::object_percentile(&row.kernel, 99), Some(2.0));
        assert_eq!(Row::object_percentile(&row.kernel, 50), Some(1.0));
        assert_eq!(Row::object_percentile(&[], 99), None);
        row.xylem[1].link_per_mille = 701;
        assert!(row.void().is_some_and(|why| why.contains("70 %")));
        row.xylem[1].link_per_mille = 700;
        row.kernel[0].link_missed = 1;
        assert!(row.void().is_some_and(|why| why.contains("1 frames")));
    }
}
