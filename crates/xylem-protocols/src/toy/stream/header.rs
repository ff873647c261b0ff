//! The header of a stream's segments, and the reply to a segment that nobody wants.

use super::super::seal;
use super::{SHORT, SPOILT};
use xylem_core::{DropReason, Message};
use xylem_wire::{Port, SequenceNumber, header};

header! {
    /// The header of a segment.
    #[derive(Default)]
    pub struct StreamHeader {
        /// The sender's port.
        source: Port = Remote,
        /// The port it is for.
        destination: Port = Local,
        /// The position of the first byte; the opening and the close take one position each.
        sequence: SequenceNumber = Data,
        /// The position the sender wants next, if it acknowledges.
        acknowledgement: SequenceNumber = Data,
        /// Bytes the sender takes from there on.
        window: u16 = Data,
        /// The first segment of its direction.
        opens: bool = Data,
        /// The acknowledgement says something.
        acknowledges: bool = Data,
        /// Nothing comes behind the content.
        closes: bool = Data,
        /// The stream is no more.
        resets: bool = Data,
        /// The sender asks for an acknowledgement.
        probes: bool = Data,
        reserved: u16 [11] = Data sent 0,
        /// The Internet checksum of header and content.
        sum: u16 = Data,
    }
}

impl StreamHeader {
    /// Puts the header in front.
    pub(super) fn put(&self, message: &mut Message) {
        seal(message, |sum| StreamHeader { sum, ..*self });
    }

    /// Takes the header in front off, if the segment is whole.
    pub(super) fn take(message: &mut Message) -> Result<StreamHeader, &'static DropReason> {
        if !message.sum(0).is_right() {
            return Err(&SPOILT);
        }
        message.pop_header::<StreamHeader>().map_err(|_| &SHORT)
    }

    /// The reset that answers this segment, which has `length` bytes of content and belongs to nobody.
    pub(super) fn reset(&self, length: usize) -> StreamHeader {
        let positions = length as u32 + u32::from(self.opens) + u32::from(self.closes);
        StreamHeader {
            source: self.destination,
            destination: self.source,
            sequence: self.acknowledgement,
            acknowledgement: self.sequence + positions,
            acknowledges: true,
            resets: true,
            ..StreamHeader::default()
        }
    }
}
