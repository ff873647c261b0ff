//! The two bits by which routers say that a queue is building up, and ends say that they listen.

use crate::FieldValue;
use serde::{Deserialize, Serialize};

/// The congestion field of the IP headers (RFC 3168, section 5); every value of its two bits has a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ecn {
    /// 00: the transport does not take part.
    #[default]
    NotCapable = 0,
    /// 01: ECT(1), taking part; low-latency senders use it (RFC 9331).
    Capable1 = 1,
    /// 10: ECT(0), taking part.
    Capable0 = 2,
    /// 11: CE, a router on the way met congestion.
    Experienced = 3,
}

impl FieldValue for Ecn {
    const BITS: usize = 2;

    #[inline(always)]
    fn from_bits(bits: u128) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Experienced,
        }
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        self as u128
    }
}
