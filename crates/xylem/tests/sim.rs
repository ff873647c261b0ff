//! The simulator over whole graphs: every scenario of the tree with its golden hash, many seeds of the worst one, what
//! options do, and the command line.

mod sim {
    mod command;
    mod congestion;
    mod numbers;
    mod options;
    mod scenarios;
}

use xylem::catalogue;
use xylem::commands::sim::plan;
use xylem_sim::scenario::Report;

/// Two hosts with these options on one clean cable, and what else the text says.
fn two_hosts(client: &str, server: &str, rest: &str) -> String {
    format!(
        "client = host {{ ip.address = \"10.0.0.1/24\", ip.gateway = \"10.0.0.2\"{client} }}\n\
         server = host {{ ip.address = \"10.0.0.2/24\", ip.gateway = \"10.0.0.1\"{server} }}\n\
         {rest}"
    )
}

/// Runs a scenario's text with its own seed.
#[track_caller]
fn run(text: &str) -> Report {
    let catalogue = catalogue::builtin();
    let plan = plan("test.sim", text, &catalogue).unwrap_or_else(|problems| panic!("{problems}"));
    plan.run(plan.scenario.seed)
}
