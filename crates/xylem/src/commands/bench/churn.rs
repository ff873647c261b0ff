//! `xylem bench churn`: very many connections. A hundred thousand are made and stay; then ten thousand a second are made,
//! used once and closed for a minute, while memory, TIME-WAIT and deadlines are looked at every second; then those that
//! stayed are asked once more, and everything is closed. Against Xylem in the same process and against a kernel.
//!
//! | file | what |
//! | --- | --- |
//! | `order.rs`, `end.rs` | what an end is told, its process |
//! | `client.rs`, `server.rs` | the loops of both ends |
//! | `report.rs` | whether memory stayed flat, the table and the JSON |

mod client;
pub mod end;
mod order;
mod report;
mod server;

use super::ends::Ends;
use super::machine::Machine;
use crate::cli::{Ending, say};
use crate::commands::interruption::{Interrupted, Interruption};
use crate::commands::progress::Progress;
use crate::commands::serve::addressed;
use crate::{catalogue, graphs, place};
use clap::Args;
use order::{Answer, Order, Peer, Side};
use report::Row;
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xylem_graph::file::{self, Value};
use xylem_host::namespace::{self, Level};

/// Connections that stay.
const ESTABLISHED: u64 = 100_000;
/// The most of them.
const ESTABLISHED_MAX: u64 = 200_000;
/// Connections a second.
const RATE: u64 = 10_000;
/// How long, in seconds.
const SECONDS: u64 = 60;

/// The longest life of a segment here: what waits is twenty thousand connections and not six hundred thousand.
const SEGMENT_LIFETIME: Duration = Duration::from_secs(1);

/// What a run may take beyond its churn and the making of those that stay.
const AROUND: Duration = Duration::from_secs(150);

/// See the module's text.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    xylem bench churn                          100 000 connections that stay, 10 000 a second for a minute, both peers\n  \
    xylem bench churn --quick                  a tenth of that, for eight seconds\n  \
    xylem bench churn --peer kernel --json -   against the kernel alone, the object on standard output\n\n\
    What it means stands in docs/bench.md.\n\
    Exit codes: 0 nothing failed and memory stayed flat, 1 something is wrong, 2 it could not be run.")]
pub struct ChurnArgs {
    /// Connections that are made first and stay (default 100000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ESTABLISHED_MAX))]
    established: Option<u64>,
    /// Connections begun in a second (default 10000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=50_000))]
    rate: Option<u64>,
    /// How long, in seconds (default 60)
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Who is at the other end (default: both)
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    peer: Vec<Peer>,
    /// A rough answer: a tenth of the connections, and eight seconds
    #[arg(long)]
    quick: bool,
    /// A graph file for Xylem's hosts, or the name of a graph that comes with Xylem; addresses and limits are set here
    #[arg(long, value_name = "FILE", default_value = "host")]
    graph: String,
    /// Write the result as a JSON object to this file; `-` is standard output, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl ChurnArgs {
    /// Does it.
    pub fn run(&self) -> Ending {
        super::ended(self.measure())
    }

    fn measure(&self) -> io::Result<bool> {
        let begun = Instant::now();
        let machine = Machine::look();
        let mut notes = machine.warnings();
        let order = self.order()?;
        let peers = if self.peer.is_empty() { vec![Peer::Xylem, Peer::Kernel] } else { self.peer.clone() };
        // Before any thread: a user namespace takes a process without.
        let privilege = namespace::privilege();
        if peers.contains(&Peer::Kernel) && privilege.level == Level::UserNamespace {
            namespace::enter_unprivileged().map_err(io::Error::other)?;
            notes.push(format!("{}: it ran in a user namespace", privilege.reason));
        }
        let interruption = Interruption::on_signals()?;
        let mut progress = Progress::new(peers.len());
        let mut rows = Vec::new();
        for peer in peers {
            progress.step(&format!(
                "{} connections that stay, then {} a second for {} s, peer {peer:?}",
                order.established, order.rate, order.seconds
            ));
            let answer = run(&Order { peer, ..order.clone() }, &interruption);
            let answer = match answer {
                Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Interrupted>()) => return Err(error),
                answer => answer.map_err(|error| error.to_string()),
            };
            notes.extend(answer.iter().flat_map(|answer| answer.notes.iter().cloned()));
            rows.push(Row { peer, answer });
        }
        progress.clear();
        let established = order.established as u64;
        let json = || {
            format!(
                "{:#}\n",
                json!({
                    "bench": "churn",
                    "machine": machine.json("nobody is pinned", "-20 where it is allowed", begun.elapsed().as_secs_f64()),
                    "established": established,
                    "rate": order.rate,
                    "seconds": order.seconds,
                    "rows": rows.iter().map(|row| row.json(established)).collect::<Vec<_>>(),
                    "notes": notes,
                })
            )
        };
        let mut text: String = rows.iter().map(|row| row.text(established)).collect();
        notes.iter().for_each(|note| text += &format!("\n  Note: {note}\n"));
        match &self.json {
            Some(file) if file.as_os_str() == "-" => say(json()),
            Some(file) => {
                std::fs::write(file, json())
                    .map_err(|error| io::Error::other(format!("write {}: {error}", file.display())))?;
                say(text);
            }
            None => say(text),
        }
        Ok(rows.iter().all(|row| row.faults(established).is_empty()))
    }

    fn order(&self) -> io::Result<Order> {
        let (established, rate, seconds) =
            if self.quick { (ESTABLISHED / 10, RATE / 10, 8) } else { (ESTABLISHED, RATE, SECONDS) };
        let order = Order {
            side: Side::Client,
            port: 0,
            peer: Peer::Xylem,
            established: self.established.unwrap_or(established) as usize,
            rate: self.rate.unwrap_or(rate),
            seconds: self.seconds.unwrap_or(seconds),
            graph: String::new(),
        };
        Ok(Order { graph: self.graph_for(&order)?, ..order })
    }

    /// The text of the graph of Xylem's hosts, with room for so many.
    fn graph_for(&self, order: &Order) -> io::Result<String> {
        let text = graphs::read(&self.graph).map_err(|error| io::Error::other(error.to_string()))?;
        let catalogue = catalogue::builtin();
        let wrong = |problems: Vec<_>| io::Error::other(file::report(&self.graph, &problems));
        let mut graph = file::load(&text, &catalogue).map_err(wrong)?;
        let most = order.connections_max() as i64;
        for (option, value) in [
            ("msl", Value::Duration(SEGMENT_LIFETIME)),
            ("ports", Value::Text("1024-65535".into())),
            ("connections", Value::Integer(most)),
            ("time_waits", Value::Integer(most)),
        ] {
            addressed::say_of_tcp(&mut graph, option, value).map_err(io::Error::other)?;
        }
        match file::check(&graph, &catalogue) {
            problems if problems.is_empty() => Ok(graph.to_string()),
            problems => Err(wrong(problems)),
        }
    }
}

/// One run.
fn run(order: &Order, interruption: &Interruption) -> io::Result<Answer> {
    interruption.check()?;
    let until = Instant::now() + Duration::from_secs(order.seconds + order.established as u64 / 1000) + AROUND;
    if order.peer == Peer::Xylem {
        return Ends::start(None, "churn-end", order)?.answer(until, interruption);
    }
    let namespace = place::namespace("reno")?;
    let mut servers = Vec::new();
    for port in order::ports() {
        let order = Order { side: Side::Server, port, ..order.clone() };
        let server = Ends::start(Some(&namespace), "churn-end", &order)?;
        server.ready(until, interruption)?;
        servers.push(server);
    }
    let client = Ends::start(Some(&namespace), "churn-end", order)?;
    // The server may be the one that went wrong, and then it says why.
    client.answer(until, interruption).map_err(|error| match error.get_ref() {
        Some(inner) if inner.is::<Interrupted>() => error,
        _ => servers.iter().find_map(Ends::excuse).map_or(error, io::Error::other),
    })
}
