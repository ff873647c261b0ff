//! TCP between Xylem and the kernel over every kind of cable, with every MTU, with and without offloads, and with either
//! as the client: every length around segments, and a gigabyte each way in all, every byte compared. The first frames of
//! every row are judged by an independent program; `XYLEM_PEERS=full` judges all and sends ten times as much.

#[allow(dead_code)]
mod kernel {
    pub mod capture;
    pub mod place;
    pub mod streams;
}

use kernel::capture::{Capture, Checksums, is_full};
use kernel::place::{Cable, KINDS, Kind, MTUS, Plan};
use kernel::streams::{Load, kernel_asks_xylem, xylem_asks_kernel};

/// A gigabyte: what all rows of TAPs carry each way in all; those of other cables carry an eighth.
const TOTAL: usize = 1 << 30;
/// What the rows of small packets carry each way, each: they take longest.
const SMALL_ROW: usize = 24 << 20;
/// What the rows of full packets without offloads carry.
const MIDDLE_ROW: usize = 64 << 20;

/// The bytes each way of a row for one of the two clients. What the slower rows leave of the gigabyte is for the faster
/// ones.
fn bytes(plan: Plan) -> usize {
    let row = match plan {
        Plan { mtu: 576, .. } => SMALL_ROW,
        Plan { mtu: 1500, offloads: false, .. } => MIDDLE_ROW,
        // Three rows are left, and each has two clients.
        _ => (TOTAL - 2 * (2 * SMALL_ROW + MIDDLE_ROW)).div_ceil(6),
    };
    match plan.kind {
        _ if is_full() => 10 * row,
        Kind::Tap => row,
        Kind::Packet => row / 8,
    }
}

fn checksums(plan: Plan) -> Checksums {
    if plan.offloads { Checksums::Unfinished } else { Checksums::Right }
}

/// Lengths around a segment of this MTU, a large message and beyond.
fn lengths(mtu: usize) -> Vec<usize> {
    // 20 bytes of IPv4, 20 of TCP, 12 of timestamps.
    let segment = mtu - 52;
    vec![0, 1, segment - 1, segment, segment + 1, 2 * segment, 65_535, 65_536, 1 << 20]
}

fn rows(test: &str, offloads: bool) {
    for plan in Plan::all().filter(|plan| plan.offloads == offloads) {
        let Some(cable) = Cable::lay(test, plan) else { return };
        let (namespace, stack) = cable.stack();
        let capture = Capture::begin(&namespace);
        let loads: Vec<Load> =
            lengths(plan.mtu).into_iter().zip(0..).map(|(length, seed)| Load::in_turn(length, seed)).collect();
        kernel_asks_xylem(&namespace, &stack, 41_001, &loads);
        xylem_asks_kernel(&namespace, &stack, 41_002, &loads);
        kernel_asks_xylem(&namespace, &stack, 41_003, &[Load::both_at_once(bytes(plan), 100)]);
        xylem_asks_kernel(&namespace, &stack, 41_004, &[Load::both_at_once(bytes(plan), 200)]);
        // Few on a link that carries 64 KB at a time.
        capture.end_well(test, 300, checksums(plan));
    }
}

#[test]
fn streams_arrive_right_both_ways_with_offloads() {
    rows("streams_arrive_right_both_ways_with_offloads", true);
}

#[test]
fn streams_arrive_right_both_ways_without_offloads() {
    rows("streams_arrive_right_both_ways_without_offloads", false);
}

#[test]
fn the_rows_make_a_gigabyte_each_way() {
    // Each row has two clients, and the bytes of either go both ways.
    let total: usize = Plan::all().filter(|plan| plan.kind == Kind::Tap).map(|plan| 2 * bytes(plan)).sum();
    assert!(total >= TOTAL, "{total} of {TOTAL} bytes");
    assert_eq!(Plan::all().count(), KINDS.len() * MTUS.len() * 2);
}
