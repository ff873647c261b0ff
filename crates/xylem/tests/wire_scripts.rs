//! Law 7, our side: every packet script of the tree holds for our TCP, in virtual time. That the scripts notice faults is
//! shown on them and on the stack: each expectation changed by one number fails, and so does each of a list of faults
//! planted in the stack's settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use xylem::commands::script::verdict::Verdict;
use xylem::commands::script::{files, load, try_graph, try_xylem};
use xylem::graphs;
use xylem_graph::file::Value;
use xylem_sim::script::{Arm, Claim, Event, Place, Script, parse};

/// Fewer would mean that the folder was not found, or that somebody took scripts away.
const SCRIPTS_MIN: usize = 250;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wire")
}

fn scripts() -> Vec<(PathBuf, Script)> {
    let paths = files(&[folder()]).expect("the folder of scripts is in the tree");
    paths.into_iter().map(|path| (path.clone(), load(&path).unwrap_or_else(|problems| panic!("{problems}")))).collect()
}

fn named(name: &str) -> Script {
    load(&folder().join(format!("tcp/{name}.wire"))).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_script_holds_for_our_tcp() {
    let scripts = scripts();
    assert!(scripts.len() >= SCRIPTS_MIN, "{} scripts", scripts.len());
    let (mut failed, mut passed) = (String::new(), 0);
    for (path, script) in &scripts {
        let (verdict, run) = try_xylem(script);
        passed += usize::from(verdict == Verdict::Passed);
        if verdict.is_failure() {
            failed += &verdict.in_file(&path.display().to_string());
            failed += &run.map(|run| run.log.join("\n") + "\n").unwrap_or_default();
        }
    }
    assert!(failed.is_empty(), "{failed}");
    assert!(passed >= SCRIPTS_MIN, "only {passed} scripts were tried and passed");
}

#[test]
fn every_script_prints_as_it_reads() {
    for (path, script) in scripts() {
        let printed = script.to_string();
        assert_eq!(parse(&printed).as_ref(), Ok(&script), "{}:\n{printed}", path.display());
    }
}

#[test]
fn every_script_says_something_of_its_own_and_by_which_rule() {
    let mut reasons = BTreeSet::new();
    for (path, script) in scripts() {
        let name = path.display();
        assert!(reasons.insert(script.why.clone()), "{name}: another script has the same `why`");
        assert!(!script.rfc.is_empty(), "{name}: no `rfc`");
        for rule in &script.rfc {
            let (number, rest) = rule.split_once(' ').unwrap_or((rule, ""));
            assert!(
                number.parse::<u16>().is_ok() && !rest.is_empty(),
                "{name}: `{rule}` is no RFC and label or section"
            );
        }
        let expects = |event: &Event| !matches!(event, Event::Send { .. } | Event::May { .. } | Event::Anew { .. });
        assert!(script.lines.iter().any(|line| expects(&line.event)), "{name}: it expects nothing");
    }
}

/// The labels of RFC 9293 that can be seen on a wire, or at a socket beside one, and are not shown elsewhere.
const LABELS: &[&str] = &[
    "MUST-1", "MUST-3", "MUST-4", "MUST-5", "MUST-6", "MUST-7", "MUST-10", "MUST-11", "MUST-12", "MUST-13", "MUST-15",
    "MUST-16", "MUST-17", "MUST-18", "MUST-19", "MUST-20", "MUST-21", "MUST-22", "MUST-23", "MUST-24", "MUST-25",
    "MUST-26", "MUST-29", "MUST-30", "MUST-31", "MUST-34", "MUST-35", "MUST-36", "MUST-37", "MUST-38", "MUST-39",
    "MUST-40", "MUST-41", "MUST-42", "MUST-48", "MUST-49", "MUST-54", "MUST-55", "MUST-56", "MUST-57", "MUST-58",
    "MUST-60", "MUST-61", "MUST-62", "MUST-63", "MUST-64", "MUST-65", "MUST-66", "MUST-67", "MUST-69", "SHLD-2",
    "SHLD-3", "SHLD-4", "SHLD-5", "SHLD-7", "SHLD-11", "SHLD-12", "SHLD-14", "SHLD-15", "SHLD-16", "SHLD-18",
    "SHLD-19", "SHLD-25", "SHLD-26", "SHLD-28", "SHLD-29", "SHLD-30", "SHLD-31", "MAY-1", "MAY-2", "MAY-8", "MAY-12",
];

#[test]
fn every_label_that_a_wire_shows_has_a_script() {
    let shown: BTreeSet<String> = scripts().into_iter().flat_map(|(_, script)| script.rfc).collect();
    let missing: Vec<_> = LABELS.iter().filter(|label| !shown.contains(&format!("9293 {label}"))).collect();
    assert!(missing.is_empty(), "no script shows {missing:?}");
}

#[test]
fn an_expectation_that_is_one_number_off_fails() {
    let mut planted = 0;
    for (path, script) in scripts() {
        if script.xylem != Claim::Same || try_xylem(&script).0 != Verdict::Passed {
            continue;
        }
        for index in 0..script.lines.len() {
            let mut wrong = script.clone();
            let line = &mut wrong.lines[index].value;
            let Event::Expect { segment, .. } = &mut line.event else { continue };
            let Place::Counted(number) = segment.sequence else { continue };
            if line.only == Some(Arm::Linux) || segment.payload == 0 && number == 0 {
                // From the SYN all others count: there is none before it to be off from.
                continue;
            }
            segment.sequence = Place::Counted(number + 1);
            let (verdict, _) = try_xylem(&wrong);
            assert!(matches!(verdict, Verdict::Failed(_)), "{}: line {index} is not looked at", path.display());
            planted += 1;
        }
    }
    assert!(planted > 300, "{planted}");
}

#[test]
fn faults_of_the_stack_are_noticed() {
    let milliseconds = |number| Value::Duration(std::time::Duration::from_millis(number));
    for (option, value, script) in [
        ("no_delay", Value::Bool(true), "nagle/gathers"),
        ("rto_initial", milliseconds(2000), "timeout/initial-is-one-second"),
        ("rto_min", milliseconds(900), "timeout/first"),
        ("rto_min", milliseconds(20), "timeout/first"),
        ("delayed_ack", milliseconds(499), "receiving/in-order"),
        ("msl", milliseconds(100), "closing/time-wait-ends"),
        ("orphan_wait", milliseconds(100), "closing/fin-wait-2-orphan"),
        ("give_up_after", milliseconds(60_000), "timeout/give-up"),
        ("open_give_up_after", milliseconds(10_000), "timeout/syn-give-up"),
    ] {
        let mut graph = graphs::builtin("host").expect("it comes with the program");
        graph.set("tcp", option, value).expect("the graph has a node of that name");
        let (verdict, _) = try_graph(&named(script), &graph);
        assert!(matches!(verdict, Verdict::Failed(_)), "{script} does not notice `{option}`: {verdict:?}");
    }
}

/// What the runner must not let pass, each with what it says.
#[test]
fn the_runner_is_strict() {
    let begin = "why: x\nrfc: 0 x\n\n";
    for (lines, expected) in [
        ("opened by peer\nwrite 10\n+10ms quiet", "before it, 0s: > P. 1..11"),
        ("opened by peer\nwrite 10\n+10ms > P. 1..11 ack 1", "sooner than 10ms"),
        ("opened by peer\nwrite 10\n> P. 1..11 ack 1\n> P. 11..21 ack 1", "nothing until 1ms"),
        ("opened by peer\nwrite 10\n> . 1..11 ack 1 win 7", "not 7"),
        ("opened by peer\nwrite 10\n> F. 1..11 ack 1", "flags ., not F."),
        ("opened by peer\nwrite 10\n> . 1..11 ack 1 <mss 5>", "option `mss 5` is not there"),
        ("opened by peer\nwrite 2920\n> . 1..2921 ack 1", "1460 bytes of payload, not 2920"),
        ("opened by peer\nwrite 2920\n> . 1..2921 ack 1 in 3", "it came in 2 segments"),
        ("opened by peer\nwrite 2920\n> . 1..2921 ack 1 in any\n= cwnd 7", "ESTABLISHED cwnd 10"),
        ("opened by peer\n< . 1..11 ack 1 other_content\n+40ms > . 1 ack 11\nread 10", "is not the one sent"),
        ("opened by peer\nread 1", "0 bytes to read"),
        ("connect\n> S 0\na: quiet\n> . 1 ack 1", "nothing until"),
        ("accept", "no connection has opened"),
        ("< S 0\na: > R. raw 0 ack 1", "another connection's"),
        ("listen\n< S 0\n> S. 0 ack 1\n= LISTEN", "CLOSED cwnd 0"),
        ("opened by peer\ntold reset", "told ["),
        ("opened by peer\nmay > . 1 ack 1\nwrite 1\n+1ms quiet", "before it"),
    ] {
        let script = parse(&format!("{begin}{lines}\n")).unwrap_or_else(|problems| panic!("{lines}: {problems:?}"));
        match try_xylem(&script).0 {
            Verdict::Failed(failure) => assert!(failure.got.contains(expected), "{lines}: {}", failure.got),
            other => panic!("{lines}: {other:?}"),
        }
    }
}

#[test]
fn a_claim_of_a_difference_that_is_none_fails() {
    let script = parse("why: x\nxylem: differs because of nothing\n\nlisten\n").expect("a script");
    assert_eq!(try_xylem(&script).0, Verdict::DiffersNoMore("of nothing".to_owned()));
}

#[test]
fn the_command_says_file_line_and_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let (good, bad) = (folder.path().join("good.wire"), folder.path().join("bad.wire"));
    std::fs::write(&good, "why: it answers\n\nlisten\n< S 0\n> S. 0 ack 1\n").expect("it is ours");
    std::fs::write(&bad, "why: it does not\n\n< S 0\n> S. 0 ack 1\n").expect("it is ours");
    let run = |arguments: &[&str], file: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_xylem")).arg("script").args(arguments).arg(file).output();
        let output = output.expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it writes UTF-8");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, said, _) = run(&[], &good);
    assert_eq!((code, said.trim()), (Some(0), "xylem: 1 scripts, 1 passed, 0 differ as they say, 0 skipped, 0 failed"));
    let (code, _, complained) = run(&[], &bad);
    assert_eq!(code, Some(1));
    let expected = format!("{}:4:1: expected `> S. 0 ack 1`; got 0s: > R. 0 ack 1", bad.display());
    assert!(complained.starts_with(&expected), "{complained}");
    let (code, said, _) = run(&["--json"], folder.path());
    let value: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &value["scripts"][0]["verdict"]["line"]), (Some(1), &serde_json::json!(4)));
    let (code, said, _) = run(&["--print"], &good);
    assert_eq!((code, said.contains("listen backlog 16")), (Some(0), true));
    let (code, _, complained) = run(&[], Path::new("/nowhere.wire"));
    assert_eq!((code, complained.contains("cannot read /nowhere.wire")), (Some(1), true), "{complained}");
}
