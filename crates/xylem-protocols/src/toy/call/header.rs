//! The header of a call's messages.

use super::super::seal;
use super::{SHORT, SPOILT};
use xylem_core::{DropReason, Message};
use xylem_wire::{FieldValue, header};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// From client to server: do this.
    Request,
    /// From server to client: it is done.
    Reply,
    /// From client to server: there will be no more.
    Goodbye,
    /// Not one of these.
    Other(u8),
}

impl FieldValue for CallKind {
    const BITS: usize = 8;

    fn from_bits(bits: u128) -> CallKind {
        match bits as u8 {
            1 => CallKind::Request,
            2 => CallKind::Reply,
            3 => CallKind::Goodbye,
            other => CallKind::Other(other),
        }
    }

    fn to_bits(self) -> u128 {
        u128::from(match self {
            CallKind::Request => 1,
            CallKind::Reply => 2,
            CallKind::Goodbye => 3,
            CallKind::Other(other) => other,
        })
    }
}

header! {
    /// The header of a call.
    pub struct CallHeader {
        /// The channel, chosen by the client.
        channel: u32 = Local,
        /// Which call on the channel. Numbers go round.
        sequence: u32 = Data,
        /// What it is.
        kind: CallKind = Data,
        reserved: u8 = Data sent 0,
        /// The Internet checksum of header and content.
        sum: u16 = Data,
    }
}

/// Puts a header in front.
pub(super) fn put(message: &mut Message, channel: u32, sequence: u32, kind: CallKind) {
    seal(message, |sum| CallHeader { channel, sequence, kind, sum });
}

/// Takes the header in front off, if the message is whole.
pub(super) fn take(message: &mut Message) -> Result<CallHeader, &'static DropReason> {
    if !message.sum(0).is_right() {
        return Err(&SPOILT);
    }
    message.pop_header::<CallHeader>().map_err(|_| &SHORT)
}

/// Whether `one` is a later call than `other` on the circle of numbers.
pub(super) fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}
