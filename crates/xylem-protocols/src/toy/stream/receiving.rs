//! The receiving half: puts what arrives in order and keeps count of what the application has not consumed, since credit
//! and nothing else opens the window.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use xylem_core::Message;
use xylem_wire::SequenceNumber;

/// The most bytes received and not consumed.
pub const RECEIVE_MAX: usize = 16 * 1024;
/// The most pieces held because something before them is missing.
pub const HELD_MAX: usize = 64;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Receiving {
    /// The position wanted next.
    pub next: SequenceNumber,
    /// Bytes handed up and not consumed.
    unread: usize,
    /// Pieces beyond a gap, by position; they may overlap.
    held: VecDeque<(SequenceNumber, Message)>,
    /// The position of the peer's close, once it has been seen.
    close: Option<SequenceNumber>,
    /// The peer has closed and everything before has arrived.
    pub closed: bool,
    /// The peer was told it may send positions before this one.
    advertised: SequenceNumber,
    /// The count above comes from a record.
    moved: bool,
}

/// What another instance needs to go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReceivingState {
    next: SequenceNumber,
    unread: usize,
    held: Vec<(SequenceNumber, Vec<u8>)>,
    close: Option<SequenceNumber>,
    closed: bool,
    advertised: SequenceNumber,
}

impl Receiving {
    /// A half that wants `first` next.
    pub fn new(first: SequenceNumber) -> Receiving {
        let advertised = first + RECEIVE_MAX as u32;
        Receiving {
            next: first,
            unread: 0,
            held: VecDeque::new(),
            close: None,
            closed: false,
            advertised,
            moved: false,
        }
    }

    pub fn resume(state: ReceivingState) -> Receiving {
        let ReceivingState { next, unread, held, close, closed, advertised } = state;
        let held = held.into_iter().map(|(at, bytes)| (at, Message::from_bytes(&bytes))).collect();
        Receiving { next, unread, held, close, closed, advertised, moved: true }
    }

    pub fn state(&self) -> ReceivingState {
        let held = self.held.iter().map(|(at, piece)| (*at, piece.to_vec())).collect();
        let Receiving { next, unread, close, closed, advertised, .. } = *self;
        ReceivingState { next, unread, held, close, closed, advertised }
    }

    /// Bytes the peer may send.
    pub fn window(&self) -> usize {
        RECEIVE_MAX.saturating_sub(self.unread)
    }

    /// The window has been told to the peer.
    pub fn advertise(&mut self) -> u16 {
        let window = self.window();
        self.advertised = self.next + window as u32;
        window as u16
    }

    /// Whether the peer should hear of a window that has grown by at least `step` bytes since it was told.
    pub fn has_news(&self, step: usize) -> bool {
        let edge = self.next + self.window() as u32;
        !self.closed && edge.since(self.advertised) >= step as i32
    }

    /// Takes in what arrived at position `at`; says whether anything in it was new.
    pub fn add(&mut self, at: SequenceNumber, mut piece: Message, closes: bool) -> bool {
        if closes {
            self.close = Some(at + piece.len() as u32);
        }
        let old = self.next.since(at);
        if old > 0 {
            piece.trim_front((old as usize).min(piece.len()));
        }
        let at = at.later(self.next);
        let beyond = (self.next + self.window() as u32).since(at);
        piece.truncate(beyond.max(0) as usize);
        if piece.is_empty() {
            return closes && !self.closed;
        }
        // Pieces whose places differ may lie over each other; who starts at the same place and is longer says it all.
        if let Some((_, held)) = self.held.iter_mut().find(|(place, _)| *place == at) {
            let longer = piece.len() > held.len();
            if longer {
                *held = piece;
            }
            return longer;
        }
        if self.held.len() >= HELD_MAX && at != self.next {
            return false;
        }
        let place = self.held.iter().position(|(place, _)| place.is_after(at)).unwrap_or(self.held.len());
        self.held.insert(place, (at, piece));
        true
    }

    /// The next piece that is in order, if there is one.
    pub fn take(&mut self) -> Option<Message> {
        loop {
            let (at, _) = self.held.front()?;
            if at.is_after(self.next) {
                return None;
            }
            let (at, mut piece) = self.held.pop_front().expect("it was there a moment ago");
            let old = self.next.since(at) as usize;
            if old < piece.len() {
                piece.trim_front(old);
                self.next += piece.len() as u32;
                self.unread += piece.len();
                return Some(piece);
            }
        }
    }

    /// Whether the peer's close has been reached just now.
    pub fn reached_close(&mut self) -> bool {
        let reached = !self.closed && self.close == Some(self.next);
        if reached {
            self.next += 1;
            self.closed = true;
        }
        reached
    }

    /// The application has consumed `bytes`.
    ///
    /// # Panics
    /// If it was never given that many: whoever stands above counts wrongly. After a move it may be the record that was
    /// wrong, which is not our fault.
    pub fn consumed(&mut self, bytes: usize) {
        assert!(bytes <= self.unread || self.moved, "credit for {bytes} bytes; only {} were handed up", self.unread);
        self.unread = self.unread.saturating_sub(bytes);
    }

    /// Nobody will read any more: what was handed up counts as consumed.
    pub fn abandon(&mut self) {
        self.unread = 0;
    }
}
