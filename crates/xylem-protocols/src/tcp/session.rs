//! One end of one TCP connection. This file holds what a connection consists of and how the verbs of a session reach it;
//! what they do stands beside it: `arrive` (a segment comes), `acknowledge` (its acknowledgment), `transmit` (what goes
//! out), `timing` (time passes), `wishes` (what the application asks for), `moving` (to another instance).

use super::config::TcpConfig;
use super::congestion::Start;
use super::ecn::Ecn;
use super::ends::Ends;
use super::options::Offer;
use super::path_mtu::{BASE_MTU, MtuProbing};
use super::rare::Rare;
use super::receive::Receiving;
use super::recovery::Recovery;
use super::regulation::Regulation;
use super::retransmit::Retransmission;
use super::segment::Segment;
use super::send::Sending;
use super::state::{Origin, State};
use super::timestamps::Clock;
use super::{drops, gather};
use std::sync::Arc;
use xylem_core::{Control, Facts, Handled, Instant, Message, Outbox, Piece, Record, Session, Verdict};
use xylem_wire::{Header, SequenceNumber, TcpHeader};

/// One end of one connection.
#[derive(Debug)]
pub struct TcpSession {
    pub(super) config: Arc<TcpConfig>,
    pub(super) ends: Ends,
    pub(super) state: State,
    pub(super) send: Sending,
    pub(super) receive: Receiving,
    pub(super) clock: Clock,
    pub(super) retransmission: Retransmission,
    pub(super) recovery: Box<Recovery>,
    pub(super) congestion: Box<Regulation>,
    pub(super) sizes: Sizes,
    pub(super) ecn: Ecn,
    /// The acknowledgment we owe the peer.
    pub(super) owed: Owed,
    /// When to be called again for what could not be done in the last verb.
    pub(super) wake: Option<Instant>,
    /// When the peer was last heard of, or last probed.
    pub(super) quiet_since: Instant,
    /// When data last went out.
    pub(super) sent_at: Instant,
    /// When those below were last told that the peer is alive.
    pub(super) confirmed_at: Instant,
    /// What few connections need, once they do.
    pub(super) rare: Option<Box<Rare>>,
    /// Small segments go at once.
    pub(super) no_delay: bool,
    /// Data that went with a SYN was taken.
    pub(super) early_taken: bool,
    /// Windows are scaled.
    pub(super) scaled: bool,
    /// The application has closed.
    pub(super) closed: bool,
    /// `finish` has been said.
    pub(super) finished: bool,
}

const _: () = assert!(size_of::<TcpSession>() <= 512, "a connection that does nothing costs little");

/// How large segments and messages may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The largest message that goes down undivided.
    pub mtu: u32,
    /// The largest one that may stand for several segments.
    pub message_max: u32,
    /// What the peer announced.
    pub peer: u16,
    /// What we announced.
    pub announced: u16,
    /// Payload of one segment: what all that leaves (RFC 9293, MUST-16).
    pub segment: u32,
    /// No more than this is tried at the moment, in bytes of TCP's header and payload.
    pub cap: u16,
    /// The largest segment that has arrived since sizes last shrank.
    pub proven: u16,
}

/// An acknowledgment that is owed to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    Nothing,
    /// With the next data, or then (RFC 9293, SHLD-18).
    By(Instant),
    /// At once; data may carry it.
    Now,
    /// At once and by themselves, so many: each tells the peer that a segment came out of order (RFC 5681, section 3.2).
    Alone(u8),
}

impl TcpSession {
    /// A session in SYN-SENT whose SYN, numbered `initial`, goes out at its first timeout.
    pub(super) fn active(
        config: Arc<TcpConfig>,
        ends: Ends,
        facts: &Facts,
        initial: SequenceNumber,
        clock: Clock,
        now: Instant,
    ) -> TcpSession {
        let announced = super::options::announced_segment_size(&config, facts.mtu);
        let buffer = TcpConfig::buffer(config.receive_buffer);
        let mut send = Sending::new(initial, TcpConfig::buffer(config.send_buffer));
        send.is_tuned = config.send_buffer_max > config.send_buffer;
        let mut receive = Receiving::new(buffer, u32::from(announced));
        receive.hides_doubled = !config.duplicate_reports;
        receive.is_tuned = config.receive_buffer_max > config.receive_buffer;
        let start = Start::new(u32::from(announced), config.initial_window_segments, now, initial.0);
        TcpSession {
            state: State::SynSent,
            receive,
            clock,
            retransmission: Retransmission::new(&config, now),
            recovery: Box::new(Recovery::new(initial)),
            congestion: Box::new(Regulation::new(config.congestion, &start)),
            sizes: Sizes::new(facts, ends.default_segment_size(), announced),
            ecn: Ecn::new(initial),
            no_delay: config.no_delay,
            config,
            ends,
            send,
            owed: Owed::Nothing,
            wake: Some(now),
            quiet_since: now,
            sent_at: now,
            confirmed_at: now,
            rare: None,
            early_taken: false,
            scaled: false,
            closed: false,
            finished: false,
        }
    }

    /// A session in SYN-RECEIVED, grown from an embryo; the segment that completes the handshake follows.
    pub(super) fn passive(
        config: Arc<TcpConfig>,
        ends: Ends,
        facts: &Facts,
        embryo: &super::embryo::Embryo,
        clock: Clock,
        now: Instant,
    ) -> TcpSession {
        let mut session = TcpSession::active(config, ends, facts, embryo.initial, clock, now);
        session.state = State::SynReceived(Origin::Passive);
        session.wake = None;
        session.sizes.announced = embryo.announced;
        (session.send.next, session.send.highest) = (embryo.initial + 1, embryo.initial + 1);
        session.retransmission.attempts = embryo.attempts;
        session.receive.begin(embryo.peer, session.window_of_syn());
        session.send.begin_window(embryo.peer, embryo.initial, embryo.window);
        session.agree(&embryo.offer, now);
        session
    }

    /// The window that stands in our SYN, which is never scaled.
    pub(super) fn window_of_syn(&self) -> u32 {
        self.receive.buffer.min(u32::from(u16::MAX))
    }

    /// Takes up what both SYNs said.
    pub(super) fn agree(&mut self, offer: &Offer, now: Instant) {
        self.sizes.peer = offer.segment_size;
        self.ecn.agreed = offer.ecn;
        self.recovery.selective = offer.selective;
        if let Some(shift) = offer.window_scale {
            self.scaled = true;
            self.send.scale = shift;
            self.receive.scale = self.config.window_scale();
        }
        if let Some(first) = offer.timestamp {
            self.clock.agree(first, now);
        }
        self.resize();
        if self.config.mtu_probing == MtuProbing::On {
            self.begin_search(BASE_MTU, now);
        }
        // RFC 5681, section 3.1: one segment if the SYN, or the answer to it, was lost.
        let segments = if self.retransmission.attempts > 0 { 1 } else { self.config.initial_window_segments };
        self.congestion.begin(&Start::new(self.sizes.segment, segments, now, self.send.first.0));
    }

    /// Works out the segment size anew, after the options or the MTU have changed.
    pub(super) fn resize(&mut self) {
        let most = self.own().segment_max.unwrap_or(u16::MAX);
        self.sizes.resize(self.clock.option_length(), most);
        self.congestion.resize(self.sizes.segment);
    }

    /// What every verb ends with: sends what may be sent, and finishes if the end is reached.
    fn end(&mut self, out: &mut Outbox) {
        self.flush(out);
        self.settle(out);
    }
}

impl Sizes {
    pub fn new(facts: &Facts, peer: u16, announced: u16) -> Sizes {
        let mut sizes = Sizes { mtu: 0, message_max: 0, peer, announced, segment: 0, cap: u16::MAX, proven: 0 };
        sizes.take(facts);
        sizes.resize(0, u16::MAX);
        sizes
    }

    /// The layers below have said how much they take.
    pub fn take(&mut self, facts: &Facts) {
        self.mtu = facts.mtu.min(Sizes::MESSAGE_MAX) as u32;
        self.message_max = facts.segment_max.clamp(self.mtu as usize, Sizes::MESSAGE_MAX) as u32;
    }

    /// The most that IPv4 takes behind a header without options.
    const MESSAGE_MAX: usize = 65_535 - 20;

    /// The segment size where every segment carries `options` bytes of options (RFC 9293, MUST-16), and is no larger than
    /// `most` with them.
    pub fn resize(&mut self, options: u32, most: u16) {
        let mtu = self.mtu.min(u32::from(self.cap));
        let size = mtu.saturating_sub(TcpHeader::LEN as u32).min(u32::from(self.peer.min(most)));
        self.segment = size.saturating_sub(options).max(1);
    }

    /// Payload of one message: as many whole segments as it may stand for.
    pub fn message(&self, options: u32) -> u32 {
        let most = self.message_max.saturating_sub(TcpHeader::LEN as u32 + options);
        (most - most % self.segment).max(self.segment)
    }
}

impl Session for TcpSession {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let verdict = match Segment::pop(message, &self.ends) {
            Ok(segment) => self.arrive(&segment, message, out),
            Err(reason) => Verdict::Drop(reason),
        };
        self.end(out);
        verdict
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if self.send.fin || self.state == State::Closed {
            return Verdict::Drop(&drops::SEND_CLOSED);
        }
        if self.room() < message.len() {
            self.send.starved = true;
            return Verdict::Refuse;
        }
        self.take_from_above(message);
        self.end(out);
        Verdict::Keep
    }

    fn room(&self) -> usize {
        self.send.room()
    }

    fn credit(&mut self, bytes: usize, out: &mut Outbox) {
        self.receive.credit(bytes);
        self.tune_receive(bytes, out);
        out.credit(bytes);
        if self.state.receives() && self.receive.owes_update() {
            self.owe(Owed::Now);
            self.end(out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.soonest()
    }

    fn timeout(&mut self, out: &mut Outbox) {
        self.pass_time(out);
        self.end(out);
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        let handled = self.hear(control, out);
        self.end(out);
        handled
    }

    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        gather::cut(headers, piece, &self.ends)
    }

    // RFC 9293, MUST-59: what waits together is joined, and looked at before anything is answered.
    fn merge(&mut self, held: &mut Message, next: &mut Message) -> bool {
        let is_plain = self.state.receives() && self.receive.early.is_empty() && self.receive.fin.is_none();
        is_plain && gather::merge(held, next, &self.ends, self.receive.next, self.send.highest)
    }

    fn export(&self, record: &mut Record) {
        self.write(record);
    }

    fn may_rest(&self) -> bool {
        self.is_quiet()
    }

    fn close(&mut self, out: &mut Outbox) {
        self.close_both(out);
        self.end(out);
    }
}
