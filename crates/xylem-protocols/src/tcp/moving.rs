//! Moving a connection: its record, and the session that goes on from it. The record holds all numbers, the options agreed
//! upon, the application's settings, and the queued bytes, up to [`QUEUED_MAX`] of them. It holds no times, since another
//! instance counts from another zero: timers begin anew where it arrives, and the clock of the timestamps goes on from
//! the last value sent. What arrived early stays behind, and so do the marks of the flight: the peer keeps its data until all
//! before it is acknowledged (RFC 2018, section 8), and so do we.

use super::config::TcpConfig;
use super::congestion::Start;
use super::ecn::Ecn;
use super::ends::Ends;
use super::own::Own;
use super::queue::Queue;
use super::receive::{Receiving, ReceivingRecord};
use super::recovery::{Recovery, RecoveryRecord};
use super::regulation::Regulation;
use super::retransmit::{Retransmission, RetransmissionRecord};
use super::send::{Sending, SendingRecord};
use super::session::{Owed, Sizes, TcpSession};
use super::state::State;
use super::timestamps::{Clock, ClockRecord};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use xylem_core::record::RECORD_MAX;
use xylem_core::{BadRecord, Duration, Facts, Instant, Message, Record};
use xylem_wire::SequenceNumber;

/// The most queued bytes a record holds. Whoever moves a connection with more waits until the peer has acknowledged some
/// (`Status::in_flight`, and room, tell); a record made too early says so, and is refused where it arrives.
pub const QUEUED_MAX: usize = 56 * 1024;
const _: () = assert!(QUEUED_MAX + 2048 < RECORD_MAX, "the rest of the record takes some hundred bytes");

/// All but the queue and the congestion control's own.
#[derive(Debug, Serialize, Deserialize)]
struct Numbers {
    state: State,
    receive: ReceivingRecord,
    clock: ClockRecord,
    ecn: Ecn,
    retransmission: RetransmissionRecord,
    recovery: RecoveryRecord,
    peer_segment: u16,
    announced: u16,
    acknowledgment_owed: bool,
    keep_alive: Option<Duration>,
    user_timeout: Option<Duration>,
    own: Option<Own>,
    no_delay: bool,
    scaled: bool,
    closed: bool,
}

impl TcpSession {
    /// Writes its record.
    pub(super) fn write(&self, record: &mut Record) {
        record.put(&Numbers {
            state: self.state,
            receive: self.receive.export(),
            clock: self.clock.export(),
            ecn: self.ecn,
            retransmission: self.retransmission.export(),
            recovery: self.recovery.export(),
            peer_segment: self.sizes.peer,
            announced: self.sizes.announced,
            acknowledgment_owed: self.owed != Owed::Nothing,
            keep_alive: self.keep_alive(),
            user_timeout: self.user_timeout(),
            own: Some(self.own()).filter(|own| *own != Own::default()),
            no_delay: self.no_delay,
            scaled: self.scaled,
            closed: self.closed,
        });
        self.congestion.export(record);
        record.put(&self.send.export());
        let fits = self.send.queue.len() as usize <= QUEUED_MAX;
        record.put(&if fits { self.send.queue.to_vec() } else { Vec::new() });
    }

    /// Whether its record says everything: it is open, and nothing is queued, in flight, early or owed.
    pub(super) fn is_quiet(&self) -> bool {
        let sends = self.send.is_outstanding() || self.send.queue.len() > 0 || self.send.fin || self.send.starved;
        let receives = !self.receive.early.is_empty() || self.receive.fin.is_some() || self.owed != Owed::Nothing;
        self.state == State::Established && !sends && !receives
    }

    /// The session that goes on from `record`.
    ///
    /// # Errors
    /// [`BadRecord`] if it does not hold what [`write`](TcpSession::write) writes, or contradicts itself.
    pub(super) fn read(
        config: Arc<TcpConfig>,
        ends: Ends,
        facts: &Facts,
        record: &mut Parts,
        now: Instant,
    ) -> Result<TcpSession, BadRecord> {
        let Parts { numbers, congestion, sending, queued } = record;
        let mut queue = Queue::default();
        for part in queued.chunks(xylem_core::pool::SMALL) {
            queue.append(&mut Message::from_bytes(part));
        }
        let clock = Clock::import(numbers.clock, now);
        let mut session = TcpSession::active(config, ends, facts, SequenceNumber(0), clock, now);
        let start = Start::new(session.sizes.segment, session.config.initial_window_segments, now, sending.first.0);
        session.congestion = Box::new(Regulation::import(&session.config, &start, congestion)?);
        session.state = begin_anew(numbers.state, &session.config, now);
        session.send = Sending::import(sending.clone(), queue);
        session.receive = Receiving::import(numbers.receive);
        session.receive.hides_doubled = !session.config.duplicate_reports;
        session.retransmission = Retransmission::import(numbers.retransmission, now);
        // The SYN, while it is outstanding, is not in the flight: the handshake repeats it.
        let sent_from = sending.unacknowledged.later(sending.first.earlier(sending.unacknowledged + 1));
        *session.recovery = Recovery::import(numbers.recovery, sent_from, sending.next, now);
        session.ecn = numbers.ecn;
        session.sizes = Sizes::new(facts, numbers.peer_segment, numbers.announced);
        session.owed = if numbers.acknowledgment_owed { Owed::Now } else { Owed::Nothing };
        session.set_keep_alive(numbers.keep_alive);
        session.set_user_timeout(numbers.user_timeout);
        session.set_own(numbers.own.unwrap_or_default());
        session.no_delay = numbers.no_delay;
        session.scaled = numbers.scaled;
        session.closed = numbers.closed;
        if !session.send.is_outstanding() {
            // How long it has been idle did not travel either: long enough to probe the network anew (RFC 5681,
            // section 4.1).
            session.sent_at = Instant::ZERO;
        }
        session.resize();
        Ok(session)
    }
}

/// What a record holds, read and judged, before anything below is open.
pub(super) struct Parts {
    numbers: Numbers,
    congestion: Record,
    sending: SendingRecord,
    queued: Vec<u8>,
}

impl Parts {
    /// Takes a connection's part off the front of the record.
    pub fn take(record: &mut Record, config: &TcpConfig) -> Result<Parts, BadRecord> {
        let numbers: Numbers = record.take("the numbers of a TCP connection")?;
        // Read once to be judged, and kept as a record of its own for the algorithm to go on from.
        let state = Regulation::import(config, &Start::new(0, 0, Instant::ZERO, 0), record)?;
        let mut congestion = Record::default();
        state.export(&mut congestion);
        let sending: SendingRecord = record.take("the sending half of a TCP connection")?;
        let queued: Vec<u8> = record.take("the queued bytes of a TCP connection")?;
        let wrong = BadRecord { at: 0, expected: "as many queued bytes as the connection has" };
        let is_opening = matches!(numbers.state, State::SynSent | State::SynReceived(_));
        let has_syn = sending.unacknowledged.is_before(sending.first);
        if queued.len() != sending.queued as usize || !sending.is_consistent() || has_syn && !is_opening {
            return Err(wrong);
        }
        Ok(Parts { numbers, congestion, sending, queued })
    }
}

/// States that end by themselves wait from the beginning again.
fn begin_anew(state: State, config: &TcpConfig, now: Instant) -> State {
    match state {
        State::TimeWait { .. } => State::TimeWait { until: now + 2 * config.segment_lifetime_max },
        State::FinWait2 { until: Some(_) } => State::FinWait2 { until: Some(now + config.orphan_wait) },
        State::SynSent
        | State::SynReceived(_)
        | State::Established
        | State::FinWait1
        | State::FinWait2 { until: None }
        | State::CloseWait
        | State::Closing
        | State::LastAck
        | State::Closed => state,
    }
}
