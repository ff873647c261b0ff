//! TIME-WAIT without a path: what is left of a connection whose application has closed it, at most 64 bytes, so that late
//! segments are answered and a new connection between the same ends cannot be mistaken for the old one (RFC 9293,
//! MUST-13; RFC 1337; RFC 6191).

use super::ends::Ends;
use super::segment::Segment;
use super::soonest::Soonest;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use xylem_core::{Duration, Endpoint, Instant, Keyed, Random, Record};
use xylem_wire::{Port, SequenceNumber, TcpFlags};

/// What a session leaves with its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    /// The number our next segment would have.
    pub next: SequenceNumber,
    /// The number expected of the peer.
    pub expected: SequenceNumber,
    /// The peer's last timestamp, if timestamps were agreed.
    pub recent: Option<SequenceNumber>,
    /// What our timestamp clock adds to the milliseconds.
    pub clock_offset: u32,
    /// Milliseconds of the wait that are over already.
    pub waited: u32,
}

/// The most of `waited` that is kept: postcard writes numbers below 2^21 in three bytes.
const WAITED_MAX: u32 = (1 << 21) - 1;
/// Bytes of an entry as postcard writes it: two addresses of 17 bytes, two ports of 3, four numbers of 5 and one mark, and
/// `waited`, of 3.
const ENTRY_MAX: usize = 2 * 17 + 2 * 3 + 4 * 5 + 1 + 3;
const _: () = assert!(ENTRY_MAX <= 64, "a lingering entry has at most 64 bytes");

impl Entry {
    /// The entry of a connection between `ends`.
    pub fn new(
        ends: &Ends,
        next: SequenceNumber,
        expected: SequenceNumber,
        recent: Option<SequenceNumber>,
        clock_offset: u32,
        waited: Duration,
    ) -> Entry {
        let part = |end: &Endpoint| (end.address, end.port.0);
        let waited = u32::try_from(waited.as_millis()).unwrap_or(u32::MAX);
        Entry { local: part(&ends.local), remote: part(&ends.remote), next, expected, recent, clock_offset, waited }
    }

    /// Whose it is.
    pub fn ends(&self) -> Ends {
        let end = |(address, port)| Endpoint { address, port: Port(port) };
        Ends { local: end(self.local), remote: end(self.remote) }
    }

    /// As bytes: at most 64. More than half an hour of waiting is not remembered; nobody waits so long.
    pub fn to_record(mut self) -> Record {
        self.waited = self.waited.min(WAITED_MAX);
        let mut record = Record::default();
        record.put(&self);
        record
    }

    /// The entry in `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Option<Entry> {
        Record::from_bytes(bytes.to_vec()).take("an entry of TIME-WAIT").ok()
    }

    /// Whether the segment opens a new connection rather than being a late one of the old (RFC 6191, section 2; RFC 9293,
    /// MAY-2, SHLD-4): its clock has moved on, or where clocks do not tell, its number lies beyond the old ones.
    pub fn is_reopened_by(&self, segment: &Segment) -> bool {
        let is_syn =
            segment.has(TcpFlags::SYN) && !segment.flags.intersects(TcpFlags::RST | TcpFlags::ACK | TcpFlags::FIN);
        let number_is_new = segment.sequence.is_after(self.expected);
        let is_new = match (self.recent, segment.timestamps) {
            (Some(recent), Some(now)) => now.value.is_after(recent) || (now.value == recent && number_is_new),
            (None, Some(_)) => true,
            (Some(_), None) | (None, None) => number_is_new,
        };
        is_syn && is_new
    }
}

/// All connections in TIME-WAIT that have no path. All wait equally long, so that the order in which they came is the order
/// in which they end: a queue, in which every step costs the same however many wait.
#[derive(Debug)]
pub(crate) struct TimeWaits {
    /// Each with its number, in the order of coming.
    all: HashMap<Ends, (Entry, u64), Keyed>,
    /// Sooner ends first. What has gone before its time, or waits anew, stands here until it comes to the front: it is told
    /// by its number, which is not the one in `all`.
    queue: VecDeque<Place>,
    came: u64,
    /// See [`TimeWaits::clear_of_gone`].
    most: usize,
    limit: usize,
    soonest: Soonest,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    end: Instant,
    number: u64,
    ends: Ends,
}

/// The queue is cleared of those that have gone when they are more than those that wait, and than this.
const GONE_MIN: usize = 64;

impl TimeWaits {
    /// None yet, and at most `limit` of them ever at once.
    pub fn new(limit: usize, random: &mut Random) -> TimeWaits {
        TimeWaits {
            all: HashMap::with_hasher(Keyed::new(random)),
            queue: VecDeque::new(),
            came: 0,
            most: 0,
            limit: limit.max(1),
            soonest: Soonest::never(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn find(&self, ends: &Ends) -> Option<Entry> {
        self.all.get(ends).map(|(entry, _)| *entry)
    }

    /// Waits until `end` with `entry`; the one that would end first makes way if there are too many. Whoever has waited
    /// elsewhere already waits as long as those before it, though: so the queue stays in order, and longer is no harm.
    pub fn add(&mut self, entry: Entry, end: Instant) {
        let ends = entry.ends();
        self.all.remove(&ends);
        if self.all.len() >= self.limit {
            self.clear_front();
            if let Some(first) = self.queue.pop_front() {
                self.all.remove(&first.ends);
            }
        }
        let end = self.queue.back().map_or(end, |last| end.max(last.end));
        self.clear_of_gone();
        let number = self.came;
        self.came += 1;
        self.all.insert(ends, (entry, number));
        self.queue.push_back(Place { end, number, ends });
        self.tell_soonest();
    }

    pub fn remove(&mut self, ends: &Ends) {
        if self.all.remove(ends).is_some() {
            self.tell_soonest();
        }
    }

    /// When the next one ends, for those who do not hold the table.
    pub fn soonest(&self) -> Soonest {
        self.soonest.clone()
    }

    /// Takes the traces out of the table that those have left who went, where they leave no room and are many: it would
    /// double instead where it is more than half full, long after it has reached its size. Moves all for each eighth of
    /// it that has gone, so that adding one costs the same however many there are.
    fn clear_of_gone(&mut self) {
        // What a table holds that nobody has left: what this one held at most since it grew.
        let most = self.all.capacity().max(self.most);
        self.most = most;
        if self.all.len() < self.all.capacity() || self.all.len() + most / 8 > most {
            return;
        }
        let fresh = HashMap::with_capacity_and_hasher(most, self.all.hasher().clone());
        let old = std::mem::replace(&mut self.all, fresh);
        self.all.extend(old);
    }

    /// Whether this place in the queue is one that waits.
    fn waits(&self, place: &Place) -> bool {
        self.all.get(&place.ends).is_some_and(|(_, number)| *number == place.number)
    }

    /// Takes those from the front of the queue that have gone.
    fn clear_front(&mut self) {
        while self.queue.front().is_some_and(|first| !self.waits(first)) {
            self.queue.pop_front();
        }
    }

    fn tell_soonest(&mut self) {
        self.clear_front();
        if self.queue.len() > GONE_MIN.max(2 * self.all.len()) {
            let mut queue = std::mem::take(&mut self.queue);
            queue.retain(|place| self.waits(place));
            self.queue = queue;
        }
        self.soonest.set(self.queue.front().map(|first| first.end));
    }

    /// Lets go of all that have waited long enough at `now`.
    pub fn expire(&mut self, now: Instant) {
        while let Some(first) = self.queue.pop_front_if(|first| first.end <= now) {
            if self.waits(&first) {
                self.all.remove(&first.ends);
            }
        }
        self.tell_soonest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn the_largest_entry_fits_64_bytes_and_comes_back() {
        let end = Endpoint { address: IpAddr::V6(Ipv6Addr::from([0xff; 16])), port: Port(u16::MAX) };
        let ends = Ends { local: end, remote: end };
        let last = SequenceNumber(u32::MAX);
        let entry = Entry::new(&ends, last, last, Some(last), u32::MAX, Duration::from_secs(1000));
        let record = entry.to_record();
        assert!(record.as_bytes().len() <= 64, "{} bytes", record.as_bytes().len());
        assert_eq!(Entry::from_bytes(record.as_bytes()), Some(entry));
        assert_eq!(Entry::from_bytes(b"short"), None);
    }

    #[test]
    fn the_fullest_table_lets_the_oldest_go() {
        let mut table = TimeWaits::new(2, &mut Random::seeded(1));
        let entry = |port| {
            let ends =
                Ends { local: Endpoint { port: Port(port), ..Endpoint::default() }, remote: Endpoint::default() };
            Entry::new(&ends, SequenceNumber(0), SequenceNumber(0), None, 0, Duration::ZERO)
        };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        for port in 1..=3 {
            table.add(entry(port), at(u64::from(port)));
        }
        assert_eq!((table.len(), table.find(&entry(1).ends())), (2, None));
        assert_eq!(table.soonest().at(), Some(at(2)));
        table.expire(at(3));
        assert_eq!(table.len(), 0);
    }

    /// Against the obvious model, and however often the same ones wait anew, the queue stays as long as those that wait.
    #[test]
    fn whoever_waits_anew_or_goes_early_leaves_nothing_behind() {
        for seed in 0..50 {
            let mut random = Random::seeded(seed);
            let mut table = TimeWaits::new(1000, &mut random);
            let mut model: HashMap<Ends, Instant> = HashMap::new();
            let mut now = Instant::ZERO;
            for _ in 0..2000 {
                let port = Port(1 + random.below(40) as u16);
                let ends = Ends { local: Endpoint { port, ..Endpoint::default() }, remote: Endpoint::default() };
                let entry = Entry::new(&ends, SequenceNumber(0), SequenceNumber(0), None, 0, Duration::ZERO);
                match random.below(4) {
                    0 => {
                        table.remove(&ends);
                        model.remove(&ends);
                    }
                    1 => {
                        now = now + Duration::from_millis(random.below(300));
                        table.expire(now);
                        model.retain(|_, end| *end > now);
                    }
                    _ => {
                        let end = now + Duration::from_secs(2);
                        table.add(entry, end);
                        model.insert(ends, end);
                    }
                }
                assert_eq!(table.len(), model.len(), "seed {seed}");
                assert_eq!(table.find(&ends).is_some(), model.contains_key(&ends), "seed {seed}");
                assert_eq!(table.soonest().at(), model.values().min().copied(), "seed {seed}");
                assert!(table.queue.len() <= GONE_MIN.max(2 * table.len()), "seed {seed}: {}", table.queue.len());
            }
        }
    }

    #[test]
    fn a_table_whose_entries_come_and_go_stays_as_large_as_it_is() {
        let mut table = TimeWaits::new(1 << 20, &mut Random::seeded(1));
        let (mut largest, mut now) = (0, Instant::ZERO);
        // 1500 wait at a time; a table of 2048 places holds 1792.
        for step in 0..60_000u32 {
            let local = Endpoint { port: Port((step % 50_000 + 1) as u16), ..Endpoint::default() };
            let ends = Ends { local, remote: Endpoint::default() };
            let entry = Entry::new(&ends, SequenceNumber(step), SequenceNumber(0), None, 0, Duration::ZERO);
            now = now + Duration::from_millis(1);
            table.expire(now);
            table.add(entry, now + Duration::from_millis(1500));
            largest = largest.max(table.all.capacity());
        }
        assert_eq!((table.len(), largest), (1500, 1792));
    }
}
