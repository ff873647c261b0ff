//! The sending half: what is queued, sent and acknowledged, the peer's window, and what to send next. Sequence numbers
//! and places in the queue meet here only.

use super::queue::Queue;
use serde::{Deserialize, Serialize};
use xylem_wire::SequenceNumber;

/// See the module's text. What goes again is the flight's business; `next` only moves forward.
#[derive(Debug)]
pub(crate) struct Sending {
    /// The oldest number not acknowledged (SND.UNA).
    pub unacknowledged: SequenceNumber,
    /// The number to send next (SND.NXT).
    pub next: SequenceNumber,
    /// Behind the highest number ever sent: beyond `next` only by what probed a closed window, which is sent once more when
    /// it opens.
    pub highest: SequenceNumber,
    /// The number of the queue's first byte.
    pub first: SequenceNumber,
    /// The peer's window in bytes (SND.WND).
    pub window: u32,
    /// The largest window the peer ever offered.
    pub window_max: u32,
    /// Sequence and acknowledgment number of the segment that last set the window (SND.WL1, SND.WL2).
    window_from: (SequenceNumber, SequenceNumber),
    /// How far the peer shifts its windows.
    pub scale: u8,
    /// What waits to be sent or acknowledged.
    pub queue: Queue,
    /// Bytes of buffers the queue may keep alive.
    pub budget: u32,
    /// The budget grows with what may be in flight.
    pub is_tuned: bool,
    /// The application sends no more: a FIN follows the queue.
    pub fin: bool,
    /// The FIN has been sent at least once.
    pub fin_sent: bool,
    /// Behind the last urgent byte (RFC 9293, MUST-62).
    pub urgent: Option<SequenceNumber>,
    /// Somebody was refused, or nearly: `writable` is owed.
    pub starved: bool,
}

/// What moves with a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SendingRecord {
    pub unacknowledged: SequenceNumber,
    pub next: SequenceNumber,
    pub highest: SequenceNumber,
    pub first: SequenceNumber,
    window: u32,
    window_max: u32,
    window_from: (SequenceNumber, SequenceNumber),
    scale: u8,
    budget: u32,
    is_tuned: bool,
    pub fin: bool,
    pub fin_sent: bool,
    urgent: Option<SequenceNumber>,
    /// How many bytes are queued. The bytes themselves follow.
    pub queued: u32,
}

/// A part of the queue to send in one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The number of its first byte.
    pub sequence: SequenceNumber,
    /// Bytes.
    pub length: u32,
    /// It empties the queue.
    pub last: bool,
    /// The FIN goes with it.
    pub fin: bool,
}

/// What limits the next piece besides the peer's window and the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes that may go now, for all the congestion control says.
    pub allowance: u32,
    /// Payload bytes of one segment.
    pub segment: u32,
    /// Payload bytes of one message: a multiple of the segment.
    pub message: u32,
    /// Small segments go at once.
    pub no_delay: bool,
    /// Small segments wait, whatever Nagle says of them.
    pub corked: bool,
}

impl SendingRecord {
    /// Whether its numbers can be those of one connection: in order, and no further apart than what is queued. A record
    /// may come from anybody.
    pub fn is_consistent(&self) -> bool {
        let sent = |number: SequenceNumber| number.since(self.unacknowledged);
        let behind_all = self.first + self.queued + u32::from(self.fin);
        (0..=sent(self.highest)).contains(&sent(self.next))
            && self.highest.is_at_or_before(behind_all)
            && (-1..=1).contains(&self.unacknowledged.since(self.first).min(1))
            && (self.unacknowledged.is_at_or_before(self.first) || self.queued == 0)
    }
}

impl Sending {
    /// A half whose SYN has number `initial`, keeping at most `budget` bytes of buffers.
    pub fn new(initial: SequenceNumber, budget: u32) -> Sending {
        Sending {
            unacknowledged: initial,
            next: initial,
            highest: initial,
            first: initial + 1,
            window: 0,
            window_max: 0,
            window_from: (SequenceNumber(0), initial),
            scale: 0,
            queue: Queue::default(),
            budget,
            is_tuned: false,
            fin: false,
            fin_sent: false,
            urgent: None,
            starved: false,
        }
    }

    /// Bytes sent and not acknowledged, counted as RFC 5681's FlightSize.
    pub fn in_flight(&self) -> u32 {
        self.next.since(self.unacknowledged).max(0) as u32
    }

    /// The number for a segment without data: behind all that was sent, for going back to send again does not make the
    /// peer expect less, and a number below what it expects would be declined with its acknowledgment. But not behind
    /// the peer's window, where a probe may have gone.
    pub fn bare_number(&self) -> SequenceNumber {
        let edge = self.unacknowledged + self.window;
        self.highest.earlier(edge.later(self.unacknowledged))
    }

    /// Whether the peer has yet to acknowledge something.
    pub fn is_outstanding(&self) -> bool {
        self.highest != self.unacknowledged
    }

    /// The number of the FIN, sent or to be sent.
    pub fn fin_number(&self) -> SequenceNumber {
        self.first + self.queue.len()
    }

    /// Whether the peer has acknowledged our FIN.
    pub fn fin_is_acknowledged(&self) -> bool {
        self.fin_sent && self.unacknowledged.is_after(self.fin_number())
    }

    /// Bytes of the peer's window that are not used: none if it was taken back (RFC 9293, SHLD-15).
    pub fn usable_window(&self) -> u32 {
        self.window.saturating_sub(self.in_flight())
    }

    /// Queued bytes at or behind `next`.
    pub fn unsent(&self) -> u32 {
        self.queue.len().saturating_sub(self.next.since(self.first).max(0) as u32)
    }

    /// Whether anything is still to be sent for the first time.
    pub fn has_more(&self) -> bool {
        self.unsent() > 0 || (self.fin && self.next.is_at_or_before(self.fin_number()))
    }

    /// Bytes that may be pushed.
    pub fn room(&self) -> usize {
        (self.budget as usize).saturating_sub(self.queue.capacity())
    }

    /// Takes the window a segment offers, unless an older segment comes late. RFC 9293, section 3.10.7.4, tells them apart by
    /// their numbers first, which a retransmission has from long ago: then its acknowledgment would move the window's edge
    /// beyond what the peer has promised. Acknowledgments only go forward, so that they tell first here. A window that shrinks
    /// is taken as it is (RFC 9293, MUST-34). Says whether it changed.
    pub fn take_window(&mut self, sequence: SequenceNumber, acknowledgment: SequenceNumber, window: u32) -> bool {
        let (last_sequence, last_acknowledgment) = self.window_from;
        let is_newer = last_acknowledgment.is_before(acknowledgment)
            || (last_acknowledgment == acknowledgment && last_sequence.is_at_or_before(sequence));
        if !is_newer {
            return false;
        }
        self.window_from = (sequence, acknowledgment);
        self.window_max = self.window_max.max(window);
        std::mem::replace(&mut self.window, window) != window
    }

    /// The window offered with the SYN, which is never scaled (RFC 7323 2.2-2).
    pub fn begin_window(&mut self, sequence: SequenceNumber, acknowledgment: SequenceNumber, window: u16) {
        self.window_from = (sequence, acknowledgment);
        self.window = u32::from(window);
        self.window_max = self.window;
    }

    /// The peer has everything before `acknowledgment`: lets go of it.
    pub fn acknowledge(&mut self, acknowledgment: SequenceNumber) {
        self.unacknowledged = acknowledgment;
        self.next = self.next.later(acknowledgment);
        let bytes = acknowledgment.since(self.first).max(0) as u32;
        let bytes = bytes.min(self.queue.len());
        self.queue.release(bytes);
        self.first += bytes;
        if self.urgent.is_some_and(|urgent| urgent.is_at_or_before(acknowledgment)) {
            self.urgent = None;
        }
    }

    /// Nothing is sent any more, for the first time or again.
    pub fn give_up(&mut self) {
        self.queue.clear();
        self.first = self.highest;
        (self.next, self.unacknowledged) = (self.highest, self.highest);
        self.urgent = None;
    }

    /// What to send next, if anything may be sent now: as many whole segments as the windows allow (RFC 9293, SHLD-28); less
    /// than one only where Nagle (RFC 9293, SHLD-7) and silly-window avoidance (MUST-38) let it.
    pub fn plan(&self, limits: &Limits) -> Option<Piece> {
        let unsent = self.unsent();
        let sequence = self.next;
        if unsent == 0 {
            let fin = self.fin && sequence == self.fin_number();
            return fin.then_some(Piece { sequence, length: 0, last: true, fin });
        }
        let usable = self.usable_window().min(limits.allowance);
        let length = unsent.min(usable).min(limits.message);
        let tail = length % limits.segment;
        let length = if length == unsent {
            if tail > 0 && !self.may_send_tail(length, tail, limits) { length - tail } else { length }
        } else if length > tail {
            length - tail
        } else if length >= (self.window_max / 2).max(1) {
            // Half of what this peer ever offers is as much as can be hoped for.
            length
        } else {
            0
        };
        let last = length == unsent;
        (length > 0).then_some(Piece { sequence, length, last, fin: last && self.fin })
    }

    /// Whether the last `tail` bytes of `length`, less than a segment, may go now: Nagle's rule and what is not subject to
    /// it. A message of several segments is judged as its pieces would be: the tail follows others that are then in
    /// flight.
    fn may_send_tail(&self, length: u32, tail: u32, limits: &Limits) -> bool {
        let start = self.next + (length - tail);
        let is_alone = self.in_flight() == 0 && length == tail;
        let is_again = start.is_before(self.highest);
        let is_urgent = self.urgent.is_some_and(|end| end.is_after(start));
        let must_go = is_again || self.fin || is_urgent;
        must_go || (!limits.corked && (limits.no_delay || is_alone))
    }

    /// Where `sequence` stands in the queue.
    pub fn offset(&self, sequence: SequenceNumber) -> u32 {
        sequence.since(self.first).max(0) as u32
    }

    pub fn export(&self) -> SendingRecord {
        SendingRecord {
            unacknowledged: self.unacknowledged,
            next: self.next,
            highest: self.highest,
            first: self.first,
            window: self.window,
            window_max: self.window_max,
            window_from: self.window_from,
            scale: self.scale,
            budget: self.budget,
            is_tuned: self.is_tuned,
            fin: self.fin,
            fin_sent: self.fin_sent,
            urgent: self.urgent,
            queued: self.queue.len(),
        }
    }

    /// The half that `record` describes, over a queue that holds its bytes already.
    pub fn import(record: SendingRecord, queue: Queue) -> Sending {
        Sending {
            unacknowledged: record.unacknowledged,
            next: record.next,
            highest: record.highest,
            first: record.first,
            window: record.window,
            window_max: record.window_max,
            window_from: record.window_from,
            scale: record.scale.min(xylem_wire::TcpOptions::WINDOW_SCALE_MAX),
            queue,
            budget: super::TcpConfig::buffer(record.budget as usize),
            is_tuned: record.is_tuned,
            fin: record.fin,
            fin_sent: record.fin_sent,
            urgent: record.urgent,
            starved: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Message;

    /// A half that may send, with `queued` bytes of which the first `sent` are out.
    fn sending(queued: usize, sent: u32) -> Sending {
        let mut half = Sending::new(SequenceNumber(u32::MAX), 65_536);
        half.acknowledge(SequenceNumber(0));
        half.queue.append(&mut Message::from_bytes(&vec![0; queued]));
        half.begin_window(SequenceNumber(0), SequenceNumber(0), 10_000);
        (half.next, half.highest) = (SequenceNumber(sent), SequenceNumber(sent));
        half
    }

    #[test]
    fn a_record_is_taken_only_if_its_numbers_can_be_true() {
        let record = sending(3000, 1000).export();
        assert!(record.is_consistent());
        let at = |number| SequenceNumber(number);
        let wrong = [
            SendingRecord { next: at(1001), ..record.clone() },
            SendingRecord { highest: at(3001), ..record.clone() },
            SendingRecord { unacknowledged: at(500), ..record.clone() },
            SendingRecord { first: at(5), ..record.clone() },
            SendingRecord { queued: 900, ..record.clone() },
        ];
        for record in wrong {
            assert!(!record.is_consistent(), "{record:?}");
        }
    }

    #[test]
    fn a_piece_is_whole_segments_or_what_may_be_less() {
        let limits = Limits { allowance: 10_000, segment: 1000, message: 4000, no_delay: false, corked: false };
        let length = |half: &Sending, limits: &Limits| half.plan(limits).map(|piece| (piece.length, piece.last));
        assert_eq!(length(&sending(9000, 0), &limits), Some((4000, false)), "what one message may stand for");
        assert_eq!(length(&sending(2500, 0), &limits), Some((2000, false)), "the tail waits behind the rest");
        assert_eq!(length(&sending(500, 0), &limits), Some((500, true)), "nothing is out, so it need not wait");
        assert_eq!(length(&sending(1500, 1000), &limits), None, "Nagle");
        assert_eq!(length(&sending(1500, 1000), &Limits { no_delay: true, ..limits }), Some((500, true)));
        let corked = Limits { no_delay: true, corked: true, ..limits };
        assert_eq!(length(&sending(500, 0), &corked), None, "it waits for company");
        assert_eq!(length(&sending(2500, 0), &corked), Some((2000, false)));
        let narrow = |allowance| Limits { allowance, ..limits };
        assert_eq!(length(&sending(9000, 1000), &narrow(1300)), Some((1000, false)), "no silly rest of a window");
        assert_eq!(length(&sending(9000, 2000), &narrow(300)), None);
    }
}
