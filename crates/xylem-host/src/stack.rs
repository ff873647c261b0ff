//! A stack: an instance of a graph with its devices, its clock and the shell that runs it. Applications hold handles on
//! it; the last one to go stops it. Sockets are opened on a stack, or on the one the process calls its default.
//!
//! | file | what |
//! | --- | --- |
//! | `builder.rs` | from a graph and devices to a running stack |
//! | `core.rs` | what shell and sockets share: the instance's world, shepherds, the sleeper's alarm |
//! | `default.rs` | the process's default stack |

mod builder;
mod core;
mod default;

pub use builder::{BuildError, Builder, GraphSource};
pub(crate) use core::Core;
pub use default::{NO_DEFAULT, default_stack};

use crate::device::Alarm;
use crate::shell::{self, Ended, Shell, ShellThread};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use xylem_core::Instant;
use xylem_graph::instance::{Hosting, Instance, Reading, Shepherd, Wake, World};

/// See the module's text. Clones are handles on the same stack.
#[derive(Clone)]
pub struct Stack {
    core: Arc<Core>,
    /// Gone with the last handle; the thread is joined then.
    thread: Arc<ShellThread>,
}

impl Stack {
    /// Starts the description of a stack.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The running graph.
    pub fn instance(&self) -> &Instance {
        &self.core.instance
    }

    /// The time of this stack's clock.
    pub fn now(&self) -> Instant {
        self.core.clock.now()
    }

    /// The counters of its instance.
    pub fn reading(&self) -> Reading {
        self.core.instance.reading()
    }

    /// How it is run.
    pub fn shell(&self) -> Shell {
        self.core.shell
    }

    /// The device of this number, by the graph's order of devices.
    pub fn device(&self, index: usize) -> Option<&dyn crate::device::Device> {
        self.core.devices.get(index).map(|device| &**device)
    }

    /// Does what there is to do now, without waiting. For stacks without a thread whose application does something else
    /// than wait in a socket; harmless for others.
    pub fn turn(&self) {
        shell::turn_once(&self.core);
    }

    /// When the next turn is wanted, the devices' wishes included.
    pub fn wake(&self) -> Wake {
        self.core.wake()
    }

    /// Waits until `poll` is ready, or this stack's clock shows `deadline`. It is asked again whenever the waker it was
    /// handed has been called; it registers that waker before it says that it is not ready.
    ///
    /// # Errors
    /// [`Ended`]: the deadline has passed, or the stack was stopped.
    pub fn wait<T>(&self, deadline: Option<Instant>, mut poll: impl FnMut(&Waker) -> Poll<T>) -> Result<T, Ended> {
        let clock = &self.core.clock;
        let (Some(hands), Some(until)) = (clock.hands(), deadline) else {
            let deadline = deadline.and_then(|until| std::time::Instant::now().checked_add(clock.until(until)));
            return shell::wait(&self.core, deadline, poll);
        };
        let answer = shell::wait(&self.core, None, |waker| match poll(waker) {
            Poll::Ready(value) => {
                hands.forget(waker);
                Poll::Ready(Ok(value))
            }
            Poll::Pending if hands.call_at(until, waker) => Poll::Pending,
            Poll::Pending => Poll::Ready(Err(Ended::TimedOut)),
        });
        answer.and_then(|answer| answer)
    }

    /// For [`Shell::Driven`] with a clock that somebody moves: the calling thread is the one that does. Should it wait in a
    /// socket itself it moves the clock meanwhile, from one thing that is due to the next.
    pub fn drive_from_here(&self) {
        self.core.waiters.drive_from_here();
    }

    /// For [`Shell::Driven`]: the calling thread is back, if it had left with what it waited for: true if so. From then on
    /// the clock may be moved, so whoever wants to know when it left looks before.
    pub fn arrive(&self) -> bool {
        self.core.waiters.arrive()
    }

    /// For [`Shell::Driven`]: waits, for no longer than `limit` of real time, until every thread that waits in one of its
    /// sockets sleeps there, those that were called just now having seen what they were called for. The thread that moves
    /// the clock also waits, for a moment, for those that left with what they had waited for to come back
    /// ([`arrive`](Stack::arrive)). False if one is awake still.
    pub fn settle(&self, limit: Duration) -> bool {
        self.core.waiters.settle(limit)
    }

    /// What wakes whoever sleeps in place of an inline stack, between [`Alarm::lie_down`] and [`Alarm::rise`]: devices
    /// without a descriptor ring it, and other threads whose work wants an earlier turn.
    pub fn alarm(&self) -> &Alarm {
        &self.core.alarm
    }

    /// Runs until nothing is left to send: every path of a conversation has gone, chains kept for replies aside. What
    /// dropped sockets left unsent is sent meanwhile. False if `limit` passed before that.
    pub fn drain(&self, limit: Duration) -> bool {
        let deadline = std::time::Instant::now() + limit;
        loop {
            shell::turn_once(&self.core);
            if self.core.instance.path_count() <= self.core.instance.kept_path_count() {
                return true;
            }
            if std::time::Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(DRAIN_PAUSE);
        }
    }

    /// Stops the stack's thread. Sockets that wait, now or later, are told that they are not connected; what is unsent
    /// stays so.
    pub fn stop(&self) {
        self.thread.stop(&self.core);
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// A handle is as good as the stack: any number of threads may ask through handles of their own.
impl Hosting for Stack {
    fn asking<R>(&mut self, ask: impl FnOnce(&Instance, &dyn World, &mut Shepherd) -> R) -> R {
        self.core.with_shepherd(|shepherd| ask(&self.core.instance, &*self.core, shepherd))
    }
}

/// How often [`Stack::drain`] looks.
const DRAIN_PAUSE: Duration = Duration::from_millis(1);

impl std::fmt::Debug for Stack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes: Vec<&str> = self.core.instance.nodes().iter().map(|node| &*node.name).collect();
        formatter.debug_struct("Stack").field("nodes", &nodes).field("shell", &self.core.shell).finish()
    }
}
