//! Law 8 on TCP, over seeds: whatever the link does (loss, reordering, duplicates, corruption, spikes of delay, another MTU
//! with and without a word, blackouts, marks), whatever the applications do with their windows, and whatever a stranger
//! sends who cannot take segments away, each stream arrives as it was sent and both ends close; nobody is silent for longer
//! than his timers explain; windows, what is in flight and memory stay within their laws; and nothing is left.
//!
//! `XYLEM_SEEDS=10000 cargo test -p xylem --test law_transfer` tries so many seeds instead of a thousand;
//! `XYLEM_SEED=7 cargo test -p xylem --test law_transfer one_seed -- --nocapture` tries that one, and
//! prints its plan and every frame.

mod transfer {
    pub mod greed;
    mod laws;
    pub mod meddler;
    pub mod plan;
    mod stranger;
    mod talk;
    pub mod town;
    mod wire;
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transfer::greed;
use transfer::meddler::Fault;
use transfer::plan::{Happening, Plan};
use transfer::town::{Planted, Run, run};

const SEEDS: u64 = 1000;

fn said(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number, got `{text}`")))
}

/// A seed's run. A panic inside of it is as wrong as anything.
fn try_plan(plan: &Plan, planted: Planted) -> Result<Run, String> {
    catch_unwind(AssertUnwindSafe(|| run(plan, planted, false))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// Runs seeds `0..count` on as many threads as there are CPUs; what was wrong, by seed, and what was right together.
fn try_all(count: u64) -> (Vec<(u64, String)>, Vec<Run>) {
    let next = AtomicU64::new(0);
    let all = Mutex::new((Vec::new(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let result = try_plan(&Plan::of(seed), Planted::Nothing);
                    let mut all = all.lock().expect("nobody panics with it");
                    match result {
                        Ok(run) => all.1.push(run),
                        Err(wrong) => all.0.push((seed, wrong)),
                    }
                }
            });
        }
    });
    all.into_inner().expect("nobody panics with it")
}

#[test]
fn streams_arrive_whatever_happens() {
    let count = said("XYLEM_SEEDS").unwrap_or(SEEDS);
    let (mut wrong, runs) = try_all(count);
    wrong.sort();
    for (seed, what) in wrong.iter().take(10) {
        println!(
            "seed {seed}: {what}\n  XYLEM_SEED={seed} cargo test -p xylem --test law_transfer one_seed -- --nocapture"
        );
    }
    assert!(wrong.is_empty(), "{} of {count} seeds went wrong; the first: seed {}", wrong.len(), wrong[0].0);
    // What the seeds have met: a generator that has become tame proves nothing.
    let sum = |of: fn(&Run) -> u64| runs.iter().map(of).sum::<u64>();
    let (bytes, meddled) = (sum(|run| run.bytes), sum(|run| run.meddled as u64));
    let (again, marks) = (sum(|run| run.retransmitted), sum(|run| run.marks));
    let (complaints, events) = (sum(|run| run.complaints as u64), sum(|run| run.events as u64));
    let most = runs.iter().map(|run| (run.events, run.seed)).max().unwrap_or_default();
    let longest = runs.iter().map(|run| run.longest_silence).max().unwrap_or_default();
    println!(
        "{count} seeds: {bytes} bytes in {events} events, {again} segments again, {meddled} forged or repeated, {marks} \
         marked, {complaints} too large; the longest silence {longest:?}; the most events
         were {most:?}"
    );
    let unopened = sum(|run| u64::from(run.never_opened));
    assert!(unopened * 20 <= count, "{unopened} of {count} seeds could not even open");
    if count >= SEEDS {
        assert!(bytes / count > 5_000 && again / count > 5 && meddled / count > 5, "the seeds are tame");
        assert!(
            marks > count / 10 && complaints > count / 20 && longest > Duration::from_secs(50),
            "the seeds are tame"
        );
    }
}

/// For whoever looks for what was wrong.
#[test]
fn one_seed() {
    let Some(seed) = said("XYLEM_SEED") else { return };
    let plan = Plan::of(seed);
    println!("{plan:#?}");
    match run(&plan, Planted::Nothing, true) {
        Ok(run) => println!("{run:#?}"),
        Err(wrong) => panic!("seed {seed}: {wrong}"),
    }
}

#[test]
fn a_seed_means_the_same_twice() {
    for seed in 0..10 {
        let tries = [0; 2].map(|_| format!("{:?}", run(&Plan::of(seed), Planted::Nothing, false)));
        assert_eq!(tries[0], tries[1], "seed {seed}");
    }
}

/// Plants something in each of some seeds; how many of those in which it could show were noticed in these words.
fn noticed(planted: Planted, words: &[&str]) -> (usize, Vec<String>) {
    let results = (0..60).map(|seed| {
        let mut plan = Plan::of(seed);
        if let Planted::Greed(_) = planted {
            // Nobody changes the algorithm meanwhile.
            plan.happenings.retain(|(_, happening)| !matches!(happening, Happening::Congestion(..)));
        }
        if planted == Planted::Fault(Fault::Hoard) {
            plan.talks[0].total = 150_000;
            // What is hoarded shows where buffers are small.
            for tcp in &mut plan.tcp {
                tcp.retain(|(option, _)| !option.ends_with("_buffer"));
                let size = xylem_graph::file::Value::Size(8192);
                tcp.extend([("receive_buffer", size.clone()), ("send_buffer", size)]);
            }
            plan.happenings.retain(|(_, happening)| !matches!(happening, Happening::Buffer(..)));
        }
        try_plan(&plan, planted).err()
    });
    let wrong: Vec<String> = results.flatten().collect();
    let count = wrong.iter().filter(|wrong| words.iter().any(|words| wrong.contains(words))).count();
    (count, wrong)
}

#[test]
fn planted_faults_are_noticed() {
    let faults: [(Fault, &[&str]); 6] = [
        (Fault::Swap, &["is wrong"]),
        (Fault::Mute, &["is silent for"]),
        (Fault::Widen, &["beyond a window"]),
        (Fault::Shrink, &["goes back"]),
        (Fault::Hoard, &["bytes of buffers"]),
        (Fault::Leak, &["still has"]),
    ];
    for (fault, words) in faults {
        let (count, wrong) = noticed(Planted::Fault(fault), words);
        assert!(count >= 5, "{fault:?} was planted and noticed in {count} seeds of 60: {wrong:#?}");
    }
    for greed in greed::ALL {
        let (count, wrong) = noticed(Planted::Greed(greed), &["the window grew", "less than a segment", "a threshold"]);
        assert!(count >= 30, "{greed:?} was planted and noticed in {count} seeds of 60: {wrong:#?}");
    }
}
