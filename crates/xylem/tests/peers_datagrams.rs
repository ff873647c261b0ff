//! UDP between Xylem and the kernel over every kind of cable, with every MTU, with and without offloads, and with either
//! as the client: small sizes, every border of fragments, and others up to the largest there is; closed ports too. What
//! was sent meanwhile is judged by an independent program.

#[allow(dead_code)]
mod kernel {
    pub mod capture;
    pub mod datagrams;
    pub mod ping;
    pub mod place;
}

use kernel::capture::{Capture, Checksums};
use kernel::datagrams::{closed_ports, kernel_asks_xylem, xylem_asks_kernel};
use kernel::ping::sizes;
use kernel::place::{Cable, Plan};

fn rows(test: &str, offloads: bool) {
    for plan in Plan::all().filter(|plan| plan.offloads == offloads) {
        let Some(cable) = Cable::lay(test, plan) else { return };
        let (namespace, stack) = cable.stack();
        let capture = Capture::all(&namespace);
        let sizes = sizes(plan, 7 + plan.mtu as u64);
        kernel_asks_xylem(&namespace, &stack, 42_001, &sizes);
        xylem_asks_kernel(&namespace, &stack, 42_002, &sizes);
        closed_ports(&namespace, &stack, 42_003);
        let checksums = if plan.offloads { Checksums::Unfinished } else { Checksums::Right };
        capture.end_well(test, 4 * sizes.len(), checksums);
    }
}

#[test]
fn datagrams_of_every_size_arrive_right_both_ways_with_offloads() {
    rows("datagrams_of_every_size_arrive_right_both_ways_with_offloads", true);
}

#[test]
fn datagrams_of_every_size_arrive_right_both_ways_without_offloads() {
    rows("datagrams_of_every_size_arrive_right_both_ways_without_offloads", false);
}
