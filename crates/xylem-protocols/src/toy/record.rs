//! The toy record: messages of any length carried by a stream, each with its length in front. It shows what a protocol
//! on top of a stream has to do: it asks nothing of demultiplexing and passes enables on, raises several messages for one
//! that it pops, returns the credit for its own header, and never sends more than the stream has room for.
//!
//! A record is handed up in the pieces in which it arrives; the last piece has the end-of-message mark. So nothing but
//! the part of a header is ever kept back, and a record may be larger than any window.

use serde::{Deserialize, Serialize};
use xylem_core::record::BadRecord;
use xylem_core::{
    Control, Demux, DropReason, Event, Facts, Handled, Instant, Message, OpenError, Opening, Outbox, Protocol, Record,
    Session, Setting, Verdict, View,
};
use xylem_wire::{Header, header};

header! {
    /// What stands in front of a record.
    pub struct RecordHeader {
        /// Bytes of the record.
        length: u32 = Data,
    }
}

/// The application pushed after it had closed.
pub static CLOSED: DropReason = DropReason::new("record", "pushed after the close");
/// A segment came without a stream: nothing below knows this protocol.
pub static NO_STREAM: DropReason = DropReason::new("record", "came without a stream");

/// The static side of records.
#[derive(Debug, Default)]
pub struct RecordProtocol;

impl Protocol for RecordProtocol {
    /// Takes no part of the participants.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let state = match opening.record.as_deref_mut() {
            Some(record) => record.take::<RecordState>("the state of a record")?.checked()?,
            None => RecordState::default(),
        };
        let facts = opening.below()?.less(RecordHeader::LEN);
        opening.stand(RecordSession::resumed(state));
        Ok(facts)
    }

    /// The stream below finds the path of every segment.
    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        Demux::Drop(&NO_STREAM)
    }
}

/// What another instance needs to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RecordState {
    arriving: Arriving,
    backlog: Vec<u8>,
    unsent: Vec<u8>,
    closing: Closing,
    peer_closed: bool,
}

impl RecordState {
    /// A record may come from anybody: no more of a header can have arrived than there is of it.
    fn checked(self) -> Result<RecordState, BadRecord> {
        match &self.arriving {
            Arriving::Header(bytes) if bytes.len() >= RecordHeader::LEN => {
                Err(BadRecord { at: 0, expected: "a part of a header" })
            }
            _ => Ok(self),
        }
    }
}

/// What follows behind what is unsent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Closing {
    /// More records.
    #[default]
    Nothing,
    /// The end of this direction.
    SendClosed,
    /// The end of the conversation.
    Closed,
    /// Nothing any more: the stream has been told.
    Told,
}

/// Where in a record the next byte that arrives lies.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Arriving {
    /// In the header; these bytes of it are there.
    Header(Vec<u8>),
    /// In the content; so many bytes are missing.
    Content(usize),
}

impl Default for Arriving {
    fn default() -> Arriving {
        Arriving::Header(Vec::new())
    }
}

/// See the module's text.
#[derive(Debug)]
struct RecordSession {
    arriving: Arriving,
    /// Arrived, and not handed up yet for want of room above.
    backlog: Message,
    /// Taken from above, and not sent yet for want of room below. At most one record.
    unsent: Message,
    closing: Closing,
    /// The peer has closed; those above learn it behind the backlog.
    peer_closed: bool,
}

impl RecordSession {
    fn resumed(state: RecordState) -> RecordSession {
        let message = |bytes: &[u8]| if bytes.is_empty() { Message::default() } else { Message::from_bytes(bytes) };
        RecordSession {
            arriving: state.arriving,
            backlog: message(&state.backlog),
            unsent: message(&state.unsent),
            closing: state.closing,
            peer_closed: state.peer_closed,
        }
    }

    /// Hands up as much of what has arrived as there is room for.
    fn hand_up(&mut self, out: &mut Outbox) {
        while out.room_above() > 0 && !self.backlog.is_empty() {
            match &mut self.arriving {
                Arriving::Header(bytes) => {
                    let count = (RecordHeader::LEN - bytes.len()).min(self.backlog.len());
                    let front = self.backlog.front(count).expect("no more is looked at than has arrived");
                    bytes.extend_from_slice(front);
                    self.backlog.trim_front(count);
                    // Nobody above ever sees these bytes, so the credit for them is ours to return.
                    out.credit(count);
                    if let Ok(header) = RecordHeader::parse(bytes) {
                        self.arriving = Arriving::Content(header.length as usize);
                        if header.length == 0 {
                            self.piece(0, out);
                        }
                    }
                }
                Arriving::Content(missing) => {
                    let length = (*missing).min(self.backlog.len());
                    self.piece(length, out);
                }
            }
        }
        if self.peer_closed && self.backlog.is_empty() {
            self.peer_closed = false;
            out.tell(Control::Event(Event::PeerClosed));
        }
    }

    fn piece(&mut self, length: usize, out: &mut Outbox) {
        let Arriving::Content(missing) = &mut self.arriving else { return };
        *missing -= length;
        let last = *missing == 0;
        let rest = self.backlog.split_off(length);
        let mut piece = std::mem::replace(&mut self.backlog, rest);
        piece.attributes.end_of_message = last;
        if last {
            self.arriving = Arriving::default();
        }
        out.raise(piece);
    }

    /// Sends as much of what is unsent as the stream takes.
    fn send(&mut self, out: &mut Outbox) {
        let length = self.unsent.len().min(out.room_bytes());
        if length > 0 && out.room() > 0 {
            let rest = self.unsent.split_off(length);
            out.push(std::mem::replace(&mut self.unsent, rest));
        }
        if !self.unsent.is_empty() {
            return;
        }
        match std::mem::replace(&mut self.closing, Closing::Told) {
            Closing::Nothing => self.closing = Closing::Nothing,
            Closing::SendClosed => out.advise(Control::Set(Setting::SendClosed)),
            Closing::Closed => out.finish(),
            Closing::Told => {}
        }
    }
}

impl Session for RecordSession {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let attributes = message.attributes.clone();
        self.backlog.append(std::mem::take(message));
        self.backlog.attributes = attributes;
        self.hand_up(out);
        Verdict::Keep
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if self.closing != Closing::Nothing {
            return Verdict::Drop(&CLOSED);
        }
        if !self.unsent.is_empty() {
            return Verdict::Refuse;
        }
        let Ok(length) = u32::try_from(message.len()) else { return Verdict::Refuse };
        self.unsent = std::mem::take(message);
        self.unsent.push_header(&RecordHeader { length });
        self.send(out);
        Verdict::Keep
    }

    /// One record at a time waits; with none waiting, the stream's own room counts.
    fn room(&self) -> usize {
        if self.unsent.is_empty() { usize::MAX } else { 0 }
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.backlog.is_empty()).then_some(Instant::ZERO)
    }

    fn timeout(&mut self, out: &mut Outbox) {
        self.hand_up(out);
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Facts(facts) => {
                *facts = facts.clone().less(RecordHeader::LEN);
                Handled::No
            }
            Control::Set(Setting::SendClosed) => {
                if self.closing == Closing::Nothing {
                    self.closing = Closing::SendClosed;
                }
                self.send(out);
                Handled::Yes
            }
            Control::Event(Event::PeerClosed) if !self.backlog.is_empty() => {
                self.peer_closed = true;
                Handled::Yes
            }
            Control::Writable => {
                self.send(out);
                // Those above are to know only when there is room for them.
                if self.unsent.is_empty() { Handled::No } else { Handled::Yes }
            }
            _ => Handled::No,
        }
    }

    fn export(&self, record: &mut Record) {
        record.put(&RecordState {
            arriving: self.arriving.clone(),
            backlog: self.backlog.to_vec(),
            unsent: self.unsent.to_vec(),
            closing: self.closing,
            peer_closed: self.peer_closed,
        });
    }

    fn close(&mut self, out: &mut Outbox) {
        self.closing = Closing::Closed;
        self.send(out);
    }
}
