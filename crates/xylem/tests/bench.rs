//! `xylem bench` from a user's view: every measurement runs, says what it did in JSON that a program can read, divides only
//! what may be divided, fails where an end fails, and leaves nothing behind. How fast anything was is not tested.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}

use kernel::place::{cable, skipped};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use xylem_host::namespace::{Level, privilege};
use xylem_host::packet::RECEIVE_BYTES;

const PROGRAM: &str = env!("CARGO_BIN_EXE_xylem");

/// How long one quick run may take, on a machine that does something else as well.
const TIME_MAX: Duration = Duration::from_secs(240);

/// Runs `xylem bench` with these arguments.
fn bench(arguments: &[&str]) -> Output {
    bench_as(Command::new(PROGRAM), arguments)
}

/// The same by a command that may be somebody else's.
fn bench_as(mut program: Command, arguments: &[&str]) -> Output {
    // One after the other: two that spin on the same processors would wait for each other's time slices.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let begun = Instant::now();
    let output = program.arg("bench").args(arguments).output().expect("the program starts");
    assert!(begun.elapsed() < TIME_MAX, "{arguments:?} took {:?}", begun.elapsed());
    output
}

/// Its result, which must be right.
fn measured(arguments: &[&str]) -> Json {
    let output = bench(&[arguments, &["--json", "-"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{shown}");
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON object")
}

fn rows(result: &Json) -> &Vec<Json> {
    result["rows"].as_array().expect("a list of rows")
}

fn number(row: &Json, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {row}"))
}

/// A figure and its spread are positive and in order.
fn figure(row: &Json, key: &str) -> f64 {
    let value = number(row, key);
    let spread = row[format!("{key}_spread")].as_array().unwrap_or_else(|| panic!("{key} has no spread in {row}"));
    let (least, most) = (spread[0].as_f64().expect("a number"), spread[1].as_f64().expect("a number"));
    assert!(value > 0.0 && least <= value && value <= most, "{key} in {row}");
    value
}

/// What every row of every measurement says.
fn every_row(result: &Json, bench: &str) {
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
fn every_ratio(result: &Json, of: &str) {
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

fn percentiles(row: &Json) {
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
fn who(result: &Json) -> BTreeSet<String> {
    let text = |value: &Json| value.as_str().unwrap_or("-").to_owned();
    let name = |row: &Json| ["stack", "device", "shell", "waiting", "role"].map(|key| text(&row[key])).join(" ");
    rows(result).iter().map(name).collect()
}

#[test]
fn round_trips_of_every_contestant() {
    if cable("round_trips_of_every_contestant", true).is_none() {
        return;
    }
    let result = measured(&["rr", "--quick", "--seconds", "0.1"]);
    every_row(&result, "rr");
    every_ratio(&result, "p50_us");
    rows(&result).iter().for_each(percentiles);
    let who = who(&result);
    for expected in [
        "linux-spin veth - spin -",
        "linux-block veth - block -",
        "xylem tap inline spin client",
        "xylem tap inline spin server",
        "xylem tap thread block server",
        "xylem tap spin block client",
        "xylem packet inline spin client",
        "xylem packet inline spin server",
        "xylem packet thread block server",
        "xylem packet spin block client",
        "xylem wire inline spin -",
    ] {
        assert!(who.contains(expected), "{expected} is missing in {who:?}");
    }
}

#[test]
fn a_stream_in_both_directions() {
    if cable("a_stream_in_both_directions", true).is_none() {
        return;
    }
    let result = measured(&["stream", "--quick", "--seconds", "0.1", "--shell", "inline"]);
    every_row(&result, "stream");
    every_ratio(&result, "gbps");
    let directions: Vec<&str> = rows(&result).iter().filter_map(|row| row["direction"].as_str()).collect();
    assert_eq!(directions, ["to", "from", "to", "from"].repeat(2), "{result}");
    for row in rows(&result) {
        assert!(figure(row, "gbps") > 0.01 && row["p50_us"].is_null(), "{row}");
        assert_eq!(row["stack"] == "xylem", row["bytes_per_frame"].as_f64().is_some_and(|it| it > 500.0), "{row}");
        assert!(figure(row, "cpu_ns_per_byte_client") > 0.0 && figure(row, "cpu_ns_per_byte_server") > 0.0, "{row}");
    }
}

#[test]
fn connections_one_after_the_other() {
    if cable("connections_one_after_the_other", true).is_none() {
        return;
    }
    let arguments =
        ["crr", "--quick", "--seconds", "0.1", "--connections", "400", "--bytes", "100", "--waiting", "spin"];
    let result = measured(&arguments);
    every_row(&result, "crr");
    every_ratio(&result, "per_second");
    rows(&result).iter().for_each(percentiles);
    for row in rows(&result) {
        assert_eq!((&row["bytes"], &row["work"]["connections"]), (&100.into(), &1500.into()), "{row}");
        assert!(row["operations"].as_u64().expect("a number") <= 3 * 1500, "{row}");
        assert!(row["waiting"] == "spin" && row["shell"] != "thread", "{row}");
    }
}

#[test]
fn idle_connections_and_the_memory_of_each_end() {
    if cable("idle_connections_and_the_memory_of_each_end", true).is_none() {
        return;
    }
    let result = measured(&["idle", "--repetitions", "1", "--connections", "1000"]);
    every_row(&result, "idle");
    for row in rows(&result) {
        let (client, server) =
            (number(row, "resident_bytes_per_connection_client"), number(row, "resident_bytes_per_connection_server"));
        assert_eq!(row["operations"], 2000, "{row}");
        assert!(row["ratio_to_linux"].is_null(), "{row}");
        // The end that is Xylem's has its connections in its own process, the kernel's has not.
        match row["role"].as_str() {
            Some("client") => assert!(client > 500.0 && server < 200.0, "{row}"),
            Some(_) => assert!(server > 500.0 && client < 200.0, "{row}"),
            None => assert!(client < 200.0 && server < 200.0, "{row}"),
        }
    }
}

#[test]
fn a_connection_that_cannot_be_made_fails_its_row_and_no_other() {
    if cable("a_connection_that_cannot_be_made_fails_its_row_and_no_other", true).is_none() {
        return;
    }
    // A TCP with room for fewer connections than are asked for.
    let text = xylem::graphs::text("host").expect("it comes with the program");
    let small = text.replace("congestion = cubic }", "congestion = cubic, connections = 16, time_waits = 16 }");
    assert_ne!(text, small, "the graph has changed its words");
    let mut file = tempfile::NamedTempFile::new().expect("a place for files");
    file.write_all(small.as_bytes()).expect("there is room");
    let path = file.path().to_str().expect("a path of text");
    let arguments = ["idle", "--repetitions", "2", "--connections", "200", "--graph", path];
    let output = bench(&[&arguments[..], &["--json", "-"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Json = serde_json::from_slice(&output.stdout).expect("the rows are told all the same");
    for row in rows(&result) {
        let failed = row["failure"].as_str().is_some_and(|failure| !failure.is_empty());
        assert_eq!(failed, row["stack"] == "xylem", "{row}");
        assert!(!failed || row["ratio_to_linux"].is_null(), "{row}");
    }
    // On a wire both ends are threads of one process: the one that waits for the other does not keep it.
    let begun = Instant::now();
    let wire = bench(&["crr", "--repetitions", "1", "--device", "wire", "--waiting", "spin", "--graph", path]);
    let text = String::from_utf8_lossy(&wire.stdout);
    assert!(wire.status.code() == Some(1) && text.contains("FAILED: xylem over wire"), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(15), "the end that had nobody left stayed");
    let shown = bench(&arguments);
    let text = String::from_utf8_lossy(&shown.stdout);
    let named = ["tap", "packet"].iter().all(|device| text.contains(&format!("FAILED: xylem over {device}")));
    assert!(shown.status.code() == Some(1) && named, "{text}");
}

#[test]
fn packet_sockets_alone_beside_the_kernel() {
    // They need neither root nor a TAP.
    let privilege = privilege();
    if privilege.level == Level::Nothing {
        return skipped("packet_sockets_alone_beside_the_kernel", &privilege.reason);
    }
    let result = measured(&["rr", "--quick", "--seconds", "0.1", "--device", "packet", "--waiting", "spin"]);
    every_row(&result, "rr");
    every_ratio(&result, "p50_us");
    rows(&result).iter().for_each(percentiles);
    let expected = ["linux-spin veth - spin -", "xylem packet inline spin client", "xylem packet inline spin server"];
    assert_eq!(who(&result), expected.map(str::to_owned).into());
}

#[test]
fn without_root_packet_sockets_say_what_they_were_not_given() {
    let test = "without_root_packet_sockets_say_what_they_were_not_given";
    if privilege().level != Level::Root {
        return skipped(test, "only root can be somebody else");
    }
    // By its descriptor, for the way to the program may be closed to others.
    let program = std::fs::File::open(PROGRAM).expect("it was built");
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.uid(NOBODY).gid(NOBODY);
    let arguments = ["rr", "--quick", "--seconds", "0.05", "--device", "packet", "--shell", "inline"];
    let output = bench_as(command, &[&arguments[..], &["--waiting", "spin", "--json", "-"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("no row that needs namespaces") {
        return skipped(test, &said);
    }
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stdout));
    let result: Json = serde_json::from_slice(&output.stdout).expect("standard output is one JSON object");
    every_row(&result, "rr");
    let notes: Vec<&str> = result["notes"].as_array().expect("a list").iter().filter_map(Json::as_str).collect();
    assert!(notes.iter().any(|note| note.contains("it ran in a user namespace")), "{notes:?}");
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").expect("the kernel tells");
    let short = most.trim().parse::<usize>().expect("a number") < RECEIVE_BYTES;
    let told = notes.iter().filter(|note| note.starts_with("the device packet: the receive buffer")).count();
    assert_eq!(told, usize::from(short), "once for all rows: {notes:?}");
}

/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

#[test]
fn without_privileges_and_devices_the_wire_is_left() {
    let result = measured(&["rr", "--quick", "--seconds", "0.1", "--device", "wire", "--waiting", "spin"]);
    let wire = rows(&result).iter().find(|row| row["device"] == "wire").expect("it needs nothing");
    percentiles(wire);
}

#[test]
fn the_table_goes_to_the_terminal_and_the_object_to_the_file() {
    let folder = tempfile::tempdir().expect("a place for files");
    let file = folder.path().join("result.json");
    let path = file.to_str().expect("a path of text");
    let options = ["--repetitions", "1", "--seconds", "0.05", "--device", "wire", "--waiting", "spin"];
    let output = bench(&[&["rr"], &options[..], &["--json", path]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("p50 us") && text.contains("xylem over wire, shell inline, spin, both ends"), "{text}");
    let result: Json = serde_json::from_slice(&std::fs::read(&file).expect("it was written")).expect("one object");
    assert_eq!(result["bench"], "rr");
}

#[test]
fn what_cannot_be_run_is_said_with_what_was_expected() {
    for (arguments, expected) in [
        (&["rr", "--graph", "/no/such.graph"][..], "/no/such.graph"),
        (&["rr", "--seconds", "0"], "0.05 to 60"),
        (&["rr", "--bytes", "0"], "1..="),
        (&["idle", "--device", "wire", "--shell", "thread", "--waiting", "spin"], "expected somebody"),
        (&["end", "{}"], "expected an order"),
    ] {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

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
fn interrupted_it_ends_both_ends_and_leaves_nothing() {
    if cable("interrupted_it_ends_both_ends_and_leaves_nothing", true).is_none() {
        return;
    }
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "rr", "--seconds", "30", "--device", "tap"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let begun = Instant::now();
        let mut ends = Vec::new();
        while ends.len() < 2 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
            ends = children(child.id());
        }
        assert_eq!(ends.len(), 2, "both ends are processes");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it runs");
        let begun = Instant::now();
        let status = child.wait().expect("it was started");
        assert!(begun.elapsed() < Duration::from_secs(10), "{signal:?}");
        assert_ne!(status.code(), Some(0), "{signal:?}");
        let left = || ends.iter().any(|process| process.exists());
        while left() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!left(), "{signal:?}: an end is left");
    }
}
