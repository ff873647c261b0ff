//! `xylem demo` from a user's view: it runs as it is, says what ran, leaves nothing behind, also when interrupted.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}

use kernel::place::cable;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_xylem");

/// How long the whole of it may take, on a machine that does something else as well.
const TIME_MAX: Duration = Duration::from_secs(240);

/// The processes whose parent is `parent`.
fn children(parent: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted").flatten().map(|entry| entry.path());
    let is_child = |process: &PathBuf| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|it| it.trim() == parent.to_string()))
    };
    entries.filter(is_child).collect()
}

#[test]
fn it_runs_compares_every_byte_and_says_what_ran() {
    if cable("it_runs_compares_every_byte_and_says_what_ran", true).is_none() {
        return;
    }
    let begun = Instant::now();
    let output = Command::new(PROGRAM).args(["demo", "--json"]).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(begun.elapsed() < TIME_MAX, "{said}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("standard output is one JSON object");
    assert_eq!((&result["right"], &result["wrong"]), (&true.into(), &0.into()));
    // Three rounds of both contestants, and the impaired link.
    assert!(result["compared"].as_u64().expect("a number") > 12_000, "{result}");
    let ran = result["ran"].as_array().expect("a list");
    let stacks: Vec<_> = ran.iter().map(|ran| (ran["stack"].as_str(), ran["device"].as_str())).collect();
    assert!(stacks.contains(&(Some("xylem"), Some("tap"))) && stacks.contains(&(Some("kernel"), Some("veth"))));
    assert!(ran.iter().any(|ran| ran["link"].is_string()) && ran.iter().all(|ran| ran["mode"].is_string()));
    for row in result["rows"].as_array().expect("a list") {
        let figures = (row["xylem"].as_f64(), row["kernel"].as_f64());
        assert!(matches!(figures, (Some(xylem), Some(kernel)) if xylem > 0.0 && kernel > 0.0), "{row}");
        assert!(["tap/veth", "tap/tap"].contains(&row["ratio"]["of"].as_str().expect("a name")), "{row}");
        let measured = row["measured"].as_array().expect("a list");
        assert!(
            row["worse"] == false
                || measured.iter().any(|line| line.as_str().is_some_and(|it| it.starts_with("cause: ")))
        );
    }
    if Command::new("curl").arg("--version").output().is_ok() {
        let rows = result["rows"].as_array().expect("a list");
        let by_curl = |row: &serde_json::Value| row["what"].as_str().is_some_and(|what| what.ends_with("by curl"));
        assert!(rows.iter().any(by_curl), "curl is here and was not asked: {result}");
    }
    let steps = result["walk"]["steps"].as_array().expect("a list");
    assert!(steps.len() >= 10 && steps.iter().all(|step| step["nanoseconds"].as_u64().is_some_and(|time| time > 0)));
}

#[test]
fn interrupted_it_ends_its_children_and_leaves_nothing() {
    if cable("interrupted_it_ends_its_children_and_leaves_nothing", true).is_none() {
        return;
    }
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut command = Command::new(PROGRAM);
        let mut child = command.arg("demo").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let begun = Instant::now();
        let mut started = Vec::new();
        while started.is_empty() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(2));
            started = children(child.id());
        }
        assert!(!started.is_empty(), "it starts no program");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it runs");
        let begun = Instant::now();
        let status = child.wait().expect("it was started");
        assert!(begun.elapsed() < Duration::from_secs(10), "{signal:?}");
        assert_ne!(status.code(), Some(0), "{signal:?}");
        let left = || started.iter().any(|process| process.exists());
        while left() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!left(), "{signal:?}: a child is left");
    }
}

#[test]
fn a_graph_that_does_not_fit_is_said_before_anything_starts() {
    let output = Command::new(PROGRAM).args(["demo", "--graph", "/no/such.graph"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("/no/such.graph"), "{said}");
}
