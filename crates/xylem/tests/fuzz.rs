//! Replays the corpora through the fuzz targets, and a seeded sample of mutations of inputs that mean something. The
//! fuzzer proper is in `fuzz/`.

use std::path::Path;
use xylem::fuzz::{TARGETS, samples};
use xylem_core::Random;

#[test]
fn the_corpora_are_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in TARGETS {
        let files: Vec<_> = std::fs::read_dir(folder.join(target.name))
            .unwrap_or_else(|error| panic!("{}: no corpus: {error}", target.name))
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(!files.is_empty(), "{}: the corpus is empty", target.name);
        for file in files {
            (target.run)(&std::fs::read(file).unwrap());
        }
    }
}

#[test]
fn mutations_of_meaningful_input_do_no_harm() {
    let mut random = Random::seeded(1);
    for target in TARGETS {
        let rounds = if ["frames", "graph", "scenario"].contains(&target.name) { 200 } else { 2_000 };
        for mut input in samples(target.name, rounds, 2) {
            (target.run)(&input);
            for _ in 0..=random.below(4) {
                mutate(&mut input, &mut random);
                (target.run)(&input);
            }
        }
    }
}

#[test]
fn samples_mean_something() {
    for target in TARGETS {
        assert!(samples(target.name, 8, 3).iter().all(|sample| !sample.is_empty()), "{}", target.name);
    }
}

fn mutate(input: &mut Vec<u8>, random: &mut Random) {
    if input.is_empty() {
        input.push(random.next() as u8);
        return;
    }
    let at = random.below(input.len() as u64) as usize;
    match random.below(4) {
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.next() as u8,
        2 => input.truncate(at),
        _ => input.insert(at, random.next() as u8),
    }
}

/// The fuzzer's own programs are one for each target.
#[test]
fn every_target_has_its_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut programs: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    programs.sort();
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort();
    assert_eq!(programs, targets);
}
