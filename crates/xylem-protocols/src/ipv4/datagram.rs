//! One packet being put together from its fragments. They arrive in any order and more than once; fragments that overlap
//! are somebody's attempt to have two readers see two packets, so the whole is refused (RFC 1858; RFC 5722 in spirit).

use super::drops;
use super::header::{FIXED, PACKET_MAX, build};
use std::collections::BTreeMap;
use xylem_core::{DropReason, Instant, Message};
use xylem_wire::{Ecn, FragmentOffset, Header, Ipv4Header};

/// A fragment's place in its packet: bytes of payload from, to, and whether more follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub from: usize,
    pub to: usize,
    pub more: bool,
}

/// The front of the first fragment.
#[derive(Debug)]
pub(super) struct Front {
    /// Headers below, the network header and its options.
    pub bytes: Vec<u8>,
    /// Where the network header begins.
    pub network_at: usize,
    pub header: Ipv4Header,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Datagram {
    /// When the first fragment to arrive did.
    pub since: Instant,
    /// Bytes of buffers held.
    pub held: usize,
    /// To a group or to everybody.
    pub broadcast: bool,
    pieces: BTreeMap<usize, Piece>,
    front: Option<Front>,
    /// Bytes of payload in all, once the last fragment has come.
    length: Option<usize>,
    /// Bytes of payload that are here.
    received: usize,
    congested: bool,
    /// Nothing will come of it; it stands here only to swallow what else arrives.
    refused: bool,
}

#[derive(Debug)]
struct Piece {
    payload: Message,
    more: bool,
}

impl Datagram {
    pub fn new(since: Instant) -> Datagram {
        Datagram {
            since,
            held: 0,
            broadcast: false,
            pieces: BTreeMap::new(),
            front: None,
            length: None,
            received: 0,
            congested: false,
            refused: false,
        }
    }

    /// How many fragments it holds.
    pub fn count(&self) -> usize {
        self.pieces.len()
    }

    /// Whether a fragment at `place`, whose payload is compared by `same`, may be added. An error refuses the fragment
    /// alone if it is a duplicate, else the whole packet.
    pub fn judge(&self, place: Place, same: impl FnOnce(&Message) -> bool) -> Result<(), &'static DropReason> {
        if self.refused {
            return Err(&drops::OVERLAP);
        }
        let before = self.pieces.range(..=place.from).next_back();
        if let Some((from, piece)) = before {
            let to = from + piece.payload.len();
            if *from == place.from && to == place.to && piece.more == place.more && same(&piece.payload) {
                return Err(&drops::DUPLICATE);
            }
            if to > place.from {
                return Err(&drops::OVERLAP);
            }
        }
        let after = self.pieces.range(place.from..).next();
        if after.is_some_and(|(from, _)| *from < place.to) {
            return Err(&drops::OVERLAP);
        }
        // The end is where the last fragment says; nothing stands there or beyond, nor does a second end.
        let beyond = |end: usize| if place.more { place.to >= end } else { place.to != end };
        let stands_beyond = |(from, _): (&usize, &Piece)| !place.more && *from >= place.to;
        if self.length.is_some_and(beyond) || self.pieces.iter().next_back().is_some_and(stands_beyond) {
            return Err(&drops::OVERLAP);
        }
        Ok(())
    }

    /// Adds a fragment that has been judged.
    pub fn add(&mut self, place: Place, header: &Ipv4Header, front: Option<Front>, payload: Message) {
        self.received += payload.len();
        self.held += payload.capacity();
        self.congested |= header.ecn == Ecn::Experienced;
        if !place.more {
            self.length = Some(place.to);
        }
        if front.is_some() {
            self.front = front;
        }
        self.pieces.insert(place.from, Piece { payload, more: place.more });
    }

    pub fn is_whole(&self) -> bool {
        self.length == Some(self.received)
    }

    /// Gives the fragments up; returns how many there were.
    pub fn refuse(&mut self) -> usize {
        let count = self.pieces.len();
        self.pieces.clear();
        self.front = None;
        self.held = 0;
        self.refused = true;
        count
    }

    /// The whole packet as if it had never been cut, with the headers below that its first fragment had, and where the
    /// network header begins. `None` if it would be longer than a packet can be.
    ///
    /// # Panics
    /// If it is not whole.
    pub fn assemble(mut self) -> Option<(Message, usize)> {
        let Front { mut bytes, network_at, header } = self.front.take().expect("what is whole has its front");
        let total = header.header_length() + self.received;
        if total > PACKET_MAX {
            return None;
        }
        let whole = Ipv4Header {
            total_length: total as u16,
            more_fragments: false,
            fragment_offset: FragmentOffset::FIRST,
            // One mark on the way marks the whole (RFC 3168, section 5.3).
            ecn: if self.congested { Ecn::Experienced } else { header.ecn },
            ..header
        };
        let options = bytes[network_at + FIXED..].to_vec();
        build(&whole, &options, &mut bytes[network_at..]);
        let mut message = Message::from_bytes(&bytes);
        for piece in std::mem::take(&mut self.pieces).into_values() {
            message.attributes.arrived = message.attributes.arrived.max(piece.payload.attributes.arrived);
            message.append(piece.payload);
        }
        message.attributes.broadcast = self.broadcast;
        Some((message, network_at))
    }

    /// What an error message about it quotes: the first fragment's front, if it is here.
    pub fn quote(&self, limit: usize) -> Option<Vec<u8>> {
        let front = self.front.as_ref()?;
        let mut quote = front.bytes[front.network_at..].to_vec();
        let first = self.pieces.get(&0)?;
        quote.extend(first.payload.slices().flatten().take(limit.saturating_sub(quote.len())));
        quote.truncate(limit);
        Some(quote)
    }
}
