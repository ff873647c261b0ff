//! The applications of both ends: they push, read, pause and close as their plan says, and check every byte that comes.

use super::plan::{Plan, Talks};
use super::town::PLACES;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use xylem_core::{
    Acceptor, Anchor, Answer, Control, Event, Instant, Message, Part, Participants, PathId, Question, Random, Setting,
    ShortName, Status,
};
use xylem_graph::instance::{Hosting, Listening, Work};
use xylem_sim::Host;
use xylem_sim::content::Content;
use xylem_wire::Port;

pub const PORT: Port = Port(80);

/// The application's side of a path, as the path sees it.
#[derive(Default)]
struct Ear(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    arrived: VecDeque<Message>,
    room: usize,
    opened: bool,
    peer_closed: bool,
    failed: Option<Event>,
    gone: bool,
    status: Option<Status>,
}

impl Ear {
    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl Anchor for Ear {
    fn deliver(&self, message: Message) {
        self.heard().arrived.push_back(message);
    }

    fn told(&self, control: Control) {
        let mut heard = self.heard();
        match control {
            Control::Event(Event::Opened) => heard.opened = true,
            Control::Event(Event::PeerClosed) => heard.peer_closed = true,
            Control::Event(event @ (Event::Refused | Event::Reset | Event::TimedOut | Event::Unreachable)) => {
                heard.failed = Some(event);
            }
            Control::Answer(Answer::Status(status)) => heard.status = Some(*status),
            _ => {}
        }
    }

    fn room(&self, room: usize) {
        self.heard().room = room;
    }

    fn gone(&self) {
        self.heard().gone = true;
    }
}

#[derive(Default)]
struct Door(Mutex<VecDeque<(PathId, Arc<Ear>)>>);

impl Acceptor for Door {
    fn accept(&self, path: PathId, _participants: &Participants) -> Option<Arc<dyn Anchor>> {
        let ear = Arc::<Ear>::default();
        self.0.lock().expect("nobody panics with it").push_back((path, Arc::clone(&ear)));
        Some(ear)
    }

    fn deliver(&self, _message: Message) {}
}

/// One end at work.
pub struct End {
    host: usize,
    path: PathId,
    ear: Arc<Ear>,
    talks: Talks,
    random: Random,
    pub pushed: u64,
    push_at: Instant,
    pub read: u64,
    read_at: Instant,
    sends: Content,
    expects: Content,
    expected: u64,
    /// It has said that it sends no more.
    pub finished: bool,
    closed: bool,
}

impl End {
    fn new(plan: &Plan, host: usize, path: PathId, ear: Arc<Ear>, now: Instant) -> End {
        let content = |host: usize| Content(plan.seed.wrapping_mul(2) + host as u64);
        End {
            host,
            path,
            ear,
            talks: plan.talks[host].clone(),
            random: Random::seeded(!plan.seed ^ host as u64),
            pushed: 0,
            push_at: now,
            read: 0,
            read_at: now,
            sends: content(host),
            expects: content(1 - host),
            expected: plan.talks[1 - host].total,
            finished: false,
            closed: false,
        }
    }

    /// Does what can be done now; true if something was.
    fn step(&mut self, now: Instant, host: &mut Host) -> Result<bool, String> {
        let failed = self.ear.heard().failed;
        if failed == Some(Event::Unreachable) && !self.ear.heard().opened && !self.closed {
            // Nobody answered for the neighbour's address: an open that fails is an answer.
            self.closed = true;
            self.ask(host, Work::Close);
            return Ok(true);
        }
        if let Some(event) = failed.filter(|_| !self.closed) {
            let (read, pushed) = (self.read, self.pushed);
            return Err(format!("host {} was told {event:?} after {read} bytes in and {pushed} out", self.host));
        }
        let mut is_busy = self.read(now, host)? | self.write(now, host);
        let (is_over, is_empty) = {
            let heard = self.ear.heard();
            (heard.peer_closed, heard.arrived.is_empty())
        };
        if is_over && is_empty && self.read < self.expected {
            return Err(format!("host {}: the stream ended after {} of {} bytes", self.host, self.read, self.expected));
        }
        if is_over && is_empty && self.pushed == self.talks.total && !self.closed {
            (self.finished, self.closed, is_busy) = (true, true, true);
            self.ask(host, Work::Close);
        }
        Ok(is_busy)
    }

    fn ask(&self, host: &mut Host, work: Work) {
        host.request(self.path, work);
    }

    fn read(&mut self, now: Instant, host: &mut Host) -> Result<bool, String> {
        if now < self.read_at {
            return Ok(false);
        }
        let mut count = 0;
        while count < self.talks.read_max {
            let Some(mut message) = self.ear.heard().arrived.pop_front() else { break };
            let rest = message.split_off(message.len().min(self.talks.read_max - count));
            for piece in message.slices() {
                if let Some(at) = self.expects.differs(self.read, piece) {
                    return Err(format!("host {}: byte {at} is wrong", self.host));
                }
                self.read += piece.len() as u64;
            }
            count += message.len();
            if !rest.is_empty() {
                self.ear.heard().arrived.push_front(rest);
            }
        }
        if self.read > self.expected {
            return Err(format!("host {}: {} bytes came, {} were sent", self.host, self.read, self.expected));
        }
        if count == 0 {
            return Ok(false);
        }
        self.read_at = now + self.talks.read_every;
        if let Some((_, pause)) = self.talks.pause.take_if(|(at, _)| *at <= self.read) {
            self.read_at = self.read_at + pause;
        }
        self.ask(host, Work::Credit(count));
        Ok(true)
    }

    fn write(&mut self, now: Instant, host: &mut Host) -> bool {
        if self.finished || now < self.push_at || !self.ear.heard().opened {
            return false;
        }
        let mut is_busy = false;
        while self.pushed < self.talks.total {
            let most = (1 + self.random.below(self.talks.push_max)).min(self.talks.total - self.pushed) as usize;
            let count = self.ear.heard().room.min(most);
            if count == 0 {
                return is_busy;
            }
            let mut bytes = vec![0; count];
            self.sends.fill(self.pushed, &mut bytes);
            self.pushed += count as u64;
            self.ask(host, Work::Push(Message::from_bytes(&bytes)));
            is_busy = true;
            if let Some(silence) = self.talks.silence.filter(|_| self.random.below(20) == 0) {
                self.push_at = now + silence;
                return true;
            }
        }
        if self.talks.half_closes {
            self.finished = true;
            self.ask(host, Work::Control(Control::Set(Setting::SendClosed)));
            is_busy = true;
        }
        is_busy
    }

    /// When it wants to do something by itself.
    fn next(&self, now: Instant) -> Option<Instant> {
        if self.closed {
            return None;
        }
        let heard = self.ear.heard();
        let reads = (!heard.arrived.is_empty() && self.read_at > now).then_some(self.read_at);
        let writes = (!self.finished && self.push_at > now && heard.opened).then_some(self.push_at);
        [reads, writes].into_iter().flatten().min()
    }

    /// The path is gone.
    pub fn is_gone(&self) -> bool {
        self.ear.heard().gone
    }

    /// Pieces of messages that wait to be read, each of which keeps a buffer.
    pub fn unread(&self) -> usize {
        self.ear.heard().arrived.iter().map(|message| message.slices().count()).sum()
    }
}

/// Both ends.
pub struct Talk {
    pub plan: Plan,
    door: Arc<Door>,
    listening: Option<Listening>,
    pub ends: [Option<End>; 2],
    now: Instant,
}

impl Talk {
    /// Nobody has begun.
    pub fn new(plan: &Plan) -> Talk {
        Talk { plan: plan.clone(), door: Arc::default(), listening: None, ends: [None, None], now: Instant::ZERO }
    }

    /// Host 1 listens and host 0 opens.
    fn begin(&mut self, now: Instant, hosts: &mut [Host]) {
        let listening = hosts[1].enable("tcp", Participants::new([Part::Port(PORT)], []), self.door.clone());
        self.listening = Some(listening.expect("nobody else listens"));
        let ear = Arc::<Ear>::default();
        let participants = Participants::internet((None, None), (PLACES[1].0.into(), PORT));
        let path = hosts[0].open("tcp", participants, ear.clone()).expect("the first connection opens");
        self.ends[0] = Some(End::new(&self.plan, 0, path, ear, now));
        self.prefer(0, &mut hosts[0]);
    }

    fn prefer(&self, host: usize, at: &mut Host) {
        if let Some(end) = self.ends[host].as_ref().filter(|end| end.talks.no_delay) {
            end.ask(at, Work::Control(Control::Set(Setting::NoDelay(true))));
        }
    }

    /// Does what can be done now; true if something was.
    pub fn step(&mut self, now: Instant, hosts: &mut [Host]) -> Result<bool, String> {
        self.now = now;
        let mut is_busy = self.ends[0].is_none();
        if is_busy {
            self.begin(now, hosts);
        }
        let came = self.door.0.lock().expect("nobody panics with it").pop_front();
        if let Some((path, ear)) = came {
            if self.ends[1].is_some() {
                return Err("one open made two paths".into());
            }
            self.ends[1] = Some(End::new(&self.plan, 1, path, ear, now));
            self.prefer(1, &mut hosts[1]);
            is_busy = true;
        }
        for (end, host) in self.ends.iter_mut().flatten().zip(hosts) {
            is_busy |= end.step(now, host)?;
        }
        Ok(is_busy)
    }

    /// When somebody wants to do something by himself.
    pub fn next(&self) -> Option<Instant> {
        self.ends.iter().flatten().filter_map(|end| end.next(self.now)).min()
    }

    /// Both have closed, and both paths are gone; or none could be opened.
    pub fn is_over(&self) -> bool {
        let is_gone = |end: &Option<End>| end.as_ref().is_some_and(End::is_gone);
        is_gone(&self.ends[0]) && (is_gone(&self.ends[1]) || self.never_opened())
    }

    /// The client was told that the server cannot be reached.
    pub fn never_opened(&self) -> bool {
        self.ends[0].as_ref().is_some_and(|end| !end.ear.heard().opened)
    }

    /// Nobody is let in any more.
    pub fn stop(&mut self, server: &mut Host) {
        if let Some(listening) = self.listening.take() {
            server.instance.disable(listening.id);
        }
    }

    /// How the end of a host is doing, if it has one that is open.
    pub fn status(&self, host: usize, at: &mut Host) -> Option<Status> {
        let end = self.ends[host].as_ref().filter(|end| !end.is_gone())?;
        end.ask(at, Work::Control(Control::Question(Question::Status, None)));
        end.ear.heard().status.take()
    }

    /// The application changes its mind about its end.
    pub fn wish(&self, host: usize, at: &mut Host, setting: Setting) {
        if let Some(end) = &self.ends[host] {
            end.ask(at, Work::Control(Control::Set(setting)));
        }
    }
}

/// The wish for a congestion control.
pub fn congestion(name: &str) -> Setting {
    Setting::Congestion(ShortName::new(name).expect("the names are short"))
}
