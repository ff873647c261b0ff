//! One conversation's end on an Ethernet link: a header template. Towards a neighbour it reads the neighbour's entry with
//! one load for each message, so a neighbour that moves is followed without a word.

use super::drops;
use super::waiting::Waiting;
use xylem_core::{Answer, Checksum, Control, Handled, Instant, Message, Outbox, Piece, Session, Verdict};
use xylem_wire::{EtherType, EthernetAddress, EthernetHeader, Header};

/// Where a session sends.
#[derive(Debug)]
pub(super) enum Towards {
    /// To this address.
    Link(EthernetAddress),
    /// To whatever address this neighbour has.
    Neighbour(Waiting),
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct EthernetSession {
    source: EthernetAddress,
    kind: EtherType,
    towards: Towards,
    mtu: Option<usize>,
    /// The path was closed while messages waited; it ends when they are gone.
    closing: bool,
}

impl EthernetSession {
    pub fn new(source: EthernetAddress, kind: EtherType, towards: Towards, mtu: Option<usize>) -> EthernetSession {
        EthernetSession { source, kind, towards, mtu, closing: false }
    }

    fn frame(&self, destination: EthernetAddress, message: &mut Message) {
        message.push_header(&EthernetHeader { destination, source: self.source, kind: self.kind });
        message.attributes.checksum = message.attributes.checksum.moved_back(EthernetHeader::LEN);
    }

    /// Sends what waited, oldest first.
    fn flush(&mut self, destination: EthernetAddress, out: &mut Outbox) {
        let Towards::Neighbour(waiting) = &mut self.towards else { return };
        for mut message in waiting.take() {
            self.frame(destination, &mut message);
            out.push(message);
        }
        self.end_if_closing(out);
    }

    fn end_if_closing(&self, out: &mut Outbox) {
        if self.closing {
            out.finish();
        }
    }
}

impl Session for EthernetSession {
    /// The destination is not judged again: whoever named the path has read it, and may have written the path's name
    /// there.
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        match message.pop_header::<EthernetHeader>() {
            Err(_) => Verdict::Drop(&drops::SHORT),
            Ok(header) if header.kind != self.kind => Verdict::Drop(&drops::OTHER_TYPE),
            Ok(_) => {
                // A sum that the sender left to its device has been on no wire that could have spoilt it.
                if let Checksum::Partial { .. } = message.attributes.checksum {
                    message.attributes.checksum = Checksum::Verified;
                }
                Verdict::Pass
            }
        }
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let destination = match &mut self.towards {
            Towards::Link(address) => *address,
            Towards::Neighbour(waiting) => match waiting.link_address() {
                Some(address) if waiting.is_empty() => address,
                Some(address) => {
                    // The answer is on its way here; what waited goes first all the same.
                    self.flush(address, out);
                    self.frame(address, message);
                    out.push(std::mem::take(message));
                    return Verdict::Keep;
                }
                None => {
                    waiting.keep(std::mem::take(message), out);
                    return Verdict::Keep;
                }
            },
        };
        self.frame(destination, message);
        Verdict::Pass
    }

    fn may_rest(&self) -> bool {
        !self.closing && !matches!(&self.towards, Towards::Neighbour(waiting) if !waiting.is_empty())
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.towards {
            Towards::Link(_) => None,
            Towards::Neighbour(waiting) => waiting.deadline(),
        }
    }

    fn timeout(&mut self, out: &mut Outbox) {
        let Towards::Neighbour(waiting) = &mut self.towards else { return };
        if let Some(address) = waiting.link_address() {
            return self.flush(address, out);
        }
        waiting.timeout(out);
        if waiting.is_empty() {
            self.end_if_closing(out);
        }
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        match (control, &mut self.towards) {
            (Control::Facts(facts), _) => {
                *facts = facts.clone().less(EthernetHeader::LEN);
                facts.mtu = facts.mtu.min(self.mtu.unwrap_or(usize::MAX));
                facts.number = u32::from(self.kind.0);
                Handled::No
            }
            (Control::Answer(Answer::Neighbour { address, found }), Towards::Neighbour(waiting))
                if *address == waiting.address() =>
            {
                match (waiting.link_address(), found) {
                    (Some(address), _) => {
                        self.flush(address, out);
                        Handled::Yes
                    }
                    // Found and forgotten again: what waits goes on waiting and asks again in time.
                    (None, true) => Handled::Yes,
                    // Those above learn it too: whoever waits for this peer waits in vain.
                    (None, false) => {
                        waiting.give_up(out);
                        self.end_if_closing(out);
                        Handled::No
                    }
                }
            }
            _ => Handled::No,
        }
    }

    fn cut(&self, _headers: &mut [u8], _piece: &Piece) -> usize {
        EthernetHeader::LEN
    }

    fn close(&mut self, out: &mut Outbox) {
        match &self.towards {
            Towards::Neighbour(waiting) if !waiting.is_empty() => self.closing = true,
            _ => out.finish(),
        }
    }
}
