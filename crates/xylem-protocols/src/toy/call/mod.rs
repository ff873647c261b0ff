//! The toy call: request and reply on numbered channels, each request carried out at most once (the idea of the
//! x-kernel's CHAN). A channel has one call at a time; its next request acknowledges the last reply, so there are no
//! acknowledgments of their own. A server's path opens with the first request, without any handshake.
//!
//! At most once holds as long as a server remembers the last number of a channel: its path does, and when that has gone
//! an entry of the protocol, for [`REMEMBERED_TIME`], which must exceed the age of the oldest packet on the network.

mod client;
mod header;
mod protocol;
mod remembered;
mod server;

pub use header::{CallHeader, CallKind};
pub use protocol::CallProtocol;
pub use remembered::{REMEMBERED_MAX, REMEMBERED_TIME};

use xylem_core::{DropReason, Duration};

/// How long a client waits before it asks again for the first time; the wait doubles each time.
pub const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait between two tries.
pub const WAIT_MAX: Duration = Duration::from_secs(2);
/// How often a request is sent before the client gives up.
pub const TRIES_MAX: u32 = 12;
/// How long a server's path stays without a request.
pub const IDLE_MAX: Duration = Duration::from_secs(60);
/// The most channels in use, clients' and servers' together.
pub const CHANNELS_MAX: usize = 65_536;

/// The most bytes of one request or reply: a path's record holds one of them.
pub const CONTENT_MAX: usize = 32 * 1024;

const _: () = assert!(CONTENT_MAX < xylem_core::record::RECORD_MAX - 64, "a request that waits moves with its path");

/// The message ends before its header does, or is of no known kind.
pub static SHORT: DropReason = DropReason::new("call", "shorter than its header");
/// The message was spoilt on its way.
pub static SPOILT: DropReason = DropReason::new("call", "wrong sum");
/// A request that has been answered, or is about to be, came again.
pub static REPEATED: DropReason = DropReason::new("call", "a request that is being carried out");
/// A request older than the channel's last.
pub static OLD: DropReason = DropReason::new("call", "older than the last request");
/// A reply nobody waits for.
pub static NOT_AWAITED: DropReason = DropReason::new("call", "a reply nobody waits for");
/// Nobody has this channel, or serves any.
pub static NO_CHANNEL: DropReason = DropReason::new("call", "no such channel");
/// The application replied though nothing was asked, or called twice at once.
pub static OUT_OF_TURN: DropReason = DropReason::new("call", "the application spoke out of turn");
/// The application pushed more than goes below.
pub static TOO_LARGE: DropReason = DropReason::new("call", "larger than the layer below carries");
