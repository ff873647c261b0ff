//! The client of a churn: connections that stay, then connections at an even rate that are made, used once and closed,
//! then once more those that stayed. Each that makes no progress for a while is looked at without having been named: if it
//! can go on then, a wake-up was lost.

use super::order::{Answer, BYTES, Churned, Left, Order, Sample, Standing};
use crate::commands::bench::idle::resident_bytes;
use crate::net::{Net, Stream, Token};
use slab::Slab;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Connections under way at most: more are begun when some of these are done.
const UNDER_WAY_MAX: usize = 2048;

/// How long a wait lasts at most: connections are begun in time to this.
const STEP: Duration = Duration::from_millis(1);

/// How long a connection may take until it is looked at: longer than a SYN and its first two repetitions.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// And until it is given up.
const SILENT_AFTER: Duration = Duration::from_secs(15);

/// How often in one step those who have been named are served before the late are looked at another time.
const ROUNDS_MAX: usize = 64;

/// How many connections that stay are made or asked again in a second.
const STANDING_RATE: u64 = 20_000;

/// How many of them are closed in a second: what the queue of a TAP takes in, the answers of a kernel included.
const LEAVING_RATE: u64 = 10_000;

/// How long what is idle may take to come to rest before memory is read.
const REST: Duration = Duration::from_secs(2);

/// How long everything may take to be gone in the end, beyond the time in TIME-WAIT.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(60);

/// What the client's stack says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Connections in TIME-WAIT.
    pub time_waits: usize,
    /// Paths of conversations.
    pub paths: usize,
    /// Deadlines on the wheel.
    pub deadlines: usize,
    /// Buffers in somebody's hands.
    pub buffers: usize,
}

/// One connection.
struct Connection<S> {
    stream: S,
    begun: Instant,
    /// Which one it is, in order of beginning: its place in the slab is used again.
    serial: u64,
    /// It is asked and then left open.
    stays: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    /// So many bytes of the request have gone.
    Asking(usize),
    /// So many of the response have come.
    Listening(usize),
    /// Nothing is under way.
    Idle,
}

/// What a look at a connection came to.
enum Step {
    /// It is where it was.
    Same,
    /// It has gone on, and waits again.
    Moved,
    /// The response is here.
    Done,
}

/// See the module's text.
pub struct Client<'a, N: Net> {
    net: &'a mut N,
    targets: Vec<SocketAddr>,
    connections: Slab<Connection<N::Stream>>,
    /// Those under way, in order of beginning, and some that are done.
    aging: VecDeque<(Instant, usize, u64)>,
    under_way: usize,
    begun: u64,
    done: u64,
    churned: Churned,
    /// How long each took, in microseconds: as many as there may be, and touched before anything is measured.
    times: Vec<u32>,
    tokens: Vec<Token>,
}

impl<'a, N: Net> Client<'a, N> {
    /// A client on `net`.
    pub fn new(net: &'a mut N, order: &Order) -> Client<'a, N> {
        Client {
            net,
            targets: order.targets(),
            connections: Slab::with_capacity(order.established + UNDER_WAY_MAX),
            aging: VecDeque::with_capacity(2 * UNDER_WAY_MAX),
            under_way: 0,
            begun: 0,
            done: 0,
            churned: Churned::default(),
            times: vec![u32::MAX; (order.rate * order.seconds) as usize],
            tokens: Vec::new(),
        }
    }

    /// Does it all. `look` asks the stack.
    ///
    /// # Errors
    /// The network is gone, or a connection that is to stay could not be made.
    pub fn run(mut self, order: &Order, look: impl Fn() -> Look) -> io::Result<Answer> {
        let standing = self.stand(order)?;
        let samples = self.churn(order, &look)?;
        let answered = self.ask_again()?;
        let left = self.leave(&look)?;
        let Churned { p50_us, p99_us, .. } = self.percentiles();
        let churned = Churned { p50_us, p99_us, ..self.churned };
        Ok(Answer { standing, churned, samples, answered, left, ..Answer::default() })
    }

    /// The connections that stay.
    fn stand(&mut self, order: &Order) -> io::Result<Standing> {
        let (begun, resident_before) = (Instant::now(), resident_bytes());
        let mut pace = Pace::new(STANDING_RATE);
        let mut wanted = order.established;
        while wanted > 0 || self.under_way > 0 {
            for _ in 0..pace.due(wanted.min(UNDER_WAY_MAX - self.under_way)) {
                self.begin(true)?;
                wanted -= 1;
            }
            self.step()?;
            if let Some(failure) = self.churned.first_failure.take() {
                return Err(io::Error::other(format!("a connection that was to stay: {failure}")));
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        self.rest(REST)?;
        let made = std::mem::take(&mut self.done);
        self.churned = Churned::default();
        Ok(Standing { made, seconds, resident_before, resident_after: resident_bytes() })
    }

    /// Connections at an even rate for the time ordered.
    fn churn(&mut self, order: &Order, look: &impl Fn() -> Look) -> io::Result<Vec<Sample>> {
        let (span, begun) = (Duration::from_secs(order.seconds), Instant::now());
        let mut pace = Pace::new(order.rate);
        let mut wanted = (order.rate * order.seconds) as usize;
        let mut samples = Vec::with_capacity(order.seconds as usize + 2);
        let mut next = Duration::ZERO;
        while wanted > 0 && begun.elapsed() < span || self.under_way > 0 {
            let passed = begun.elapsed();
            if passed >= next {
                next += Duration::from_secs(1);
                samples.push(self.sample(passed, look()));
            }
            let room = UNDER_WAY_MAX - self.under_way;
            let due = if passed < span { pace.due(wanted.min(room)) } else { 0 };
            for _ in 0..due {
                self.begin(false)?;
                wanted -= 1;
            }
            self.step()?;
        }
        let passed = begun.elapsed();
        samples.push(self.sample(passed, look()));
        self.churned.made = std::mem::take(&mut self.done);
        self.churned.held_back = wanted as u64;
        self.churned.seconds = passed.as_secs_f64();
        Ok(samples)
    }

    fn sample(&self, passed: Duration, look: Look) -> Sample {
        Sample {
            at: passed.as_secs_f64(),
            resident: resident_bytes(),
            time_waits: look.time_waits as u64,
            paths: look.paths as u64,
            deadlines: look.deadlines as u64,
            made: self.done,
        }
    }

    /// Asks all that have stayed once more; how many answered.
    fn ask_again(&mut self) -> io::Result<u64> {
        let mut keys: Vec<usize> = self.connections.iter().map(|(key, _)| key).collect();
        let mut pace = Pace::new(STANDING_RATE);
        while !keys.is_empty() || self.under_way > 0 {
            for _ in 0..pace.due(keys.len().min(UNDER_WAY_MAX - self.under_way)) {
                let Some(key) = keys.pop() else { break };
                if let Some(connection) = self.connections.get_mut(key) {
                    (connection.state, connection.begun) = (State::Asking(0), Instant::now());
                    self.aging.push_back((connection.begun, key, connection.serial));
                    self.under_way += 1;
                    self.attend(key, true);
                }
            }
            self.step()?;
        }
        Ok(std::mem::take(&mut self.done))
    }

    /// Closes everything and waits until nothing is left.
    fn leave(&mut self, look: &impl Fn() -> Look) -> io::Result<Left> {
        let mut pace = Pace::new(LEAVING_RATE);
        let mut leaving = std::mem::take(&mut self.connections);
        let mut keys: Vec<usize> = leaving.iter().map(|(key, _)| key).collect();
        while !keys.is_empty() {
            for key in keys.split_off(keys.len() - pace.due(keys.len())) {
                drop(leaving.remove(key));
            }
            self.step()?;
        }
        let until = Instant::now() + LEAVE_TIME_MAX;
        loop {
            self.rest(Duration::from_millis(100))?;
            let Look { time_waits, paths, buffers, .. } = look();
            if (time_waits, paths) == (0, 0) || Instant::now() >= until {
                return Ok(Left { paths: paths as u64, time_waits: time_waits as u64, buffers: buffers as u64 });
            }
        }
    }

    /// Serves the network for `span`, beginning nothing.
    fn rest(&mut self, span: Duration) -> io::Result<()> {
        let until = Instant::now() + span;
        while Instant::now() < until {
            self.step()?;
        }
        Ok(())
    }

    fn begin(&mut self, stays: bool) -> io::Result<()> {
        let target = self.targets[self.begun as usize % self.targets.len()];
        let (serial, key) = (self.begun, self.connections.vacant_key());
        self.begun += 1;
        self.churned.begun += 1;
        match self.net.connect(target, Token(key)) {
            Ok(stream) => {
                let begun = Instant::now();
                self.connections.insert(Connection { stream, begun, serial, stays, state: State::Opening });
                self.aging.push_back((begun, key, serial));
                self.under_way += 1;
            }
            Err(error) => self.fail(error.to_string()),
        }
        Ok(())
    }

    fn fail(&mut self, why: String) {
        self.churned.failed += 1;
        self.churned.first_failure.get_or_insert(why);
    }

    /// Waits a moment, serves what has been named, and looks at what is late.
    fn step(&mut self) -> io::Result<()> {
        let mut tokens = std::mem::take(&mut self.tokens);
        let mut wait = STEP;
        // Whoever is late and has just been named is no lost wake-up: before the late are looked at, nobody is left who has
        // been named, for serving one may have brought news of another.
        for _ in 0..ROUNDS_MAX {
            self.net.wait(&mut tokens, Some(wait))?;
            let named = !tokens.is_empty();
            for token in tokens.drain(..) {
                self.attend(token.0, true);
            }
            let is_late = |(since, ..): &(Instant, usize, u64)| since.elapsed() >= STALLED_AFTER;
            if !self.aging.front().is_some_and(is_late) {
                break;
            }
            if !named {
                self.look_at_the_late();
                break;
            }
            wait = Duration::ZERO;
        }
        self.tokens = tokens;
        self.clear_aging();
        Ok(())
    }

    /// Forgets those at the front that are done.
    fn clear_aging(&mut self) {
        while let Some(&(_, key, serial)) = self.aging.front() {
            let is_under_way = |it: &Connection<N::Stream>| it.serial == serial && it.state != State::Idle;
            if self.connections.get(key).is_some_and(is_under_way) {
                return;
            }
            self.aging.pop_front();
        }
    }

    fn look_at_the_late(&mut self) {
        let now = Instant::now();
        while let Some(&(since, key, serial)) = self.aging.front() {
            let is_under_way = |it: &Connection<N::Stream>| it.serial == serial && it.state != State::Idle;
            if !self.connections.get(key).is_some_and(is_under_way) {
                self.aging.pop_front();
                continue;
            }
            if now.saturating_duration_since(since) < STALLED_AFTER {
                return;
            }
            self.aging.pop_front();
            let before = self.done;
            let moved = self.attend(key, false) || self.done > before;
            if moved {
                self.churned.lost_wake_ups += 1;
            }
            let is_old = |it: &Connection<N::Stream>| now.saturating_duration_since(it.begun) >= SILENT_AFTER;
            match self.connections.get(key).filter(|it| is_under_way(it)) {
                Some(connection) if is_old(connection) => {
                    self.churned.silent += 1;
                    self.under_way -= 1;
                    self.connections.remove(key);
                }
                Some(_) => self.aging.push_back((now, key, serial)),
                None => {}
            }
        }
    }

    /// Does what can be done for one connection: whether anything could. `named`: the network has named it.
    fn attend(&mut self, key: usize, named: bool) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        if connection.state == State::Idle {
            return false;
        }
        match connection.go_on() {
            Ok(Step::Same) => return false,
            Ok(Step::Moved) => return true,
            Ok(Step::Done) => {
                let took = connection.begun.elapsed();
                if connection.stays {
                    connection.state = State::Idle;
                } else {
                    if let Some(time) = self.times.get_mut(self.done as usize) {
                        *time = u32::try_from(took.as_micros()).unwrap_or(u32::MAX - 1);
                    }
                    self.connections.remove(key);
                }
                self.done += 1;
            }
            Err(error) => {
                let why = if named { error.to_string() } else { format!("{error}, found late") };
                self.connections.remove(key);
                self.fail(why);
            }
        }
        self.under_way -= 1;
        true
    }

    fn percentiles(&mut self) -> Churned {
        let count = (self.churned.made as usize).min(self.times.len());
        let times = &mut self.times[..count];
        times.sort_unstable();
        let rank = |hundredths: usize| times.get((count * hundredths).div_ceil(100).saturating_sub(1));
        let micros = |hundredths| rank(hundredths).map_or(0.0, |time| f64::from(*time));
        Churned { p50_us: micros(50), p99_us: micros(99), ..Churned::default() }
    }
}

impl<S: Stream> Connection<S> {
    /// Goes on as far as it can.
    fn go_on(&mut self) -> io::Result<Step> {
        const REQUEST: [u8; BYTES] = [0xa5; BYTES];
        let mut response = [0; BYTES];
        let before = self.state;
        loop {
            let step = match self.state {
                State::Opening => {
                    if !self.stream.is_connected()? {
                        break;
                    }
                    self.state = State::Asking(0);
                    continue;
                }
                State::Asking(sent) => self.stream.write(&REQUEST[sent..]),
                State::Listening(got) => self.stream.read(&mut response[got..]),
                State::Idle => break,
            };
            match (step, self.state) {
                (Ok(0), _) => return Err(ErrorKind::UnexpectedEof.into()),
                (Ok(count), State::Asking(sent)) if sent + count < BYTES => self.state = State::Asking(sent + count),
                (Ok(_), State::Asking(_)) => self.state = State::Listening(0),
                (Ok(count), State::Listening(got)) => {
                    if response[got..got + count] != REQUEST[got..got + count] {
                        return Err(io::Error::new(ErrorKind::InvalidData, "expected what was sent, got other bytes"));
                    }
                    if got + count == BYTES {
                        return Ok(Step::Done);
                    }
                    self.state = State::Listening(got + count);
                }
                (Ok(_), State::Opening | State::Idle) => {}
                // A pool that is empty for a moment says the second.
                (Err(error), _) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::OutOfMemory) => break,
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                (Err(error), _) => return Err(error),
            }
        }
        Ok(if self.state == before { Step::Same } else { Step::Moved })
    }
}

/// An even rate: what is due and was not taken stays due, but no more than a tenth of a second's worth.
struct Pace {
    rate: u64,
    last: Instant,
    /// Nanoseconds times rate that have not come to a whole one.
    part: u64,
    due: u64,
}

impl Pace {
    fn new(rate: u64) -> Pace {
        Pace { rate, last: Instant::now(), part: 0, due: 0 }
    }

    /// How many may begin now, at most `most`.
    fn due(&mut self, most: usize) -> usize {
        let now = Instant::now();
        self.advance(now.duration_since(self.last));
        self.last = now;
        self.take(most)
    }

    fn advance(&mut self, passed: Duration) {
        const SECOND: u64 = 1_000_000_000;
        let nanoseconds = (passed.as_nanos() as u64).min(SECOND);
        let sum = self.part + nanoseconds * self.rate;
        self.part = sum % SECOND;
        self.due = (self.due + sum / SECOND).min((self.rate / 10).max(1));
    }

    fn take(&mut self, most: usize) -> usize {
        let taken = self.due.min(most as u64);
        self.due -= taken;
        taken as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept_in_odd_steps_and_a_pause_is_made_good_only_in_part() {
        let mut pace = Pace::new(10_000);
        let mut taken = 0;
        for _ in 0..3000 {
            pace.advance(Duration::from_nanos(333_333));
            taken += pace.take(usize::MAX);
        }
        assert!((9_998..=10_000).contains(&taken), "{taken} in a second");
        pace.advance(Duration::from_secs(7));
        assert_eq!((pace.take(300), pace.take(usize::MAX)), (300, 700), "a tenth of a second's worth");
    }
}
