//! Errors about packets that could not be delivered: whether one may be sent at all, to whom, and what it says. The rules
//! keep errors from breeding errors and from being aimed at third parties (RFC 1122, section 3.2.2).

use super::kind::{ERROR_LENGTH, write};
use std::net::{IpAddr, Ipv4Addr};
use xylem_core::{HEADROOM, Message, NetworkErrorKind, Part, Participants, Side, Undeliverable};
use xylem_wire::{FragmentOffset, Header, IcmpHeader, IcmpKind, IpProtocol, Ipv4Header};

const _: () = assert!(ERROR_LENGTH <= HEADROOM, "an error's front stands in the headroom of its quotation");

/// The packet an error would be about.
#[derive(Debug)]
pub(super) struct Complaint<'a> {
    header: Ipv4Header,
    quote: &'a [u8],
    kind: NetworkErrorKind,
}

impl<'a> Complaint<'a> {
    /// What is undeliverable, if it is an IPv4 packet.
    pub fn new(kind: NetworkErrorKind, undeliverable: &'a Undeliverable) -> Option<Complaint<'a>> {
        let quote = &undeliverable.quote[..undeliverable.quote.len().min(Undeliverable::QUOTE_MAX)];
        Some(Complaint { header: Ipv4Header::parse(quote).ok()?, quote, kind })
    }

    /// Whether an error may be sent about it (RFC 1122, section 3.2.2, all five cases).
    pub fn is_allowed(&self, broadcast: bool) -> bool {
        let header = &self.header;
        let to_one = !broadcast && !header.destination.is_broadcast() && !header.destination.is_multicast();
        let is_first = header.fragment_offset == FragmentOffset::FIRST;
        to_one && is_first && is_one_host(header.source) && !self.is_about_an_error()
    }

    /// Whether the packet is an ICMP error itself. One too short to say what it is might be.
    fn is_about_an_error(&self) -> bool {
        let icmp = || IcmpHeader::parse(&self.quote[self.header.header_length()..]);
        self.header.protocol == IpProtocol::ICMP && !icmp().is_ok_and(|icmp| is_query(icmp.kind))
    }

    /// The error and where it goes. `None` if ICMP has no word for it.
    pub fn message(&self) -> Option<(Participants, Message)> {
        // A fragment that might still have gone on has not run out of hops here: it has waited for the others.
        let reassembly = self.header.more_fragments && self.header.time_to_live > 1;
        let mut message = Message::from_bytes(self.quote);
        let header = write(self.kind, reassembly, message.prepend(ERROR_LENGTH))?;
        let checksum = message.sum(0).checksum();
        let front = message.front_mut(IcmpHeader::LEN).expect("the front was written just now");
        IcmpHeader { checksum, ..header }.build(front);
        Some((Participants::new(self.local(), [host(self.header.source)]), message))
    }

    /// Our own end: what was addressed, if it can only have been us; else the route chooses.
    fn local(&self) -> Side {
        match self.kind {
            NetworkErrorKind::PortUnreachable | NetworkErrorKind::ProtocolUnreachable => {
                Side::from([host(self.header.destination)])
            }
            _ => Side::default(),
        }
    }
}

fn host(address: Ipv4Addr) -> Part {
    Part::Host(IpAddr::V4(address))
}

/// Whether an error sent there reaches one host and no more.
fn is_one_host(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first < 224 && !address.is_loopback()
}

/// Whether this is a question or an answer. What is neither, or unheard of, may be an error.
fn is_query(kind: IcmpKind) -> bool {
    // Behind the echoes: routers (RFC 1256), timestamps and information (RFC 792), masks (RFC 950).
    matches!(kind, IcmpKind::ECHO_REQUEST | IcmpKind::ECHO_REPLY) || matches!(kind.0, 9 | 10 | 13..=18)
}
