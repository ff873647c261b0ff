//! Passing on packets that are for others, if we are told to be a router (RFC 1812, as far as a small one needs it): one
//! hop less to go, the checksum corrected rather than made anew, cut if need be, and errors to the sender.

use super::config::is_host;
use super::drops;
use super::fragment;
use super::header::FIXED;
use super::routes::{Hop, Routes};
use std::net::IpAddr;
use xylem_core::{Checksum, Demux, Message, NetworkErrorKind, Outbox, Part, Participants, View};
use xylem_wire::{Header, Ipv4Header, Sum};

/// Passes on the packet at the view, whose header is sound. `link` says of an interface which lower it is and how large a
/// packet it takes.
pub(super) fn forward(
    header: &Ipv4Header,
    routes: &Routes,
    link: impl FnOnce(usize) -> (usize, usize),
    view: &mut View<'_>,
    out: &mut Outbox,
) -> Demux {
    if view.message.attributes.broadcast || !is_host(header.destination) || !is_host(header.source) {
        return Demux::Drop(&drops::NOT_FORWARDED);
    }
    if header.time_to_live <= 1 {
        out.undeliverable(NetworkErrorKind::TimeExceeded, view);
        return Demux::Drop(&drops::EXPIRED);
    }
    let Some(hop) = routes.hop(header.destination, None) else {
        out.undeliverable(NetworkErrorKind::NetworkUnreachable, view);
        return Demux::Drop(&drops::NO_ROUTE);
    };
    let (lower, mtu) = link(hop.interface);
    let length = usize::from(header.total_length);
    if length <= mtu {
        let mut packet = take_packet(view);
        decrement(header, &mut packet);
        send(lower, &hop, packet, out);
        return Demux::Keep;
    }
    let payload = length - header.header_length();
    let pieces = fragment::count(payload, header.header_length(), mtu);
    if header.dont_fragment || pieces.is_none_or(|pieces| pieces > Outbox::LIMIT / 2) {
        // The next link's size is what the sender wants to know; it is below the packet's 16-bit length.
        out.undeliverable(NetworkErrorKind::TooLarge { mtu: mtu as u16 }, view);
        return Demux::Drop(&drops::TOO_LARGE);
    }
    let mut packet = take_packet(view);
    packet.complete_checksum();
    let front = packet.front(header.header_length()).expect("the header was read from there");
    let options = front[FIXED..].to_vec();
    packet.trim_front(header.header_length());
    let header = Ipv4Header { time_to_live: header.time_to_live - 1, ..*header };
    fragment::cut(&header, &options, packet, mtu, |piece| send(lower, &hop, piece, out));
    Demux::Keep
}

/// The packet without the headers below it, and with nothing remembered of how it came.
fn take_packet(view: &mut View<'_>) -> Message {
    let at = view.at();
    let mut packet = view.take();
    packet.trim_front(at);
    // A sum left to the device stays left to the device, counted from the packet's front now.
    packet.attributes.checksum = match packet.attributes.checksum {
        Checksum::Partial { start, field } if usize::from(start) >= at => {
            Checksum::Partial { start: start - at as u16, field }
        }
        Checksum::Partial { .. } | Checksum::None | Checksum::Verified => Checksum::None,
    };
    packet
}

/// One hop less to go. The checksum follows from what changed (RFC 1624, equation 3), over the whole fixed part, since
/// building it anew also clears the reserved bit.
fn decrement(header: &Ipv4Header, packet: &mut Message) {
    let front = packet.front_mut(FIXED).expect("the header was read from there");
    let was = Sum::of(front);
    let fewer = Ipv4Header { time_to_live: header.time_to_live - 1, ..*header };
    fewer.build(front);
    let checksum = Sum::update(header.checksum, was, Sum::of(front));
    Ipv4Header { checksum, ..fewer }.build(front);
}

fn send(lower: usize, hop: &Hop, packet: Message, out: &mut Outbox) {
    let neighbour = Part::Neighbour(IpAddr::V4(hop.neighbour));
    out.reply_by(lower, Participants::new([], [neighbour]), packet);
}
