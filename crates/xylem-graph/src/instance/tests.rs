//! What an application asks of a path is done in order and whole, whoever holds the path: a push that finds less room
//! than was told waits for it, and what was asked behind it waits as well.

use super::paths::{Cell, Tenant, Top};
use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use xylem_core::{
    Anchor, Control, Demux, DropReason, End, Facts, Handled, Message, OpenError, Opening, Outbox, Participants, Path,
    Protocol, Session, Setting, Verdict, View, drop::linker,
};

/// The most bytes the session takes until it is confirmed.
const ROOM: usize = 4;

/// A session with little room, which sends a letter for the end of its stream and one for its closing.
struct Narrow(usize);

impl Session for Narrow {
    fn pop(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        if message.len() > self.0 {
            return Verdict::Refuse;
        }
        self.0 -= message.len();
        Verdict::Pass
    }

    fn room(&self) -> usize {
        self.0
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Confirmed => self.0 = ROOM,
            Control::Set(Setting::SendClosed) => out.push(Message::from_bytes(b"F")),
            Control::Set(Setting::Abort) => out.push(Message::from_bytes(b"R")),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn close(&mut self, out: &mut Outbox) {
        out.push(Message::from_bytes(b"C"));
        out.finish();
    }
}

struct NarrowProtocol;

impl Protocol for NarrowProtocol {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let facts = opening.below()?;
        opening.stand(Narrow(ROOM));
        Ok(facts)
    }

    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        static NOTHING: DropReason = DropReason::new("narrow", "nothing comes here");
        Demux::Drop(&NOTHING)
    }
}

#[derive(Default)]
struct Wire(Mutex<String>, AtomicU64);

impl World for Wire {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.1.load(Ordering::Relaxed))
    }

    fn receive(&self, _arrivals: &mut Vec<(u16, Message)>, _limit: usize) {}

    fn transmit(&self, _device: u16, frame: &mut Message) -> bool {
        let text = String::from_utf8(frame.to_vec()).expect("the tests send letters");
        self.0.lock().expect("no test panics with it").push_str(&text);
        true
    }
}

#[derive(Default)]
struct Listens(Mutex<(Vec<usize>, bool)>);

impl Anchor for Listens {
    fn deliver(&self, _message: Message) {}
    fn told(&self, _control: Control) {}
    fn room(&self, room: usize) {
        self.0.lock().expect("no test panics with it").0.push(room);
    }
    fn gone(&self) {
        self.0.lock().expect("no test panics with it").1 = true;
    }
}

fn instance() -> Instance {
    let lowers = vec![Lower { below: Below::Device(0), number: 0 }];
    let protocol: Option<Arc<dyn Protocol>> = Some(Arc::new(NarrowProtocol));
    let node = Node { name: "narrow".into(), kind: "narrow".into(), protocol, lowers };
    let (checksum_offload, segment_offload) = (true, true);
    let device = DeviceFacts { name: "wire".into(), frame_max: 100, checksum_offload, segment_offload };
    Instance::new(vec![node], vec![device], Limits { paths: 8, enables: 1, small_buffers: 8, large_buffers: 1 }, 1)
}

fn push(letters: &str) -> Work {
    Work::Push(Message::from_bytes(letters.as_bytes()))
}

#[test]
fn a_push_that_finds_no_room_waits_and_what_follows_stays_behind_it() {
    let (instance, world, anchor) = (instance(), Wire::default(), Arc::new(Listens::default()));
    let mut shepherd = instance.shepherd();
    let sent = || world.0.lock().expect("no test panics with it").clone();
    let id = instance.open(&world, &mut shepherd, 0, Participants::default(), anchor.clone()).expect("it opens");
    let works = [push("abc"), push("de"), push("f"), Work::Control(Control::Set(Setting::SendClosed)), Work::Close];
    for work in works {
        instance.request(&world, &mut shepherd, id, work);
    }
    assert_eq!(sent(), "abc", "one byte of room is left, and nothing overtakes");
    assert_eq!(instance.path_count(), 1);
    instance.request(&world, &mut shepherd, id, Work::Control(Control::Confirmed));
    assert_eq!(sent(), "abcdefFC");
    assert_eq!(instance.path_count(), 0);
    assert_eq!(instance.reading().drops.total(), 0);
    let heard = anchor.0.lock().expect("no test panics with it").clone();
    assert_eq!(heard, (vec![4, 1], true));
}

#[test]
fn what_can_never_fit_is_dropped_and_an_abort_waits_for_nobody() {
    let (instance, world) = (instance(), Wire::default());
    let mut shepherd = instance.shepherd();
    let anchor = Arc::new(Listens::default());
    let id = instance.open(&world, &mut shepherd, 0, Participants::default(), anchor).expect("it opens");
    instance.request(&world, &mut shepherd, id, push("too long"));
    assert_eq!(instance.reading().drops.of(&linker::REFUSED), 1);
    for work in [push("abc"), push("de"), Work::Control(Control::Set(Setting::Abort)), Work::Close] {
        instance.request(&world, &mut shepherd, id, work);
    }
    assert_eq!(*world.0.lock().expect("no test panics with it"), "abcRC");
    assert_eq!(instance.path_count(), 0);
}

#[test]
fn an_inbox_refuses_arrivals_beyond_its_limit_and_nothing_else() {
    let path = Path::of(Narrow(ROOM), End::Device(0), Random::seeded(1));
    let id = PathId { index: 0, generation: 0 };
    let cell = Cell::new(id, Tenant::new(path, Top::Nobody, 0, Instant::ZERO));
    let arrival = || Work::Arrive(Message::default());
    for _ in 0..INBOX_MAX {
        assert!(cell.put(arrival()));
    }
    assert!(!cell.put(arrival()));
    let close = Control::Set(Setting::SendClosed);
    for work in [push("a"), Work::Control(close), Work::Credit(1), Work::Credit(2), Work::Close] {
        assert!(cell.put(work), "what an application asks for was lost");
    }
    let taken: Vec<Work> = std::iter::from_fn(|| cell.take()).skip(INBOX_MAX).collect();
    assert!(matches!(taken.as_slice(), [Work::Push(_), Work::Control(_), Work::Credit(3), Work::Close]), "{taken:?}");
}

/// Whoever comes when told to must not be told to come at once again, and nothing is served early: a host that trusts the
/// instance would turn for ever, and virtual time would stand still.
#[test]
fn who_comes_when_told_finds_the_wheel_moving_on() {
    for seed in 0..200 {
        let (instance, world) = (instance(), Wire::default());
        let (mut shepherd, mut random) = (instance.shepherd(), Random::seeded(seed));
        instance.turn(&world, &mut shepherd);
        let mut looks = 0;
        for _ in 0..40 {
            let now = world.now();
            let spread = 1 << random.below(38);
            let deadline = now + std::time::Duration::from_nanos(random.below(spread));
            // Nobody has this path, so the deadline is all there is to it.
            instance.arm(&world, deadline, Due::Path(PathId { index: 7, generation: 7 }));
            let before = instance.deadline_count();
            let Wake::At(at) = instance.wake() else { panic!("seed {seed}: a deadline stands and nobody is to come") };
            let idle = Instant::from_nanos(now.as_nanos() + random.below(spread));
            world.1.store(at.max(now).min(idle.max(now)).as_nanos(), Ordering::Relaxed);
            let wake = instance.turn(&world, &mut shepherd);
            let moved = instance.deadline_count() < before;
            if let (Wake::At(next), false) = (wake, moved) {
                looks += usize::from(next <= world.now());
            }
        }
        assert_eq!(looks, 0, "seed {seed}: told to come at once though nothing was due");
    }
}
