use super::*;
use crate::control::{Answer, Event, Question};
use crate::path::{End, Path};
use crate::pool::Pool;
use crate::random::Random;
use std::sync::{Arc, Mutex};

type Verb = fn(&mut Scripted, &mut Message, &mut Outbox) -> Verdict;
type OnControl = fn(&mut Scripted, &mut Control, &mut Outbox) -> Handled;

/// A session that does what a test wrote down, and keeps a log of what was done to it.
struct Scripted {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
    pop: Verb,
    push: Verb,
    control: OnControl,
    room: usize,
    merges: bool,
    calls: u8,
}

impl Scripted {
    fn new(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Scripted {
        Scripted {
            name,
            log: Arc::clone(log),
            pop: |_, _, _| Verdict::Pass,
            push: |_, _, _| Verdict::Pass,
            control: |_, _, _| Handled::No,
            room: usize::MAX,
            merges: false,
            calls: 0,
        }
    }

    fn note(&self, what: String) {
        self.log.lock().expect("no test thread panics with the log").push(format!("{} {what}", self.name));
    }

    /// Puts the number of this call behind the message: which one went first is seen on the wire.
    fn number(&mut self, message: &mut Message) {
        message.append(Message::from_bytes(&[self.calls]));
        self.calls += 1;
    }
}

impl Session for Scripted {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.note(format!("pop {:?}", message.to_vec()));
        (self.pop)(self, message, out)
    }
    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.note(format!("push {:?}", message.to_vec()));
        (self.push)(self, message, out)
    }
    fn room(&self) -> usize {
        self.room
    }
    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.note(format!("control {control:?}"));
        (self.control)(self, control, out)
    }
    fn merge(&mut self, held: &mut Message, next: &mut Message) -> bool {
        if self.merges {
            held.append(std::mem::take(next));
        }
        self.merges
    }
}

fn outbox() -> Outbox {
    Outbox::new(Instant::ZERO, Random::seeded(1), Pool::new(1, 1))
}

fn path(session: impl Session + 'static) -> Path {
    Path::of(session, End::Device(0), Random::seeded(2))
}

fn down(out: &mut Outbox) -> Vec<Vec<u8>> {
    out.drain_down().map(|message| message.to_vec()).collect()
}

fn log_of(log: &Arc<Mutex<Vec<String>>>, name: &str) -> Vec<String> {
    let log = log.lock().expect("no test thread panics with the log");
    log.iter().filter(|line| line.starts_with(name)).cloned().collect()
}

/// A lone session's path sends what passes before what was sent besides; over another session it must be the same.
#[test]
fn what_passes_goes_before_what_was_sent_besides_over_any_lower_session() {
    let log = Arc::default();
    let chatty = || {
        let mut chatty = Scripted::new("chatty", &log);
        chatty.push = |_, _, out| {
            out.push(Message::from_bytes(b"besides"));
            Verdict::Pass
        };
        chatty
    };
    let mut numbering = Scripted::new("numbering", &log);
    numbering.push = |this, message, _| {
        this.number(message);
        Verdict::Pass
    };
    let mut out = outbox();
    assert!(path(chatty()).push(&mut Message::from_bytes(b"passes"), &mut out));
    assert_eq!(down(&mut out), [b"passes".to_vec(), b"besides".to_vec()]);
    let mut stacked = path(Stack { upper: chatty(), lower: numbering });
    assert!(stacked.push(&mut Message::from_bytes(b"passes"), &mut out));
    assert_eq!(down(&mut out), [b"passes\0".to_vec(), b"besides\x01".to_vec()]);
}

#[test]
fn what_the_upper_session_raises_and_tells_is_not_shown_to_it_again() {
    let log = Arc::default();
    let mut upper = Scripted::new("upper", &log);
    upper.pop = |_, message, out| {
        message.truncate(1);
        out.raise(Message::from_bytes(b"raised by the upper"));
        out.tell(Control::Event(Event::Urgent));
        Verdict::Pass
    };
    let mut lower = Scripted::new("lower", &log);
    lower.pop = |_, _, out| {
        out.tell(Control::Event(Event::PeerClosed));
        Verdict::Pass
    };
    let mut path = path(Stack { upper, lower });
    let mut out = outbox();
    path.pop(&mut Message::from_bytes(b"abc"), &mut out);
    let raised: Vec<_> = out.drain_up().map(|message| message.to_vec()).collect();
    assert_eq!(raised, [b"a".to_vec(), b"raised by the upper".to_vec()]);
    let told: Vec<_> = out.drain_told().collect();
    assert_eq!(told, [Control::Event(Event::Urgent), Control::Event(Event::PeerClosed)]);
    assert_eq!(log_of(&log, "upper"), ["upper pop [97, 98, 99]", "upper control Event(PeerClosed)"]);
}

#[test]
fn what_the_lower_session_advises_is_not_shown_to_it() {
    let log = Arc::default();
    let mut upper = Scripted::new("upper", &log);
    upper.push = |_, message, out| {
        out.push(std::mem::take(message));
        Verdict::Keep
    };
    let mut lower = Scripted::new("lower", &log);
    lower.push = |_, _, out| {
        out.advise(Control::Confirmed);
        Verdict::Pass
    };
    let mut path = path(Stack { upper, lower });
    let mut out = outbox();
    assert!(path.push(&mut Message::from_bytes(b"m"), &mut out));
    assert_eq!(log_of(&log, "lower"), ["lower push [109]"]);
    assert_eq!(out.drain_advice().collect::<Vec<_>>(), [Control::Confirmed]);
}

/// Each layer may take its header off an answer, however the layers are grouped.
#[test]
fn an_answer_passes_the_session_between_asker_and_answerer_in_either_association() {
    let three = |log: &Arc<_>| {
        let mut asker = Scripted::new("asker", log);
        asker.push = |_, _, out| {
            out.advise(Control::Question(Question::Mtu, None));
            Verdict::Pass
        };
        let mut between = Scripted::new("between", log);
        between.control = |_, control, _| {
            if let Control::Answer(Answer::Mtu(mtu)) = control {
                *mtu -= 8;
            }
            Handled::No
        };
        let mut answerer = Scripted::new("answerer", log);
        answerer.control = |_, control, _| match control {
            Control::Question(Question::Mtu, answer) => {
                *answer = Some(Answer::Mtu(1500));
                Handled::Yes
            }
            _ => Handled::No,
        };
        (asker, between, answerer)
    };
    let log = Arc::default();
    let (a, b, c) = three(&log);
    let mut right = path(Stack { upper: a, lower: Stack { upper: b, lower: c } });
    let other = Arc::default();
    let (a, b, c) = three(&other);
    let mut left = path(Stack { upper: Stack { upper: a, lower: b }, lower: c });
    let mut out = outbox();
    assert!(right.push(&mut Message::from_bytes(b"m"), &mut out));
    assert!(left.push(&mut Message::from_bytes(b"m"), &mut out));
    assert_eq!(log_of(&log, "asker").last().map(String::as_str), Some("asker control Answer(Mtu(1492))"));
    for name in ["asker", "between", "answerer"] {
        assert_eq!(log_of(&log, name), log_of(&other, name));
    }
}

/// A peer decides how many messages come in one batch: the limit on controls is one for each verb, not for the batch.
#[test]
fn a_full_batch_of_messages_may_cause_a_control_each() {
    let log = Arc::default();
    let mut upper = Scripted::new("upper", &log);
    upper.pop = |_, _, out| {
        out.advise(Control::Confirmed);
        out.tell(Control::Event(Event::Urgent));
        Verdict::Pass
    };
    let session = Stack { upper, lower: Scripted::new("lower", &log) };
    let mut path = path(Stack { upper: Scripted::new("top", &log), lower: session });
    let mut batch = Batch::default();
    (0..Batch::LIMIT).for_each(|n| batch.add(Message::from_bytes(&[n as u8])));
    let mut out = outbox();
    path.pop_batch(&mut batch, &mut out);
    assert_eq!(out.drain_up().count(), Batch::LIMIT);
    assert_eq!(out.drain_advice().count(), Batch::LIMIT);
    assert_eq!(out.drain_told().count(), Batch::LIMIT);
}

#[test]
fn the_room_below_shrinks_as_a_verb_sends() {
    let log = Arc::default();
    let mut upper = Scripted::new("upper", &log);
    upper.pop = |this, _, out| {
        this.note(format!("room {}", out.room_bytes()));
        out.push(Message::from_bytes(&[0; 30]));
        this.note(format!("room {}", out.room_bytes()));
        Verdict::Keep
    };
    let mut lower = Scripted::new("lower", &log);
    lower.room = 100;
    let mut path = path(Stack { upper, lower });
    path.pop(&mut Message::from_bytes(b"m"), &mut outbox());
    assert_eq!(log_of(&log, "upper room"), ["upper room 100", "upper room 70"]);
}

#[test]
fn a_group_of_sessions_merges_as_its_lowest_does() {
    let log = Arc::default();
    let new = |name| Box::new(Scripted::new(name, &log)) as Box<dyn Session>;
    let merging = || Scripted { merges: true, ..Scripted::new("lower", &log) };
    let typed = Stack { upper: Scripted::new("upper", &log), lower: merging() };
    let boxed = Chain::new(vec![new("upper"), Box::new(merging())]);
    let groups: [Box<dyn Session>; 2] = [Box::new(typed), Box::new(boxed)];
    for group in groups {
        let mut path = path(Chain::new(vec![group, new("bottom")]));
        let mut batch = Batch::default();
        batch.add(Message::from_bytes(b"one "));
        batch.add(Message::from_bytes(b"two"));
        let mut out = outbox();
        path.pop_batch(&mut batch, &mut out);
        let raised: Vec<_> = out.drain_up().map(|message| message.to_vec()).collect();
        assert_eq!(raised, [b"one two".to_vec()]);
    }
}
