//! `xylem bench`: Xylem and the kernel's own sockets on the same work in the same run, their repetitions interleaved, both
//! pinned and tuned alike. Rows say exactly what they did; only rows that did the same are divided. Each end is a process
//! of its own in namespaces of its own; nothing is left behind.
//!
//! | file | what |
//! | --- | --- |
//! | `contestant.rs`, `work.rs` | who takes part, what they do in words, which rows may be divided |
//! | `measure.rs`, `ends.rs` | the repetitions, and the hold on the processes of both ends |
//! | `order.rs`, `end.rs`, `network.rs` | what an end is told, its process, its sockets |
//! | `round_trips.rs`, `stream.rs`, `connections.rs`, `idle.rs` | the loops of both ends |
//! | `wan.rs`, `wan/` | transfers over an emulated long link, beside the kernel's |
//! | `churn.rs`, `churn/` | very many connections, and very many a second |
//! | `samples.rs`, `report.rs`, `machine.rs` | percentiles and medians, the table and the JSON |

mod churn;
mod connections;
mod contestant;
mod end;
mod ends;
mod idle;
mod machine;
mod measure;
mod network;
mod order;
mod report;
mod round_trips;
mod samples;
mod stream;
mod wan;
mod work;

use crate::cli::{Ending, complain, say};
use crate::commands::interruption::{self, Interrupted, Interruption};
use crate::commands::progress::Progress;
use crate::commands::serve::addressed::{self, Addresses};
use crate::place::{self, Processors};
use crate::{catalogue, graphs};
use clap::{Args, Subcommand};
use contestant::{Choice, Terms};
use machine::Machine;
use measure::{AROUND, Row};
use order::{Carrier, Task, Turns, Waiting};
use report::Report;
use std::cell::OnceCell;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xylem_graph::file;
use xylem_host::namespace::{self, Level};

/// The most bytes of a request, a response or a write.
const BYTES_MAX: u64 = 1 << 20;
/// The longest a repetition may be measured, in seconds.
const SECONDS_MAX: f64 = 60.0;
/// The shortest, in seconds: below it a repetition is over before windows and caches have settled.
const SECONDS_MIN: f64 = 0.05;
/// The most connections of a repetition: half the ports there are, for the kernel's search slows down beyond.
const CONNECTIONS_MAX: u64 = 30_000;
/// Connections of a repetition of `crr`: fewer than the ports that RFC 6335, section 6, leaves to clients, of which Xylem
/// takes its own.
const CRR_CONNECTIONS: usize = 15_000;
/// Connections that idle.
const IDLE_CONNECTIONS: usize = 10_000;
/// Bytes of one write of a stream.
const WRITE_BYTES: usize = 128 << 10;

/// See the module's text.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Round trips: a request and a response on one connection, again and again
    Rr(BenchArgs),
    /// A stream of bytes in one direction, counted at the receiver
    Stream(BenchArgs),
    /// Connections: connect, request, response, close
    Crr(BenchArgs),
    /// Memory of many established connections in one process
    Idle(BenchArgs),
    /// Transfers over a long, lossy, narrow link, beside the kernel's over the same one
    Wan(wan::WanArgs),
    /// Very many connections that stay, and very many a second that come and go: memory, TIME-WAIT, lost wake-ups
    Churn(churn::ChurnArgs),
    /// One end; the other commands start it
    #[command(hide = true)]
    End {
        /// Its order, as JSON
        order: String,
    },
    /// One end of a churn
    #[command(hide = true)]
    ChurnEnd {
        /// Its order, as JSON
        order: String,
    },
    /// One end of a transfer over the long link
    #[command(hide = true)]
    WanEnd {
        /// Its order, as JSON
        order: String,
    },
}

/// What all of them can be told.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    xylem bench rr                             every device, shell and role beside the kernel's sockets\n  \
    xylem bench rr --quick --shell inline --waiting spin    the latency of the application's own thread, roughly\n  \
    xylem bench stream --device tap --json stream.json      the table here, the object there\n  \
    xylem bench crr --device packet,tap        packet sockets on a veth pair beside a TAP\n\n\
    Figures say something on a machine that does nothing else; what they mean stands in docs/bench.md.\n\
    Exit codes: 0 all rows were measured, 1 a row failed, 2 it could not be run.")]
pub struct BenchArgs {
    /// Bytes of a request and a response (default 1), or of a write of the stream (default 131072)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=BYTES_MAX))]
    bytes: Option<u64>,
    /// How long a repetition is measured (default 1)
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// How often everybody takes a turn; the median counts (default 5)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    repetitions: Option<u8>,
    /// A rough answer in seconds: three short repetitions
    #[arg(long)]
    quick: bool,
    /// The most connections of a repetition of crr, and those of idle (default 15000 and 10000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    connections: Option<u64>,
    /// Devices of Xylem's (default: all that work here)
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    device: Vec<Carrier>,
    /// Shells of Xylem's (default: all)
    #[arg(long, value_name = "SHELL", value_delimiter = ',')]
    shell: Vec<Turns>,
    /// How the applications wait (default: both ways)
    #[arg(long, value_name = "WAY", value_delimiter = ',')]
    waiting: Vec<Waiting>,
    /// A graph file for Xylem's host, or the name of a graph that comes with Xylem; its address is set here
    #[arg(long, value_name = "FILE", default_value = "host")]
    graph: String,
    /// Write the result as a JSON object to this file; `-` is standard output, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let within = |seconds: &f64| (SECONDS_MIN..=SECONDS_MAX).contains(seconds);
    let number = text.parse().ok().filter(within);
    number.ok_or_else(|| format!("expected {SECONDS_MIN} to {SECONDS_MAX} seconds, got {text}"))
}

impl BenchCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        let (task, args) = match self {
            BenchCommand::Rr(args) => (Task::Rr, args),
            BenchCommand::Stream(args) => (Task::Stream, args),
            BenchCommand::Crr(args) => (Task::Crr, args),
            BenchCommand::Idle(args) => (Task::Idle, args),
            BenchCommand::Wan(args) => return args.run(),
            BenchCommand::Churn(args) => return args.run(),
            BenchCommand::ChurnEnd { order } => return churn::end::run(&order),
            BenchCommand::End { order } => return end::run(&order),
            BenchCommand::WanEnd { order } => return wan::end::run(&order),
        };
        ended(args.measure(task))
    }
}

/// How a measurement ends: whether all was measured, or why not.
fn ended(answer: io::Result<bool>) -> Ending {
    match answer {
        Ok(true) => Ending::Right,
        Ok(false) => Ending::Wrong,
        Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Interrupted>()) => {
            complain("interrupted; nothing is left behind");
            // Both ends have ended: the values that held them are gone.
            std::process::exit(interruption::EXIT_STATUS)
        }
        Err(error) => {
            complain(error.to_string());
            Ending::Unasked
        }
    }
}

impl BenchArgs {
    /// Measures, and reports; true if no row failed.
    fn measure(&self, task: Task) -> io::Result<bool> {
        let begun = Instant::now();
        let machine = Machine::look();
        let mut notes: Vec<String> = machine.warnings();
        // Before any thread: a user namespace takes a process without.
        let privilege = namespace::privilege();
        if privilege.level == Level::UserNamespace {
            namespace::enter_unprivileged().map_err(io::Error::other)?;
            notes.push(format!("{}: it ran in a user namespace", privilege.reason));
        }
        let interruption = Interruption::on_signals()?;
        let terms = self.terms(task)?;
        let mut rows = self.rows(&terms, privilege.level, &privilege.reason, &mut notes)?;
        let repetitions = self.repetitions();
        let end = begun + self.bound(&terms, rows.len() * repetitions);
        let mut progress = Progress::new(repetitions * rows.len());
        for repetition in 1..=repetitions {
            for row in &mut rows {
                progress.step(&format!("repetition {repetition} of {repetitions}: {}", row.contestant.title()));
                row.repeat(&terms, end, &interruption)?;
            }
        }
        progress.clear();
        for row in &rows {
            for note in row.notes.iter().map(|note| format!("the device {}: {note}", row.contestant.device())) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        let tuned = rows.iter().map(|row| row.tuned.as_str()).find(|tuned| !tuned.is_empty()).unwrap_or("-").to_owned();
        let machine = machine.json(&terms.processors.to_string(), &tuned, begun.elapsed().as_secs_f64());
        let report = Report { terms, machine, rows, notes, repetitions };
        self.tell(&report, &format!("{}; {tuned}", report.terms.processors))?;
        Ok(report.is_right())
    }

    fn tell(&self, report: &Report, ends: &str) -> io::Result<()> {
        let json = || format!("{:#}\n", report.json());
        match &self.json {
            Some(file) if file.as_os_str() == "-" => {
                say(json());
                return Ok(());
            }
            Some(file) => std::fs::write(file, json())
                .map_err(|error| io::Error::other(format!("write {}: {error}", file.display())))?,
            None => {}
        }
        say(format!("{}\n  {ends}\n", report.table()));
        Ok(())
    }

    /// The rows of those who were asked for and can take part here; who cannot is said.
    fn rows(&self, terms: &Terms, level: Level, reason: &str, notes: &mut Vec<String>) -> io::Result<Vec<Row>> {
        let choice = Choice { carriers: self.device.clone(), turns: self.shell.clone(), waiting: self.waiting.clone() };
        let tun = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
        // Tried once and only if it is asked for, since it needs a place of its own.
        let packet = OnceCell::new();
        let mut rows = Vec::new();
        for contestant in contestant::all(terms.task).into_iter().filter(|it| choice.admits(it)) {
            let carrier = contestant.xylem.map(|entry| entry.carrier);
            let missing = match (carrier, level) {
                (Some(Carrier::Wire), _) => None,
                (_, Level::Nothing) => Some(format!("no row that needs namespaces: {reason}")),
                (Some(Carrier::Tap), _) => tun.as_ref().err().map(|error| {
                    format!("no row over a TAP: /dev/net/tun: {error}; run as root, or make the file accessible")
                }),
                (Some(Carrier::Packet), _) => {
                    let tried = packet.get_or_init(|| try_packet(terms.congestion));
                    tried.as_ref().err().map(|error| format!("no row over packet sockets: {error}"))
                }
                (None, _) => None,
            };
            match missing {
                None => rows.push(Row::new(contestant, terms)),
                Some(missing) if carrier.is_some_and(|carrier| self.device.contains(&carrier)) => {
                    return Err(io::Error::other(missing));
                }
                Some(missing) if !notes.contains(&missing) => notes.push(missing),
                Some(_) => {}
            }
        }
        if rows.is_empty() {
            let why = notes.last().map_or("these options leave nobody", String::as_str);
            return Err(io::Error::other(format!("expected somebody to measure, got nobody: {why}")));
        }
        Ok(rows)
    }

    fn repetitions(&self) -> usize {
        self.repetitions.map_or(if self.quick { 3 } else { 5 }, usize::from)
    }

    /// The longest the whole may take: what it should take, twice, and the bound of one repetition.
    fn bound(&self, terms: &Terms, turns: usize) -> Duration {
        // A place and two processes take well below a second to make and to end.
        let turn = Duration::from_secs_f64(terms.seconds) + Duration::from_secs(2);
        turn * 2 * turns as u32 + AROUND
    }

    fn terms(&self, task: Task) -> io::Result<Terms> {
        let text = graphs::read(&self.graph).map_err(|error| io::Error::other(error.to_string()))?;
        let catalogue = catalogue::builtin();
        let graph =
            file::load(&text, &catalogue).map_err(|problems| io::Error::other(file::report(&self.graph, &problems)))?;
        // The kernel's usual one where both may have it, else one that both have: the same at all ends.
        let with = |congestion: &'static str| {
            let mut graph = graph.clone();
            let addresses = Addresses { congestion: Some(congestion), ..Addresses::default() };
            addressed::say(&mut graph, &addresses).map_err(io::Error::other)?;
            match file::check(&graph, &catalogue) {
                problems if problems.is_empty() => Ok((congestion, graph)),
                problems => Err(io::Error::other(file::report(&self.graph, &problems))),
            }
        };
        // A namespace may choose only what the machine allows namespaces, which is often Reno alone.
        let may = |congestion| place::namespace(congestion).map(drop);
        let (congestion, graph) = may("cubic").and_then(|()| with("cubic")).or_else(|_| with("reno"))?;
        let usual = match task {
            Task::Stream => WRITE_BYTES,
            _ => 1,
        };
        let connections = if task == Task::Idle { IDLE_CONNECTIONS } else { CRR_CONNECTIONS };
        let quick = if self.quick { QUICK_SECONDS } else { 1.0 };
        Ok(Terms {
            task,
            bytes: self.bytes.map_or(usual, |bytes| bytes as usize),
            seconds: self.seconds.unwrap_or(quick),
            connections: self.connections.map_or(connections, |connections| connections as usize),
            processors: Processors::choose(),
            congestion,
            demux: graph.demux.value.to_string(),
            data: graph.data.value.to_string(),
            graph: graph.to_string(),
        })
    }
}

/// Packet sockets on a veth pair, opened and closed again; or why there are none here.
fn try_packet(congestion: &str) -> io::Result<()> {
    let (client, server) = (place::namespace(congestion)?, place::namespace(congestion)?);
    place::packet(&client, &server).map(drop)
}

/// How long a repetition is measured when it shall be quick, in seconds.
const QUICK_SECONDS: f64 = 0.2;
