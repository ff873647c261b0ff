//! The static side of calls: which path has a channel, who serves, and what is remembered of channels past.

use super::client::{CallClient, ClientState};
use super::header::{CallHeader, CallKind, is_later};
use super::remembered::Remembered;
use super::server::{CallServer, ServerState};
use super::{CHANNELS_MAX, CONTENT_MAX, NO_CHANNEL, OLD, SHORT, SPOILT};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xylem_core::map::BindError;
use xylem_core::{
    Demux, EnableError, EnableId, Enabling, Facts, Handled, Instant, Map, OpenError, Opening, Outbox, Part, PathId,
    Protocol, Random, View,
};
use xylem_wire::Header;

/// A channel as one host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    peer: u32,
    channel: u32,
    /// Whether this host is the channel's client.
    client: bool,
}

/// See the module's text.
pub struct CallProtocol {
    paths: Map<Key, PathId>,
    /// Whoever serves serves all channels.
    serving: Map<(), EnableId>,
    remembered: Mutex<Remembered>,
}

impl CallProtocol {
    /// Calls; `random` keys the maps.
    pub fn new(random: &mut Random) -> CallProtocol {
        CallProtocol {
            paths: Map::new(CHANNELS_MAX, random),
            serving: Map::new(1, random),
            remembered: Mutex::default(),
        }
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Protocol for CallProtocol {
    /// Remote: a `Number`, the channel, above the host. Whoever opens actively is the client.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let missing = |expected| OpenError::MissingParticipant { protocol: "call", expected };
        // A side that names as many parts as the other names the channel, too (a completed or a passive open does).
        if opening.participants.local.iter().count() == opening.participants.remote.iter().count() {
            opening.participants.local.number();
        }
        let channel = opening.participants.remote.number().ok_or(missing("a channel"))?;
        let server = match opening.record.as_deref_mut() {
            Some(record) => record.take::<bool>("whether it is the server of a call")?,
            None => opening.enable.is_some(),
        };
        // What is above reads its part of the record before what is below does: that is how it was written.
        let (mut client_state, mut server_state) = (ClientState::starting(opening.now), ServerState::default());
        match opening.record.as_deref_mut() {
            Some(record) if server => server_state = record.take("a server's state")?,
            Some(record) => client_state = record.take("a client's state")?,
            None => {}
        }
        let mut facts = opening.below()?.less(CallHeader::LEN);
        facts.mtu = facts.mtu.min(CONTENT_MAX);
        let peer = opening.lower_participants().remote.find_number().ok_or(missing("the remote host's number"))?;
        if server && server_state.last.is_none() {
            server_state.last = self.remembered().last(&(peer, channel));
        }
        match self.paths.bind(Key { peer, channel, client: !server }, opening.path) {
            Ok(binding) => opening.bind(binding),
            Err(BindError::InUse) => return Err(OpenError::InUse),
            Err(BindError::Full) => return Err(OpenError::Full("channels")),
        }
        let upper = facts.number;
        if server {
            opening.stand(CallServer::new((peer, channel), upper, facts.mtu, server_state, opening.now));
        } else {
            opening.stand(CallClient::new(channel, upper, facts.mtu, client_state));
        }
        opening.complete(Part::Number(channel), Part::Number(channel));
        Ok(facts)
    }

    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        match self.serving.bind((), enabling.id) {
            Ok(binding) => enabling.bind(binding),
            Err(_) => return Err(EnableError::InUse),
        }
        Ok(())
    }

    fn demux(&self, view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        let Ok(header) = view.header::<CallHeader>() else { return Demux::Drop(&SHORT) };
        let Some(peer) = view.participants.remote.find_number() else { return Demux::Drop(&NO_CHANNEL) };
        let client = header.kind == CallKind::Reply;
        if let Some(path) = self.paths.find(&Key { peer, channel: header.channel, client }) {
            return Demux::Path(path);
        }
        if header.kind != CallKind::Request {
            return Demux::Drop(&NO_CHANNEL);
        }
        if !view.message.sum(view.at()).is_right() {
            return Demux::Drop(&SPOILT);
        }
        let last = self.remembered().last(&(peer, header.channel));
        if last.is_some_and(|last| !is_later(header.sequence, last)) {
            return Demux::Drop(&OLD);
        }
        let Some(enable) = self.serving.find(&()) else { return Demux::Drop(&NO_CHANNEL) };
        view.participants.local.push(Part::Number(header.channel));
        view.participants.remote.push(Part::Number(header.channel));
        Demux::Open(enable)
    }

    fn linger(&self, entry: &[u8], now: Instant) -> Handled {
        let Some((peer, channel, sequence)) = super::server::lingering(entry) else { return Handled::No };
        self.remembered().put((peer, channel), sequence, now);
        Handled::Yes
    }

    fn deadline(&self) -> Option<Instant> {
        self.remembered().deadline()
    }

    fn timeout(&self, out: &mut Outbox) {
        self.remembered().expire(out.now);
    }
}
