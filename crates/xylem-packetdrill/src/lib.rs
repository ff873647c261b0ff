//! `libxylem_packetdrill.so`: the stack as the subject of packet scripts, inside the process of the program that plays
//! them (packetdrill's `--so_filename`). The library exports one function, which fills a table of functions: sockets as
//! POSIX has them, packets in and out one at a time, and the clock by which the script is played. That clock is virtual:
//! time passes when the script waits, so a script that lasts a minute takes a moment and comes out the same every time.
//!
//! | file | what |
//! | --- | --- |
//! | `ffi.rs` | the C interface: pointers to slices, errors to `errno`; all the unsafe code |
//! | `interface.rs` | the table of functions as C lays it out |
//! | `instance.rs` | one run: its stack, its descriptors, its clock |
//! | `registry.rs` | the runs by the numbers that stand in for pointers |
//! | `wire.rs` | the device whose other end is the script |
//! | `flags.rs`, `sysctl.rs` | what a run is told: by its flags, and by Linux's names for settings |

// The C interface is made of pointers; nothing else here is.
#[allow(unsafe_code)]
mod ffi;
mod flags;
mod instance;
mod interface;
mod registry;
mod sysctl;
mod wire;

pub use ffi::packetdrill_interface_init;
pub use interface::Interface;

/// A panic while a lock is held is ours and ends the run, so there is nothing to be careful about.
fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
