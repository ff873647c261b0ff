//! The receiving half: which segments are acceptable, what the window is, and where data goes that arrives. The window is
//! the configured buffer minus what was handed up and not credited minus the reorder queue; its right edge never moves
//! back (RFC 9293, SHLD-14) and forward only in steps worth a segment (MUST-39).

use super::autotune::Reading;
use super::reorder::{Full, Reorder, compact};
use super::reports::Reports;
use super::segment::Segment;
use serde::{Deserialize, Serialize};
use xylem_core::Message;
use xylem_wire::{SackBlocks, SequenceNumber, TcpFlags};

/// The least segment that counts as a full one when acknowledgments are counted: what every path carries.
const FULL_SEGMENT_MIN: u32 = 536;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// The next number expected (RCV.NXT).
    pub next: SequenceNumber,
    /// The right edge of the window as promised: RCV.NXT + RCV.WND.
    pub edge: SequenceNumber,
    /// The number last acknowledged to the peer (Last.ACK.sent).
    pub acknowledged: SequenceNumber,
    /// Where the peer's FIN stands, once seen.
    pub fin: Option<SequenceNumber>,
    /// Where the peer's urgent data ends, while that lies ahead.
    pub urgent: Option<SequenceNumber>,
    /// What arrived too early.
    pub early: Reorder,
    /// What the peer is told of it; made when there is something.
    reports: Option<Box<Reports>>,
    /// Bytes this side keeps at most.
    pub buffer: u32,
    /// It grows with what the application reads.
    pub is_tuned: bool,
    /// How much that is.
    pub reading: Reading,
    /// Bytes handed up for which no credit came back yet.
    pub unread: u32,
    /// What we announced as our largest segment.
    announced: u32,
    /// The largest segment seen, payload bytes.
    largest: u32,
    /// Bytes that arrived since the last acknowledgment.
    pending: u32,
    /// How far the windows we announce are shifted.
    pub scale: u8,
    /// What arrives twice is not reported.
    pub hides_doubled: bool,
    /// The application reads no more: data is acknowledged and dropped.
    pub discards: bool,
    /// Messages handed up since the application last had read everything that keep much larger buffers alive than they need.
    crumbs: u16,
}

/// Crumbs that are handed up as they came: their buffers are the pool's.
const CRUMBS_AS_THEY_COME: u16 = 64;
/// Crumbs that wait for an application at most, in buffers of their own size: a window of single bytes would cost hundreds
/// of bytes for each of them.
const CRUMBS_MAX: u16 = 4096;
/// A message is a crumb where its buffers hold so many times as much.
const CRUMB_SHARE: usize = 8;

/// What moves with a connection. The reorder queue does not: the peer still has it all (RFC 2018, section 8).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ReceivingRecord {
    next: SequenceNumber,
    edge: SequenceNumber,
    acknowledged: SequenceNumber,
    urgent: Option<SequenceNumber>,
    buffer: u32,
    is_tuned: bool,
    unread: u32,
    announced: u32,
    scale: u8,
    discards: bool,
}

/// Where a segment's data belongs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is next, and now trimmed to what is new and inside the window.
    Next,
    /// It is kept for later.
    Early,
    /// All of it is here already.
    Known,
    /// None of it lies inside the window.
    Outside,
    /// It came too early, and no more of that can be kept.
    Full,
}

impl Receiving {
    /// A half that keeps at most `buffer` bytes and announced segments of `announced`.
    pub fn new(buffer: u32, announced: u32) -> Receiving {
        Receiving {
            next: SequenceNumber(0),
            edge: SequenceNumber(0),
            acknowledged: SequenceNumber(0),
            fin: None,
            urgent: None,
            early: Reorder::default(),
            reports: None,
            buffer,
            is_tuned: false,
            reading: Reading::default(),
            unread: 0,
            announced,
            largest: 0,
            pending: 0,
            scale: 0,
            hides_doubled: false,
            discards: false,
            crumbs: 0,
        }
    }

    /// The peer's SYN had this number; a window of `window` bytes has been or will be promised with its answer.
    pub fn begin(&mut self, syn: SequenceNumber, window: u32) {
        self.next = syn + 1;
        self.acknowledged = self.next;
        self.edge = self.next + window;
    }

    /// Bytes of window promised and not used yet.
    pub fn window(&self) -> u32 {
        self.edge.since(self.next).max(0) as u32
    }

    /// The sequence test (RFC 9293, section 3.10.7.4), in three places more generous than its table. A segment without
    /// length may stand at the right edge: data before it was lost, and its acknowledgment is still news. One that
    /// begins at the next number is always looked at, so that acknowledgments, urgent pointers and resets are processed
    /// at a zero window (MUST-66). And a FIN may stand at the edge: it takes no room.
    pub fn accepts(&self, segment: &Segment) -> bool {
        let first = segment.sequence.since(self.next);
        let window = self.window() as i32;
        if segment.length() == 0 {
            return first >= 0 && first <= window;
        }
        let last = (segment.end() - 1).since(self.next);
        first == 0 || (last >= 0 && first < window) || (first > 0 && first <= window && segment.payload == 0)
    }

    /// Whether the number lies in the window, where a reset is doubtful rather than old (RFC 5961 3.2-3).
    pub fn is_in_window(&self, number: SequenceNumber) -> bool {
        number.is_within(self.next, self.window().max(1))
    }

    /// Whether the number lay in the window not long ago: as far behind what is expected next as the window is wide.
    pub fn was_in_window(&self, number: SequenceNumber) -> bool {
        let behind = self.next.since(number);
        behind > 0 && behind as u32 <= self.window().max(1)
    }

    /// Trims the segment's data to what is new and fits the window, and keeps it if it is early (RFC 9293, SHLD-31).
    pub fn place(&mut self, segment: &Segment, message: &mut Message, pieces_max: usize) -> Place {
        let mut start = segment.sequence;
        let known = self.next.since(start);
        if known > 0 {
            self.note_doubled(start, self.next.earlier(start + segment.payload));
            if known as u32 >= segment.payload {
                return Place::Known;
            }
            message.trim_front(known as usize);
            start = self.next;
        }
        let room = self.edge.since(start).max(0) as usize;
        if room == 0 {
            return Place::Outside;
        }
        message.truncate(room);
        if start == self.next {
            return Place::Next;
        }
        // Buffers hold up to twice what they are asked for, so a whole window of early segments may take that much.
        let capacity_max = 2 * self.buffer as usize;
        let end = start + message.len() as u32;
        if let Some((left, right)) = self.early.run_around(start) {
            self.note_doubled(start.later(left), end.earlier(right));
        }
        self.reports.get_or_insert_default().arrived(start);
        match self.early.insert(start, message, pieces_max, capacity_max) {
            Ok(true) => Place::Early,
            Ok(false) => Place::Known,
            Err(Full) => Place::Full,
        }
    }

    /// The blocks for an acknowledgment, at most `most`.
    pub fn report(&mut self, most: usize) -> SackBlocks {
        match &mut self.reports {
            Some(reports) => reports.blocks(&self.early, self.next, most),
            None => SackBlocks::NONE,
        }
    }

    /// The bytes from `left` to before `right` came and had come before: the peer is told (RFC 2883).
    pub fn note_doubled(&mut self, left: SequenceNumber, right: SequenceNumber) {
        if !self.hides_doubled {
            self.reports.get_or_insert_default().doubled(left, right);
        }
    }

    /// Gives back what memory is held without need.
    pub fn shrink(&mut self) {
        self.early.shrink();
        if self.early.is_empty() {
            self.reports = None;
        }
    }

    /// Remembers the segment's FIN, if everything before it lies inside the window.
    pub fn note_fin(&mut self, segment: &Segment) {
        let fin = segment.sequence + segment.payload;
        if segment.has(TcpFlags::FIN) && fin.is_at_or_after(self.next) && fin.is_at_or_before(self.edge) {
            // A second FIN elsewhere contradicts the first: the peer is wrong, and the first one counts.
            self.fin.get_or_insert(fin);
        }
    }

    /// Whether the peer's FIN is next; then it is taken.
    pub fn take_fin(&mut self) -> bool {
        let is_next = self.fin == Some(self.next);
        if is_next {
            self.fin = None;
            self.next += 1;
            self.edge = self.edge.later(self.next);
        }
        is_next
    }

    /// The message is about to be handed up: one that keeps much larger buffers alive than it needs is copied, if others like
    /// it wait already for an application that does not read. `false`: too many do, and the peer has to send it again.
    pub fn takes(&mut self, message: &mut Message) -> bool {
        if self.discards || message.capacity() < CRUMB_SHARE * message.len() {
            return true;
        }
        if self.unread == 0 {
            self.crumbs = 0;
        }
        if self.crumbs >= CRUMBS_MAX {
            return false;
        }
        self.crumbs += 1;
        if self.crumbs > CRUMBS_AS_THEY_COME {
            *message = compact(std::mem::take(message));
        }
        true
    }

    /// `bytes` of data are handed up.
    pub fn hand_up(&mut self, bytes: u32) {
        self.next += bytes;
        self.pending += bytes;
        if !self.discards {
            self.unread += bytes;
        }
        self.forget_urgent();
    }

    /// The application has consumed `bytes`.
    pub fn credit(&mut self, bytes: usize) {
        self.unread = self.unread.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.forget_urgent();
    }

    /// The segment says that urgent data ends at `end`. Says whether that is news (RFC 9293, section 3.8.5).
    pub fn note_urgent(&mut self, end: SequenceNumber) -> bool {
        let is_news = end.is_after(self.next) && self.urgent.is_none_or(|known| end.is_after(known));
        if is_news {
            self.urgent = Some(end);
        }
        is_news
    }

    /// Urgent bytes the application has not consumed, those that have not arrived included (RFC 9293, MUST-33).
    pub fn urgent_ahead(&self) -> u32 {
        self.urgent.map_or(0, |end| end.since(self.next - self.unread).max(0) as u32)
    }

    fn forget_urgent(&mut self) {
        if self.urgent_ahead() == 0 {
            self.urgent = None;
        }
    }

    /// One of the peer's segments had `bytes` of payload.
    pub fn measure(&mut self, bytes: u32) {
        self.largest = self.largest.max(bytes).min(self.announced);
    }

    /// Whether two full segments' bytes arrived since the last acknowledgment (RFC 9293, SHLD-19).
    pub fn owes_acknowledgment(&self) -> bool {
        self.pending >= 2 * self.largest_segment()
    }

    /// The largest segment that has arrived, or what a whole one is taken for until one has.
    pub fn largest_segment(&self) -> u32 {
        self.largest.max(FULL_SEGMENT_MIN.min(self.announced))
    }

    /// The right edge the buffer allows, as far as a header can say it.
    fn edge_allowed(&self) -> SequenceNumber {
        let free = self.buffer.saturating_sub(self.unread).saturating_sub(self.early.bytes());
        self.next + free.min(u32::from(u16::MAX) << self.scale)
    }

    /// The window to write into a header now (RFC 9293, MUST-39, SHLD-14; RFC 7323 2.3-1, RFC 7323 2.4). What is written is
    /// promised.
    pub fn announce(&mut self) -> u16 {
        let allowed = self.edge_allowed();
        let step = (self.buffer / 2).min(self.announced.max(1));
        let unit = 1 << self.scale;
        let mut window = self.window();
        if allowed.since(self.edge) >= step as i32 {
            window = allowed.since(self.next) as u32 / unit;
        } else {
            // The promised edge rarely stands on a unit of the scale. Rounding up keeps it from moving back, and costs
            // less than one unit beyond the buffer; where it would cost more, it is rounded down.
            let up = window.div_ceil(unit);
            let excess = (self.next + up * unit).since(allowed);
            window = if excess < unit as i32 { up } else { window / unit };
        }
        let window = window.min(u32::from(u16::MAX)) as u16;
        self.edge = self.edge.later(self.next + u32::from(window) * unit);
        self.acknowledged = self.next;
        self.pending = 0;
        window
    }

    /// Whether the window has grown so much that the peer should hear of it though nothing is to be acknowledged: by
    /// half of the buffer, or to twice what it was and by a segment at least.
    pub fn owes_update(&self) -> bool {
        let growth = self.edge_allowed().since(self.edge).max(0) as u32;
        let segment = self.announced.max(1).min(self.buffer / 2);
        growth >= self.buffer / 2 || (growth >= segment && growth >= self.window())
    }

    pub fn export(&self) -> ReceivingRecord {
        ReceivingRecord {
            next: self.next,
            edge: self.edge,
            acknowledged: self.acknowledged,
            urgent: self.urgent,
            buffer: self.buffer,
            is_tuned: self.is_tuned,
            unread: self.unread,
            announced: self.announced,
            scale: self.scale,
            discards: self.discards,
        }
    }

    pub fn import(record: ReceivingRecord) -> Receiving {
        Receiving {
            next: record.next,
            edge: record.edge,
            acknowledged: record.acknowledged,
            urgent: record.urgent,
            is_tuned: record.is_tuned,
            unread: record.unread,
            scale: record.scale.min(xylem_wire::TcpOptions::WINDOW_SCALE_MAX),
            discards: record.discards,
            ..Receiving::new(super::TcpConfig::buffer(record.buffer as usize), record.announced)
        }
    }
}
