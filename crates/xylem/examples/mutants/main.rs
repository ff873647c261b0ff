//! Are TCP's tests any good? Changes its code in small ways, one at a time, and counts the changes that no test notices:
//!
//! `cargo run -p xylem --example mutants -- [--all] [--seed N] [--count N]`
//!
//! `cargo-mutants` lists what can be changed (`cargo install cargo-mutants`); a seeded sample of it is tried in a copy of
//! the tree, first against the unit tests of TCP, then against the packet scripts in virtual time. What was found out is
//! kept after every trial: called again with the same choice, it goes on where it was stopped.

mod list;
mod report;
mod state;
mod tree;
mod trial;

use clap::Parser;
use list::Mutant;
use state::State;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trial::{Outcome, Workshop};

/// What goes wrong around the trials, said to whoever called.
type Failure = Box<dyn std::error::Error>;

/// Changes TCP's code in small ways, one at a time, and counts the changes that no test notices.
#[derive(Debug, Parser)]
#[command(after_help = "Example: cargo run -p xylem --example mutants -- --seed 2 --count 60")]
struct Choice {
    /// Try all mutants, not a sample
    #[arg(long)]
    all: bool,
    /// Which sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many mutants a sample has
    #[arg(long, default_value_t = 150)]
    count: usize,
    /// Only those whose name contains this, such as `rack.rs` or `Receiving::announce`
    #[arg(long, default_value = "")]
    only: String,
    /// Try once more those that no test had noticed, after tests were added
    #[arg(long)]
    missed_again: bool,
    /// Forget what was found out before
    #[arg(long)]
    fresh: bool,
    /// Where the copy of the tree is built, and where is kept what was found out
    #[arg(long, default_value = "target/mutants")]
    folder: PathBuf,
}

fn main() -> ExitCode {
    match run(&Choice::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("mutants: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(choice: &Choice) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let folder = root.join(&choice.folder);
    let mut all = list::mutants(&root)?;
    all.retain(|mutant| mutant.name.contains(&choice.only));
    let sample = if choice.all { all } else { list::sample(all, choice.seed, choice.count) };
    let mut state = if choice.fresh { State::new(&folder) } else { State::load(&folder)? };
    if choice.missed_again {
        state.forget(Outcome::Missed);
    }
    let open: Vec<&Mutant> = sample.iter().filter(|mutant| state.outcome(mutant).is_none()).collect();
    println!("{} mutants, {} of them tried before", sample.len(), sample.len() - open.len());
    if !open.is_empty() {
        tree::copy(&root, &folder.join("tree"))?;
        let workshop = Workshop::open(&folder)?;
        println!("without a change all tests pass; a trial may take {} s", workshop.time_max().as_secs());
        let before = sample.len() - open.len();
        for (index, mutant) in open.into_iter().enumerate() {
            let begun = std::time::Instant::now();
            let outcome = workshop.judge(mutant)?;
            state.keep(mutant, outcome)?;
            let (number, seconds) = (before + index + 1, begun.elapsed().as_secs());
            println!("{number}/{} {outcome} after {seconds} s: {}", sample.len(), mutant.name);
        }
    }
    print!("{}", report::report(&sample, &state));
    Ok(())
}
