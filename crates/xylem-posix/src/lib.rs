//! The sockets of a stack as POSIX programs know them: small numbers, the calls of Linux with their flags and options, and
//! an `errno` when one fails. It is written once for all who need it: a library that plays packet scripts, a shim under
//! unmodified programs. Nothing here takes a pointer: whoever stands at the C interface makes slices first.
//!
//! One [`Descriptors`] is one process's table on one [`Stack`](xylem_host::stack::Stack). Any number of threads may call
//! it at once; a call that blocks sleeps in the kernel, by the stack's own clock where it has a deadline.
//!
//! | file | what |
//! | --- | --- |
//! | `table.rs` | the numbers, and what each stands for |
//! | `calls.rs` | the calls on one descriptor |
//! | `stream.rs`, `listening.rs`, `sending.rs` | sockets of the kind SOCK_STREAM |
//! | `datagram.rs` | sockets of the kind SOCK_DGRAM |
//! | `options.rs`, `settings.rs`, `info.rs` | getsockopt, setsockopt and what they change; TCP_INFO |
//! | `poll.rs`, `epoll.rs`, `bell.rs` | readiness: who is called when something may have changed |
//! | `pipe.rs` | pipe and splice |
//! | `address.rs`, `errno.rs` | the layouts of addresses, and the numbers of errors |

mod address;
mod bell;
mod calls;
mod datagram;
mod epoll;
mod errno;
mod info;
mod listening;
mod options;
mod pipe;
mod poll;
mod sending;
mod settings;
mod stream;
mod table;

pub use address::{ADDRESS_BYTES_MAX, Name};
pub use epoll::EpollEvent;
pub use errno::Errno;
pub use info::INFO_BYTES;
pub use poll::PollEntry;
pub use settings::Defaults;
pub use stream::Received;
pub use table::{DESCRIPTORS_MAX, Descriptors};

/// A panic while a lock is held ends the program or the test, so there is nothing to be careful about.
fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
