//! IPv4: packets from host to host (RFC 791, as hosts do it by RFC 1122). It knows our addresses and the routes, cuts what
//! is too long and puts together what was cut, and forwards if it is told to. Sessions keep a header template; everything
//! shared (routes, groups, fragments) stands in the protocol.
//!
//! | file | what |
//! | --- | --- |
//! | `protocol.rs` | opens sessions, finds out what an arriving packet is |
//! | `session.rs` | the header template of one conversation |
//! | `path_mtu.rs` | how large a packet of one conversation may be, as far as is known |
//! | `routes.rs` | which interface, which neighbour, which source address |
//! | `header.rs` | what makes a header sound |
//! | `fragment.rs` | cutting |
//! | `reassembly.rs`, `datagram.rs` | putting together, within limits |
//! | `forward.rs` | passing on what is for others |
//! | `groups.rs` | which groups we are in |

mod config;
mod datagram;
mod drops;
mod forward;
mod fragment;
mod groups;
mod header;
mod path_mtu;
mod protocol;
mod reassembly;
mod routes;
mod session;
#[cfg(test)]
mod tests;

pub use config::{Interface, Ipv4Config, Ipv4ConfigError, ReassemblyLimits};
pub use drops::*;
pub use path_mtu::{PATH_MTU_LIFETIME, PATH_MTU_MIN};
pub use protocol::Ipv4Protocol;
pub use routes::{Hop, Route, Routes};
