//! Streams between Xylem and the kernel over a wire that loses, doubles, reorders and changes frames, in both directions,
//! with several seeds and either as the client: every byte arrives, or nothing is claimed. Where the wire changes no
//! bits, what was sent is judged by an independent program.

#[allow(dead_code)]
mod kernel {
    pub mod capture;
    pub mod place;
    pub mod streams;
}

use kernel::capture::{Capture, Checksums, is_full};
use kernel::place::{Cable, Plan};
use kernel::streams::{Load, kernel_asks_xylem, xylem_asks_kernel};

/// What a wire does, and whether a capture beside it is to be judged: it sees what the wire has changed.
const WIRES: [(&str, Checksums, bool); 4] = [
    ("loss=1% delay=200us", Checksums::Right, true),
    ("reorder=2% duplicate=1% delay=200us jitter=100us", Checksums::Right, true),
    ("loss=0.5% reorder=1% duplicate=1% corrupt=0.5% delay=300us", Checksums::Right, false),
    ("loss=2% rate=200Mb/s delay=1ms", Checksums::Right, true),
];

/// Runs one wire with its seeds.
fn wire(test: &str, index: usize) {
    let (model, checksums, is_judged) = WIRES[index];
    let seeds = if is_full() { 12 } else { 3 };
    for seed in 0..seeds {
        let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
        let (namespace, stack, behind) = cable.stack_behind(&format!("{model} mtu=1500"), seed);
        let capture = Capture::begin(&namespace);
        let loads = [Load::in_turn(1, seed), Load::in_turn(100_000, seed), Load::both_at_once(1 << 20, seed)];
        kernel_asks_xylem(&namespace, &stack, 41_301, &loads);
        xylem_asks_kernel(&namespace, &stack, 41_302, &loads);
        let (leaving, arriving) = behind.link().counters();
        assert!(leaving.sent > 1000 && arriving.sent > 1000, "{model}: {leaving:?} {arriving:?}");
        for counters in [leaving, arriving] {
            assert_eq!(model.contains("duplicate"), counters.duplicated > 0, "{model}: {counters:?}");
            assert_eq!(model.contains("reorder"), counters.reordered > 0, "{model}: {counters:?}");
        }
        if is_judged {
            capture.end_well(test, 1000, checksums);
        }
    }
}

#[test]
fn streams_survive_a_wire_that_loses() {
    wire("streams_survive_a_wire_that_loses", 0);
}

#[test]
fn streams_survive_a_wire_that_reorders_and_doubles() {
    wire("streams_survive_a_wire_that_reorders_and_doubles", 1);
}

#[test]
fn streams_survive_a_wire_that_changes_bits() {
    wire("streams_survive_a_wire_that_changes_bits", 2);
}

#[test]
fn streams_survive_a_slow_wire_that_loses() {
    wire("streams_survive_a_slow_wire_that_loses", 3);
}
