//! Shells: how an instance gets its turns. Around the one `turn` stand a thread that sleeps, a thread that never does, or
//! the application's own threads, which take turns while they wait. Whoever waits for anything in this crate waits here.
//!
//! | file | what |
//! | --- | --- |
//! | `driven.rs` | threads that wait for somebody else's turns |
//! | `parker.rs` | a thread that waits, and its waker |
//! | `seat.rs` | who takes the turns, and who waits for somebody else to |
//! | `thread.rs` | the stack's own thread |

mod driven;
mod parker;
mod seat;
mod thread;

pub(crate) use driven::Waiters;
pub(crate) use seat::Seat;
pub(crate) use thread::ShellThread;

use crate::poll::{self, Source};
use crate::stack::Core;
use parker::Parker;
use smallvec::SmallVec;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use xylem_graph::instance::{Shepherd, Wake};

/// How an instance is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shell {
    /// By a thread of its own, which sleeps until a frame arrives or a deadline comes.
    #[default]
    Thread,
    /// By a thread of its own, which never sleeps: the lowest latency without the application's help, for a processor.
    Spin,
    /// By the application's threads while they wait in a socket, so that a message is handed over to nobody. While none
    /// of them waits nothing happens: no retransmission, no answer. For applications that mostly wait.
    Inline,
    /// By whoever calls [`Stack::turn`](crate::stack::Stack::turn), and by nobody else: threads that wait in a socket
    /// sleep until those turns have brought what they wait for. For programs that move the clock themselves.
    Driven,
}

/// Why a wait ended without what was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The deadline has passed.
    TimedOut,
    /// The stack was stopped.
    Stopped,
}

/// Waits until `poll` is ready. It is asked again whenever the waker it was handed has been called; it registers that
/// waker before it says that it is not ready, so that no call is lost.
pub(crate) fn wait<T>(
    core: &Core,
    deadline: Option<Instant>,
    mut poll: impl FnMut(&Waker) -> Poll<T>,
) -> Result<T, Ended> {
    if core.shell == Shell::Driven {
        return driven::wait(core, deadline, poll);
    }
    parker::with_current(|parker| {
        let result = loop {
            parker.rest();
            if let Poll::Ready(value) = poll(parker.waker()) {
                break Ok(value);
            }
            if core.is_stopped() {
                break Err(Ended::Stopped);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                break Err(Ended::TimedOut);
            }
            match core.shell {
                Shell::Thread | Shell::Spin | Shell::Driven => {
                    if !parker.spin(core.spin) {
                        park(core, parker, deadline);
                    }
                }
                Shell::Inline => match core.seat.take() {
                    Some(mut shepherd) => drive(core, &mut shepherd, parker, deadline),
                    None => park(core, parker, deadline),
                },
            }
        };
        // Whoever took the turns is gone, or was called to take them and does not need to: another one has to.
        core.seat.pass_on();
        result
    })
}

/// The calling thread has waited for one thing while it waited for another: it looks at the other before it sleeps.
pub(crate) fn look_again() {
    parker::with_current(|parker| parker.waker().wake_by_ref());
}

/// One or more turns on the calling thread, unless somebody else takes them anyway.
pub(crate) fn turn_once(core: &Core) {
    if let Some(mut shepherd) = core.seat.take() {
        turns(core, &mut shepherd);
        drop(shepherd);
        core.seat.pass_on();
    }
}

/// Turns until the instance wants none at once; bounded, for a flood of frames must not keep an application's thread.
fn turns(core: &Core, shepherd: &mut Shepherd) {
    for _ in 0..TURNS_MAX {
        if !core.instance.turn_awake(core, shepherd) {
            return;
        }
    }
}

/// The most turns in a row before the thread looks whether its own wait is over.
const TURNS_MAX: usize = 16;

/// Sleeps until this thread is called, or the seat may be free.
fn park(core: &Core, parker: &Parker, deadline: Option<Instant>) {
    core.seat.enlist(parker);
    // Behind the enlisting: who stops the stack or leaves the seat after this look calls all or one of the enlisted.
    let needless = core.is_stopped() || (core.shell == Shell::Inline && core.seat.is_free());
    if !needless {
        parker.park(deadline);
    }
    core.seat.strike_off(parker);
}

/// Takes the turns until this thread's own wait may be over.
fn drive(core: &Core, shepherd: &mut Shepherd, parker: &Parker, deadline: Option<Instant>) {
    parker.sleeps_by(Some(core.alarm.clone()));
    let mut idle = Idle::new(core);
    while !core.is_stopped() {
        turns(core, shepherd);
        if parker.is_called() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            break;
        }
        if !idle.may_look_again(core) {
            sleep(core, deadline, || parker.is_called());
        }
    }
    parker.sleeps_by(None);
}

/// Sleeps until a turn is wanted, a frame arrives, the deadline passes or the alarm rings; not at all if `no_need`.
fn sleep(core: &Core, deadline: Option<Instant>, no_need: impl FnOnce() -> bool) {
    core.alarm.lie_down();
    let timeout = match core.wake() {
        Wake::Now => Some(Duration::ZERO),
        Wake::At(time) => Some(core.clock.until(time)),
        Wake::Never => None,
    };
    let own = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let timeout = match (timeout, own) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    if timeout != Some(Duration::ZERO) && !no_need() {
        let mut descriptors: SmallVec<[BorrowedFd<'_>; 4]> = SmallVec::new();
        descriptors.push(core.alarm.waker().as_fd());
        descriptors.extend(core.devices.iter().filter_map(|device| device.descriptor()));
        let mut sources: SmallVec<[Source<'_>; 4]> = descriptors.iter().map(Source::readable).collect();
        if let Err(error) = poll::wait(&mut sources, timeout) {
            // Out of memory, or more devices than this process may have files: looking on is all there is to do.
            debug_assert!(false, "a stack could not sleep: {error}");
        }
    }
    core.alarm.rise();
}

/// How long a thread has looked in vain.
struct Idle {
    since: Instant,
    received: u64,
}

impl Idle {
    fn new(core: &Core) -> Idle {
        Idle { since: Instant::now(), received: core.received.load(Ordering::Relaxed) }
    }

    /// Whether to look again instead of sleeping.
    fn may_look_again(&mut self, core: &Core) -> bool {
        if core.spin.is_zero() {
            return false;
        }
        let received = core.received.load(Ordering::Relaxed);
        if received != self.received {
            *self = Idle::new(core);
        }
        std::hint::spin_loop();
        self.since.elapsed() < core.spin
    }
}
