//! epoll(7): a set of descriptors that are watched, by level or by edge. A descriptor's bell makes it a candidate, and only
//! candidates are looked at, so that thousands of quiet ones cost nothing.

use crate::bell::{Bell, Hook};
use crate::errno::Errno;
use crate::lock;
use crate::poll::{ALWAYS, span};
use crate::table::{Descriptors, File, Open};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

/// What is watched, or what was found, with the number the program gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpollEvent {
    /// Bits of epoll_ctl(2).
    pub events: u32,
    /// The program's own.
    pub data: u64,
}

/// An instance of epoll as an open file.
pub(crate) struct Epoll(Arc<Interests>);

/// Its set.
pub(crate) struct Interests {
    state: Mutex<State>,
    /// The instance's own bell: one instance may be watched by another, or by poll(2).
    bell: Arc<Bell>,
}

#[derive(Default)]
struct State {
    watched: BTreeMap<i32, Interest>,
    candidates: VecDeque<i32>,
}

struct Interest {
    open: Weak<Open>,
    event: EpollEvent,
    /// It stands among the candidates.
    queued: bool,
    /// EPOLLONESHOT has been served.
    spent: bool,
    /// How often its bell had been rung when it was last told, for EPOLLET.
    told_at: Option<u64>,
}

impl Interests {
    /// A descriptor's bell was rung.
    pub fn heard(&self, descriptor: i32) {
        let is_new = lock(&self.state).queue(descriptor);
        if is_new {
            self.bell.ring();
        }
    }
}

impl State {
    fn queue(&mut self, descriptor: i32) -> bool {
        let Some(interest) = self.watched.get_mut(&descriptor).filter(|interest| !interest.queued) else {
            return false;
        };
        interest.queued = true;
        self.candidates.push_back(descriptor);
        true
    }
}

/// A candidate as it was when it was taken off the list, to be looked at without the set's lock: what looks at a
/// descriptor may wait for a thread that rings its bell.
struct Candidate {
    descriptor: i32,
    open: Arc<Open>,
    event: EpollEvent,
    told_at: Option<u64>,
}

impl Interests {
    /// How many candidates there are.
    fn candidates(&self) -> usize {
        lock(&self.state).candidates.len()
    }

    /// Takes the next candidate off the list. One that is closed everywhere is watched no more.
    fn next(&self) -> Option<Candidate> {
        let mut state = lock(&self.state);
        loop {
            let descriptor = state.candidates.pop_front()?;
            let Some(interest) = state.watched.get_mut(&descriptor) else { continue };
            interest.queued = false;
            match interest.open.upgrade() {
                None => drop(state.watched.remove(&descriptor)),
                Some(_) if interest.spent => {}
                Some(open) => {
                    return Some(Candidate { descriptor, open, event: interest.event, told_at: interest.told_at });
                }
            }
        }
    }

    /// A candidate was found ready at this ring: it is told again, unless it asked to be told once.
    fn told(&self, candidate: &Candidate, rings: u64) {
        let mut state = lock(&self.state);
        let Some(interest) = state.watched.get_mut(&candidate.descriptor) else { return };
        interest.told_at = Some(rings);
        interest.spent = candidate.event.events & libc::EPOLLONESHOT as u32 != 0;
        if !interest.spent && candidate.event.events & libc::EPOLLET as u32 == 0 {
            state.queue(candidate.descriptor);
        }
    }

    /// Looks at every candidate once, and takes what is ready of at most `most`.
    fn collect(&self, most: usize) -> Vec<EpollEvent> {
        let mut found = Vec::new();
        for _ in 0..self.candidates() {
            if found.len() == most {
                break;
            }
            let Some(candidate) = self.next() else { break };
            let rings = candidate.open.bell.rings();
            if let Some(event) = candidate.ready(rings) {
                found.push(event);
                self.told(&candidate, rings);
            }
        }
        found
    }
}

impl Candidate {
    /// What is ready, unless it was told already.
    fn ready(&self, rings: u64) -> Option<EpollEvent> {
        let is_edge = self.event.events & libc::EPOLLET as u32 != 0;
        if is_edge && self.told_at == Some(rings) {
            return None;
        }
        // The bits of epoll are those of poll.
        let wanted = self.event.events & 0xffff | u32::from(ALWAYS as u16);
        let events = u32::from(Descriptors::readiness_of(&self.open) as u16) & wanted;
        (events != 0).then_some(EpollEvent { events, data: self.event.data })
    }
}

impl Epoll {
    /// What poll(2) finds at the instance itself. Those that are found ready stay candidates.
    pub fn readiness(&self) -> i16 {
        let all: Vec<Candidate> = std::iter::from_fn(|| self.0.next()).collect();
        let is_ready = all.iter().any(|candidate| candidate.ready(candidate.open.bell.rings()).is_some());
        let mut state = lock(&self.0.state);
        for candidate in all {
            state.queue(candidate.descriptor);
        }
        if is_ready { libc::POLLIN | libc::POLLRDNORM } else { 0 }
    }
}

impl Descriptors {
    /// epoll_create(2).
    ///
    /// # Errors
    /// EINVAL for a size that is not above zero, EMFILE.
    pub fn epoll_create(&self, size: i32) -> Result<i32, Errno> {
        if size <= 0 {
            return Err(Errno(libc::EINVAL));
        }
        let bell = Arc::<Bell>::default();
        let interests = Interests { state: Mutex::default(), bell: Arc::clone(&bell) };
        self.give(Open::new(File::Epoll(Epoll(Arc::new(interests))), bell, false), 0)
    }

    /// epoll_ctl(2).
    ///
    /// # Errors
    /// EBADF, EINVAL (no instance of epoll, itself, an unknown operation), EPERM (another instance: sets of sets are not
    /// watched here), EEXIST, ENOENT.
    pub fn epoll_control(
        &self,
        epoll: i32,
        operation: i32,
        descriptor: i32,
        event: Option<EpollEvent>,
    ) -> Result<(), Errno> {
        let (set, open) = (self.find(epoll)?, self.find(descriptor)?);
        let File::Epoll(Epoll(interests)) = &set.file else { return Err(Errno(libc::EINVAL)) };
        if epoll == descriptor {
            return Err(Errno(libc::EINVAL));
        }
        if let File::Epoll(_) = &open.file {
            return Err(Errno(libc::EPERM));
        }
        let hook = Hook { interests: Arc::downgrade(interests), descriptor };
        let mut state = lock(&interests.state);
        // A number that was closed and given again stands for another file.
        if state.watched.get(&descriptor).is_some_and(|it| !std::ptr::eq(it.open.as_ptr(), Arc::as_ptr(&open))) {
            state.watched.remove(&descriptor);
        }
        match (operation, event) {
            (libc::EPOLL_CTL_ADD, Some(_)) if state.watched.contains_key(&descriptor) => {
                return Err(Errno(libc::EEXIST));
            }
            (libc::EPOLL_CTL_ADD, Some(event)) => {
                let open = Arc::downgrade(&open);
                let interest = Interest { open, event, queued: false, spent: false, told_at: None };
                state.watched.insert(descriptor, interest);
            }
            (libc::EPOLL_CTL_MOD, Some(event)) => {
                let interest = state.watched.get_mut(&descriptor).ok_or(Errno(libc::ENOENT))?;
                (interest.event, interest.spent, interest.told_at) = (event, false, None);
            }
            (libc::EPOLL_CTL_DEL, _) => {
                state.watched.remove(&descriptor).ok_or(Errno(libc::ENOENT))?;
                drop(state);
                open.bell.unhang(&hook);
                return Ok(());
            }
            (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, None) => return Err(Errno(libc::EFAULT)),
            _ => return Err(Errno(libc::EINVAL)),
        }
        drop(state);
        open.bell.hang(hook);
        // It may be ready already.
        interests.heard(descriptor);
        Ok(())
    }

    /// epoll_wait(2): at most `most` events, within `timeout_ms` milliseconds (negative: for ever).
    ///
    /// # Errors
    /// EBADF, EINVAL.
    pub fn epoll_wait(&self, epoll: i32, most: usize, timeout_ms: i32) -> Result<Vec<EpollEvent>, Errno> {
        let set = self.find(epoll)?;
        let File::Epoll(Epoll(interests)) = &set.file else { return Err(Errno(libc::EINVAL)) };
        if most == 0 {
            return Err(Errno(libc::EINVAL));
        }
        let look = || Some(interests.collect(most)).filter(|found| !found.is_empty()).map(Ok);
        match self.wait(&interests.bell, timeout_ms == 0, self.deadline(span(timeout_ms)), look) {
            Err(Errno(libc::EAGAIN)) => Ok(Vec::new()),
            answer => answer,
        }
    }
}
