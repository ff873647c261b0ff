//! What few connections need: it stands in a box of its own, made when it is first needed, so that the many that do without
//! stay small.

use super::early::Early;
use super::own::Own;
use super::path_mtu::Search;
use super::session::TcpSession;
use xylem_core::{Duration, Instant};

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// The peer is probed when it was not heard of for so long.
    pub keep_alive: Option<Duration>,
    /// Keep-alive probes without an answer.
    pub probes: u8,
    /// Data unacknowledged so long ends the connection.
    pub user_timeout: Option<Duration>,
    /// When the current period of challenge acknowledgments began.
    pub challenged_from: Instant,
    /// How many challenge acknowledgments were sent in it.
    pub challenges: u16,
    /// What a router said of the path's MTU, though larger packets had arrived.
    pub claimed_mtu: Option<u16>,
    /// The search for the largest segment.
    pub search: Option<Search>,
    /// What the application has said where the configuration says something for all.
    pub own: Own,
    /// What fast open has to know until the handshake ends.
    pub early: Option<Early>,
}

impl TcpSession {
    /// The box, which is made if there is none.
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The peer is probed when it was not heard of for so long.
    pub(super) fn keep_alive(&self) -> Option<Duration> {
        self.rare.as_ref().and_then(|rare| rare.keep_alive)
    }

    /// Data unacknowledged so long ends the connection.
    pub(super) fn user_timeout(&self) -> Option<Duration> {
        self.rare.as_ref().and_then(|rare| rare.user_timeout)
    }

    /// Sets when the peer is probed.
    pub(super) fn set_keep_alive(&mut self, after: Option<Duration>) {
        if after.is_some() || self.rare.is_some() {
            let rare = self.rare();
            (rare.keep_alive, rare.probes) = (after, 0);
        }
    }

    /// Sets when the connection is given up.
    pub(super) fn set_user_timeout(&mut self, after: Option<Duration>) {
        if after.is_some() || self.rare.is_some() {
            self.rare().user_timeout = after;
        }
    }
}
