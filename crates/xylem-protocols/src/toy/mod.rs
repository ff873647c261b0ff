//! Toy protocols: small, honest and complete, each made to exercise one part of the uniform protocol interface. They are
//! what the laws of linkage are tried on, and what somebody who writes a first protocol may read. None is meant for a
//! network that carries anything of value.
//!
//! | module | what it exercises |
//! | --- | --- |
//! | [`network`] | host numbers over a device; demultiplexing by the next number |
//! | [`fragment`] | a trunk: one path for each pair of hosts, on which others stand; limits and timeouts |
//! | [`call`] | request and reply, at most once; a passive open without an embryo |
//! | [`stream`] | a handshake with embryos, credit and window, retransmission, close both ways |
//! | [`record`] | a protocol carried by a stream: several messages a pop, credit for its own header |

pub mod call;
pub mod fragment;
pub mod network;
mod reassembly;
pub mod record;
pub mod stream;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use xylem_core::Message;
use xylem_wire::Header;

/// The number of a host on a toy network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostNumber(pub u32);

xylem_wire::newtype_field!(HostNumber(u32));

/// Puts the header that `with_sum` makes in front, its sum being the Internet checksum of everything.
fn seal<H: Header>(message: &mut Message, with_sum: impl Fn(u16) -> H) {
    message.push_header(&with_sum(0));
    let sum = message.sum(0).checksum();
    let front = message.front_mut(H::LEN).expect("the header has just been put there");
    with_sum(sum).build(front);
}
