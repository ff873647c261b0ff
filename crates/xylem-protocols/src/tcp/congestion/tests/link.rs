//! A model of one narrow place in a network: flows with unlimited data send segments through a queue with a rate, a buffer
//! and a delay, which loses some by chance. Losses are found when three segments sent later have arrived, and repaired by
//! sending again, which counts as delivered once: selective acknowledgments without their bytes. No bytes, no headers, no
//! windows of the peer, so that what is measured is the algorithm.

use super::super::super::pacing::Pacing;
use super::super::super::rate::{Rate, Stamp};
use super::super::{Algorithm, CongestionControl, Loss, Progress, Sent, Start, WINDOW_MAX};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use xylem_core::{Duration, Instant, Random};

/// Payload bytes of a segment.
pub const SEGMENT: u32 = 1448;
/// Segments sent later whose arrival means that one is lost.
const REORDERING: u64 = 3;

/// What a link is like.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Bytes a second.
    pub rate: u64,
    /// There and back, without the queue.
    pub round_trip: Duration,
    /// Bytes that wait.
    pub buffer: u64,
    /// Of ten thousand segments, so many are lost by chance.
    pub loss: u32,
    /// Segments for which there is one acknowledgment.
    pub acknowledged_together: usize,
}

impl Link {
    /// 100 Mb/s and 20 ms, with a buffer of `buffer_percent` of what is on the way (250 KB).
    pub fn usual(buffer_percent: u64, loss: u32) -> Link {
        let round_trip = Duration::from_millis(20);
        Link { rate: 12_500_000, round_trip, buffer: 250_000 * buffer_percent / 100, loss, acknowledged_together: 2 }
    }
}

/// A flow, and what was measured of it.
#[derive(Debug)]
pub struct Flow {
    pub control: Box<dyn CongestionControl>,
    rate: Rate,
    pacing: Pacing,
    /// What is out, in the order of sending.
    out: VecDeque<Out>,
    in_flight: u32,
    /// A recovery lasts until what was sent before this is done with.
    recovering: Option<u64>,
    round_trip_min: Option<Duration>,
    smoothed: Option<Duration>,
    arrived: Vec<u64>,
    timer_is_planned: bool,
    wakes_at: Option<Instant>,
    starts: Instant,
    /// Bytes delivered.
    pub delivered: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Segments lost.
    pub lost: u64,
    /// The sum of all round trips in microseconds, and how many.
    pub round_trips: (u64, u64),
    /// The largest window.
    pub window_max: u32,
}

#[derive(Debug)]
struct Out {
    number: u64,
    sent_at: Instant,
    stamp: Stamp,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A segment's acknowledgment has come back.
    Arrives { flow: usize, number: u64 },
    /// A flow may send.
    Wakes { flow: usize },
    /// Its retransmission timer is due, if it still is.
    Times { flow: usize },
}

/// The retransmission timeout.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Runs `flows` (each by its algorithm, from its time on) over `link` until `end`.
pub fn run(link: &Link, flows: &[(&'static Algorithm, Instant)], end: Instant, seed: u64) -> Vec<Flow> {
    let mut network = Network {
        link: *link,
        free_at: Instant::ZERO,
        random: Random::seeded(seed),
        events: BinaryHeap::new(),
        next: 0,
        flows: flows
            .iter()
            .enumerate()
            .map(|(index, (algorithm, at))| Flow::new(algorithm, *at, index as u32))
            .collect(),
    };
    for (flow, (_, at)) in flows.iter().enumerate() {
        network.plan(*at, What::Wakes { flow });
    }
    while let Some(Reverse((at, _, what))) = network.events.pop() {
        if at > end {
            break;
        }
        match what {
            What::Arrives { flow, number } => network.arrives(flow, number, at),
            What::Wakes { flow } => network.send(flow, at),
            What::Times { flow } => network.times(flow, at),
        }
    }
    network.flows
}

struct Network {
    link: Link,
    /// When what waits in the queue has left it.
    free_at: Instant,
    random: Random,
    events: BinaryHeap<Reverse<(Instant, u64, What)>>,
    next: u64,
    flows: Vec<Flow>,
}

impl Flow {
    fn new(algorithm: &'static Algorithm, starts: Instant, seed: u32) -> Flow {
        Flow {
            control: (algorithm.begin)(&Start::new(SEGMENT, 10, starts, 7 + seed)),
            rate: Rate::default(),
            pacing: Pacing::default(),
            out: VecDeque::new(),
            in_flight: 0,
            recovering: None,
            round_trip_min: None,
            smoothed: None,
            arrived: Vec::new(),
            timer_is_planned: false,
            wakes_at: None,
            starts,
            delivered: 0,
            timeouts: 0,
            lost: 0,
            round_trips: (0, 0),
            window_max: 0,
        }
    }

    /// Bytes a second from its start until `end`.
    pub fn goodput(&self, end: Instant) -> u64 {
        (u128::from(self.delivered) * 1_000_000_000 / end.since(self.starts).as_nanos().max(1)) as u64
    }

    /// The mean round trip in microseconds.
    pub fn round_trip(&self) -> u64 {
        self.round_trips.0 / self.round_trips.1.max(1)
    }
}

impl Network {
    fn plan(&mut self, at: Instant, what: What) {
        self.events.push(Reverse((at, self.next, what)));
        self.next += 1;
    }

    /// Sends what the window and the pace allow.
    fn send(&mut self, index: usize, now: Instant) {
        self.fill(index, now);
        self.plan_timer(index);
    }

    fn fill(&mut self, index: usize, now: Instant) {
        loop {
            let flow = &mut self.flows[index];
            let window = flow.control.window();
            assert!((SEGMENT..=WINDOW_MAX).contains(&window), "the window's law: {window}");
            flow.window_max = flow.window_max.max(window);
            if flow.in_flight + SEGMENT > window {
                return;
            }
            if let Some(rate) = flow.control.pacing_rate() {
                if flow.pacing.allows(now, rate, SEGMENT) < SEGMENT {
                    let at = flow.pacing.next();
                    if flow.wakes_at != Some(at) {
                        flow.wakes_at = Some(at);
                        self.plan(at, What::Wakes { flow: index });
                    }
                    return;
                }
                flow.pacing.sent(now, rate, SEGMENT);
            }
            let in_flight_before = flow.in_flight;
            let sent = Sent { now, bytes: SEGMENT, in_flight_before, again: false, application_limited: false };
            flow.control.sent(&sent);
            let stamp = flow.rate.sent(now, SEGMENT, in_flight_before);
            let number = self.next;
            flow.out.push_back(Out { number, sent_at: now, stamp });
            flow.in_flight += SEGMENT;
            self.carry(index, number, now);
        }
    }

    /// Through the queue and back, or not.
    fn carry(&mut self, flow: usize, number: u64, now: Instant) {
        self.next += 1;
        let waits = u128::from(self.link.rate) * self.free_at.since(now).as_nanos() / 1_000_000_000;
        let is_lost = self.random.below(10_000) < u64::from(self.link.loss);
        // Others take a few places now and then: without any chance, of two flows always the same one finds it full.
        let others = self.random.below(8) * u64::from(SEGMENT);
        let buffer = self.link.buffer.saturating_sub(others).max(2 * u64::from(SEGMENT));
        if waits + u128::from(SEGMENT) > u128::from(buffer) || is_lost {
            return;
        }
        let takes = Duration::from_nanos(u64::from(SEGMENT) * 1_000_000_000 / self.link.rate);
        self.free_at = self.free_at.max(now) + takes;
        self.plan(self.free_at + self.link.round_trip, What::Arrives { flow, number });
    }

    /// One segment has arrived; every so many an acknowledgment says so.
    fn arrives(&mut self, index: usize, number: u64, now: Instant) {
        let together = self.link.acknowledged_together;
        let flow = &mut self.flows[index];
        flow.arrived.push(number);
        if flow.arrived.len() < together && flow.out.len() > flow.arrived.len() {
            return;
        }
        let in_flight_before = flow.in_flight;
        let arrived = std::mem::take(&mut flow.arrived);
        let (mut round_trip, mut delivered) = (None, 0);
        for number in &arrived {
            let Some(place) = flow.out.iter().position(|out| out.number == *number) else { continue };
            let out = flow.out.remove(place).expect("it was found there");
            flow.in_flight -= SEGMENT;
            flow.delivered += u64::from(SEGMENT);
            delivered += SEGMENT;
            flow.rate.delivered(&out.stamp, out.sent_at, SEGMENT, now);
            round_trip = Some(now.since(out.sent_at));
        }
        flow.measure(round_trip);
        flow.find_losses(&arrived, delivered, in_flight_before, round_trip, now);
        if flow.out.is_empty() {
            flow.recovering = None;
        }
        self.send(index, now);
    }

    /// What is older than the timeout says that all is lost.
    fn times(&mut self, index: usize, now: Instant) {
        let flow = &mut self.flows[index];
        flow.timer_is_planned = false;
        match flow.out.front() {
            Some(oldest) if now.since(oldest.sent_at) >= TIMEOUT => {
                let in_flight = flow.in_flight;
                flow.control.timed_out(&Loss { now, in_flight, bytes: in_flight }, false);
                flow.rate.lost(in_flight);
                flow.lost += flow.out.len() as u64;
                flow.timeouts += 1;
                flow.out.clear();
                (flow.in_flight, flow.recovering) = (0, None);
                self.send(index, now);
            }
            _ => self.plan_timer(index),
        }
    }

    fn plan_timer(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let Some(oldest) = flow.out.front() else { return };
        if !flow.timer_is_planned {
            flow.timer_is_planned = true;
            let at = oldest.sent_at + TIMEOUT;
            self.plan(at, What::Times { flow: index });
        }
    }
}

impl Flow {
    fn measure(&mut self, round_trip: Option<Duration>) {
        let Some(round_trip) = round_trip else { return };
        self.round_trip_min = Some(self.round_trip_min.map_or(round_trip, |least| least.min(round_trip)));
        self.smoothed = Some(self.smoothed.map_or(round_trip, |smoothed| (smoothed * 7 + round_trip) / 8));
        self.round_trips = (self.round_trips.0 + round_trip.as_micros() as u64, self.round_trips.1 + 1);
    }

    /// Tells the algorithm what an acknowledgment says.
    fn find_losses(
        &mut self,
        arrived: &[u64],
        delivered: u32,
        in_flight_before: u32,
        round_trip: Option<Duration>,
        now: Instant,
    ) {
        let newest = arrived.iter().copied().max().unwrap_or(0);
        let later = self.out.iter().filter(|out| out.number < newest).count();
        let mut lost = 0;
        // The front is lost if enough of what was sent behind it has come: numbers are given to all flows, so that it is
        // the places that count.
        let first_after = self.out.iter().position(|out| out.number > newest).unwrap_or(self.out.len());
        for _ in 0..later.min(first_after) {
            let Some(front) = self.out.front() else { break };
            if front.number + REORDERING > newest {
                break;
            }
            let out = self.out.pop_front().expect("it is there");
            self.in_flight -= SEGMENT;
            self.lost += 1;
            lost += SEGMENT;
            self.rate.lost(SEGMENT);
            if self.recovering.is_none_or(|until| out.number > until) {
                self.recovering = Some(self.out.back().map_or(newest, |last| last.number).max(newest));
                self.control.lost(&Loss { now, in_flight: in_flight_before, bytes: SEGMENT });
            }
        }
        let in_recovery = self.recovering.is_some();
        let (rate, round_start) = self.rate.sample(self.round_trip_min);
        let progress = Progress {
            delivered,
            lost,
            in_flight: self.in_flight,
            round_trip,
            smoothed: self.smoothed,
            round_trip_min: self.round_trip_min,
            rate,
            round_start,
            in_recovery,
            ..Progress::in_order(now, delivered, in_flight_before)
        };
        self.control.acknowledged(&progress);
        if self.recovering.is_some_and(|until| newest > until) {
            self.recovering = None;
            self.control.recovered(self.control.threshold().min(self.control.window()), now);
        }
    }
}
