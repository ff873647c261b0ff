//! A static-file server for HTTP/1.1 (RFC 9110 and RFC 9112): GET and HEAD, uploads by PUT and POST where they are
//! allowed, connections that are kept. It is a service like the others, so it runs over the kernel's sockets and over
//! Xylem's, and no file is ever read whole: its bytes pass through the one buffer that the server shares.

mod conversation;
pub mod date;
pub(crate) mod head;
pub mod site;

use crate::services::{Conversation, Service};
use site::Site;
use std::net::SocketAddr;
use std::sync::Arc;

/// The most bytes a request's head (its first line and its fields) may have.
pub const HEAD_BYTES_MAX: usize = 8 << 10;

/// The most fields a request's head may have.
pub const FIELDS_MAX: usize = 64;

/// The most bytes of an unwanted body that are read so that the peer can see why it was refused; after that the
/// connection is closed on it (RFC 9112, section 9.6).
pub const UNWANTED_BYTES_MAX: u64 = 1 << 20;

/// The service: the files of one site.
pub struct Http {
    site: Arc<dyn Site>,
}

impl Http {
    /// Serves `site`.
    pub fn new(site: Arc<dyn Site>) -> Http {
        Http { site }
    }
}

impl Service for Http {
    fn name(&self) -> &str {
        "http"
    }

    fn converse(&self, _peer: SocketAddr) -> Box<dyn Conversation> {
        Box::new(conversation::Talking::new(Arc::clone(&self.site)))
    }
}

#[cfg(test)]
mod tests;
