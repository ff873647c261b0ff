//! What may be set about TCP as a whole, with the value each has if nothing is said. Times are durations, sizes bytes;
//! every limit of the protocol stands here or beside the thing it limits. An application changes some of it for one
//! connection by `Control::Set`.

use super::congestion::{Algorithm, Algorithms, CUBIC};
use super::cookie::CookieUse;
use super::ecn::EcnUse;
use super::fast_open::FastOpenUse;
use super::path_mtu::MtuProbing;
use super::ports::PortRange;
use xylem_core::Duration;

/// Settings of one TCP in one graph.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Bytes a connection receives and keeps for its application, to begin with.
    pub receive_buffer: usize,
    /// How far that grows with what the application reads in a round trip; no growth if it is no more. Window scaling is
    /// chosen for the larger of the two.
    pub receive_buffer_max: usize,
    /// Bytes of buffers a connection keeps of what its application sends until they are acknowledged, to begin with.
    pub send_buffer: usize,
    /// How far that grows with what may be in flight; no growth if it is no more.
    pub send_buffer_max: usize,
    /// The ports of connections whose application asks for none.
    pub ports: PortRange,
    /// Connections at once.
    pub connections_max: usize,
    /// Standing passive opens at once.
    pub enables_max: usize,
    /// Half-open connections at once, over all enables; each enable has its backlog besides.
    pub embryos_max: usize,
    /// When SYNs are answered without remembering them (RFC 4987, section 3.6).
    pub syn_cookies: CookieUse,
    /// Connections in TIME-WAIT at once; beyond it the one that has waited longest goes.
    pub time_wait_max: usize,
    /// How long a segment may live in the network: TIME-WAIT lasts twice as long (RFC 9293, MUST-13; the RFC says two
    /// minutes, hosts of today 30 s).
    pub segment_lifetime_max: Duration,
    /// The retransmission timeout before the first measurement (RFC 6298 2.1).
    pub retransmission_timeout_initial: Duration,
    /// The least retransmission timeout. RFC 6298 2.4 says one second; 200 ms is what other hosts take.
    pub retransmission_timeout_min: Duration,
    /// The largest one, however often it has doubled; at least a minute (RFC 6298 2.5).
    pub retransmission_timeout_max: Duration,
    /// How long an acknowledgment waits for company; below half a second (RFC 9293, MUST-40).
    pub acknowledgment_delay: Duration,
    /// R1: so many retransmissions of the same data are trouble worth telling (RFC 9293, MUST-20, SHLD-10: at least 3).
    pub trouble_after: u32,
    /// R2: data unacknowledged so long ends the connection (RFC 9293, MUST-20, SHLD-11: at least 100 s). A quarter of an
    /// hour makes some twenty tries, so that a link that loses a third of its frames does not end a connection by chance.
    pub give_up_after: Duration,
    /// R2 for the handshake (RFC 9293, MUST-23: at least three minutes).
    pub open_give_up_after: Duration,
    /// Between the probes of a peer that does not answer, once the application's idle time is over.
    pub keep_alive_interval: Duration,
    /// Unanswered probes that end the connection; more than one (RFC 9293, MUST-29).
    pub keep_alive_probes: u32,
    /// How long a connection its application has closed waits for the peer's FIN.
    pub orphan_wait: Duration,
    /// How often an embryo's SYN-ACK is sent again.
    pub embryo_retransmissions: u32,
    /// Whether windows beyond 64 KB are offered (RFC 7323, section 2).
    pub window_scaling: bool,
    /// Whether timestamps are offered (RFC 7323, section 3).
    pub timestamps: bool,
    /// Which sides of fast open are played (RFC 7413), where applications ask for it.
    pub fast_open: FastOpenUse,
    /// Whether congestion marks are used (RFC 3168).
    pub ecn: EcnUse,
    /// Whether what arrives twice is reported (RFC 2883), where selective acknowledgments are agreed upon.
    pub duplicate_reports: bool,
    /// Whether the tail of what was sent is probed before the retransmission timer goes off (RFC 8985, section 7).
    pub tail_probes: bool,
    /// Whether an idle connection starts slowly again (RFC 5681, section 4.1).
    pub restart_after_idle: bool,
    /// Whether selective acknowledgments are offered (RFC 2018); without them losses are found as RFC 6582 says.
    pub selective_acknowledgments: bool,
    /// Whether small segments go out at once unless the application says otherwise (RFC 9293, SHLD-7: they should not).
    pub no_delay: bool,
    /// Who decides how much may be in flight, unless an application says otherwise for its connection.
    pub congestion: &'static Algorithm,
    /// Those it may be, and those a record may name.
    pub algorithms: Algorithms,
    /// Segments of the initial window (RFC 6928: 10).
    pub initial_window_segments: u32,
    /// Pieces a connection keeps that arrived too early; neighbours of up to 64 KB together count as one.
    pub early_pieces_max: usize,
    /// Challenge acknowledgments a connection sends in [`TcpConfig::challenge_period`] (RFC 5961 7-2).
    pub challenges_max: u16,
    /// See [`TcpConfig::challenges_max`].
    pub challenge_period: Duration,
    /// The largest segment below this protocol, in bytes, assumed while no path has said otherwise: a SYN is answered
    /// before there is a path, whose facts would tell. `Control::Facts` to the protocol changes it.
    pub unopened_mtu: usize,
    /// No network error makes segments smaller than an MTU of this many bytes would (RFC 5927, section 7.2).
    pub path_mtu_min: usize,
    /// Whether a connection looks for the largest segments by itself (RFC 4821, RFC 8899).
    pub mtu_probing: MtuProbing,
    /// Largest announced segment, payload bytes; what is below may make it smaller.
    pub segment_size_max: u16,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            receive_buffer: 256 * 1024,
            receive_buffer_max: 4 << 20,
            send_buffer: 256 * 1024,
            send_buffer_max: 4 << 20,
            ports: PortRange::default(),
            connections_max: 65_536,
            enables_max: 1024,
            embryos_max: 16_384,
            syn_cookies: CookieUse::Overflow,
            time_wait_max: 32_768,
            segment_lifetime_max: Duration::from_secs(30),
            retransmission_timeout_initial: Duration::from_secs(1),
            retransmission_timeout_min: Duration::from_millis(200),
            retransmission_timeout_max: Duration::from_secs(60),
            acknowledgment_delay: Duration::from_millis(40),
            trouble_after: 3,
            give_up_after: Duration::from_secs(15 * 60),
            open_give_up_after: Duration::from_secs(180),
            keep_alive_interval: Duration::from_secs(75),
            keep_alive_probes: 9,
            orphan_wait: Duration::from_secs(60),
            embryo_retransmissions: 5,
            window_scaling: true,
            timestamps: true,
            duplicate_reports: true,
            tail_probes: true,
            restart_after_idle: true,
            selective_acknowledgments: true,
            fast_open: FastOpenUse::Both,
            ecn: EcnUse::Passive,
            no_delay: false,
            congestion: &CUBIC,
            algorithms: Algorithms::default(),
            initial_window_segments: 10,
            early_pieces_max: 128,
            challenges_max: 10,
            challenge_period: Duration::from_secs(5),
            unopened_mtu: 1480,
            path_mtu_min: 552,
            mtu_probing: MtuProbing::BlackHole,
            segment_size_max: u16::MAX,
        }
    }
}

impl TcpConfig {
    /// The least of either buffer: below it one segment of usual size would not fit.
    pub const BUFFER_MIN: usize = 2048;
    /// The most of either buffer: what a window can be with all its scaling (RFC 7323, section 2.3), and a sequence
    /// number still tells old from new.
    pub const BUFFER_MAX: usize = 0x3fff_c000;

    /// `bytes` of a buffer, brought between its limits.
    pub(crate) fn buffer(bytes: usize) -> u32 {
        // The limits leave a number below 2^30.
        bytes.clamp(TcpConfig::BUFFER_MIN, TcpConfig::BUFFER_MAX) as u32
    }

    /// How far windows of a whole receive buffer must be shifted to fit sixteen bits: at most 14 (RFC 7323 2.3-2).
    pub(crate) fn window_scale(&self) -> u8 {
        let buffer = TcpConfig::buffer(self.receive_buffer.max(self.receive_buffer_max));
        (0..xylem_wire::TcpOptions::WINDOW_SCALE_MAX)
            .find(|shift| buffer >> shift <= u32::from(u16::MAX))
            .unwrap_or(xylem_wire::TcpOptions::WINDOW_SCALE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_scale_is_as_small_as_the_buffer_allows() {
        let scale = |receive_buffer| TcpConfig { receive_buffer, receive_buffer_max: 0, ..TcpConfig::default() };
        let scale = |receive_buffer| scale(receive_buffer).window_scale();
        assert_eq!((scale(0), scale(65_535), scale(65_536), scale(256 * 1024)), (0, 0, 1, 3));
        assert_eq!((scale(TcpConfig::BUFFER_MAX), scale(usize::MAX)), (14, 14));
    }
}
