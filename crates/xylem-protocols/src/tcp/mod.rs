//! TCP (RFC 9293): a reliable stream of bytes between two ports. A tour: [`protocol`] opens connections and finds the path
//! of a segment; [`session`] is one end of one connection, and lists what it consists of; from there `arrive` tells what
//! a segment does and `transmit` what goes out. The README beside this file says what is there and what is not.

mod acknowledge;
mod arrive;
mod autotune;
mod config;
pub mod congestion;
mod cookie;
mod demux;
pub mod drops;
mod early;
mod ecn;
mod embryo;
mod enables;
mod ends;
mod fast_open;
mod fast_open_cache;
mod flight;
mod gather;
mod halfopen;
mod isn;
mod moving;
mod options;
mod own;
pub mod pacing;
mod path_mtu;
mod ports;
pub mod protocol;
mod prr;
mod queue;
mod rack;
mod rare;
pub mod rate;
mod receive;
mod recovery;
mod regulation;
mod reorder;
mod reports;
mod resend;
mod retransmit;
mod segment;
mod send;
pub mod session;
mod soonest;
mod spurious;
mod state;
mod tail_probe;
mod time_wait;
mod timestamps;
mod timing;
mod transmit;
mod usage;
mod wishes;

#[cfg(test)]
mod tests;

pub use config::TcpConfig;
pub use cookie::{CookieCounts, CookieUse};
pub use ecn::EcnUse;
pub use fast_open::FastOpenUse;
pub use moving::QUEUED_MAX;
pub use path_mtu::MtuProbing;
pub use ports::{NoPortRange, PortRange};
pub use protocol::TcpProtocol;
pub use session::TcpSession;
