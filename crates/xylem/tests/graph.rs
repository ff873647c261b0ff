//! `xylem graph` from a user's view: what it prints, and how it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn xylem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xylem")).args(arguments).output().expect("the program of this crate runs")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("the program prints text")
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("the program prints text")
}

fn graphs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs")
}

fn written(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("a.graph");
    std::fs::write(&path, text).expect("a folder of our own can be written");
    path.to_str().expect("its name is plain").to_owned()
}

#[test]
fn a_graph_that_is_right_is_said_to_be_so() {
    let file = graphs().join("host.graph");
    let output = xylem(&["graph", "check", "host", "router", file.to_str().expect("a plain name")]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let lines: Vec<&str> = out(&output).lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], "host: ok: 7 nodes over 1 device; demux = layered, data = layered, device = auto");
    assert!(lines[1].starts_with("router: ok: 6 nodes over 2 devices;"), "{}", lines[1]);
}

#[test]
fn all_problems_are_said_at_once_each_with_its_place_and_its_mend() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = written(
        &folder,
        "link0 = ethernet over auto { mtu = 10 }\narp over link0\nip = ipv4 over link0, arp { adress = \"10.0.0.2/24\" }\nupd over ip\n",
    );
    let output = xylem(&["graph", "check", &file]);
    assert_eq!((output.status.code(), out(&output)), (Some(1), ""));
    let lines: Vec<&str> = err(&output).lines().collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    for (line, place) in lines.iter().zip(["1:36:", "3:1:", "3:29:", "4:1:"]) {
        assert!(line.starts_with(&format!("{file}:{place}")), "{line} is not about {place}");
        assert!(line.contains("; expected ") && line.contains("; mend: "), "{line}");
    }
    assert!(lines[3].contains("`upd` is unknown") && lines[3].contains("`udp`"), "{}", lines[3]);
}

#[test]
fn a_group_is_no_stations_address() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let text = std::fs::read_to_string(graphs().join("host.graph")).expect("the graph is in the tree");
    let said = |address: &str| {
        let text = text.replace("mtu = 1500", &format!("address = \"{address}\""));
        let output = xylem(&["graph", "check", &written(&folder, &text)]);
        (output.status.code(), err(&output).to_owned())
    };
    assert_eq!(said("02:00:00:00:00:01").0, Some(0));
    let (code, problem) = said("03:00:00:00:00:01");
    assert_eq!(code, Some(1));
    assert!(problem.contains("03:00:00:00:00:01 is the address of a group"), "{problem}");
}

#[test]
fn what_cannot_be_read_is_another_ending() {
    let output = xylem(&["graph", "check", "no-such.graph"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("xylem: cannot read no-such.graph: "), "{}", err(&output));
    assert!(err(&output).contains("calls, host, point, records, router, sized-calls, toy"), "{}", err(&output));
    assert_eq!(xylem(&["graph", "draw"]).status.code(), Some(2));
    assert_eq!(xylem(&["graph", "check"]).status.code(), Some(2));
}

#[test]
fn a_graph_is_drawn_and_printed_as_json_and_as_the_text_that_makes_it() {
    let drawing = xylem(&["graph", "show", "host"]);
    assert_eq!(drawing.status.code(), Some(0));
    for part in ["│ link0 (ethernet) │", "║ auto ║", "demux = layered"] {
        assert!(out(&drawing).contains(part), "{part} is not in\n{}", out(&drawing));
    }
    let json = xylem(&["graph", "show", "router", "--json"]);
    let json: serde_json::Value = serde_json::from_str(out(&json)).expect("it is JSON");
    let ip = json["nodes"].as_array().and_then(|nodes| nodes.iter().find(|node| node["name"] == "ip")).expect("a node");
    assert_eq!(ip["options"]["forwarding"], serde_json::json!(true));
    assert_eq!(ip["over"][0]["node"], "left");
    assert_eq!(json["nodes"][0]["over"][0]["device"], "auto");
    let edge =
        |upper: &str, branch: u8, lower: &str| serde_json::json!({ "upper": upper, "branch": branch, "lower": lower });
    let edges = json["edges"].as_array().expect("a list");
    assert!(edges.contains(&edge("ip", 2, "right")) && edges.len() == 7, "{edges:?}");
    let device = serde_json::json!({ "upper": "right", "branch": 0, "device": "auto" });
    assert_eq!(json["device_edges"][1], device);
    assert_eq!(json["placements"]["app"].as_array().map(Vec::len), Some(6));
    assert_eq!(json["placements"]["server"], serde_json::json!([]));

    let folder = tempfile::tempdir().expect("a folder of our own");
    let text = xylem(&["graph", "show", "router", "--text"]);
    let again = xylem(&["graph", "show", &written(&folder, out(&text)), "--text"]);
    assert_eq!(out(&text), out(&again));
}

#[test]
fn a_graph_is_a_picture_in_a_file_or_on_standard_output() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("host.svg");
    let output = xylem(&["graph", "show", "host", "--svg", file.to_str().expect("its name is plain")]);
    assert_eq!((output.status.code(), out(&output)), (Some(0), ""));
    let picture = std::fs::read_to_string(&file).expect("the picture was written");
    assert!(picture.starts_with("<svg ") && picture.contains(">address 10.0.0.2/24<"), "{picture}");
    assert!(!picture.contains("congestion"), "what goes without saying is left out: {picture}");
    assert_eq!(out(&xylem(&["graph", "show", "host", "--svg", "-"])), picture);
    let nowhere = folder.path().join("no/such/folder.svg");
    let output = xylem(&["graph", "show", "host", "--svg", nowhere.to_str().expect("its name is plain")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("xylem: cannot write "), "{}", err(&output));
}

#[test]
fn the_combinations_are_a_table_or_json() {
    let table = xylem(&["graph", "combinations"]);
    assert!(out(&table).contains("app        layered     layered     wire    works\n"));
    let json = xylem(&["graph", "combinations", "--json"]);
    let json: serde_json::Value = serde_json::from_str(out(&json)).expect("it is JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(144));
}

#[test]
fn every_help_has_an_example() {
    for command in [&["--help"][..], &["graph", "check", "--help"], &["graph", "show", "--help"], &["sim", "--help"]] {
        let output = xylem(command);
        assert_eq!(output.status.code(), Some(0));
        assert!(out(&output).contains("Example"), "{command:?}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_xylem"))
        .args(["graph", "combinations"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program of this crate runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
}
