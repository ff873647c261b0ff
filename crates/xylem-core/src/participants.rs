//! Participants: who converses. Each side is a list of parts, popped layer by layer as an open goes down, and put
//! together layer by layer as demultiplexing climbs. The local side comes first.

use crate::record::{BadRecord, Record};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::net::IpAddr;
use xylem_wire::EthernetAddress;
use xylem_wire::Port;

/// One address part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Part {
    /// A host on the internet.
    Host(IpAddr),
    /// A port on a host.
    Port(Port),
    /// A station on a link.
    Link(EthernetAddress),
    /// The neighbour on the link to hand a packet to: its link address is to be found out.
    Neighbour(IpAddr),
    /// A number whose meaning only one protocol knows (a channel, an application identifier).
    Number(u32),
}

/// The most parts on one side.
pub const PARTS_MAX: usize = 6;

/// One side: the part of the topmost protocol lies last and is popped first. Three parts, as a link address, an address and a port, are kept
/// without allocating.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Side(SmallVec<[Part; 3]>);

impl Side {
    /// Adds a part above the others.
    ///
    /// # Panics
    /// If there are [`PARTS_MAX`] parts already: no graph is that high.
    pub fn push(&mut self, part: Part) {
        self.assert_room();
        self.0.push(part);
    }

    /// Adds a part below the others.
    ///
    /// # Panics
    /// As [`push`](Side::push).
    pub fn push_below(&mut self, part: Part) {
        self.assert_room();
        self.0.insert(0, part);
    }

    fn assert_room(&self) {
        assert!(self.0.len() < PARTS_MAX, "a participant has at most {PARTS_MAX} parts");
    }

    /// Takes the topmost part if it is a port.
    pub fn port(&mut self) -> Option<Port> {
        match self.0.last() {
            Some(&Part::Port(port)) => self.0.pop().map(|_| port),
            _ => None,
        }
    }

    /// Takes the topmost part if it is a host.
    pub fn host(&mut self) -> Option<IpAddr> {
        match self.0.last() {
            Some(&Part::Host(host)) => self.0.pop().map(|_| host),
            _ => None,
        }
    }

    /// Takes the topmost part if it is a link address.
    pub fn link(&mut self) -> Option<EthernetAddress> {
        match self.0.last() {
            Some(&Part::Link(address)) => self.0.pop().map(|_| address),
            _ => None,
        }
    }

    /// Takes the topmost part if it is a neighbour to be found.
    pub fn neighbour(&mut self) -> Option<IpAddr> {
        match self.0.last() {
            Some(&Part::Neighbour(address)) => self.0.pop().map(|_| address),
            _ => None,
        }
    }

    /// Takes the topmost part if it is a number.
    pub fn number(&mut self) -> Option<u32> {
        match self.0.last() {
            Some(&Part::Number(number)) => self.0.pop().map(|_| number),
            _ => None,
        }
    }

    /// The host among the parts, wherever it stands.
    pub fn find_host(&self) -> Option<IpAddr> {
        self.0.iter().find_map(|part| if let Part::Host(host) = part { Some(*host) } else { None })
    }

    /// The port among the parts, wherever it stands.
    pub fn find_port(&self) -> Option<Port> {
        self.0.iter().find_map(|part| if let Part::Port(port) = part { Some(*port) } else { None })
    }

    /// The link address among the parts, wherever it stands.
    pub fn find_link(&self) -> Option<EthernetAddress> {
        self.0.iter().find_map(|part| if let Part::Link(address) = part { Some(*address) } else { None })
    }

    /// The topmost number among the parts.
    pub fn find_number(&self) -> Option<u32> {
        self.0.iter().rev().find_map(|part| if let Part::Number(number) = part { Some(*number) } else { None })
    }

    /// The parts, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = &Part> {
        self.0.iter()
    }

    fn read(record: &mut Record) -> Result<Side, BadRecord> {
        let parts: Vec<Part> = record.take("the parts of a participant")?;
        if parts.len() > PARTS_MAX {
            return Err(BadRecord { at: 0, expected: "as many parts as a participant has" });
        }
        Ok(Side(parts.into_iter().collect()))
    }
}

impl<const N: usize> From<[Part; N]> for Side {
    /// The parts, lowest first.
    fn from(parts: [Part; N]) -> Side {
        Side(parts.into_iter().collect())
    }
}

/// Both sides of a conversation. A passive open may leave parts out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Participants {
    /// This end.
    pub local: Side,
    /// The other end.
    pub remote: Side,
}

impl Participants {
    /// Both sides, lowest part first.
    pub fn new(local: impl Into<Side>, remote: impl Into<Side>) -> Participants {
        Participants { local: local.into(), remote: remote.into() }
    }

    /// Writes both sides into a record.
    pub fn write(&self, record: &mut Record) {
        record.put(&self.local.0.as_slice());
        record.put(&self.remote.0.as_slice());
    }

    /// Reads what [`write`](Participants::write) wrote.
    ///
    /// # Errors
    /// [`BadRecord`] if something else stands there.
    pub fn read(record: &mut Record) -> Result<Participants, BadRecord> {
        Ok(Participants { local: Side::read(record)?, remote: Side::read(record)? })
    }

    /// Two ends on the internet: host below, port above. A local host left out is chosen by the route.
    pub fn internet(local: (Option<IpAddr>, Option<Port>), remote: (IpAddr, Port)) -> Participants {
        let mut mine = Side::default();
        if let Some(address) = local.0 {
            mine.push(Part::Host(address));
        }
        if let Some(port) = local.1 {
            mine.push(Part::Port(port));
        }
        Participants { local: mine, remote: Side::from([Part::Host(remote.0), Part::Port(remote.1)]) }
    }
}
