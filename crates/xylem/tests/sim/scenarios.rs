//! The scenarios of the tree, and the laws of the simulator itself: the same seed gives the same run, another seed another
//! one, and a check that does not hold is seen.

use crate::{run, two_hosts};
use std::path::{Path, PathBuf};
use xylem::commands::sim::sweep::sweep;
use xylem::commands::sim::{plan, replay};
use xylem::{catalogue, graphs};
use xylem_sim::scenario::{GraphName, Plan, parse};

/// Every scenario file of the tree, by path.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(folder).expect("the folder of scenarios is in the tree");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("its entries can be read").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sim"));
    files.sort();
    files
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("a scenario of the tree can be read")
}

#[test]
fn every_scenario_holds_and_gives_its_golden_hash_twice_and_another_seed_gives_another() {
    let catalogue = catalogue::builtin();
    let files = files();
    assert!(files.len() >= 10, "{} scenarios were found", files.len());
    for file in files {
        let name = file.display().to_string();
        let plan = plan(&name, &read(&file), &catalogue).unwrap_or_else(|problems| panic!("{problems}"));
        let seed = plan.scenario.seed;
        assert!(plan.scenario.golden.is_some(), "{name}: run `xylem sim {name} --write-golden`");
        let report = plan.run(seed);
        assert!(report.is_right(), "{name}\n{report}\n{}", replay(&name, seed));
        assert_eq!(plan.run(seed), report, "{name}: the same seed gave another run");
        assert_ne!(plan.run(seed + 1).hash, report.hash, "{name}: another seed gave the same run");
    }
}

#[test]
fn a_thousand_seeds_of_everything_a_link_can_do_to_a_transfer() {
    let catalogue = catalogue::builtin();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lossy-transfer.sim");
    let plan = plan("scenarios/lossy-transfer.sim", &read(&file), &catalogue).expect("the scenario is right");
    // Not from the scenario's own seed on, whose golden hash is another test's business.
    let swept = sweep(1_000, 1000, |seed| plan.run(seed), |_, _| ());
    assert_eq!(swept.count, 1000);
    let failed: Vec<String> = swept
        .failed
        .iter()
        .map(|report| format!("{}{}\n", report.failures(), replay("scenarios/lossy-transfer.sim", report.seed)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.concat());
}

#[test]
fn everything_a_link_can_do_has_been_done_to_that_transfer() {
    let catalogue = catalogue::builtin();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lossy-transfer.sim");
    let plan = plan("lossy-transfer.sim", &read(&file), &catalogue).expect("the scenario is right");
    let (report, other) = (plan.run(1), plan.run(2));
    for link in &report.links {
        let each = [link.lost, link.duplicated, link.reordered, link.corrupted];
        assert!(each.iter().all(|count| *count > 0), "{link:?}");
    }
    assert_ne!(report.traffic[0].what, other.traffic[0].what, "sizes are drawn from the seed");
}

#[test]
fn ping_stops_when_icmp_is_taken_out_of_the_peers_graph() {
    let text = two_hosts(
        "",
        ", graph = quiet",
        "cable = link client -- server\necho = ping client -> server\ncheck delivered",
    );
    let text = text.replace("10.0.0.1\", graph", "10.0.0.1\"\n graph");
    let catalogue = catalogue::builtin();
    let report = |take_out: bool| {
        let source = |_: &GraphName| {
            let mut graph = graphs::builtin("host").ok_or("the graph is built in")?;
            if take_out {
                graph.nodes.retain(|node| *node.name.value != *"icmp");
            }
            Ok(graph)
        };
        // The client keeps its ICMP: somebody has to ask.
        let host = |name: &GraphName| match name {
            GraphName::Builtin(name) if name == "host" => Ok(graphs::builtin("host").ok_or("the graph is built in")?),
            other => source(other),
        };
        let scenario = parse(&text).expect("the scenario is right");
        Plan::new(scenario, &catalogue, &host).unwrap_or_else(|problems| panic!("{problems:?}")).run(1)
    };
    let with = report(false);
    assert!(with.is_right(), "{with}");
    let without = report(true);
    assert!(!without.is_right(), "{without}");
    assert_eq!(without.traffic[0].how, "0 came back; at least 3 had to");
    let unheard =
        |report: &xylem_sim::scenario::Report| report.hosts[1].drops.iter().map(|dropped| dropped.count).sum::<u64>();
    assert_eq!((unheard(&with), unheard(&without)), (0, 3), "each echo request found nobody above IPv4");
}

#[test]
fn a_check_that_does_not_hold_is_seen() {
    let cable = "cable = link client -- server { delay = 1ms, loss = 3%, corrupt = 5% }\n";
    let transfer = "bulk = transfer client -> server { there = 64KiB }\n";
    let wrong = |rest: &str| {
        let report = run(&two_hosts("", "", &format!("{cable}{transfer}{rest}")));
        let wrong: Vec<String> =
            report.checks.iter().filter(|check| !check.right).map(|check| check.what.clone()).collect();
        wrong.join(", ")
    };
    assert_eq!(wrong("check delivered\ncheck quiet\ncheck dropped { server = \"tcp: bad checksum\" }"), "");
    assert_eq!(wrong("check within 1ms"), "within 1ms");
    assert_eq!(wrong("check drops { server = 0, client = 1000 }"), "server drops at most 0");
    assert_eq!(wrong("check dropped { server = \"tcp: of boredom\" }"), "server drops by tcp: of boredom");
    assert_eq!(wrong("check paths { client = 7 }"), "client has 7 paths");
    assert_eq!(wrong("check delivered\ngolden = 0000000000000000"), "golden hash");
    // The time is up in the middle of it: neither is it delivered, nor does anybody close.
    assert_eq!(wrong("time = 5ms\ncheck delivered\ncheck quiet { after = 1ms }"), "delivered, quiet after 1ms");
    assert_eq!(wrong("echo = datagrams client -> server { count = 50, port = 9 }\ncheck delivered"), "delivered");
}

#[test]
fn a_pulled_cable_ends_a_transfer_that_waits_no_longer() {
    let rest = "cable = link client -- server { delay = 5ms, rate = 1Mb/s }\n\
                bulk = transfer client -> server { there = 1MiB, outcome = fails }\n\
                pull cable { at = 1s }\n\
                check delivered\ncheck quiet\ncheck paths { client = 0, server = 0 }";
    let impatient = ", tcp.give_up_after = 5s, tcp.orphan_wait = 5s";
    let report = run(&two_hosts(impatient, impatient, rest));
    assert!(report.is_right(), "{report}");
    assert!(report.traffic[0].how.starts_with("the connection ended: "), "{report}");
    let patient = run(&two_hosts(impatient, impatient, &rest.replace("at = 1s", "at = 1s, back = 2s")));
    assert!(!patient.is_right(), "a cable that is put back in time lets the transfer end well: {patient}");
}

#[test]
fn what_is_wrong_with_a_scenario_is_said_with_its_place() {
    let catalogue = catalogue::builtin();
    let said = |text: &str| plan("a.sim", text, &catalogue).err().unwrap_or_default();
    let hosts = two_hosts("", "", "");
    for (rest, expected) in [
        ("cable = link client -- sever", "a.sim:3:24: no host is called `sever`; expected client, server; mend:"),
        ("cable = link client -- server { loss = 1 }", "a.sim:3:40: `loss` is `1`; expected a percentage"),
        ("cable = link client:ip -- server", "a.sim:3:14: `ip` stands over no device; expected one of: client:link0;"),
        ("a = link client -- server\nb = link client -- server", "a.sim:4:10: `client:link0` has a cable already;"),
        (
            "bulk = transfer client -> server { their = 1 }",
            "a.sim:3:36: `their` is no option of `transfer`; expected protocol,",
        ),
        ("bulk = transfer client -> server { there = 2..1 }", "a.sim:3:44: `there` is `2..1`; expected a size"),
        ("pull cable { at = 1s }", "a.sim:3:6: no cable is named; expected `pull CABLE` with one of: ; mend:"),
        ("other = host { ip.adress = \"10.0.0.3/24\" }", "a.sim:3:16: "),
        (
            "other = host { ip.ttl = 300 }",
            "a.sim:3:25: `ttl` is out of range with 300; expected a whole number from 1 to 255;",
        ),
        ("other = host { pi.ttl = 3 }", "a.sim:3:16: `pi.ttl`: no node is called `pi`; expected `link0`, "),
        ("other = host { ip.gateway = \"10.9.9.9\" }", "a.sim:3:1: `other` cannot be built: ip: expected a gateway on"),
        ("other = host { graph = hots }", "a.sim:3:24: the graph hots is not usable: no graph `hots` comes with Xylem"),
        ("check delivred", "a.sim:3:1: nothing known is checked; expected `delivered`,"),
    ] {
        let problems = said(&format!("{hosts}{rest}\ncheck delivered\n"));
        assert!(problems.starts_with(expected), "of `{rest}` was said\n{problems}");
    }
    assert!(said("a = host\n").starts_with("a.sim:1:1: nothing is checked;"));
    assert!(said("check quiet\n").starts_with("a.sim:1:1: there are no hosts;"));
}
