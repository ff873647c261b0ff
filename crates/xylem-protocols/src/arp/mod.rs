//! ARP: finds the link addresses of IPv4 neighbours (RFC 826) and is the master of the page on which they stand. It
//! answers for our own addresses, believes others only where that is safe (RFC 1122, section 2.3.2), and defends what is
//! ours (RFC 5227).
//!
//! | file | what |
//! | --- | --- |
//! | `protocol.rs` | packets in, questions in, packets out |
//! | `table.rs` | what is known of each neighbour, and for how long |
//! | `claim.rs` | our own addresses: announcing and defending them |
//! | `config.rs` | the settings |

mod claim;
mod config;
mod drops;
mod protocol;
mod table;
#[cfg(test)]
mod tests;

pub use config::ArpConfig;
pub use drops::*;
pub use protocol::ArpProtocol;
