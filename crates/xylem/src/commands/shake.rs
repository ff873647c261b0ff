//! `xylem shake`: a running host with real conversations, and somebody on its link who sends rubbish at full rate. What is
//! asked: does it go on, is every byte of the conversations right, and does nothing grow?

pub mod conversations;
pub mod shaken;

use crate::cli::{Ending, complain, note, say};
use crate::fuzz::{Aim, Counts, Rubbish};
use crate::{catalogue, graphs};
use conversations::Talk;
use serde_json::{Value as Json, json};
use shaken::{Shaken, Station};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use xylem_graph::file::Value;
use xylem_graph::instance::{Limits, Reading};
use xylem_host::device::{Device, WireDevice};
use xylem_host::net::TcpListener;
use xylem_host::stack::{BuildError, Stack};
use xylem_wire::{EthernetAddress, Port};

/// See the module's text.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  xylem shake --seconds 60\n  xylem shake --seconds 5 --seed 7 --json\n\n\
    Both hosts are in this process, on a wire without offloads; it needs no rights. Exit codes: 0 nothing was disturbed,\n\
    1 something was, 2 the hosts could not be started.")]
pub struct ShakeCommand {
    /// How long the rubbish is sent
    #[arg(long, default_value = "10", value_name = "N")]
    seconds: NonZeroU64,
    /// Where the rubbish comes from; which frame meets which moment of the conversations is up to the machine
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const AIM: Aim = Aim {
    from: (Ipv4Addr::new(10, 0, 0, 66), EthernetAddress([2, 0, 0, 0, 0, 66])),
    to: (Ipv4Addr::new(10, 0, 0, 2), EthernetAddress([2, 0, 0, 0, 0, 2])),
    port: Port(80),
};
/// Connections that last.
const LASTING: u64 = 4;
/// Half-open connections: more than come within the time a handshake takes.
const BACKLOG: usize = 4096;
/// How long the conversations go on before the rubbish begins, so that what is needed once has been taken.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long what is underway may take to end.
const DRAIN: Duration = Duration::from_secs(10);
/// What each host may hold in buffers: 32 MiB in all.
const LIMITS: Limits = Limits { paths: 8192, enables: 16, small_buffers: 8192, large_buffers: 256 };
/// Fragments wait half a minute for the rest of their packet: so many bytes of buffers at most (the usual limit of
/// reassembly), and one packet's more.
const FRAGMENTS_HELD_MAX: usize = (4 << 20) + (64 << 10);
/// What the process may grow by: the buffers of both hosts, and as much again for tables, threads and the allocator.
const GROWTH_MAX: u64 = 128 << 20;

impl ShakeCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        match shake(Duration::from_secs(self.seconds.get()), self.seed) {
            Ok(report) => {
                say(if self.json { format!("{:#}\n", report.json()) } else { report.text() });
                let wrong = report.wrong();
                note(wrong.iter().map(|line| format!("xylem: {line}\n")).collect::<String>());
                if wrong.is_empty() { Ending::Right } else { Ending::Wrong }
            }
            Err(error) => {
                complain(error.to_string());
                Ending::Unasked
            }
        }
    }
}

/// What a host and the process hold.
#[derive(Clone, Debug)]
struct Held {
    /// Bytes of the process in memory, if the system tells.
    resident: Option<u64>,
    /// The server's counters.
    reading: Reading,
    /// The server's paths, without those kept for replies.
    paths: usize,
}

impl Held {
    fn of(server: &Stack) -> Held {
        let instance = server.instance();
        let paths = instance.path_count().saturating_sub(instance.kept_path_count());
        Held { resident: resident(), reading: server.reading(), paths }
    }

    fn buffer_bytes(&self) -> usize {
        let (small, large) = self.reading.buffers_held;
        small * xylem_core::pool::SMALL + large * xylem_core::pool::LARGE
    }
}

/// What came of it.
struct Report {
    span: Duration,
    seed: u64,
    before: Held,
    during: Held,
    after: Held,
    sent: Counts,
    lasting: Vec<Talk>,
    visits: Talk,
}

/// A host of the usual graph.
fn host(
    address: Ipv4Addr,
    gateway: Ipv4Addr,
    device: impl Device + 'static,
    link: Option<EthernetAddress>,
) -> Result<Stack, BuildError> {
    let mut graph = graphs::builtin("host").expect("it comes with the program");
    let text = |text: String| Value::Text(text);
    let mut set = |node: &str, option: &str, value| graph.set(node, option, value).expect("the graph has the node");
    set("ip", "address", text(format!("{address}/24")));
    set("ip", "gateway", text(gateway.to_string()));
    // TIME-WAIT ends soon, so that what is left at the end is what should not be.
    set("tcp", "msl", Value::Duration(Duration::from_millis(50)));
    // Whoever sees the handshakes of others can repeat their ends, and where a full backlog has made cookies of them that
    // opens connections of nobody. The server asks after its silent clients, whose hosts then say that they know nothing.
    set("tcp", "keep_alive_interval", Value::Duration(Duration::from_millis(500)));
    if let Some(link) = link {
        set("link0", "address", text(link.to_string()));
    }
    Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).limits(LIMITS).build()
}

fn shake(span: Duration, seed: u64) -> Result<Report, Box<dyn std::error::Error>> {
    let (left, right) = WireDevice::pair();
    let station = Station::new(Rubbish::new(seed, AIM));
    let client = host(CLIENT, AIM.to.0, left.without_offloads(), None)?;
    let device = Shaken::new(right.without_offloads(), Arc::clone(&station));
    let server = host(AIM.to.0, CLIENT, device, Some(AIM.to.1))?;
    let to = SocketAddr::from((AIM.to.0, AIM.port.0));
    let listener = TcpListener::bind_with_backlog(&server, to, BACKLOG)?;
    let serving = thread::spawn(move || conversations::echo(&listener));

    let stop = AtomicBool::new(false);
    let (before, during, lasting, visits) = thread::scope(|scope| {
        let talks: Vec<_> = (0..LASTING)
            .map(|number| {
                scope.spawn({
                    let (client, stop) = (&client, &stop);
                    move || conversations::lasting(client, to, seed ^ number, stop)
                })
            })
            .collect();
        let visits = scope.spawn(|| conversations::visits(&client, to, seed, &stop));
        thread::sleep(WARM_UP);
        let before = Held::of(&server);
        station.set_on(true);
        thread::sleep(span);
        let during = Held::of(&server);
        station.set_on(false);
        stop.store(true, Ordering::Release);
        let failed = || Talk { failures: vec!["a conversation panicked".into()], ..Talk::default() };
        let lasting: Vec<Talk> = talks.into_iter().map(|talk| talk.join().unwrap_or_else(|_| failed())).collect();
        (before, during, lasting, visits.join().unwrap_or_else(|_| failed()))
    });
    client.drain(DRAIN);
    server.drain(DRAIN);
    let after = Held::of(&server);
    server.stop();
    client.stop();
    let _ = serving.join();
    Ok(Report { span, seed, before, during, after, sent: station.counts(), lasting, visits })
}

impl Report {
    /// What should not be; empty when nothing was disturbed.
    fn wrong(&self) -> Vec<String> {
        let talks = || self.lasting.iter().chain([&self.visits]);
        let mut wrong: Vec<String> = talks().flat_map(|talk| talk.failures.clone()).collect();
        for (got, sent) in self.lasting.iter().filter_map(|talk| talk.digests.as_ref()) {
            if got != sent {
                wrong.push(format!("expected what was sent, of digest {sent}, got {got}"));
            }
        }
        if self.visits.ended == 0 || talks().any(|talk| talk.bytes == 0) {
            wrong.push("expected every conversation to get on, got some that did not".into());
        }
        if self.after.paths > 0 {
            wrong.push(format!("expected no path at the end, got {}", self.after.paths));
        }
        if self.after.buffer_bytes() > FRAGMENTS_HELD_MAX {
            let got = self.after.buffer_bytes();
            wrong.push(format!("expected at most {FRAGMENTS_HELD_MAX} bytes of buffers held at the end, got {got}"));
        }
        if let Some(growth) = self.growth().filter(|growth| *growth > GROWTH_MAX) {
            wrong.push(format!("expected the process to grow by at most {GROWTH_MAX} bytes, got {growth}"));
        }
        wrong
    }

    fn growth(&self) -> Option<u64> {
        let most = self.during.resident?.max(self.after.resident?);
        Some(most.saturating_sub(self.before.resident?))
    }

    fn bytes(&self) -> u64 {
        self.lasting.iter().chain([&self.visits]).map(|talk| talk.bytes).sum()
    }

    fn text(&self) -> String {
        let Counts { random, made, replayed, changed } = self.sent;
        let per_second = self.sent.total() / self.span.as_secs().max(1);
        let mebibytes = |held: &Held| held.resident.map_or("?".into(), |bytes| format!("{}", bytes >> 20));
        let mut text = format!(
            "rubbish     {} frames in {} s, {per_second} a second (seed {}): {random} random, {made} made, {replayed} replayed, {changed} changed\n\
             streams     {} connections and {} visits, {} MiB there and back, {}\n\
             memory      {} MiB before, {} MiB during, {} MiB after\n\
             buffers     {} KiB before, {} KiB during, {} KiB after\n\
             paths       {} before, {} during, {} after\n\
             drops\n",
            self.sent.total(),
            self.span.as_secs(),
            self.seed,
            self.lasting.len(),
            self.visits.ended,
            self.bytes() >> 20,
            if self.wrong().is_empty() { "every byte right" } else { "not all right" },
            mebibytes(&self.before),
            mebibytes(&self.during),
            mebibytes(&self.after),
            self.before.buffer_bytes() >> 10,
            self.during.buffer_bytes() >> 10,
            self.after.buffer_bytes() >> 10,
            self.before.paths,
            self.during.paths,
            self.after.paths,
        );
        for (protocol, why, count) in self.after.reading.drops.iter() {
            text.push_str(&format!("{count:>12}  {protocol}: {why}\n"));
        }
        text
    }

    fn json(&self) -> Json {
        let held = |held: &Held| {
            json!({
                "resident_bytes": held.resident,
                "buffer_bytes": held.buffer_bytes(),
                "paths": held.paths,
                "frames_in": held.reading.frames_in,
                "frames_out": held.reading.frames_out,
            })
        };
        let drop = |(protocol, why, count)| json!({ "protocol": protocol, "why": why, "count": count });
        let Counts { random, made, replayed, changed } = self.sent;
        json!({
            "seconds": self.span.as_secs(),
            "seed": self.seed,
            "frames": { "random": random, "made": made, "replayed": replayed, "changed": changed },
            "connections": self.lasting.len(),
            "visits": self.visits.ended,
            "bytes": self.bytes(),
            "digests": self.lasting.iter().filter_map(|talk| talk.digests.as_ref().map(|(got, _)| got)).collect::<Vec<_>>(),
            "before": held(&self.before),
            "during": held(&self.during),
            "after": held(&self.after),
            "drops": self.after.reading.drops.iter().map(drop).collect::<Vec<_>>(),
            "wrong": self.wrong(),
        })
    }
}

/// Bytes of this process in memory, as the kernel counts them (proc(5), `VmRSS`, in kB of 1024 bytes).
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(resident: u64, paths: usize, buffers_held: (usize, usize)) -> Held {
        let drops = Default::default();
        let reading = Reading { frames_in: 0, frames_out: 0, opened: 0, gone: 0, drops, buffers_held };
        Held { resident: Some(resident), reading, paths }
    }

    fn talk(digests: Option<(&str, &str)>) -> Talk {
        let digests = digests.map(|(got, sent)| (got.to_owned(), sent.to_owned()));
        Talk { ended: 1, bytes: 1, failures: Vec::new(), digests }
    }

    fn undisturbed() -> Report {
        Report {
            span: Duration::from_secs(1),
            seed: 1,
            before: held(1 << 20, 5, (3, 0)),
            during: held(2 << 20, 5, (300, 1)),
            after: held(2 << 20, 0, (60, 0)),
            sent: Counts::default(),
            lasting: vec![talk(Some(("d", "d")))],
            visits: talk(None),
        }
    }

    #[test]
    fn whatever_is_disturbed_is_said() {
        assert_eq!(undisturbed().wrong(), [""; 0]);
        let disturb: [fn(&mut Report); 7] = [
            |report| report.lasting[0].digests = Some(("d".into(), "e".into())),
            |report| report.lasting[0].failures.push("reset".into()),
            |report| report.lasting[0].bytes = 0,
            |report| report.visits.ended = 0,
            |report| report.after.paths = 1,
            |report| report.after.reading.buffers_held = (0, 100),
            |report| report.during.resident = Some(1 << 30),
        ];
        for (number, disturb) in disturb.iter().enumerate() {
            let mut report = undisturbed();
            disturb(&mut report);
            assert_eq!(report.wrong().len(), 1, "disturbance {number}");
            assert_eq!(report.json()["wrong"].as_array().map(Vec::len), Some(1));
        }
    }
}
