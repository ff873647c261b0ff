//! How fast data is delivered, measured on every acknowledgment (the estimation that BBR's draft describes,
//! draft-ietf-ccwg-bbr, section 4.1). A range of data takes a [`Stamp`] with it when it is sent, which says how much had
//! been delivered by then; when it is delivered, what came in between over the time in between is the rate. The time is
//! the longer one of sending and of being acknowledged, so that acknowledgments that come in a bunch do not look fast.

use xylem_core::{Duration, Instant};

/// What a range of sent data remembers. Counters wrap; what is between two of them never exceeds a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes delivered when it was sent.
    delivered: u32,
    /// Bytes lost when it was sent.
    lost: u32,
    /// Bytes in flight with it. Its topmost bit says that the application limited them.
    in_flight: u32,
    /// When the last delivery before it was.
    delivered_at: Instant,
    /// When the flight began that it belongs to.
    first_sent_at: Instant,
}

const _: () = assert!(size_of::<Stamp>() <= 32, "one stands with each range in flight");

/// The bit of [`Stamp::in_flight`] that windows leave free.
const LIMITED: u32 = 1 << 31;
const _: () = assert!(super::congestion::WINDOW_MAX < LIMITED);

/// What one acknowledgment says about the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Bytes delivered in [`Sample::interval`].
    pub delivered: u32,
    /// The time they took: never zero.
    pub interval: Duration,
    /// The application limited what was in flight, so that the path may be faster.
    pub application_limited: bool,
    /// Bytes that were in flight when the newest delivered data was sent, itself included.
    pub in_flight_then: u32,
    /// Bytes lost since then.
    pub lost_since: u32,
    /// Bytes delivered over the connection's life, wrapping.
    pub delivered_total: u32,
    /// The same when the newest delivered data was sent.
    pub delivered_then: u32,
}

impl Sample {
    /// Bytes a second.
    pub fn rate(&self) -> u64 {
        rate(self.delivered, self.interval)
    }
}

/// `bytes` in `interval` as bytes a second.
fn rate(bytes: u32, interval: Duration) -> u64 {
    let nanoseconds = interval.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}

/// The estimator of one connection. See the module's text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Bytes delivered so far, wrapping.
    delivered: u32,
    /// Bytes lost so far, wrapping.
    lost: u32,
    /// When the last delivery was.
    delivered_at: Instant,
    /// When the flight began in which data is delivered now.
    first_sent_at: Instant,
    /// Once so much is delivered, the flight that the application limited is over.
    limited_until: Option<u32>,
    /// A round is over when something sent with this count of deliveries, or a later one, is delivered.
    round_ends: u32,
    /// The newest of what the acknowledgment in hand has delivered so far, and when it was sent.
    newest: Option<(Stamp, Instant)>,
}

/// Whether a wrapping count has come as far as `other`.
fn is_at_or_after(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 >= 0
}

impl Rate {
    /// Bytes delivered so far, wrapping.
    pub fn delivered_total(&self) -> u32 {
        self.delivered
    }

    /// Data goes out, for the first time or again, over `in_flight` bytes that are out already: what it remembers.
    pub fn sent(&mut self, now: Instant, bytes: u32, in_flight: u32) -> Stamp {
        if in_flight == 0 {
            // A flight begins: the time before it was nobody's.
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let with_it = in_flight.saturating_add(bytes).min(LIMITED - 1);
        Stamp {
            delivered: self.delivered,
            lost: self.lost,
            in_flight: if self.limited_until.is_some() { with_it | LIMITED } else { with_it },
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        }
    }

    /// The application has left the window unused with `in_flight` bytes in flight.
    pub fn limited(&mut self, in_flight: u32) {
        self.limited_until = Some(self.delivered.wrapping_add(in_flight.max(1)));
    }

    /// Whether the application limits the flight.
    pub fn is_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// `bytes` of a range that was sent at `sent_at` with `stamp` are known to be delivered, for the first time.
    pub fn delivered(&mut self, stamp: &Stamp, sent_at: Instant, bytes: u32, now: Instant) {
        self.delivered = self.delivered.wrapping_add(bytes);
        self.delivered_at = now;
        let is_newer = self.newest.is_none_or(|(newest, newest_at)| {
            (sent_at, stamp.delivered.wrapping_sub(newest.delivered) as i32) >= (newest_at, 0)
        });
        if is_newer {
            self.newest = Some((*stamp, sent_at));
        }
    }

    /// `bytes` were found lost.
    pub fn lost(&mut self, bytes: u32) {
        self.lost = self.lost.wrapping_add(bytes);
    }

    /// The acknowledgment is read to its end: what it says, and whether a round is over. `round_trip_min` is the shortest
    /// round trip so far: what seems to have been delivered in less was not measured truly.
    pub fn sample(&mut self, round_trip_min: Option<Duration>) -> (Option<Sample>, bool) {
        if self.limited_until.is_some_and(|until| is_at_or_after(self.delivered, until)) {
            self.limited_until = None;
        }
        let Some((newest, newest_at)) = self.newest.take() else { return (None, false) };
        let round_start = is_at_or_after(newest.delivered, self.round_ends);
        if round_start {
            self.round_ends = self.delivered;
        }
        self.first_sent_at = newest_at;
        let sending = newest_at.since(newest.first_sent_at);
        let acknowledging = self.delivered_at.since(newest.delivered_at);
        let interval = sending.max(acknowledging);
        let is_credible = !interval.is_zero() && round_trip_min.is_none_or(|least| interval >= least);
        let sample = is_credible.then(|| Sample {
            delivered: self.delivered.wrapping_sub(newest.delivered),
            interval,
            application_limited: newest.in_flight & LIMITED != 0,
            in_flight_then: newest.in_flight & !LIMITED,
            lost_since: self.lost.wrapping_sub(newest.lost),
            delivered_total: self.delivered,
            delivered_then: newest.delivered,
        });
        (sample, round_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Ten ranges of 1000 bytes a millisecond apart over a path of 20 ms: a megabyte a second, whoever asks when.
    #[test]
    fn a_steady_stream_has_the_rate_it_is_sent_with() {
        let mut rate = Rate::default();
        let mut stamps = std::collections::VecDeque::new();
        let mut last = None;
        for ms in 0..100 {
            if ms >= 20 {
                let stamp = stamps.pop_front().expect("sent 20 ms ago");
                rate.delivered(&stamp, at(ms - 20), 1000, at(ms));
                last = rate.sample(Some(Duration::from_millis(20))).0;
            }
            stamps.push_back(rate.sent(at(ms), 1000, stamps.len() as u32 * 1000));
        }
        let sample = last.expect("a sample");
        assert_eq!((sample.rate(), sample.in_flight_then), (1_000_000, 20_000));
        assert!(!sample.application_limited && sample.lost_since == 0);
    }

    /// Twenty ranges sent over 20 ms whose acknowledgments all come at once, late.
    #[test]
    fn acknowledgments_in_a_bunch_do_not_look_fast() {
        let mut rate = Rate::default();
        let stamps: Vec<Stamp> = (0..20).map(|ms| rate.sent(at(ms), 1000, ms as u32 * 1000)).collect();
        for (ms, stamp) in stamps.iter().enumerate() {
            rate.delivered(stamp, at(ms as u64), 1000, at(50));
        }
        let (sample, round_start) = rate.sample(None);
        let sample = sample.expect("a sample");
        // 20000 bytes between the first sending, when the flight began, and 50 ms.
        assert_eq!((sample.rate(), round_start), (400_000, true));
    }

    #[test]
    fn what_came_faster_than_the_path_is_no_measure() {
        let mut rate = Rate::default();
        let stamp = rate.sent(at(0), 1000, 0);
        rate.delivered(&stamp, at(0), 1000, at(5));
        assert_eq!(rate.sample(Some(Duration::from_millis(20))), (None, true));
        assert_eq!(rate.sample(None), (None, false), "nothing was delivered");
    }

    #[test]
    fn the_applications_limit_shows_until_its_flight_is_over() {
        let mut rate = Rate::default();
        rate.limited(0);
        let first = rate.sent(at(0), 1000, 0);
        rate.delivered(&first, at(0), 1000, at(10));
        assert!(rate.sample(None).0.expect("a sample").application_limited);
        assert!(!rate.is_limited());
        let second = rate.sent(at(10), 1000, 0);
        rate.lost(300);
        rate.delivered(&second, at(10), 1000, at(20));
        let sample = rate.sample(None).0.expect("a sample");
        assert_eq!((sample.application_limited, sample.lost_since), (false, 300));
    }

    /// One round a round trip, although acknowledgments come every millisecond, and although counters wrap.
    #[test]
    fn a_round_is_over_when_what_was_sent_in_it_arrives() {
        let mut rate = Rate { delivered: u32::MAX - 5_000, round_ends: u32::MAX - 5_000, ..Rate::default() };
        let mut stamps = std::collections::VecDeque::new();
        let mut starts = Vec::new();
        for ms in 0..100 {
            if ms >= 20 {
                rate.delivered(&stamps.pop_front().expect("sent 20 ms ago"), at(ms - 20), 1000, at(ms));
                if rate.sample(None).1 {
                    starts.push(ms);
                }
            }
            stamps.push_back(rate.sent(at(ms), 1000, stamps.len() as u32 * 1000));
        }
        assert_eq!(starts, [20, 40, 60, 80]);
    }
}
