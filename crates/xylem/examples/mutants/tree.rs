//! A copy of the tree to build in, so that nobody who works in the tree meets a change, and so that a run that was killed
//! leaves none behind. Files that are the same stay untouched: what was built of them is still good.

use crate::Failure;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes `copy` what `root` is: all files that git knows or would take.
pub fn copy(root: &Path, copy: &Path) -> Result<(), Failure> {
    let listed =
        Command::new("git").args(["ls-files", "-z", "-co", "--exclude-standard"]).current_dir(root).output()?;
    let names = String::from_utf8(listed.stdout)?;
    let names: BTreeSet<PathBuf> = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    let names: BTreeSet<PathBuf> = names.into_iter().filter(|name| root.join(name).is_file()).collect();
    if names.is_empty() {
        return Err("expected a tree that git knows".into());
    }
    for name in &names {
        let (from, to) = (std::fs::read(root.join(name))?, copy.join(name));
        if std::fs::read(&to).ok().as_ref() != Some(&from) {
            std::fs::create_dir_all(to.parent().ok_or("a file has a folder")?)?;
            std::fs::write(&to, from)?;
        }
    }
    let mut found = Vec::new();
    walk(copy, &mut found)?;
    for path in found.iter().filter(|path| path.strip_prefix(copy).is_ok_and(|name| !names.contains(name))) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, found)? } else { found.push(path) }
    }
    Ok(())
}
