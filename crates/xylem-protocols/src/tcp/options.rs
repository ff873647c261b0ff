//! What the two SYNs agree on: segment size (RFC 9293, section 3.7.1), window scaling and timestamps (RFC 7323). An
//! option counts only if both sent it, selective acknowledgments (RFC 2018) among them.

use super::config::TcpConfig;
use super::ecn::Ecn;
use super::ends::Ends;
use super::segment::Segment;
use xylem_wire::{SequenceNumber, TcpHeader, TcpOptions, Timestamps};

/// No peer makes segments smaller than this with its announcement: each would be mostly header.
const SEGMENT_SIZE_MIN: u16 = 64;

/// What a peer's SYN said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The largest segment it wants, or the default of its IP version (MUST-15).
    pub segment_size: u16,
    /// How far it shifts its windows, if it scales.
    pub window_scale: Option<u8>,
    /// Its clock, if it has one.
    pub timestamp: Option<SequenceNumber>,
    /// It knows selective acknowledgments (RFC 2018, section 2).
    pub selective: bool,
    /// It takes part in congestion notification.
    pub ecn: bool,
}

impl Offer {
    /// What of the SYN's options we take up (RFC 9293, MUST-14), where both want it (RFC 7323 2.2-1, RFC 7323 3.2-1).
    pub fn of(segment: &Segment, config: &TcpConfig, ends: &Ends) -> Offer {
        Offer {
            segment_size: segment.mss.unwrap_or(ends.default_segment_size()).max(SEGMENT_SIZE_MIN),
            window_scale: segment.window_scale.filter(|_| config.window_scaling),
            timestamp: segment.timestamps.filter(|_| config.timestamps).map(|timestamps| timestamps.value),
            selective: segment.sack_permitted && config.selective_acknowledgments,
            ecn: Ecn::is_offered(segment, config.ecn),
        }
    }
}

/// The segment size to announce where messages of `mtu` bytes go down undivided: what is left behind the fixed header,
/// options not subtracted (MUST-67, RFC 6691).
pub(crate) fn announced_segment_size(config: &TcpConfig, mtu: usize) -> u16 {
    let size = mtu.saturating_sub(<TcpHeader as xylem_wire::Header>::LEN).min(usize::from(config.segment_size_max));
    (size.min(usize::from(u16::MAX)) as u16).max(SEGMENT_SIZE_MIN)
}

/// The options of our SYN (RFC 9293, SHLD-5, MAY-3, MUST-65: only there), or of our answer to a SYN that made an `offer`
/// (RFC 7323 2.2-1, RFC 7323 3.2-1). A SYN that acknowledges nothing echoes nothing (RFC 7323 3.2-4).
pub(crate) fn on_syn(config: &TcpConfig, size: u16, clock: SequenceNumber, offer: Option<&Offer>) -> TcpOptions {
    let scales = offer.map_or(config.window_scaling, |offer| offer.window_scale.is_some());
    let echo = match offer {
        None => config.timestamps.then_some(SequenceNumber(0)),
        Some(offer) => offer.timestamp,
    };
    TcpOptions {
        mss: Some(size),
        window_scale: scales.then(|| config.window_scale()),
        sack_permitted: offer.map_or(config.selective_acknowledgments, |offer| offer.selective),
        timestamps: echo.map(|echo| Timestamps { value: clock, echo }),
        ..TcpOptions::NONE
    }
}
