//! How much may be in flight, and how fast it may leave. One trait: an algorithm hears of what is sent, delivered and
//! lost, and says a window and perhaps a rate. When something counts as lost, and what is sent again, is not its business
//! (see `recovery`), so that other algorithms and other ways to find losses can be put beside each other.

mod algorithm;
mod bbr;
mod cubic;
mod hystart;
mod reno;
mod root;
#[cfg(test)]
mod tests;

pub use super::rate::Sample;
pub use algorithm::{Algorithm, Algorithms, BBR, Begin, CUBIC, Import, NAME_MAX, RENO, Start};
pub use bbr::Bbr;
pub use cubic::Cubic;
pub use reno::NewReno;

use xylem_core::{Duration, Instant, Record};

/// No window grows beyond what a scaled window can express (RFC 7323, section 2.3).
pub const WINDOW_MAX: u32 = 0x3fff_c000;

/// See the module's text. All windows are bytes, and so is all that is in flight. Only what has no default must be
/// written; nothing here may use floating point, for a simulated connection must run the same everywhere.
pub trait CongestionControl: Send + Sync + std::fmt::Debug {
    /// Bytes that may be in flight: at least one segment, at most [`WINDOW_MAX`].
    fn window(&self) -> u32;

    /// The window below which slow start goes on, in bytes (ssthresh).
    fn threshold(&self) -> u32;

    /// Something was delivered: a message's worth of segments or one, in order or, as far as the peer says so, behind a
    /// hole. Also called during a recovery ([`Progress::in_recovery`]), in which most algorithms leave the window alone.
    fn acknowledged(&mut self, progress: &Progress);

    /// A loss was found that nobody has heard of yet. Told once for each recovery, when it begins.
    fn lost(&mut self, loss: &Loss);

    /// The retransmission timer went off; `again`: for the same data as before.
    fn timed_out(&mut self, loss: &Loss, again: bool);

    /// Bytes a second at which to send, if sending shall be spread in time; no more than the window goes out in any case.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Whether the window is obeyed during a recovery as it is. If not, whoever recovers sends by his own rule (RFC 6937)
    /// and comes back to the window, which [`lost`](CongestionControl::lost) has reduced, when he is done.
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Data went out, for the first time or again.
    fn sent(&mut self, _sent: &Sent) {}

    /// What the last call of [`lost`](CongestionControl::lost) began is repaired, with `in_flight` bytes in flight.
    fn recovered(&mut self, _in_flight: u32, _now: Instant) {}

    /// What the last call of [`lost`](CongestionControl::lost) or [`timed_out`](CongestionControl::timed_out) told of had
    /// only been late: its effect is taken back (RFC 4015; RFC 5682).
    fn undo(&mut self) {}

    /// The network marks segments instead of dropping them: told at most once a round (RFC 3168, section 6.1.2), and to
    /// be answered as a loss would be, though nothing is sent again.
    fn marked(&mut self, loss: &Loss) {
        self.lost(loss);
    }

    /// Data is about to go out after nothing had been in flight for `idle`, which is longer than the retransmission
    /// timeout `timeout` (RFC 5681, section 4.1).
    fn idle(&mut self, _idle: Duration, _timeout: Duration, _now: Instant) {}

    /// Segments have `bytes` payload bytes from now on.
    fn resize(&mut self, bytes: u32);

    /// Writes its state for its successor elsewhere. What writes nothing begins anew there ([`Algorithm::import`]).
    fn export(&self, _record: &mut Record) {}
}

/// What an acknowledgment says to an algorithm. Times within it are durations; counts are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The time.
    pub now: Instant,
    /// Bytes newly acknowledged, all before them included.
    pub acknowledged: u32,
    /// Bytes newly known to be delivered: acknowledged, or said to have come behind a hole (RFC 2018), each counted once.
    pub delivered: u32,
    /// Bytes newly found lost.
    pub lost: u32,
    /// Bytes that were in flight before it came: sent, and neither delivered nor lost as far as was known.
    pub in_flight_before: u32,
    /// Bytes in flight now.
    pub in_flight: u32,
    /// The round trip it measured, if it did.
    pub round_trip: Option<Duration>,
    /// The smoothed round trip (RFC 6298), once one was measured.
    pub smoothed: Option<Duration>,
    /// The shortest round trip of the connection so far.
    pub round_trip_min: Option<Duration>,
    /// How fast data was delivered, if it told.
    pub rate: Option<Sample>,
    /// A round trip is over: what was sent after the last one began has been delivered.
    pub round_start: bool,
    /// A loss is being repaired.
    pub in_recovery: bool,
    /// It echoes a mark of the network (RFC 3168).
    pub marked: bool,
    /// The window was used: what could not be sent waited for the network and not for the application or the peer. A
    /// window that was not used was not tested either, and does not grow (RFC 7661).
    pub limited: bool,
}

impl Progress {
    /// One that says `delivered` bytes in order of `in_flight_before`, and nothing out of the ordinary.
    pub fn in_order(now: Instant, delivered: u32, in_flight_before: u32) -> Progress {
        Progress {
            now,
            acknowledged: delivered,
            delivered,
            lost: 0,
            in_flight_before,
            in_flight: in_flight_before.saturating_sub(delivered),
            round_trip: None,
            smoothed: None,
            round_trip_min: None,
            rate: None,
            round_start: false,
            in_recovery: false,
            marked: false,
            limited: true,
        }
    }
}

/// A loss, or what has to be answered as one.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The time.
    pub now: Instant,
    /// Bytes in flight before it was found, without what limited transmit had added (RFC 5681's FlightSize).
    pub in_flight: u32,
    /// Bytes found lost, as far as is known.
    pub bytes: u32,
}

/// Data that goes out.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The time.
    pub now: Instant,
    /// How much.
    pub bytes: u32,
    /// Bytes that were in flight before it.
    pub in_flight_before: u32,
    /// It was sent before.
    pub again: bool,
    /// The application, not the window, had limited what is in flight.
    pub application_limited: bool,
}

/// What a pause does to a window: it halves for each retransmission timeout that passes unused, but not below the initial
/// window, and the threshold remembers where it was, so that slow start comes back to it (RFC 2861, section 3.1, which is
/// gentler than RFC 5681, section 4.1, and quicker to forget than RFC 7661).
fn after_idle(window: &mut u32, threshold: &mut u32, initial: u32, idle: Duration, timeout: Duration) {
    let timeouts = idle.as_nanos() / timeout.as_nanos().max(1);
    if timeouts == 0 || *window <= initial {
        return;
    }
    *threshold = (*threshold).max(*window - *window / 4);
    let halvings = timeouts.min(31) as u32;
    *window = (*window >> halvings).max(initial);
}
