//! Law 7, the kernel's side: the same scripts hold for the kernel's TCP, each in a namespace of its own, or say why they do
//! not. What cannot run here says SKIPPED, and fails where CI is set.

use std::io::Write;
use std::path::{Path, PathBuf};
use xylem::commands::script::verdict::Verdict;
use xylem::commands::script::{files, kernel, load, many};
use xylem_sim::script::parse;

/// Fewer would mean that scripts are skipped rather than tried.
const PASSED_MIN: usize = 200;

fn say(line: String) {
    // Past the harness, which swallows what passing tests print.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn is_able(test: &str) -> bool {
    let Err(reason) = kernel::is_able() else { return true };
    assert!(std::env::var_os("CI").is_none(), "{test} could not run: {reason}");
    say(format!("SKIPPED: {test}: {reason}\n"));
    false
}

#[test]
fn every_script_holds_for_the_kernels_tcp_or_says_why_not() {
    if !is_able("every_script_holds_for_the_kernels_tcp_or_says_why_not") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wire");
    let load = |path: PathBuf| (path.clone(), load(&path).unwrap_or_else(|problems| panic!("{problems}")));
    let scripts = files(&[folder]).expect("the folder of scripts is in the tree").into_iter().map(load).collect();
    let tried = many::in_parallel(scripts, many::TRIES);
    let mut failed = String::new();
    for one in tried.iter().filter(|one| one.verdict.is_failure()) {
        failed += &one.verdict.in_file(&one.path.display().to_string());
        failed += &format!("late by {:?} in try {}\n{}\n", one.late, one.tries, one.log.join("\n"));
    }
    assert!(failed.is_empty(), "{failed}");
    let passed = tried.iter().filter(|one| one.verdict == Verdict::Passed).count();
    assert!(passed >= PASSED_MIN, "only {passed} scripts were tried and passed");
}

/// The runner notices what is wrong there, too.
#[test]
fn a_wrong_script_fails_against_the_kernel() {
    if !is_able("a_wrong_script_fails_against_the_kernel") {
        return;
    }
    for (lines, expected) in [
        ("opened by peer\nwrite 10\n> P. 2..12 ack 1", "the sequence number"),
        ("opened by peer\nwrite 10\n+50ms quiet", "before it"),
        ("opened by peer\n< . 1..11 ack 1 other_content\n+0..60ms > . 1 ack 11\nread 10", "is not the one sent"),
        ("opened by peer\n= CLOSED", "ESTABLISHED"),
        ("opened by peer\ntold reset", "told nothing"),
    ] {
        let script = parse(&format!("why: x\n\n{lines}\n")).unwrap_or_else(|problems| panic!("{lines}: {problems:?}"));
        match kernel::try_kernel(&script).0 {
            Verdict::Failed(failure) => assert!(failure.got.contains(expected), "{lines}: {}", failure.got),
            other => panic!("{lines}: {other:?}"),
        }
    }
}
