//! Real hosts: the devices, clocks and threads of a Linux machine, for stacks that run outside the simulator.
//!
//! What the kernel offers is wrapped once here, safely; the layers above never see a descriptor number or an `errno`.

pub mod clock;
pub mod interface;
pub mod namespace;
pub mod pin;
pub mod poll;
pub mod tap;

mod netlink;
mod system;

#[cfg(test)]
mod testing;
