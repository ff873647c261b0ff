//! What the server does for whoever comes, and the honest client who comes again and again. A visitor sends eight bytes, the
//! number of bytes it wants, and gets them. The shop's own policy is part of what holds against harm: so many visitors of one
//! host at a time, and none that says nothing for long.

use super::station::{EVIL, PORT};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use xylem_core::{Acceptor, Anchor, Control, EnableWish, Event, Instant, Message, Part, Participants, PathId, Setting};
use xylem_graph::instance::{Hosting, Listening, Work};
use xylem_sim::content::Content;
use xylem_sim::{End, Host, HostId, Outline, Progress, Traffic};

/// The most visitors of one host at a time.
pub const OF_ONE_HOST_MAX: usize = 64;
/// Half-open connections, at most.
pub const BACKLOG: usize = 256;
const PUSH_MAX: usize = 8192;

/// What the shop has done.
#[derive(Default)]
pub struct Doings {
    /// Visitors who are there now.
    pub present: usize,
    /// Visitors whom the policy sent away for having said nothing.
    pub sent_away: usize,
    /// Visitors who were told of an end before their time.
    pub ended: Vec<Event>,
    /// Nobody is let in any more, and who is there has to go.
    pub closing: bool,
}

/// See the module's text.
pub struct Shop {
    pub doings: Rc<RefCell<Doings>>,
    /// Whether it reads what the station sends.
    pub reads_of_evil: bool,
    /// How long a visitor may stay without getting or saying anything.
    pub patience: Option<Duration>,
    /// What it wishes of TCP about data that stays unacknowledged.
    pub user_timeout: Option<Duration>,
    door: Arc<Door>,
    listening: Option<Listening>,
    visits: Vec<Visit>,
}

struct Visit {
    path: PathId,
    end: Arc<End>,
    host: IpAddr,
    heard: Vec<u8>,
    sent: u64,
    moved: Instant,
    closed: bool,
}

/// The acceptor: it counts, and refuses.
#[derive(Default)]
struct Door(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    came: Vec<(PathId, IpAddr, Arc<End>)>,
    of_host: BTreeMap<IpAddr, usize>,
}

impl Acceptor for Door {
    fn accept(&self, path: PathId, participants: &Participants) -> Option<Arc<dyn Anchor>> {
        let mut waiting = self.0.lock().expect("nobody panics with it");
        let host = participants.remote.find_host()?;
        let count = waiting.of_host.entry(host).or_default();
        if *count >= OF_ONE_HOST_MAX {
            return None;
        }
        *count += 1;
        let end = End::new();
        waiting.came.push((path, host, Arc::clone(&end)));
        Some(end)
    }

    fn deliver(&self, _message: Message) {}
}

impl Shop {
    /// A shop that reads, and waits ten seconds for who says nothing.
    pub fn new() -> Shop {
        Shop {
            doings: Rc::default(),
            reads_of_evil: true,
            patience: Some(Duration::from_secs(10)),
            user_timeout: None,
            door: Arc::default(),
            listening: None,
            visits: Vec::new(),
        }
    }

    fn welcome(&mut self, now: Instant, host: &mut Host) -> bool {
        let came = std::mem::take(&mut self.door.0.lock().expect("nobody panics with it").came);
        for (path, from, end) in &came {
            self.visits.push(Visit {
                path: *path,
                end: Arc::clone(end),
                host: *from,
                heard: Vec::new(),
                sent: 0,
                moved: now,
                closed: false,
            });
            if self.user_timeout.is_some() {
                host.request(*path, Work::Control(Control::Set(Setting::UserTimeout(self.user_timeout))));
            }
        }
        !came.is_empty()
    }
}

impl Visit {
    /// Serves it; true if something was done.
    fn step(&mut self, now: Instant, host: &mut Host, reads: bool, must_go: bool, doings: &mut Doings) -> bool {
        if self.closed {
            return false;
        }
        let failure = self.end.state().failure();
        if let Some(event) = failure {
            doings.ended.push(event);
            return self.close(host);
        }
        if must_go {
            doings.sent_away += 1;
            host.request(self.path, Work::Control(Control::Set(Setting::Abort)));
            return self.close(host);
        }
        let mut busy = reads && self.read(now, host);
        let wanted = self.heard.first_chunk().map_or(0, |count| u64::from_be_bytes(*count));
        while self.sent < wanted {
            let count = self.end.state().room.min(PUSH_MAX).min((wanted - self.sent) as usize);
            if count == 0 {
                return busy;
            }
            let mut bytes = vec![0; count];
            Content(wanted).fill(self.sent, &mut bytes);
            (self.sent, self.moved, busy) = (self.sent + count as u64, now, true);
            host.push(self.path, &bytes);
        }
        let over = self.end.state().saw(Event::PeerClosed);
        if over || (wanted > 0 && self.sent == wanted) { self.close(host) } else { busy }
    }

    fn read(&mut self, now: Instant, host: &mut Host) -> bool {
        let arrived = std::mem::take(&mut self.end.state().arrived);
        let count: usize = arrived.iter().map(Message::len).sum();
        for message in &arrived {
            let room = 8 - self.heard.len().min(8);
            self.heard.extend(message.to_vec().into_iter().take(room));
        }
        drop(arrived);
        if count > 0 {
            self.moved = now;
            host.request(self.path, Work::Credit(count));
        }
        count > 0
    }

    fn close(&mut self, host: &mut Host) -> bool {
        self.closed = true;
        self.end.state().arrived.clear();
        host.request(self.path, Work::Close);
        true
    }
}

impl Traffic for Shop {
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool {
        let host = &mut hosts[0];
        let doings = Rc::clone(&self.doings);
        let mut doings = doings.borrow_mut();
        if doings.closing {
            if let Some(listening) = self.listening.take() {
                host.instance.disable(listening.id);
            }
        } else if self.listening.is_none() {
            let node = host.instance.node("tcp").expect("the graph has one");
            let participants = Participants::new([Part::Port(PORT)], []);
            let wish = EnableWish { participants, wild: false, backlog: BACKLOG, shared: false };
            self.listening = Some(host.instance.enable(node, wish, self.door.clone()).expect("nobody else listens"));
        }
        let mut busy = self.welcome(now, host);
        for visit in &mut self.visits {
            let reads = self.reads_of_evil || visit.host != IpAddr::V4(EVIL.0);
            let late = self.patience.is_some_and(|patience| now >= visit.moved + patience);
            busy |= visit.step(now, host, reads, late || doings.closing, &mut doings);
        }
        let door = &self.door;
        self.visits.retain(|visit| {
            let gone = visit.closed && visit.end.state().gone;
            if gone && let Some(count) = door.0.lock().expect("nobody panics with it").of_host.get_mut(&visit.host) {
                *count -= 1;
            }
            !gone
        });
        doings.present = self.visits.len();
        busy
    }

    fn next(&self) -> Option<Instant> {
        let patience = self.patience?;
        self.visits.iter().filter(|visit| !visit.closed).map(|visit| visit.moved + patience).min()
    }

    fn progress(&self) -> Progress {
        Progress::Going
    }

    fn outline(&self) -> Outline {
        Outline { what: "a shop".into(), how: String::new(), failed: false, bytes: 0, done_at: None }
    }
}

/// What became of the honest client's visits.
#[derive(Default)]
pub struct Visits {
    pub served: usize,
    pub failures: Vec<String>,
    pub longest: Duration,
    /// No more visits begin.
    pub closing: bool,
    /// Between the end of a visit and the next one.
    pub pause: Duration,
}

/// The honest client: one visit after the other, with a pause between.
pub struct Visitor {
    host: HostId,
    address: IpAddr,
    visits: Rc<RefCell<Visits>>,
    visit: Option<(PathId, Arc<End>, Instant, u64, bool)>,
    next: Instant,
}

/// What each visit wants.
const WANTED: u64 = 20_000;

impl Visitor {
    pub fn new(host: HostId, address: IpAddr, visits: Rc<RefCell<Visits>>) -> Visitor {
        Visitor { host, address, visits, visit: None, next: Instant::ZERO }
    }

    fn begin(&mut self, now: Instant, host: &mut Host) {
        let pause = self.visits.borrow().pause;
        let end = End::new();
        let participants = Participants::internet((None, None), (self.address, PORT));
        match host.open("tcp", participants, end.clone()) {
            Ok(path) => {
                host.push(path, &WANTED.to_be_bytes());
                self.visit = Some((path, end, now, 0, false));
            }
            Err(error) => {
                self.visits.borrow_mut().failures.push(error.to_string());
                self.next = now + pause;
            }
        }
    }
}

impl Traffic for Visitor {
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool {
        let host = &mut hosts[self.host.0];
        let pause = self.visits.borrow().pause;
        let Some((path, end, began, got, closed)) = &mut self.visit else {
            if now < self.next || self.visits.borrow().closing {
                return false;
            }
            self.begin(now, host);
            return true;
        };
        let arrived = std::mem::take(&mut end.state().arrived);
        let mut busy = !arrived.is_empty();
        let mut wrong = end.state().failure().map(|event| format!("{event:?} at {now:?}, begun at {began:?}"));
        for message in arrived {
            let bytes = message.to_vec();
            if Content(WANTED).differs(*got, &bytes).is_some() {
                wrong = Some(format!("a wrong byte behind {got}"));
            }
            *got += bytes.len() as u64;
            drop(message);
            host.request(*path, Work::Credit(bytes.len()));
        }
        let whole = *got == WANTED && end.state().saw(Event::PeerClosed);
        if (whole || wrong.is_some()) && !*closed {
            *closed = true;
            let mut visits = self.visits.borrow_mut();
            match wrong {
                Some(wrong) => visits.failures.push(wrong),
                None => visits.served += 1,
            }
            visits.longest = visits.longest.max(Duration::from_nanos(now.as_nanos() - began.as_nanos()));
            host.request(*path, Work::Close);
            // TIME-WAIT goes on without us.
            (self.visit, self.next) = (None, now + pause);
            busy = true;
        }
        busy
    }

    fn next(&self) -> Option<Instant> {
        (self.visit.is_none() && !self.visits.borrow().closing).then_some(self.next)
    }

    fn progress(&self) -> Progress {
        Progress::Going
    }

    fn outline(&self) -> Outline {
        Outline { what: "an honest client".into(), how: String::new(), failed: false, bytes: 0, done_at: None }
    }
}
