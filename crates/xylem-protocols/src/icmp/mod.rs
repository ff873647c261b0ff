//! ICMP for IPv4 (RFC 792, with the rules of RFC 1122, section 3.2.2): it answers echo requests, brings errors that arrive
//! to the conversations they quote, tells senders what could not be delivered, and opens echo sessions for those who want
//! to know whether a host is there.
//!
//! | file | what |
//! | --- | --- |
//! | `protocol.rs` | what arrives; echo sessions opened and found |
//! | `session.rs` | one end of an echo conversation |
//! | `report.rs` | errors about others' packets: whether, to whom, what |
//! | `kind.rs` | the network's errors and their numbers on the wire |
//! | `bucket.rs` | how many errors a second |
//! | `echoes.rs` | which echo conversations there are |

mod bucket;
mod drops;
mod echoes;
mod kind;
mod protocol;
mod report;
mod session;
#[cfg(test)]
mod tests;

pub use drops::*;
pub use protocol::{IcmpConfig, IcmpProtocol};
