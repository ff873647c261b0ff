//! The toy fragmenter: messages larger than a packet, in pieces, between two hosts. It is a trunk: one path for each pair
//! of hosts, on which the conversations of all protocols above stand, since pieces belong to hosts and not to
//! conversations. It repeats nothing; what does not become whole in time is given up (compare BLAST, which asks again).
//!
//! The first message of a host with which no trunk stands yet is put together by the protocol itself: only whole does it
//! say whom it is for, and the trunk is made when somebody above opens.

pub use super::reassembly::{PARTIAL_TIME, PARTIALS_MAX};

use super::reassembly::{Added, Reassembly};
use super::seal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use xylem_core::map::BindError;
use xylem_core::{
    Control, Demux, DropReason, Facts, Handled, Instant, Map, Message, OpenError, Opening, Outbox, PathId, Protocol,
    Random, Session, Verdict, View,
};
use xylem_wire::{Header, header};

/// The most pieces of one message.
pub const FRAGMENTS_MAX: usize = 64;
/// The most trunks of one fragmenter.
pub const TRUNKS_MAX: usize = 1024;

const _: () = assert!(FRAGMENTS_MAX <= Outbox::LIMIT, "one verb sends all pieces of a message");

header! {
    /// The header of a piece.
    pub struct FragmentHeader {
        /// The protocol above.
        upper: u16 = Next,
        /// Which piece this is, from 0.
        index: u8 = Data,
        /// How many there are.
        count: u8 = Data,
        /// Names the message among those of its sender.
        message: u32 = Data,
        /// The Internet checksum of header and piece.
        sum: u16 = Data,
    }
}

/// The piece ends before its header does.
pub static SHORT: DropReason = DropReason::new("fragment", "shorter than its header");
/// The piece was spoilt on its way.
pub static SPOILT: DropReason = DropReason::new("fragment", "wrong sum");
/// The piece does not fit to the others, or cannot be.
pub static INCONSISTENT: DropReason = DropReason::new("fragment", "a piece that fits nowhere");
/// A message did not become whole in time.
pub static INCOMPLETE: DropReason = DropReason::new("fragment", "not whole in time");
/// A message was given up for a newer one.
pub static PUSHED_OUT: DropReason = DropReason::new("fragment", "pushed out by newer messages");
/// More was pushed than all pieces together hold, or without an upper protocol's number.
pub static TOO_LARGE: DropReason = DropReason::new("fragment", "larger than all its pieces");

/// The static side of the fragmenter.
pub struct FragmentProtocol {
    /// Which trunk leads to a host.
    trunks: Map<u32, PathId>,
    /// First messages of hosts to which none leads yet.
    early: Mutex<Reassembly<u32>>,
}

impl FragmentProtocol {
    /// A fragmenter; `random` keys its map.
    pub fn new(random: &mut Random) -> FragmentProtocol {
        FragmentProtocol { trunks: Map::new(TRUNKS_MAX, random), early: Mutex::default() }
    }

    fn early(&self) -> MutexGuard<'_, Reassembly<u32>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Protocol for FragmentProtocol {
    fn is_trunk(&self) -> bool {
        true
    }

    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let mut facts = opening.below()?.less(FragmentHeader::LEN);
        let peer = opening
            .lower_participants()
            .remote
            .find_number()
            .ok_or(OpenError::MissingParticipant { protocol: "fragment", expected: "the number of the remote host" })?;
        match self.trunks.bind(peer, opening.path) {
            Ok(binding) => opening.bind(binding),
            Err(BindError::InUse) => return Err(OpenError::InUse),
            Err(BindError::Full) => return Err(OpenError::Full("trunks of a fragmenter")),
        }
        let piece_max = facts.mtu;
        let next = opening.random.next() as u32;
        opening.stand(FragmentSession { piece_max, next, partials: Reassembly::default() });
        facts.mtu = piece_max * FRAGMENTS_MAX;
        facts.segment_max = facts.mtu;
        Ok(facts)
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let Ok(header) = view.header::<FragmentHeader>() else { return Demux::Drop(&SHORT) };
        let Some(peer) = view.participants.remote.find_number() else { return Demux::Drop(&INCONSISTENT) };
        if let Some(trunk) = self.trunks.find(&peer) {
            return Demux::Path(trunk);
        }
        if !view.message.sum(view.at()).is_right() {
            return Demux::Drop(&SPOILT);
        }
        let at = view.at() + FragmentHeader::LEN;
        let mut piece = view.take();
        piece.trim_front(at);
        match self.early().add(peer, &header, piece, view.now) {
            Added::Whole(message) => {
                // The conversation will stand on a trunk: what it pops has no headers from below the trunk's top.
                view.put(message, 0);
                Demux::Up(u32::from(header.upper))
            }
            Added::Kept => Demux::Keep,
            Added::KeptInPlaceOfAnother(reason) => {
                out.dropped(reason);
                Demux::Keep
            }
            Added::Refused(reason) => Demux::Drop(reason),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.early().deadline()
    }

    fn timeout(&self, out: &mut Outbox) {
        self.early().expire(out.now).for_each(|reason| out.dropped(reason));
    }
}

/// The trunk's session.
#[derive(Debug)]
struct FragmentSession {
    piece_max: usize,
    /// The number of the next message.
    next: u32,
    partials: Reassembly<()>,
}

impl FragmentSession {
    fn pieces(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let count = message.len().div_ceil(self.piece_max.max(1)).max(1);
        let upper = u16::try_from(message.attributes.upper).ok().filter(|_| count <= FRAGMENTS_MAX);
        let Some(upper) = upper else { return Verdict::Drop(&TOO_LARGE) };
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let mut rest = std::mem::take(message);
        for index in 0..count {
            let last = index + 1 == count;
            let behind = if last { Message::default() } else { rest.split_off(self.piece_max) };
            let (index, count) = (index as u8, count as u8);
            seal(&mut rest, |sum| FragmentHeader { upper, index, count, message: number, sum });
            out.push(std::mem::replace(&mut rest, behind));
        }
        Verdict::Keep
    }
}

impl Session for FragmentSession {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if !message.sum(0).is_right() {
            return Verdict::Drop(&SPOILT);
        }
        let Ok(header) = message.pop_header::<FragmentHeader>() else { return Verdict::Drop(&SHORT) };
        match self.partials.add((), &header, std::mem::take(message), out.now) {
            Added::Whole(whole) => {
                *message = whole;
                message.attributes.upper = u32::from(header.upper);
                Verdict::Pass
            }
            Added::Kept => Verdict::Keep,
            Added::KeptInPlaceOfAnother(reason) => {
                out.dropped(reason);
                Verdict::Keep
            }
            Added::Refused(reason) => Verdict::Drop(reason),
        }
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        self.pieces(message, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.partials.deadline()
    }

    fn timeout(&mut self, out: &mut Outbox) {
        self.partials.expire(out.now).for_each(|reason| out.dropped(reason));
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            *facts = facts.clone().less(FragmentHeader::LEN);
            self.piece_max = facts.mtu;
            facts.mtu *= FRAGMENTS_MAX;
            facts.segment_max = facts.mtu;
        }
        Handled::No
    }
}
