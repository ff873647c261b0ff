//! What a wire says: what runs when it is ready, how far it is, and at the end what it did, for people and for programs.
//! A run in which the wire itself lost frames or lacked processor time is marked: its figures are the machine's.

use serde_json::{Value as Json, json};
use xylem_graph::link::LinkModel;
use xylem_host::carrier::{Carrier, WayCounters};

/// The share of a processor, in thousandths, beyond which a wire may be what limits its hosts.
const SHARE_MAX: u64 = 800;

/// The share of the time, in thousandths, that it may have waited for a processor.
const WAITED_MAX: u128 = 50;

/// What is known before the end.
pub struct Report {
    /// The interfaces.
    pub ends: [String; 2],
    /// The links.
    pub models: [LinkModel; 2],
    /// The seed.
    pub seed: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Report {
    fn way(&self, way: usize) -> (&str, &str) {
        (&self.ends[way], &self.ends[1 - way])
    }

    /// What runs, for people.
    pub fn ready(&self, spin: bool) -> String {
        let [there, back] = &self.models;
        let [left, right] = &self.ends;
        let both = if there == back { String::new() } else { format!(", back {back}") };
        let idle = if spin { "spins before frames are due" } else { "sleeps until frames are due" };
        let mut text = format!("ready: {left} and {right} joined: {there}{both} (seed {}, {idle})\n", self.seed);
        self.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
        text
    }

    /// The same for programs.
    pub fn ready_json(&self, spin: bool) -> String {
        let ready = json!({
            "ready": true,
            "left": self.ends[0],
            "right": self.ends[1],
            "links": self.models.each_ref().map(LinkModel::to_string),
            "seed": self.seed,
            "spin": spin,
            "notes": self.notes,
        });
        format!("{ready}\n")
    }

    /// How far it is, in a line.
    pub fn progress(&self, carrier: &Carrier) -> String {
        let counters = carrier.counters();
        let seconds = carrier.cost().wall.as_secs();
        let way = |way: usize| {
            let (from, to) = self.way(way);
            let it = &counters[way];
            format!("{from} > {to}: {} in, {} out", it.link.sent, it.link.delivered)
        };
        format!("{seconds} s  {}  {}  {} % of a processor", way(0), way(1), carrier.cost().per_mille() / 10)
    }

    /// Why the figures are not the links' own; empty if they are.
    fn doubts(carrier: &Carrier) -> Vec<String> {
        let mut doubts = Vec::new();
        let share = carrier.cost().per_mille();
        if share > SHARE_MAX {
            doubts.push(format!("the wire needed {} % of a processor", share / 10));
        }
        let cost = carrier.cost();
        let waited = cost.waited.as_nanos() * 1000 / cost.wall.as_nanos().max(1);
        if waited > WAITED_MAX {
            doubts.push(format!("others had the wire's processor for {} % of the time", waited / 10));
        }
        for it in carrier.counters() {
            for (count, what) in
                [(it.tail_drops, "came faster than it took them"), (it.refused, "were not taken by the interface")]
            {
                if count > 0 {
                    doubts.push(format!("{count} frames {what}"));
                }
            }
        }
        doubts
    }

    /// What happened, for people.
    pub fn text(&self, carrier: &Carrier) -> String {
        let (counters, in_flight, cost) = (carrier.counters(), carrier.in_flight(), carrier.cost());
        let seconds = cost.wall.as_secs_f64().max(1e-9);
        let mut text = String::new();
        for (way, it) in counters.iter().enumerate() {
            let (from, to) = self.way(way);
            let WayCounters { link, lateness, .. } = it;
            text.push_str(&format!(
                "{from} > {to}: {} frames in ({:.1} Mb/s), {} out ({:.1} Mb/s), {} on the way\n  \
                 lost {}, duplicated {}, reordered {}, corrupted {}, queue full {}, too big {}, no room {}; \
                 {} messages cut, {} unreadable, {} tail drops, {} refused\n  \
                 late: half at most {:?}, 99 % at most {:?}, all at most {:?}\n",
                link.sent,
                it.bytes_in as f64 * 8.0 / seconds / 1e6,
                link.delivered,
                it.bytes_out as f64 * 8.0 / seconds / 1e6,
                in_flight[way],
                link.lost,
                link.duplicated,
                link.reordered,
                link.corrupted,
                link.queue_full,
                link.too_big,
                link.in_flight_full,
                it.cut,
                it.unreadable,
                it.tail_drops,
                it.refused,
                lateness.within(500),
                lateness.within(990),
                lateness.max(),
            ));
        }
        text.push_str(&format!(
            "carried for {seconds:.1} s with {:.1} % of a processor ({:.1} % more spun)\n",
            cost.per_mille() as f64 / 10.0,
            cost.spun.as_secs_f64() / seconds * 100.0
        ));
        for doubt in Report::doubts(carrier) {
            text.push_str(&format!("doubtful: {doubt}: what the hosts measured may be this machine's limit\n"));
        }
        text
    }

    /// The same for programs: times in nanoseconds.
    pub fn json(&self, carrier: &Carrier) -> String {
        let (counters, in_flight, cost) = (carrier.counters(), carrier.in_flight(), carrier.cost());
        let ways: Vec<Json> = [0, 1].map(|way| self.way_json(way, &counters[way], in_flight[way])).into();
        let result = json!({
            "ways": ways,
            "nanoseconds": cost.wall.as_nanos() as u64,
            "processor_nanoseconds": cost.processor.as_nanos() as u64,
            "spun_nanoseconds": cost.spun.as_nanos() as u64,
            "waited_nanoseconds": cost.waited.as_nanos() as u64,
            "processor_share": cost.per_mille() as f64 / 1000.0,
            "doubts": Report::doubts(carrier),
        });
        format!("{result}\n")
    }

    fn way_json(&self, way: usize, it: &WayCounters, in_flight: usize) -> Json {
        let (from, to) = self.way(way);
        let WayCounters { link, lateness, .. } = it;
        json!({
            "from": from,
            "to": to,
            "link": self.models[way].to_string(),
            "frames_in": link.sent,
            "bytes_in": it.bytes_in,
            "frames_out": link.delivered,
            "bytes_out": it.bytes_out,
            "in_flight": in_flight,
            "lost": link.lost,
            "duplicated": link.duplicated,
            "reordered": link.reordered,
            "corrupted": link.corrupted,
            "queue_full": link.queue_full,
            "too_big": link.too_big,
            "no_room": link.in_flight_full,
            "cut": it.cut,
            "unreadable": it.unreadable,
            "tail_drops": it.tail_drops,
            "refused": it.refused,
            "late_nanoseconds": {
                "half": lateness.within(500).as_nanos() as u64,
                "99_percent": lateness.within(990).as_nanos() as u64,
                "all": lateness.max().as_nanos() as u64,
            },
        })
    }
}
