//! What is known of one connection while a script runs: its ends, from where each side's numbers and clock count, and what
//! the peer said last.

use super::segment::{OptionWish, Place, Segment, Stamp};
use super::settings::Settings;
use std::net::Ipv4Addr;
use xylem_wire::TcpFlags;

/// The address of the stack under test.
pub const SUBJECT: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
/// The address of the peer, which the script plays.
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);
/// Bits of the network that both are in.
pub const PREFIX_BITS: u8 = 24;
/// The port of whoever is connected to.
pub const SERVER_PORT: u16 = 80;

/// The port of the first connection's client; each further connection has the next one.
const CLIENT_PORT: u16 = 40_000;
/// How far the initial numbers of two connections lie apart.
const ISN_STEP: u32 = 0x0100_0000;

/// The ports of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    /// The subject's.
    pub subject: u16,
    /// The peer's.
    pub peer: u16,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub ends: Ends,
    /// The number of the peer's SYN.
    pub peer_isn: u32,
    /// The number of the subject's SYN, once seen.
    pub subject_isn: Option<u32>,
    /// The window that the peer said last.
    pub window: u16,
    /// The value of the peer's clock that it said last.
    peer_clock: Option<u32>,
    /// The subject's first clock value and its last.
    subject_clock: Option<(u32, u32)>,
    /// Who has sent timestamps with its SYN: peer, subject.
    stamped: [bool; 2],
}

impl Conversation {
    /// The script's connection number `index`; `is_active`: the subject connects.
    pub fn new(settings: &Settings, index: usize, is_active: bool) -> Conversation {
        // A script has at most a thousand lines, and so far fewer connections than there are ports.
        let client = CLIENT_PORT + index as u16;
        let ends = match is_active {
            true => Ends { subject: client, peer: SERVER_PORT },
            false => Ends { subject: SERVER_PORT, peer: client },
        };
        Conversation {
            ends,
            peer_isn: settings.isn.wrapping_add(ISN_STEP.wrapping_mul(index as u32)),
            subject_isn: None,
            window: u16::MAX,
            peer_clock: None,
            subject_clock: None,
            stamped: [false; 2],
        }
    }

    /// The peer begins anew, `later` numbers behind.
    pub fn begin_anew(&mut self, later: u32) {
        self.peer_isn = self.peer_isn.wrapping_add(later);
        self.subject_isn = None;
        self.stamped = [false; 2];
    }

    /// The number in the header for one of the peer's.
    pub fn peer_number(&self, place: Place) -> u32 {
        number(place, self.peer_isn)
    }

    /// The number in the header for one of the subject's.
    pub fn subject_number(&self, place: Place) -> u32 {
        number(place, self.subject_isn.unwrap_or(0))
    }

    /// A clock value of the subject for what a script counts.
    pub fn subject_stamp(&self, stamp: Stamp) -> u32 {
        match (stamp, self.subject_clock) {
            (Stamp::Counted(value), Some((first, _))) => first.wrapping_add(value as u32),
            (Stamp::Counted(value), None) => value as u32,
            (Stamp::Any, clock) => clock.map_or(0, |(_, last)| last),
        }
    }

    /// What a clock value of the subject is to a script.
    pub fn counted_stamp(&self, value: u32) -> i64 {
        let first = self.subject_clock.map_or(0, |(first, _)| first);
        i64::from(value.wrapping_sub(first) as i32)
    }

    /// The options of a segment to be sent. Where both sides have agreed on timestamps and the script says nothing, the
    /// peer's last value goes with it.
    pub fn options(&mut self, segment: &Segment) -> Vec<OptionWish> {
        let is_syn = segment.flags.contains(TcpFlags::SYN);
        let options = match &segment.options {
            Some(options) => options.clone(),
            None if !is_syn && self.stamped == [true; 2] => {
                let last = i64::from(self.peer_clock.unwrap_or(0));
                vec![OptionWish::Timestamps(Stamp::Counted(last), Stamp::Any)]
            }
            None => Vec::new(),
        };
        for option in &options {
            if let OptionWish::Timestamps(Stamp::Counted(value), _) = option {
                self.peer_clock = Some(*value as u32);
                self.stamped[0] |= is_syn;
            }
        }
        options
    }

    /// The subject has sent a SYN with this number.
    pub fn saw_syn(&mut self, number: u32) {
        self.subject_isn.get_or_insert(number);
    }

    /// The subject has sent this clock value, with its SYN or later.
    pub fn saw_stamp(&mut self, value: u32, is_syn: bool) {
        self.stamped[1] |= is_syn;
        let first = self.subject_clock.map_or(value, |(first, _)| first);
        self.subject_clock = Some((first, value));
    }
}

fn number(place: Place, from: u32) -> u32 {
    match place {
        // Numbers go round, and so does the cast.
        Place::Counted(count) => from.wrapping_add(count as u32),
        Place::Raw(number) => number,
        Place::Any => from,
    }
}
