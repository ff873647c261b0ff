//! The static side of streams: who has which, who listens, and what is left of those that ended. It answers openings
//! itself and makes no path before the handshake is over.

use super::embryo::{Embryo, Embryos};
use super::lingering::{Late, Lingering};
use super::session::{StreamSession, StreamState};
use super::{BACKLOG_FULL, Key, NO_STREAM, NOT_IN_WINDOW, SHORT, SPOILT, STREAMS_MAX, StreamHeader};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xylem_core::drop::linker::NO_BUFFER;
use xylem_core::map::BindError;
use xylem_core::time::earlier;
use xylem_core::{
    Binding, Demux, EnableError, EnableId, Enabling, Facts, Handled, Instant, Map, OpenError, Opening, Outbox, Part,
    Participants, PathId, Protocol, Random, View,
};
use xylem_wire::{Header, Port, SequenceNumber};

/// Who listens at a port, and how many handshakes it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    enable: EnableId,
    backlog: usize,
}

/// How many random ports are tried for an active open before it is refused.
const PORT_TRIES: usize = 64;

/// See the module's text.
pub struct StreamProtocol {
    paths: Map<Key, PathId>,
    listeners: Map<Port, Listener>,
    embryos: Mutex<Embryos>,
    lingering: Mutex<Lingering>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Positions begin with the clock, in units of 256 ns, and somewhere near it: a stream between the same ports begins
/// beyond where the last one ended, as long as it carries less than 4 MB/s.
fn first_position(now: Instant, random: &mut Random) -> SequenceNumber {
    SequenceNumber((now.as_nanos() >> 8) as u32) + random.below(256) as u32
}

impl StreamProtocol {
    /// Streams; `random` keys the maps.
    pub fn new(random: &mut Random) -> StreamProtocol {
        StreamProtocol {
            paths: Map::new(STREAMS_MAX, random),
            listeners: Map::new(usize::from(u16::MAX), random),
            embryos: Mutex::default(),
            lingering: Mutex::default(),
        }
    }

    /// Binds `path` to these ports, or to a free local one.
    fn bind(&self, peer: u32, local: Option<Port>, remote: Port, path: PathId, random: &mut Random) -> Bound {
        let bind = |local| {
            let key = Key { peer, remote, local };
            if lock(&self.lingering).contains(&key) {
                return Err(BindError::InUse);
            }
            self.paths.bind(key, path).map(|binding| (key, binding))
        };
        if let Some(local) = local {
            return bind(local).map_err(|error| match error {
                BindError::InUse => OpenError::InUse,
                BindError::Full => OpenError::Full("streams"),
            });
        }
        let first = Port::DYNAMIC_FIRST.0;
        let span = u64::from(u16::MAX - first) + 1;
        (0..PORT_TRIES).find_map(|_| bind(Port(first + random.below(span) as u16)).ok()).ok_or(OpenError::NoFreePort)
    }

    fn reply(header: &StreamHeader, participants: Participants, out: &mut Outbox) {
        match out.message() {
            Some(mut message) => {
                header.put(&mut message);
                out.reply(participants, message);
            }
            None => out.dropped(&NO_BUFFER),
        }
    }

    /// A segment that no path has.
    fn stray(&self, key: Key, header: &StreamHeader, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let length = view.ahead() - StreamHeader::LEN;
        match lock(&self.lingering).judge(&key, header, length) {
            Late::Unknown => {}
            Late::Ignore => return Demux::Drop(&NOT_IN_WINDOW),
            Late::Answer(answer) => {
                StreamProtocol::reply(&answer, view.participants.clone(), out);
                return Demux::Keep;
            }
        }
        let mut embryos = lock(&self.embryos);
        if header.resets {
            if embryos.find(&key).is_some_and(|embryo| header.acknowledgement == embryo.ours + 1) {
                embryos.take(&key);
            }
            return Demux::Drop(&NO_STREAM);
        }
        if header.opens && !header.acknowledges {
            let Some(listener) = self.listeners.find(&key.local) else { return self.nobody(header, view, out) };
            let ours = first_position(out.now, &mut out.random);
            let fresh = Embryo::new(listener.enable, view.participants.clone(), ours, header, out.now);
            let Some(embryo) = embryos.entry(key, header, fresh, listener.backlog) else {
                return Demux::Drop(&BACKLOG_FULL);
            };
            StreamProtocol::reply(&embryo.answer(key), view.participants.clone(), out);
            return Demux::Keep;
        }
        match embryos.find(&key) {
            Some(embryo) if !header.opens && header.acknowledges && header.acknowledgement == embryo.ours + 1 => {
                view.participants.local.push(Part::Port(key.local));
                view.participants.remote.push(Part::Port(key.remote));
                Demux::Open(embryo.enable)
            }
            // The handshake may have ended since the path was looked for.
            _ => match self.paths.find(&key) {
                Some(path) => Demux::Path(path),
                None => self.nobody(header, view, out),
            },
        }
    }

    fn nobody(&self, header: &StreamHeader, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let length = view.ahead() - StreamHeader::LEN;
        StreamProtocol::reply(&header.reset(length), view.participants.clone(), out);
        Demux::Drop(&NO_STREAM)
    }
}

type Bound = Result<(Key, Binding), OpenError>;

impl Protocol for StreamProtocol {
    /// Both sides: a `Port` above the host. The local one may be left out for an active open.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let missing = |expected| OpenError::MissingParticipant { protocol: "stream", expected };
        let local = opening.participants.local.port();
        let remote = opening.participants.remote.port().ok_or(missing("a remote port"))?;
        let state = match opening.record.as_deref_mut() {
            Some(record) => Some(record.take::<StreamState>("a stream's state")?),
            None => None,
        };
        let facts = opening.below()?.less(StreamHeader::LEN);
        let peer = opening.lower_participants().remote.find_number().ok_or(missing("the remote host's number"))?;
        if opening.enable.is_some() && local.is_none() {
            return Err(missing("a local port"));
        }
        // The path has its key before the embryo goes: another shepherd's segment finds one of the two.
        let (key, binding) = self.bind(peer, local, remote, opening.path, opening.random)?;
        opening.bind(binding);
        let embryo = match opening.enable {
            None => None,
            Some(_) => Some(lock(&self.embryos).take(&key).ok_or(OpenError::NoEmbryo)?),
        };
        let content_max = facts.mtu;
        let session = match (state, embryo) {
            (Some(state), _) => StreamSession::resumed(key, content_max, state, opening.now),
            (None, Some(embryo)) => StreamSession::passive(key, content_max, embryo.ours, embryo.its, embryo.window),
            (None, None) => {
                let first = first_position(opening.now, opening.random);
                StreamSession::active(key, content_max, first)
            }
        };
        opening.stand(session);
        opening.complete(Part::Port(key.local), Part::Port(remote));
        Ok(facts)
    }

    /// Local: a `Port`. The rest is not looked at: a host has one number.
    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        let missing = EnableError::MissingParticipant { protocol: "stream", expected: "a local port" };
        let port = enabling.participants.local.find_port().ok_or(missing)?;
        let listener = Listener { enable: enabling.id, backlog: enabling.backlog };
        match self.listeners.bind(port, listener) {
            Ok(binding) => enabling.bind(binding),
            Err(BindError::InUse) => return Err(EnableError::InUse),
            Err(BindError::Full) => return Err(EnableError::Full("listeners")),
        }
        Ok(())
    }

    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let Ok(header) = view.header::<StreamHeader>() else { return Demux::Drop(&SHORT) };
        let Some(peer) = view.participants.remote.find_number() else { return Demux::Drop(&NO_STREAM) };
        let key = Key { peer, remote: header.source, local: header.destination };
        if let Some(path) = self.paths.find(&key) {
            return Demux::Path(path);
        }
        if !view.message.sum(view.at()).is_right() {
            return Demux::Drop(&SPOILT);
        }
        self.stray(key, &header, view, out)
    }

    fn linger(&self, entry: &[u8], now: Instant) -> Handled {
        if lock(&self.lingering).put(entry, now) { Handled::Yes } else { Handled::No }
    }

    fn deadline(&self) -> Option<Instant> {
        earlier(lock(&self.embryos).deadline(), lock(&self.lingering).deadline())
    }

    fn timeout(&self, out: &mut Outbox) {
        lock(&self.lingering).expire(out.now);
        for (key, embryo) in lock(&self.embryos).due(out.now) {
            StreamProtocol::reply(&embryo.answer(key), embryo.participants.clone(), out);
        }
    }
}
