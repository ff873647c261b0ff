//! UDP: messages between ports (RFC 768), and the smallest whole protocol here. Read `session.rs` for what a session is,
//! then `protocol.rs` for how sessions are opened and how an arriving message finds its own.
//!
//! ```text
//!                push: put the header in front           pop: check it and take it off
//!   sockets          |                                       ^
//!   ---------------- v ------------------------------------- | --------------
//!   UDP          UdpSession  <- UdpProtocol::open        UdpSession  <- UdpProtocol::demux
//!   ---------------- v ------------------------------------- | --------------
//!   IP               |                                       |
//! ```

mod check;
mod drops;
mod ports;
mod protocol;
mod session;
#[cfg(test)]
mod tests;

pub use drops::*;
pub use protocol::{UdpConfig, UdpProtocol};
