//! Ethernet: frames between stations on one link (RFC 894). A session is a header template; towards a neighbour whose
//! link address is not known yet it asks, keeps a few messages, and sends them when the answer comes. Whoever finds the
//! answer (ARP) and this protocol meet only on the facts page of the link's neighbours.
//!
//! | file | what |
//! | --- | --- |
//! | `protocol.rs` | opens sessions, sorts arriving frames by their type |
//! | `session.rs` | puts the header in front and takes it off |
//! | `waiting.rs` | what a session keeps while its neighbour is looked for |

mod drops;
mod protocol;
mod session;
#[cfg(test)]
mod tests;
mod waiting;

pub use drops::*;
pub use protocol::{EthernetConfig, EthernetProtocol};
pub use waiting::{ASK_AGAIN, ASKS_MAX, WAITING_MAX};
