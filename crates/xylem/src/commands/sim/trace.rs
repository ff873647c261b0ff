//! A frame as one line for people: when, who, by which device, and what the headers say as far as they are known.

use xylem_sim::Sight;
use xylem_wire::{
    ArpHeader, ArpOperation, EtherType, EthernetHeader, Header, IcmpHeader, IpProtocol, Ipv4Header, TcpHeader,
    UdpHeader,
};

/// The line of one sight; `names` are the hosts'.
pub fn line(sight: &Sight<'_>, names: &[String]) -> String {
    let nanoseconds = sight.now.as_nanos();
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let host = names.get(sight.host.0).map_or("?", String::as_str);
    let way = if sight.arrives { "<-" } else { "->" };
    let device = sight.device;
    format!("{seconds:>5}.{rest:09} {host}:{device} {way} {}\n", frame(sight.frame))
}

fn frame(bytes: &[u8]) -> String {
    let Ok(ethernet) = EthernetHeader::parse(bytes) else { return format!("{} bytes", bytes.len()) };
    let rest = bytes.get(EthernetHeader::LEN..).unwrap_or_default();
    let said = match ethernet.kind {
        EtherType::ARP => arp(rest),
        EtherType::IPV4 => ipv4(rest),
        _ => None,
    };
    said.unwrap_or_else(|| {
        format!("{} > {} type {:04x}, {} bytes", ethernet.source, ethernet.destination, ethernet.kind.0, bytes.len())
    })
}

fn arp(bytes: &[u8]) -> Option<String> {
    let packet = ArpHeader::parse(bytes).ok()?;
    let (sender, target) = (packet.sender_protocol, packet.target_protocol);
    Some(match packet.operation {
        ArpOperation::REQUEST => format!("arp who has {target}? {sender} at {} asks", packet.sender_hardware),
        ArpOperation::REPLY => format!("arp {sender} is at {}", packet.sender_hardware),
        other => format!("arp operation {}", other.0),
    })
}

fn ipv4(bytes: &[u8]) -> Option<String> {
    let header = Ipv4Header::parse(bytes).ok()?;
    let end = usize::from(header.total_length).min(bytes.len());
    let payload = bytes.get(header.header_length()..end)?;
    let (source, destination) = (header.source, header.destination);
    let fragment = match header.is_fragment() {
        true => {
            let more = if header.more_fragments { "+" } else { "" };
            format!(" fragment {}@{}{more}", header.identification, header.fragment_offset.bytes())
        }
        false => String::new(),
    };
    let first = header.fragment_offset.bytes() == 0;
    let above = first.then(|| transport(header.protocol, payload)).flatten();
    let above = above.unwrap_or_else(|| format!("protocol {}, {} bytes", header.protocol.0, payload.len()));
    Some(format!("{source} > {destination}{fragment} {above}"))
}

fn transport(protocol: IpProtocol, bytes: &[u8]) -> Option<String> {
    match protocol {
        IpProtocol::TCP => {
            let header = TcpHeader::parse(bytes).ok()?;
            let length = bytes.len() - header.header_length();
            let TcpHeader { source, destination, flags, sequence, acknowledgment, window, .. } = header;
            let (sequence, acknowledgment) = (sequence.0, acknowledgment.0);
            Some(format!(
                "tcp {source} > {destination} {flags} seq {sequence} ack {acknowledgment} win {window} len {length}"
            ))
        }
        IpProtocol::UDP => {
            let header = UdpHeader::parse(bytes).ok()?;
            Some(format!("udp {} > {} len {}", header.source, header.destination, header.length))
        }
        IpProtocol::ICMP => {
            let header = IcmpHeader::parse(bytes).ok()?;
            Some(format!("icmp type {} code {} len {}", header.kind.0, header.code, bytes.len()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Instant;
    use xylem_sim::HostId;

    #[test]
    fn any_bytes_have_a_line() {
        let mut random = xylem_core::Random::seeded(5);
        for length in 0..200 {
            let mut bytes = vec![0; length];
            random.fill(&mut bytes);
            if length > 34 {
                // As far as the checks of the first two headers, so that deeper ones are tried.
                bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
                bytes[23] = [1, 6, 17][length % 3];
            }
            let sight = Sight { now: Instant::from_nanos(7), host: HostId(0), device: 0, arrives: true, frame: &bytes };
            assert!(line(&sight, &["a".to_owned()]).starts_with("    0.000000007 a:0 <- "));
        }
    }
}
