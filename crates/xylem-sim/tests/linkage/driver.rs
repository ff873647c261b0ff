//! The driver: one seeded life of a path, verb by verb, and a transcript of everything that comes out at either end.

use xylem_core::{
    Batch, Control, Duration, End, Event, Facts, Instant, Message, NetworkError, NetworkErrorKind, Outbox, Path, Pool,
    Question, Random, Session, Setting,
};

/// What came of a life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    pub frames: Vec<Vec<u8>>,
    pub raised: Vec<Vec<u8>>,
    pub told: Vec<String>,
    pub advised: Vec<String>,
    pub drops: Vec<String>,
    /// Credit that reached the bottom, in all.
    pub credit: usize,
    /// Refusals, rooms, deadlines, levels and credit, verb by verb.
    pub other: Vec<String>,
    pub state: Vec<u8>,
}

impl Transcript {
    /// What differs first, if anything does.
    pub fn differs(&self, other: &Transcript) -> Option<String> {
        fn first<T: PartialEq + std::fmt::Debug>(what: &str, one: &[T], two: &[T]) -> Option<String> {
            let at = (0..one.len().max(two.len())).find(|&at| one.get(at) != two.get(at))?;
            Some(format!("{what} number {at}: {:?} against {:?}", one.get(at), two.get(at)))
        }
        first("frame", &self.frames, &other.frames)
            .or_else(|| first("raised message", &self.raised, &other.raised))
            .or_else(|| first("told control", &self.told, &other.told))
            .or_else(|| first("advice", &self.advised, &other.advised))
            .or_else(|| first("drop", &self.drops, &other.drops))
            .or_else(|| first("sum of credit", &[self.credit], &[other.credit]))
            .or_else(|| first("verb's outcome", &self.other, &other.other))
            .or_else(|| first("byte of the exported state", &self.state, &other.state))
    }

    /// The same without the order in which different layers counted drops, told and advised, and without what was seen
    /// between verbs.
    pub fn without_order_of_layers(mut self) -> Transcript {
        self.told.sort();
        self.advised.sort();
        self.drops.sort();
        self.other.clear();
        self
    }

    fn take(&mut self, out: &mut Outbox) {
        self.frames.extend(out.drain_down().map(|message| message.to_vec()));
        self.raised.extend(out.drain_up().map(|message| message.to_vec()));
        self.told.extend(out.drain_told().map(|control| format!("{control:?}")));
        self.advised.extend(out.drain_advice().map(|control| format!("{control:?}")));
        self.drops.extend(out.drain_dropped().map(|reason| reason.to_string()));
        let (levels, credit) = (out.take_levels(), out.take_credit());
        self.credit += credit;
        if credit > 0 || levels != Default::default() {
            self.other.push(format!("{levels:?} credit {credit}"));
        }
        assert!(out.is_empty(), "something was left in the outbox");
    }
}

fn outbox() -> Outbox {
    Outbox::new(Instant::ZERO, Random::seeded(0), Pool::new(64, 1))
}

fn path(session: Box<dyn Session>, seed: u64) -> Path {
    Path::of(session, End::Device(0), Random::seeded(seed ^ 0xca11))
}

fn message(random: &mut Random) -> Message {
    let length = if random.below(20) == 0 { 5000 + random.below(1500) } else { random.below(40) };
    let mut bytes = vec![0; length as usize];
    random.fill(&mut bytes);
    Message::from_bytes(&bytes)
}

fn control(random: &mut Random) -> Control {
    let facts = Facts { mtu: 1500, segment_max: 1500, headroom: 0, local: None, remote: None, number: 0 };
    match random.below(8) {
        0 => Control::Facts(facts),
        1 => Control::Writable,
        2 => Control::Event(Event::PeerClosed),
        3 => Control::NetworkError(NetworkError { kind: NetworkErrorKind::PortUnreachable, sequence: Some(7) }),
        4 => Control::Confirmed,
        5 => Control::Question(Question::Mtu, None),
        6 => Control::Set(Setting::HopLimit(random.below(6) as u8)),
        _ => Control::Set(Setting::NoDelay(true)),
    }
}

/// The verbs of one life, done to `session`, whatever it is made of.
pub fn live(session: Box<dyn Session>, seed: u64) -> Transcript {
    let mut random = Random::seeded(seed);
    let mut path = path(session, seed);
    let mut out = outbox();
    let mut transcript = Transcript::default();
    for step in 0..60 {
        let refused = match random.below(12) {
            0..=4 => {
                path.pop(&mut message(&mut random), &mut out);
                false
            }
            5..=7 => {
                let mut message = message(&mut random);
                let before = message.to_vec();
                let taken = path.push(&mut message, &mut out);
                assert!(taken || message.to_vec() == before, "a message that was refused has changed");
                !taken
            }
            8 => {
                path.credit(1 + random.below(100) as usize, &mut out);
                false
            }
            9 | 10 => {
                out.now = out.now + Duration::from_millis(random.below(4));
                path.timeout(&mut out);
                false
            }
            _ => {
                let mut control = control(&mut random);
                let handled = path.control(&mut control, &mut out);
                transcript.other.push(format!("{handled:?} {control:?}"));
                false
            }
        };
        if step == 50 {
            path.close(&mut out);
        }
        transcript.take(&mut out);
        let (room, deadline) = (path.room(), path.deadline());
        transcript.other.push(format!("{step}: refused {refused}, room {room}, deadline {deadline:?}"));
    }
    let mut headers = [0; 16];
    let piece = xylem_core::Piece { index: 0, offset: 0, length: 0, last: true };
    let length = path.cut(&mut headers, &piece);
    transcript.other.push(format!("cut {:?}", &headers[..length]));
    transcript.state = path.export().as_bytes().to_vec();
    transcript
}

/// Batches of messages, popped as batches or one by one.
pub fn pops(session: Box<dyn Session>, seed: u64, batched: bool) -> Transcript {
    let mut random = Random::seeded(seed);
    let mut path = path(session, seed);
    let mut out = outbox();
    let mut transcript = Transcript::default();
    for _ in 0..8 {
        let count = 1 + random.below(12);
        let messages: Vec<Message> = (0..count).map(|_| message(&mut random)).collect();
        if batched {
            let mut batch = Batch::default();
            messages.into_iter().for_each(|message| batch.add(message));
            path.pop_batch(&mut batch, &mut out);
            assert!(batch.is_empty(), "a batch was not emptied");
            transcript.take(&mut out);
        } else {
            for mut message in messages {
                path.pop(&mut message, &mut out);
                transcript.take(&mut out);
            }
        }
        out.now = out.now + Duration::from_millis(random.below(4));
        path.timeout(&mut out);
        transcript.take(&mut out);
    }
    transcript.state = path.export().as_bytes().to_vec();
    transcript
}
