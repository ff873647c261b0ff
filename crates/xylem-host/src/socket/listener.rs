//! Connections that wait to be accepted. A path is offered before it stands in the instance's table, so its connection
//! waits aside until its first word comes; then it stands in line.

use super::interest::{Calls, Interest};
use super::stream::Stream;
use super::{local_address, peer_address};
use crate::lock;
use crate::stack::Core;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use xylem_core::{Acceptor, Anchor, Message, Participants, PathId};

/// See the module's text.
pub(crate) struct Listener {
    own: Weak<Listener>,
    backlog: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    offered: Vec<Arc<Stream>>,
    line: VecDeque<Arc<Stream>>,
    acceptors: Interest,
    watcher: Option<Arc<dyn Fn() + Send + Sync>>,
    closed: bool,
}

/// How long a listener that closes waits for connections that were just offered: a step of another thread.
const OFFERED_WAIT_MAX: Duration = Duration::from_millis(100);

impl Listener {
    /// A listener of at most `backlog` connections that nobody has accepted.
    pub fn new(backlog: usize) -> Arc<Listener> {
        Arc::new_cyclic(|own| Listener { own: own.clone(), backlog, state: Mutex::default() })
    }

    /// The next connection in line.
    pub fn poll_accept(&self, waker: Option<&Waker>) -> Poll<Arc<Stream>> {
        let mut state = lock(&self.state);
        if let Some(stream) = state.line.pop_front() {
            return Poll::Ready(stream);
        }
        if let Some(waker) = waker {
            state.acceptors.register(waker);
        }
        Poll::Pending
    }

    /// Whether a connection is in line.
    pub fn is_ready(&self) -> bool {
        !lock(&self.state).line.is_empty()
    }

    /// Calls `watcher` whenever a connection gets in line.
    pub fn watch(&self, watcher: Option<Arc<dyn Fn() + Send + Sync>>) {
        lock(&self.state).watcher = watcher;
    }

    /// The path of an offered connection has spoken: it gets in line.
    pub fn knocked(&self, path: PathId) {
        let mut calls = Calls::default();
        let mut state = lock(&self.state);
        let Some(at) = state.offered.iter().position(|stream| stream.path() == path) else { return };
        let stream = state.offered.remove(at);
        state.line.push_back(stream);
        state.acceptors.call(&mut calls);
        let watcher = state.watcher.clone();
        drop(state);
        calls.make();
        if let Some(watcher) = watcher {
            watcher();
        }
    }

    /// Nobody will accept any more: those in line are reset, as the kernel does.
    pub fn close(&self, core: &Core) {
        let deadline = Instant::now() + OFFERED_WAIT_MAX;
        loop {
            let mut state = lock(&self.state);
            state.closed = true;
            state.watcher = None;
            let line = std::mem::take(&mut state.line);
            let done = state.offered.is_empty() || Instant::now() >= deadline;
            drop(state);
            line.iter().for_each(|stream| stream.release(core, true));
            if done {
                return;
            }
            thread::yield_now();
        }
    }
}

impl Acceptor for Listener {
    fn accept(&self, path: PathId, participants: &Participants) -> Option<Arc<dyn Anchor>> {
        let mut state = lock(&self.state);
        if state.closed || state.offered.len() + state.line.len() >= self.backlog {
            return None;
        }
        let stream = Arc::new(Stream::accepted(self.own.clone()));
        stream.named(path, local_address(participants), peer_address(participants));
        state.offered.push(Arc::clone(&stream));
        Some(stream)
    }

    fn deliver(&self, _message: Message) {
        // Only a wild enable gets messages without a path; a listener is none.
    }
}
