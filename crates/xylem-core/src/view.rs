//! A view of a message during demultiplexing: it climbs from header to header without changing the message, and collects
//! the participants on the way. So the demux phase is read-only, and the state-change phase (the pops) comes after it
//! (Jain, Hutchinson and Peterson 1995, section 3: integrated layered logical multiplexing).

use crate::message::Message;
use crate::participants::Participants;
use crate::time::Instant;
use xylem_wire::{Header, Malformed};

/// See the module's text.
#[derive(Debug)]
pub struct View<'m> {
    /// The message, from its lowest header on. A protocol that keeps it takes it.
    pub message: &'m mut Message,
    /// Who converses, as far as the headers seen so far have said.
    pub participants: Participants,
    /// The time of this step.
    pub now: Instant,
    /// Where the network header begins, from the front of the message: errors quote from there. Its protocol sets it.
    pub network_at: usize,
    at: usize,
}

impl<'m> View<'m> {
    /// A view of `message` from its front.
    pub fn new(message: &'m mut Message, now: Instant) -> View<'m> {
        View { message, participants: Participants::default(), now, network_at: 0, at: 0 }
    }

    /// The header the view stands at.
    pub fn header<H: Header>(&mut self) -> Result<H, Malformed> {
        let ahead = self.message.len().saturating_sub(self.at);
        let fixed = H::LEN.min(ahead);
        let front = self.message.front(self.at + fixed).expect("no more was asked for than is there");
        match H::parse(&front[self.at..]) {
            // The variable part lies beyond the front: the fixed part has said how long it is.
            Err(Malformed::Short { expected, .. } | Malformed::Length { got: expected, .. })
                if expected <= ahead && expected > fixed =>
            {
                let front = self.message.front(self.at + expected).expect("no more was asked for than is there");
                H::parse(&front[self.at..])
            }
            other => other,
        }
    }

    /// The next `count` bytes, if there are that many.
    pub fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let at = self.at;
        self.message.front(at + count).map(|front| &front[at..])
    }

    /// Climbs over `count` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn advance(&mut self, count: usize) {
        assert!(self.at + count <= self.message.len(), "a view climbed past the end of its message");
        self.at += count;
    }

    /// Where the view stands, in bytes from the front of the message.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes from where the view stands to the end.
    pub fn ahead(&self) -> usize {
        self.message.len() - self.at
    }

    /// Cuts padding: the message ends `count` bytes from where the view stands.
    pub fn truncate(&mut self, count: usize) {
        self.message.truncate(self.at + count);
    }

    /// Takes the message out, headers below included; an empty one stays.
    pub fn take(&mut self) -> Message {
        self.at = 0;
        std::mem::take(self.message)
    }

    /// Puts a message in place of the one taken; the view stands `at` bytes from its front.
    pub fn put(&mut self, message: Message, at: usize) {
        assert!(at <= message.len(), "a view was put past the end of its message");
        *self.message = message;
        self.at = at;
    }
}
