//! What makes an arriving message sound, said once for those who pop it and for those who deliver it without a path.

use super::drops;
use std::net::IpAddr;
use xylem_core::{Checksum, DropReason, Message};
use xylem_wire::{Header, IpProtocol, Sum, UdpHeader};

/// Where the checksum stands in the header, in bytes.
pub(super) const CHECKSUM_AT: u16 = {
    let field = UdpHeader::FIELDS[UdpHeader::FIELDS.len() - 1];
    assert!(matches!(field.name.as_bytes(), b"checksum"), "the checksum is the header's last field");
    (field.bit_offset / 8) as u16
};

/// Checks the length and the checksum of the message whose header stands `at` bytes from the front, and cuts off what
/// lies behind it. A checksum that somebody below has seen to is not computed again.
pub(super) fn check(
    header: &UdpHeader,
    message: &mut Message,
    at: usize,
    source: IpAddr,
    destination: IpAddr,
) -> Result<(), &'static DropReason> {
    header.payload_length(message.len() - at).map_err(|_| &drops::BAD_LENGTH)?;
    message.truncate(at + usize::from(header.length));
    let right = match (message.attributes.checksum, header.checksum) {
        (Checksum::Verified | Checksum::Partial { .. }, _) => true,
        (Checksum::None, UdpHeader::NO_CHECKSUM) => source.is_ipv4(),
        (Checksum::None, _) => {
            let pseudo = Sum::pseudo(source, destination, IpProtocol::UDP, u32::from(header.length));
            pseudo.add(message.sum(at)).is_right()
        }
    };
    if !right {
        return Err(&drops::BAD_CHECKSUM);
    }
    message.attributes.checksum = Checksum::Verified;
    Ok(())
}
