//! What an application has said about its own connection where the configuration says something for all: how an idle peer
//! is probed, how often a SYN is tried, how large segments may be, and that small ones wait for company. Few say any of
//! it, so it stands in the box of what is rare.

use super::session::TcpSession;
use super::state::State;
use serde::{Deserialize, Serialize};
use xylem_core::{Duration, Outbox};

/// The smallest segment an application may ask for, in payload bytes: below it a segment is mostly header.
pub(super) const SEGMENT_SIZE_MIN: u16 = 64;

/// See the module's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Own {
    /// Between the probes of a peer that does not answer.
    pub keep_alive_interval: Option<Duration>,
    /// Unanswered probes that end the connection.
    pub keep_alive_probes: Option<u8>,
    /// How often a SYN is sent again.
    pub open_tries: Option<u8>,
    /// The largest segment, payload bytes.
    pub segment_max: Option<u16>,
    /// Less than a whole segment waits.
    pub corked: bool,
    /// What is queued before the SYN goes with it or is forgotten.
    pub early_or_never: bool,
}

impl TcpSession {
    /// What the application has said; nothing by default.
    pub(super) fn own(&self) -> Own {
        self.rare.as_ref().map_or(Own::default(), |rare| rare.own)
    }

    /// Takes over what it said elsewhere.
    pub(super) fn set_own(&mut self, own: Own) {
        if own != Own::default() {
            self.rare().own = own;
        }
    }

    /// Between the probes of a peer that does not answer.
    pub(super) fn keep_alive_interval(&self) -> Duration {
        self.own().keep_alive_interval.unwrap_or(self.config.keep_alive_interval)
    }

    /// Unanswered probes that end the connection.
    pub(super) fn keep_alive_probes(&self) -> u32 {
        self.own().keep_alive_probes.map_or(self.config.keep_alive_probes, u32::from)
    }

    /// Whether our SYN has been tried as often as the application wished.
    pub(super) fn has_tried_enough(&self) -> bool {
        let is_opening = matches!(self.state, State::SynSent);
        is_opening && self.own().open_tries.is_some_and(|tries| self.retransmission.attempts > tries)
    }

    /// No segment is larger than this, neither way: we announce no more while we still can.
    pub(super) fn limit_segment(&mut self, bytes: u16) {
        let bytes = bytes.max(SEGMENT_SIZE_MIN);
        self.rare().own.segment_max = Some(bytes);
        if self.state == State::SynSent && !self.send.is_outstanding() {
            self.sizes.announced = self.sizes.announced.min(bytes);
        }
        self.resize();
    }

    /// Less than a whole segment waits for company, for no longer than the retransmission timer; or no longer does.
    pub(super) fn cork(&mut self, corked: bool, out: &mut Outbox) {
        if corked || self.rare.is_some() {
            self.rare().own.corked = corked;
        }
        if !corked {
            // What waited goes, whatever Nagle's rule would say of it.
            let no_delay = std::mem::replace(&mut self.no_delay, true);
            self.flush(out);
            self.no_delay = no_delay;
        }
    }
}
