//! `xylem bench wan`: the same transfers through the same emulated link, sent by Xylem and by the kernel towards the same
//! kernel: streams of a fixed time and small objects, in cells of round trip, rate, loss, order and buffer, over the same
//! seeds. It prints what a receiving application got of either, and what it cost.
//!
//! | file | what |
//! | --- | --- |
//! | `cell.rs` | the conditions: the grid, the usual part of it, the filter |
//! | `place.rs` | namespaces, cables and the link of one repetition |
//! | `order.rs`, `end.rs` | what an end is told, its process, its loops |
//! | `measure.rs`, `report.rs` | the repetitions and their figures, the table and the JSON |

mod cell;
pub mod end;
mod measure;
mod order;
mod place;
mod report;

use super::machine::Machine;
use super::order::{CLIENT, SERVER};
use super::{SECONDS_MIN, seconds};
use crate::cli::{Ending, say};
use crate::commands::interruption::Interruption;
use crate::commands::progress::Progress;
use crate::commands::serve::addressed::{self, Addresses};
use crate::{catalogue, graphs};
use cell::{Cell, Filter};
use clap::Args;
use measure::{Row, Terms};
use order::{BUFFER_BYTES, Side};
use report::Report;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xylem_graph::file::{self, Value};
use xylem_host::namespace::{self, Level};
use xylem_wire::Cidr;

/// The longest a stream may last, in seconds.
const STREAM_SECONDS_MAX: f64 = 8.0;
/// Seeds of the links.
const SEEDS: u64 = 5;
/// The same for a rough answer.
const QUICK_SEEDS: u64 = 3;
/// And how long its streams last, in seconds.
const QUICK_SECONDS: f64 = 2.0;

/// See the module's text.
#[derive(Clone, Debug, Args)]
#[command(after_help = "A cell is named RTT-RATE-LOSS-BUFFER-ORDER, such as 20ms-100M-1%-shallow-ordered.\n\n\
    Examples:\n  \
    xylem bench wan                            24 cells, CUBIC, five seeds: about forty minutes\n  \
    xylem bench wan --quick --cells 20ms       the cells with a round trip of 20 ms, roughly\n  \
    xylem bench wan --full --cells 100ms-300M-0% --seeds 2 --json wan.json\n  \
    xylem bench wan --congestion bbr --from    what BBR of the kernel delivers to Xylem, and to itself\n\n\
    What it means stands in docs/bench.md.\n\
    Exit codes: 0 all cells were measured, 1 one was not, 2 it could not be run.")]
pub struct WanArgs {
    /// All 144 cells in place of 24
    #[arg(long)]
    full: bool,
    /// Only cells whose names have these words, joined by `-`; several filters add up
    #[arg(long, value_name = "FILTER", value_delimiter = ',')]
    cells: Vec<Filter>,
    /// The congestion control of both
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = ["cubic", "bbr", "reno"])]
    congestion: String,
    /// Xylem receives from a kernel in place of sending to it
    #[arg(long)]
    from: bool,
    /// How long a stream lasts, at most 8 (default: 3 s, 4 s or 8 s by the round trip)
    #[arg(long, value_name = "S", value_parser = stream_seconds)]
    seconds: Option<f64>,
    /// How many seeds (default 5)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=99))]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// No small objects
    #[arg(long)]
    no_objects: bool,
    /// A rough answer: three seeds and short streams
    #[arg(long)]
    quick: bool,
    /// A graph file for Xylem's host, or the name of a graph that comes with Xylem; addresses and buffers are set here
    #[arg(long, value_name = "FILE", default_value = "host")]
    graph: String,
    /// Write the result as a JSON object to this file; `-` is standard output, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn stream_seconds(text: &str) -> Result<f64, String> {
    match seconds(text) {
        Ok(number) if number <= STREAM_SECONDS_MAX => Ok(number),
        _ => Err(format!("expected {SECONDS_MIN} to {STREAM_SECONDS_MAX} seconds, got {text}")),
    }
}

impl WanArgs {
    /// Does it.
    pub fn run(&self) -> Ending {
        super::ended(self.measure())
    }

    /// Measures, and reports; true if every cell was measured.
    fn measure(&self) -> io::Result<bool> {
        let begun = Instant::now();
        let machine = Machine::look();
        let mut notes = machine.warnings();
        // Before any thread: a user namespace takes a process without.
        let privilege = namespace::privilege();
        match privilege.level {
            Level::Nothing => return Err(io::Error::other(privilege.reason)),
            Level::UserNamespace => {
                namespace::enter_unprivileged().map_err(io::Error::other)?;
                notes.push(format!("{}: it ran in a user namespace", privilege.reason));
            }
            Level::Root => {}
        }
        let interruption = Interruption::on_signals()?;
        let terms = self.terms()?;
        let cells = self.chosen()?;
        let mut rows: Vec<Row> = cells.into_iter().map(Row::new).collect();
        let mut progress = Progress::new(rows.len() * terms.seeds.len());
        // A cell at a time: whoever debugs one sees it whole, and both contestants have the same minute.
        for row in &mut rows {
            for (index, seed) in terms.seeds.iter().enumerate() {
                let so_far = row.goodput_ratio().map_or(String::new(), |it| format!(", {:.2} so far", it.median));
                progress.step(&format!("{}, seed {seed}{so_far}", row.cell));
                row.repeat(&terms, index, &interruption)?;
            }
        }
        progress.clear();
        let machine = machine.json("nobody is pinned", "-20 where it is allowed", begun.elapsed().as_secs_f64());
        let report = Report { terms, machine, rows, notes };
        let json = || format!("{:#}\n", report.json());
        match &self.json {
            Some(file) if file.as_os_str() == "-" => say(json()),
            Some(file) => {
                std::fs::write(file, json())
                    .map_err(|error| io::Error::other(format!("write {}: {error}", file.display())))?;
                say(report.table());
            }
            None => say(report.table()),
        }
        Ok(report.is_right())
    }

    fn chosen(&self) -> io::Result<Vec<Cell>> {
        let all = if self.full { Cell::grid() } else { Cell::usual() };
        let admitted = |cell: &Cell| self.cells.is_empty() || self.cells.iter().any(|filter| filter.admits(cell));
        let cells: Vec<Cell> = all.into_iter().filter(admitted).collect();
        if cells.is_empty() {
            return Err(io::Error::other(
                "--cells: expected a filter that leaves a cell, got none; the whole grid is there with --full",
            ));
        }
        Ok(cells)
    }

    fn terms(&self) -> io::Result<Terms> {
        let side = if self.from { Side::Receiver } else { Side::Sender };
        let usual = if self.quick { QUICK_SEEDS } else { SEEDS };
        Ok(Terms {
            congestion: self.congestion.clone(),
            side,
            graph: self.graph_of(side)?,
            stream: self.seconds.or(self.quick.then_some(QUICK_SECONDS)).map(Duration::from_secs_f64),
            objects: !self.no_objects,
            seeds: (self.seed..).take(self.seeds.unwrap_or(usual) as usize).collect(),
        })
    }

    /// The text of Xylem's graph, with its address, its congestion control, and buffers that grow as far as the kernel's.
    fn graph_of(&self, side: Side) -> io::Result<String> {
        let text = graphs::read(&self.graph).map_err(|error| io::Error::other(error.to_string()))?;
        let catalogue = catalogue::builtin();
        let wrong = |problems: Vec<_>| io::Error::other(file::report(&self.graph, &problems));
        let mut graph = file::load(&text, &catalogue).map_err(wrong)?;
        let own = if side == Side::Sender { SERVER } else { CLIENT };
        let address = Cidr::new(own, crate::place::PREFIX_BITS).map_err(|error| io::Error::other(error.to_string()))?;
        let congestion = match self.congestion.as_str() {
            "bbr" => "bbr",
            "reno" => "reno",
            _ => "cubic",
        };
        let addresses = Addresses { address: Some(address), congestion: Some(congestion), ..Addresses::default() };
        addressed::say(&mut graph, &addresses).map_err(io::Error::other)?;
        for option in ["receive_buffer_max", "send_buffer_max"] {
            let bytes = Value::Size(BUFFER_BYTES as u64);
            addressed::say_of_tcp(&mut graph, option, bytes).map_err(io::Error::other)?;
        }
        match file::check(&graph, &catalogue) {
            problems if problems.is_empty() => Ok(graph.to_string()),
            problems => Err(wrong(problems)),
        }
    }
}
