//! A script runs against a subject: what is to be done is done at its time, what the subject sends is held against what it
//! was to send, and nothing else may come.

use super::compare::{differences, faults};
use super::conversation::{Conversation, Ends};
use super::event::{Arm, Event, Fact, Line, Opener, Outcome, Verb, When};
use super::packet::{self, Seen};
use super::print::Span;
use super::segment::{Extent, Flaw, OptionWish, Place, Segment, Stamp};
use super::{Script, content_sent};
use std::collections::BTreeMap;
use std::time::Duration;
use xylem_graph::file::Position;
use xylem_wire::TcpFlags;

/// A stack under test, with a link on which the script plays the peer. Times count from its begin.
pub trait Subject {
    /// Which stack it is.
    fn arm(&self) -> Arm;

    /// How exact its clock and its timers are.
    fn tolerance(&self) -> Tolerance;

    /// The time.
    fn now(&self) -> Duration;

    /// Goes on until the subject has sent an IPv4 packet, which is returned with its time, or until `until`.
    ///
    /// # Errors
    /// The link has failed.
    fn next(&mut self, until: Duration) -> Result<Option<(Duration, Vec<u8>)>, String>;

    /// An IPv4 packet reaches the subject.
    ///
    /// # Errors
    /// The link has failed.
    fn deliver(&mut self, packet: &[u8]) -> Result<(), String>;

    /// The application of the connection between `ends` asks something.
    ///
    /// # Errors
    /// What came instead of what the verb says.
    fn ask(&mut self, ends: Ends, verb: &Verb) -> Result<(), String>;

    /// The state of the connection between `ends`, and its congestion window in segments.
    ///
    /// # Errors
    /// Why it cannot be said.
    fn look(&mut self, ends: Ends) -> Result<(String, u32), String>;
}

/// How much earlier or later than said something may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Earlier.
    pub early: Duration,
    /// Later.
    pub late: Duration,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it went wrong, if it did.
    pub failure: Option<Failure>,
    /// Everything that happened, a line each.
    pub log: Vec<String>,
    /// How long it took, by the subject's clock.
    pub took: Duration,
    /// By how much the latest of what was to be done at a time was done later: where time is real and the machine is busy,
    /// a failure may be the runner's.
    pub late: Duration,
}

/// A line of the script that did not come true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line.
    pub position: Position,
    /// What it says.
    pub expected: String,
    /// What happened.
    pub got: String,
}

/// Runs a script.
pub fn run(script: &Script, subject: &mut dyn Subject) -> Run {
    let mut runner = Runner {
        script,
        conversations: conversations(script, subject.arm()),
        subject,
        may: Vec::new(),
        before: Duration::ZERO,
        listening: false,
        late: Duration::ZERO,
        log: Vec::new(),
    };
    let failure = runner.all().err();
    let took = runner.subject.now();
    Run { failure, log: runner.log, took, late: runner.late }
}

/// Every connection that a script names, in the order in which they come.
fn conversations(script: &Script, arm: Arm) -> BTreeMap<String, Conversation> {
    let mut found: BTreeMap<String, Conversation> = BTreeMap::new();
    let lines = || script.lines.iter().map(|line| &line.value).filter(|line| line.only.is_none_or(|only| only == arm));
    for line in lines() {
        let connects =
            |line: &Line| matches!(line.event, Event::Ask(Verb::Connect | Verb::Opened { by: Opener::Us, .. }));
        let is_active = lines().any(|other| other.who == line.who && connects(other));
        let index = found.len();
        found.entry(line.who.clone()).or_insert_with(|| Conversation::new(&script.settings, index, is_active));
    }
    found
}

struct Runner<'a> {
    script: &'a Script,
    subject: &'a mut dyn Subject,
    conversations: BTreeMap<String, Conversation>,
    /// What may come before the next line has happened.
    may: Vec<(String, Segment)>,
    /// When the line before happened.
    before: Duration,
    listening: bool,
    late: Duration,
    log: Vec<String>,
}

impl Runner<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        let arm = self.subject.arm();
        let script = self.script;
        for line in &script.lines {
            if line.only.is_none_or(|only| only == arm) {
                self.line(line.position, line)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, position: Position, line: &Line) -> Result<(), Failure> {
        let (least, most) = match line.when {
            When::After { least, most } => (self.before + least, self.before + most),
            When::At { least, most } => (least, most),
        };
        let wrong = |got: String| Failure { position, expected: line.to_string(), got };
        if let Event::May { segment } = &line.event {
            self.may.push((line.who.clone(), segment.clone()));
            return Ok(());
        }
        if let Event::Expect { segment, pieces } = &line.event {
            self.expect(&line.who, segment, *pieces, least, most).map_err(wrong)?;
            self.may.clear();
            return Ok(());
        }
        self.wait_until(least).map_err(wrong)?;
        self.may.clear();
        self.before = self.subject.now();
        self.late = self.late.max(self.before.saturating_sub(least));
        if let Event::Ask(Verb::Opened { by, segment, after }) = &line.event {
            return self.open(position, &line.who, *by, segment, *after);
        }
        self.note(&line.who, &line.event.to_string());
        self.act(&line.who, &line.event).map_err(wrong)
    }

    /// Nothing may come until `until` but what may.
    fn wait_until(&mut self, until: Duration) -> Result<(), String> {
        while let Some((who, seen)) = self.next(until)? {
            if !self.was_allowed(&who, &seen) {
                return Err(format!("before it, {}", self.say(&who, &seen)));
            }
        }
        Ok(())
    }

    /// Whether it is one of those that may come; then it may not come again.
    fn was_allowed(&mut self, who: &str, seen: &Seen) -> bool {
        let conversation = &self.conversations[who];
        let fits =
            |(whose, segment): &(String, Segment)| whose == who && differences(segment, seen, conversation).is_empty();
        let found = self.may.iter().position(fits);
        found.map(|index| self.may.remove(index)).is_some()
    }

    /// The next segment of the subject, if one comes until then.
    fn next(&mut self, until: Duration) -> Result<Option<(String, Seen)>, String> {
        while let Some((at, packet)) = self.subject.next(until)? {
            let Some(seen) = packet::read(at, &packet) else { continue };
            let seen = seen?;
            let (ours, theirs) = (seen.header.source.0, seen.header.destination.0);
            let found = self.conversations.iter_mut().find(|(_, it)| (it.ends.subject, it.ends.peer) == (ours, theirs));
            let Some((who, conversation)) = found else {
                return Err(format!("a segment between ports {ours} and {theirs}, which is none of the script's"));
            };
            let is_syn = seen.header.flags.contains(TcpFlags::SYN);
            if is_syn {
                conversation.saw_syn(seen.header.sequence.0);
            }
            if let Some(timestamps) = seen.options.timestamps {
                conversation.saw_stamp(timestamps.value.0, is_syn);
            }
            let who = who.clone();
            let text = format!("> {}", seen.segment(&self.conversations[&who]));
            self.note_at(at, &who, &text);
            let faults = faults(&seen, &self.conversations[&who]);
            if !faults.is_empty() {
                return Err(format!("{} with {}", self.say(&who, &seen), faults.join(", ")));
            }
            return Ok(Some((who, seen)));
        }
        Ok(None)
    }

    /// The segment must come between `least` and `most`.
    fn expect(
        &mut self,
        who: &str,
        segment: &Segment,
        pieces: Option<u32>,
        least: Duration,
        most: Duration,
    ) -> Result<(), String> {
        let mut left = segment.clone();
        let mut count = 0;
        loop {
            let seen = self.await_one(who, least, most)?;
            let piece = if pieces == Some(1) { left.clone() } else { first_piece(&left, &seen) };
            let found = differences(&piece, &seen, &self.conversations[who]);
            if !found.is_empty() {
                if self.was_allowed(who, &seen) {
                    continue;
                }
                return Err(format!("{}: {}", self.say(who, &seen), found.join(", ")));
            }
            self.before = seen.at;
            count += 1;
            let Place::Counted(first) = left.sequence else { return Ok(()) };
            left.sequence = Place::Counted(first + i64::from(piece.payload));
            left.payload -= piece.payload;
            if left.payload == 0 {
                break;
            }
        }
        match pieces {
            Some(pieces) if pieces != count => Err(format!("it came in {count} segments")),
            _ => Ok(()),
        }
    }

    /// The next segment of this connection, at its time.
    fn await_one(&mut self, who: &str, least: Duration, most: Duration) -> Result<Seen, String> {
        let Tolerance { early, late } = self.subject.tolerance();
        loop {
            let Some((whose, seen)) = self.next(most + late)? else {
                return Err(format!("nothing until {}", Span(most + late)));
            };
            if whose != who || seen.at + early < least {
                if self.was_allowed(&whose, &seen) {
                    continue;
                }
                let why =
                    if whose == who { format!("sooner than {}", Span(least)) } else { "another connection's".into() };
                return Err(format!("{}, {why}", self.say(&whose, &seen)));
            }
            return Ok(seen);
        }
    }

    fn say(&self, who: &str, seen: &Seen) -> String {
        let name = if who.is_empty() { String::new() } else { format!("{who}: ") };
        format!("{}: {name}> {}", Span(seen.at), seen.segment(&self.conversations[who]))
    }

    fn act(&mut self, who: &str, event: &Event) -> Result<(), String> {
        match event {
            Event::Send { segment, pieces } => self.send(who, segment, *pieces),
            Event::Report(report) => {
                let mtu = self.script.settings.mtu;
                let packet = packet::build_report(report, &self.conversations[who], mtu);
                self.subject.deliver(&packet)
            }
            Event::Ask(verb) => {
                self.listening |= matches!(verb, Verb::Listen { .. });
                let ends = self.conversations[who].ends;
                self.subject.ask(ends, verb)
            }
            Event::Look(facts) => self.look(who, facts),
            Event::Quiet => Ok(()),
            Event::Anew { later } => {
                if let Some(conversation) = self.conversations.get_mut(who) {
                    conversation.begin_anew(*later);
                }
                Ok(())
            }
            Event::Expect { .. } | Event::May { .. } => unreachable!("what is expected is not done"),
        }
    }

    fn send(&mut self, who: &str, segment: &Segment, pieces: u32) -> Result<(), String> {
        let conversation = self.conversations.get_mut(who).expect("every name of the script has its conversation");
        let length = segment.payload / pieces;
        for index in 0..pieces {
            let is_last = index + 1 == pieces;
            let mut piece = Segment { payload: length, ..segment.clone() };
            if let Place::Counted(first) = segment.sequence {
                piece.sequence = Place::Counted(first + i64::from(index * length));
            }
            if !is_last {
                piece.flags = piece.flags.without(TcpFlags::FIN.with(TcpFlags::PSH));
            }
            let number = conversation.peer_number(piece.sequence).wrapping_sub(conversation.peer_isn);
            let number = number.wrapping_add(u32::from(piece.flags.contains(TcpFlags::SYN)));
            let mut payload = vec![0; length as usize];
            let content = content_sent(conversation.ends, segment.has_flaw(Flaw::OtherContent));
            // The first byte has number 1.
            content.fill(u64::from(number.wrapping_sub(1)), &mut payload);
            let packet = packet::build(&piece, conversation, &payload);
            self.subject.deliver(&packet)?;
        }
        Ok(())
    }

    fn look(&mut self, who: &str, facts: &[Fact]) -> Result<(), String> {
        let ends = self.conversations[who].ends;
        let (state, window) = self.subject.look(ends)?;
        let holds = facts.iter().all(|fact| match fact {
            Fact::State(name) => *name == state,
            Fact::Window { least, most } => Extent { least: *least, most: *most }.holds(window),
        });
        if holds { Ok(()) } else { Err(format!("{state} cwnd {window}")) }
    }

    /// The whole handshake, line by line as a script would write it.
    fn open(
        &mut self,
        position: Position,
        who: &str,
        by: Opener,
        segment: &Segment,
        after: Duration,
    ) -> Result<(), Failure> {
        let settings = &self.script.settings;
        let options = segment.options.clone().unwrap_or_else(|| {
            let mut options = vec![OptionWish::SegmentSize(Some(1460))];
            options.extend(settings.sack.then_some(OptionWish::SackPermitted));
            options.extend(settings.timestamps.then_some(OptionWish::Timestamps(Stamp::Counted(1000), Stamp::Any)));
            options.extend(settings.scaling.then_some(OptionWish::WindowScale(Some(0))));
            options
        });
        let syn = Segment { options: Some(options), ..segment.clone() };
        let bare = |flags: TcpFlags, sequence, acknowledgment: Option<i64>| Segment {
            flags,
            sequence: Place::Counted(sequence),
            acknowledgment: acknowledgment.map(Place::Counted),
            ..Segment::default()
        };
        let (syn_ack, ack) = (TcpFlags::SYN | TcpFlags::ACK, TcpFlags::ACK);
        let expect = |segment| Event::Expect { segment, pieces: Some(1) };
        let send = |segment| Event::Send { segment, pieces: 1 };
        let steps = match by {
            Opener::Peer => vec![
                send(Segment { flags: TcpFlags::SYN, ..syn }),
                expect(bare(syn_ack, 0, Some(1))),
                send(bare(ack, 1, Some(1))),
                Event::Ask(Verb::Accept),
            ],
            Opener::Us => vec![
                Event::Ask(Verb::Connect),
                expect(bare(TcpFlags::SYN, 0, None)),
                send(Segment { flags: syn_ack, acknowledgment: Some(Place::Counted(1)), ..syn }),
                expect(bare(ack, 1, Some(1))),
                Event::Ask(Verb::Told(Outcome::Open)),
            ],
        };
        if by == Opener::Peer && !self.listening {
            let listen = Event::Ask(Verb::Listen { backlog: 16 });
            self.line(position, &Line { only: None, when: When::NOW, who: who.to_owned(), event: listen })?;
        }
        for (index, event) in steps.into_iter().enumerate() {
            let when = if index == 2 { When::After { least: after, most: after } } else { When::NOW };
            self.line(position, &Line { only: None, when, who: who.to_owned(), event })?;
        }
        Ok(())
    }

    fn note(&mut self, who: &str, text: &str) {
        self.note_at(self.subject.now(), who, text);
    }

    fn note_at(&mut self, at: Duration, who: &str, text: &str) {
        let name = if who.is_empty() { String::new() } else { format!("{who}: ") };
        self.log.push(format!("{}.{:06} {name}{text}", at.as_secs(), at.subsec_micros()));
    }
}

/// What of a segment the first of its pieces must be, as long as `seen` is: the last one carries what ends it.
fn first_piece(whole: &Segment, seen: &Seen) -> Segment {
    let length = (seen.payload.len() as u32).clamp(1, whole.payload.max(1));
    if length >= whole.payload {
        return whole.clone();
    }
    Segment { payload: length, flags: whole.flags.without(TcpFlags::FIN.with(TcpFlags::PSH)), ..whole.clone() }
}
