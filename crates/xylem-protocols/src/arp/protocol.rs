//! The protocol itself: packets and questions in, packets and answers out. It has no sessions; what it knows it writes on
//! the page of the link's neighbours, where the link's sessions read it.

use super::ArpConfig;
use super::claim::Claims;
use super::drops;
use super::table::{Asked, Due, Heard, Table};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xylem_core::{
    Answer, Control, Demux, EnableError, Enabling, Facts, Handled, Instant, Neighbours, OpenError, Opening, Outbox,
    Part, Participants, Protocol, Question, View, drop::linker, time::earlier,
};
use xylem_wire::{ArpHeader, ArpOperation, EthernetAddress};

/// The most neighbours served by one timeout; the rest follow at once in the next.
const DUE_MAX: usize = Outbox::CONTROL_LIMIT;

/// Stands for "no deadline".
const NEVER: u64 = u64::MAX;

#[derive(Debug)]
struct State {
    table: Table,
    claims: Claims,
}

/// See the module's text.
#[derive(Debug)]
pub struct ArpProtocol {
    config: ArpConfig,
    neighbours: Arc<Neighbours>,
    state: Mutex<State>,
    /// The state's deadline in nanoseconds, so that asking for it takes no lock.
    deadline: AtomicU64,
}

impl ArpProtocol {
    /// ARP on one link, the master of that page.
    pub fn new(config: ArpConfig, neighbours: Arc<Neighbours>) -> ArpProtocol {
        let state = State { table: Table::default(), claims: Claims::new(&config) };
        let arp = ArpProtocol { config, neighbours, state: Mutex::new(state), deadline: AtomicU64::new(NEVER) };
        arp.change(|_| ());
        arp
    }

    /// Changes the state and notes its new deadline.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        let deadline = earlier(state.table.deadline(), state.claims.deadline());
        self.deadline.store(deadline.map_or(NEVER, Instant::as_nanos), Ordering::Release);
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on a packet whose sender may be believed to be who it says.
    fn receive(&self, packet: &ArpHeader, out: &mut Outbox) -> Demux {
        let (sender, target) = (packet.sender_protocol, packet.target_protocol);
        let is_request = packet.operation == ArpOperation::REQUEST;
        let (for_us, conflict, defend, heard) = self.change(|state| {
            let for_us = state.claims.is_ours(target);
            if state.claims.is_ours(sender) {
                return (for_us, true, state.claims.defend(sender, &self.config, out.now), Heard::Nothing);
            }
            // An unspecified sender probes for an address and has none yet (RFC 5227, section 1.1).
            let heard = if sender.is_unspecified() {
                Heard::Nothing
            } else {
                let learn = for_us && is_request;
                state.table.hear(sender, packet.sender_hardware, learn, &self.config, out.now)
            };
            (for_us, false, false, heard)
        });
        if conflict {
            if defend {
                self.announce(sender, out);
            }
            return Demux::Drop(&drops::CONFLICT);
        }
        if heard == Heard::Learnt {
            self.write(sender, Some(packet.sender_hardware));
            out.tell(Control::Answer(Answer::Neighbour { address: sender.into(), found: true }));
        }
        if for_us && is_request {
            self.send(ArpOperation::REPLY, target, packet.sender_hardware, packet.sender_hardware, sender, out);
        }
        if heard == Heard::Refused { Demux::Drop(&drops::UNSETTLED) } else { Demux::Keep }
    }

    /// Writes on the page. Nobody need hold the entry yet; a page full of entries in use has no room for it, and then
    /// nobody could read it either.
    fn write(&self, neighbour: Ipv4Addr, address: Option<EthernetAddress>) {
        let entry = match address {
            Some(_) => self.neighbours.entry(neighbour.into()),
            None => self.neighbours.find(neighbour.into()),
        };
        if let Some(entry) = entry.filter(|entry| entry.link_address() != address) {
            entry.set(address);
        }
    }

    /// Answers a question, at once or later.
    fn ask(&self, neighbour: Ipv4Addr, out: &mut Outbox) -> Option<Answer> {
        let mut forgotten = None;
        let asked = self.change(|state| match state.claims.is_ours(neighbour) {
            true => Asked::Unknown,
            false => state.table.ask(neighbour, &self.config, out.now, |other| forgotten = Some(other)),
        });
        if let Some(other) = forgotten {
            self.write(other, None);
        }
        let answer = |found| Some(Answer::Neighbour { address: neighbour.into(), found });
        match asked {
            Asked::Known(address) => {
                // The page forgets entries that nobody holds; whoever asks now holds a new one.
                self.write(neighbour, Some(address));
                answer(true)
            }
            Asked::Unknown => answer(false),
            Asked::Begun => {
                self.request(neighbour, EthernetAddress::BROADCAST, out);
                None
            }
            Asked::Waiting => None,
        }
    }

    fn serve(&self, due: Due, out: &mut Outbox) {
        match due {
            Due::Request(neighbour) => self.request(neighbour, EthernetAddress::BROADCAST, out),
            Due::Probe(neighbour, address) => self.request(neighbour, address, out),
            Due::Failed(neighbour) => {
                self.write(neighbour, None);
                out.tell(Control::Answer(Answer::Neighbour { address: neighbour.into(), found: false }));
            }
            Due::Forgotten(neighbour) => self.write(neighbour, None),
            Due::Forgiven => {}
        }
    }

    /// Asks `to` who has `neighbour`. The source is our first address, which any neighbour can answer to.
    fn request(&self, neighbour: Ipv4Addr, to: EthernetAddress, out: &mut Outbox) {
        let ours = self.config.addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
        self.send(ArpOperation::REQUEST, ours, to, EthernetAddress::UNSPECIFIED, neighbour, out);
    }

    /// Says to everybody that `address` is ours: a request for it from itself (RFC 5227, section 3).
    fn announce(&self, address: Ipv4Addr, out: &mut Outbox) {
        let everybody = EthernetAddress::BROADCAST;
        self.send(ArpOperation::REQUEST, address, everybody, EthernetAddress::UNSPECIFIED, address, out);
    }

    fn send(
        &self,
        operation: ArpOperation,
        sender_protocol: Ipv4Addr,
        to: EthernetAddress,
        target_hardware: EthernetAddress,
        target_protocol: Ipv4Addr,
        out: &mut Outbox,
    ) {
        let Some(mut message) = out.message() else { return out.dropped(&linker::NO_BUFFER) };
        message.push_header(&ArpHeader {
            operation,
            sender_hardware: self.config.address,
            sender_protocol,
            target_hardware,
            target_protocol,
        });
        out.reply(Participants::new([], [Part::Link(to)]), message);
    }
}

impl Protocol for ArpProtocol {
    /// Nobody converses over ARP.
    fn open(&self, _opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        Err(OpenError::Full("conversations over ARP: there are none"))
    }

    fn open_enable(&self, _enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        Err(EnableError::NotHere)
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let Ok(packet) = view.header::<ArpHeader>() else { return Demux::Drop(&drops::MALFORMED) };
        if !matches!(packet.operation, ArpOperation::REQUEST | ArpOperation::REPLY) {
            return Demux::Drop(&drops::OTHER_OPERATION);
        }
        if !packet.sender_hardware.is_unicast() {
            return Demux::Drop(&drops::BAD_HARDWARE);
        }
        if packet.sender_hardware == self.config.address {
            return Demux::Drop(&drops::ECHO);
        }
        let sender = packet.sender_protocol;
        if sender.is_broadcast() || sender.is_multicast() || sender.is_loopback() {
            return Demux::Drop(&drops::BAD_SENDER);
        }
        self.receive(&packet, out)
    }

    /// Answers questions about neighbours on our own page only: with several links each has an ARP, and whoever asks has
    /// made the entry on its own link's page.
    fn control(&self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Question(Question::Neighbour(IpAddr::V4(neighbour)), answer)
                if self.neighbours.find(IpAddr::V4(*neighbour)).is_some() =>
            {
                *answer = self.ask(*neighbour, out);
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.deadline.load(Ordering::Acquire)).filter(|at| *at != NEVER).map(Instant::from_nanos)
    }

    fn timeout(&self, out: &mut Outbox) {
        for _ in 0..DUE_MAX {
            let (announcement, due) = self.change(|state| {
                let announcement = state.claims.announce(&self.config, out.now);
                let due = if announcement.is_none() { state.table.due(&self.config, out.now) } else { None };
                (announcement, due)
            });
            match (announcement, due) {
                (Some(address), _) => self.announce(address, out),
                (None, Some(due)) => self.serve(due, out),
                (None, None) => return,
            }
        }
    }
}
