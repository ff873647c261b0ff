//! The conditions of a comparison over a long link: one cell is one round trip, one rate, one loss, in order or not, before
//! a small or a large buffer. The full grid is all of them; by default a third less than a quarter is run, chosen so that
//! every round trip meets every loss before both buffers, and rates and reordering are dealt out evenly among them.

use std::fmt;
use std::str::FromStr;
use xylem_core::time::Duration;
use xylem_graph::link::{LINK_HEADER_BYTES, LinkModel};

/// Round trips in milliseconds.
const ROUND_TRIPS_MS: [u64; 3] = [1, 20, 100];
/// Rates in Mb/s.
const RATES_MBPS: [u64; 3] = [10, 100, 300];
/// Frames lost in a million.
const LOSSES: [u32; 4] = [0, 1_000, 10_000, 30_000];
/// Frames that later ones overtake, in a million, where there are any.
const REORDERED: u32 = 10_000;
/// The least queue of a small buffer, in frames: a burst of an initial window and some.
const SHALLOW_MIN: u64 = 16;
/// The least queue of a large buffer, in frames.
const DEEP_MIN: u64 = 100;

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The round trip of an empty link, in milliseconds.
    pub round_trip_ms: u64,
    /// What the link carries, in Mb/s of frame bytes.
    pub rate_mbps: u64,
    /// Frames lost in a million, in each direction.
    pub loss_per_million: u32,
    /// Whether one frame in a hundred is overtaken.
    pub reorders: bool,
    /// Whether the buffer holds two round trips' worth; if not, a quarter of one.
    pub is_deep: bool,
}

impl Cell {
    /// All of them.
    pub fn grid() -> Vec<Cell> {
        let mut cells = Vec::new();
        for round_trip_ms in ROUND_TRIPS_MS {
            for rate_mbps in RATES_MBPS {
                for loss_per_million in LOSSES {
                    for (reorders, is_deep) in [(false, false), (false, true), (true, false), (true, true)] {
                        cells.push(Cell { round_trip_ms, rate_mbps, loss_per_million, reorders, is_deep });
                    }
                }
            }
        }
        cells
    }

    /// The twenty-four of them that are run by default.
    pub fn usual() -> Vec<Cell> {
        let mut cells = Vec::new();
        for (row, round_trip_ms) in ROUND_TRIPS_MS.into_iter().enumerate() {
            for (column, loss_per_million) in LOSSES.into_iter().enumerate() {
                for (buffer, is_deep) in [(0, false), (1, true)] {
                    let rate_mbps = RATES_MBPS[(row + column + buffer) % RATES_MBPS.len()];
                    let reorders = (row + column / 2 + buffer) % 2 == 1;
                    cells.push(Cell { round_trip_ms, rate_mbps, loss_per_million, reorders, is_deep });
                }
            }
        }
        cells
    }

    /// How long a stream lasts here unless somebody says otherwise: some tens of round trips at least, so that a loss more or
    /// less decides nothing, and slow start still counts.
    pub fn stream(&self) -> Duration {
        Duration::from_secs(match self.round_trip_ms {
            ..10 => 3,
            10..50 => 4,
            50.. => 8,
        })
    }

    /// Frames that may wait before the link.
    pub fn queue_frames(&self) -> u64 {
        let frame_bits = 8 * (LinkModel::default().mtu + LINK_HEADER_BYTES) as u64;
        let round_trip_frames = self.rate_mbps * 1000 * self.round_trip_ms / frame_bits;
        match self.is_deep {
            true => (2 * round_trip_frames).max(DEEP_MIN),
            false => (round_trip_frames / 4).max(SHALLOW_MIN),
        }
    }

    /// The link, the same in both directions.
    pub fn link(&self) -> LinkModel {
        LinkModel {
            rate_bits_per_second: Some(self.rate_mbps * 1_000_000),
            delay: Duration::from_micros(self.round_trip_ms * 500),
            loss_per_million: self.loss_per_million,
            reorder_per_million: if self.reorders { REORDERED } else { 0 },
            queue_frames_max: self.queue_frames() as usize,
            ..LinkModel::default()
        }
    }

    /// The words of its name.
    fn words(&self) -> [String; 5] {
        let order = if self.reorders { "reordered" } else { "ordered" };
        let buffer = if self.is_deep { "deep" } else { "shallow" };
        let loss = format!("{}%", f64::from(self.loss_per_million) / 10_000.0);
        [format!("{}ms", self.round_trip_ms), format!("{}M", self.rate_mbps), loss, buffer.to_owned(), order.to_owned()]
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.words().join("-"))
    }
}

/// Some of the cells: those whose names have all these words. Without words all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(Vec<String>);

impl Filter {
    /// Whether the cell is among them.
    pub fn admits(&self, cell: &Cell) -> bool {
        let words = cell.words();
        self.0.iter().all(|word| words.contains(word))
    }
}

/// Words of a cell's name, joined by `-`.
impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let grid = Cell::grid();
        let known = |word: &&str| grid.iter().any(|cell| cell.words().iter().any(|known| known == word));
        let words: Vec<&str> = text.split('-').collect();
        match words.iter().find(|word| !known(word)) {
            None => Ok(Filter(words.into_iter().map(str::to_owned).collect())),
            Some(word) => Err(format!(
                "expected words of a cell's name joined by `-`, such as 20ms-100M-1%-shallow-ordered or 100ms-deep, got `{word}`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_cells_are_among_the_grid_and_deal_everything_out() {
        let (usual, grid) = (Cell::usual(), Cell::grid());
        assert_eq!((usual.len(), grid.len()), (24, 144));
        assert!(usual.iter().all(|cell| grid.contains(cell)));
        let count =
            |word: &str| usual.iter().filter(|cell| word.parse::<Filter>().expect("a word").admits(cell)).count();
        for (words, each) in [
            (&["1ms", "20ms", "100ms"][..], 8..=8),
            (&["10M", "100M", "300M"], 7..=9),
            (&["0%", "0.1%", "1%", "3%"], 6..=6),
            (&["deep", "shallow", "ordered", "reordered"], 12..=12),
        ] {
            for word in words {
                assert!(each.contains(&count(word)), "{word}: {}", count(word));
            }
        }
    }

    #[test]
    fn a_link_is_what_its_name_says() {
        let name = |text: &str| {
            let filter: Filter = text.parse().expect("a name");
            let cells: Vec<Cell> = Cell::grid().into_iter().filter(|cell| filter.admits(cell)).collect();
            assert_eq!(cells.len(), 1, "{text}");
            assert_eq!(cells[0].to_string(), text);
            cells[0].link()
        };
        // 100 Mb/s for 20 ms are 250 000 bytes: 165 frames of 1514 bytes, of which a quarter is 41.
        let link = name("20ms-100M-0.1%-shallow-reordered");
        assert_eq!(link.to_string(), "rate=100Mb/s delay=10ms loss=0.1% reorder=1% queue=41");
        assert_eq!(name("20ms-100M-0%-deep-ordered").to_string(), "rate=100Mb/s delay=10ms queue=330");
        assert_eq!(name("1ms-10M-0%-shallow-ordered").queue_frames_max, 16);
        assert_eq!(name("1ms-10M-0%-deep-ordered").queue_frames_max, 100);
        assert!(Cell::grid().iter().all(|cell| cell.link().check().is_ok()));
    }

    #[test]
    fn an_unknown_word_is_an_error() {
        let error = "20ms-2%".parse::<Filter>().expect_err("no such loss");
        assert!(error.contains("got `2%`"), "{error}");
    }
}
