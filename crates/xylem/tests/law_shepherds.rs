//! Several shepherds, one instance: whichever threads bring messages through a path, each conversation keeps its order and
//! loses and repeats nothing. Hosts are two instances with several threads each, all of them turning and asking at once;
//! the link is memory. The clock runs faster than the wall's, so that waits are short.

mod toys;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Wall};
use toys::end::{Door, End, Said};
use toys::fault::Fault;
use toys::graph;
use toys::pair::pooled;
use toys::talk::random_records;
use xylem_core::{
    Control, EnableWish, Event, Instant, Message, OpenError, Participants, PathId, Pool, Random, Setting,
};
use xylem_graph::instance::{Instance, Shepherd, Work, World};
use xylem_protocols::vdrop::VdropConfig;

/// How much faster than the wall's the clock runs.
const SPEED: u32 = 20;
/// The wall's time within which a round has to end.
const LIMIT: Duration = Duration::from_secs(20);
const THREADS: usize = 3;
const CONVERSATIONS: usize = 6;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Queue = Mutex<VecDeque<Vec<u8>>>;

/// The link, and the clock of both hosts.
struct Net {
    began: Wall,
    skipped: AtomicU64,
    /// Frames on their way to each host.
    queues: [Queue; 2],
}

struct Device<'n> {
    net: &'n Net,
    host: usize,
    pool: Pool,
}

impl World for Device<'_> {
    fn now(&self) -> Instant {
        let ran = self.net.began.elapsed() * SPEED;
        Instant::from_nanos(ran.as_nanos() as u64 + self.net.skipped.load(Ordering::SeqCst))
    }
    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize) {
        let mut queue = lock(&self.net.queues[self.host]);
        let count = queue.len().min(limit).min(4);
        arrivals.extend(queue.drain(..count).filter_map(|frame| Some((0, pooled(&self.pool, &frame)?))));
    }
    fn transmit(&self, _device: u16, frame: &mut Message) -> bool {
        lock(&self.net.queues[1 - self.host]).push_back(frame.to_vec());
        true
    }
}

/// What an application needs to ask something.
struct Hands<'a, 'n> {
    instance: &'a Instance,
    device: &'a Device<'n>,
    shepherd: &'a mut Shepherd,
}

impl Hands<'_, '_> {
    fn ask(&mut self, path: PathId, work: Work) {
        self.instance.request(self.device, self.shepherd, path, work);
    }
}

/// One end of one conversation, in records or in calls. Whoever has it locked acts for it.
struct Speaker {
    opens: Option<Participants>,
    path: Option<PathId>,
    end: Arc<End>,
    to_send: Vec<Vec<u8>>,
    sent: usize,
    received: Vec<Vec<u8>>,
    partial: Vec<u8>,
    /// Sends the next only when the last was answered, and answers each.
    calls: Option<bool>,
    peer_closed: bool,
    send_closed: bool,
    closed: bool,
    error: Option<Event>,
    gone: bool,
}

impl Speaker {
    fn new(opens: Option<Participants>, to_send: Vec<Vec<u8>>, calls: Option<bool>) -> Speaker {
        Speaker {
            opens,
            path: None,
            end: Arc::default(),
            to_send,
            sent: 0,
            received: Vec::new(),
            partial: Vec::new(),
            calls,
            peer_closed: false,
            send_closed: false,
            closed: false,
            error: None,
            gone: false,
        }
    }

    fn step(&mut self, hands: &mut Hands<'_, '_>) {
        if let Some(participants) = self.opens.take() {
            let anchor = self.end.clone();
            match hands.instance.open(hands.device, hands.shepherd, graph::TOP, participants.clone(), anchor) {
                Ok(path) => self.path = Some(path),
                // A trunk that another shepherd is just closing has its keys for a moment longer.
                Err(OpenError::InUse) => self.opens = Some(participants),
                Err(error) => panic!("a new conversation does not open: {error}"),
            }
        }
        let Some(path) = self.path else { return };
        let mut credit = 0;
        while let Some(said) = self.end.next() {
            match said {
                Said::Message(message) => {
                    credit += message.len();
                    self.partial.extend(message.to_vec());
                    if message.attributes.end_of_message {
                        self.received.push(std::mem::take(&mut self.partial));
                    }
                }
                Said::Told(Control::Event(Event::PeerClosed)) => self.peer_closed = true,
                Said::Told(Control::Event(Event::Opened)) | Said::Told(_) if self.gone => {}
                Said::Told(Control::Event(Event::Opened)) => {}
                Said::Told(Control::Event(event)) => self.error = Some(event),
                Said::Told(_) => {}
                Said::Gone => self.gone = true,
            }
        }
        if self.gone || self.closed {
            return;
        }
        if credit > 0 {
            hands.ask(path, Work::Credit(credit));
        }
        match self.calls {
            None => self.talk(path, hands),
            Some(true) => self.call(path, hands),
            Some(false) => self.serve(path, hands),
        }
    }

    fn talk(&mut self, path: PathId, hands: &mut Hands<'_, '_>) {
        while let Some(record) = self.to_send.get(self.sent)
            && self.end.room_now() > record.len()
        {
            self.sent += 1;
            hands.ask(path, Work::Push(Message::from_bytes(record)));
        }
        if self.sent == self.to_send.len() && !self.send_closed {
            self.send_closed = true;
            hands.ask(path, Work::Control(Control::Set(Setting::SendClosed)));
        }
        if self.peer_closed && self.send_closed {
            self.closed = true;
            hands.ask(path, Work::Close);
        }
    }

    fn call(&mut self, path: PathId, hands: &mut Hands<'_, '_>) {
        if self.received.len() < self.sent {
            return;
        }
        match self.to_send.get(self.sent) {
            Some(request) => {
                self.sent += 1;
                hands.ask(path, Work::Push(Message::from_bytes(request)));
            }
            None => {
                self.closed = true;
                hands.ask(path, Work::Close);
            }
        }
    }

    fn serve(&mut self, path: PathId, hands: &mut Hands<'_, '_>) {
        while let Some(request) = self.received.get(self.sent) {
            self.sent += 1;
            hands.ask(path, Work::Push(Message::from_bytes(request)));
        }
        if self.peer_closed || self.error.is_some() {
            self.closed = true;
            hands.ask(path, Work::Close);
        }
    }
}

/// What is different about records and calls.
struct Kind {
    graph: fn(u32, VdropConfig, Fault, usize, u64) -> Instance,
    calls: bool,
    server: fn() -> Participants,
}

const RECORDS: Kind = Kind { graph: graph::records, calls: false, server: graph::stream_server };
const CALLS: Kind = Kind { graph: graph::calls, calls: true, server: graph::call_server };

impl Kind {
    fn client(&self, number: usize) -> Participants {
        if self.calls { graph::channel_to_server(number as u32) } else { graph::stream_to_server() }
    }
}

/// Some conversations at once; `Err` says what went wrong.
fn round(seed: u64, kind: &Kind, fault: Fault, limit: Duration) -> Result<(), String> {
    let mut random = Random::seeded(seed);
    let quiet = VdropConfig::default();
    let instances =
        [(kind.graph)(1, quiet, Fault::None, 600, random.next()), (kind.graph)(2, quiet, fault, 600, random.next())];
    let net = Net { began: Wall::now(), skipped: AtomicU64::new(0), queues: Default::default() };
    let door = Arc::new(Door::default());
    let wish = EnableWish { participants: (kind.server)(), wild: false, backlog: 64, shared: false };
    instances[1].enable(graph::TOP, wish, door.clone()).expect("nobody listens yet");
    let mut texts = || {
        let mut texts = random_records(&mut random, 8, 2500);
        texts.iter_mut().for_each(|text| text.push(1));
        texts
    };
    let role = |client| kind.calls.then_some(client);
    let clients: Vec<Mutex<Speaker>> = (0..CONVERSATIONS)
        .map(|number| Mutex::new(Speaker::new(Some(kind.client(number)), texts(), role(true))))
        .collect();
    // Whoever of the clients comes first gets the first of these; what they say tells them apart afterwards.
    let server_text = texts();
    let servers: Mutex<Vec<Arc<Mutex<Speaker>>>> = Mutex::default();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 * THREADS {
            let (host, net, instances, clients, servers, door, over, server_text, role) =
                (thread % 2, &net, &instances, &clients, &servers, &door, &over, &server_text, &role);
            scope.spawn(move || {
                let instance = &instances[host];
                let device = Device { net, host, pool: instance.pool().clone() };
                let mut shepherd = instance.shepherd();
                while !over.load(Ordering::SeqCst) && net.began.elapsed() < limit {
                    instance.turn(&device, &mut shepherd);
                    let mut hands = Hands { instance, device: &device, shepherd: &mut shepherd };
                    let mut done = true;
                    if host == 0 {
                        for client in clients {
                            if let Ok(mut client) = client.try_lock() {
                                client.step(&mut hands);
                                done &= client.gone;
                            } else {
                                done = false;
                            }
                        }
                        let gone = |server: &Arc<Mutex<Speaker>>| lock(server).gone;
                        if done && lock(servers).iter().all(gone) {
                            over.store(true, Ordering::SeqCst);
                        }
                    } else {
                        while let Some((path, _, end)) = door.next() {
                            let text = if role(false).is_none() { server_text.clone() } else { Vec::new() };
                            let server = Speaker { path: Some(path), end, ..Speaker::new(None, text, role(false)) };
                            lock(servers).push(Arc::new(Mutex::new(server)));
                        }
                        let servers: Vec<_> = lock(servers).clone();
                        for server in servers {
                            if let Ok(mut server) = server.try_lock() {
                                server.step(&mut hands);
                            }
                        }
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    let clients: Vec<Speaker> =
        clients.into_iter().map(|it| it.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    let servers = std::mem::take(&mut *lock(&servers));
    let wrong = clients.iter().find_map(|client| misheard(client, &servers, kind.calls, &server_text).err());
    drop((clients, servers));
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    nothing_is_left(&instances, &net)
}

/// Whether a client and the server it talked to heard exactly what the other said.
fn misheard(client: &Speaker, servers: &[Arc<Mutex<Speaker>>], calls: bool, text: &[Vec<u8>]) -> Result<(), String> {
    if !client.gone || client.error.is_some() {
        return Err(format!(
            "gone {}, error {:?} after {} of {}",
            client.gone,
            client.error,
            client.sent,
            client.to_send.len()
        ));
    }
    let expected = if calls { &client.to_send } else { text };
    if client.received != *expected {
        return Err("a client heard something else than its server said".into());
    }
    let heard = servers.iter().filter(|server| lock(server).received == client.to_send).count();
    if heard == 0 && !(calls && client.to_send.is_empty()) {
        return Err("no server heard what a client said".into());
    }
    Ok(())
}

fn nothing_is_left(instances: &[Instance; 2], net: &Net) -> Result<(), String> {
    for _ in 0..100 {
        net.skipped.fetch_add(30_000_000_000, Ordering::SeqCst);
        for (host, instance) in instances.iter().enumerate() {
            let device = Device { net, host, pool: instance.pool().clone() };
            let mut shepherd = instance.shepherd();
            for _ in 0..8 {
                instance.turn(&device, &mut shepherd);
            }
        }
    }
    for (host, instance) in instances.iter().enumerate() {
        let paths = instance.path_count() - instance.kept_path_count();
        let left = (paths, instance.deadline_count(), instance.reading().buffers_held);
        if left != (0, 0, (0, 0)) {
            return Err(format!("host {host} still has (paths, deadlines, buffers) {left:?}"));
        }
    }
    Ok(())
}

#[test]
fn streams_keep_their_order_under_many_shepherds() {
    for seed in 0..100 {
        round(seed, &RECORDS, Fault::None, LIMIT).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn calls_on_one_trunk_are_carried_out_once_under_many_shepherds() {
    for seed in 0..100 {
        round(seed, &CALLS, Fault::None, LIMIT).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn planted_faults_are_noticed_under_many_shepherds() {
    for fault in [Fault::SwapUp, Fault::RepeatUp, Fault::SpoilUp, Fault::Leak] {
        // Who is wronged may wait for ever, or trip over an assertion: both are noticed.
        let noticed = (0..3).filter(|&seed| {
            let limit = Duration::from_millis(300);
            let round = std::panic::AssertUnwindSafe(|| round(seed, &RECORDS, fault, limit));
            !matches!(std::panic::catch_unwind(round), Ok(Ok(())))
        });
        assert!(noticed.count() > 0, "{fault:?} was planted and not noticed");
    }
}
