//! `xylem script`: runs packet scripts against our TCP in virtual time, or with `--kernel` the same files against the
//! kernel's TCP, each in a network namespace of its own. What failed is said with the script's line, what it expected and
//! what came.

pub mod kernel;
pub mod many;
pub mod sysctls;
pub mod verdict;

use crate::cli::{Ending, complain, note, say};
use crate::{catalogue, graphs};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use verdict::{Verdict, judge};
use xylem_graph::file::{Graph, report};
use xylem_sim::script::{Arm, Claim, Run, Script, Simulated, SimulatedError, parse, run};

/// See the module's text.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    xylem script tests/wire                              every script of the folder and those below\n  \
    xylem script tests/wire/reset/*.wire --kernel        the same against the kernel's TCP\n  \
    xylem script my.wire --trace                         with everything that happened\n\n\
    The format: docs/wire-scripts.md")]
pub struct ScriptCommand {
    /// Packet scripts, or folders of them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run against the kernel's TCP, in namespaces and in real time
    #[arg(long)]
    kernel: bool,
    /// How often the kernel may try: its time is real, and the machine may be busy with other things
    #[arg(long, value_name = "N", default_value_t = many::TRIES, requires = "kernel")]
    tries: u32,
    /// Print the verdicts as JSON
    #[arg(long)]
    json: bool,
    /// Print everything that happened in each script
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// Print each script as it was understood, and run none
    #[arg(long, conflicts_with_all = ["json", "trace", "kernel"])]
    print: bool,
}

impl ScriptCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        let paths = match files(&self.files) {
            Ok(paths) => paths,
            Err(what) => {
                complain(what);
                return Ending::Unasked;
            }
        };
        if self.kernel
            && let Err(reason) = kernel::is_able()
        {
            complain(format!("the kernel's TCP cannot be tried here: {reason}"));
            return Ending::Unasked;
        }
        let mut scripts = Vec::new();
        let mut ending = Ending::Right;
        for path in paths {
            match load(&path) {
                Ok(script) => scripts.push((path, script)),
                Err(problems) => {
                    note(problems);
                    ending = Ending::Wrong;
                }
            }
        }
        if self.print {
            scripts.iter().for_each(|(_, script)| say(script.to_string()));
            return ending;
        }
        let tried = match self.kernel {
            true => many::in_parallel(scripts, self.tries),
            false => scripts.into_iter().map(|(path, script)| Tried::of(path, try_xylem(&script), 1)).collect(),
        };
        if tried.iter().any(|tried| tried.verdict.is_failure()) {
            ending = Ending::Wrong;
        }
        self.tell(&tried);
        ending
    }

    fn tell(&self, tried: &[Tried]) {
        let arm = if self.kernel { Arm::Linux } else { Arm::Xylem };
        if self.json {
            let rows: Vec<_> = tried.iter().map(Tried::as_json).collect();
            return say(format!("{:#}\n", json!({ "stack": verdict::name(arm), "scripts": rows })));
        }
        for one in tried {
            if self.trace {
                say(format!("{}:\n{}\n", one.path.display(), one.log.join("\n")));
            }
            if one.verdict.is_failure() {
                note(one.verdict.in_file(&one.path.display().to_string()));
            }
        }
        let count = |wanted: &str| tried.iter().filter(|tried| tried.verdict.word() == wanted).count();
        let again = tried.iter().filter(|tried| tried.tries > 1).count();
        say(format!(
            "{}: {} scripts, {} passed, {} differ as they say, {} skipped, {} failed{}\n",
            verdict::name(arm),
            tried.len(),
            count("passed"),
            count("differs"),
            count("skipped"),
            tried.iter().filter(|tried| tried.verdict.is_failure()).count(),
            if again > 0 { format!(", {again} tried again") } else { String::new() },
        ));
    }
}

/// A script that was tried.
#[derive(Debug)]
pub struct Tried {
    /// Its file.
    pub path: PathBuf,
    /// What came of it.
    pub verdict: Verdict,
    /// Everything that happened.
    pub log: Vec<String>,
    /// How often it was tried.
    pub tries: u32,
    /// By how much the runner was late in the last try.
    pub late: Duration,
}

impl Tried {
    fn of(path: PathBuf, (verdict, run): (Verdict, Option<Run>), tries: u32) -> Tried {
        let (log, late) = run.map_or_else(Default::default, |run| (run.log, run.late));
        Tried { path, verdict, log, tries, late }
    }

    fn as_json(&self) -> serde_json::Value {
        json!({ "file": self.path.display().to_string(), "tries": self.tries, "verdict": self.verdict.as_json() })
    }
}

/// Runs a script against our TCP, if it claims anything about it: what came of it, and what happened if it was tried.
pub fn try_xylem(script: &Script) -> (Verdict, Option<Run>) {
    let graph = graphs::builtin("host").expect("a test parses every graph that the program carries");
    try_graph(script, &graph)
}

/// The same against the TCP of another graph.
pub fn try_graph(script: &Script, graph: &Graph) -> (Verdict, Option<Run>) {
    if let Claim::Skip(reason) = &script.xylem {
        return (Verdict::Skipped(reason.clone()), None);
    }
    match Simulated::new(graph, &catalogue::builtin(), &script.settings) {
        Ok(mut subject) => {
            let run = run(script, &mut subject);
            (judge(&script.xylem, run.failure.clone()), Some(run))
        }
        // What our TCP cannot be told it does not claim to support; the summary counts it, and `--json` names it.
        Err(error @ SimulatedError::NoOption { .. }) => (Verdict::Skipped(error.to_string()), None),
        Err(error) => (Verdict::Unable(error.to_string()), None),
    }
}

/// Reads a script.
///
/// # Errors
/// All that is wrong with it, a line each, as `FILE:LINE:COLUMN: what; expected …; mend: …`.
pub fn load(path: &Path) -> Result<Script, String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}\n"))?;
    parse(&text).map_err(|problems| report(&name, &problems))
}

/// The files named, and for a folder all scripts in it and below, sorted.
///
/// # Errors
/// A folder that cannot be read, or holds no script.
pub fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in named {
        if path.is_dir() {
            let before = found.len();
            walk(path, &mut found).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            if found.len() == before {
                return Err(format!("no file in {} ends in `.wire`", path.display()));
            }
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "wire") {
            found.push(path);
        }
    }
    Ok(())
}
