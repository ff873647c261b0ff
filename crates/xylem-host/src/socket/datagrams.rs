//! Datagrams that wait to be received: the anchor of a wild enable. What comes while too much waits is dropped, as any
//! datagram may be.

use super::address_of;
use super::interest::{Calls, Interest};
use crate::lock;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use xylem_core::{Acceptor, Anchor, Control, Message, NetworkErrorKind, Participants, PathId};
use xylem_wire::{Header, Ipv4Header, UdpHeader};

/// So many bytes of buffers waiting at one socket are enough: one datagram may exceed it, and none is taken beyond.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The most bytes one datagram carries: the largest IPv4 packet less its headers (RFC 791, RFC 768).
pub(crate) const DATAGRAM_BYTES_MAX: usize = UdpHeader::PAYLOAD_MAX - Ipv4Header::LEN;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Datagrams {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Message>,
    bytes: usize,
    /// Only from here, if the socket is connected.
    peer: Option<SocketAddr>,
    failure: Option<ErrorKind>,
    readers: Interest,
    watcher: Option<Arc<dyn Fn() + Send + Sync>>,
    dropped: u64,
}

impl Datagrams {
    /// The next datagram: its sender and the bytes that fit, the rest being lost; `take` leaves it there if false.
    pub fn poll_receive(
        &self,
        into: &mut [u8],
        take: bool,
        waker: Option<&Waker>,
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let mut state = lock(&self.state);
        if let Some(failure) = state.failure.take() {
            return Poll::Ready(Err(failure.into()));
        }
        let Some(message) = state.waiting.front() else {
            if let Some(waker) = waker {
                state.readers.register(waker);
            }
            return Poll::Pending;
        };
        let from = sender(message);
        if !take {
            return Poll::Ready(Ok((message.copy_to(into), from)));
        }
        let message = state.waiting.pop_front().expect("seen above");
        state.bytes -= message.capacity();
        drop(state);
        Poll::Ready(Ok((message.copy_to(into), from)))
    }

    /// The length of the next datagram, if one waits.
    pub fn next_length(&self) -> Option<usize> {
        lock(&self.state).waiting.front().map(Message::len)
    }

    /// Takes datagrams from `peer` only; those of others that wait are lost, as with the kernel's.
    pub fn connect(&self, peer: SocketAddr) {
        let mut state = lock(&self.state);
        state.peer = Some(peer);
        state.waiting.retain(|message| sender(message) == peer);
        state.bytes = state.waiting.iter().map(Message::capacity).sum();
    }

    /// The peer, if it is connected.
    pub fn peer(&self) -> Option<SocketAddr> {
        lock(&self.state).peer
    }

    /// The error nobody has been told yet.
    pub fn take_failure(&self) -> Option<io::Error> {
        lock(&self.state).failure.take().map(io::Error::from)
    }

    /// Whether a receive would not wait.
    pub fn is_ready(&self) -> bool {
        let state = lock(&self.state);
        !state.waiting.is_empty() || state.failure.is_some()
    }

    /// Datagrams dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        lock(&self.state).dropped
    }

    /// Calls `watcher` whenever a datagram or an error comes.
    pub fn watch(&self, watcher: Option<Arc<dyn Fn() + Send + Sync>>) {
        lock(&self.state).watcher = watcher;
    }

    fn change(&self, change: impl FnOnce(&mut State, &mut Calls)) {
        let mut calls = Calls::default();
        let mut state = lock(&self.state);
        change(&mut state, &mut calls);
        let watcher = calls.changed().then(|| state.watcher.clone()).flatten();
        drop(state);
        calls.make();
        if let Some(watcher) = watcher {
            watcher();
        }
    }
}

/// Who sent it.
fn sender(message: &Message) -> SocketAddr {
    let (_us, sender) = message.attributes.participants.unwrap_or_default();
    address_of(sender)
}

impl Acceptor for Datagrams {
    fn accept(&self, _path: PathId, _participants: &Participants) -> Option<Arc<dyn Anchor>> {
        // A wild enable makes no paths.
        None
    }

    fn deliver(&self, message: Message) {
        self.change(|state, calls| {
            if state.peer.is_some_and(|peer| peer != sender(&message)) {
                return;
            }
            // Judged by what waits already: a datagram in many fragments may keep more alive than the limit by itself.
            if state.bytes >= WAITING_BYTES_MAX {
                state.dropped += 1;
                return;
            }
            state.bytes += message.capacity();
            state.waiting.push_back(message);
            state.readers.call(calls);
        });
    }

    fn told(&self, control: Control) {
        let Control::NetworkError(error) = control else { return };
        // An unconnected socket would not know whom it concerns, so only connected ones are told (RFC 1122, section
        // 4.1.3.3, leaves that to the interface; this is the kernel's).
        self.change(|state, calls| {
            if state.peer.is_some() && matches!(error.kind, NetworkErrorKind::PortUnreachable) {
                state.failure = Some(ErrorKind::ConnectionRefused);
                state.readers.call(calls);
            }
        });
    }
}
