//! The protocols that come with Xylem, as a program registers them: what each says of itself, so that a graph file can be
//! checked, and how one is made from the options of its node. A program's own protocols stand beside them:
//! `builtin()` hands over a catalogue to which [`Catalogue::register`] adds.

mod arp;
mod ethernet;
mod icmp;
mod ipv4;
mod links;
mod options;
mod point;
mod sockets;
mod tcp;
mod toy;
mod udp;
mod vdrop;
mod vsize;

use xylem_graph::build::{Catalogue, Entry, Making};
use xylem_protocols::tcp::congestion::Algorithm;

/// The protocols that come with Xylem.
pub fn builtin() -> Catalogue {
    Catalogue::new(ENTRIES)
}

/// Adds a program's own congestion control to those that `tcp` in `catalogue` knows, by its name: for graphs
/// (`tcp over ip { congestion = NAME }`), for `xylem_core::Setting::Congestion`, and for connections that are moved here.
///
/// # Panics
/// If an algorithm of that name is there already: the author's mistake.
pub fn add_congestion(catalogue: &mut Catalogue, algorithm: &'static Algorithm) {
    catalogue.offer("tcp", "congestion", algorithm.name, algorithm);
}

/// Every protocol, lowest first: the order in which lists show them.
const ENTRIES: [Entry; 15] = [
    ethernet::ENTRY,
    point::ENTRY,
    arp::ENTRY,
    ipv4::ENTRY,
    icmp::ENTRY,
    udp::ENTRY,
    tcp::ENTRY,
    sockets::ENTRY,
    vdrop::ENTRY,
    vsize::ENTRY,
    toy::NETWORK,
    toy::FRAGMENT,
    toy::CALL,
    toy::STREAM,
    toy::RECORD,
];

/// The number of the one protocol above a virtual one, which has no header to tell several apart.
fn only_upper(making: &Making<'_>) -> Result<u32, String> {
    match making.numbers_above()[..] {
        [number] => Ok(number),
        ref several => Err(format!("expected one protocol above a virtual one, got {}", several.len())),
    }
}
