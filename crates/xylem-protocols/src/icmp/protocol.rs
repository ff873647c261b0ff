//! The static side of ICMP: what becomes of a message that arrives, echo conversations, and errors on behalf of everybody
//! who could not deliver something.

use super::bucket::Bucket;
use super::drops;
use super::echoes::{Echoes, Key};
use super::kind;
use super::report::Complaint;
use super::session::{ECHO_LENGTH, EchoSession, offered};
use std::sync::{Mutex, PoisonError};
use xylem_core::{
    Attributes, BindError, Checksum, Control, Demux, EnableError, Enabling, Facts, Handled, NetworkErrorKind,
    OpenError, Opening, Outbox, Part, Participants, Protocol, Undeliverable, View, drop::linker,
};
use xylem_wire::{Header, IcmpEcho, IcmpHeader, IcmpKind, Sum};

/// How ICMP is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpConfig {
    /// Whether echo requests are answered (RFC 1122, section 3.2.2.6: they must be).
    pub answer_echoes: bool,
    /// Whether those to a group or to everybody are answered too (they need not be, and many answers at once are an
    /// attack on whoever seems to have asked).
    pub answer_broadcast_echoes: bool,
    /// Errors sent a second on average; 0 sends none.
    pub errors_per_second: u32,
    /// Errors sent at once.
    pub errors_at_once: u32,
    /// The most echo conversations of our own.
    pub conversations: usize,
}

impl Default for IcmpConfig {
    fn default() -> IcmpConfig {
        IcmpConfig {
            answer_echoes: true,
            answer_broadcast_echoes: false,
            errors_per_second: 100,
            errors_at_once: 20,
            conversations: 1024,
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub struct IcmpProtocol {
    config: IcmpConfig,
    echoes: Echoes,
    errors: Mutex<Bucket>,
}

impl IcmpProtocol {
    /// ICMP with this set-up.
    pub fn new(config: IcmpConfig) -> IcmpProtocol {
        let errors = Mutex::new(Bucket::new(config.errors_per_second, config.errors_at_once));
        IcmpProtocol { config, echoes: Echoes::default(), errors }
    }

    /// The same bytes go back, as a reply.
    fn answer(&self, header: &IcmpHeader, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let broadcast = view.message.attributes.broadcast;
        if !self.config.answer_echoes || (broadcast && !self.config.answer_broadcast_echoes) {
            return Demux::Drop(&drops::ECHO_NOT_ANSWERED);
        }
        let (Some(us), Some(peer)) = (view.participants.local.find_host(), view.participants.remote.find_host()) else {
            return Demux::Drop(&drops::OTHER_KIND);
        };
        let at = view.at();
        let mut reply = view.take();
        reply.trim_front(at);
        // What is remembered of how it came means nothing on the way back.
        reply.attributes = Attributes::default();
        let front = reply.front_mut(IcmpHeader::LEN).expect("the header was read from there");
        let was = Sum::of(front);
        let answer = IcmpHeader { kind: IcmpKind::ECHO_REPLY, ..*header };
        answer.build(front);
        let checksum = Sum::update(header.checksum, was, Sum::of(front));
        IcmpHeader { checksum, ..answer }.build(front);
        // A group has no address to answer from; the route finds one.
        let local = if broadcast { Default::default() } else { [Part::Host(us)].into() };
        out.reply(Participants { local, remote: [Part::Host(peer)].into() }, reply);
        Demux::Keep
    }

    /// The conversation that the echo header at the view belongs to.
    fn conversation(&self, view: &mut View<'_>) -> Option<(Key, IcmpEcho)> {
        let local = view.participants.local.find_host()?;
        let remote = view.participants.remote.find_host()?;
        let bytes = view.bytes(ECHO_LENGTH)?;
        let echo = IcmpEcho::parse(&bytes[IcmpHeader::LEN..]).ok()?;
        Some((Key { local, remote, identifier: echo.identifier }, echo))
    }

    /// An error that arrived: the view goes to what it quotes.
    fn error(&self, header: &IcmpHeader, view: &mut View<'_>) -> Demux {
        let Some(bytes) = view.bytes(kind::ERROR_LENGTH) else { return Demux::Drop(&drops::SHORT) };
        match kind::read(header, bytes) {
            Err(_) => Demux::Drop(&drops::SHORT),
            Ok(None) if header.kind == IcmpKind::REDIRECT => Demux::Drop(&drops::REDIRECT),
            Ok(None) => Demux::Drop(&drops::OTHER_KIND),
            Ok(Some(kind)) => {
                view.advance(kind::ERROR_LENGTH);
                Demux::Quoted(kind)
            }
        }
    }

    /// Tells the sender of an undeliverable packet, where that is allowed.
    fn report(&self, kind: NetworkErrorKind, undeliverable: &Undeliverable, out: &mut Outbox) -> Handled {
        // What is no IPv4 packet is for another to report.
        let Some(complaint) = Complaint::new(kind, undeliverable) else { return Handled::No };
        if !complaint.is_allowed(undeliverable.broadcast) {
            out.dropped(&drops::NO_ERROR_ABOUT_THIS);
            return Handled::Yes;
        }
        let Some((participants, message)) = complaint.message() else { return Handled::No };
        if self.errors.lock().unwrap_or_else(PoisonError::into_inner).take(out.now) {
            out.reply(participants, message);
        } else {
            out.dropped(&drops::TOO_MANY_ERRORS);
        }
        Handled::Yes
    }
}

impl Protocol for IcmpProtocol {
    /// An echo conversation. Local: the identifier as a `Number`, left out for any; then, as IPv4 takes them, our host
    /// and the peer's.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let identifier = opening.participants.local.number().map_or_else(|| opening.random.next() as u16, |n| n as u16);
        opening.participants.remote.number();
        let facts = opening.below()?;
        let missing = |expected| OpenError::MissingParticipant { protocol: "icmp", expected };
        let local = facts.local.ok_or(missing("an address of ours from below"))?;
        let remote = facts.remote.ok_or(missing("the peer's address from below"))?;
        let key = Key { local, remote, identifier };
        let binding = self.echoes.bind(key, opening.path, self.config.conversations).map_err(|error| match error {
            BindError::InUse => OpenError::InUse,
            BindError::Full => OpenError::Full("echo conversations"),
        })?;
        opening.bind(binding);
        opening.stand(EchoSession::new(identifier));
        let number = Part::Number(u32::from(identifier));
        opening.complete(number, number);
        Ok(offered(&facts, identifier))
    }

    fn open_enable(&self, _enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        Err(EnableError::NotHere)
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        // A sum that the sender left to its device: most messages here turn round and go on a wire after all.
        view.message.complete_checksum();
        let Ok(header) = view.header::<IcmpHeader>() else { return Demux::Drop(&drops::SHORT) };
        if view.message.attributes.checksum == Checksum::None && !view.message.sum(view.at()).is_right() {
            return Demux::Drop(&drops::BAD_CHECKSUM);
        }
        match header.kind {
            IcmpKind::ECHO_REQUEST => self.answer(&header, view, out),
            IcmpKind::ECHO_REPLY => match self.conversation(view).and_then(|(key, _)| self.echoes.find(&key)) {
                Some(path) => Demux::Path(path),
                None => Demux::Drop(&drops::NOBODY_ASKED),
            },
            kind if kind.is_error() => self.error(&header, view),
            _ => Demux::Drop(&drops::OTHER_KIND),
        }
    }

    fn control(&self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Undeliverable(kind, undeliverable) => self.report(*kind, undeliverable, out),
            _ => Handled::No,
        }
    }

    /// An error quotes one of our echo requests.
    fn quoted(&self, view: &mut View<'_>, sequence: &mut Option<u32>) -> Demux {
        let is_request = view.header::<IcmpHeader>().is_ok_and(|header| header.kind == IcmpKind::ECHO_REQUEST);
        let conversation = self.conversation(view).filter(|_| is_request);
        match conversation.and_then(|(key, echo)| self.echoes.find(&key).map(|path| (path, echo))) {
            Some((path, echo)) => {
                *sequence = Some(u32::from(echo.sequence));
                Demux::Path(path)
            }
            None => Demux::Drop(&linker::NOT_QUOTED),
        }
    }
}
