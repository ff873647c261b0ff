//! What can be changed: the list that `cargo-mutants` makes of TCP's folder, and a sample of it. A mutant is a small
//! difference in one file, which is put in and taken out by its lines.

use crate::Failure;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;

/// A small change of the code.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    /// Where it is and what it does.
    pub name: String,
    /// The file, counted from the root.
    pub file: String,
    /// The change as a difference of lines.
    diff: String,
}

/// All mutants of TCP's folder but of its tests.
pub fn mutants(root: &Path) -> Result<Vec<Mutant>, Failure> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--list", "--json", "--diff", "--package", "xylem-protocols"]);
    command.args(["--file", "crates/xylem-protocols/src/tcp/**", "--exclude", "**/tests/**"]);
    let output = command.current_dir(root).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`cargo mutants` is needed (`cargo install cargo-mutants`): {}", said.trim()).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// `count` of them, the same for the same seed, in the order of the list, so that neighbours are built one after the other.
/// Each is drawn by its own name: where the list changes in a part, the sample does too, and no more.
pub fn sample(all: Vec<Mutant>, seed: u64, count: usize) -> Vec<Mutant> {
    let draw = |mutant: &Mutant| Sha256::digest(format!("{seed} {}", mutant.name));
    let mut lots: Vec<_> = all.iter().map(draw).collect();
    lots.sort_unstable();
    let Some(last) = lots.get(count) else { return all };
    all.into_iter().filter(|mutant| draw(mutant) < *last).collect()
}

impl Mutant {
    /// What it is remembered by: the change with the lines around it and their place.
    pub fn key(&self) -> String {
        Sha256::digest(format!("{}\n{}", self.name, self.diff)).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The text of its file with the change in it.
    ///
    /// # Errors
    /// If the text is not the one the list was made of.
    pub fn change(&self, text: &str) -> Result<String, Failure> {
        let old: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut new, mut at) = (String::new(), 0);
        for line in self.diff.split_inclusive('\n').skip(2) {
            if let Some(place) = line.strip_prefix("@@ -") {
                let first: usize = place.split([',', ' ']).next().unwrap_or_default().parse()?;
                new.extend(old.get(at..first - 1).ok_or("a difference out of order")?.iter().copied());
                at = first - 1;
                continue;
            }
            let (mark, rest) = line.split_at(1);
            if mark != "+" {
                if old.get(at).map(|line| line.trim_end()) != Some(rest.trim_end()) {
                    return Err(format!("{}: the file is not the one that was listed", self.name).into());
                }
                at += 1;
            }
            if mark != "-" {
                new += rest;
            }
        }
        new.extend(old[at..].iter().copied());
        Ok(new)
    }
}
