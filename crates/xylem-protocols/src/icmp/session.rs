//! One end of an echo conversation: what is pushed goes out as an echo request, and what comes back in the reply goes up.
//! The sequence number is the message's activity, so that whoever sends several can tell their replies apart.

use super::drops;
use xylem_core::{Checksum, Control, Facts, Handled, Message, Outbox, Session, Verdict};
use xylem_wire::{Header, IcmpEcho, IcmpHeader, IcmpKind, Sum};

/// Bytes in front of an echo's data.
pub(super) const ECHO_LENGTH: usize = IcmpHeader::LEN + IcmpEcho::LEN;

/// See the module's text.
#[derive(Debug)]
pub(super) struct EchoSession {
    identifier: u16,
}

impl EchoSession {
    pub fn new(identifier: u16) -> EchoSession {
        EchoSession { identifier }
    }
}

impl Session for EchoSession {
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        if message.attributes.checksum == Checksum::None && !message.sum(0).is_right() {
            return Verdict::Drop(&drops::BAD_CHECKSUM);
        }
        let (Ok(header), Ok(echo)) = (message.pop_header::<IcmpHeader>(), message.pop_header::<IcmpEcho>()) else {
            return Verdict::Drop(&drops::SHORT);
        };
        if header.kind != IcmpKind::ECHO_REPLY || echo.identifier != self.identifier {
            return Verdict::Drop(&drops::OTHER_PATH);
        }
        message.attributes.activity = u32::from(echo.sequence);
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let sequence = message.attributes.activity as u16;
        message.push_header(&IcmpEcho { identifier: self.identifier, sequence });
        let request = IcmpHeader { kind: IcmpKind::ECHO_REQUEST, code: 0, checksum: 0 };
        let checksum = front_sum(&request).add(message.sum(0)).checksum();
        message.push_header(&IcmpHeader { checksum, ..request });
        message.attributes.checksum = Checksum::Verified;
        Verdict::Pass
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            *facts = offered(facts, self.identifier);
        }
        Handled::No
    }
}

/// What an echo conversation offers to whoever stands above, over what IP offers.
pub(super) fn offered(below: &Facts, identifier: u16) -> Facts {
    Facts { number: u32::from(identifier), ..below.clone().less(ECHO_LENGTH) }
}

/// The sum of the common header.
fn front_sum(header: &IcmpHeader) -> Sum {
    let mut bytes = [0; IcmpHeader::LEN];
    header.build(&mut bytes);
    Sum::of(&bytes)
}
