//! The result: how many of the mutants that can be built were noticed, and which were not. Tests that do not end any more
//! have noticed a change as well; they are counted apart all the same.

use crate::list::Mutant;
use crate::state::State;
use crate::trial::Outcome;
use std::fmt::Write;

/// The share of viable mutants that TCP's tests have to notice, in percent.
const NOTICED_MIN: usize = 85;

/// A table, and the mutants that nobody noticed.
pub fn report(sample: &[Mutant], state: &State) -> String {
    let of = |outcome| sample.iter().filter(move |mutant| state.outcome(mutant) == Some(outcome));
    let count = |outcome| of(outcome).count();
    let mut text = String::from("\n");
    for outcome in
        [Outcome::CaughtByUnits, Outcome::CaughtByScripts, Outcome::TimedOut, Outcome::Missed, Outcome::Unviable]
    {
        let _ = writeln!(text, "{:>6}  {outcome}", count(outcome));
    }
    let noticed = count(Outcome::CaughtByUnits) + count(Outcome::CaughtByScripts) + count(Outcome::TimedOut);
    let viable = noticed + count(Outcome::Missed);
    if let Some(tenths) = (1000 * noticed).checked_div(viable) {
        let verdict = if tenths >= 10 * NOTICED_MIN { "enough" } else { "too few" };
        let share = format!("{}.{} %", tenths / 10, tenths % 10);
        let _ = writeln!(text, "{noticed} of {viable} viable mutants noticed: {share}, {verdict} for {NOTICED_MIN} %");
    }
    for mutant in of(Outcome::Missed) {
        let _ = writeln!(text, "missed: {}", mutant.name);
    }
    for mutant in of(Outcome::TimedOut) {
        let _ = writeln!(text, "timed out: {}", mutant.name);
    }
    text
}
