//! The stack's own thread, for shells that have one. It ends when the last handle on the stack goes, or when it is
//! stopped before.

use super::{Idle, Shell, sleep};
use crate::lock;
use crate::stack::Core;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The thread, if the shell has one.
pub(crate) struct ShellThread {
    core: Arc<Core>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl ShellThread {
    /// Starts it.
    pub fn start(core: &Arc<Core>) -> io::Result<ShellThread> {
        let run = match core.shell {
            Shell::Thread => run,
            Shell::Spin => spin,
            Shell::Inline | Shell::Driven => {
                return Ok(ShellThread { core: Arc::clone(core), handle: Mutex::new(None) });
            }
        };
        let own = Arc::clone(core);
        let handle = thread::Builder::new().name("xylem".into()).spawn(move || run(&own))?;
        Ok(ShellThread { core: Arc::clone(core), handle: Mutex::new(Some(handle)) })
    }

    /// Ends it, and every wait in a socket of the stack.
    pub fn stop(&self, core: &Core) {
        core.stopped.store(true, Ordering::SeqCst);
        core.alarm.ring();
        core.seat.call_all();
        core.waiters.call_all();
        let handle = lock(&self.handle).take();
        // The last handle may go on the thread itself, in a waker that owned it: it ends by itself then.
        if let Some(handle) = handle.filter(|handle| handle.thread().id() != thread::current().id())
            && let Err(reason) = handle.join()
            && !thread::panicking()
        {
            std::panic::resume_unwind(reason);
        }
    }
}

impl Drop for ShellThread {
    fn drop(&mut self) {
        let core = Arc::clone(&self.core);
        self.stop(&core);
    }
}

/// The thread that sleeps.
fn run(core: &Core) {
    let mut shepherd = core.seat.take_for_good();
    let mut idle = Idle::new(core);
    while !core.is_stopped() {
        if !core.instance.turn_awake(core, &mut shepherd) && !idle.may_look_again(core) {
            sleep(core, None, || false);
            idle = Idle::new(core);
        }
    }
}

/// The thread that does not.
fn spin(core: &Core) {
    let mut shepherd = core.seat.take_for_good();
    while !core.is_stopped() {
        if !core.instance.turn_awake(core, &mut shepherd) {
            std::hint::spin_loop();
        }
    }
}
