//! SYN cookies (RFC 4987, section 3.6): where there is no room for another half-open connection, what it would remember
//! is sent to the peer inside our sequence number and our timestamp, and comes back with the acknowledgment. The number
//! tells the segment size and proves itself by a keyed hash that ages; the timestamp's low bits tell the other options.

use super::ends::Ends;
use super::options::Offer;
use super::protocol::lock;
use super::segment::Segment;
use siphasher::sip::SipHasher24;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use xylem_core::{Duration, Instant, Random};
use xylem_wire::{SequenceNumber, TcpOptions};

/// When SYNs are answered with cookies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CookieUse {
    /// Never: the oldest half-open connection makes way for a new one.
    Off,
    /// When the backlog of an enable, or the table of all, is full.
    #[default]
    Overflow,
    /// Always.
    Always,
}

/// A cookie counts in the slot it was made in and in the next: for one to two minutes.
const SLOT: Duration = Duration::from_secs(64);
/// Slots told apart by a cookie's five bits.
const SLOTS: u64 = 32;
/// Segment sizes told apart by its three bits, rounded down: the least we take, those of RFC 9293's defaults, tunnels,
/// both IP versions over Ethernet, FDDI's and large frames.
const SIZES: [u16; 8] = [64, 536, 1220, 1360, 1440, 1460, 4312, 8960];
/// The bits left for the hash: who guesses needs some eight million tries for one connection that then knows nothing.
const HASH_BITS: u32 = 24;

/// Bits of a timestamp that carry options; the clock stands back by that many milliseconds at most.
const STAMP_BITS: u32 = 6;
const STAMP_MASK: u32 = (1 << STAMP_BITS) - 1;
/// What stands for "no scaling" in four bits.
const NO_SCALE: u32 = 15;
const _: () = assert!((TcpOptions::WINDOW_SCALE_MAX as u32) < NO_SCALE, "every shift there is fits beside `NO_SCALE`");

/// The secret, and how it went.
#[derive(Debug)]
pub(crate) struct Cookies {
    key: (u64, u64),
    /// When the last one was sent, in nanoseconds; 0 for never.
    last: AtomicU64,
    sent: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    spent: Mutex<VecDeque<u64>>,
}

/// Cookies that have opened a connection are remembered, so many of them: whoever repeats the acknowledgment that brought
/// one, when that connection has gone, opens no other.
const SPENT_MAX: usize = 1024;

/// How cookies went, for tests and tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieCounts {
    /// SYNs answered with a cookie.
    pub sent: u64,
    /// Acknowledgments that brought a right one.
    pub accepted: u64,
    /// Acknowledgments that came while some were out and brought none that is right.
    pub refused: u64,
}

impl Cookies {
    /// A new secret.
    pub fn new(random: &mut Random) -> Cookies {
        let zero = || AtomicU64::new(0);
        let key = (random.next(), random.next());
        let spent = Mutex::default();
        Cookies { key, last: zero(), sent: zero(), accepted: zero(), refused: zero(), spent }
    }

    pub fn counts(&self) -> CookieCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CookieCounts { sent: of(&self.sent), accepted: of(&self.accepted), refused: of(&self.refused) }
    }

    /// The number of our SYN that answers the peer's, numbered `peer`, which offered segments of `size` bytes. It grows
    /// with the peer's number, so that a peer that comes again is answered with another.
    pub fn bake(&self, ends: &Ends, peer: SequenceNumber, size: u16, now: Instant) -> SequenceNumber {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.last.fetch_max(now.as_nanos().max(1), Ordering::Relaxed);
        let index = SIZES.iter().rposition(|known| *known <= size).unwrap_or(0) as u32;
        peer + self.code(ends, peer, slot_of(now), index)
    }

    /// The segment size in the cookie that comes back as `initial`, if one that we made is; `peer` numbered the peer's SYN.
    /// Nothing is looked at while none can be out: so long nobody can guess.
    pub fn taste(&self, ends: &Ends, peer: SequenceNumber, initial: SequenceNumber, now: Instant) -> Option<u16> {
        let last = self.last.load(Ordering::Relaxed);
        if last == 0 || now.since(Instant::from_nanos(last)) > 2 * SLOT {
            return None;
        }
        let code = initial.since(peer) as u32;
        let (stands_for, index) = (u64::from(code >> (HASH_BITS + 3)), code >> HASH_BITS & 7);
        let age = slot_of(now).wrapping_sub(stands_for) % SLOTS;
        let slot = slot_of(now).checked_sub(age).filter(|_| age <= 1);
        let is_ours = slot.is_some_and(|slot| self.code(ends, peer, slot, index) == code);
        let counter = if is_ours { &self.accepted } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        is_ours.then(|| SIZES[index as usize])
    }

    /// The cookie that came back as `initial` opens a connection, now. `false`: it has done so already.
    pub fn spend(&self, ends: &Ends, peer: SequenceNumber, initial: SequenceNumber) -> bool {
        let mut hasher = SipHasher24::new_with_keys(self.key.1, self.key.0);
        (ends, peer, initial).hash(&mut hasher);
        let name = hasher.finish();
        let mut spent = lock(&self.spent);
        let is_new = !spent.contains(&name);
        if is_new {
            if spent.len() == SPENT_MAX {
                spent.pop_front();
            }
            spent.push_back(name);
        }
        is_new
    }

    fn code(&self, ends: &Ends, peer: SequenceNumber, slot: u64, index: u32) -> u32 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        (ends, peer, slot, index).hash(&mut hasher);
        let hash = hasher.finish() as u32 & ((1 << HASH_BITS) - 1);
        ((slot % SLOTS) as u32) << (HASH_BITS + 3) | index << HASH_BITS | hash
    }
}

fn slot_of(now: Instant) -> u64 {
    now.as_nanos() / SLOT.as_nanos() as u64
}

/// Our timestamp at `clock` with what the peer offered in its low bits; never one of the future.
pub(crate) fn stamp(clock: SequenceNumber, offer: &Offer) -> SequenceNumber {
    let scale = offer.window_scale.map_or(NO_SCALE, u32::from);
    let bits = scale << 2 | u32::from(offer.selective) << 1 | u32::from(offer.ecn);
    let stamped = SequenceNumber(clock.0 & !STAMP_MASK | bits);
    if stamped.is_after(clock) { stamped - (STAMP_MASK + 1) } else { stamped }
}

/// What the peer had offered, as `segment` brings it back; `size` is the cookie's. Without timestamps only that is left.
/// Who forges the bits deceives itself only: they say how its own connection goes on.
pub(crate) fn offer(segment: &Segment, size: u16) -> Offer {
    let echo = segment.timestamps.map_or(NO_SCALE << 2, |timestamps| timestamps.echo.0);
    let scale = echo >> 2 & NO_SCALE;
    Offer {
        segment_size: size,
        window_scale: (scale != NO_SCALE).then_some(scale as u8),
        timestamp: segment.timestamps.map(|timestamps| timestamps.value),
        selective: echo & 2 != 0,
        ecn: echo & 1 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Endpoint;
    use xylem_wire::Port;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn ends(port: u16) -> Ends {
        Ends { local: Endpoint { port: Port(port), ..Endpoint::default() }, remote: Endpoint::default() }
    }

    #[test]
    fn a_cookie_comes_back_with_its_size_for_a_minute_or_two() {
        let mut random = Random::seeded(1);
        let cookies = Cookies::new(&mut random);
        for round in 0..2000 {
            let peer = SequenceNumber(random.next() as u32);
            let size = random.below(10_000) as u16 + 64;
            let made = at(round * 3);
            let cookie = cookies.bake(&ends(9), peer, size, made);
            let largest = SIZES.into_iter().filter(|known| *known <= size).max();
            for (later, counts) in [(0, true), (63, true), (129, false), (700, false), (32 * 64, false)] {
                let now = made + Duration::from_secs(later);
                cookies.last.store(now.as_nanos().max(1), Ordering::Relaxed);
                let got = cookies.taste(&ends(9), peer, cookie, now);
                assert_eq!(got, largest.filter(|_| counts), "round {round}, {later} s later");
            }
            assert_eq!(cookies.taste(&ends(8), peer, cookie, made), None, "another connection's");
            assert_eq!(cookies.taste(&ends(9), peer + 1, cookie, made), None, "another SYN's");
        }
    }

    #[test]
    fn nobody_guesses_a_cookie() {
        let mut random = Random::seeded(2);
        let cookies = Cookies::new(&mut random);
        let (peer, now) = (SequenceNumber(77), at(1000));
        cookies.bake(&ends(1), peer, 1460, now);
        let guessed = (0..100_000).filter(|_| {
            let guess = SequenceNumber(random.next() as u32);
            cookies.taste(&ends(2), peer, guess, now).is_some()
        });
        assert_eq!(guessed.count(), 0, "one in eight million is right");
        assert_eq!(cookies.counts().refused, 100_000);
        assert_eq!(cookies.taste(&ends(2), peer, SequenceNumber(1), at(2000)), None);
        assert_eq!(cookies.counts().refused, 100_000, "long after the last one nothing is looked at");
    }

    #[test]
    fn the_low_bits_of_the_timestamp_bring_the_options_back() {
        let mut random = Random::seeded(3);
        for _ in 0..2000 {
            let offered = Offer {
                segment_size: 536,
                window_scale: Some(random.below(16) as u8).filter(|shift| *shift < 15),
                timestamp: Some(SequenceNumber(5)),
                selective: random.chance_per_million(500_000),
                ecn: random.chance_per_million(500_000),
            };
            let clock = SequenceNumber(random.next() as u32);
            let stamped = stamp(clock, &offered);
            assert!((0..=64).contains(&clock.since(stamped)), "{clock} became {stamped}");
            let segment = Segment {
                timestamps: Some(xylem_wire::Timestamps { value: SequenceNumber(5), echo: stamped }),
                ..Segment::default()
            };
            assert_eq!(offer(&segment, 536), offered);
        }
        let bare = offer(&Segment::default(), 536);
        assert_eq!((bare.window_scale, bare.timestamp, bare.selective, bare.ecn), (None, None, false, false));
    }
}
