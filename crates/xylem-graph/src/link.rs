//! The link model: one direction of a cable that may be slow, long, lossy or out of order. It is a pure machine of
//! frames, instants and one random stream, so the simulator runs it in virtual time and a host runs it around a real
//! device, and a seed means the same in both. Everything it does to a frame is counted, and nothing in it grows without
//! a limit.

pub use model::{
    DELAY_MAX, LinkModel, LinkModelError, MILLION, MTU_MAX, MTU_MIN, QUEUE_FRAMES_MAX, RATE_BITS_PER_SECOND_MAX,
    RATE_BITS_PER_SECOND_MIN,
};

mod model;
mod text;

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use xylem_core::random::Random;
use xylem_core::time::{Duration, Instant};

/// The bytes of a frame that are the link's own header (Ethernet: two addresses and a type) and not in the MTU.
pub const LINK_HEADER_BYTES: usize = 14;

/// The frames a link may hold, waiting and on the way together: 10 Gb/s over 300 ms in full-size frames.
pub const IN_FLIGHT_FRAMES_MAX: usize = 262_144;

/// The bytes a link may hold, waiting and on the way together: so that large frames cannot fill the memory either.
pub const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;

/// The most places, in full-size frames or parts of the delay, that a frame is held back when it is reordered.
const HOLD_QUANTA_MAX: u64 = 3;

/// The smallest time a reordered frame is held back on a link without a rate.
const HOLD_QUANTUM_MIN: Duration = Duration::from_micros(10);

const _: () = assert!(QUEUE_FRAMES_MAX < IN_FLIGHT_FRAMES_MAX, "a full queue must leave room for frames on the way");
const _: () = assert!(MTU_MAX + LINK_HEADER_BYTES < IN_FLIGHT_BYTES_MAX, "the largest frame must fit");

/// What the link must be able to do to a frame. The frame starts with the link header of [`LINK_HEADER_BYTES`].
pub trait Frame {
    /// The length in bytes, link header included. It may not change while the link holds the frame.
    fn len(&self) -> usize;

    /// True if there is no byte in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A second frame with the same bytes.
    fn duplicate(&self) -> Self;

    /// Flips the bit numbered `bit`: bit `bit % 8` (0 the least significant) of byte `bit / 8`, which is below
    /// [`Frame::len`].
    fn flip_bit(&mut self, bit: usize);
}

impl Frame for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn duplicate(&self) -> Vec<u8> {
        self.clone()
    }

    fn flip_bit(&mut self, bit: usize) {
        self[bit / 8] ^= 1 << (bit % 8);
    }
}

/// What became of a frame at its sending. For tests and traces: a real cable tells its sender nothing, so a stack may
/// not be told either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on its way and will arrive, perhaps changed, late or twice.
    Queued,
    /// It will not arrive.
    Dropped(LinkDrop),
}

/// Why a link drops a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkDrop {
    /// The cable is pulled.
    Down,
    /// The frame is longer than the MTU and its link header.
    TooBig,
    /// The transmit queue is full.
    QueueFull,
    /// The link holds [`IN_FLIGHT_FRAMES_MAX`] frames or [`IN_FLIGHT_BYTES_MAX`] bytes: the model asks for more than
    /// this machine should hold.
    InFlightFull,
    /// It was lost on the wire.
    Lost,
}

/// What a link did since it was made. `sent + duplicated = delivered + dropped() + in flight`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames handed to the link.
    pub sent: u64,
    /// Frames the link handed out, copies included.
    pub delivered: u64,
    /// Copies the link made.
    pub duplicated: u64,
    /// Frames held back; whether another overtook them depends on what was sent behind them.
    pub reordered: u64,
    /// Frames with a bit flipped.
    pub corrupted: u64,
    /// Frames dropped for [`LinkDrop::Down`], those on the way when the cable was pulled included.
    pub down: u64,
    /// Frames dropped for [`LinkDrop::TooBig`].
    pub too_big: u64,
    /// Frames dropped for [`LinkDrop::QueueFull`].
    pub queue_full: u64,
    /// Frames dropped for [`LinkDrop::InFlightFull`].
    pub in_flight_full: u64,
    /// Frames dropped for [`LinkDrop::Lost`].
    pub lost: u64,
}

impl LinkCounters {
    /// Frames that never arrive, whatever the reason.
    pub fn dropped(&self) -> u64 {
        self.down + self.too_big + self.queue_full + self.in_flight_full + self.lost
    }

    fn count(&mut self, reason: LinkDrop) -> Fate {
        let counter = match reason {
            LinkDrop::Down => &mut self.down,
            LinkDrop::TooBig => &mut self.too_big,
            LinkDrop::QueueFull => &mut self.queue_full,
            LinkDrop::InFlightFull => &mut self.in_flight_full,
            LinkDrop::Lost => &mut self.lost,
        };
        *counter += 1;
        Fate::Dropped(reason)
    }
}

/// One direction of a link.
///
/// Frames are sent and received at instants the caller names; those should not go backwards. A frame waits in the
/// queue, takes its time on the wire, travels, and is due when it arrives.
pub struct Link<F: Frame> {
    model: LinkModel,
    random: Random,
    down: bool,
    /// The frames that have not arrived, the earliest on top.
    in_flight: BinaryHeap<Reverse<InFlight<F>>>,
    in_flight_bytes: usize,
    /// When each frame in the transmit queue leaves it, oldest first; lost frames wait and are sent like the others.
    departures: VecDeque<Instant>,
    /// When the transmitter is free; `remainder` divided by the rate is the part of a nanosecond after that.
    free_at: Instant,
    remainder: u64,
    /// The latest arrival of a frame that was not held back.
    last_arrival: Instant,
    /// The place of the next frame in the order of sending.
    order: u64,
    counters: LinkCounters,
}

impl<F: Frame> Link<F> {
    /// An idle link of this model with its own random stream (see [`LinkModel::random`]).
    ///
    /// # Errors
    /// The first value of the model outside its limits.
    pub fn new(model: LinkModel, random: Random) -> Result<Link<F>, LinkModelError> {
        model.check()?;
        Ok(Link {
            model,
            random,
            down: false,
            in_flight: BinaryHeap::new(),
            in_flight_bytes: 0,
            departures: VecDeque::new(),
            free_at: Instant::ZERO,
            remainder: 0,
            last_arrival: Instant::ZERO,
            order: 0,
            counters: LinkCounters::default(),
        })
    }

    /// The two directions of a wire: `models[0]` from the first end to the second, `models[1]` back. Each has a random
    /// stream of its own, drawn from `seed` or from its model's, so that the same seed means the same wherever a wire has
    /// two directions.
    ///
    /// # Errors
    /// As [`new`](Link::new).
    pub fn both_ways(models: [&LinkModel; 2], seed: u64) -> Result<[Link<F>; 2], LinkModelError> {
        let [there, back] = models;
        let there_random = there.random(seed).child();
        let mut back_stream = back.random(seed);
        back_stream.child();
        Ok([Link::new(there.clone(), there_random)?, Link::new(back.clone(), back_stream.child())?])
    }

    /// Sends a frame. It is due at [`Link::next`] or later if it is not dropped.
    ///
    /// Every frame draws the same number of random numbers, used or not: what one frame suffers, and what one
    /// probability is, never changes what chance has in store for another.
    pub fn send(&mut self, now: Instant, frame: F) -> Fate {
        let bytes = frame.len();
        let chance = Chance::drawn(&mut self.random, &self.model, bytes);
        self.counters.sent += 1;
        self.forget_departed(now);
        if let Some(reason) = self.refusal(bytes) {
            return self.counters.count(reason);
        }
        let departure = self.serialise(now, bytes);
        if chance.lost {
            return self.counters.count(LinkDrop::Lost);
        }
        // The clamp: without it a short jitter would overtake a long one, and jitter would reorder.
        let mut arrival = (departure + self.model.delay + chance.jitter).max(self.last_arrival);
        self.last_arrival = arrival;
        if chance.held_quanta > 0 {
            self.counters.reordered += 1;
            arrival = arrival + self.hold(chance.held_quanta);
        }
        self.launch(arrival, frame, chance);
        Fate::Queued
    }

    /// When the next frame is due; `None` if none is on the way.
    pub fn next(&self) -> Option<Instant> {
        self.in_flight.peek().map(|Reverse(first)| first.arrival)
    }

    /// The next frame that has arrived at `now`, in order of arrival; frames that arrive together come in the order of
    /// their sending.
    pub fn receive(&mut self, now: Instant) -> Option<F> {
        if self.next()? > now {
            return None;
        }
        let Reverse(first) = self.in_flight.pop()?;
        self.in_flight_bytes -= first.bytes;
        self.counters.delivered += 1;
        Some(first.frame)
    }

    /// What the link did so far.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// The frames on the way: sent or copied, neither delivered nor dropped.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The model in force.
    pub fn model(&self) -> &LinkModel {
        &self.model
    }

    /// Changes the model for frames sent from now on. Frames on the way keep their arrival; none of the new ones
    /// overtakes them because the delay became shorter.
    ///
    /// # Errors
    /// The first value of the model outside its limits; the old model stays in force.
    pub fn change(&mut self, model: LinkModel) -> Result<(), LinkModelError> {
        model.check()?;
        if model.rate_bits_per_second != self.model.rate_bits_per_second {
            // The remainder counts in parts of the old rate; a part of a nanosecond is forgotten.
            self.remainder = 0;
        }
        self.model = model;
        Ok(())
    }

    /// True if the cable is pulled.
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// Pulls the cable or puts it back. A pulled cable drops what is on the way, due or not, and every frame sent.
    pub fn set_down(&mut self, down: bool) {
        self.down = down;
        if down {
            self.counters.down += self.in_flight.len() as u64;
            self.in_flight.clear();
            self.in_flight_bytes = 0;
            self.departures.clear();
            self.free_at = Instant::ZERO;
            self.last_arrival = Instant::ZERO;
        }
    }

    /// Why a frame of this length is not taken now, if it is not.
    fn refusal(&self, bytes: usize) -> Option<LinkDrop> {
        if self.down {
            return Some(LinkDrop::Down);
        }
        if bytes > self.model.mtu + LINK_HEADER_BYTES {
            return Some(LinkDrop::TooBig);
        }
        if self.model.rate_bits_per_second.is_some() && self.departures.len() >= self.model.queue_frames_max {
            return Some(LinkDrop::QueueFull);
        }
        (!self.holds(bytes)).then_some(LinkDrop::InFlightFull)
    }

    /// True if a frame of this length more may be on the way.
    fn holds(&self, bytes: usize) -> bool {
        self.in_flight.len() < IN_FLIGHT_FRAMES_MAX && self.in_flight_bytes + bytes <= IN_FLIGHT_BYTES_MAX
    }

    fn forget_departed(&mut self, now: Instant) {
        while self.departures.front().is_some_and(|&departure| departure <= now) {
            self.departures.pop_front();
        }
    }

    /// Puts a frame behind those in the transmit queue and says when its last bit leaves. Parts of a nanosecond are
    /// carried on: at 10 Gb/s a small frame takes 51.2 ns, and cutting that off would be 2 % of the rate.
    fn serialise(&mut self, now: Instant, bytes: usize) -> Instant {
        let Some(rate) = self.model.rate_bits_per_second else {
            return now;
        };
        if now > self.free_at {
            self.free_at = now;
            self.remainder = 0;
        }
        let scaled = bit_nanoseconds(bytes) + self.remainder;
        self.free_at = self.free_at + Duration::from_nanos(scaled / rate);
        self.remainder = scaled % rate;
        self.departures.push_back(self.free_at);
        self.free_at
    }

    /// How long a frame held back by `quanta` is late: that many full-size frames, or parts of the delay if frames take
    /// no time. The nanosecond on top lets the frame that arrives together with it go first.
    fn hold(&self, quanta: u32) -> Duration {
        let quantum = match self.model.rate_bits_per_second {
            Some(rate) => Duration::from_nanos(bit_nanoseconds(self.model.mtu + LINK_HEADER_BYTES) / rate),
            None => (self.model.delay / 8).max(HOLD_QUANTUM_MIN),
        };
        quantum * quanta + Duration::from_nanos(1)
    }

    /// Puts the frame, and its copy if chance wants one, on the way.
    fn launch(&mut self, arrival: Instant, mut frame: F, chance: Chance) {
        let bytes = frame.len();
        let copy = chance.duplicated.then(|| frame.duplicate());
        if let Some(bit) = chance.flipped_bit {
            self.counters.corrupted += 1;
            frame.flip_bit(bit);
        }
        self.insert(arrival, bytes, frame);
        if let Some(copy) = copy
            && self.holds(bytes)
        {
            self.counters.duplicated += 1;
            self.insert(arrival, bytes, copy);
        }
    }

    fn insert(&mut self, arrival: Instant, bytes: usize, frame: F) {
        self.in_flight.push(Reverse(InFlight { arrival, order: self.order, bytes, frame }));
        self.order += 1;
        self.in_flight_bytes += bytes;
    }
}

/// The bits of a frame, each for a thousand million nanoseconds: divided by a rate, the time they take. The largest
/// frame comes to 5.3e14, so a remainder below the highest rate (1e12) cannot overflow the sum.
fn bit_nanoseconds(bytes: usize) -> u64 {
    bytes as u64 * 8 * 1_000_000_000
}

/// What chance decided for one frame.
struct Chance {
    lost: bool,
    duplicated: bool,
    /// Zero if the frame is not held back.
    held_quanta: u32,
    flipped_bit: Option<usize>,
    jitter: Duration,
}

impl Chance {
    /// Draws seven numbers, always seven: `below` takes one number from the stream whatever the bound.
    fn drawn(random: &mut Random, model: &LinkModel, bytes: usize) -> Chance {
        let lost = random.chance_per_million(model.loss_per_million);
        let duplicated = random.chance_per_million(model.duplicate_per_million);
        let reordered = random.chance_per_million(model.reorder_per_million);
        let quanta = 1 + random.below(HOLD_QUANTA_MAX) as u32;
        let corrupted = random.chance_per_million(model.corrupt_per_million);
        let payload_bits = bytes.saturating_sub(LINK_HEADER_BYTES) * 8;
        let bit = LINK_HEADER_BYTES * 8 + random.below(payload_bits.max(1) as u64) as usize;
        // The model's check keeps the jitter below an hour: it fits, and so does one more.
        let jitter = Duration::from_nanos(random.below(model.jitter.as_nanos() as u64 + 1));
        Chance {
            lost,
            duplicated,
            held_quanta: if reordered { quanta } else { 0 },
            flipped_bit: (corrupted && payload_bits > 0).then_some(bit),
            jitter,
        }
    }
}

/// A frame on the way. Ordered by arrival, then by the order of sending; the frame itself has no say.
struct InFlight<F> {
    arrival: Instant,
    order: u64,
    bytes: usize,
    frame: F,
}

impl<F> InFlight<F> {
    fn key(&self) -> (Instant, u64) {
        (self.arrival, self.order)
    }
}

impl<F> PartialEq for InFlight<F> {
    fn eq(&self, other: &InFlight<F>) -> bool {
        self.key() == other.key()
    }
}

impl<F> Eq for InFlight<F> {}

impl<F> PartialOrd for InFlight<F> {
    fn partial_cmp(&self, other: &InFlight<F>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> Ord for InFlight<F> {
    fn cmp(&self, other: &InFlight<F>) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests;
