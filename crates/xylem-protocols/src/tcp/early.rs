//! Data before the handshake ends (RFC 7413), as a session sees it: what goes with our SYN and what its answer says about
//! that, and a SYN of the peer that brings data along. A SYN that has to be sent again goes alone: whatever swallowed it
//! may have minded the data or the option.

use super::drops;
use super::fast_open::Ticket;
use super::segment::Segment;
use super::session::{Owed, TcpSession};
use super::state::{Origin, State};
use xylem_core::{Control, Event, Learnt, Message, Outbox, Verdict};
use xylem_wire::{FastOpenCookie, SequenceNumber, TcpFlags, TcpHeader, TcpOptions};

/// So many timeouts in a row behind a SYN that brought data are more than a loss or two.
const BLACK_HOLE_AFTER: u8 = 3;

/// What a session knows of fast open until its handshake ends.
#[derive(Debug)]
pub(crate) enum Early {
    /// Our SYN may carry data, with this cookie, and the server takes segments of so many bytes.
    Known(FastOpenCookie, u16),
    /// Our SYN had better carry none.
    Refused,
    /// Our SYN went out with this cookie, or asked for one.
    Sent(FastOpenCookie),
    /// The server took data with our SYN, and nothing behind this number was acknowledged yet.
    Proving(SequenceNumber),
    /// The peer's SYN, of this number, brought data, which counts as pending; the answer renews the peer's cookie.
    Taken { ticket: Ticket, syn: SequenceNumber, renewal: Option<FastOpenCookie> },
}

impl TcpSession {
    fn early(&self) -> Option<&Early> {
        self.rare.as_ref().and_then(|rare| rare.early.as_ref())
    }

    /// We were made for a SYN that brings data, which follows: our answer to it is still to be sent.
    pub(super) fn expect_early(&mut self, early: Early) {
        self.rare().early = Some(early);
        self.state = State::SynReceived(Origin::Early);
        (self.send.next, self.send.highest) = (self.send.unacknowledged, self.send.unacknowledged);
    }

    /// Adds to our first SYN what fast open wants of it, and says how many queued bytes go with it.
    pub(super) fn begin_early(&mut self, options: &mut TcpOptions) -> u32 {
        let early = self.place_early(options);
        if early == 0 && self.take_early_or_never() {
            self.send.queue.clear();
        }
        early
    }

    fn place_early(&mut self, options: &mut TcpOptions) -> u32 {
        let queued = self.send.queue.len();
        if queued == 0 || self.retransmission.attempts > 0 || !self.config.fast_open.is_client() {
            return 0;
        }
        let (cookie, size) = match self.early() {
            None => (FastOpenCookie::REQUEST, 0),
            Some(Early::Known(cookie, size)) => (*cookie, *size),
            Some(Early::Refused | Early::Sent(_) | Early::Proving(_) | Early::Taken { .. }) => return 0,
        };
        options.fast_open = Some(cookie);
        self.rare().early = Some(Early::Sent(cookie));
        let size = u32::from(size).min(self.sizes.mtu.saturating_sub(TcpHeader::LENGTH_MAX as u32));
        queued.min(size.saturating_sub(options.length() as u32))
    }

    /// Whether what is queued goes with the first SYN or never; said once.
    fn take_early_or_never(&mut self) -> bool {
        self.rare.as_mut().is_some_and(|rare| std::mem::take(&mut rare.own.early_or_never))
    }

    /// The peer has answered our SYN: what that says about fast open is for the protocol to remember. What it did not take
    /// is sent as if it never had been.
    pub(super) fn judge_early(&mut self, segment: &Segment, out: &mut Outbox) {
        self.early_taken |= segment.acknowledgment.is_after(self.send.first);
        if self.rare.is_none() {
            return;
        }
        let was_again = self.retransmission.attempts > 0;
        let Some(Early::Sent(cookie)) = self.rare().early.take() else { return };
        let server = self.ends.remote.address;
        if segment.acknowledgment.is_after(self.send.first) {
            self.rare().early = Some(Early::Proving(segment.acknowledgment));
        }
        let learnt = match segment.fast_open.filter(|granted| !granted.is_empty()) {
            Some(cookie) => Learnt::FastOpen { server, cookie, segment_size: self.sizes.peer },
            // Neither an answer to our request, nor to the SYN that carried data: that way is left alone for a while.
            None if cookie.is_empty() || was_again => Learnt::NoFastOpen { server },
            None => return,
        };
        out.advise(Control::Learnt(learnt));
    }

    /// The peer's SYN that brings data: it is answered, and what it brings goes up at once.
    pub(super) fn arrive_early(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.heard(out.now);
        out.tell(Control::Event(Event::Opened));
        let rest = Segment { sequence: segment.sequence + 1, flags: segment.flags.without(TcpFlags::SYN), ..*segment };
        let verdict = self.take_contents(&rest, message, out);
        self.early_taken = true;
        // The SYN's answer says it all.
        self.owed = Owed::Nothing;
        self.send_syn(out);
        verdict
    }

    /// Whether the segment is the SYN we were made for: for the first time, or again because our answer was lost.
    pub(super) fn is_our_syn(&self, segment: &Segment) -> bool {
        let is_syn = segment.has(TcpFlags::SYN) && !segment.flags.intersects(TcpFlags::ACK | TcpFlags::RST);
        let taken = match self.early() {
            Some(Early::Taken { syn, .. }) => *syn == segment.sequence,
            Some(Early::Known(..) | Early::Refused | Early::Sent(_) | Early::Proving(_)) | None => false,
        };
        is_syn && taken && self.state == State::SynReceived(Origin::Early)
    }

    /// The SYN comes, or comes again.
    pub(super) fn arrive_our_syn(&mut self, segment: &Segment, message: &mut Message, out: &mut Outbox) -> Verdict {
        if !self.send.is_outstanding() {
            return self.arrive_early(segment, message, out);
        }
        self.send_syn(out);
        Verdict::Drop(&drops::DUPLICATE)
    }

    /// New data was acknowledged: the way carries what follows a SYN with data, too.
    pub(super) fn early_progress(&mut self) {
        if let Some(Early::Proving(number)) = self.early()
            && self.send.unacknowledged.is_after(*number)
        {
            self.rare().early = None;
        }
    }

    /// The retransmission timer has gone off. Where data was taken with our SYN and nothing came through afterwards, the way
    /// may have minded it all the same (RFC 7413, section 4.1.3): it is left alone for a while.
    pub(super) fn early_timed_out(&mut self, out: &mut Outbox) {
        let is_proving = matches!(self.early(), Some(Early::Proving(_)));
        if is_proving && self.retransmission.attempts >= BLACK_HOLE_AFTER {
            self.rare().early = None;
            out.advise(Control::Learnt(Learnt::NoFastOpen { server: self.ends.remote.address }));
        }
    }

    /// The cookie that our answer to the peer's SYN renews.
    pub(super) fn renewal(&self) -> Option<FastOpenCookie> {
        match self.early() {
            Some(Early::Taken { renewal, .. }) => *renewal,
            Some(Early::Known(..) | Early::Refused | Early::Sent(_) | Early::Proving(_)) | None => None,
        }
    }

    /// The handshake is over. A peer that was reset has not proven itself.
    pub(super) fn end_early(&mut self, was_reset: bool, out: &Outbox) {
        if matches!(self.early(), Some(Early::Proving(_))) {
            return;
        }
        let early = self.rare.as_mut().and_then(|rare| rare.early.take());
        if let (Some(Early::Taken { ticket, .. }), true) = (early, was_reset) {
            ticket.forfeit(out.now);
        }
    }
}
