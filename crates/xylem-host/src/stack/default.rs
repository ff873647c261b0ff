//! The process's default stack: the one on which sockets open that name no stack, so that a program written for the
//! standard library's sockets changes by one line and its imports.

use super::Stack;
use std::io;
use std::sync::{PoisonError, RwLock};

static DEFAULT: RwLock<Option<Stack>> = RwLock::new(None);

/// What sockets say when there is no default stack.
pub const NO_DEFAULT: &str = "no stack to open a socket on: expected a default stack, got none; \
                              call Stack::make_default, or open the socket on a stack";

impl Stack {
    /// Makes this the process's default stack, which stays until another takes its place or
    /// [`forget_default`](Stack::forget_default) is called.
    pub fn make_default(&self) {
        *DEFAULT.write().unwrap_or_else(PoisonError::into_inner) = Some(self.clone());
    }

    /// Leaves the process without a default stack.
    pub fn forget_default() {
        let before = DEFAULT.write().unwrap_or_else(PoisonError::into_inner).take();
        // Behind the lock: the last handle stops the stack, which takes a while.
        drop(before);
    }
}

/// The process's default stack.
///
/// # Errors
/// There is none; see [`NO_DEFAULT`].
pub fn default_stack() -> io::Result<Stack> {
    let stack = DEFAULT.read().unwrap_or_else(PoisonError::into_inner).clone();
    stack.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, NO_DEFAULT))
}
