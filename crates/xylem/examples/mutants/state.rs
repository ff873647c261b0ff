//! What was found out, kept in a file after every trial, so that a run can be stopped at any time. A mutant is known by
//! its change and the lines around it: what was found out about it counts for as long as those stay.

use crate::Failure;
use crate::list::Mutant;
use crate::trial::Outcome;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// See the module's text.
pub struct State {
    path: PathBuf,
    outcomes: BTreeMap<String, Outcome>,
}

impl State {
    /// One that knows nothing yet, to be kept in `folder`.
    pub fn new(folder: &Path) -> State {
        State { path: folder.join("outcomes.json"), outcomes: BTreeMap::new() }
    }

    /// The one kept in `folder`, if there is one.
    pub fn load(folder: &Path) -> Result<State, Failure> {
        let state = State::new(folder);
        match std::fs::read(&state.path) {
            Ok(bytes) => Ok(State { outcomes: serde_json::from_slice(&bytes)?, ..state }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(state),
            Err(error) => Err(error.into()),
        }
    }

    pub fn outcome(&self, mutant: &Mutant) -> Option<Outcome> {
        self.outcomes.get(&mutant.key()).copied()
    }

    /// Forgets whatever came out like this.
    pub fn forget(&mut self, outcome: Outcome) {
        self.outcomes.retain(|_, known| *known != outcome);
    }

    /// Remembers, in the file too: beside it first, so that there is always a whole one.
    pub fn keep(&mut self, mutant: &Mutant, outcome: Outcome) -> Result<(), Failure> {
        self.outcomes.insert(mutant.key(), outcome);
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, serde_json::to_vec(&self.outcomes)?)?;
        std::fs::rename(beside, &self.path)?;
        Ok(())
    }
}
