//! What a run is told by its flags: a list with commas, `v4`, or some of `addr=`, `prefix=`, `peer=`, `mtu=`. Addresses are
//! not handed over otherwise, so the script and its player must be told the same.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

/// See the module's text. What is not said is as packetdrill has it unless told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    pub address: Ipv4Addr,
    pub prefix: u8,
    pub peer: Ipv4Addr,
    pub mtu: u16,
    /// How long a look for the next packet lets time pass.
    pub patience: Duration,
}

/// The smallest MTU of a link that carries IPv4 (RFC 791, section 3.2).
const MTU_MIN: u16 = 68;
/// As long as anything TCP waits for but its longest patience: a packet that is not on its way by then will not come.
const PATIENCE: Duration = Duration::from_secs(3600);

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            address: Ipv4Addr::new(192, 168, 0, 1),
            prefix: 16,
            peer: Ipv4Addr::new(192, 0, 2, 1),
            mtu: 1500,
            patience: PATIENCE,
        }
    }
}

/// Flags that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FlagError {
    /// IPv6.
    NotYet,
    /// A word nobody knows.
    Unknown(String),
    /// A value that cannot be.
    Value {
        /// Which flag.
        flag: String,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: String,
    },
}

impl fmt::Display for FlagError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlagError::NotYet => out.write_str("v6: the stack has no IPv6 on the wire yet; use v4"),
            FlagError::Unknown(word) => {
                write!(out, "expected v4, addr=, prefix=, peer=, mtu= or wait=, got `{word}`")
            }
            FlagError::Value { flag, expected, got } => write!(out, "{flag}: expected {expected}, got `{got}`"),
        }
    }
}

impl Flags {
    /// Reads a list of flags; none at all is the usual.
    ///
    /// # Errors
    /// See [`FlagError`].
    pub fn read(text: &str) -> Result<Flags, FlagError> {
        let mut flags = Flags::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let wrong = |expected| FlagError::Value { flag: name.to_owned(), expected, got: value.to_owned() };
            match name {
                "v4" => {}
                "v6" => return Err(FlagError::NotYet),
                "addr" | "peer" if value.contains(':') => return Err(FlagError::NotYet),
                "addr" => flags.address = value.parse().map_err(|_| wrong("an IPv4 address"))?,
                "peer" => flags.peer = value.parse().map_err(|_| wrong("an IPv4 address"))?,
                "prefix" => {
                    let bits = value.parse().ok().filter(|bits| *bits <= 32);
                    flags.prefix = bits.ok_or_else(|| wrong("0 to 32"))?;
                }
                "mtu" => {
                    let mtu = value.parse().ok().filter(|mtu| *mtu >= MTU_MIN);
                    flags.mtu = mtu.ok_or_else(|| wrong("68 to 65535"))?;
                }
                "wait" => {
                    let millis = value.parse().map_err(|_| wrong("milliseconds"))?;
                    flags.patience = Duration::from_millis(millis).min(PATIENCE);
                }
                _ => return Err(FlagError::Unknown(word.to_owned())),
            }
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_usual() {
        for text in ["", "v4", " v4 ,", ","] {
            assert_eq!(Flags::read(text), Ok(Flags::default()), "{text:?}");
        }
        let said = Flags::read("addr=10.0.0.9,prefix=24,peer=10.0.0.1,mtu=576,wait=50").expect("all of it is known");
        assert_eq!((said.address, said.prefix, said.mtu), (Ipv4Addr::new(10, 0, 0, 9), 24, 576));
        assert_eq!((said.peer, said.patience), (Ipv4Addr::new(10, 0, 0, 1), Duration::from_millis(50)));
    }

    #[test]
    fn what_cannot_be_is_said_in_a_sentence() {
        for (text, sentence) in [
            ("v6", "v6: the stack has no IPv6 on the wire yet; use v4"),
            ("addr=fd3d::1", "v6: the stack has no IPv6 on the wire yet; use v4"),
            ("v5", "expected v4, addr=, prefix=, peer=, mtu= or wait=, got `v5`"),
            ("mtu=67", "mtu: expected 68 to 65535, got `67`"),
            ("prefix=33", "prefix: expected 0 to 32, got `33`"),
            ("addr=here", "addr: expected an IPv4 address, got `here`"),
        ] {
            assert_eq!(Flags::read(text).map_err(|error| error.to_string()), Err(sentence.to_owned()));
        }
    }
}
