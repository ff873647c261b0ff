//! Who meddles: somebody off the path, who knows who converses and must guess the rest, and somebody near it, who sees every
//! segment and may repeat any, but takes none away. Everything sent here is something that the RFCs say has no effect on
//! the conversation: what would be right to believe is left out, by the numbers that stand on the wire.

use super::talk::PORT;
use super::town::{PLACES, ROUTER};
use super::wire::Wire;
use std::collections::VecDeque;
use xylem::fuzz::forge::{Forged, Seen, complaint};
use xylem_core::Random;
use xylem_wire::{EthernetAddress, IcmpKind, Port, SackBlock, SackBlocks, SequenceNumber, TcpFlags, TcpOptions};

/// So many segments of either host are remembered.
const REMEMBERED_MAX: usize = 32;

/// See the module's text.
pub struct Stranger {
    random: Random,
    /// The last segments of each host, lost ones too.
    overheard: [VecDeque<Vec<u8>>; 2],
    /// The client's port.
    port: Port,
    pub sent: usize,
}

/// A frame for a host: is it a real one again, which may count?
pub struct Meddling {
    pub host: usize,
    pub frame: Vec<u8>,
    pub is_real: bool,
}

const ROUTER_LINK: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 99]);

impl Stranger {
    pub fn new(seed: u64) -> Stranger {
        Stranger { random: Random::seeded(seed), overheard: Default::default(), port: Port(0), sent: 0 }
    }

    /// `host` has sent this segment.
    pub fn overhear(&mut self, host: usize, frame: &[u8], seen: &Seen) {
        if seen.header.flags.contains(TcpFlags::RST) {
            return;
        }
        if host == 0 {
            self.port = seen.header.source;
        }
        let heard = &mut self.overheard[host];
        if heard.len() == REMEMBERED_MAX {
            heard.pop_front();
        }
        heard.push_back(frame.to_vec());
    }

    /// Something that must make no difference.
    pub fn meddle(&mut self, wire: &Wire) -> Option<Meddling> {
        // Before the connection is open either side may still be talked out of it by who sees its numbers.
        if wire.sides.iter().any(|side| side.acknowledged == 0) {
            return None;
        }
        let host = self.random.below(2) as usize;
        let (frame, is_real) = match self.random.below(12) {
            0 | 1 => (self.repeat(1 - host)?, true),
            2 => (self.complain(host, wire)?, false),
            _ => (self.forge(host, wire)?, false),
        };
        self.sent += 1;
        Some(Meddling { host, frame, is_real })
    }

    fn repeat(&mut self, from: usize) -> Option<Vec<u8>> {
        let count = self.overheard[from].len() as u64;
        (count > 0).then(|| self.overheard[from][self.random.below(count) as usize].clone())
    }

    /// An error of the network about something that `host` has sent, or never did.
    fn complain(&mut self, host: usize, wire: &Wire) -> Option<Vec<u8>> {
        let mut about = self.repeat(host)?;
        if self.random.below(2) == 0 {
            let number = self.elsewhere(host, wire);
            let (from, to) = self.ends(host);
            about = Forged { sequence: number, ..Forged::between(from, to) }.frame();
        }
        let (kind, code, word) = match self.random.below(5) {
            0 | 1 => (IcmpKind::UNREACHABLE, 4, self.random.below(1600) as u32),
            2 => (IcmpKind::UNREACHABLE, self.random.below(16) as u8, 0),
            3 => (IcmpKind::SOURCE_QUENCH, 0, 0),
            _ => (IcmpKind::TIME_EXCEEDED, self.random.below(2) as u8, 0),
        };
        Some(complaint(ROUTER, ROUTER_LINK, kind, code, word, &about))
    }

    fn ends(&self, from: usize) -> ((super::town::Place, Port), (super::town::Place, Port)) {
        let ports = [self.port, PORT];
        ((PLACES[from], ports[from]), (PLACES[1 - from], ports[1 - from]))
    }

    /// A number of `host`'s that is not in flight.
    fn elsewhere(&mut self, host: usize, wire: &Wire) -> SequenceNumber {
        let side = &wire.sides[host];
        let far = 1 + self.random.below(1 << 30) as u32;
        if self.random.below(2) == 0 { side.number(side.highest) + far } else { side.number(side.acknowledged) - far }
    }

    /// A number that is new and lies inside the window of `host`, beyond all that its peer has sent; else one far outside.
    fn inside(&mut self, host: usize, wire: &Wire) -> SequenceNumber {
        let (peer, edge) = (&wire.sides[1 - host], wire.sides[host].promised);
        let room = edge.saturating_sub(peer.highest + 1);
        if room == 0 {
            return peer.number(edge) + (1 << 20);
        }
        peer.number(peer.highest + 1 + self.random.below(room))
    }

    /// A segment for `host` that says it is its peer's.
    fn forge(&mut self, host: usize, wire: &Wire) -> Option<Vec<u8>> {
        let (from, to) = self.ends(1 - host);
        let (side, peer) = (&wire.sides[host], &wire.sides[1 - host]);
        let (true_next, true_ack) = (peer.number(peer.highest), side.number(side.acknowledged));
        let mut rubbish = [0; 100];
        self.random.fill(&mut rubbish);
        let payload = &rubbish[..self.random.below(101) as usize];
        let window = self.random.next() as u16;
        let plain = Forged { window, acknowledgment: true_ack, sequence: true_next, ..Forged::between(from, to) };
        let mut options = [0; 40];
        let mut stamp = TcpOptions::NONE;
        if let Some(value) = peer.stamp {
            let echo = side.stamp.unwrap_or_default();
            stamp.timestamps = Some(xylem_wire::Timestamps { value, echo });
        }
        let inside = self.inside(host, wire);
        let beyond = side.number(side.highest) + 1 + self.random.below(1 << 30) as u32;
        let mut is_flawed = false;
        let forged = match self.random.below(10) {
            // A reset or a SYN that is not exactly right is challenged (RFC 5961, sections 3.2 and 4.2).
            0 => Forged { flags: TcpFlags::RST, sequence: inside, ..plain },
            1 => Forged { flags: TcpFlags::RST | TcpFlags::ACK, sequence: self.elsewhere(1 - host, wire), ..plain },
            2 => Forged { flags: TcpFlags::SYN, sequence: [inside, true_next][self.random.below(2) as usize], ..plain },
            3 => Forged { flags: TcpFlags::SYN | TcpFlags::ACK, sequence: inside, ..plain },
            // Data that acknowledges what was never sent, or was long ago (section 5.2).
            4 => Forged { acknowledgment: beyond, payload, ..plain },
            5 => {
                Forged { acknowledgment: true_ack - (1 << 30), payload, flags: TcpFlags::ACK | TcpFlags::FIN, ..plain }
            }
            // Data outside of the window, and without an acknowledgment.
            6 => Forged { sequence: peer.number(side.promised) + (1 << 16), payload, ..plain },
            7 => Forged { flags: TcpFlags(self.random.next() as u8 & 0x28), payload, ..plain },
            // A clock of long ago, or none (RFC 7323, section 5).
            8 => {
                // Where only one of both has a clock, nobody looks at it.
                side.stamp?;
                let timestamps = stamp.timestamps.as_mut()?;
                timestamps.value = timestamps.value - (100_000 + self.random.below(1 << 30) as u32);
                Forged { payload: &rubbish, ..plain }
            }
            // A wrong checksum.
            _ => {
                is_flawed = true;
                Forged { payload: &rubbish, ..plain }
            }
        };
        if self.random.below(4) == 0 {
            // Runs of nothing that was ever sent.
            let mut sack = SackBlocks::NONE;
            sack.push(SackBlock { left: beyond + 10, right: beyond + 1000 });
            sack.push(SackBlock { left: true_ack + 10, right: true_ack });
            stamp.sack = sack;
        }
        let length = stamp.build(&mut options);
        let mut frame = Forged { options: &options[..length], ..forged }.frame();
        if is_flawed {
            let last = frame.len() - 1;
            frame[last] ^= 1 + self.random.below(255) as u8;
        }
        Some(frame)
    }
}
