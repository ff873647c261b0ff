//! RACK (RFC 8985): what was sent before something that has arrived, and longer ago than a round trip and some allowance
//! for reordering, is lost. This file keeps what that needs to know beside the flight: which transmission that has
//! arrived was the newest, how long it took, and how much reordering the path shows. The allowance begins at a quarter of
//! the shortest round trip, grows with every round in which the peer reports duplicates, and shrinks again.

use super::flight::Delivered;
use xylem_core::{Duration, Instant};

/// Recoveries after which a grown reordering window falls back (RFC 8985 6.2-4c).
const RECOVERIES_TO_FORGET: u8 = 16;
/// How long a shortest round trip is believed: the path may have changed since.
const SHORTEST_FOR: Duration = Duration::from_secs(10);

/// See the module's text. Nothing in it is allocated.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The newest transmission that has arrived: when it was sent, and the place behind it (RACK.xmit_ts, RACK.end_seq).
    newest: (Instant, u64),
    /// How long it took to be acknowledged (RACK.rtt).
    round_trip: Duration,
    shortest: Shortest,
    /// Behind the farthest byte that has arrived (RACK.fack).
    farthest: u64,
    /// Something that was sent once arrived behind what was sent after it, or was sent again before it arrived.
    reordered: bool,
    /// Quarters of the shortest round trip in the reordering window (RACK.reo_wnd_mult).
    quarters: u8,
    /// Recoveries for which a grown window stays (RACK.reo_wnd_persist).
    persists: u8,
    /// The round in which duplicates were last reported ends when this place is acknowledged (RACK.dsack_round).
    doubled_until: Option<u64>,
}

/// The shortest round trip of the last while: of this period and the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Shortest {
    now: Option<Duration>,
    before: Option<Duration>,
    since: Instant,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            newest: (Instant::ZERO, 0),
            round_trip: Duration::ZERO,
            shortest: Shortest::default(),
            farthest: 0,
            reordered: false,
            quarters: 1,
            persists: 0,
            doubled_until: None,
        }
    }

    /// The handshake took so long: what comes can hardly take less.
    pub fn opened(&mut self, round_trip: Duration, now: Instant) {
        self.shortest.take(round_trip, now);
    }

    /// The shortest round trip of late, if one was measured.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest.value()
    }

    /// Whether the path has been seen to reorder.
    #[cfg(test)]
    pub fn has_reordered(&self) -> bool {
        self.reordered
    }

    /// A part of the flight has arrived. `answers_older`: a timestamp tells that not its last transmission is answered
    /// but an older one (RFC 8985 6.2-1, RFC 8985 6.2-2, RFC 8985 6.2-3).
    pub fn delivered(&mut self, delivered: &Delivered, answers_older: bool, now: Instant) {
        let is_again = delivered.again > 0;
        if delivered.end > self.farthest {
            self.farthest = delivered.end;
        } else if !is_again {
            self.reordered = true;
        }
        let round_trip = now.since(delivered.sent_at);
        let is_doubtful = answers_older || self.shortest().is_some_and(|shortest| round_trip < shortest);
        if is_again && is_doubtful {
            return;
        }
        self.shortest.take(round_trip, now);
        if (delivered.sent_at, delivered.end) > self.newest {
            self.newest = (delivered.sent_at, delivered.end);
            self.round_trip = round_trip;
        }
    }

    /// The peer reports that something that went again reached it twice, while everything before `base` is acknowledged and
    /// everything before `end` is sent: one step for each round trip (RFC 8985 6.2-4c). It had only been late; where
    /// holes are filled at once, reordering is seen in no other way.
    pub fn doubled(&mut self, base: u64, end: u64) {
        self.reordered = true;
        if self.doubled_until.is_some_and(|until| base < until) {
            return;
        }
        self.doubled_until = Some(end);
        self.quarters = self.quarters.saturating_add(1);
        self.persists = RECOVERIES_TO_FORGET;
    }

    /// What went again had not been lost, so what seemed to answer it did not: nothing is suspected until more arrives.
    pub fn undone(&mut self) {
        self.newest = (Instant::ZERO, 0);
        self.reordered = true;
    }

    /// A recovery is over.
    pub fn recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }

    /// How much later than the newest something may arrive and not be lost. `impatient`: in a recovery, or when as much was
    /// selectively acknowledged as tells a loss by itself; then nothing is waited for on a path that never reordered
    /// (RFC 8985 6.2-4a). Otherwise it is a part of the shortest round trip (RFC 8985 6.2-4b).
    pub fn window(&self, impatient: bool, smoothed: Option<Duration>) -> Duration {
        if impatient && !self.reordered {
            return Duration::ZERO;
        }
        let quarter = self.shortest().unwrap_or_default() / 4;
        (quarter * u32::from(self.quarters)).min(smoothed.unwrap_or(Duration::MAX))
    }

    /// What was sent before this is suspected.
    pub fn newest(&self) -> (Instant, u64) {
        self.newest
    }

    /// What was sent at this time or before is lost by now, if it is suspected (RFC 8985 6.2-5).
    pub fn latest_lost(&self, window: Duration, now: Instant) -> Option<Instant> {
        let patience = u64::try_from((self.round_trip + window).as_nanos()).unwrap_or(u64::MAX);
        now.as_nanos().checked_sub(patience).map(Instant::from_nanos)
    }

    /// When all that is suspected now will be lost.
    pub fn lost_at(&self, window: Duration) -> Instant {
        self.newest.0 + self.round_trip + window
    }
}

impl Shortest {
    fn value(&self) -> Option<Duration> {
        match (self.now, self.before) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn take(&mut self, sample: Duration, now: Instant) {
        if now.since(self.since) > SHORTEST_FOR {
            (self.before, self.now, self.since) = (self.now, None, now);
        }
        self.now = Some(self.now.map_or(sample, |shortest| shortest.min(sample)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn part(start: u64, end: u64, sent_ms: u64, again: u8) -> Delivered {
        Delivered { start, end, sent_at: at(sent_ms), again, stamp: Default::default() }
    }

    const MS: Duration = Duration::from_millis(1);

    /// RFC 8985 6.2-2: what was sent again counts only if its own round trip was measured.
    #[test]
    fn the_answer_to_an_older_transmission_is_not_one_to_the_last() {
        let mut rack = Rack::new();
        rack.delivered(&part(0, 1000, 0, 0), false, at(40));
        rack.delivered(&part(1000, 2000, 50, 1), false, at(60));
        assert_eq!(rack.newest(), (at(0), 1000), "less than the shortest round trip: the original was answered");
        rack.delivered(&part(2000, 3000, 50, 1), true, at(95));
        assert_eq!(rack.newest(), (at(0), 1000), "the timestamp says so");
        rack.delivered(&part(2000, 3000, 50, 1), false, at(95));
        assert_eq!((rack.newest(), rack.round_trip), ((at(50), 3000), 45 * MS));
        assert!(!rack.has_reordered(), "what was sent again may arrive late");
    }

    /// RFC 8985 6.2-3, RFC 8985 6.2-4a, RFC 8985 6.2-4b, RFC 8985 6.2-4c.
    #[test]
    fn the_window_opens_with_reordering_and_duplicates_and_closes_after_sixteen_recoveries() {
        let mut rack = Rack::new();
        rack.delivered(&part(0, 1000, 0, 0), false, at(40));
        assert_eq!(rack.window(true, None), Duration::ZERO);
        assert_eq!(rack.window(false, None), 10 * MS);
        let mut other = rack.clone();
        other.doubled(1000, 2000);
        assert_eq!(other.window(true, None), 20 * MS);
        rack.delivered(&part(2000, 3000, 1, 0), false, at(41));
        rack.delivered(&part(1000, 2000, 1, 0), false, at(42));
        assert!(rack.has_reordered());
        assert_eq!(rack.window(true, None), 10 * MS);
        rack.doubled(3000, 9000);
        rack.doubled(4000, 9000);
        assert_eq!(rack.window(true, None), 20 * MS, "one step for a round trip");
        rack.doubled(9000, 12_000);
        assert_eq!(rack.window(true, None), 30 * MS);
        assert_eq!(rack.window(true, Some(25 * MS)), 25 * MS, "at most the smoothed round trip");
        (0..15).for_each(|_| rack.recovered());
        assert_eq!(rack.window(true, None), 30 * MS);
        rack.recovered();
        assert_eq!(rack.window(true, None), 10 * MS);
    }

    /// RFC 8985 6.2-5.
    #[test]
    fn a_loss_is_due_a_round_trip_and_the_window_after_it_was_sent() {
        let mut rack = Rack::new();
        assert_eq!(rack.latest_lost(Duration::ZERO, at(5)), Some(at(5)), "nothing was measured yet");
        rack.delivered(&part(0, 1000, 10, 0), false, at(50));
        assert_eq!(rack.latest_lost(10 * MS, at(55)), Some(at(5)));
        assert_eq!(rack.latest_lost(10 * MS, at(45)), None, "nothing is so old");
        assert_eq!(rack.lost_at(10 * MS), at(60));
    }

    /// RFC 8985 6.2-1.
    #[test]
    fn the_shortest_round_trip_is_forgotten() {
        let mut rack = Rack::new();
        rack.delivered(&part(0, 1, 0, 0), false, at(10));
        rack.delivered(&part(1, 2, 11_000, 0), false, at(11_030));
        assert_eq!(rack.shortest(), Some(10 * MS));
        rack.delivered(&part(2, 3, 22_000, 0), false, at(22_030));
        assert_eq!(rack.shortest(), Some(30 * MS));
    }
}
