//! The network's errors and their numbers on the wire, in both directions. What carries a number of its own (the next
//! link's MTU) stands in the four bytes behind the common header.

use xylem_core::NetworkErrorKind;
use xylem_wire::{Header, IcmpHeader, IcmpKind, IcmpParameterProblem, IcmpTimeExceeded, IcmpUnreachable, Malformed};

/// Bytes of the common header and of what each kind of error has behind it.
pub(super) const ERROR_LENGTH: usize = IcmpHeader::LEN + IcmpUnreachable::LEN;

const _: () = assert!(
    IcmpUnreachable::LEN == IcmpTimeExceeded::LEN && IcmpUnreachable::LEN == IcmpParameterProblem::LEN,
    "all errors quote from the same place"
);

/// What an arriving error says; `bytes` are the [`ERROR_LENGTH`] that precede the quotation. `None` for what means
/// nothing to a host (RFC 1122, section 3.2.2.1, has the list of codes).
pub(super) fn read(header: &IcmpHeader, bytes: &[u8]) -> Result<Option<NetworkErrorKind>, Malformed> {
    let body = bytes.get(IcmpHeader::LEN..).unwrap_or_default();
    Ok(match (header.kind, header.code) {
        (IcmpKind::UNREACHABLE, IcmpUnreachable::FRAGMENTATION_NEEDED) => {
            Some(NetworkErrorKind::TooLarge { mtu: IcmpUnreachable::parse(body)?.next_hop_mtu })
        }
        (IcmpKind::UNREACHABLE, IcmpUnreachable::PROTOCOL) => Some(NetworkErrorKind::ProtocolUnreachable),
        (IcmpKind::UNREACHABLE, IcmpUnreachable::PORT) => Some(NetworkErrorKind::PortUnreachable),
        // 0: network, 5: source route, 6: network unknown, 9: network prohibited, 11: network for this service.
        (IcmpKind::UNREACHABLE, 0 | 5 | 6 | 9 | 11) => Some(NetworkErrorKind::NetworkUnreachable),
        // 1: host, 7: host unknown, 8: isolated, 10 and 13: prohibited, 12: host for this service, 14 and 15: precedence.
        (IcmpKind::UNREACHABLE, 1 | 7 | 8 | 10 | 12..=15) => Some(NetworkErrorKind::HostUnreachable),
        (IcmpKind::TIME_EXCEEDED, 0 | 1) => Some(NetworkErrorKind::TimeExceeded),
        (IcmpKind::PARAMETER_PROBLEM, 0..=2) => Some(NetworkErrorKind::ParameterProblem),
        _ => None,
    })
}

/// Writes the front of an error of that kind, its checksum still zero, over [`ERROR_LENGTH`] bytes. `reassembly`: the
/// time that ran out was not the packet's own.
pub(super) fn write(kind: NetworkErrorKind, reassembly: bool, bytes: &mut [u8]) -> Option<IcmpHeader> {
    let unreachable = |code, mtu| (IcmpKind::UNREACHABLE, code, mtu);
    let (kind, code, next_hop_mtu) = match kind {
        NetworkErrorKind::NetworkUnreachable => unreachable(IcmpUnreachable::NETWORK, 0),
        NetworkErrorKind::HostUnreachable => unreachable(IcmpUnreachable::HOST, 0),
        NetworkErrorKind::ProtocolUnreachable => unreachable(IcmpUnreachable::PROTOCOL, 0),
        NetworkErrorKind::PortUnreachable => unreachable(IcmpUnreachable::PORT, 0),
        NetworkErrorKind::TooLarge { mtu } => unreachable(IcmpUnreachable::FRAGMENTATION_NEEDED, mtu),
        NetworkErrorKind::TimeExceeded if reassembly => (IcmpKind::TIME_EXCEEDED, IcmpTimeExceeded::IN_REASSEMBLY, 0),
        NetworkErrorKind::TimeExceeded => (IcmpKind::TIME_EXCEEDED, IcmpTimeExceeded::IN_TRANSIT, 0),
        NetworkErrorKind::ParameterProblem => (IcmpKind::PARAMETER_PROBLEM, 0, 0),
        // The core may learn of errors that ICMP has no word for.
        _ => return None,
    };
    let header = IcmpHeader { kind, code, checksum: 0 };
    header.build(bytes);
    let body = &mut bytes[IcmpHeader::LEN..];
    match kind {
        IcmpKind::UNREACHABLE => IcmpUnreachable { next_hop_mtu }.build(body),
        IcmpKind::TIME_EXCEEDED => IcmpTimeExceeded {}.build(body),
        // Where in the header the fault is, nobody has said.
        _ => IcmpParameterProblem { pointer: 0 }.build(body),
    }
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let kinds = [
            NetworkErrorKind::NetworkUnreachable,
            NetworkErrorKind::HostUnreachable,
            NetworkErrorKind::ProtocolUnreachable,
            NetworkErrorKind::PortUnreachable,
            NetworkErrorKind::TooLarge { mtu: 1280 },
            NetworkErrorKind::TimeExceeded,
            NetworkErrorKind::ParameterProblem,
        ];
        for kind in kinds {
            let mut bytes = [0xff; ERROR_LENGTH];
            let header = write(kind, true, &mut bytes).expect("ICMP has a word for each");
            assert_eq!(IcmpHeader::parse(&bytes), Ok(header));
            assert_eq!(read(&header, &bytes), Ok(Some(kind)));
        }
    }

    #[test]
    fn kinds_and_codes_that_mean_nothing_are_nothing() {
        for (kind, code) in [(3, 16), (4, 0), (5, 0), (11, 2), (12, 3), (0, 0), (8, 0), (200, 0)] {
            let header = IcmpHeader { kind: IcmpKind(kind), code, checksum: 0 };
            assert_eq!(read(&header, &[0; ERROR_LENGTH]), Ok(None), "{kind}/{code}");
        }
    }
}
