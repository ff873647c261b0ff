//! A carrier: it takes every frame that arrives on one interface to another, and back, by two links of the same model, code
//! and seeds as the simulator's. What the senders' kernels left undone is done first, so that a link carries whole frames
//! of at most its MTU. It is one thread's work, and it says how late it was and how much of a processor it took.

mod lateness;

pub use lateness::Lateness;

use crate::clock::Clock;
use crate::device::cut::cut;
use crate::packet::{PacketSocket, Room};
use crate::pin;
use crate::poll::{self, Source};
use crate::system::packet::{BATCH_MAX, Tag};
use smallvec::SmallVec;
use std::io::{self, IoSlice, IoSliceMut};
use xylem_core::Instant;
use xylem_core::time::{Duration, earlier};
use xylem_graph::link::{Link, LinkCounters, LinkModel, LinkModelError};
use xylem_wire::{EtherType, EthernetHeader, Header, VnetHeader};

/// The bytes of a frame that a carrier takes from the kernel: the vnet header, an Ethernet header with a VLAN tag, and
/// the largest IP packet.
const ROOM_BYTES: usize = VnetHeader::LEN + EthernetHeader::LEN + 4 + 65_535;

/// Batches taken from one end before the other gets its turn.
const BATCHES_MAX: usize = 4;

/// The frame buffers kept for use again: what two links of 1 Gb/s and 50 ms hold.
const SHELF_MAX: usize = 8192;

/// How long before a deadline a spinning carrier no longer sleeps: what a wake-up takes at most on a quiet machine.
const SPIN_SPAN: Duration = Duration::from_micros(60);

/// What happened on one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WayCounters {
    /// The link's own.
    pub link: LinkCounters,
    /// Bytes of the frames that were handed to the link.
    pub bytes_in: u64,
    /// Bytes of the frames that were sent behind it.
    pub bytes_out: u64,
    /// Messages that stood for several frames and were cut.
    pub cut: u64,
    /// Frames that contradicted themselves or that the kernel could not hand over.
    pub unreadable: u64,
    /// Frames that the kernel dropped because the carrier did not take them in time. Not the link's doing: a run with any
    /// of these says more of the machine than of the link.
    pub tail_drops: u64,
    /// Frames that the interface at the end did not take.
    pub refused: u64,
    /// How late frames were sent.
    pub lateness: Lateness,
}

/// What it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How long it carried.
    pub wall: Duration,
    /// Processor time of the carrying thread, what it spun included. A veth's receiver does part of its work in the
    /// sender's thread, and that is in it.
    pub processor: Duration,
    /// Of that, what it spun without anything to do.
    pub spun: Duration,
    /// It could have run, but others had the processor.
    pub waited: Duration,
}

impl Cost {
    /// The share of one processor it needed, in thousandths: without what it spun.
    pub fn per_mille(&self) -> u64 {
        let worked = self.processor.saturating_sub(self.spun);
        (worked.as_nanos() * 1000 / self.wall.as_nanos().max(1)) as u64
    }
}

/// See the module's text.
pub struct Carrier {
    ends: [PacketSocket; 2],
    /// `ways[0]` leads from `ends[0]` to `ends[1]`.
    ways: [Way; 2],
    clock: Clock,
    spin: bool,
    rooms: Vec<[u8; ROOM_BYTES]>,
    /// Buffers whose frames have been sent.
    shelf: Vec<Vec<u8>>,
    cost: Cost,
}

struct Way {
    link: Link<Vec<u8>>,
    counters: WayCounters,
    /// How many frames came at once last time.
    last: usize,
}

/// What the kernel said of a frame.
struct Arrival {
    length: usize,
    whole: bool,
    tag: Option<Tag>,
}

impl Carrier {
    /// Joins two interfaces: `models[0]` leads from the first to the second, `models[1]` back, with random streams from
    /// `seed` or the models' own. With `spin` it does not sleep through the last microseconds before a frame
    /// is due.
    ///
    /// # Errors
    /// The first value of a model outside its limits.
    pub fn new(
        ends: [PacketSocket; 2],
        models: [&LinkModel; 2],
        seed: u64,
        spin: bool,
    ) -> Result<Carrier, LinkModelError> {
        let way = |link| Way { link, counters: WayCounters::default(), last: 1 };
        let ways = Link::both_ways(models, seed)?.map(way);
        let rooms = vec![[0; ROOM_BYTES]; BATCH_MAX];
        Ok(Carrier { ends, ways, clock: Clock::start(), spin, rooms, shelf: Vec::new(), cost: Cost::default() })
    }

    /// What happened so far, on the way from the first end to the second and on the way back.
    pub fn counters(&self) -> [WayCounters; 2] {
        [0, 1].map(|way| WayCounters {
            link: self.ways[way].link.counters(),
            tail_drops: self.ends[way].tail_drops(),
            ..self.ways[way].counters.clone()
        })
    }

    /// Frames on the way at this moment, in both directions.
    pub fn in_flight(&self) -> [usize; 2] {
        [0, 1].map(|way| self.ways[way].link.in_flight())
    }

    /// What it has cost so far.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Carries for `span`, or until `stop` says so; it is asked after each sleep and at least every 50 ms. To be called
    /// again to go on; frames on the way stay there in between.
    ///
    /// # Errors
    /// The thread cannot wait: no memory.
    pub fn carry(&mut self, span: Duration, stop: impl Fn() -> bool) -> io::Result<()> {
        // A wait that is late is still a wait, and the lateness is in the report.
        let _ = pin::wait_exactly();
        let (begun, share) = (self.clock.now(), pin::thread_share());
        let end = begun + span;
        let mut asked = begun;
        let mut now = begun;
        let outcome = loop {
            if now.since(asked) >= STOP_SPAN {
                asked = now;
                if stop() {
                    break Ok(());
                }
            }
            if now >= end {
                break Ok(());
            }
            let busy = self.round();
            let after = self.clock.now();
            if busy {
                now = after;
                continue;
            }
            let next = self.ways.iter().fold(None, |soonest, way| earlier(soonest, way.link.next()));
            let slept = self.sleep(next, end.min(asked + STOP_SPAN));
            if let Err(error) = slept {
                break Err(error);
            }
            let up = self.clock.now();
            if slept.is_ok_and(|slept| !slept) {
                self.cost.spun += up.since(now);
            } else if stop() {
                break Ok(());
            }
            now = up;
        };
        self.cost.wall += self.clock.now().since(begun);
        let now = pin::thread_share();
        self.cost.processor += now.ran.saturating_sub(share.ran);
        self.cost.waited += now.waited.saturating_sub(share.waited);
        outcome
    }

    /// Takes what has arrived and sends what is due, on both ways: true if there was anything.
    fn round(&mut self) -> bool {
        let mut busy = false;
        for from in [0, 1] {
            for _ in 0..BATCHES_MAX {
                let (got, asked) = self.take_in(from);
                busy |= got > 0;
                if got < asked {
                    break;
                }
            }
            busy |= self.send_due(from);
        }
        busy
    }

    /// Sleeps until a frame arrives or `next` or `limit` has come; false if that is so near that it spins.
    fn sleep(&self, next: Option<Instant>, limit: Instant) -> io::Result<bool> {
        let mut until = self.clock.until(limit);
        if let Some(next) = next {
            until = until.min(self.clock.until(next));
            if self.spin {
                if until <= SPIN_SPAN {
                    std::hint::spin_loop();
                    return Ok(false);
                }
                until -= SPIN_SPAN;
            }
        }
        let [one, other] = &self.ends;
        poll::wait(&mut [Source::readable(one), Source::readable(other)], Some(until)).map(|_| true)
    }

    /// Hands frames of one end to its link, as many as come in one call: how many came, and how many could have.
    fn take_in(&mut self, from: usize) -> (usize, usize) {
        let Carrier { ends, ways, clock, rooms, shelf, .. } = self;
        let way = &mut ways[from];
        let asked = (way.last * 2).clamp(1, BATCH_MAX);
        let mut arrivals: SmallVec<[Arrival; BATCH_MAX]> = SmallVec::new();
        let got = {
            let mut parts: SmallVec<[[IoSliceMut<'_>; 1]; BATCH_MAX]> =
                rooms[..asked].iter_mut().map(|room| [IoSliceMut::new(room)]).collect();
            let mut slots: SmallVec<[Room<'_, '_>; BATCH_MAX]> = parts.iter_mut().map(|it| Room::new(it)).collect();
            let got = ends[from].receive(0, &mut slots);
            let got = got.inspect_err(|_| way.counters.unreadable += 1).unwrap_or(0);
            let arrival = |it: &Room<'_, '_>| Arrival { length: it.length, whole: it.whole, tag: it.tag };
            arrivals.extend(slots[..got].iter().map(arrival));
            got
        };
        way.last = got;
        let now = clock.now();
        for (room, Arrival { length, whole, tag }) in rooms.iter_mut().zip(arrivals) {
            let (true, Some(length)) = (whole, length.checked_sub(VnetHeader::LEN)) else {
                way.counters.unreadable += 1;
                continue;
            };
            let (vnet, frame) = room.split_at_mut(VnetHeader::LEN);
            let header = VnetHeader::parse(vnet).expect("its bytes are as many as a vnet header has");
            let (mut pieces, Way { link, counters, .. }) = (0u64, &mut *way);
            let done = cut(&header, &mut frame[..length], |head, rest| {
                let mut bytes = shelf.pop().unwrap_or_default();
                bytes.clear();
                put_head(&mut bytes, head, tag);
                bytes.extend_from_slice(rest);
                counters.bytes_in += bytes.len() as u64;
                pieces += 1;
                link.send(now, bytes);
            });
            counters.cut += u64::from(pieces > 1);
            counters.unreadable += u64::from(done.is_err());
        }
        (got, asked)
    }

    /// Sends what has come to the end of the link from this end: true if there was anything.
    fn send_due(&mut self, from: usize) -> bool {
        const VNET: [u8; VnetHeader::LEN] = [0; VnetHeader::LEN];
        let Carrier { ends, ways, clock, shelf, .. } = self;
        let Way { link, counters, .. } = &mut ways[from];
        let mut any = false;
        loop {
            let now = clock.now();
            let mut due: SmallVec<[Vec<u8>; BATCH_MAX]> = SmallVec::new();
            while due.len() < BATCH_MAX
                && let Some(at) = link.next()
                && let Some(frame) = link.receive(now)
            {
                counters.lateness.note(now.since(at));
                counters.bytes_out += frame.len() as u64;
                due.push(frame);
            }
            if due.is_empty() {
                return any;
            }
            any = true;
            let frames: SmallVec<[[IoSlice<'_>; 2]; BATCH_MAX]> =
                due.iter().map(|frame| [IoSlice::new(&VNET), IoSlice::new(frame)]).collect();
            counters.refused += (due.len() - ends[1 - from].transmit_all(&frames)) as u64;
            drop(frames);
            let room = SHELF_MAX.saturating_sub(shelf.len());
            shelf.extend(due.into_iter().take(room));
        }
    }
}

/// How often a carrier that never sleeps asks whether to stop.
const STOP_SPAN: Duration = Duration::from_millis(50);

/// Appends the front of a frame, with the VLAN tag that the kernel took off where it had one (IEEE 802.1Q).
fn put_head(bytes: &mut Vec<u8>, head: &[u8], tag: Option<Tag>) {
    let (Some((kind, value)), Ok(header)) = (tag, EthernetHeader::parse(head)) else {
        return bytes.extend_from_slice(head);
    };
    let mut front = [0; EthernetHeader::LEN];
    EthernetHeader { kind: EtherType(kind), ..header }.build(&mut front);
    bytes.extend_from_slice(&front);
    bytes.extend_from_slice(&value.to_be_bytes());
    bytes.extend_from_slice(&header.kind.0.to_be_bytes());
    bytes.extend_from_slice(&head[EthernetHeader::LEN..]);
}

#[cfg(test)]
mod tests;
