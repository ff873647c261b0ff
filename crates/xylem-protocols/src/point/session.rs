//! One conversation's end: it adds nothing and takes nothing off.

use super::{EMPTY, OTHER_VERSION, PacketFront};
use xylem_core::{Checksum, Control, Handled, Message, Outbox, Session, Verdict};
use xylem_wire::{EtherType, Header};

/// See the module's text.
#[derive(Debug)]
pub(super) struct PointSession {
    kind: EtherType,
    mtu: Option<usize>,
}

impl PointSession {
    pub fn new(kind: EtherType, mtu: Option<usize>) -> PointSession {
        PointSession { kind, mtu }
    }
}

impl Session for PointSession {
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let Some(Ok(front)) = message.front(PacketFront::LEN).map(PacketFront::parse) else {
            return Verdict::Drop(&EMPTY);
        };
        if front.kind() != Some(self.kind) {
            return Verdict::Drop(&OTHER_VERSION);
        }
        // A sum that the sender left to its device has been on no wire that could have spoilt it.
        if let Checksum::Partial { .. } = message.attributes.checksum {
            message.attributes.checksum = Checksum::Verified;
        }
        Verdict::Pass
    }

    fn push(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        Verdict::Pass
    }

    fn may_rest(&self) -> bool {
        true
    }

    fn control(&mut self, control: &mut Control, _out: &mut Outbox) -> Handled {
        if let Control::Facts(facts) = control {
            facts.mtu = facts.mtu.min(self.mtu.unwrap_or(usize::MAX));
            facts.number = u32::from(self.kind.0);
        }
        Handled::No
    }
}
