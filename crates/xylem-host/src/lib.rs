//! Real hosts: the devices, clocks and threads of a Linux machine, for stacks that run outside the simulator.
//!
//! What the kernel offers is wrapped once here, safely; the layers above never see a descriptor number or an `errno`.

pub mod carrier;
pub mod child;
pub mod clock;
pub mod device;
pub mod interface;
pub mod kernel_tcp;
pub mod namespace;
pub mod net;
pub mod packet;
pub mod pin;
pub mod poll;
pub mod shell;
pub mod stack;
pub mod tap;
pub mod veth;

mod netlink;
mod socket;
mod system;
mod tokio;

#[cfg(test)]
mod testing;

/// A panic while a lock is held ends the program (release) or the test, so there is nothing to be careful about.
fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
