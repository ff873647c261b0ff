//! What stands beside the wire and sees both hosts: it knows nothing of the code, only what the RFCs say of segments. It
//! holds each end's sending against the peer's window and against the timers that explain a silence, and each end's window
//! against what it has promised.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use xylem::fuzz::forge::Seen;
use xylem_core::Instant;
use xylem_wire::{SequenceNumber, TcpFlags};

/// The least retransmission timeout (`rto_min`).
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// The one before a round trip was measured, and after a SYN was lost (RFC 6298, sections 2.1 and 5.7).
const TIMEOUT_INITIAL: Duration = Duration::from_secs(1);
const TIMEOUT_AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// The largest (section 2.5).
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// What the timers' wheel, a pace, or a moment without a buffer may add.
const SLACK: Duration = Duration::from_millis(20);
/// Timestamps remembered, each of one millisecond: as many as may be in flight at a time.
const STAMPS_MAX: usize = 100_000;

/// One end as the wire shows it. Places count from its SYN, which stands at 0.
#[derive(Debug)]
pub struct Side {
    /// The number of its SYN, once it has sent one.
    pub first: Option<SequenceNumber>,
    /// Behind the highest place it has sent.
    pub highest: u64,
    /// The place its peer has acknowledged, as far as that has arrived.
    pub acknowledged: u64,
    /// The furthest place that its peer's window has ever reached, as far as that has arrived.
    edge: u64,
    /// The furthest it has told its peer to go, in places of the peer's.
    pub promised: u64,
    /// The place of its peer's that it has acknowledged, and the one before which it has everything.
    expects: u64,
    has: u64,
    /// What arrived behind that.
    early: BTreeMap<u64, u64>,
    /// The last value of its clock that it sent, if its segments carry one.
    pub stamp: Option<SequenceNumber>,
    /// What the last window it heard of was worth.
    window: u32,
    /// The place that was acknowledged with it, and the number of the segment that said so.
    window_from: (u64, SequenceNumber),
    /// Shift of the windows it announces, where both SYNs said so.
    scale: Option<u8>,
    /// Its SYN went more than once.
    is_syn_lost: bool,
    /// Segments in flight: where each ends, when it was first sent, and whether it went again.
    flight: VecDeque<(u64, Instant, bool)>,
    /// When each of its clock's values went out first.
    stamps: BTreeMap<u32, Instant>,
    /// The longest round trip that may have been measured, and need not: of a SYN that went twice by its echo, or of what was
    /// reported behind a hole.
    perhaps: Duration,
    /// The longest round trip that could have been measured.
    round_trip: Option<Duration>,
    /// When it last sent something that must be acknowledged, or heard something new.
    moved: Instant,
    /// When its retransmission timer last began to run.
    restarted: Instant,
    /// When it may have heard something new.
    may_have_moved: Instant,
    /// How often in a row it then waited for as long as a timer does.
    waits: u32,
    /// It waits for its neighbour's address (RFC 826), which goes before everything, since then; or has had it since then. A
    /// silence meanwhile is not TCP's.
    asks: Option<Instant>,
    told: Option<(Instant, Instant)>,
    /// The place behind its FIN.
    fin: Option<u64>,
    /// It answered a SYN: of that it need not remember when (RFC 6298 does not ask for it).
    is_listener: bool,
    /// It was owed nothing a moment ago.
    was_idle: bool,
    /// Segments seen, sent and arrived.
    pub count: u64,
    /// The longest silence, for people.
    pub longest: Duration,
}

impl Default for Side {
    fn default() -> Side {
        Side {
            first: None,
            highest: 0,
            acknowledged: 0,
            edge: 0,
            promised: 0,
            expects: 0,
            has: 0,
            early: BTreeMap::new(),
            stamp: None,
            window: 0,
            window_from: (0, SequenceNumber(0)),
            scale: None,
            is_syn_lost: false,
            flight: VecDeque::new(),
            stamps: BTreeMap::new(),
            round_trip: None,
            perhaps: Duration::ZERO,
            moved: Instant::ZERO,
            may_have_moved: Instant::ZERO,
            restarted: Instant::ZERO,
            waits: 0,
            asks: None,
            told: None,
            fin: None,
            is_listener: false,
            was_idle: true,
            count: 0,
            longest: Duration::ZERO,
        }
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Wire {
    pub sides: [Side; 2],
}

impl Side {
    /// The place of a number of its own.
    fn place(&self, number: SequenceNumber) -> i64 {
        self.first.map_or(-1, |first| i64::from(number.since(first)))
    }

    /// The number that stands at a place.
    pub fn number(&self, place: u64) -> SequenceNumber {
        self.first.unwrap_or_default() + place as u32
    }

    /// The longest that it may be silent now while something waits for it, by RFC 6298: no sample is longer than the
    /// longest round trip R, so SRTT is at most R and RTTVAR too, and each wait in a row is twice the one before.
    fn patience(&self) -> Duration {
        let measured = self.round_trip.map(|longest| (5 * longest).max(TIMEOUT_MIN));
        let unmeasured = if self.is_syn_lost { TIMEOUT_AFTER_LOST_SYN } else { TIMEOUT_INITIAL };
        let base = measured.unwrap_or(unmeasured).max(5 * self.perhaps);
        let explained = (base * (1 << self.waits.min(16))).min(TIMEOUT_MAX.max(base));
        // Twice, for which of two segments was believed, and so what was measured and when, is not always to be seen here.
        2 * explained + SLACK
    }

    /// Its timer runs anew, and from its base.
    fn has_restarted(&mut self, now: Instant) {
        self.has_moved(now);
        (self.restarted, self.waits) = (now, 0);
    }

    fn has_moved(&mut self, now: Instant) {
        self.longest = self.longest.max(now.since(self.moved));
        self.moved = now;
    }

    /// It has sent a segment, whose window lets the peer go so far, in places of the peer's.
    fn sent(&mut self, seen: &Seen, now: Instant, is_open: bool) -> Result<(), String> {
        self.count += 1;
        // What waited for a neighbour had been sent, as far as its sender knows.
        let began = self.told.filter(|(_, told)| *told == now).map_or(now, |(asked, _)| asked);
        if let Some(timestamps) = seen.options.timestamps {
            self.stamps.entry(timestamps.value.0).or_insert(began);
            if !seen.header.flags.contains(TcpFlags::SYN) {
                self.stamp = Some(timestamps.value);
            }
            if self.stamps.len() > STAMPS_MAX {
                self.stamps.pop_first();
            }
        }
        self.asks = None;
        let length = u64::from(seen.length());
        if length == 0 || seen.header.flags.contains(TcpFlags::RST) {
            return Ok(());
        }
        let place = self.place(seen.header.sequence);
        let end = (place + length as i64).max(0) as u64;
        if seen.header.flags.contains(TcpFlags::FIN) {
            self.fin = Some(end);
        }
        if is_open && end > self.edge + 1 {
            return Err(format!("it sent up to {end}, beyond a window that ends at {}", self.edge));
        }
        for (at, _, is_again) in self.flight.iter_mut().filter(|(at, ..)| *at as i64 > place && *at <= end) {
            *is_again |= *at <= end;
        }
        // New data does not start a timer anew that runs already (RFC 6298, section 5.1).
        let is_wait = now.since(self.restarted) + SLACK >= TIMEOUT_MIN && !self.was_idle;
        self.waits += u32::from(is_wait);
        if is_wait || end <= self.highest || self.highest <= self.acknowledged {
            self.restarted = now;
        }
        self.has_moved(now);
        if end > self.highest {
            // What overlaps with what was sent before tells no round trip either.
            self.flight.push_back((end, began, (place as u64) < self.highest));
            self.highest = end;
        }
        Ok(())
    }

    /// Its peer's places from `begin` to before `end` have arrived.
    fn has_arrived(&mut self, begin: u64, end: u64) {
        let longest = self.early.entry(begin).or_default();
        *longest = end.max(*longest);
        while let Some((begin, end)) = self.early.first_key_value().map(|(begin, end)| (*begin, *end)) {
            if begin > self.has {
                return;
            }
            self.has = self.has.max(end);
            self.early.pop_first();
        }
    }

    /// How far a segment of its peer's lets it go.
    fn edge_of(&self, seen: &Seen, scale: u8) -> u64 {
        let place = self.place(seen.header.acknowledgment).max(0) as u64;
        place + (u64::from(seen.header.window) << scale)
    }

    /// What it sent is acknowledged up to the number, and it may go as far as the window says. The segment stands between
    /// two places of its peer's.
    fn heard(&mut self, seen: &Seen, scale: u8, (begin, end): (u64, u64), now: Instant) {
        self.count += 1;
        // What lies before the window is not acceptable, and neither is its acknowledgment (RFC 9293, section 3.10.7.4).
        let is_old = |place: u64| end <= place && (begin < place || end > begin);
        if seen.header.flags.contains(TcpFlags::SYN) && begin == 0 {
            self.has = self.has.max(1);
        } else if is_old(self.expects) {
            return;
        } else if is_old(self.has) {
            // It has thrown away some of it, or this does not count: it may have moved, and it may not.
            self.may_have_moved = now;
            self.edge = self.edge.max(self.edge_of(seen, scale));
            return;
        }
        // What lies beyond the window is not kept.
        self.has_arrived(begin, end.min(self.promised.max(1)));
        let place = self.place(seen.header.acknowledgment);
        if !seen.header.flags.contains(TcpFlags::ACK) || place < 0 || place > self.highest as i64 {
            return;
        }
        let place = place as u64;
        let window = u32::from(seen.header.window) << scale;
        self.edge = self.edge.max(self.edge_of(seen, scale));
        // Of two that acknowledge the same the one with the higher number was sent later; what acknowledges less was not.
        let (last_place, last_number) = self.window_from;
        let is_later = seen.header.sequence.is_at_or_after(last_number) || last_place == 0;
        let is_newer = place > last_place || (place == last_place && is_later);
        let has_opened = is_newer && self.window == 0 && window > 0;
        if is_newer {
            (self.window, self.window_from) = (window, (place, seen.header.sequence));
        }
        if place > self.acknowledged {
            self.measure(seen, place, now);
            self.acknowledged = place;
        } else {
            // News without progress may be measured, or not.
            self.perhaps = self.perhaps.max(self.measure_runs(seen, now).unwrap_or_default());
        }
        if place == self.acknowledged && has_opened || place > self.acknowledged {
            self.has_restarted(now);
        }
    }

    /// What is reported behind a hole may be measured too, when it is new, and then not again: the longest round trip that
    /// tells.
    fn measure_runs(&mut self, seen: &Seen, now: Instant) -> Option<Duration> {
        let mut longest = None;
        for run in seen.options.sack.iter() {
            let left = self.place(run.left);
            for (end, at, is_again) in self.flight.iter_mut().filter(|(end, ..)| *end as i64 > left) {
                if !*is_again {
                    longest = longest.max(Some(now.since(*at)));
                }
                *is_again |= *end as i64 <= self.first.map_or(-1, |first| i64::from(run.right.since(first)));
            }
        }
        longest
    }

    /// What an acknowledgment up to `place` may have told of the round trip: by what was sent once, or by a timestamp.
    fn measure(&mut self, seen: &Seen, place: u64, now: Instant) {
        self.has_restarted(now);
        let echo = seen.options.timestamps.and_then(|timestamps| self.stamps.get(&timestamps.echo.0));
        // The clock of an answer with a cookie stands back by up to 64 of its milliseconds.
        let back = if self.is_listener && self.acknowledged == 0 { 65 } else { 1 };
        // Of a SYN that went twice nothing need be measured (Karn's rule), though its echo tells which was answered.
        let is_doubtful = place == 1 && self.is_syn_lost;
        if let Some(at) = echo.filter(|_| is_doubtful) {
            self.perhaps = self.perhaps.max(now.since(*at) + Duration::from_millis(65));
        }
        let echo = echo.filter(|_| !is_doubtful);
        let mut longest = echo.map(|at| now.since(*at) + Duration::from_millis(back));
        longest = longest.max(self.measure_runs(seen, now));
        while let Some((end, at, is_again)) = self.flight.front().copied().filter(|(end, ..)| *end <= place) {
            if !(is_again || self.is_listener && end == 1) {
                longest = longest.max(Some(now.since(at)));
            }
            self.flight.pop_front();
        }
        self.round_trip = self.round_trip.max(longest);
    }
}

impl Wire {
    /// A segment leaves `host`.
    pub fn leaves(&mut self, host: usize, seen: &Seen, now: Instant) -> Result<(), String> {
        let (flags, sequence) = (seen.header.flags, seen.header.sequence);
        let side = &mut self.sides[host];
        if flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::RST) {
            if side.first == Some(sequence) {
                side.is_syn_lost = true;
            } else if side.acknowledged == 0 {
                let told = side.told;
                *side = Side { first: Some(sequence), moved: now, was_idle: false, told, ..Side::default() };
            } else {
                return Err(format!("host {host} sent a second SYN, {sequence}, within its connection"));
            }
            side.scale = seen.options.window_scale;
            side.is_listener = flags.contains(TcpFlags::ACK);
        }
        let is_open = side.acknowledged > 0;
        side.sent(seen, now, is_open).map_err(|wrong| format!("host {host}: {wrong}"))?;
        self.promise(host, seen)
    }

    /// A window's right edge never moves back (RFC 9293, SHLD-14), and nothing is acknowledged that was not sent.
    fn promise(&mut self, host: usize, seen: &Seen) -> Result<(), String> {
        let flags = seen.header.flags;
        if !flags.contains(TcpFlags::ACK) || flags.contains(TcpFlags::RST) {
            return Ok(());
        }
        let peer = &self.sides[1 - host];
        let place = peer.place(seen.header.acknowledgment);
        if place < 0 || place > peer.highest as i64 {
            return Err(format!("host {host} acknowledges place {place} of {}", peer.highest));
        }
        let scale = self.scale_of(host, flags);
        let edge = place as u64 + (u64::from(seen.header.window) << scale);
        // Behind the peer's FIN there is nothing that a window could be for, and a window that is shifted may lose what is
        // less than its unit (RFC 7323, section 2.4).
        let is_over = peer.fin.is_some_and(|fin| place as u64 >= fin);
        let side = &mut self.sides[host];
        if edge + (1 << scale) <= side.promised && !flags.contains(TcpFlags::SYN) && !is_over {
            return Err(format!("host {host}'s window goes back from {} to {edge}", side.promised));
        }
        side.promised = side.promised.max(edge);
        side.expects = side.expects.max(place as u64);
        Ok(())
    }

    /// `host` asks for its neighbour's address, or has been told it.
    pub fn asks(&mut self, host: usize, is_told: bool, now: Instant) {
        let side = &mut self.sides[host];
        if !is_told {
            side.asks.get_or_insert(now);
        } else if let Some(asked) = side.asks.take() {
            side.told = Some((asked, now));
            side.moved = side.moved + now.since(asked.max(side.moved));
        }
    }

    /// A segment of its peer's reaches `host`.
    pub fn arrives(&mut self, host: usize, seen: &Seen, now: Instant) {
        let scale = self.scale_of(1 - host, seen.header.flags);
        let place = self.sides[1 - host].place(seen.header.sequence).max(0) as u64;
        let range = (place, place + u64::from(seen.length()));
        self.sides[host].heard(seen, scale, range, now);
    }

    /// A segment for people: places, and windows in bytes.
    pub fn describe(&self, host: usize, arrives: bool, seen: &Seen) -> String {
        let from = if arrives { 1 - host } else { host };
        let (flags, scale) = (seen.header.flags, self.scale_of(from, seen.header.flags));
        let place = self.sides[from].place(seen.header.sequence);
        let acknowledgment = self.sides[1 - from].place(seen.header.acknowledgment);
        let window = u32::from(seen.header.window) << scale;
        let mut text = format!("{flags} {place}+{} ack {acknowledgment} win {window}", seen.payload.len());
        if !seen.options.sack.is_empty() {
            let of = |number| self.sides[1 - from].place(number);
            let runs = seen.options.sack.iter().map(|run| format!(" {}..{}", of(run.left), of(run.right)));
            text.push_str(&format!(" sack{}", runs.collect::<String>()));
        }
        text
    }

    /// How far windows of `host` are shifted: never on a SYN, and only if both said so.
    fn scale_of(&self, host: usize, flags: TcpFlags) -> u8 {
        let both = self.sides.iter().all(|side| side.scale.is_some());
        if flags.contains(TcpFlags::SYN) || !both { 0 } else { self.sides[host].scale.unwrap_or(0) }
    }

    /// Nobody is silent for longer than his timers explain while something waits for him: `owed` places of each side are
    /// to be acknowledged.
    pub fn judge(&mut self, owed: [u64; 2], now: Instant) -> Result<(), String> {
        for (host, owed) in owed.into_iter().enumerate() {
            let side = &mut self.sides[host];
            let is_idle = side.acknowledged >= owed;
            if side.was_idle && !is_idle {
                side.has_restarted(now);
            }
            side.was_idle = is_idle;
            let silent_until = side.asks.map_or(now, |asked| asked.max(side.moved));
            let (silence, most) = (silent_until.since(side.moved.max(side.may_have_moved)), side.patience());
            if !is_idle && silence > most {
                let Side { acknowledged, highest, waits, round_trip, window, .. } = side;
                return Err(format!(
                    "host {host} is silent for {silence:?}, where timers explain {most:?}: {owed} places are to be \
                     acknowledged, {acknowledged} are, {highest} were sent; {waits} waits in a row, longest round trip \
                     {round_trip:?}, window {window}"
                ));
            }
        }
        Ok(())
    }
}
