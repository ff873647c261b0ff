//! The anchor of a connection: what the application's threads and the path share. The stack's side stores and wakes and
//! does no more; the application's side copies outside all locks the stack takes, and asks the path for the rest.

use super::incoming::Incoming;
use super::interest::{Calls, Interest};
use super::listener::Listener;
use super::no_buffer;
use crate::lock;
use crate::stack::Core;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Poll, Waker};
use xylem_core::{
    Anchor, Answer, Control, Endpoint, Event, HEADROOM, Message, NetworkErrorKind, PathId, Pool, Question, Setting,
    Slice,
};
use xylem_core::{Status, pool};
use xylem_graph::instance::Work;
use xylem_wire::Port;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Stream {
    state: Mutex<State>,
    /// Only readers lock it, one at a time, and before the state if they need both.
    incoming: Mutex<Incoming>,
    name: OnceLock<Name>,
}

/// What is known of a connection once it has a path.
struct Name {
    path: PathId,
    local: Endpoint,
    peer: Endpoint,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// What has arrived and no reader has taken over.
    arrived: VecDeque<Message>,
    /// What the path takes more, as it said last, less what was pushed since.
    room: u32,
    /// The most room the path ever had.
    room_most: u32,
    peer_closed: bool,
    send_closed: bool,
    receive_closed: bool,
    /// The application has let go: what arrives is not for anybody.
    released: bool,
    /// An error that nobody has been told yet.
    failure: Option<ErrorKind>,
    /// What the network said, which becomes the error if the connection fails without one.
    suspicion: Option<ErrorKind>,
    /// In a box: nobody waits for most connections of a server that has many.
    waiting: Option<Box<Waiting>>,
    /// Whom to tell that the path is there.
    listener: Option<Weak<Listener>>,
    /// In a box: few ever ask.
    status: Option<Box<Status>>,
}

/// Who waits for a change.
#[derive(Default)]
struct Waiting {
    readers: Interest,
    writers: Interest,
    watcher: Option<Watcher>,
}

impl Waiting {
    fn is_nobody(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty() && self.watcher.is_none()
    }
}

/// Called with no lock held when a connection may have become ready.
type Watcher = Arc<dyn Fn() + Send + Sync>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Opening,
    Open,
    Gone,
}

/// What would not wait now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A read, or an accept: there is something, or the end, or an error.
    pub readable: bool,
    /// A write: there is room, or an error.
    pub writable: bool,
    /// The peer will send no more.
    pub peer_closed: bool,
    /// Nothing will happen any more.
    pub gone: bool,
    /// There is an error to be taken.
    pub failed: bool,
    /// It has neither opened nor failed yet.
    pub opening: bool,
    /// All bytes that were written have been acknowledged.
    pub drained: bool,
}

const _: () = assert!(size_of::<Stream>() <= 184, "a connection that waits costs little");

/// The most bytes one write hands over at once: as many large buffers as a message names without allocating. Every push
/// ends in a segment that may be shorter than others, so fewer and longer ones are better.
const WRITE_MAX: usize = 2 * pool::LARGE;

/// The largest write that is copied into small buffers: what five of them hold, the first of them with headroom.
const SMALL_WRITE_MAX: usize = 5 * pool::SMALL - HEADROOM;

impl Stream {
    /// The anchor of a connection that `listener` will be offered when its path is there.
    pub fn accepted(listener: Weak<Listener>) -> Stream {
        let state = State { stage: Stage::Open, listener: Some(listener), ..State::default() };
        Stream { state: Mutex::new(state), ..Stream::default() }
    }

    /// Gives it its path. Done once, before anybody asks.
    pub fn named(&self, path: PathId, local: SocketAddr, peer: SocketAddr) {
        let end = |address: SocketAddr| Endpoint { address: address.ip(), port: Port(address.port()) };
        let fresh = self.name.set(Name { path, local: end(local), peer: end(peer) }).is_ok();
        assert!(fresh, "a connection got a second path");
    }

    fn name(&self) -> &Name {
        self.name.get().expect("a socket is made when its path is known")
    }

    /// Its path.
    pub fn path(&self) -> PathId {
        self.name().path
    }

    /// Our end.
    pub fn local(&self) -> SocketAddr {
        let Endpoint { address, port } = self.name().local;
        SocketAddr::new(address, port.0)
    }

    /// The peer's end.
    pub fn peer(&self) -> SocketAddr {
        let Endpoint { address, port } = self.name().peer;
        SocketAddr::new(address, port.0)
    }

    /// Changes the state, and calls whom the change concerns when the lock is free again.
    fn change<T>(&self, change: impl FnOnce(&mut State, &mut Calls) -> T) -> T {
        let mut calls = Calls::default();
        let mut state = lock(&self.state);
        let result = change(&mut state, &mut calls);
        let watcher = calls.changed().then(|| state.watcher()).flatten();
        drop(state);
        calls.make();
        if let Some(watcher) = watcher {
            watcher();
        }
        result
    }
}

/// The application's side.
impl Stream {
    /// Ready when the connection has opened, or has not.
    pub fn poll_open(&self, waker: &Waker) -> Poll<io::Result<()>> {
        let mut state = lock(&self.state);
        match (state.stage, state.failure.take()) {
            (_, Some(failure)) => Poll::Ready(Err(failure.into())),
            (Stage::Open, None) => Poll::Ready(Ok(())),
            (Stage::Gone, None) => Poll::Ready(Err(ErrorKind::ConnectionAborted.into())),
            (Stage::Opening, None) => {
                state.waiting().writers.register(waker);
                Poll::Pending
            }
        }
    }

    /// Reads into `into`; zero bytes mean the end. Without a waker nobody is called when it is pending.
    pub fn poll_read(
        &self,
        core: &Core,
        into: &mut [IoSliceMut<'_>],
        waker: Option<&Waker>,
    ) -> Poll<io::Result<usize>> {
        if into.iter().all(|slice| slice.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        let mut incoming = lock(&self.incoming);
        loop {
            let count = incoming.read(into, |queue| std::mem::swap(queue, &mut lock(&self.state).arrived));
            if count > 0 {
                let credit = incoming.credit(false);
                drop(incoming);
                self.give_credit(core, credit);
                return Poll::Ready(Ok(count));
            }
            match self.nothing_to_read(waker) {
                None => {}
                Some(answer) => {
                    let credit = incoming.credit(true);
                    drop(incoming);
                    self.give_credit(core, credit);
                    return answer;
                }
            }
        }
    }

    /// Copies what could be read, without reading it.
    pub fn poll_peek(&self, into: &mut [u8], waker: Option<&Waker>) -> Poll<io::Result<usize>> {
        let mut incoming = lock(&self.incoming);
        loop {
            let count = incoming.peek(into, |queue| queue.append(&mut lock(&self.state).arrived));
            if count > 0 || into.is_empty() {
                return Poll::Ready(Ok(count));
            }
            if let Some(answer) = self.nothing_to_read(waker) {
                return answer;
            }
        }
    }

    /// Bytes that could be read now.
    pub fn unread(&self) -> usize {
        // In the order in which readers lock the two.
        let incoming = lock(&self.incoming);
        let state = lock(&self.state);
        incoming.len() + state.arrived.iter().map(Message::len).sum::<usize>()
    }

    /// What a reader hears that found nothing; `None` if something has arrived since.
    fn nothing_to_read(&self, waker: Option<&Waker>) -> Option<Poll<io::Result<usize>>> {
        let mut state = lock(&self.state);
        if !state.arrived.is_empty() {
            return None;
        }
        if let Some(failure) = state.failure.take() {
            return Some(Poll::Ready(Err(failure.into())));
        }
        if state.peer_closed || state.receive_closed || state.stage == Stage::Gone {
            return Some(Poll::Ready(Ok(0)));
        }
        if let Some(waker) = waker {
            state.waiting().readers.register(waker);
        }
        Some(Poll::Pending)
    }

    fn give_credit(&self, core: &Core, credit: Option<usize>) {
        if let Some(bytes) = credit {
            core.request(self.path(), Work::Credit(bytes));
        }
    }

    /// Writes as much of `from` as one message takes and the path has room for; never nothing, unless there is nothing
    /// to write.
    pub fn poll_write(
        &self,
        core: &Core,
        from: &[IoSlice<'_>],
        urgent: bool,
        waker: Option<&Waker>,
    ) -> Poll<io::Result<usize>> {
        let wanted: usize = from.iter().map(|slice| slice.len()).sum();
        let count = match self.take_room(wanted, waker) {
            Poll::Ready(Ok(0)) => return Poll::Ready(Ok(0)),
            Poll::Ready(Ok(count)) => count,
            other => return other,
        };
        let mut message = Message::default();
        let copied = copy(core.instance.pool(), from, count, &mut message);
        if copied < count {
            lock(&self.state).room += (count - copied) as u32;
        }
        if copied == 0 {
            return Poll::Ready(Err(no_buffer()));
        }
        message.attributes.urgent = urgent && copied == wanted;
        core.request_in_place(self.path(), &mut Work::Push(message));
        Poll::Ready(Ok(copied))
    }

    /// Takes room for at most `wanted` bytes.
    fn take_room(&self, wanted: usize, waker: Option<&Waker>) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.state);
        if let Some(failure) = state.failure.take() {
            return Poll::Ready(Err(failure.into()));
        }
        if state.send_closed || state.stage == Stage::Gone {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        let count = wanted.min(WRITE_MAX);
        if wanted == 0 {
            return Poll::Ready(Ok(0));
        }
        if state.stage == Stage::Open && (count <= state.room as usize || state.has_worthwhile_room()) {
            let count = count.min(state.room as usize);
            state.room -= count as u32;
            return Poll::Ready(Ok(count));
        }
        if let Some(waker) = waker {
            state.waiting().writers.register(waker);
        }
        Poll::Pending
    }

    /// The application will send no more, read no more, or both.
    pub fn shut_down(&self, core: &Core, send: bool, receive: bool) -> io::Result<()> {
        let tell = self.change(|state, calls| {
            if state.stage == Stage::Gone {
                return Err(io::Error::from(ErrorKind::NotConnected));
            }
            if receive {
                state.receive_closed = true;
                state.call_readers(calls);
            }
            let tell = send && !state.send_closed;
            if send {
                state.send_closed = true;
                state.call_writers(calls);
            }
            Ok(tell)
        })?;
        if tell {
            self.set(core, Setting::SendClosed);
        }
        Ok(())
    }

    /// Wishes something of the path.
    pub fn set(&self, core: &Core, setting: Setting) {
        core.request(self.path(), Work::Control(Control::Set(setting)));
    }

    /// The application lets go. What was received and not read, or comes from now on, gets no credit, by which the path
    /// knows that it is lost, and tells the peer by a reset (RFC 2525, section 2.17); otherwise what is unsent is sent.
    pub fn release(&self, core: &Core, at_once: bool) {
        let mut incoming = lock(&self.incoming);
        self.change(|state, _| {
            state.released = true;
            state.waiting.iter_mut().for_each(|waiting| waiting.watcher = None);
            state.arrived = VecDeque::new();
        });
        let credit = incoming.credit(true);
        incoming.clear();
        drop(incoming);
        self.give_credit(core, credit);
        if at_once {
            self.set(core, Setting::Abort);
        }
        core.request(self.path(), Work::Close);
    }

    /// The error nobody has been told yet.
    pub fn take_failure(&self) -> Option<io::Error> {
        lock(&self.state).failure.take().map(io::Error::from)
    }

    /// What would not wait now.
    pub fn readiness(&self) -> Readiness {
        let unread = !lock(&self.incoming).is_empty();
        let state = lock(&self.state);
        let (failed, gone) = (state.failure.is_some(), state.stage == Stage::Gone);
        let ended = failed || gone;
        Readiness {
            readable: unread || !state.arrived.is_empty() || state.peer_closed || state.receive_closed || ended,
            writable: ended || state.send_closed || (state.stage == Stage::Open && state.has_worthwhile_room()),
            peer_closed: state.peer_closed,
            gone,
            failed,
            opening: state.stage == Stage::Opening && !failed,
            // The path has all its room again.
            drained: gone || state.room >= state.room_most,
        }
    }

    /// Calls `watcher` whenever the connection may have become ready, from whichever thread it happens on.
    pub fn watch(&self, watcher: Option<Watcher>) {
        lock(&self.state).waiting().watcher = watcher;
    }

    /// Asks the path how it is doing; [`poll_status`](Stream::poll_status) has the answer.
    pub fn ask_status(&self, core: &Core) {
        lock(&self.state).status = None;
        core.request(self.path(), Work::Control(Control::Question(Question::Status, None)));
    }

    /// The answer to the last [`ask_status`](Stream::ask_status).
    pub fn poll_status(&self, waker: &Waker) -> Poll<io::Result<Status>> {
        let mut state = lock(&self.state);
        if let Some(status) = &state.status {
            return Poll::Ready(Ok((**status).clone()));
        }
        if state.stage == Stage::Gone {
            return Poll::Ready(Err(ErrorKind::NotConnected.into()));
        }
        state.waiting().readers.register(waker);
        Poll::Pending
    }
}

/// A message of the front of `bytes` for a path that is still to be opened, and how many bytes that are; nothing in front
/// of them need be kept free.
pub(crate) fn first_message(core: &Core, bytes: &[u8]) -> Option<(Message, usize)> {
    let count = bytes.len().min(pool::LARGE);
    let mut message = Message::default();
    let copied = copy(core.instance.pool(), &[IoSlice::new(bytes)], count, &mut message);
    (copied > 0 || bytes.is_empty()).then_some((message, copied))
}

/// Copies at most `count` bytes of `from` into buffers of the pool, once, and puts them into the empty `message`. Returns how
/// many: fewer where few buffers are left. The path's budget counts buffers, so a write that would leave most of a large
/// one empty takes small ones.
fn copy(pool: &Pool, from: &[IoSlice<'_>], count: usize, message: &mut Message) -> usize {
    let mut source = Source { slices: from, offset: 0 };
    let mut copied = 0;
    while count - copied > SMALL_WRITE_MAX
        && let Some(mut buffer) = pool.take(pool::LARGE)
    {
        let piece = (count - copied).min(pool::LARGE);
        source.fill(&mut buffer[..piece]);
        message.append_slice(Slice::new(buffer.share(), 0, piece));
        copied += piece;
    }
    if copied > 0 {
        return copied;
    }
    let Some(mut buffer) = pool.take(pool::SMALL) else { return 0 };
    copied = count.min(pool::SMALL - HEADROOM);
    source.fill(&mut buffer[HEADROOM..HEADROOM + copied]);
    *message = Message::from_buffer(buffer, HEADROOM, HEADROOM + copied);
    while copied < count.min(SMALL_WRITE_MAX)
        && let Some(mut buffer) = pool.take(pool::SMALL)
    {
        let piece = (count - copied).min(pool::SMALL);
        source.fill(&mut buffer[..piece]);
        message.append_slice(Slice::new(buffer.share(), 0, piece));
        copied += piece;
    }
    copied
}

/// The bytes of several slices, front to back.
struct Source<'a> {
    slices: &'a [IoSlice<'a>],
    offset: usize,
}

impl Source<'_> {
    fn fill(&mut self, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let rest = &self.slices[0][self.offset..];
            let count = rest.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
            self.offset += count;
            if self.offset == self.slices[0].len() {
                self.slices = &self.slices[1..];
                self.offset = 0;
            }
        }
    }
}

impl State {
    /// Whether there is enough room to send for: a quarter of what there ever was, so that a waiting writer is not called
    /// for every acknowledged segment (RFC 9293, section 3.8.6.2.1, for the other side of the same trouble).
    fn has_worthwhile_room(&self) -> bool {
        self.room > 0 && self.room >= self.room_most / 4
    }

    /// The first word from the path: it stands in the instance's table now, so it may be asked.
    fn knock(&mut self) -> Option<Arc<Listener>> {
        self.listener.take().and_then(|listener| listener.upgrade())
    }

    fn waiting(&mut self) -> &mut Waiting {
        self.waiting.get_or_insert_default()
    }

    fn watcher(&self) -> Option<Watcher> {
        self.waiting.as_ref().and_then(|waiting| waiting.watcher.clone())
    }

    fn call_readers(&mut self, calls: &mut Calls) {
        calls.note();
        if let Some(waiting) = &mut self.waiting {
            waiting.readers.call(calls);
        }
    }

    fn call_writers(&mut self, calls: &mut Calls) {
        calls.note();
        if let Some(waiting) = &mut self.waiting {
            waiting.writers.call(calls);
        }
    }

    fn call_all(&mut self, calls: &mut Calls) {
        self.call_readers(calls);
        self.call_writers(calls);
    }
}

impl Stream {
    /// As `change`, for the path's verbs.
    fn hear(&self, change: impl FnOnce(&mut State, &mut Calls)) {
        let listener = self.change(|state, calls| {
            change(state, calls);
            state.knock()
        });
        if let Some(listener) = listener {
            listener.knocked(self.path());
        }
    }
}

/// The path's side.
impl Anchor for Stream {
    fn deliver(&self, message: Message) {
        self.hear(|state, calls| {
            if !state.released {
                if state.arrived.capacity() == 0 {
                    // Where requests and responses alternate there is never more than one.
                    state.arrived.reserve_exact(1);
                }
                state.arrived.push_back(message);
                state.call_readers(calls);
            }
        });
    }

    fn told(&self, control: Control) {
        self.hear(|state, calls| match control {
            Control::Event(event) => state.happened(event, calls),
            Control::Answer(Answer::Status(status)) => {
                state.status = Some(status);
                // Whoever asked is called; what a watcher watches has not changed.
                if let Some(waiting) = &mut state.waiting {
                    waiting.readers.call_quietly(calls);
                }
            }
            Control::NetworkError(error) => state.suspect(error.kind),
            // Nobody on the link has the address: a connection that is not open will not be (RFC 1122, section 2.4).
            Control::Answer(Answer::Neighbour { found: false, .. }) if state.stage == Stage::Opening => {
                state.fail(ErrorKind::HostUnreachable);
                state.call_all(calls);
            }
            _ => {}
        });
    }

    fn room(&self, room: usize) {
        self.hear(|state, calls| {
            state.room = u32::try_from(room).unwrap_or(u32::MAX);
            state.room_most = state.room_most.max(state.room);
            if state.has_worthwhile_room() {
                state.call_writers(calls);
            }
        });
    }

    fn rests(&self) {
        if let Ok(mut incoming) = self.incoming.try_lock() {
            incoming.shrink();
        }
        let mut state = lock(&self.state);
        state.arrived.shrink_to_fit();
        state.waiting.take_if(|waiting| waiting.is_nobody());
    }

    fn gone(&self) {
        self.hear(|state, calls| {
            if state.stage == Stage::Opening && state.failure.is_none() {
                state.failure = Some(state.suspicion.unwrap_or(ErrorKind::ConnectionAborted));
            }
            state.stage = Stage::Gone;
            state.call_all(calls);
        });
    }
}

impl State {
    fn happened(&mut self, event: Event, calls: &mut Calls) {
        match event {
            Event::Opened => self.stage = Stage::Open,
            Event::PeerClosed => self.peer_closed = true,
            Event::Refused => self.fail(ErrorKind::ConnectionRefused),
            Event::Reset => self.fail(ErrorKind::ConnectionReset),
            Event::TimedOut => self.fail(self.suspicion.unwrap_or(ErrorKind::TimedOut)),
            Event::Unreachable => self.fail(self.suspicion.unwrap_or(ErrorKind::HostUnreachable)),
            _ => return,
        }
        self.call_all(calls);
    }

    /// The connection is over though its path stays until the application lets go.
    fn fail(&mut self, failure: ErrorKind) {
        self.stage = Stage::Gone;
        self.failure = Some(failure);
    }

    /// The network has said something that may pass (RFC 9293, MUST-56): it is the error if the connection ends by it.
    fn suspect(&mut self, kind: NetworkErrorKind) {
        match kind {
            NetworkErrorKind::NetworkUnreachable => self.suspicion = Some(ErrorKind::NetworkUnreachable),
            NetworkErrorKind::HostUnreachable => self.suspicion = Some(ErrorKind::HostUnreachable),
            NetworkErrorKind::PortUnreachable => self.suspicion = Some(ErrorKind::ConnectionRefused),
            _ => {}
        }
    }
}
