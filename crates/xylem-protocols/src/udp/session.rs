//! One end of a UDP conversation. All it knows is who converses; all it does is put a header in front and take one off.

use super::check::{CHECKSUM_AT, check};
use super::drops;
use xylem_core::{Checksum, Control, Endpoint, Handled, Message, Outbox, Session, Verdict};
use xylem_wire::{Header, IpProtocol, Sum, UdpHeader};

/// See the module's text.
#[derive(Debug)]
pub(super) struct UdpSession {
    pub local: Endpoint,
    pub remote: Endpoint,
}

impl Session for UdpSession {
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let Ok(header) = message.header::<UdpHeader>() else { return Verdict::Drop(&drops::SHORT) };
        if (header.source, header.destination) != (self.remote.port, self.local.port) {
            return Verdict::Drop(&drops::OTHER_PATH);
        }
        if let Err(reason) = check(&header, message, 0, self.remote.address, self.local.address) {
            return Verdict::Drop(reason);
        }
        message.trim_front(UdpHeader::LEN);
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let Ok(length) = u16::try_from(message.len() + UdpHeader::LEN) else {
            return Verdict::Drop(&drops::TOO_LONG);
        };
        // The device, or whoever cuts the message, completes the checksum over the rest.
        let pseudo = Sum::pseudo(self.local.address, self.remote.address, IpProtocol::UDP, u32::from(length));
        let (source, destination) = (self.local.port, self.remote.port);
        message.push_header(&UdpHeader { source, destination, length, checksum: pseudo.fold() });
        message.attributes.checksum = Checksum::Partial { start: 0, field: CHECKSUM_AT };
        Verdict::Pass
    }

    fn may_rest(&self) -> bool {
        true
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            *facts = facts.clone().less(UdpHeader::LEN);
        }
        Handled::No
    }
}
