//! The checks of a scenario, judged when all is over.

use super::report::{Checked, Report, seconds};
use super::{Check, Plan};
use crate::host::Host;
use crate::sim::{HostId, Sim};

/// Judges every check of a plan.
pub(super) fn judge(plan: &Plan<'_>, sim: &mut Sim, report: &Report) -> Vec<Checked> {
    let host_name = |host: usize| plan.scenario.hosts[host].name.as_str();
    let judged = plan.scenario.checks.iter().map(|check| match &check.value {
        Check::Delivered => {
            let wrong: Vec<String> = report
                .traffic
                .iter()
                .filter(|drove| !drove.right)
                .map(|drove| format!("{}: {}", drove.name, drove.how))
                .collect();
            let right = format!("{} of {}", report.traffic.len() - wrong.len(), report.traffic.len());
            said("delivered", wrong.is_empty(), if wrong.is_empty() { right } else { wrong.join("; ") })
        }
        Check::Within(limit) => {
            let last = report.traffic.iter().map(|drove| drove.done_at_ns).max_by_key(|at| at.unwrap_or(u64::MAX));
            let in_time = last.flatten().is_none_or(|at| u128::from(at) <= limit.as_nanos());
            let never = report.traffic.iter().any(|drove| drove.done_at_ns.is_none());
            let at = last.flatten().map_or("never".to_owned(), |at| format!("done at {}", seconds(at)));
            let at = if never { "not all is done".to_owned() } else { at };
            said(format!("within {limit:?}"), in_time && !never, at)
        }
        Check::Quiet(after) => {
            let left: Vec<String> = (0..plan.hosts.len()).flat_map(|host| left(sim.host(HostId(host)))).collect();
            let nothing = left.is_empty();
            said(
                format!("quiet after {after:?}"),
                nothing,
                if nothing { "nothing is left".into() } else { left.join("; ") },
            )
        }
        Check::Drops(host, most) => {
            let drops: u64 = report.hosts[*host].drops.iter().map(|dropped| dropped.count).sum();
            said(format!("{} drops at most {most}", host_name(*host)), drops <= *most, format!("it dropped {drops}"))
        }
        Check::Dropped(host, protocol, why) => {
            let drops = &report.hosts[*host].drops;
            let found = drops.iter().find(|dropped| dropped.protocol == *protocol && dropped.why == *why);
            let count = found.map_or(0, |dropped| dropped.count);
            said(format!("{} drops by {protocol}: {why}", host_name(*host)), count > 0, format!("{count} times"))
        }
        Check::Paths(host, count) => {
            let paths = report.hosts[*host].paths_left;
            said(format!("{} has {count} paths", host_name(*host)), paths == *count, format!("it has {paths}"))
        }
    });
    judged.collect()
}

fn said(what: impl Into<String>, right: bool, said: impl Into<String>) -> Checked {
    Checked { what: what.into(), right, said: said.into() }
}

/// What a host holds that it should not, all being closed: paths but those kept for replies, deadlines but one a protocol
/// (ARP looks after its neighbours for ever), buffers in somebody's hands.
fn left(host: &mut Host) -> Vec<String> {
    let (instance, mut left) = (&host.instance, Vec::new());
    let paths = instance.path_count() - instance.kept_path_count();
    if paths > 0 {
        left.push(format!("{} has {paths} paths", host.name));
    }
    let deadlines = instance.deadline_count();
    if deadlines > instance.nodes().len() {
        left.push(format!("{} waits for {deadlines} deadlines", host.name));
    }
    let (small, large) = instance.reading().buffers_held;
    if small + large > 0 {
        left.push(format!("{} holds {small} small and {large} large buffers", host.name));
    }
    left
}
