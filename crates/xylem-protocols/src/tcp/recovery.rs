//! What an acknowledgment says about losses, and what follows: the flight's marks, a fast recovery, the end of one, or its
//! undoing. With selective acknowledgments losses are found by RACK (RFC 8985) over the flight; a peer without them is
//! heard as RFC 6582 says, its duplicates counting as segments that have arrived somewhere. From there on both go one
//! way: what is marked lost goes again as far as the proportional reduction, or the window, allows.
//!
//! How large the window is, is the business of the congestion control, and sending that of `transmit`.

use super::flight::{Delivered, Flight};
use super::prr::{Arrival, Prr};
use super::rack::Rack;
use super::rate::{Rate, Stamp};
use super::spurious::{Finding, Suspicion, is_original};
use super::tail_probe::{Reply, TailProbe};
use super::timestamps::Clock;
use serde::{Deserialize, Serialize};
use xylem_core::{Duration, Instant};
use xylem_wire::{SackBlock, SackBlocks, SequenceNumber};

/// Duplicate acknowledgments, or segments beyond a hole, that tell a loss (RFC 5681, section 3.2; RFC 6675 4-IsLost).
const DUPLICATES_FOR_LOSS: u32 = 3;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub flight: Flight,
    /// Both ends said that they know selective acknowledgments (RFC 2018).
    pub selective: bool,
    rack: Rack,
    probe: TailProbe,
    phase: Phase,
    /// The place where the current recovery ends, or the last one ended (RecoveryPoint: RFC 6675 5-4.1).
    recover: u64,
    /// Duplicate acknowledgments in a row, of a peer without selective ones.
    duplicates: u32,
    /// Bytes that have left the network, as such duplicates tell.
    guessed: u32,
    /// Nothing behind this place ever went again.
    again_to: u64,
    /// The retransmission timer went off, and nothing has gone again since.
    owes_oldest: bool,
    /// What is kept of a recovery, and for one flight after it.
    episode: Option<Box<Episode>>,
    /// What is waited for besides the retransmission timer, and until when.
    waits: Option<(Wait, Instant)>,
}

const _: () = assert!(size_of::<Recovery>() <= 352, "a connection that does nothing costs little");

/// Where a connection stands with its losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is known to be lost, but perhaps what the path does not take (RFC 1191).
    Open,
    /// A loss was found by what arrived behind it.
    Fast,
    /// The retransmission timer went off.
    Timeout,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// What is suspected may yet arrive (RFC 8985 6.2-5).
    Reordering,
    /// The tail is probed if nothing comes back (section 7.2).
    Tail,
    /// The network marked the only segment that the window takes: nothing new goes (RFC 3168, section 6.1.2).
    Echo,
}

#[derive(Debug)]
struct Episode {
    prr: Prr,
    suspicion: Suspicion,
    /// Once the recovery is over: the place behind which it is forgotten.
    expires: Option<u64>,
}

/// What moves with a connection. Times and marks do not: what was in flight is taken as sent at once on arrival.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RecoveryRecord {
    selective: bool,
    /// Everything in flight is to be sent again: the timer had gone off.
    lost: bool,
}

/// An acknowledgment as it concerns losses.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    pub acknowledgment: SequenceNumber,
    pub blocks: &'a SackBlocks,
    /// A duplicate in the sense of RFC 5681, section 2.
    pub is_duplicate: bool,
    /// The timestamp it echoes, where timestamps are agreed.
    pub echo: Option<SequenceNumber>,
    /// There is new data that the peer's window would take.
    pub can_try: bool,
    /// Payload bytes of a segment.
    pub segment: u32,
    pub smoothed: Option<Duration>,
    pub clock: &'a Clock,
    pub now: Instant,
}

/// What an acknowledgment, or time, has told. The congestion control hears of it in the order of the members.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct News {
    /// Bytes outstanding before: sent, and not cumulatively acknowledged.
    pub outstanding_before: u32,
    /// Bytes in the network before, as far as was known.
    pub in_flight_before: u32,
    /// Bytes cumulatively acknowledged.
    pub acknowledged: u32,
    /// Bytes newly known to have arrived.
    pub delivered: u32,
    /// Bytes newly held for lost.
    pub lost: u32,
    /// The round trip of the newest data that arrived, if it was sent once (Karn's rule).
    pub round_trip: Option<Duration>,
    /// The last recovery was for nothing: its effect is taken back.
    pub is_undone: bool,
    /// A fast recovery is over.
    pub has_left: bool,
    /// A tail probe has repaired a loss: it is answered as a recovery that began and ended.
    pub is_tail_repaired: bool,
    /// A fast recovery begins.
    pub has_entered: bool,
}

impl Recovery {
    /// Of a connection whose SYN has number `initial`.
    pub fn new(initial: SequenceNumber) -> Recovery {
        Recovery {
            flight: Flight::new(initial),
            selective: false,
            rack: Rack::new(),
            probe: TailProbe::default(),
            phase: Phase::Open,
            recover: 0,
            duplicates: 0,
            guessed: 0,
            again_to: 0,
            owes_oldest: false,
            episode: None,
            waits: None,
        }
    }

    /// Bytes in the network, as far as is known (RFC 6675 4-SetPipe): what is not makes room for new data before a loss is
    /// found, too (RFC 6675 5-3).
    pub fn in_flight(&self) -> u32 {
        self.flight.flying().saturating_sub(self.guessed)
    }

    /// Whether a loss is being repaired that duplicates told of.
    pub fn is_fast(&self) -> bool {
        self.phase == Phase::Fast
    }

    /// The retransmission timer went off, and what was lost by then is not all acknowledged.
    pub fn is_timed_out(&self) -> bool {
        self.phase == Phase::Timeout
    }

    /// The handshake took so long.
    pub fn opened(&mut self, round_trip: Duration, now: Instant) {
        self.rack.opened(round_trip, now);
    }

    /// The shortest round trip of late.
    pub fn shortest(&self) -> Option<Duration> {
        self.rack.shortest()
    }

    /// Bytes that may go now, where the window is `window` bytes. `governs`: the congestion control wants it obeyed in a
    /// recovery too.
    pub fn allowance(&self, window: u32, governs: bool) -> u32 {
        match &self.episode {
            Some(episode) if self.phase == Phase::Fast && !governs => episode.prr.allowance(),
            _ => window.saturating_sub(self.in_flight()),
        }
    }

    /// Everything in flight is to be sent again, and not for congestion.
    pub fn lose_all(&mut self) {
        self.settle();
        self.flight.lose_all();
        self.guessed = 0;
    }

    /// What is to be sent again next: its place and bytes.
    pub fn next_again(&self) -> Option<(u64, u32)> {
        if self.flight.lost() == 0 {
            return None;
        }
        let is_held = self.episode.as_ref().is_some_and(|episode| episode.suspicion.holds_back());
        if is_held { None } else { self.flight.first_lost() }
    }

    /// Whether the oldest data goes again whatever the window says: what the timer's going off does not hold for lost may
    /// fill it for ever (RFC 6298, section 5.4; RFC 8985, section 6.3).
    pub fn owes_oldest(&self) -> bool {
        self.owes_oldest
    }

    /// Nothing new goes before `until`.
    pub fn hold(&mut self, until: Instant) {
        self.waits = Some((Wait::Echo, until));
    }

    /// Whether nothing new may go.
    pub fn holds(&self) -> bool {
        matches!(self.waits, Some((Wait::Echo, _)))
    }

    /// F-RTO may send no more: retransmission goes on.
    pub fn settle(&mut self) {
        if let Some(episode) = &mut self.episode {
            episode.suspicion.settle();
        }
    }

    /// New data went out with `rate` as its stamp.
    pub fn sent(&mut self, length: u32, rate: Stamp, now: Instant) {
        self.flight.sent(length, rate, now);
        self.count_sent(length);
        self.waits = self.waits.filter(|(wait, _)| *wait != Wait::Tail);
    }

    /// The `length` bytes at `place` went out again with `rate` as their stamp, and with the timestamp `stamp`.
    pub fn sent_again(&mut self, place: u64, length: u32, rate: Stamp, stamp: Option<SequenceNumber>, now: Instant) {
        self.flight.sent_again(place, length, rate, now);
        self.again_to = self.again_to.max(place + u64::from(length));
        self.owes_oldest = false;
        self.count_sent(length);
        if let Some(episode) = self.episode.as_mut().filter(|episode| episode.expires.is_none()) {
            episode.suspicion.sent_again(length, stamp);
        }
    }

    fn count_sent(&mut self, length: u32) {
        if let Some(episode) = self.episode.as_mut().filter(|_| self.phase == Phase::Fast) {
            episode.prr.sent(length);
        }
    }

    /// An acknowledgment has come, whose number is not beyond what was sent (RFC 6675 4-Update).
    pub fn hear(&mut self, heard: &Heard, rate: &mut Rate) -> News {
        let mut news = self.news();
        let base = self.flight.base();
        let (left_before, recover) = (self.guessed, self.recover);
        let is_late = self.phase == Phase::Timeout;
        let mut tally = Tally {
            rack: &mut self.rack,
            rate,
            heard,
            recover,
            delivered: 0,
            original: false,
            once: None,
            measures: true,
        };
        if heard.acknowledgment.is_after(self.flight.number(base)) {
            self.flight.acknowledge(heard.acknowledgment, |delivered| tally.take(&delivered));
        }
        let mut doubled = None;
        if self.selective {
            // What is reported behind a hole after a timeout may have been there for long: the reports before were lost.
            tally.measures = !is_late;
            doubled = find_doubled(&self.flight, heard);
            for block in heard.blocks.iter().skip(usize::from(doubled.is_some())) {
                if let Some((left, right)) = self.flight.judge(block) {
                    self.flight.sack(left, right, |delivered| tally.take(&delivered));
                }
            }
        }
        (news.delivered, news.round_trip) = (tally.delivered, tally.once.map(|at| heard.now.since(at)));
        let original = tally.original;
        // Distances within a window fit.
        news.acknowledged = (self.flight.base() - base) as u32;
        let has_advanced = news.acknowledged > 0;
        if has_advanced {
            (self.duplicates, self.owes_oldest) = (0, false);
            // What duplicates told of is now told again (RFC 9937, section 6.2), but for what filled the hole.
            let filled = heard.segment.min(news.delivered);
            news.delivered = news.delivered.saturating_sub(left_before).max(filled);
            let gone = news.acknowledged.saturating_sub(heard.segment);
            self.guessed = if self.phase == Phase::Fast { left_before.saturating_sub(gone) } else { 0 };
        }
        self.hear_of_doubles(doubled, heard, &mut news);
        self.hear_of_spurious(heard, has_advanced, original, &mut news);
        self.leave_if_repaired(&mut news);
        self.find_losses(heard, has_advanced, &mut news);
        self.guessed = self.guessed.min(self.flight.flying());
        if news.lost > 0 && self.phase == Phase::Open {
            self.enter(&mut news);
        }
        news
    }

    /// The last acknowledgment's news have reached the congestion control, whose threshold is `threshold`: what may go
    /// now in a recovery.
    pub fn regulate(&mut self, news: &News, threshold: u32, segment: u32) {
        let in_flight = self.in_flight();
        if let Some(episode) = self.episode.as_mut().filter(|_| self.phase == Phase::Fast) {
            let is_safe = news.acknowledged > 0 && news.lost == 0;
            let delivered = news.delivered;
            episode.prr.acknowledged(&Arrival { delivered, in_flight, threshold, segment, is_safe });
        }
    }

    /// When something here is due besides the retransmission timer.
    pub fn deadline(&self) -> Option<Instant> {
        self.waits.map(|(_, at)| at)
    }

    /// What is due by now, which is then no longer waited for.
    pub fn take_due(&mut self, now: Instant) -> Option<Wait> {
        let (wait, _) = self.waits.filter(|(_, at)| *at <= now)?;
        self.waits = None;
        Some(wait)
    }

    /// What was suspected has had its time.
    pub fn suspects_are_due(&mut self, segment: u32, smoothed: Option<Duration>, now: Instant) -> News {
        let mut news = self.news();
        news.lost = self.find_late(segment, smoothed, now);
        if news.lost > 0 && self.phase == Phase::Open {
            self.enter(&mut news);
        }
        news
    }

    /// Waits for the tail's acknowledgment, but no longer than until the retransmission timer goes off at `timer`
    /// (RFC 8985 7.2-1). Where the scoreboard or a recovery is at work (RFC 8985 7.2-2), or a probe is out already (RFC 8985 7.3-2), or
    /// the peer reports nothing (RFC 8985 4), there is none.
    pub fn wait_for_tail(&mut self, segment: u32, smoothed: Option<Duration>, timer: Instant, now: Instant) {
        let is_quiet = self.phase == Phase::Open && self.flight.sacked() == 0 && self.flight.lost() == 0;
        let has_tail = !self.flight.is_empty() && !self.probe.is_out();
        if self.selective && is_quiet && has_tail && self.waits.is_none() {
            let wait = TailProbe::wait(smoothed, self.flight.flying() <= segment);
            self.waits = Some((Wait::Tail, timer.min(now + wait)));
        }
    }

    /// A probe of the tail went out, ending where the flight ends.
    pub fn probed(&mut self, is_again: bool) {
        self.probe.sent(self.flight.end(), is_again);
    }

    /// The retransmission timer went off; `again`: for the same data as before. Says what was in flight, and marks what
    /// is lost now (RFC 8985 6.3). No recovery begins before all of it is acknowledged (RFC 6675 5.1). When it goes off again, what was selectively acknowledged does not count any
    /// more (RFC 2018, section 8).
    pub fn timed_out(&mut self, again: bool, smoothed: Option<Duration>, now: Instant) -> News {
        let mut news = self.news();
        let was_open = self.phase == Phase::Open;
        let window = self.rack.window(!was_open, smoothed);
        let latest = self.rack.latest_lost(window, now).unwrap_or(Instant::ZERO);
        news.lost = self.flight.lose_for_timeout(latest, again);
        if !(again && self.phase == Phase::Timeout) {
            let judges = self.selective && was_open && !again;
            let suspicion = Suspicion::new(self.flight.base(), judges);
            let prr = Prr::new(news.in_flight_before);
            self.episode = Some(Box::new(Episode { prr, suspicion, expires: None }));
        } else {
            self.settle();
        }
        (self.phase, self.recover, self.owes_oldest) = (Phase::Timeout, self.flight.end(), true);
        (self.duplicates, self.guessed, self.waits) = (0, 0, None);
        self.probe.forget();
        news
    }

    /// There is nothing in flight any more, and what comes next has number `first`.
    pub fn clear(&mut self, first: SequenceNumber) {
        self.flight.clear(first);
        (self.phase, self.episode, self.waits, self.guessed) = (Phase::Open, None, None, 0);
        self.owes_oldest = false;
        self.probe.forget();
    }

    /// Gives back what memory is held without need.
    pub fn shrink(&mut self) {
        self.flight.shrink();
        if self.flight.is_empty() && self.phase == Phase::Open {
            self.episode = None;
        }
    }

    pub fn export(&self) -> RecoveryRecord {
        RecoveryRecord { selective: self.selective, lost: self.phase == Phase::Timeout }
    }

    /// Goes on where `record` ended, with everything from `unacknowledged` to before `next` in flight since now.
    pub fn import(
        record: RecoveryRecord,
        unacknowledged: SequenceNumber,
        next: SequenceNumber,
        now: Instant,
    ) -> Recovery {
        let mut recovery = Recovery { selective: record.selective, ..Recovery::new(unacknowledged) };
        let length = next.since(unacknowledged).max(0) as u32;
        if length > 0 {
            let place = recovery.flight.base();
            let stamp = Rate::default().sent(now, length, 0);
            recovery.flight.sent(length, stamp, now);
            // Nobody knows when it was sent first: no round trip is measured on it.
            recovery.flight.sent_again(place, length, stamp, now);
        }
        if record.lost {
            recovery.flight.lose_all();
        }
        recovery.recover = recovery.flight.end();
        recovery
    }
}

/// The steps of [`Recovery::hear`].
impl Recovery {
    fn news(&self) -> News {
        let outstanding_before = (self.flight.end() - self.flight.base()) as u32;
        News { outstanding_before, in_flight_before: self.in_flight(), ..News::default() }
    }

    /// The peer says that something came twice.
    fn hear_of_doubles(&mut self, doubled: Option<(u64, u64)>, heard: &Heard, news: &mut News) {
        let base = self.flight.base();
        if let Some((left, right)) = doubled {
            // What the network has doubled by itself tells nothing about the time it takes.
            if left < self.again_to {
                self.rack.doubled(base, self.flight.end());
            }
            if self.episode.as_mut().is_some_and(|episode| episode.suspicion.doubled(left, right)) {
                self.undo(news);
            }
        }
        let is_bare_duplicate = heard.is_duplicate && heard.blocks.is_empty();
        let reply = Reply { base, doubled_to: doubled.map(|(_, right)| right), is_bare_duplicate };
        news.is_tail_repaired = self.probe.acknowledged(&reply) && self.phase == Phase::Open;
    }

    /// Timestamps and F-RTO may tell that what went again had not been lost.
    fn hear_of_spurious(&mut self, heard: &Heard, has_advanced: bool, original: bool, news: &mut News) {
        let is_ending = self.flight.base() >= self.recover;
        let Some(episode) = self.episode.as_mut().filter(|episode| episode.expires.is_none()) else { return };
        if has_advanced && episode.suspicion.answers_original(heard.echo) {
            self.undo(news);
        } else if self.phase == Phase::Timeout && !is_ending {
            let finding = episode.suspicion.judge(has_advanced, original, heard.can_try);
            if finding == Finding::Spurious {
                self.undo(news);
            }
        }
    }

    fn undo(&mut self, news: &mut News) {
        self.flight.restore();
        self.rack.undone();
        (self.phase, self.episode, news.is_undone) = (Phase::Open, None, true);
    }

    /// RFC 6675 5-A.
    fn leave_if_repaired(&mut self, news: &mut News) {
        if self.phase != Phase::Open && self.flight.base() >= self.recover {
            news.has_left = self.phase == Phase::Fast;
            (self.phase, self.guessed) = (Phase::Open, 0);
            self.rack.recovered();
            let end = self.flight.end();
            self.episode.iter_mut().for_each(|episode| episode.expires = Some(end));
        }
        let base = self.flight.base();
        if self.episode.as_ref().is_some_and(|episode| episode.expires.is_some_and(|expires| base > expires)) {
            self.episode = None;
        }
    }

    /// With reports RACK finds them (RFC 8985 4), without them duplicates tell.
    fn find_losses(&mut self, heard: &Heard, has_advanced: bool, news: &mut News) {
        if self.selective {
            if news.delivered > 0 || has_advanced {
                // Something has come back: the tail is waited for anew.
                self.waits = None;
                news.lost += self.find_late(heard.segment, heard.smoothed, heard.now);
            }
            return;
        }
        if has_advanced {
            if self.phase == Phase::Fast {
                // A partial acknowledgment: the next hole begins where it ends (RFC 6582, section 3.2, step 3).
                news.lost += self.flight.lose_front(heard.segment);
            }
        } else if heard.is_duplicate {
            self.count_duplicate(heard.segment, news);
        }
    }

    /// A duplicate from a peer that does not say what has arrived.
    fn count_duplicate(&mut self, segment: u32, news: &mut News) {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.phase == Phase::Timeout {
            return;
        }
        let more = segment.min(self.in_flight());
        self.guessed += more;
        news.delivered += more;
        // Duplicates that answer what a timeout or the last recovery sent again say nothing (RFC 6582, section 3.2).
        let is_news = self.flight.base() > self.recover;
        if self.phase == Phase::Open && self.duplicates == DUPLICATES_FOR_LOSS && is_news {
            news.lost += self.flight.lose_front(segment);
        }
    }

    /// Marks what RACK holds for lost, and waits for what it only suspects.
    fn find_late(&mut self, segment: u32, smoothed: Option<Duration>, now: Instant) -> u32 {
        // As much beyond a hole as tells a loss by itself (RFC 6675 4-IsLost).
        let is_much =
            self.flight.sacked() > (DUPLICATES_FOR_LOSS - 1) * segment || self.flight.runs() >= DUPLICATES_FOR_LOSS;
        let window = self.rack.window(self.phase != Phase::Open || is_much, smoothed);
        let newest = self.rack.newest();
        let lost = match self.rack.latest_lost(window, now) {
            Some(latest) => self.flight.lose_sent_before(newest, latest),
            None => 0,
        };
        if self.flight.has_sent_before(newest) {
            self.waits = Some((Wait::Reordering, self.rack.lost_at(window)));
        }
        lost
    }

    /// A fast recovery begins (RFC 6675 5-2), and lasts until all is acknowledged that is sent by now (RFC 6675 5-4.1).
    fn enter(&mut self, news: &mut News) {
        (self.phase, self.recover, news.has_entered) = (Phase::Fast, self.flight.end(), true);
        let suspicion = Suspicion::new(self.flight.base(), false);
        let prr = Prr::new(news.in_flight_before.max(news.lost));
        self.episode = Some(Box::new(Episode { prr, suspicion, expires: None }));
        self.waits = self.waits.filter(|(wait, _)| *wait == Wait::Reordering);
        self.probe.forget();
    }
}

/// What one acknowledgment delivers, as it is told.
struct Tally<'a> {
    rack: &'a mut Rack,
    rate: &'a mut Rate,
    heard: &'a Heard<'a>,
    recover: u64,
    delivered: u32,
    /// Something of the last recovery's flight that never went again.
    original: bool,
    /// When the newest that was sent once was sent.
    once: Option<Instant>,
    /// What comes now tells a round trip.
    measures: bool,
}

impl Tally<'_> {
    fn take(&mut self, delivered: &Delivered) {
        let Heard { echo, clock, now, .. } = self.heard;
        // A range is part of a window.
        let bytes = (delivered.end - delivered.start) as u32;
        self.delivered += bytes;
        self.rate.delivered(&delivered.stamp, delivered.sent_at, bytes, *now);
        self.original |= is_original(delivered, self.recover);
        if delivered.again == 0 && self.measures {
            self.once = self.once.max(Some(delivered.sent_at));
        }
        let answers_older = echo.is_some_and(|echo| echo.is_before(clock.value(delivered.sent_at)));
        self.rack.delivered(delivered, answers_older, *now);
    }
}

impl Flight {
    /// The places a block of the peer's says it has, if it can be true: in order, and within what was sent and is not
    /// acknowledged.
    fn judge(&self, block: &SackBlock) -> Option<(u64, u64)> {
        let (left, right) = (self.place(block.left), self.place(block.right));
        (left < right && left >= self.base() && right <= self.end()).then_some((left, right))
    }
}

/// The part that the first block reports to have come twice: below what is acknowledged, or inside the second block (RFC
/// 2883, section 4).
fn find_doubled(flight: &Flight, heard: &Heard) -> Option<(u64, u64)> {
    let mut blocks = heard.blocks.iter();
    let first = blocks.next()?;
    let (left, right) = (flight.place(first.left), flight.place(first.right));
    let is_below = first.right.is_at_or_before(heard.acknowledgment);
    let is_inside = blocks.next().is_some_and(|second| {
        flight.place(second.left) <= left && right <= flight.place(second.right) && flight.judge(second).is_some()
    });
    // One from long ago, or of no length, is nobody's.
    (left < right && right - left <= u64::from(u32::MAX / 4) && (is_below || is_inside)).then_some((left, right))
}

#[cfg(test)]
impl Recovery {
    /// Counts the flight anew.
    ///
    /// # Panics
    /// If something is counted wrong, or remembered beyond its time.
    pub fn check(&self) {
        self.flight.check();
        assert!(self.guessed <= self.flight.flying(), "more has left than was there");
        assert!(self.selective || self.flight.sacked() == 0);
        if self.phase == Phase::Fast {
            assert!(self.episode.as_ref().is_some_and(|episode| episode.expires.is_none()));
            assert!(self.flight.base() < self.recover);
        }
        if let Some((Wait::Tail, _)) = self.waits {
            assert!(self.phase == Phase::Open && !self.flight.is_empty());
        }
    }
}
