//! The content of test streams: a byte for every offset, made from a seed, so that the receiver can check any part without
//! keeping what was sent.

/// The content of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content(pub u64);

impl Content {
    /// Fills `into` with the bytes from `offset` on.
    pub fn fill(self, offset: u64, into: &mut [u8]) {
        for (at, byte) in (offset..).zip(into) {
            *byte = self.byte(at);
        }
    }

    /// The offset of the first byte that differs from the content at `offset`, if one does.
    pub fn differs(self, offset: u64, bytes: &[u8]) -> Option<u64> {
        (offset..).zip(bytes).find(|(at, byte)| self.byte(*at) != **byte).map(|(at, _)| at)
    }

    /// Eight bytes at a time come from one multiplication; neighbouring words share no pattern a shifted or repeated
    /// stream could match.
    fn byte(self, at: u64) -> u8 {
        let word = ((at / 8) ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word >> ((at % 8) * 8)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_checked_at_any_offset_and_a_shift_is_seen() {
        let content = Content(7);
        let mut bytes = [0; 100];
        content.fill(1_003, &mut bytes);
        assert_eq!(content.differs(1_003, &bytes), None);
        assert!(content.differs(1_004, &bytes).is_some());
        bytes[57] ^= 1;
        assert_eq!(content.differs(1_003, &bytes), Some(1_060));
    }
}
