//! What a session keeps while its neighbour's link address is looked for: a few messages, and when to ask again. The
//! messages belong to the path, not to ARP, so a flood to a silent neighbour costs only those who sent it.
//! (RFC 1122, section 2.3.2.2 asks for at least the latest message.)

use super::drops;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use xylem_core::{Control, Event, Instant, Message, Neighbour, NetworkErrorKind, Outbox, Question, Undeliverable};
use xylem_wire::EthernetAddress;

/// The most messages that wait; the oldest goes when one more comes.
pub const WAITING_MAX: usize = 3;
/// When a question without an answer is asked again; each later time waits twice as long.
pub const ASK_AGAIN: Duration = Duration::from_secs(1);
/// Questions before a session gives up by itself, should nobody ever answer.
pub const ASKS_MAX: u32 = 4;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Waiting {
    address: IpAddr,
    entry: Neighbour,
    messages: VecDeque<Message>,
    asks: u32,
    ask_again: Instant,
}

impl Waiting {
    pub fn new(address: IpAddr, entry: Neighbour) -> Waiting {
        Waiting { address, entry, messages: VecDeque::new(), asks: 0, ask_again: Instant::ZERO }
    }

    /// Whose link address is wanted.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The link address, while it is known.
    pub fn link_address(&self) -> Option<EthernetAddress> {
        self.entry.link_address()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Keeps a message, and asks if nobody has been asked yet.
    pub fn keep(&mut self, message: Message, out: &mut Outbox) {
        if self.messages.len() == WAITING_MAX {
            self.messages.pop_front();
            out.dropped(&drops::WAITING_FULL);
        }
        self.messages.push_back(message);
        if self.asks == 0 {
            self.ask(out);
        }
    }

    /// Hands out what waited, oldest first.
    pub fn take(&mut self) -> VecDeque<Message> {
        self.asks = 0;
        std::mem::take(&mut self.messages)
    }

    pub fn deadline(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.ask_again)
    }

    pub fn timeout(&mut self, out: &mut Outbox) {
        if self.is_empty() || out.now < self.ask_again {
            return;
        }
        if self.asks < ASKS_MAX { self.ask(out) } else { self.give_up(out) }
    }

    /// The neighbour does not answer: what waited is dropped, and whoever sent it learns why nothing comes of it.
    pub fn give_up(&mut self, out: &mut Outbox) {
        let lost = self.take();
        if !lost.is_empty() {
            out.tell(Control::Event(Event::Unreachable));
        }
        for message in lost {
            out.dropped(&drops::NO_NEIGHBOUR);
            // What was passed on for others has nobody above to tell: its sender is told (RFC 1812, section 5.2.7.1).
            let mut quote = vec![0; message.len().min(Undeliverable::QUOTE_MAX)];
            message.copy_to(&mut quote);
            let undeliverable = Undeliverable { quote, broadcast: message.attributes.broadcast };
            out.advise(Control::Undeliverable(NetworkErrorKind::HostUnreachable, Box::new(undeliverable)));
        }
    }

    fn ask(&mut self, out: &mut Outbox) {
        out.advise(Control::Question(Question::Neighbour(self.address), None));
        self.ask_again = out.now + ASK_AGAIN * (1 << self.asks);
        self.asks += 1;
    }
}

const _: () = assert!(WAITING_MAX < Outbox::CONTROL_LIMIT, "all that waited is given up, and reported, in one verb");
const _: () = assert!(ASKS_MAX < 16, "the time between two questions doubles with each: it shall not leave the day");
