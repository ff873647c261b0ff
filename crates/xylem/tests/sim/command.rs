//! `xylem sim` from a user's view.

use crate::two_hosts;
use std::path::Path;
use std::process::{Command, Output};

fn xylem(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xylem")).current_dir(folder).args(arguments).output().expect("the program runs")
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program prints text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A folder with a scenario `a.sim` of two hosts and this in it.
fn folder_with(rest: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let cable = "cable = link client -- server { delay = 1ms, loss = 20% }\n";
    std::fs::write(folder.path().join("a.sim"), two_hosts("", "", &format!("{cable}{rest}")))
        .expect("it can be written");
    folder
}

const LOSSY_PING: &str = "echo = ping client -> server { count = 4, every = 10ms, returned = 4 }\ncheck delivered\n";

#[test]
fn a_run_reports_and_a_failing_one_says_how_to_see_it_again() {
    let folder = folder_with(LOSSY_PING);
    let run = |seed: u64| texts(&xylem(folder.path(), &["sim", "a.sim", "--seed", &seed.to_string()]));
    let runs: Vec<_> = (1..40).map(run).collect();
    let (right, wrong): (Vec<_>, Vec<_>) = (1..).zip(&runs).partition(|(_, (code, ..))| *code == Some(0));
    assert!(!right.is_empty() && !wrong.is_empty(), "with a fifth lost some runs hold and some do not");
    assert!(right[0].1.1.contains("holds  delivered: 1 of 1") && right[0].1.2.is_empty());
    let (seed, (code, out, err)) = &wrong[0];
    assert_eq!(*code, Some(1));
    assert!(
        out.contains("FAILS  delivered") && err.ends_with(&format!("xylem: replay: xylem sim a.sim --seed {seed}\n")),
        "{err}"
    );
    assert_eq!(&run(*seed).1, out, "the same command gives the same text");
}

#[test]
fn many_seeds_report_those_that_fail() {
    let folder = folder_with(LOSSY_PING);
    let (code, out, err) = texts(&xylem(folder.path(), &["sim", "a.sim", "--seeds", "39", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!((code, json["count"].as_u64()), (Some(1), Some(39)));
    let failed: Vec<u64> =
        json["failed"].as_array().into_iter().flatten().filter_map(|report| report["seed"].as_u64()).collect();
    let each = |seed: &u64| texts(&xylem(folder.path(), &["sim", "a.sim", "--seed", &seed.to_string()])).0;
    assert!(!failed.is_empty() && failed.iter().all(|seed| each(seed) == Some(1)));
    assert_eq!(err.matches("xylem: replay: ").count(), failed.len());
    let (_, out, _) = texts(&xylem(folder.path(), &["sim", "a.sim", "--seeds", "39"]));
    assert!(out.ends_with(&format!("{} failed\n", failed.len())), "{out}");
}

#[test]
fn the_golden_hash_is_written_by_one_command_and_a_changed_run_is_found() {
    let folder = folder_with("echo = ping client -> server { returned = 0 }\ncheck delivered\n");
    let write = || texts(&xylem(folder.path(), &["sim", "a.sim", "--write-golden"]));
    let (code, out, _) = write();
    assert!(code == Some(0) && out.starts_with("a.sim: golden = "), "{out}");
    assert_eq!(write().1, "a.sim: as it was\n");
    let file = folder.path().join("a.sim");
    let text = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, text.replace("delay = 1ms", "delay = 2ms")).expect("it can be written");
    let (code, out, _) = texts(&xylem(folder.path(), &["sim", "a.sim"]));
    assert!(code == Some(1) && out.contains("FAILS  golden hash"), "{out}");
    assert_eq!(
        texts(&xylem(folder.path(), &["sim", "a.sim", "--seed", "9"])).0,
        Some(0),
        "another seed has no golden hash"
    );
    assert_eq!(write().0, Some(0));
    assert_eq!(texts(&xylem(folder.path(), &["sim", "a.sim"])).0, Some(0));
}

#[test]
fn a_golden_hash_is_not_written_over_a_run_that_is_wrong() {
    let folder = folder_with("echo = ping client -> server { address = 10.0.0.9 }\ncheck delivered\n");
    let before = std::fs::read_to_string(folder.path().join("a.sim")).expect("it is there");
    let (code, _, err) = texts(&xylem(folder.path(), &["sim", "a.sim", "--write-golden"]));
    assert!(code == Some(1) && err.contains("not written"), "{err}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.sim")).expect("it is there"), before);
}

#[test]
fn a_trace_shows_every_frame_and_changes_nothing() {
    let folder = folder_with("echo = ping client -> server { returned = 0 }\ncheck delivered\n");
    let (_, traced, _) = texts(&xylem(folder.path(), &["sim", "a.sim", "--trace"]));
    let (_, plain, _) = texts(&xylem(folder.path(), &["sim", "a.sim"]));
    assert!(traced.contains("client:0 -> 10.0.0.1 > 10.0.0.2 icmp type 8 code 0 len 64"), "{traced}");
    assert!(traced.contains("arp who has 10.0.0.2? 10.0.0.1 at "), "{traced}");
    assert!(traced.ends_with(&plain));
}

#[test]
fn a_graph_of_a_file_stands_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let graph = "link0 = ethernet over auto\narp over link0\nip = ipv4 over link0, arp { address = \"10.0.0.1/24\" }\nicmp over ip\n";
    std::fs::write(folder.path().join("small.graph"), graph).expect("it can be written");
    let text = "a = host { graph = \"small.graph\" }\nb = host { graph = \"small.graph\", ip.address = \"10.0.0.2/24\" }\n\
                c = link a -- b\necho = ping a -> b\ncheck delivered\n";
    std::fs::write(folder.path().join("a.sim"), text).expect("it can be written");
    let path = folder.path().join("a.sim");
    let elsewhere = tempfile::tempdir().expect("a folder of our own");
    let (code, out, err) = texts(&xylem(elsewhere.path(), &["sim", path.to_str().expect("a plain name")]));
    assert_eq!(code, Some(0), "{out}{err}");
    std::fs::write(folder.path().join("small.graph"), graph.replace("icmp", "imcp")).expect("it can be written");
    let (code, _, err) = texts(&xylem(folder.path(), &["sim", "a.sim"]));
    assert_eq!(code, Some(1));
    assert!(err.starts_with("a.sim:1:1: in the graph \"small.graph\", 4:1: protocol `imcp` is unknown;"), "{err}");
}

#[test]
fn what_cannot_be_run_is_said() {
    let folder = folder_with("check delivred\n");
    let (code, _, err) = texts(&xylem(folder.path(), &["sim", "a.sim"]));
    assert_eq!(code, Some(1));
    assert!(err.starts_with("a.sim:4:1: nothing known is checked; expected `delivered`,"), "{err}");
    let (code, _, err) = texts(&xylem(folder.path(), &["sim", "b.sim"]));
    assert_eq!(code, Some(2));
    assert!(err.starts_with("xylem: cannot read b.sim: "), "{err}");
    assert_eq!(texts(&xylem(folder.path(), &["sim"])).0, Some(2));
}
