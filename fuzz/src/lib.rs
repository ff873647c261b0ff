//! Runs a target by name; the targets themselves are in the `xylem` crate, where plain tests replay them too.

/// Runs target `name` on `bytes`.
pub fn run(name: &str, bytes: &[u8]) {
    let target = xylem::fuzz::TARGETS.iter().find(|target| target.name == name);
    (target.expect("the target is in the list").run)(bytes);
}
