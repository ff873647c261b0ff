//! The evidence that TCP meets its RFCs: the rules as `docs/rfc/*.toml` list them, the places in code and tests that name
//! them, and the pages that put both side by side. The suite `labels` holds them against each other, and the example
//! `write_rfc_tables` writes the pages anew; both share these files.

pub mod items;
pub mod labels;
pub mod page;
pub mod places;
pub mod rules;

use std::path::{Path, PathBuf};

/// The folder of the whole tree.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `folder` whose names end in `ending`, in their order, with their places counted from the root.
pub fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder is in the tree") {
            let path = entry.expect("the tree can be read").path();
            if path.is_dir() {
                walk(&path, ending, found);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root.join(folder), ending, &mut found);
    found.sort();
    let named = |path: PathBuf| {
        let name = path.strip_prefix(&root).expect("it was found below the root").display().to_string();
        (name, std::fs::read_to_string(&path).expect("the tree's files are text"))
    };
    found.into_iter().map(named).collect()
}
