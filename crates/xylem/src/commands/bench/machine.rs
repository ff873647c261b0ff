//! The machine of a run, for whoever reads its figures later: a figure without its machine says nothing.

use serde_json::{Value as Json, json};

/// What is known about the machine, and what else it did.
pub struct Machine {
    load_before: Option<f64>,
}

impl Machine {
    /// Before the first repetition.
    pub fn look() -> Machine {
        Machine { load_before: load() }
    }

    /// What about the machine and this program spoils the figures, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let busy = self.load_before.filter(|load| *load > LOAD_IDLE).map(|load| {
            format!("the load average was {load:.1} before the run: other programs ran, so only ratios say something")
        });
        let slow = cfg!(debug_assertions).then(|| {
            "this program was built with assertions of debugging: build it with --release to measure".to_owned()
        });
        busy.into_iter().chain(slow).collect()
    }

    /// As JSON.
    pub fn json(&self, pinning: &str, tuned: &str, seconds: f64) -> Json {
        let name = rustix::system::uname();
        json!({
            "kernel": name.release().to_string_lossy(),
            "architecture": name.machine().to_string_lossy(),
            "cpu": cpu_model(),
            "cpus": std::thread::available_parallelism().map_or(0, usize::from),
            "pinning": pinning,
            "priority": tuned,
            "load_before": self.load_before,
            "load_after": load(),
            "program": env!("CARGO_PKG_VERSION"),
            "build": if cfg!(debug_assertions) { "with assertions of debugging: slower than a release build" } else { "release" },
            "seconds": seconds,
        })
    }
}

/// A load average up to which a machine counts as idle.
const LOAD_IDLE: f64 = 0.5;

/// The load average of the last minute (proc_loadavg(5)).
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
