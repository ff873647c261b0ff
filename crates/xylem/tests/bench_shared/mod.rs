//! What the suites of `xylem bench` share: running it, and reading what it said.
#![allow(dead_code, reason = "each suite takes what it needs")]

use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_xylem");

/// How long one quick run may take, on a machine that does something else as well.
pub const TIME_MAX: Duration = Duration::from_secs(240);

/// Runs `xylem bench` with these arguments.
pub fn bench(arguments: &[&str]) -> Output {
    bench_as(Command::new(PROGRAM), arguments)
}

/// The same by a command that may be somebody else's.
pub fn bench_as(mut program: Command, arguments: &[&str]) -> Output {
    // One after the other: two that spin on the same processors would wait for each other's time slices.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    let output = program.arg("bench").args(arguments).output().expect("the program starts");
    assert!(begun.elapsed() < TIME_MAX, "{arguments:?} took {:?}", begun.elapsed());
    output
}

/// Its result, which must be right.
pub fn measured(arguments: &[&str]) -> Json {
    let output = bench(&[arguments, &["--json", "-"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{shown}");
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON object")
}

pub fn rows(result: &Json) -> &Vec<Json> {
    result["rows"].as_array().expect("a list of rows")
}

pub fn number(row: &Json, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {row}"))
}

/// A figure and its spread are positive and in order.
pub fn figure(row: &Json, key: &str) -> f64 {
    let value = number(row, key);
    let spread = row[format!("{key}_spread")].as_array().unwrap_or_else(|| panic!("{key} has no spread in {row}"));
    let (least, most) = (spread[0].as_f64().expect("a number"), spread[1].as_f64().expect("a number"));
    assert!(value > 0.0 && least <= value && value <= most, "{key} in {row}");
    value
}

/// What every row of every measurement says.
pub fn every_row(result: &Json, bench: &str) {
    assert_eq!(result["bench"], bench);
    for key in ["kernel", "cpus", "pinning", "priority", "build", "seconds"] {
        assert!(!result["machine"][key].is_null(), "the machine's {key} is missing");
    }
    for row in rows(result) {
        assert!(row["failure"].is_null() && row["strays"] == 0, "{row}");
        let work = &row["work"];
        for key in ["bytes", "mtu", "offloads", "copies", "checks", "close_order", "waiting", "peer", "wire"] {
            assert!(!work[key].is_null(), "{key} is missing in the work of {row}");
        }
        for key in ["pinning", "congestion", "tuning", "buffers", "seconds"] {
            assert!(!work[key].is_null(), "{key} is missing in the work of {row}");
        }
        let xylem = row["stack"] == "xylem";
        for key in ["placement", "demux", "mode", "ends", "shell"] {
            assert_eq!(!row[key].is_null(), xylem, "{key} in {row}");
        }
        if xylem {
            assert_eq!(&row["placement"], "app");
            assert_eq!(&row["mode"], "exclusive");
            let ends = if row["device"] == "wire" { 2 } else { 1 };
            assert_eq!(row["ends"], ends, "{row}");
        }
        // What joins the ends of packet sockets is the kernel's own cable, and the stack at its other end the kernel's.
        let wire = if row["device"] == "packet" { &Json::from("veth") } else { &row["device"] };
        assert_eq!(&work["wire"], wire, "{row}");
        assert_eq!(work["peer"] == "xylem", row["ends"] == 2, "{row}");
        let direction = if bench == "stream" { row["role"].as_str() } else { None };
        let direction = direction.map(|role| if role == "client" { "to" } else { "from" });
        assert_eq!(row["direction"].as_str(), direction, "{row}");
        assert_eq!(row["bytes"], work["bytes"], "{row}");
    }
}

/// Ratios stand exactly where both rows waited alike, and are the quotients within the repetitions.
pub fn every_ratio(result: &Json, of: &str) {
    let linux = |name: &Json| rows(result).iter().find(|row| &row["stack"] == name).expect("the base is in the run");
    let mut divided = 0;
    for row in rows(result) {
        let ratio = &row["ratio"];
        if row["ratio_to_linux"].is_null() {
            assert!(ratio["refused"].as_str().is_some_and(|reason| reason.len() > 10), "{row}");
            assert!(row["stack"] != "xylem" || row["shell"] == "spin", "{row}");
            continue;
        }
        divided += 1;
        let base = linux(&ratio["base"]);
        for key in ["bytes", "mtu", "offloads", "copies", "checks", "close_order", "waiting"] {
            assert_eq!(row["work"][key], base["work"][key], "{key} differs and was divided: {row}");
        }
        assert_eq!(ratio["of"], of);
        let wires = format!("{}/veth", row["work"]["wire"].as_str().expect("a name"));
        assert_eq!(ratio["wires"], wires.as_str());
        let each: Vec<f64> = ratio["each"].as_array().expect("a list").iter().filter_map(Json::as_f64).collect();
        assert_eq!(each.len() as u64, row["repetitions"].as_u64().expect("a number"));
        let [least, most] = [0, 1].map(|end| ratio["spread"][end].as_f64().expect("a number"));
        let median = number(row, "ratio_to_linux");
        assert!(0.0 < least && least <= median && median <= most, "{row}");
        // Medians of quotients are no quotients of medians, but within the spreads of both they are near.
        let (own, other) = (&row[format!("{of}_spread")], &base[format!("{of}_spread")]);
        let bound =
            |one: usize, two: usize| own[one].as_f64().expect("a number") / other[two].as_f64().expect("a number");
        assert!(0.99 * bound(0, 1) <= least && most <= 1.01 * bound(1, 0), "{row}");
    }
    assert!(divided > 0, "nothing was divided");
}

pub fn percentiles(row: &Json) {
    let (p50, p90) = (figure(row, "p50_us"), figure(row, "p90_us"));
    let (p99, p99_9) = (figure(row, "p99_us"), figure(row, "p99_9_us"));
    assert!(p50 <= p90 && p90 <= p99 && p99 <= p99_9, "{row}");
    assert!(
        figure(row, "per_second") > 1.0 && figure(row, "cpu_us_client") > 0.0 && figure(row, "cpu_us_server") > 0.0
    );
    if row["stack"] == "xylem" {
        // A request and a response at least, and no storm of acknowledgments.
        for key in ["frames_in_per_operation", "frames_out_per_operation"] {
            assert!((0.9..=10.0).contains(&figure(row, key)), "{row}");
        }
    }
    assert!(row["operations"].as_u64().expect("a number") > 10 && row["gbps"].is_null(), "{row}");
}

/// The stacks, devices, shells and roles of a result.
pub fn who(result: &Json) -> BTreeSet<String> {
    let text = |value: &Json| value.as_str().unwrap_or("-").to_owned();
    let name = |row: &Json| ["stack", "device", "shell", "waiting", "role"].map(|key| text(&row[key])).join(" ");
    rows(result).iter().map(name).collect()
}
