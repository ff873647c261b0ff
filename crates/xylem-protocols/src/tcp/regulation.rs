//! What regulates the sending of one connection: its congestion control, and which one that is. Everything the
//! connection tells the algorithm goes through here, so that what all algorithms need is worked out once.

use super::congestion::{Algorithm, CongestionControl, Loss, Progress, Sent, Start};
use xylem_core::{BadRecord, Duration, Instant, Record};

/// See the module's text. A connection holds it in a box.
#[derive(Debug)]
pub(crate) struct Regulation {
    control: Box<dyn CongestionControl>,
    algorithm: &'static Algorithm,
}

impl Regulation {
    /// A new one by `algorithm`.
    pub fn new(algorithm: &'static Algorithm, start: &Start) -> Regulation {
        Regulation { control: (algorithm.begin)(start), algorithm }
    }

    /// Begins anew, when the handshake has told what there is to start from.
    pub fn begin(&mut self, start: &Start) {
        *self = Regulation::new(self.algorithm, start);
    }

    /// Another algorithm takes over.
    pub fn change(&mut self, algorithm: &'static Algorithm, start: &Start) {
        if *algorithm != *self.algorithm {
            *self = Regulation::new(algorithm, start);
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

    /// See [`CongestionControl::acknowledged`].
    pub fn acknowledged(&mut self, progress: &Progress) {
        self.control.acknowledged(progress);
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
    #[allow(dead_code)] // Until marks are agreed upon.
    pub fn marked(&mut self, loss: &Loss) {
        self.control.marked(loss);
    }

    /// See [`CongestionControl::sent`].
    pub fn sent(&mut self, sent: &Sent) {
        self.control.sent(sent);
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
        Ok(Regulation { control: algorithm.go_on(start, record)?, algorithm })
    }
}
