//! A session that talks: from one message it makes several, it keeps, drops, raises, tells, asks, answers, returns credit
//! and runs out of room, all by chance. It keeps a digest of everything that was done to it, in order, and exports that:
//! two linkages are the same only if every session saw the same.

use std::hash::Hasher;
use xylem_core::{
    Answer, Control, DropReason, Duration, Event, Handled, Instant, Message, Outbox, Piece, Question, Random, Record,
    Session, Setting, Verdict,
};

pub static POPPED: DropReason = DropReason::new("chatty", "dropped on the way up");
pub static PUSHED: DropReason = DropReason::new("chatty", "dropped on the way down");
pub static KEPT: DropReason = DropReason::new("chatty", "kept for too long");
pub static NO_ROOM: DropReason = DropReason::new("chatty", "no room below");

/// Which habits a session has.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// It draws from the path's stream rather than from its own, and its digest goes over everything it sees: then every
    /// draw of every session must come in order. Otherwise it has a stream and a digest for each direction.
    pub strict: bool,
    /// From one message on the way up it makes several.
    pub raises: bool,
    /// It sends on its own account when something comes up.
    pub sends_on_pop: bool,
    /// It sends more than it was given on the way down.
    pub sends_on_push: bool,
    /// What goes down makes it raise or tell at once.
    pub echoes: bool,
    /// It tells those above.
    pub tells: bool,
    /// It asks and advises those below.
    pub asks: bool,
    /// It has room for a limited number of bytes, which time frees.
    pub bounded: bool,
    /// It keeps messages for a while.
    pub keeps: bool,
    /// It returns credit of its own, and counts how often it is given some.
    pub credits: bool,
}

impl Habits {
    pub const ALL: Habits = Habits {
        strict: true,
        raises: true,
        sends_on_pop: true,
        sends_on_push: true,
        echoes: true,
        tells: true,
        asks: true,
        bounded: true,
        keeps: true,
        credits: true,
    };

    /// It adds its header, and drops now and then.
    pub const QUIET: Habits = Habits {
        strict: false,
        raises: false,
        sends_on_pop: false,
        sends_on_push: false,
        echoes: false,
        tells: false,
        asks: false,
        bounded: false,
        keeps: false,
        credits: false,
    };
}

/// What a session is made of; it can be made again.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub name: u8,
    pub seed: u64,
    pub habits: Habits,
}

/// How much a session may send, raise and tell on its own account in its life: talk among sessions ends.
const FUEL: u32 = 30;
/// Room a session wants below before it sends on its own account: more than all sessions' fuel can use up meanwhile.
const SLACK: usize = 4096;
/// What a bounded session holds.
const BOUND: usize = 16 * 1024;

/// What a verb is about.
#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
    /// Time, controls, credit, the close.
    Beside,
}

/// See the module's text.
pub struct Chatty {
    spec: Spec,
    own: [Random; 3],
    digests: [u64; 3],
    way: Way,
    fuel: [u32; 3],
    kept: Vec<Message>,
    release: Option<Instant>,
    /// Bytes that were pushed and that time has not freed.
    occupied: usize,
    refused: bool,
    closing: bool,
    over: bool,
}

impl Chatty {
    pub fn new(spec: Spec) -> Chatty {
        let mut random = Random::seeded(spec.seed);
        let own = [random.child(), random.child(), random.child()];
        Chatty {
            spec,
            own,
            digests: [0; 3],
            way: Way::Beside,
            fuel: [FUEL; 3],
            kept: Vec::new(),
            release: None,
            occupied: 0,
            refused: false,
            closing: false,
            over: false,
        }
    }

    fn saw(&mut self, way: Way, what: &str, bytes: &[u8]) {
        self.way = way;
        let digest = &mut self.digests[if self.spec.habits.strict { 0 } else { way as usize }];
        #[allow(deprecated, reason = "a fixed hash, so that a seed that fails fails the same way in every build")]
        let mut hasher = std::hash::SipHasher::new();
        hasher.write_u64(*digest);
        hasher.write(what.as_bytes());
        hasher.write(bytes);
        *digest = hasher.finish();
    }

    fn draw(&mut self, out: &mut Outbox, bound: u64) -> u64 {
        if self.spec.habits.strict { out.random.below(bound) } else { self.own[self.way as usize].below(bound) }
    }

    fn chance(&mut self, out: &mut Outbox, habit: bool, percent: u64) -> bool {
        habit && *self.fuel() > 0 && self.draw(out, 100) < percent
    }

    fn speak(&mut self, what: u8) -> Message {
        let left = self.fuel();
        *left = left.saturating_sub(1);
        let left = *left as u8;
        Message::from_bytes(&[b'!', self.spec.name, what, left])
    }

    /// What is left for the kind of verb at hand.
    fn fuel(&mut self) -> &mut u32 {
        &mut self.fuel[self.way as usize]
    }

    fn send(&mut self, out: &mut Outbox, what: u8) {
        let message = self.speak(what);
        if out.room_bytes() >= message.len() + SLACK {
            out.push(message);
        }
    }

    fn chatter_up(&mut self, out: &mut Outbox) {
        let habits = self.spec.habits;
        if self.chance(out, habits.tells, 20) {
            *self.fuel() -= 1;
            out.tell(Control::Event(Event::Urgent));
        }
        if self.chance(out, habits.raises, 30) {
            let message = self.speak(b'r');
            out.raise(message);
        }
    }

    fn chatter_down(&mut self, out: &mut Outbox) {
        let habits = self.spec.habits;
        if self.chance(out, habits.asks, 15) {
            *self.fuel() -= 1;
            out.advise(Control::Question(Question::Mtu, None));
        }
        if self.chance(out, habits.asks, 10) {
            *self.fuel() -= 1;
            out.advise(Control::Confirmed);
        }
    }

    /// A session says once that it is finished.
    fn end_if_empty(&mut self, out: &mut Outbox) {
        if self.closing && self.kept.is_empty() && !self.over {
            self.over = true;
            out.finish();
        }
    }

    /// Lets go of what was kept, upward or downward, or not at all.
    fn let_go(&mut self, out: &mut Outbox) {
        for message in std::mem::take(&mut self.kept) {
            match self.draw(out, 3) {
                0 => out.raise(message),
                1 if out.room_bytes() >= message.len() + SLACK => out.push(message),
                _ => out.dropped(&KEPT),
            }
        }
    }
}

impl Session for Chatty {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.saw(Way::Up, "pop", &message.to_vec());
        self.saw(Way::Up, "room", &out.room_bytes().to_be_bytes());
        let habits = self.spec.habits;
        if self.chance(out, habits.sends_on_pop, 40) {
            self.send(out, b'a');
        }
        self.chatter_up(out);
        self.chatter_down(out);
        if self.chance(out, habits.raises, 20) && message.len() > 1 {
            let rest = message.split_off(message.len() / 2);
            out.raise(rest);
        }
        if habits.keeps && self.kept.len() < 3 && self.draw(out, 10) == 0 {
            self.kept.push(std::mem::take(message));
            self.release = Some(out.now + Duration::from_millis(1 + self.draw(out, 4)));
            return Verdict::Keep;
        }
        if self.draw(out, 12) == 0 {
            return Verdict::Drop(&POPPED);
        }
        message.append(Message::from_bytes(&[self.spec.name]));
        if habits.credits {
            out.credit(1);
        }
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.saw(Way::Down, "push", &message.to_vec());
        self.saw(Way::Down, "room", &out.room_bytes().to_be_bytes());
        if out.room_bytes() < message.len() + SLACK {
            return Verdict::Drop(&NO_ROOM);
        }
        let habits = self.spec.habits;
        if self.chance(out, habits.sends_on_push, 30) {
            self.send(out, b'b');
        }
        self.chatter_down(out);
        if habits.echoes {
            self.chatter_up(out);
        }
        if habits.keeps && self.kept.len() < 3 && self.draw(out, 12) == 0 {
            self.kept.push(std::mem::take(message));
            self.release = Some(out.now + Duration::from_millis(1 + self.draw(out, 4)));
            return Verdict::Keep;
        }
        if self.draw(out, 15) == 0 {
            return Verdict::Drop(&PUSHED);
        }
        if habits.bounded {
            self.occupied += message.len();
            self.refused |= self.occupied > BOUND / 4;
        }
        message.prepend(1)[0] = self.spec.name;
        Verdict::Pass
    }

    fn room(&self) -> usize {
        if self.spec.habits.bounded { BOUND.saturating_sub(self.occupied) } else { usize::MAX }
    }

    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        let habits = self.spec.habits;
        if !habits.credits {
            return out.credit(bytes);
        }
        self.saw(Way::Beside, "credit", &bytes.to_be_bytes());
        if self.chance(out, habits.sends_on_pop, 20) {
            self.send(out, b'c');
        }
        out.credit(bytes + 1);
    }

    fn deadline(&self) -> Option<Instant> {
        self.release
    }

    fn timeout(&mut self, out: &mut Outbox) {
        self.saw(Way::Beside, "timeout", &out.now.as_nanos().to_be_bytes());
        if self.release.is_some_and(|release| release <= out.now) {
            self.release = None;
            self.let_go(out);
        }
        self.occupied -= self.occupied.min(4000);
        if self.refused && self.occupied <= BOUND / 4 {
            self.refused = false;
            out.writable();
        }
        self.end_if_empty(out);
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.saw(Way::Beside, "control", format!("{control:?}").as_bytes());
        let name = usize::from(self.spec.name);
        match control {
            Control::Question(Question::Mtu, answer) if name % 2 == 1 => {
                *answer = Some(Answer::Mtu(1000 + name));
                Handled::Yes
            }
            Control::Answer(Answer::Mtu(mtu)) => {
                *mtu -= 1;
                Handled::No
            }
            Control::Facts(facts) => {
                *facts = facts.clone().less(1);
                Handled::No
            }
            Control::Set(Setting::HopLimit(limit)) if usize::from(*limit) == name => Handled::Yes,
            Control::Event(_) | Control::Writable if self.spec.habits.echoes => {
                if self.chance(out, self.spec.habits.sends_on_pop, 20) {
                    self.send(out, b'w');
                }
                Handled::No
            }
            _ => Handled::No,
        }
    }

    fn cut(&self, headers: &mut [u8], _piece: &Piece) -> usize {
        headers[0] = self.spec.name;
        1
    }

    fn export(&self, record: &mut Record) {
        record.put(&(self.spec.name, self.digests, self.fuel, self.occupied, self.kept.len()));
    }

    fn close(&mut self, out: &mut Outbox) {
        self.saw(Way::Beside, "close", &[]);
        self.closing = true;
        self.end_if_empty(out);
    }
}
