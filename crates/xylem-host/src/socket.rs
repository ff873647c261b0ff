//! What stands behind the sockets of [`net`](crate::net): the anchors of paths and enables. Each verb here either does
//! its work, or registers a waker and says that it is pending, so that blocking calls, calls that never wait, and tasks
//! are one code.
//!
//! | file | what |
//! | --- | --- |
//! | `interest.rs` | who is to be called |
//! | `stream.rs` | the anchor of a connection |
//! | `incoming.rs` | what a connection has received and nobody has read |
//! | `listener.rs` | connections that wait to be accepted |
//! | `datagrams.rs` | datagrams that wait to be received |
//! | `address.rs` | socket addresses and participants |
//! | `error.rs` | what goes wrong, in the kinds of the standard library |

mod address;
mod datagrams;
mod error;
mod incoming;
mod interest;
mod listener;
mod stream;

pub(crate) use address::{address_of, conversation, local_address, local_only, peer_address};
pub(crate) use datagrams::{DATAGRAM_BYTES_MAX, Datagrams};
pub(crate) use error::{enable_error, ended, no_buffer, no_protocol, open_error};
pub(crate) use listener::Listener;
pub use stream::Readiness;
pub(crate) use stream::{Stream, first_message};
