//! `xylem sim`: runs scenarios in virtual time. One run reports what happened; many seeds report those that failed. What
//! fails can be run again with the command that is printed beside it.

pub mod golden;
pub mod sweep;
pub mod trace;

use crate::catalogue;
use crate::cli::{Ending, complain, note, say};
use crate::graphs;
use serde_json::json;
use std::cell::RefCell;
use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::Path;
use xylem_graph::build::Catalogue;
use xylem_graph::file::{self, Graph};
use xylem_sim::scenario::{GraphName, Plan, Report, parse};

/// See the module's text.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    xylem sim scenarios/lossy-transfer.sim\n  \
    xylem sim scenarios/lossy-transfer.sim --seed 7 --trace | less\n  \
    xylem sim scenarios/lossy-transfer.sim --seeds 1000\n  \
    xylem sim scenarios/*.sim --write-golden     after a change that is meant to change frames")]
pub struct SimCommand {
    /// Scenario files; docs of the format: the module `xylem_sim::scenario`
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Run with this seed instead of the scenario's own
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run with so many seeds in a row, on every core
    #[arg(long, value_name = "N", conflicts_with = "trace")]
    seeds: Option<NonZeroU64>,
    /// Print reports as JSON
    #[arg(long)]
    json: bool,
    /// Print every frame that leaves or reaches a host
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// Write the hash that a scenario's own seed gives into its file, if every other check holds
    #[arg(long, conflicts_with_all = ["seed", "seeds", "trace"])]
    write_golden: bool,
}

thread_local! {
    /// The command that replays what this thread runs, should it panic.
    static REPLAY: RefCell<Option<String>> = const { RefCell::new(None) };
}

impl SimCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        say_how_to_replay_a_panic();
        let catalogue = catalogue::builtin();
        let mut ending = Ending::Right;
        for scenario in &self.scenarios {
            let one = match load(scenario, &catalogue) {
                Ok(plan) => self.run_plan(scenario, &plan),
                Err(ending) => ending,
            };
            if one != Ending::Right && ending != Ending::Unasked {
                ending = one;
            }
        }
        ending
    }

    fn run_plan(&self, scenario: &str, plan: &Plan<'_>) -> Ending {
        let seed = self.seed.unwrap_or(plan.scenario.seed);
        match self.seeds {
            _ if self.write_golden => golden::write(scenario, plan),
            Some(count) => self.run_many(scenario, plan, seed, count.get()),
            None => self.run_one(scenario, plan, seed),
        }
    }

    fn run_one(&self, scenario: &str, plan: &Plan<'_>, seed: u64) -> Ending {
        let report = replayable(scenario, seed, || match self.trace {
            true => {
                let names: Vec<String> = plan.scenario.hosts.iter().map(|host| host.name.to_string()).collect();
                plan.run_watched(seed, Some(Box::new(move |sight| say(trace::line(sight, &names)))))
            }
            false => plan.run(seed),
        });
        if self.json {
            say(format!("{:#}\n", json!({ "scenario": scenario, "report": report })));
        } else {
            say(format!("{scenario}, {report}"));
        }
        complain_of(scenario, &report)
    }

    fn run_many(&self, scenario: &str, plan: &Plan<'_>, first: u64, count: u64) -> Ending {
        let shown = std::io::stderr().is_terminal();
        let progress = |done: u64, failed: usize| {
            if shown && (done.is_multiple_of(PROGRESS_EVERY) || done == count) {
                let end = if done == count { "\n" } else { "" };
                note(format!("\r{scenario}: {done} of {count} seeds, {failed} failed{end}"));
            }
        };
        let run = |seed| replayable(scenario, seed, || plan.run(seed));
        let swept = sweep::sweep(first, count, run, progress);
        if self.json {
            let (events, failed) = (swept.events, &swept.failed);
            let value =
                json!({ "scenario": scenario, "first": first, "count": count, "events": events, "failed": failed });
            say(format!("{value:#}\n"));
        } else {
            let (events, failed) = (swept.events, swept.failed.len());
            say(format!("{scenario}: {count} seeds from {first}, {events} events, {failed} failed\n"));
        }
        swept.failed.iter().for_each(|report| {
            complain_of(scenario, report);
        });
        if swept.failed.is_empty() { Ending::Right } else { Ending::Wrong }
    }
}

/// Seeds between two lines of progress.
const PROGRESS_EVERY: u64 = 10;

/// The command that runs a scenario with a seed again.
pub fn replay(scenario: &str, seed: u64) -> String {
    format!("xylem sim {scenario} --seed {seed}")
}

/// Says which checks do not hold, and how to see it again.
fn complain_of(scenario: &str, report: &Report) -> Ending {
    if report.is_right() {
        return Ending::Right;
    }
    complain(format!("{scenario}: seed {}\n{}", report.seed, report.failures()));
    complain(format!("replay: {}", replay(scenario, report.seed)));
    Ending::Wrong
}

/// Runs something that may panic, so that the panic says how to run it again.
fn replayable<R>(scenario: &str, seed: u64, run: impl FnOnce() -> R) -> R {
    REPLAY.with(|command| *command.borrow_mut() = Some(replay(scenario, seed)));
    let result = run();
    REPLAY.with(|command| *command.borrow_mut() = None);
    result
}

fn say_how_to_replay_a_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        REPLAY.with(|command| {
            if let Some(command) = command.borrow().as_deref() {
                complain(format!("replay: {command}"));
            }
        });
    }));
}

/// Reads a scenario and all that it needs. What is wrong has been said.
fn load<'a>(name: &str, catalogue: &'a Catalogue) -> Result<Plan<'a>, Ending> {
    let text = std::fs::read_to_string(name).map_err(|error| {
        complain(format!("cannot read {name}: {error}; expected a scenario file"));
        Ending::Unasked
    })?;
    plan(name, &text, catalogue).map_err(|problems| {
        note(problems);
        Ending::Wrong
    })
}

/// The plan of a scenario whose text stands in the file of this name: built-in graphs are found by name, others beside the
/// file.
///
/// # Errors
/// All problems, a line each, as `FILE:LINE:COLUMN: what; expected …; mend: …`.
pub fn plan<'a>(name: &str, text: &str, catalogue: &'a Catalogue) -> Result<Plan<'a>, String> {
    let said = |problems: Vec<_>| file::report(name, &problems);
    let scenario = parse(text).map_err(said)?;
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let source = |graph: &GraphName| graph_of(graph, folder);
    Plan::new(scenario, catalogue, &source).map_err(said)
}

fn graph_of(name: &GraphName, folder: &Path) -> Result<Graph, String> {
    match name {
        GraphName::Builtin(name) => graphs::builtin(name).ok_or_else(|| {
            let names: Vec<&str> = graphs::names().collect();
            format!("no graph `{name}` comes with Xylem, only {}; a file's name stands in quotes", names.join(", "))
        }),
        GraphName::File(path) => {
            let path = folder.join(path);
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            file::parse(&text).map_err(|problems| file::report(&path.display().to_string(), &problems))
        }
    }
}
