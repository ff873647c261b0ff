//! The flight: what is sent and not cumulatively acknowledged, as a sorted list of ranges, each with the time of its last
//! transmission and what became of it. It is the scoreboard of RFC 6675 and the per-segment memory of RFC 8985 in one,
//! with messages of many segments as its unit: one range a transmission, cut where a selective acknowledgment or a
//! retransmission touches a part of it, and joined again where neighbours have nothing of their own left to say.
//!
//! Every range is entered once and touched again only when its mark changes, so the work for one acknowledgment is
//! logarithmic in the number of ranges plus what it newly tells. As long as nothing is wrong they stand in a queue, and
//! nothing is allocated for any of them; those before the last one that something was said about stand in a tree. Places count bytes since the connection began: unlike
//! sequence numbers they have an order.

use super::rate::Stamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use xylem_core::Instant;
use xylem_wire::SequenceNumber;

/// Ranges a flight has at most before selective acknowledgments of parts are passed over (they cost a retransmission
/// then, and no memory), and before new data waits or joins what was sent last.
pub(crate) const RANGES_MAX: usize = 2048;
/// Ranges that retransmissions may add beyond [`RANGES_MAX`].
pub(crate) const RANGES_SPARE: usize = 512;

/// The place of the first byte: what came before it, as a peer may claim, has a place too.
const FIRST_PLACE: u64 = 1 << 32;

/// See the module's text. Nothing in it is allocated while nothing was ever in flight.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Ranges by place.
    ranges: BTreeMap<u64, Range>,
    /// Those behind them, in order: each was sent once, and nothing was said about it.
    fresh: VecDeque<(u64, Range)>,
    /// Places of ranges that are lost and wait to be sent again.
    lost_at: BTreeSet<u64>,
    /// Ranges that were sent again and are in the network, by time.
    again_at: BTreeSet<(Instant, u64)>,
    /// The place of the first byte that is not cumulatively acknowledged.
    base: u64,
    /// Its number.
    first: SequenceNumber,
    /// The place behind the last byte sent.
    end: u64,
    /// Ranges before this place that were sent only once are sacked or lost: the search for losses begins here.
    judged: u64,
    /// Bytes by mark.
    flying: u32,
    sacked: u32,
    lost: u32,
    /// Ranges that are sacked: neighbours among them are one.
    runs: u32,
    /// Ranges entered and taken out so far.
    #[cfg(test)]
    work: usize,
}

/// A part of the flight with one history (RFC 8985 6.1; RFC 6675 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    length: u32,
    mark: Mark,
    /// How often it was sent again.
    again: u8,
    /// When it was last sent.
    sent_at: Instant,
    /// What it took with it then.
    stamp: Stamp,
}

/// What is known about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// In the network, as far as is known.
    Flying,
    /// The peer said that it has it, and may still throw it away (RFC 2018, section 8).
    Sacked,
    /// Held for lost, and not sent again since.
    Lost,
}

/// A part of the flight that an acknowledgment has delivered, for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// The place of its first byte, and the one behind its last.
    pub start: u64,
    pub end: u64,
    /// When it was last sent.
    pub sent_at: Instant,
    /// How often it was sent again.
    pub again: u8,
    /// What it took with it when it was last sent.
    pub stamp: Stamp,
}

impl Flight {
    /// Nothing in flight; the next byte has number `first`.
    pub fn new(first: SequenceNumber) -> Flight {
        Flight {
            ranges: BTreeMap::new(),
            fresh: VecDeque::new(),
            lost_at: BTreeSet::new(),
            again_at: BTreeSet::new(),
            base: FIRST_PLACE,
            first,
            end: FIRST_PLACE,
            judged: FIRST_PLACE,
            flying: 0,
            sacked: 0,
            lost: 0,
            runs: 0,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Bytes in the network, as far as is known: the pipe (RFC 6675 4-SetPipe).
    pub fn flying(&self) -> u32 {
        self.flying
    }

    /// Bytes the peer has selectively acknowledged.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Bytes held for lost and not sent again yet.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Separate runs of selectively acknowledged bytes.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The place of the first byte that is not cumulatively acknowledged.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The place behind the last byte sent.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The place of a number less than 2^31 away from the oldest one.
    pub fn place(&self, number: SequenceNumber) -> u64 {
        self.base.saturating_add_signed(i64::from(number.since(self.first)))
    }

    /// The number at a place.
    pub fn number(&self, place: u64) -> SequenceNumber {
        // Only the low 32 bits of the distance matter to a number that goes round.
        SequenceNumber(self.first.0.wrapping_add(place.wrapping_sub(self.base) as u32))
    }

    /// Whether another range has a place: new data may be sent.
    pub fn has_room(&self) -> bool {
        self.count() < RANGES_MAX || !self.fresh.is_empty()
    }

    /// `length` new bytes behind the others went out with `stamp`. What went out at one instant is one range, whether as one message or
    /// as many, so that cutting changes nothing.
    pub fn sent(&mut self, length: u32, stamp: Stamp, now: Instant) {
        let full = self.count() >= RANGES_MAX;
        let start = self.end;
        self.end += u64::from(length);
        self.flying += length;
        if let Some((_, last)) = self.fresh.back_mut().filter(|(_, last)| full || last.sent_at == now) {
            // Where it is full, the later time counts for both: losses are found later, and never wrongly.
            last.length += length;
            last.sent_at = now;
            return;
        }
        self.fresh.push_back((start, Range { length, mark: Mark::Flying, again: 0, sent_at: now, stamp }));
    }

    /// The `length` bytes at `start` went out again with `stamp`. Parts of them that are sacked stay so.
    pub fn sent_again(&mut self, start: u64, length: u32, stamp: Stamp, now: Instant) {
        let end = (start + u64::from(length)).min(self.end);
        self.look_at(end);
        self.split(start, RANGES_MAX + RANGES_SPARE);
        self.split(end, RANGES_MAX + RANGES_SPARE);
        let touched: Vec<u64> = self.ranges.range(self.key_at(start)..end).map(|(at, _)| *at).collect();
        for at in touched {
            self.change(at, |range| {
                if range.mark != Mark::Sacked {
                    let again = range.again.saturating_add(1);
                    *range = Range { mark: Mark::Flying, again, sent_at: now, stamp, ..*range };
                }
            });
            self.join(at);
        }
    }

    /// Everything before `number` is acknowledged. `tell` hears of what was not known to have arrived.
    pub fn acknowledge(&mut self, number: SequenceNumber, mut tell: impl FnMut(Delivered)) {
        let place = self.place(number).clamp(self.base, self.end);
        while let Some((&at, &range)) = self.ranges.first_key_value().filter(|(at, _)| **at < place) {
            let end = at + u64::from(range.length);
            if end > place {
                let rest = Range { length: (end - place) as u32, ..range };
                self.forget(at, &range);
                self.enter(place, rest);
            } else {
                self.forget(at, &range);
            }
            if range.mark != Mark::Sacked {
                tell(range.delivered(at, end.min(place)));
            }
        }
        while let Some((at, range)) = self.fresh.front_mut().filter(|(at, _)| *at < place) {
            let whole = at.saturating_add(u64::from(range.length));
            let end = whole.min(place);
            tell(range.delivered(*at, end));
            self.flying -= (end - *at) as u32;
            (*at, range.length) = (end, (whole - end) as u32);
            if end == whole {
                self.fresh.pop_front();
            }
        }
        (self.first, self.base) = (number, self.place(number));
        (self.end, self.judged) = (self.end.max(self.base), self.judged.max(self.base));
    }

    /// The peer has the bytes from `left` to before `right` (RFC 6675 4-Update). `tell` hears of what was not known to have arrived. Says
    /// whether anything was.
    pub fn sack(&mut self, left: u64, right: u64, mut tell: impl FnMut(Delivered)) -> bool {
        let (mut left, mut right) = (left.max(self.base), right.min(self.end));
        if left >= right {
            return false;
        }
        self.look_at(right);
        // A part of a range that cannot be cut off, or that is sacked already, is left as it is.
        if !self.split(left, RANGES_MAX) || self.mark_at(left) == Some(Mark::Sacked) {
            left = self.end_at(left);
        }
        if left < right && (!self.split(right, RANGES_MAX) || self.mark_at(right - 1) == Some(Mark::Sacked)) {
            right = self.key_at(right - 1);
        }
        if left >= right {
            return false;
        }
        let mut latest = Instant::ZERO;
        let mut again = 0;
        while let Some((&at, &range)) = self.ranges.range(left..right).next() {
            self.forget(at, &range);
            (latest, again) = (latest.max(range.sent_at), range.again.max(again));
            if range.mark != Mark::Sacked {
                tell(range.delivered(at, at + u64::from(range.length)));
            }
        }
        // What is delivered needs no stamp any more.
        let (length, stamp) = ((right - left) as u32, Stamp::default());
        self.enter(left, Range { length, mark: Mark::Sacked, again, sent_at: latest, stamp });
        let next = self.join(left);
        self.join(next + u64::from(self.ranges[&next].length));
        true
    }

    /// Holds for lost what was sent before `newest` (a time, and the place behind the range: of what was sent at one time
    /// the earlier in the stream counts as sent earlier) and not after `latest` (RFC 8985 6.2-5). Says how many
    /// bytes.
    pub fn lose_sent_before(&mut self, newest: (Instant, u64), latest: Instant) -> u32 {
        let before = self.lost;
        while let Some((at, range)) = self.oldest().filter(|(at, range)| range.is_before(*at, newest)) {
            if range.sent_at > latest {
                break;
            }
            self.lose(at);
        }
        self.lost - before
    }

    /// Whether something in the network was sent before `newest`.
    pub fn has_sent_before(&mut self, newest: (Instant, u64)) -> bool {
        self.oldest().is_some_and(|(at, range)| range.is_before(at, newest))
    }

    /// Holds the first `length` bytes for lost. Says how many bytes of them had not been.
    pub fn lose_front(&mut self, length: u32) -> u32 {
        let (before, end) = (self.lost, (self.base + u64::from(length)).min(self.end));
        self.look_at(end);
        self.split(end, RANGES_MAX + RANGES_SPARE);
        self.lose_where(end, |_, _| true);
        self.lost - before
    }

    /// A retransmission timeout: holds for lost what is oldest in the stream and what was not sent after `latest`
    /// (RFC 8985 6.3; RFC 6298 5.4). `forget`: what was sacked too, for the peer seems to have thrown it away (RFC 2018,
    /// section 8). Says how many bytes.
    pub fn lose_for_timeout(&mut self, latest: Instant, forget: bool) -> u32 {
        let (before, base) = (self.lost, self.base);
        self.look_at(self.end);
        let has_reneged = self.has_reneged() || forget;
        if has_reneged {
            let sacked: Vec<u64> = self.places_of(Mark::Sacked);
            sacked.into_iter().for_each(|at| self.change(at, |range| range.mark = Mark::Lost));
        }
        self.lose_where(self.end, |at, range| at == base || range.sent_at <= latest);
        self.lost - before
    }

    /// Whether the oldest bytes are sacked: a peer that still had them would have acknowledged them.
    pub fn has_reneged(&self) -> bool {
        self.ranges.first_key_value().is_some_and(|(_, range)| range.mark == Mark::Sacked)
    }

    /// Holds everything for lost that is not sacked.
    pub fn lose_all(&mut self) {
        self.look_at(self.end);
        self.lose_where(self.end, |_, _| true);
    }

    /// What was held for lost was only late: it is in the network as before.
    pub fn restore(&mut self) {
        let lost: Vec<u64> = self.lost_at.iter().copied().collect();
        for at in lost {
            self.change(at, |range| range.mark = Mark::Flying);
        }
        self.judged = self.base;
    }

    /// The first range that is lost and waits to be sent again (RFC 6675 4-NextSeg-1): its place and bytes.
    pub fn first_lost(&self) -> Option<(u64, u32)> {
        let at = *self.lost_at.first()?;
        Some((at, self.ranges[&at].length))
    }

    /// Gives back what memory an empty flight still holds.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.fresh = VecDeque::new();
            (self.ranges, self.lost_at, self.again_at) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        }
    }

    /// Forgets everything: the next byte has number `first`.
    pub fn clear(&mut self, first: SequenceNumber) {
        *self = Flight { base: self.end, end: self.end, judged: self.end, ..Flight::new(first) };
    }
}

impl Range {
    /// Sent once and in the network.
    fn is_first_flight(&self) -> bool {
        self.mark == Mark::Flying && self.again == 0
    }

    /// Whether the range at `at` was sent before `newest`.
    fn is_before(&self, at: u64, newest: (Instant, u64)) -> bool {
        self.order(at) < newest
    }

    /// What ranges are ordered by in time: of those sent at one time the earlier in the stream counts as sent earlier.
    fn order(&self, at: u64) -> (Instant, u64) {
        (self.sent_at, at + u64::from(self.length))
    }

    fn delivered(&self, start: u64, end: u64) -> Delivered {
        Delivered { start, end, sent_at: self.sent_at, again: self.again, stamp: self.stamp }
    }

    /// Whether nothing would be lost by joining it with a neighbour.
    fn joins(&self, other: &Range) -> bool {
        let is_same = self.mark == other.mark && self.again == other.again;
        match self.mark {
            Mark::Sacked => other.mark == Mark::Sacked,
            Mark::Lost => is_same,
            Mark::Flying => is_same && self.sent_at == other.sent_at && self.again > 0,
        }
    }
}

impl Flight {
    /// How many ranges there are.
    fn count(&self) -> usize {
        self.ranges.len() + self.fresh.len()
    }

    /// Something is said about what lies before `end`: it takes its place among the ranges.
    fn look_at(&mut self, end: u64) {
        while let Some((at, range)) = self.fresh.front().copied().filter(|(at, _)| *at < end) {
            self.fresh.pop_front();
            self.flying -= range.length;
            self.enter(at, range);
        }
    }

    /// The key of the range that holds `place`, or `place` itself.
    fn key_at(&self, place: u64) -> u64 {
        self.ranges
            .range(..=place)
            .next_back()
            .map_or(place, |(at, range)| if at + u64::from(range.length) > place { *at } else { place })
    }

    fn end_at(&self, place: u64) -> u64 {
        let at = self.key_at(place);
        self.ranges.get(&at).map_or(place, |range| at + u64::from(range.length))
    }

    fn mark_at(&self, place: u64) -> Option<Mark> {
        self.ranges.get(&self.key_at(place)).map(|range| range.mark)
    }

    fn places_of(&self, mark: Mark) -> Vec<u64> {
        self.ranges.iter().filter(|(_, range)| range.mark == mark).map(|(at, _)| *at).collect()
    }

    /// Makes a range begin at `place`, if one holds it in its middle. `false`: there are `limit` already. Sacked ones are
    /// never cut: they say the same on both sides.
    fn split(&mut self, place: u64, limit: usize) -> bool {
        let at = self.key_at(place);
        let Some(&range) = self.ranges.get(&at).filter(|range| at < place && range.mark != Mark::Sacked) else {
            return true;
        };
        if self.count() >= limit {
            return false;
        }
        let front = (place - at) as u32;
        self.forget(at, &range);
        self.enter(at, Range { length: front, ..range });
        self.enter(place, Range { length: range.length - front, ..range });
        true
    }

    /// Joins the range at `at` with the one in front of it, if both say the same; returns the key it has then.
    fn join(&mut self, at: u64) -> u64 {
        let Some(&range) = self.ranges.get(&at) else { return at };
        let Some((&before, &front)) = self.ranges.range(..at).next_back() else { return at };
        if !front.joins(&range) {
            return at;
        }
        let sent_at = front.sent_at.max(range.sent_at);
        self.forget(at, &range);
        self.forget(before, &front);
        self.enter(
            before,
            Range { length: front.length + range.length, sent_at, again: front.again.max(range.again), ..front },
        );
        before
    }

    /// What is in the network and was sent earliest: the earlier of the first that was sent once, and the first of those
    /// sent again.
    fn oldest(&mut self) -> Option<(u64, Range)> {
        let mut once = None;
        for (at, range) in self.ranges.range(self.judged..) {
            if range.is_first_flight() {
                once = Some((*at, *range));
                break;
            }
        }
        once = once.or_else(|| self.fresh.front().copied());
        self.judged = once.map_or(self.end, |(at, _)| at);
        let again = self.again_at.first().map(|(_, at)| (*at, self.ranges[at]));
        match (once, again) {
            (Some(one), Some(other)) if other.1.is_before(other.0, one.1.order(one.0)) => Some(other),
            (Some(one), _) => Some(one),
            (None, other) => other,
        }
    }

    /// Holds for lost what is in the network before `end` and `chosen`.
    fn lose_where(&mut self, end: u64, chosen: impl Fn(u64, &Range) -> bool) {
        let flying = self.ranges.range(..end).filter(|(_, range)| range.mark == Mark::Flying);
        let chosen: Vec<u64> = flying.filter(|(at, range)| chosen(**at, range)).map(|(at, _)| *at).collect();
        chosen.into_iter().for_each(|at| self.lose(at));
    }

    fn lose(&mut self, at: u64) {
        self.look_at(at + 1);
        self.change(at, |range| range.mark = Mark::Lost);
        self.join(at);
    }

    /// Changes a range in place, and what is counted of it.
    fn change(&mut self, at: u64, with: impl FnOnce(&mut Range)) {
        let Some(&range) = self.ranges.get(&at) else { return };
        let mut changed = range;
        with(&mut changed);
        self.forget(at, &range);
        self.enter(at, changed);
    }

    /// Enters a range and counts it.
    fn enter(&mut self, at: u64, range: Range) {
        *self.bytes(range.mark) += range.length;
        match range.mark {
            Mark::Flying if range.again > 0 => drop(self.again_at.insert((range.sent_at, at))),
            Mark::Flying => {}
            Mark::Sacked => self.runs += 1,
            Mark::Lost => drop(self.lost_at.insert(at)),
        }
        self.ranges.insert(at, range);
        #[cfg(test)]
        {
            self.work += 1;
        }
    }

    /// Takes a range out and out of what is counted.
    fn forget(&mut self, at: u64, range: &Range) {
        *self.bytes(range.mark) -= range.length;
        match range.mark {
            Mark::Flying if range.again > 0 => drop(self.again_at.remove(&(range.sent_at, at))),
            Mark::Flying => {}
            Mark::Sacked => self.runs -= 1,
            Mark::Lost => drop(self.lost_at.remove(&at)),
        }
        self.ranges.remove(&at);
    }

    fn bytes(&mut self, mark: Mark) -> &mut u32 {
        match mark {
            Mark::Flying => &mut self.flying,
            Mark::Sacked => &mut self.sacked,
            Mark::Lost => &mut self.lost,
        }
    }
}

#[cfg(test)]
impl Flight {
    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.count()
    }

    /// Counts everything anew.
    ///
    /// # Panics
    /// If anything is counted wrong, overlaps, is missing, or is beyond a limit.
    pub fn check(&self) {
        assert!(self.count() <= RANGES_MAX + RANGES_SPARE);
        assert!(self.fresh.iter().all(|(_, range)| range.is_first_flight()));
        let mut next = self.base;
        let (mut flying, mut sacked, mut lost, mut runs) = (0, 0, 0, 0);
        let mut last_once = Instant::ZERO;
        let mut was_sacked = false;
        for (at, range) in self.ranges.iter().chain(self.fresh.iter().map(|(at, range)| (at, range))) {
            assert_eq!(*at, next, "ranges follow each other");
            assert!(range.length > 0);
            next += u64::from(range.length);
            assert!(!(was_sacked && range.mark == Mark::Sacked), "sacked neighbours are one");
            was_sacked = range.mark == Mark::Sacked;
            match range.mark {
                Mark::Flying => flying += range.length,
                Mark::Sacked => (sacked, runs) = (sacked + range.length, runs + 1),
                Mark::Lost => lost += range.length,
            }
            assert_eq!(self.lost_at.contains(at), range.mark == Mark::Lost);
            let is_again = range.mark == Mark::Flying && range.again > 0;
            assert_eq!(self.again_at.contains(&(range.sent_at, *at)), is_again);
            if range.is_first_flight() {
                assert!(*at >= self.judged, "the search for losses would miss it");
                assert!(range.sent_at >= last_once, "what is sent once was sent in order");
                last_once = range.sent_at;
            }
        }
        assert_eq!(next, self.end);
        assert_eq!((flying, sacked, lost, runs), (self.flying, self.sacked, self.lost, self.runs));
        assert_eq!(self.lost_at.len(), self.ranges.values().filter(|range| range.mark == Mark::Lost).count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::{Duration, Random};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A flight whose places are its numbers.
    fn at_zero() -> Flight {
        Flight { base: 0, end: 0, judged: 0, ..Flight::new(SequenceNumber(0)) }
    }

    /// A byte of the model: when it was last sent, how often again, and its mark.
    type Byte = (Instant, u8, Mark);

    fn bytes_of(flight: &Flight) -> Vec<Byte> {
        let repeat = |range: &Range| vec![(range.sent_at, range.again, range.mark); range.length as usize];
        flight.ranges.values().chain(flight.fresh.iter().map(|(_, range)| range)).flat_map(repeat).collect()
    }

    /// RFC 6675 4-Update, RFC 6675 4-SetPipe, RFC 8985 6.1. Against the obvious model, a list of bytes: every verb at random places, over the wrap of the numbers. Marks must
    /// agree byte by byte, and what is told as delivered must be so for the first time.
    #[test]
    fn a_flight_is_its_bytes() {
        for seed in 0..400 {
            let mut random = Random::seeded(seed);
            let mut first = SequenceNumber(u32::MAX - 500);
            let mut flight = Flight::new(first);
            let mut model: Vec<Byte> = Vec::new();
            for step in 0..80 {
                let now = at(step / 2);
                let length = model.len() as u64;
                let from = random.below(length + 1);
                let to = from + random.below(length - from + 1);
                let base = flight.base();
                let mut told = 0;
                match random.below(9) {
                    0..3 => {
                        let bytes = 1 + random.below(300);
                        flight.sent(bytes as u32, Stamp::default(), now);
                        model.extend(vec![(now, 0, Mark::Flying); bytes as usize]);
                    }
                    3 | 4 => {
                        let expected = model[from as usize..to as usize].iter().filter(|byte| byte.2 != Mark::Sacked);
                        let expected = expected.count() as u64;
                        flight.sack(base + from, base + to, |delivered| told += delivered.end - delivered.start);
                        assert_eq!(told, expected, "seed {seed}");
                        model[from as usize..to as usize].iter_mut().for_each(|byte| byte.2 = Mark::Sacked);
                    }
                    5 => {
                        let gone = model.drain(..from as usize);
                        let expected = gone.filter(|byte| byte.2 != Mark::Sacked).count() as u64;
                        first += from as u32;
                        flight.acknowledge(first, |delivered| told += delivered.end - delivered.start);
                        assert_eq!(told, expected, "seed {seed}");
                    }
                    6 if from < to => {
                        flight.sent_again(base + from, (to - from) as u32, Stamp::default(), now);
                        for byte in &mut model[from as usize..to as usize] {
                            if byte.2 != Mark::Sacked {
                                *byte = (now, byte.1 + 1, Mark::Flying);
                            }
                        }
                    }
                    7 => {
                        let newest = (at(random.below(step + 1) / 2), base + from);
                        let latest = at(random.below(step + 1) / 2);
                        flight.lose_sent_before(newest, latest);
                        // Whole ranges are lost: what they are depends on the cuts, so the model follows.
                        let marks = bytes_of(&flight);
                        for (place, (byte, mark)) in model.iter_mut().zip(&marks).enumerate() {
                            if byte.2 == Mark::Flying && mark.2 == Mark::Lost {
                                assert!(byte.0 <= latest && byte.0 <= newest.0, "seed {seed}");
                                byte.2 = Mark::Lost;
                            } else if byte.2 == Mark::Flying && byte.0 < newest.0 && byte.0 <= latest {
                                panic!("seed {seed}: byte {place} was not found lost");
                            }
                        }
                    }
                    _ => {
                        flight.lose_front(from as u32);
                        for byte in model[..from as usize].iter_mut().filter(|byte| byte.2 == Mark::Flying) {
                            byte.2 = Mark::Lost;
                        }
                    }
                }
                flight.check();
                let marks: Vec<Mark> = model.iter().map(|byte| byte.2).collect();
                assert_eq!(bytes_of(&flight).iter().map(|byte| byte.2).collect::<Vec<_>>(), marks, "seed {seed}");
                let waits = flight.first_lost().map(|(place, _)| place - flight.base());
                let expected = model.iter().position(|byte| byte.2 == Mark::Lost).map(|place| place as u64);
                assert_eq!(waits, expected, "seed {seed}");
                let unsacked = |byte: &&Byte| byte.2 != Mark::Sacked;
                let times: Vec<_> = model.iter().filter(unsacked).map(|byte| (byte.0, byte.1)).collect();
                let found: Vec<_> = bytes_of(&flight);
                let found: Vec<_> = found.iter().filter(unsacked).map(|byte| (byte.0, byte.1)).collect();
                // Lost neighbours are one, and then the later time counts.
                let is_late = found.iter().zip(&times).all(|(found, model)| found.0 >= model.0 && found.1 == model.1);
                assert!(is_late, "seed {seed}");
            }
        }
    }

    #[test]
    fn what_goes_out_at_one_instant_is_one_range() {
        let mut flight = Flight::new(SequenceNumber(5));
        (0..40).for_each(|_| flight.sent(1000, Stamp::default(), at(1)));
        flight.sent(1000, Stamp::default(), at(2));
        assert_eq!((flight.ranges(), flight.flying()), (2, 41_000));
    }

    #[test]
    fn a_loss_is_what_was_sent_before_what_arrived() {
        let mut flight = at_zero();
        flight.sent(3000, Stamp::default(), at(1));
        flight.sent(1000, Stamp::default(), at(2));
        flight.sack(1000, 2000, |_| {});
        // Of what was sent at the same time only the part before it was sent earlier.
        assert_eq!(flight.lose_sent_before((at(1), 2000), at(1)), 1000);
        assert_eq!(flight.first_lost(), Some((0, 1000)));
        flight.sent_again(0, 1000, Stamp::default(), at(3));
        assert_eq!(flight.lose_sent_before((at(1), 2000), at(9)), 0, "it was sent after what arrived");
        flight.sack(3000, 4000, |_| {});
        assert!(flight.has_sent_before((at(2), 4000)));
        assert_eq!(flight.lose_sent_before((at(2), 4000), at(0)), 0, "not yet: there may be reordering");
        assert_eq!(flight.lose_sent_before((at(2), 4000), at(1)), 1000);
        assert_eq!(flight.lose_sent_before((at(4), 4000), at(9)), 1000, "lost again");
        flight.restore();
        assert_eq!((flight.flying(), flight.lost()), (2000, 0));
        flight.check();
    }

    /// RFC 2018, section 8: what was selectively acknowledged is kept, and sent again if it comes to that.
    #[test]
    fn a_peer_may_throw_away_what_it_has_sacked() {
        let mut flight = at_zero();
        flight.sent(5000, Stamp::default(), at(1));
        flight.sack(1000, 5000, |_| {});
        flight.acknowledge(SequenceNumber(1000), |_| {});
        assert!(flight.has_reneged());
        assert_eq!(flight.lose_for_timeout(at(1), false), 4000);
        assert_eq!((flight.sacked(), flight.first_lost()), (0, Some((1000, 4000))));
    }

    /// A peer that reports whatever makes most work: each block costs a few steps, and besides what it newly delivers,
    /// which was entered once. Steps are logarithmic, so that counting them is enough.
    #[test]
    fn the_work_for_a_block_does_not_grow_with_the_flight() {
        for seed in 0..20 {
            let mut random = Random::seeded(seed);
            let mut flight = at_zero();
            for step in 0..1000 {
                flight.sent(10_000, Stamp::default(), at(step));
            }
            let (mut blocks, mut newest) = (0, (Instant::ZERO, 0));
            for _ in 0..20_000 {
                let left = random.below(flight.end());
                let most = [3, 5000, 2_000_000][random.below(3) as usize];
                let right = left + 1 + random.below(most);
                flight.sack(left, right, |delivered| newest = newest.max((delivered.sent_at, delivered.end)));
                flight.lose_sent_before(newest, newest.0);
                if let Some((place, length)) = flight.first_lost().filter(|_| random.chance_per_million(100_000)) {
                    flight.sent_again(place, length.min(1000), Stamp::default(), at(2000 + blocks));
                }
                blocks += 1;
            }
            // The ranges that were sent, lost, and delivered; and a few for the borders of each block.
            assert!(flight.work <= 3 * 1000 + 12 * 20_000, "seed {seed}: {} steps", flight.work);
            flight.check();
        }
    }

    /// However a peer cuts a flight into pieces, its ranges have a limit, and so has the work.
    #[test]
    fn a_flight_cut_to_pieces_has_a_limit() {
        let mut flight = at_zero();
        for step in 0..60 {
            flight.sent(65_000, Stamp::default(), at(step));
        }
        for place in 0..60_000 {
            flight.sack(place * 60, place * 60 + 1, |_| {});
        }
        assert!(flight.ranges() <= RANGES_MAX);
        flight.check();
        flight.lose_sent_before((at(99), 0), at(99));
        let mut resent = 0;
        while let Some((place, length)) = flight.first_lost() {
            flight.sent_again(place, length.min(7), Stamp::default(), at(100 + resent));
            resent += 1;
            assert!(resent < 3_000_000);
        }
        assert!(!flight.has_room() || flight.ranges() < RANGES_MAX);
        flight.sack(0, flight.end(), |_| {});
        assert_eq!(flight.ranges(), 1);
        flight.acknowledge(flight.number(flight.end()), |_| {});
        assert!(flight.is_empty());
        flight.check();
    }
}
