//! What a script sets about the stack under test. The usual values are the plainest TCP (no timestamps, no selective
//! acknowledgments, no scaling, Reno), so that a script shows one thing; each is said to the stack, whatever its default.

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Timestamps are offered and taken up.
    pub timestamps: bool,
    /// Selective acknowledgments are.
    pub sack: bool,
    /// Window scaling is.
    pub scaling: bool,
    /// Congestion marks are asked for.
    pub ecn: Setting,
    /// SYN cookies.
    pub cookies: Setting,
    /// Fast open, both ways.
    pub fast_open: bool,
    /// The congestion control.
    pub congestion: String,
    /// Bytes a connection receives and keeps; `None`: as usual.
    pub receive_buffer: Option<u32>,
    /// The largest packet of the link, in bytes.
    pub mtu: u16,
    /// The peer's initial sequence number.
    pub isn: u32,
    /// The initial window in segments, where it can be said.
    pub initial_window: u32,
}

/// A choice of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Never.
    Off,
    /// Always.
    On,
    /// Only if the other side begins, or if there is need.
    Passive,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            timestamps: false,
            sack: false,
            scaling: false,
            ecn: Setting::Off,
            cookies: Setting::Off,
            fast_open: false,
            congestion: "reno".to_owned(),
            receive_buffer: None,
            mtu: 1500,
            isn: 1_000_000,
            initial_window: 10,
        }
    }
}

impl Setting {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Setting::Off => "off",
            Setting::On => "on",
            Setting::Passive => "passive",
        }
    }
}
