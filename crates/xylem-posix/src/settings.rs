//! What has been set on a socket, so that getsockopt can say it, a connection begins with it, and an accepted one
//! inherits it.

use std::time::Duration;
use xylem_core::{Setting, ShortName};

/// See the module's text. What is `None` is as the stack has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub reuse_address: bool,
    pub reuse_port: bool,
    pub broadcast: bool,
    pub out_of_band_inline: bool,
    pub linger: Option<Duration>,
    pub receive_buffer: Option<usize>,
    pub send_buffer: Option<usize>,
    pub receive_timeout: Option<Duration>,
    pub send_timeout: Option<Duration>,
    pub keep_alive: bool,
    pub keep_alive_idle: Option<Duration>,
    pub keep_alive_interval: Option<Duration>,
    pub keep_alive_probes: Option<u8>,
    pub no_delay: bool,
    pub cork: bool,
    pub quick_acknowledgment: bool,
    pub segment_size: Option<u16>,
    pub user_timeout: Option<Duration>,
    pub open_tries: Option<u8>,
    pub defer_accept: Option<Duration>,
    pub linger_in_fin_wait: i32,
    pub unsent_low_water: Option<usize>,
    pub congestion: Option<ShortName>,
    pub fast_open: usize,
    pub traffic_class: Option<u8>,
    pub hop_limit: Option<u8>,
    pub path_mtu_discovery: Option<i32>,
    pub receive_errors: bool,
    pub only_ipv6: bool,
    pub priority: i32,
}

/// What a table's sockets begin with, where it is not as the stack has it: what Linux takes from its settings by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// How often a SYN is sent again (tcp_syn_retries).
    pub open_tries: Option<u8>,
    /// Idle time before the first probe (tcp_keepalive_time); two hours if nothing is said (RFC 9293, MUST-27).
    pub keep_alive_idle: Option<Duration>,
    /// Between probes (tcp_keepalive_intvl).
    pub keep_alive_interval: Option<Duration>,
    /// Unanswered probes that end a connection (tcp_keepalive_probes).
    pub keep_alive_probes: Option<u8>,
    /// A stream is not writable with more unsent bytes than this (tcp_notsent_lowat).
    pub unsent_low_water: Option<usize>,
}

/// The idle time before the first probe (RFC 9293, MUST-27).
pub(crate) const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(7200);

impl Settings {
    pub fn new(defaults: &Defaults) -> Settings {
        Settings {
            open_tries: defaults.open_tries,
            keep_alive_idle: defaults.keep_alive_idle,
            keep_alive_interval: defaults.keep_alive_interval,
            keep_alive_probes: defaults.keep_alive_probes,
            unsent_low_water: defaults.unsent_low_water,
            ..Settings::default()
        }
    }

    /// When an idle peer is probed, if it is.
    pub fn probing(&self) -> Option<Duration> {
        self.keep_alive.then(|| self.keep_alive_idle.unwrap_or(KEEP_ALIVE_IDLE))
    }

    /// What a connection is told to begin with.
    pub fn wishes(&self) -> Vec<Setting> {
        let mut wishes = Vec::new();
        wishes.extend(self.receive_buffer.map(Setting::ReceiveBuffer));
        wishes.extend(self.send_buffer.map(Setting::SendBuffer));
        wishes.extend(self.probing().map(|idle| Setting::KeepAlive(Some(idle))));
        wishes.extend(self.keep_alive_interval.map(Setting::KeepAliveInterval));
        wishes.extend(self.keep_alive_probes.map(Setting::KeepAliveProbes));
        wishes.extend(self.open_tries.map(Setting::OpenTries));
        wishes.extend(self.segment_size.map(Setting::SegmentSize));
        wishes.extend(self.user_timeout.map(|after| Setting::UserTimeout(Some(after))));
        wishes.extend(self.congestion.map(Setting::Congestion));
        wishes.extend(self.traffic_class.map(Setting::TrafficClass));
        wishes.extend(self.hop_limit.map(Setting::HopLimit));
        wishes.extend(self.no_delay.then_some(Setting::NoDelay(true)));
        wishes.extend(self.cork.then_some(Setting::Cork(true)));
        wishes
    }
}
