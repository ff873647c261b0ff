//! Why TCP drops what it drops. Each is the peer's doing, or the network's; the README says when each happens.

use xylem_core::DropReason;

const fn reason(why: &'static str) -> DropReason {
    DropReason::new("tcp", why)
}

/// The bytes are no TCP header.
pub static MALFORMED: DropReason = reason("malformed header");
/// The options have impossible lengths (RFC 9293, MUST-7).
pub static BAD_OPTIONS: DropReason = reason("impossible options");
/// The checksum is wrong (RFC 9293, MUST-3).
pub static BAD_CHECKSUM: DropReason = reason("bad checksum");
/// No connection and no enable is at this port; it was answered with a reset unless it was one.
pub static NO_CONNECTION: DropReason = reason("no such connection");
/// A SYN to or from a group or everybody (RFC 9293, MUST-57, MUST-63).
pub static NOT_A_PEER: DropReason = reason("not between two hosts");
/// Nothing an enable has a use for.
pub static NOT_FOR_ENABLE: DropReason = reason("an enable takes SYNs only");
/// The enable, or the protocol, has as many half-open connections as it may.
pub static EMBRYOS_FULL: DropReason = reason("too many half-open connections");
/// A half-open connection made way for a newer one.
pub static EMBRYO_EVICTED: DropReason = reason("half-open connection made way for a newer one");
/// A SYN that was answered with a cookie (RFC 4987): nothing of it is kept.
pub static COOKIE: DropReason = reason("answered with a cookie and forgotten");
/// A half-open connection was not completed in time.
pub static EMBRYO_EXPIRED: DropReason = reason("handshake not completed in time");
/// A reset ended a half-open connection.
pub static EMBRYO_RESET: DropReason = reason("handshake reset by the peer");
/// It does not fit the handshake it belongs to.
pub static BAD_HANDSHAKE: DropReason = reason("does not fit the handshake");
/// It belongs to a connection in TIME-WAIT.
pub static TIME_WAIT: DropReason = reason("late for a connection in TIME-WAIT");
/// The connection has ended; its application has not closed it yet.
pub static CLOSED: DropReason = reason("the connection has ended");
/// Outside of the receive window.
pub static OUTSIDE_WINDOW: DropReason = reason("outside the window");
/// All of its bytes are here already.
pub static DUPLICATE: DropReason = reason("duplicate");
/// Older than what was seen before (RFC 7323, section 5).
pub static OLD_TIMESTAMP: DropReason = reason("old timestamp");
/// Timestamps were agreed upon and it has none (RFC 7323, section 3.2).
pub static NO_TIMESTAMP: DropReason = reason("timestamp missing");
/// A reset whose number is not exactly the one expected (RFC 5961, section 3).
pub static DOUBTFUL_RESET: DropReason = reason("doubtful reset");
/// The connection was reset.
pub static RESET: DropReason = reason("reset by the peer");
/// A SYN within a connection (RFC 5961, section 4).
pub static DOUBTFUL_SYN: DropReason = reason("SYN within a connection");
/// Every segment of a connection acknowledges something.
pub static NO_ACKNOWLEDGMENT: DropReason = reason("no acknowledgment");
/// It acknowledges what was never sent, or long ago (RFC 5961, section 5).
pub static BAD_ACKNOWLEDGMENT: DropReason = reason("impossible acknowledgment");
/// Data behind the peer's FIN.
pub static AFTER_FIN: DropReason = reason("data after the end");
/// The application reads no more.
pub static RECEIVE_CLOSED: DropReason = reason("the application reads no more");
/// Too much has arrived too early.
pub static EARLY_FULL: DropReason = reason("too much arrived too early");
/// Too many small segments wait for an application that does not read.
pub static CRUMBS: DropReason = reason("too many small segments unread");
/// The application pushed after it had closed, or after the connection had ended.
pub static SEND_CLOSED: DropReason = reason("pushed after the end");
/// No buffer for an answer.
pub static NO_BUFFER: DropReason = reason("no buffer for an answer");
