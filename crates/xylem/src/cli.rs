//! The command line as a whole: what the commands are, and what all of them have in common. A command says what it found
//! on standard output and what is wrong on standard error, and ends in one of three ways.

use crate::commands::Command;
use clap::Parser;
use std::io::{self, Write};
use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// What was asked is so. Exit code 0.
    Right,
    /// What was asked is not so: a graph has problems, a check does not hold. Exit code 1.
    Wrong,
    /// It could not be asked: a file cannot be read, an argument is none. Exit code 2.
    Unasked,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> ExitCode {
        ExitCode::from(match ending {
            Ending::Right => 0,
            Ending::Wrong => 1,
            Ending::Unasked => 2,
        })
    }
}

/// Protocols composed by a graph: check graphs, draw them, and run them in a simulator.
#[derive(Debug, Parser)]
#[command(
    name = "xylem",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xylem graph show host                 the graph of the usual host, as a drawing\n  \
        xylem graph check my.graph            is it right? all problems at once\n  \
        xylem sim scenarios/lossy-transfer.sim      run a scenario in virtual time\n\n\
        Exit codes: 0 what was asked is so, 1 it is not, 2 it could not be asked."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    Cli::parse().command.run().into()
}

/// Writes to standard output. Whoever reads it may stop reading (`| head`): that is no error, and the rest is not written.
pub fn say(text: impl AsRef<str>) {
    write(&mut io::stdout().lock(), text.as_ref());
}

/// Writes a line to standard error, as `xylem: …`.
pub fn complain(text: impl AsRef<str>) {
    write(&mut io::stderr().lock(), &format!("xylem: {}\n", text.as_ref().trim_end()));
}

/// Writes to standard error as it is: problems that name their own file, and progress.
pub fn note(text: impl AsRef<str>) {
    write(&mut io::stderr().lock(), text.as_ref());
}

fn write(to: &mut impl Write, text: &str) {
    // A closed pipe is the reader's wish; a full disk shows in the reader's file. Neither is worth a panic.
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
