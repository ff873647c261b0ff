//! Socket addresses and participants: a host below, a port above. An unspecified host and the port zero are parts left
//! out, which the protocols choose.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use xylem_core::{Endpoint, Part, Participants, Side};
use xylem_wire::Port;

/// One side as an address names it.
fn side(address: SocketAddr) -> Side {
    let mut side = Side::default();
    if !address.ip().is_unspecified() {
        side.push(Part::Host(address.ip()));
    }
    if address.port() != 0 {
        side.push(Part::Port(Port(address.port())));
    }
    side
}

/// Participants of whom only our end is known.
pub(crate) fn local_only(local: SocketAddr) -> Participants {
    Participants { local: side(local), remote: Side::default() }
}

/// Two ends; parts of ours may be left out.
pub(crate) fn conversation(local: SocketAddr, remote: SocketAddr) -> Participants {
    Participants { local: side(local), remote: Side::from([Part::Host(remote.ip()), Part::Port(Port(remote.port()))]) }
}

fn address(side: &Side) -> SocketAddr {
    let host = side.find_host().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    SocketAddr::new(host, side.find_port().unwrap_or(Port(0)).0)
}

/// Our end.
pub(crate) fn local_address(participants: &Participants) -> SocketAddr {
    address(&participants.local)
}

/// The peer's end.
pub(crate) fn peer_address(participants: &Participants) -> SocketAddr {
    address(&participants.remote)
}

/// An end-point in the standard library's words.
pub(crate) fn address_of(endpoint: Endpoint) -> SocketAddr {
    SocketAddr::new(endpoint.address, endpoint.port.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_left_out_come_back_as_unspecified() {
        let any: SocketAddr = "0.0.0.0:0".parse().expect("an address");
        let peer: SocketAddr = "10.0.0.2:80".parse().expect("an address");
        let participants = conversation(any, peer);
        assert_eq!(participants.local.iter().count(), 0);
        assert_eq!((local_address(&participants), peer_address(&participants)), (any, peer));
        let mut side = local_only(peer).local;
        assert_eq!((side.port(), side.host()), (Some(Port(80)), Some(peer.ip())), "the port lies on top");
    }
}
