//! TCP's sequence numbers: 32 bits that go round. There is deliberately no `Ord`: "smaller" means nothing on a circle,
//! and a sort or a `max` over them would be wrong once every 4 GB. What means something is the distance between two.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use serde::{Deserialize, Serialize};

/// A position in a byte stream, modulo 2^32 (RFC 9293, section 3.4).
///
/// Comparisons hold for numbers less than 2^31 apart; exactly 2^31 apart, each is before the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SequenceNumber(pub u32);

crate::newtype_field!(SequenceNumber(u32));

impl SequenceNumber {
    /// Bytes from `earlier` to `self`; negative if `earlier` is in truth the later one.
    #[inline]
    pub const fn since(self, earlier: SequenceNumber) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Whether `self` comes before `other`.
    #[inline]
    pub const fn is_before(self, other: SequenceNumber) -> bool {
        self.since(other) < 0
    }

    /// Whether `self` is `other` or comes before it.
    #[inline]
    pub const fn is_at_or_before(self, other: SequenceNumber) -> bool {
        self.since(other) <= 0
    }

    /// Whether `self` comes after `other`.
    #[inline]
    pub const fn is_after(self, other: SequenceNumber) -> bool {
        other.is_before(self)
    }

    /// Whether `self` is `other` or comes after it.
    #[inline]
    pub const fn is_at_or_after(self, other: SequenceNumber) -> bool {
        other.is_at_or_before(self)
    }

    /// Whether `self` is one of the `length` numbers that begin at `start`. Good for any length, also beyond 2^31.
    #[inline]
    pub const fn is_within(self, start: SequenceNumber, length: u32) -> bool {
        self.0.wrapping_sub(start.0) < length
    }

    /// The later of the two.
    #[inline]
    pub const fn later(self, other: SequenceNumber) -> SequenceNumber {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of the two.
    #[inline]
    pub const fn earlier(self, other: SequenceNumber) -> SequenceNumber {
        if other.is_before(self) { other } else { self }
    }
}

impl Add<u32> for SequenceNumber {
    type Output = SequenceNumber;

    #[inline]
    fn add(self, bytes: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SequenceNumber {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SequenceNumber {
    type Output = SequenceNumber;

    #[inline]
    fn sub(self, bytes: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_round_with_the_numbers() {
        let before = SequenceNumber(u32::MAX - 9);
        let after = before + 20;
        assert_eq!(after, SequenceNumber(10));
        assert_eq!((after.since(before), before.since(after)), (20, -20));
        assert!(before.is_before(after) && !after.is_before(before) && !before.is_before(before));
        assert!(after.is_after(before) && !before.is_after(after) && !before.is_after(before));
        assert!(before.is_at_or_before(after) && before.is_at_or_before(before) && !after.is_at_or_before(before));
        assert!(after.is_at_or_after(before) && after.is_at_or_after(after) && !before.is_at_or_after(after));
        assert_eq!((before.later(after), before.earlier(after)), (after, before));
        assert_eq!(after - 20, before);
    }

    #[test]
    fn a_window_is_half_open_and_may_cross_zero() {
        let start = SequenceNumber(u32::MAX);
        assert!(start.is_within(start, 2) && SequenceNumber(0).is_within(start, 2));
        assert!(!SequenceNumber(1).is_within(start, 2) && !start.is_within(start, 0));
        assert!(!(start - 1).is_within(start, u32::MAX));
    }
}
