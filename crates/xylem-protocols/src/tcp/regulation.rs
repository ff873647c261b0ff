//! What regulates the sending of one connection: its congestion control, and what every algorithm needs of it, worked out
//! once: how fast data is delivered and when a round trip is over (`rate`), whether the window was used (`usage`), and
//! when the next data may go where the algorithm asks for a pace (`pacing`).

use super::congestion::{Algorithm, CongestionControl, Loss, Progress, Sent, Start};
use super::pacing::Pacing;
use super::rate::{Rate, Stamp};
use super::usage::Usage;
use xylem_core::{BadRecord, Duration, Instant, Record};

/// See the module's text. A connection holds it in a box.
#[derive(Debug)]
pub(crate) struct Regulation {
    control: Box<dyn CongestionControl>,
    algorithm: &'static Algorithm,
    /// What is told of deliveries before [`Regulation::acknowledged`] sums them up.
    pub rate: Rate,
    usage: Usage,
    pacing: Pacing,
    /// When what the pace holds back may go.
    held_until: Option<Instant>,
}

const _: () = assert!(size_of::<Regulation>() <= 192, "a connection that does nothing costs little");

/// What keeps more data from going out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The congestion window.
    Window,
    /// There is no more, or the peer takes no more: the network could do with more.
    Application,
}

impl Regulation {
    /// A new one by `algorithm`.
    pub fn new(algorithm: &'static Algorithm, start: &Start) -> Regulation {
        Regulation::of(algorithm, (algorithm.begin)(start))
    }

    fn of(algorithm: &'static Algorithm, control: Box<dyn CongestionControl>) -> Regulation {
        let (rate, usage, pacing) = (Rate::default(), Usage::default(), Pacing::default());
        Regulation { control, algorithm, rate, usage, pacing, held_until: None }
    }

    /// Begins anew, when the handshake has told what there is to start from.
    pub fn begin(&mut self, start: &Start) {
        *self = Regulation::new(self.algorithm, start);
    }

    /// Another algorithm takes over. What was measured of the path stays.
    pub fn change(&mut self, algorithm: &'static Algorithm, start: &Start) {
        if *algorithm != *self.algorithm {
            (self.control, self.algorithm) = ((algorithm.begin)(start), algorithm);
        }
    }

    /// What the algorithm is called.
    pub fn name(&self) -> &'static str {
        self.algorithm.name
    }

    /// Bytes that may be in flight.
    pub fn window(&self) -> u32 {
        self.control.window()
    }

    /// Bytes below which the window is in slow start.
    pub fn threshold(&self) -> u32 {
        self.control.threshold()
    }

    /// Payload bytes that the pace lets go in one message at `now`: without a pace as many as fit. With nothing in the network
    /// a segment always may go: an application that says little by little teaches a rate of so little, by which it would
    /// wait for seconds.
    pub fn pace(&mut self, segment: u32, in_flight: u32, now: Instant) -> u32 {
        let Some(rate) = self.control.pacing_rate() else { return u32::MAX };
        let least = if in_flight == 0 { segment } else { 0 };
        let allowed = self.pacing.allows(now, rate, segment).max(least);
        self.held_until = (allowed == 0).then(|| self.pacing.next());
        allowed - allowed % segment
    }

    /// When what the pace holds back may go, if it holds something back.
    pub fn deadline(&self) -> Option<Instant> {
        self.held_until
    }

    /// Nothing is held back any more: what may go is worked out anew.
    pub fn release(&mut self) {
        self.held_until = None;
    }

    /// See [`CongestionControl::sent`]. Returns what the data sent takes with it.
    pub fn sent(&mut self, bytes: u32, in_flight_before: u32, again: bool, now: Instant) -> Stamp {
        if let Some(rate) = self.control.pacing_rate() {
            self.pacing.sent(now, rate, bytes);
        }
        self.usage.in_flight(in_flight_before.saturating_add(bytes));
        let application_limited = self.rate.is_limited();
        self.control.sent(&Sent { now, bytes, in_flight_before, again, application_limited });
        self.rate.sent(now, bytes, in_flight_before)
    }

    /// With `in_flight` bytes in flight no more goes out, because of this.
    pub fn held(&mut self, held: Held, in_flight: u32) {
        match held {
            Held::Window => self.usage.held(),
            Held::Application => self.rate.limited(in_flight),
        }
    }

    /// See [`CongestionControl::acknowledged`]. What the deliveries told of since the last call come to is filled in.
    pub fn acknowledged(&mut self, progress: &Progress) {
        let (rate, round_start) = self.rate.sample(progress.round_trip_min);
        let limited = self.usage.is_used(self.window(), self.window() < self.threshold());
        if round_start {
            self.usage.next_round();
        }
        self.control.acknowledged(&Progress { rate, round_start, limited, ..*progress });
    }

    /// See [`CongestionControl::lost`].
    pub fn lost(&mut self, loss: &Loss) {
        self.control.lost(loss);
    }

    /// See [`CongestionControl::timed_out`].
    pub fn timed_out(&mut self, loss: &Loss, again: bool) {
        self.control.timed_out(loss, again);
    }

    /// See [`CongestionControl::recovered`].
    pub fn recovered(&mut self, in_flight: u32, now: Instant) {
        self.control.recovered(in_flight, now);
    }

    /// See [`CongestionControl::undo`].
    pub fn undo(&mut self) {
        self.control.undo();
    }

    /// See [`CongestionControl::governs_recovery`].
    pub fn governs_recovery(&self) -> bool {
        self.control.governs_recovery()
    }

    /// See [`CongestionControl::marked`].
    pub fn marked(&mut self, loss: &Loss) {
        self.control.marked(loss);
    }

    /// See [`CongestionControl::idle`].
    pub fn idle(&mut self, idle: Duration, timeout: Duration, now: Instant) {
        self.control.idle(idle, timeout, now);
    }

    /// See [`CongestionControl::resize`].
    pub fn resize(&mut self, bytes: u32) {
        self.control.resize(bytes);
    }

    /// Writes the algorithm's name and state.
    pub fn export(&self, record: &mut Record) {
        record.put(&self.algorithm.name);
        // What would not be read must not be written.
        if self.algorithm.import.is_some() {
            self.control.export(record);
        }
    }

    /// The one that goes on from `record`, by an algorithm that `config` knows.
    ///
    /// # Errors
    /// [`BadRecord`] if it is not known, or the record does not hold its state.
    pub fn import(config: &super::TcpConfig, start: &Start, record: &mut Record) -> Result<Regulation, BadRecord> {
        let name: String = record.take("the name of a congestion control")?;
        let unknown = BadRecord { at: 0, expected: "the name of a congestion control that is known here" };
        let algorithm = config.algorithms.named(&name).ok_or(unknown)?;
        Ok(Regulation::of(algorithm, algorithm.go_on(start, record)?))
    }
}
