//! Running a plan: hosts built from their graphs, cables joined, traffic driven, cables pulled in time, and then the checks.

use super::judge::judge;
use super::report::{Checked, Dropped, Drove, HostReport, LinkReport, Report};
use super::{Check, Echoed, Ending, Kind, Plan, TrafficWish};
use crate::host::Host;
use crate::sim::{HostId, Outcome, Sim, Watch};
use crate::traffic::{Progress, Traffic, datagrams, ping, transfer};
use crate::{Datagrams, Ping, Transfer};
use std::time::Duration;
use xylem_core::{Instant, Random};
use xylem_graph::build::build;
use xylem_graph::instance::Limits;
use xylem_wire::Port;

/// What the simulation's seed is drawn for; [`Sim::join`] takes small numbers for its links.
const HOSTS: u64 = 1 << 32;
const TRAFFIC: u64 = 2 << 32;

impl Plan<'_> {
    /// Runs it with `seed`, and reports.
    pub fn run(&self, seed: u64) -> Report {
        self.run_watched(seed, None)
    }

    /// As [`run`](Plan::run); `watch` sees every frame that leaves or reaches a host.
    pub fn run_watched(&self, seed: u64, watch: Option<Watch>) -> Report {
        let mut run = Run { plan: self, sim: Sim::new(seed), driven: Vec::new() };
        if let Some(watch) = watch {
            run.sim.watch(watch);
        }
        run.set_up();
        let outcome = run.go();
        let done_at = run.sim.now();
        // Judged now: what is not done in time is not done, though it goes on while the rest is waited for.
        let traffic = run.drove();
        if let Some(quiet) = self.quiet() {
            run.sim.pass(quiet);
        }
        let mut report = run.report(seed, outcome, done_at, traffic);
        report.checks = judge(self, &mut run.sim, &report);
        if let Some(golden) = self.scenario.golden.as_ref().filter(|_| seed == self.scenario.seed) {
            let right = **golden == report.hash;
            let said =
                if right { "as committed".into() } else { format!("{}, committed is {}", report.hash, **golden) };
            report.checks.push(Checked { what: "golden hash".into(), right, said });
        }
        report
    }

    /// How long all is closed before it must be quiet.
    fn quiet(&self) -> Option<Duration> {
        let quiet = self.scenario.checks.iter().filter_map(|check| match check.value {
            Check::Quiet(after) => Some(after),
            _ => None,
        });
        quiet.max()
    }
}

struct Run<'p> {
    plan: &'p Plan<'p>,
    sim: Sim,
    /// The number in the scenario of each traffic of the simulation.
    driven: Vec<usize>,
}

impl Run<'_> {
    fn set_up(&mut self) {
        let plan = self.plan;
        for (number, (wish, host)) in (0..).zip(plan.scenario.hosts.iter().zip(&plan.hosts)) {
            let seed = self.sim.seed_for(HOSTS + number);
            let instance = build(&host.graph, plan.catalogue, host.devices.clone(), Limits::default(), seed);
            let instance = instance.expect("the plan has built it before, and no option depends on the seed");
            self.sim.add(Host::new(wish.name.as_str(), instance));
        }
        for (cable, [one, other]) in plan.scenario.cables.iter().zip(&plan.plugs) {
            self.sim.join(*one, *other, &cable.model).expect("the model was checked when it was read");
        }
        for (number, wish) in (0..).zip(&plan.scenario.traffic) {
            let mut random = Random::seeded(self.sim.seed_for(TRAFFIC + number));
            match &wish.kind {
                Kind::Transfer { .. } => {
                    for index in 0..wish.count {
                        let transfer = self.transfer(wish, index, &mut random);
                        self.drive(number as usize, transfer);
                    }
                }
                Kind::Datagrams(echoed) => {
                    let datagrams = self.datagrams(wish, echoed, &mut random);
                    self.drive(number as usize, datagrams);
                }
                Kind::Ping(echoed) => {
                    let ping = self.ping(wish, echoed, &mut random);
                    self.drive(number as usize, ping);
                }
            }
        }
    }

    fn drive(&mut self, number: usize, traffic: impl Traffic + 'static) {
        self.driven.push(number);
        self.sim.drive(traffic);
    }

    fn address(&self, wish: &TrafficWish) -> std::net::IpAddr {
        wish.address.or(self.plan.hosts[wish.server].address).expect("the plan has seen to an address")
    }

    /// Connection `index` of several alike, each to a port of its own.
    fn transfer(&self, wish: &TrafficWish, index: u64, random: &mut Random) -> Transfer {
        let Kind::Transfer { there, back, ending } = wish.kind else { unreachable!("the caller has looked") };
        Transfer::new(transfer::Wish {
            client: HostId(wish.client),
            server: HostId(wish.server),
            protocol: wish.protocol.to_string(),
            address: self.address(wish),
            // The last port is at most 65535 by the scenario's check, and there are at most 10 000 conversations.
            port: Port(wish.port + index as u16),
            there: there.draw(random),
            back: back.draw(random),
            start: wish.start + wish.every * index as u32,
            seed: random.next(),
            may_fail: ending != Ending::Right,
        })
    }

    fn datagrams(&self, wish: &TrafficWish, echoed: &Echoed, random: &mut Random) -> Datagrams {
        Datagrams::new(datagrams::Wish {
            client: HostId(wish.client),
            server: HostId(wish.server),
            protocol: wish.protocol.to_string(),
            address: self.address(wish),
            port: Port(wish.port),
            count: wish.count,
            size: echoed.size.draw(random) as usize,
            interval: wish.every,
            start: wish.start,
            patience: echoed.patience,
            seed: random.next(),
            returned_min: echoed.returned.unwrap_or(wish.count),
        })
    }

    fn ping(&self, wish: &TrafficWish, echoed: &Echoed, random: &mut Random) -> Ping {
        Ping::new(ping::Wish {
            client: HostId(wish.client),
            protocol: wish.protocol.to_string(),
            address: self.address(wish),
            count: wish.count,
            size: echoed.size.draw(random) as usize,
            interval: wish.every,
            start: wish.start,
            patience: echoed.patience,
            seed: random.next(),
            returned_min: echoed.returned.unwrap_or(wish.count),
        })
    }

    /// From the start to the end, pulling cables on the way.
    fn go(&mut self) -> Outcome {
        let scenario = &self.plan.scenario;
        let pulled = scenario.pulls.iter().map(|pull| (pull.at, pull.cable, true));
        let put_back = scenario.pulls.iter().filter_map(|pull| pull.back.map(|back| (back, pull.cable, false)));
        let mut changes: Vec<(Duration, usize, bool)> = pulled.chain(put_back).collect();
        changes.sort();
        for (at, cable, down) in changes.into_iter().filter(|(at, ..)| *at <= scenario.time) {
            if self.sim.run(self.left(at)) == Outcome::Done {
                return Outcome::Done;
            }
            // A run may end early because nothing was going on; the cable is pulled at its time all the same.
            self.sim.pass(self.left(at));
            self.sim.pull(cable, down);
        }
        self.sim.run(self.left(scenario.time))
    }

    /// The time from now to `at`.
    fn left(&self, at: Duration) -> Duration {
        (Instant::ZERO + at).since(self.sim.now())
    }

    /// What each conversation has come to.
    fn drove(&self) -> Vec<Drove> {
        let scenario = &self.plan.scenario;
        let drove = self.sim.traffic().zip(&self.driven).map(|(traffic, number)| {
            let (outline, wish) = (traffic.outline(), &scenario.traffic[*number]);
            let failing = matches!(wish.kind, Kind::Transfer { ending: Ending::Fails, .. });
            Drove {
                name: wish.name.to_string(),
                what: outline.what,
                how: outline.how,
                right: traffic.progress() == Progress::Right && (outline.failed || !failing),
                bytes: outline.bytes,
                done_at_ns: outline.done_at.map(Instant::as_nanos),
            }
        });
        drove.collect()
    }

    fn report(&self, seed: u64, outcome: Outcome, done_at: Instant, traffic: Vec<Drove>) -> Report {
        let scenario = &self.plan.scenario;
        let hosts = self.sim.hosts().iter().map(host_report);
        let cables = self.sim.link_counters().zip(&scenario.cables).map(|((ends, counters), cable)| {
            let direction = |from: usize| LinkReport {
                name: cable.name.to_string(),
                from: scenario.hosts[ends[from].0.0].name.to_string(),
                to: scenario.hosts[ends[1 - from].0.0].name.to_string(),
                sent: counters[from].sent,
                delivered: counters[from].delivered,
                duplicated: counters[from].duplicated,
                reordered: counters[from].reordered,
                corrupted: counters[from].corrupted,
                lost: counters[from].lost,
                down: counters[from].down,
                too_big: counters[from].too_big,
                queue_full: counters[from].queue_full + counters[from].in_flight_full,
            };
            [direction(0), direction(1)]
        });
        Report {
            seed,
            outcome: match outcome {
                Outcome::Done => "done",
                Outcome::Stuck => "stuck",
                Outcome::TimeUp => "time up",
            },
            done_at_ns: done_at.as_nanos(),
            events: self.sim.hash().events(),
            hash: self.sim.hash().to_string(),
            traffic,
            links: cables.flatten().collect(),
            hosts: hosts.collect(),
            checks: Vec::new(),
        }
    }
}

fn host_report(host: &Host) -> HostReport {
    let reading = host.instance.reading();
    let dropped =
        |(protocol, why, count): (&str, &str, u64)| Dropped { protocol: protocol.into(), why: why.into(), count };
    HostReport {
        name: host.name.clone(),
        frames_in: reading.frames_in,
        frames_out: reading.frames_out,
        paths_opened: reading.opened,
        paths_left: (host.instance.path_count() - host.instance.kept_path_count()) as u64,
        frames_without_buffer: host.missed(),
        drops: reading.drops.iter().map(dropped).collect(),
    }
}
