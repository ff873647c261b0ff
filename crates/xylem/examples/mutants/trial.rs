//! One mutant on trial: built into the copy of the tree, and shown to the unit tests of TCP; what they let pass is shown
//! to the packet scripts. The tests are built with little optimisation and without debugging information, which builds in
//! seconds, and run with limits of time and memory, since a change may make a loop endless.

use crate::Failure;
use crate::list::Mutant;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Kilobytes of address space that a run of tests may take.
const MEMORY_MAX_KB: u32 = 2_500_000;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// A unit test failed.
    CaughtByUnits,
    /// A packet script failed.
    CaughtByScripts,
    /// The tests did not end in time.
    TimedOut,
    /// No test noticed it.
    Missed,
    /// It cannot be built.
    Unviable,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Outcome::CaughtByUnits => "caught by the unit tests",
            Outcome::CaughtByScripts => "caught by the packet scripts",
            Outcome::TimedOut => "timed out",
            Outcome::Missed => "MISSED",
            Outcome::Unviable => "not viable",
        })
    }
}

/// Tests that judge: how they are built, and which of them run.
struct Jury {
    build: &'static [&'static str],
    run: &'static [&'static str],
    caught: Outcome,
}

const JURIES: [Jury; 2] = [
    Jury { build: &["-p", "xylem-protocols", "--lib"], run: &["tcp::"], caught: Outcome::CaughtByUnits },
    Jury {
        build: &["-p", "xylem", "--test", "wire_scripts"],
        run: &["every_script_holds_for_our_tcp"],
        caught: Outcome::CaughtByScripts,
    },
];

/// The copy of the tree with its built tests.
pub struct Workshop {
    tree: PathBuf,
    target: PathBuf,
    time_max: Duration,
}

impl Workshop {
    /// Builds the tests of the copy in `folder`, and sees that they pass as it is.
    pub fn open(folder: &Path) -> Result<Workshop, Failure> {
        let (tree, target) = (folder.join("tree"), folder.join("target"));
        let mut workshop = Workshop { tree, target, time_max: Duration::from_secs(600) };
        let mut slowest = Duration::ZERO;
        for jury in &JURIES {
            let program = workshop.build(jury)?.ok_or_else(|| format!("{:?} do not build as they are", jury.build))?;
            let begun = Instant::now();
            if workshop.run(&program, jury)? != Some(true) {
                return Err(format!("{:?} do not pass as they are", jury.build).into());
            }
            slowest = slowest.max(begun.elapsed());
        }
        // A machine that has other things to do as well is slow at times.
        workshop.time_max = slowest * 5 + Duration::from_secs(20);
        Ok(workshop)
    }

    /// How long the tests of a mutant may run.
    pub fn time_max(&self) -> Duration {
        self.time_max
    }

    /// Tries `mutant`, and leaves the copy as it was.
    pub fn judge(&self, mutant: &Mutant) -> Result<Outcome, Failure> {
        let path = self.tree.join(&mutant.file);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, mutant.change(&text)?)?;
        let outcome = self.try_all();
        std::fs::write(&path, text)?;
        outcome
    }

    fn try_all(&self) -> Result<Outcome, Failure> {
        for jury in &JURIES {
            let Some(program) = self.build(jury)? else { return Ok(Outcome::Unviable) };
            match self.run(&program, jury)? {
                None => return Ok(Outcome::TimedOut),
                Some(false) => return Ok(jury.caught),
                Some(true) => {}
            }
        }
        Ok(Outcome::Missed)
    }

    /// The program of the tests; `None` if the compiler refuses it.
    fn build(&self, jury: &Jury) -> Result<Option<PathBuf>, Failure> {
        let mut command = Command::new("cargo");
        command.args(["test", "--quiet", "--no-run", "--message-format", "json"]).args(jury.build);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        command
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("RUSTFLAGS", "-Awarnings");
        let output = command.stderr(Stdio::null()).output()?;
        if !output.status.success() {
            return Ok(None);
        }
        let messages = output.stdout.split(|byte| *byte == b'\n');
        let messages = messages.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        let is_test = |message: &serde_json::Value| message["profile"]["test"] == serde_json::json!(true);
        let program = messages.filter(is_test).find_map(|message| message["executable"].as_str().map(PathBuf::from));
        Ok(Some(program.ok_or("cargo names no program of tests")?))
    }

    /// Whether the tests pass; `None` if they do not end in time. The first that fails is enough.
    fn run(&self, program: &Path, jury: &Jury) -> Result<Option<bool>, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY_MAX_KB}; exec \"$0\" \"$@\"")]).arg(program).args(jury.run);
        command.current_dir(self.tree.join("crates/xylem")).env("RUST_BACKTRACE", "0");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take().ok_or("the output is a pipe")?;
        let (sender, lines) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        let end = Instant::now() + self.time_max;
        let verdict = loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with("test ") && line.ends_with(" FAILED") => break Some(false),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => break None,
                Err(RecvTimeoutError::Disconnected) => break Some(child.wait()?.success()),
            }
        };
        // It may be over already.
        let _ = child.kill();
        child.wait()?;
        drop(lines);
        reader.join().map_err(|_| "the reader does not panic")?;
        Ok(verdict)
    }
}
