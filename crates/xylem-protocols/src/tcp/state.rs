//! The states of a connection (RFC 9293, section 3.3.2). LISTEN is an enable and its embryos, so no session is in it;
//! what only one state knows stands in that state.

use serde::{Deserialize, Serialize};
use xylem_core::Instant;

/// Who began (RFC 9293, MUST-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// We sent the first SYN.
    Active,
    /// An embryo grew up.
    Passive,
    /// An embryo whose SYN brought data (RFC 7413): data passes while the handshake is still going on.
    Early,
}

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// Our SYN is out, or about to be.
    SynSent,
    /// Both SYNs are out, ours is not acknowledged.
    SynReceived(Origin),
    /// Open for data both ways.
    Established,
    /// We have sent FIN (or will, behind what is queued).
    FinWait1,
    /// Our FIN is acknowledged; the peer may go on sending. A connection its application has closed does not wait for
    /// ever.
    FinWait2 {
        /// When waiting ends, if it does.
        until: Option<Instant>,
    },
    /// The peer has sent FIN; we may go on sending.
    CloseWait,
    /// Both have sent FIN; ours is not acknowledged.
    Closing,
    /// As CLOSING, but the peer was first.
    LastAck,
    /// All is done; late segments of the peer are still answered.
    TimeWait {
        /// When it ends.
        until: Instant,
    },
    /// There is no connection.
    Closed,
}

impl State {
    /// Its RFC name.
    pub fn name(self) -> &'static str {
        match self {
            State::SynSent => "SYN-SENT",
            State::SynReceived(_) => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 { .. } => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait { .. } => "TIME-WAIT",
            State::Closed => "CLOSED",
        }
    }

    /// Whether data, or a FIN, may be on its way to the peer.
    pub fn transmits(self) -> bool {
        match self {
            State::SynReceived(origin) => origin == Origin::Early,
            State::Established | State::FinWait1 | State::CloseWait | State::Closing | State::LastAck => true,
            State::SynSent | State::FinWait2 { .. } | State::TimeWait { .. } | State::Closed => false,
        }
    }

    /// Whether the peer may still send data.
    pub fn receives(self) -> bool {
        match self {
            State::SynReceived(origin) => origin == Origin::Early,
            State::Established | State::FinWait1 | State::FinWait2 { .. } => true,
            State::SynSent
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait { .. }
            | State::Closed => false,
        }
    }
}
