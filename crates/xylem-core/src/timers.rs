//! A hierarchical timing wheel (Varghese and Lauck 1987): insertion and expiry cost the same however many timers there
//! are. Entries are never taken out early: whoever no longer wants one ignores it when it comes.

use crate::time::Instant;

/// Nanoseconds in one tick, as a power of two: 2^16 ns = 65.5 us.
const TICK_BITS: u32 = 16;
/// Slots on each level, as a power of two.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Levels: 64^6 ticks are 52 days; what lies beyond waits on the last level and is put in again.
const LEVELS: usize = 6;

/// An emptied slot keeps the memory of so many entries for the next ones; what a burst of deadlines needed goes back.
const SLOT_KEPT_MAX: usize = 16;

/// A timing wheel of values of type `T`.
#[derive(Debug)]
pub struct Wheel<T> {
    /// The tick up to which everything has been taken out.
    tick: u64,
    levels: [Level<T>; LEVELS],
    /// Due already.
    due: Vec<(Instant, T)>,
    len: usize,
    /// How often an entry was put somewhere.
    #[cfg(test)]
    placed: u64,
}

#[derive(Debug)]
struct Level<T> {
    occupied: u64,
    slots: [Vec<(Instant, T)>; SLOTS],
}

impl<T> Default for Wheel<T> {
    fn default() -> Wheel<T> {
        Wheel::new(Instant::ZERO)
    }
}

/// A deadline expires in the tick that begins at or after it, so never early.
fn tick_of(deadline: Instant) -> u64 {
    deadline.as_nanos().div_ceil(1 << TICK_BITS)
}

impl<T> Wheel<T> {
    /// An empty wheel at `now`.
    pub fn new(now: Instant) -> Wheel<T> {
        let levels = std::array::from_fn(|_| Level { occupied: 0, slots: std::array::from_fn(|_| Vec::new()) });
        Wheel {
            tick: now.as_nanos() >> TICK_BITS,
            levels,
            due: Vec::new(),
            len: 0,
            #[cfg(test)]
            placed: 0,
        }
    }

    /// How many entries it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Wants `value` back at `deadline`.
    pub fn insert(&mut self, deadline: Instant, value: T) {
        self.len += 1;
        self.place(deadline, value);
    }

    /// The next entry that is due at `now`, with its deadline. Call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<(Instant, T)> {
        self.advance(now.as_nanos() >> TICK_BITS);
        let entry = self.due.pop();
        self.len -= usize::from(entry.is_some());
        entry
    }

    /// A time at or before which nothing is due, and not later than the first deadline's tick: when to look again.
    pub fn next(&self) -> Option<Instant> {
        if !self.due.is_empty() {
            return Some(Instant::from_nanos(self.tick << TICK_BITS));
        }
        let mut soonest: Option<u64> = None;
        for (index, level) in self.levels.iter().enumerate() {
            if level.occupied != 0 {
                let shift = SLOT_BITS * index as u32;
                let here = (self.tick >> shift) as u32 % SLOTS as u32;
                // The distance to the next occupied slot, at least one: the current slot has been emptied.
                let ahead = level.occupied.rotate_right(here + 1).trailing_zeros() + 1;
                let at = ((self.tick >> shift) + u64::from(ahead)) << shift;
                soonest = Some(soonest.map_or(at, |other| other.min(at)));
            }
        }
        soonest.map(|tick| Instant::from_nanos(tick << TICK_BITS))
    }

    fn place(&mut self, deadline: Instant, value: T) {
        #[cfg(test)]
        {
            self.placed += 1;
        }
        let tick = tick_of(deadline);
        if tick <= self.tick {
            self.due.push((deadline, value));
            return;
        }
        // The level is the highest digit (base 64) in which the two ticks differ.
        let differs = 63 - (tick ^ self.tick).leading_zeros();
        let index = ((differs / SLOT_BITS) as usize).min(LEVELS - 1);
        let shift = SLOT_BITS * index as u32;
        let ahead = ((tick >> shift) - (self.tick >> shift)).min(SLOTS as u64 - 1);
        let slot = ((self.tick >> shift) + ahead) as usize % SLOTS;
        self.levels[index].slots[slot].push((deadline, value));
        self.levels[index].occupied |= 1 << slot;
    }

    /// Moves toward tick `to`, and stops at the first tick at which something is due.
    fn advance(&mut self, to: u64) {
        while self.due.is_empty() && self.tick < to {
            let before = self.tick;
            self.tick = self.next().map_or(to, |next| (next.as_nanos() >> TICK_BITS).min(to));
            for index in (0..LEVELS).rev() {
                let shift = SLOT_BITS * index as u32;
                let slot = (self.tick >> shift) as usize % SLOTS;
                if self.tick >> shift != before >> shift && self.levels[index].occupied & 1 << slot != 0 {
                    self.levels[index].occupied &= !(1 << slot);
                    let mut entries = std::mem::take(&mut self.levels[index].slots[slot]);
                    entries.drain(..).for_each(|(deadline, value)| self.place(deadline, value));
                    if entries.capacity() <= SLOT_KEPT_MAX && self.levels[index].slots[slot].is_empty() {
                        self.levels[index].slots[slot] = entries;
                    }
                }
            }
            // Taken from the end, so the earliest lies there.
            self.due.sort_by_key(|(deadline, _)| std::cmp::Reverse(*deadline));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::time::Duration;

    /// Against the obvious model: nothing early, nothing late by more than a tick, nothing lost.
    #[test]
    fn a_wheel_is_a_sorted_list_rounded_to_ticks() {
        for seed in 0..200 {
            let mut random = Random::seeded(seed);
            let mut wheel = Wheel::default();
            let mut model: Vec<(Instant, u64)> = Vec::new();
            let mut now = Instant::ZERO;
            for id in 0..300 {
                let spread = 1 << random.below(45);
                let deadline = now + Duration::from_nanos(random.below(spread));
                wheel.insert(deadline, id);
                model.push((deadline, id));
                if random.chance_per_million(300_000) {
                    let next = wheel.next().unwrap_or(now);
                    let spread = 1 << random.below(44);
                    let jump = now + Duration::from_nanos(random.below(spread));
                    now = if random.chance_per_million(500_000) { jump } else { now.max(next) };
                    while let Some((deadline, id)) = wheel.expire(now) {
                        assert!(deadline <= now, "seed {seed}: early");
                        let at = model.iter().position(|entry| *entry == (deadline, id));
                        model.swap_remove(at.expect("an entry came out twice or was never put in"));
                    }
                    let overdue = now.as_nanos().saturating_sub(1 << TICK_BITS);
                    assert!(model.iter().all(|(deadline, _)| deadline.as_nanos() >= overdue), "seed {seed}: late");
                    assert_eq!(wheel.len(), model.len());
                    let first = model.iter().map(|(deadline, _)| tick_of(*deadline) << TICK_BITS).min();
                    assert!(wheel.next().map(Instant::as_nanos) <= first, "seed {seed}: would oversleep");
                    assert_eq!(wheel.next().is_none(), model.is_empty());
                }
            }
        }
    }

    /// How often each of ten thousand timers is put somewhere on average, on a wheel on which `others` wait as well.
    fn steps(others: u64) -> f64 {
        let mut random = Random::seeded(1);
        let mut wheel = Wheel::default();
        let later = Instant::ZERO + Duration::from_secs(3600);
        (0..others).for_each(|id| wheel.insert(later + Duration::from_micros(random.below(1_000_000)), id));
        wheel.placed = 0;
        let mut now = Instant::ZERO;
        for id in 0..10_000 {
            wheel.insert(now + Duration::from_micros(random.below(3_000_000)), id);
            now = now + Duration::from_micros(100);
            while wheel.expire(now).is_some() {}
        }
        while wheel.len() as u64 > others {
            now = now + Duration::from_millis(1);
            while wheel.expire(now).is_some() {}
        }
        wheel.placed as f64 / 10_000.0
    }

    #[test]
    fn a_timer_takes_as_many_steps_among_a_hundred_thousand_as_among_a_thousand() {
        let (few, many) = (steps(1_000), steps(100_000));
        assert!(few <= LEVELS as f64 && many <= LEVELS as f64, "{few} {many}");
        assert!((few - many).abs() < 0.01, "{few} {many}");
    }
}
