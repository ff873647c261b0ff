//! Law 8 on toys: whatever the link does short of never delivering, a stream delivers exactly what was sent, in order,
//! or reports an error; a call is carried out at most once; and after the close nothing is left. The same checks are
//! shown to fail when a session on the way does what no session may.

mod toys;

use std::sync::Arc;
use toys::end::{Door, End, Said};
use toys::fault::Fault;
use toys::graph;
use toys::pair::{Badness, Pair, pooled};
use toys::talk::{Talker, judge, random_records};
use xylem_core::{Control, Duration, EnableWish, Event, Instant, Message, PathId, Random};
use xylem_graph::instance::{Instance, Work};
use xylem_protocols::vdrop::VdropConfig;

/// Longer than any deadline of a toy.
const ALL_DEADLINES: Duration = Duration::from_secs(300);
/// Longer than any honest conversation here takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// A VDROP of which each seed has another, `better` times better than the worst.
fn vdrop_of(random: &mut Random, better: u32) -> VdropConfig {
    let mut rate = |most: u64| random.below(most) as u32 / better;
    VdropConfig {
        drop_per_million: rate(60_000),
        duplicate_per_million: rate(60_000),
        reorder_per_million: rate(60_000),
        corrupt_per_million: rate(30_000),
        delay_max: Duration::from_millis(u64::from(rate(60))),
        both_ways: rate(1_000) & 1 == 1,
        upper: 0,
    }
}

fn wish(participants: xylem_core::Participants) -> EnableWish {
    EnableWish { participants, wild: false, backlog: 8, shared: false }
}

fn nothing_is_left(pair: &mut Pair) -> Result<(), String> {
    pair.settle(ALL_DEADLINES);
    for (index, host) in pair.hosts.iter().enumerate() {
        let left = host.leftovers();
        if left != (0, 0, (0, 0)) {
            return Err(format!("host {index} still has (paths, deadlines, buffers) {left:?}"));
        }
    }
    Ok(())
}

/// One conversation in records, each way, judged by the law. `Ok(true)` if it went without an error.
fn conversation(seed: u64, badness: Option<Badness>, fault: Fault) -> Result<bool, String> {
    let mut random = Random::seeded(seed);
    let bad = if badness.is_some() { VdropConfig::default() } else { vdrop_of(&mut random, 1) };
    let badness = badness.unwrap_or_else(|| Badness::of(&mut random, 1));
    let frame_max = 80 + random.below(1420) as usize;
    let client = graph::records(1, bad, Fault::None, frame_max, random.next());
    let server = graph::records(2, bad, fault, frame_max, random.next());
    let texts = [random_records(&mut random, 12, 6000), random_records(&mut random, 12, 6000)];
    let mut pair = Pair::new([client, server], badness, random.child());
    let door = Arc::new(Door::default());
    let server = &pair.hosts[1].instance;
    let listening = server.enable(graph::TOP, wish(graph::stream_server()), door.clone()).expect("nobody listens yet");
    let end = Arc::new(End::default());
    let host = &mut pair.hosts[0];
    let path = host
        .instance
        .open(&host.port, &mut host.shepherd, graph::TOP, graph::stream_to_server(), end.clone())
        .expect("the first stream of a host opens");
    let mut client = Talker::new(0, path, end, texts[0].clone(), random.child());
    let mut server: Option<Talker> = None;
    pair.run(PATIENCE, |pair, stalled| {
        if let Some((path, _, end)) = door.next() {
            assert!(server.is_none(), "seed {seed}: one open made two paths");
            server = Some(Talker::new(1, path, end, texts[1].clone(), random.child()));
        }
        client.step(pair, stalled);
        if let Some(server) = &mut server {
            server.step(pair, stalled);
        }
        client.gone && server.as_ref().is_none_or(|server| server.gone)
    });
    pair.hosts[1].instance.disable(listening.id);
    if badness.dead_from.is_some() {
        let told = client.error.is_some() || server.as_ref().is_some_and(|server| server.error.is_some());
        let arrived = server
            .as_ref()
            .is_some_and(|server| client.received == server.to_send && server.received == client.to_send);
        if !told && !arrived {
            return Err("something did not arrive and nobody reported it".into());
        }
        client.lose_patience(&mut pair);
        if let Some(server) = &mut server {
            server.lose_patience(&mut pair);
        }
    }
    let clean = match &server {
        Some(server) => judge(&client, server)?,
        None if client.error.is_some() && client.gone => false,
        None => return Err("the stream neither opened nor reported an error".into()),
    };
    drop((client, server));
    nothing_is_left(&mut pair)?;
    Ok(clean)
}

#[test]
fn records_over_streams_over_a_bad_network_arrive_as_sent_and_leave_nothing() {
    let results = (0..500).map(|seed| (seed, conversation(seed, None, Fault::None)));
    let mut clean = 0;
    for (seed, result) in results {
        clean += u32::from(result.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    }
    assert!(clean >= 490, "only {clean} of 500 went without an error: the links are not that bad");
}

#[test]
fn a_link_that_dies_is_reported_and_leaves_nothing() {
    let mut reported = 0;
    for seed in 0..60 {
        let dead_from = Some(Instant::from_nanos(seed * 150_000));
        let badness = Badness { dead_from, ..Badness::none() };
        let clean =
            conversation(seed, Some(badness), Fault::None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        reported += u32::from(!clean);
    }
    assert!(reported >= 30, "the link died early and only {reported} of 60 reported it");
}

#[test]
fn planted_faults_are_noticed_in_streams() {
    let quiet = Some(Badness::none());
    let faults = [
        Fault::LoseUp,
        Fault::RepeatUp,
        Fault::SwapUp,
        Fault::SpoilUp,
        Fault::LoseDown,
        Fault::ForgetCredit,
        Fault::ForgetClose,
        Fault::Leak,
    ];
    for fault in faults {
        // A session that does wrong may also trip an assertion of those it wrongs: that is noticed, too.
        let noticed = (0..20).filter(|&seed| {
            let run = std::panic::AssertUnwindSafe(|| conversation(seed, quiet, fault));
            !matches!(std::panic::catch_unwind(run), Ok(Ok(true)))
        });
        let noticed = noticed.count();
        assert!(noticed >= 5, "{fault:?} was planted and noticed for only {noticed} seeds of 20");
    }
    assert!((0..20).all(|seed| conversation(seed, quiet, Fault::None) == Ok(true)), "honest sessions were accused");
}

/// What a server makes of a request.
fn answer_to(request: &[u8]) -> Vec<u8> {
    let mut reply: Vec<u8> = request.iter().rev().map(|byte| byte ^ 0x55).collect();
    reply.push(7);
    reply
}

/// A client that makes one call after the other on a channel.
struct Caller {
    path: PathId,
    end: Arc<End>,
    requests: Vec<Vec<u8>>,
    asked: usize,
    replies: Vec<Vec<u8>>,
    error: Option<Event>,
    closed: bool,
    gone: bool,
}

impl Caller {
    fn step(&mut self, pair: &mut Pair) {
        while let Some(said) = self.end.next() {
            match said {
                Said::Message(message) => self.replies.push(message.to_vec()),
                Said::Told(Control::Event(event)) => self.error = Some(event),
                Said::Told(_) => {}
                Said::Gone => self.gone = true,
            }
        }
        let work = match self.requests.get(self.asked) {
            _ if self.gone || self.closed => return,
            Some(request) if self.replies.len() == self.asked => {
                self.asked += 1;
                Work::Push(Message::from_bytes(request))
            }
            None if self.replies.len() == self.asked => {
                self.closed = true;
                Work::Close
            }
            _ => return,
        };
        ask(pair, 0, self.path, work);
    }
}

fn ask(pair: &mut Pair, host: usize, path: PathId, work: Work) {
    let host = &mut pair.hosts[host];
    host.instance.request(&host.port, &mut host.shepherd, path, work);
}

/// A server's end of one channel: it executes each request after a while.
struct Servant {
    path: PathId,
    channel: u32,
    end: Arc<End>,
    executed: Vec<Vec<u8>>,
    closed: bool,
    gone: bool,
}

impl Servant {
    fn step(&mut self, pair: &mut Pair) {
        while let Some(said) = self.end.next() {
            match said {
                Said::Message(message) => {
                    let request = message.to_vec();
                    let pool = pair.hosts[1].instance.pool();
                    let reply = pooled(pool, &answer_to(&request)).expect("the pool is larger than the test");
                    self.executed.push(request);
                    ask(pair, 1, self.path, Work::Push(reply));
                }
                Said::Told(Control::Event(_)) if !self.closed => {
                    self.closed = true;
                    ask(pair, 1, self.path, Work::Close);
                }
                Said::Told(_) => {}
                Said::Gone => self.gone = true,
            }
        }
    }
}

type Graph = fn(u32, VdropConfig, Fault, usize, u64) -> Instance;

/// Some channels of calls between two hosts, judged. `Ok(true)` if all went without an error.
fn calls(seed: u64, graph: Graph, badness: Option<Badness>, fault: Fault) -> Result<bool, String> {
    let mut random = Random::seeded(seed);
    // A message of ten fragments is lost as soon as one of them is: such a link has to be a better one.
    let bad = if badness.is_some() { VdropConfig::default() } else { vdrop_of(&mut random, 5) };
    let badness = badness.unwrap_or_else(|| Badness::of(&mut random, 5));
    let frame_max = 300 + random.below(1200) as usize;
    let hosts = [graph(1, bad, Fault::None, frame_max, random.next()), graph(2, bad, fault, frame_max, random.next())];
    let mut pair = Pair::new(hosts, badness, random.child());
    let door = Arc::new(Door::default());
    let enable = pair.hosts[1].instance.enable(graph::TOP, wish(graph::call_server()), door.clone());
    let listening = enable.expect("nobody serves yet");
    let mut callers: Vec<Caller> = (0..3)
        .map(|channel| {
            let end = Arc::new(End::default());
            let host = &mut pair.hosts[0];
            let (who, anchor) = (graph::channel_to_server(channel), end.clone());
            let path = host.instance.open(&host.port, &mut host.shepherd, graph::TOP, who, anchor);
            let path = path.expect("a new channel opens");
            let mut requests = random_records(&mut random, 8, 3000);
            requests.iter_mut().enumerate().for_each(|(index, request)| request.push(index as u8));
            let replies = Vec::new();
            Caller { path, end, requests, asked: 0, replies, error: None, closed: false, gone: false }
        })
        .collect();
    let mut servants: Vec<Servant> = Vec::new();
    pair.run(PATIENCE, |pair, _| {
        while let Some((path, who, end)) = door.next() {
            let channel = who.remote.find_number().expect("a channel has a number");
            servants.push(Servant { path, channel, end, executed: Vec::new(), closed: false, gone: false });
        }
        callers.iter_mut().for_each(|caller| caller.step(pair));
        servants.iter_mut().for_each(|servant| servant.step(pair));
        callers.iter().all(|caller| caller.gone) && servants.iter().all(|servant| servant.gone)
    });
    pair.hosts[1].instance.disable(listening.id);
    let mut clean = true;
    for (channel, caller) in callers.iter().enumerate() {
        if !caller.gone {
            return Err(format!("channel {channel} neither got its replies nor reported an error"));
        }
        clean &= caller.error.is_none();
        let expected: Vec<Vec<u8>> = caller.requests.iter().map(|request| answer_to(request)).collect();
        if caller.error.is_none() && caller.replies != expected || !expected.starts_with(&caller.replies) {
            return Err(format!("channel {channel} got other replies than the server gave"));
        }
        let executed = servants.iter().filter(|servant| servant.channel == channel as u32);
        let executed: Vec<&Vec<u8>> = executed.flat_map(|servant| &servant.executed).collect();
        if executed.len() > caller.requests.len()
            || executed.iter().zip(&caller.requests).any(|(one, other)| *one != other)
        {
            return Err(format!(
                "channel {channel}: executed {} requests of {}",
                executed.len(),
                caller.requests.len()
            ));
        }
    }
    if servants.iter().any(|servant| !servant.gone) {
        return Err("a server's path never ended".into());
    }
    drop((callers, servants));
    nothing_is_left(&mut pair)?;
    Ok(clean)
}

#[test]
fn calls_over_a_trunk_over_a_bad_network_are_carried_out_once_and_leave_nothing() {
    let mut clean = 0;
    for seed in 0..500 {
        let result = calls(seed, graph::calls, None, Fault::None);
        clean += u32::from(result.unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}")));
    }
    assert!(clean >= 480, "only {clean} of 500 went without an error: the links are not that bad");
}

#[test]
fn planted_faults_are_noticed_in_calls() {
    let quiet = Some(Badness::none());
    for fault in [Fault::LoseUp, Fault::RepeatUp, Fault::SpoilUp, Fault::LoseDown, Fault::Leak] {
        let noticed = (0..20).filter(|&seed| calls(seed, graph::calls, quiet, fault) != Ok(true)).count();
        assert!(noticed >= 5, "{fault:?} was planted and noticed for only {noticed} seeds of 20");
    }
    assert!(
        (0..20).all(|seed| calls(seed, graph::calls, quiet, Fault::None) == Ok(true)),
        "honest sessions were accused"
    );
}

#[test]
fn calls_choose_their_way_by_size() {
    let sized: Graph = |host, _, _, frame_max, seed| graph::sized_calls(host, frame_max, seed);
    for seed in 0..100 {
        let result = calls(seed, sized, Some(Badness::none()), Fault::None);
        assert_eq!(result, Ok(true), "seed {seed}");
    }
}
