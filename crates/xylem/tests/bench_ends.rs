//! `xylem bench` where not everything is as it should be: an end fails, a privilege or a device is missing, it is
//! interrupted. It says so, fails what it must, and leaves nothing behind.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}
mod bench_shared;

use bench_shared::*;
use kernel::place::{cable, skipped};
use serde_json::Value as Json;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xylem_host::namespace::{Level, privilege};
use xylem_host::packet::RECEIVE_BYTES;

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
    let arguments = ["idle", "--repetitions", "1", "--connections", "200", "--device", "tap", "--graph", path];
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
    let named = text.contains("FAILED: xylem over tap");
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
