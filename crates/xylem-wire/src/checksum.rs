//! The Internet checksum (RFC 1071) as a value: sums of pieces combine in any order, also when a piece starts at an odd
//! place, so that what was summed once (a chunk of a send queue, while it was copied) is never touched again.
//!
//! Ones' complement sums of 16 bits can be taken 64 bits at a time, because 2^16 - 1 divides 2^64 - 1, and in the
//! machine's own byte order, because swapping bytes commutes with them (RFC 1071, section 2). So a sum is one word, and
//! a rotation by eight bits moves it to an odd place.

use crate::IpProtocol;
use core::net::IpAddr;

/// A ones' complement sum of 16-bit words in network order, not yet folded.
///
/// Two sums are equal if they fold to the same 16 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of `bytes` as if they began at an even place; an odd last byte counts as if a zero followed it.
    #[inline]
    pub fn of(bytes: &[u8]) -> Sum {
        if bytes.len() < FEW {
            return sum_of_few(bytes);
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        sum_of_blocks(blocks).add(sum_of_few(rest))
    }

    /// Copies `from` into `to` and sums it on the way, in one pass.
    ///
    /// # Panics
    /// If the lengths differ: a copy that leaves something out is our bug.
    #[inline]
    pub fn copy(from: &[u8], to: &mut [u8]) -> Sum {
        assert_eq!(from.len(), to.len(), "a copy takes as many bytes as there are");
        if from.len() < FEW {
            to.copy_from_slice(from);
            return sum_of_few(from);
        }
        let (blocks, rest) = from.as_chunks::<BLOCK>();
        let (block_places, rest_place) = to.as_chunks_mut::<BLOCK>();
        let sum = copy_of_blocks(blocks, block_places);
        rest_place.copy_from_slice(rest);
        sum.add(sum_of_few(rest))
    }

    /// The sum of the pseudo header that UDP, TCP and ICMPv6 include (RFC 768; RFC 9293, section 3.1; RFC 8200, section
    /// 8.1), where `length` counts the bytes of the message from its own header on.
    ///
    /// # Panics
    /// If the addresses are of two IP versions: no packet has both.
    #[inline]
    pub fn pseudo(source: IpAddr, destination: IpAddr, protocol: IpProtocol, length: u32) -> Sum {
        let addresses = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Sum::ZERO.add_u32(source.to_bits()).add_u32(destination.to_bits())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Sum::ZERO.add_u128(source.to_bits()).add_u128(destination.to_bits())
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => {
                panic!("a packet from {source} to {destination} has two IP versions")
            }
        };
        addresses.add_u16(u16::from(protocol.0)).add_u32(length)
    }

    /// The sum of this and of another piece that begins at an even place.
    #[inline]
    #[must_use]
    #[allow(clippy::should_implement_trait)] // `a + b` would hide at which places the pieces stand.
    pub const fn add(self, other: Sum) -> Sum {
        let (sum, carry) = self.0.overflowing_add(other.0);
        // The carry goes round. It cannot carry again: a sum that carried has at most 2^64 - 2 left in the word.
        Sum(sum + carry as u64)
    }

    /// The sum of this and of another piece that begins `offset` bytes into the whole.
    #[inline]
    #[must_use]
    pub const fn add_at(self, offset: usize, piece: Sum) -> Sum {
        let place = if offset.is_multiple_of(2) { piece.0 } else { piece.0.rotate_left(8) };
        self.add(Sum(place))
    }

    /// The sum of this and of a 16-bit number at an even place.
    #[inline]
    #[must_use]
    pub const fn add_u16(self, number: u16) -> Sum {
        self.add(Sum(number.to_be() as u64))
    }

    /// The sum of this and of a 32-bit number at an even place.
    #[inline]
    #[must_use]
    pub const fn add_u32(self, number: u32) -> Sum {
        self.add(Sum(number.to_be() as u64))
    }

    /// The sum of this and of a 64-bit number at an even place.
    #[inline]
    #[must_use]
    pub const fn add_u64(self, number: u64) -> Sum {
        self.add(Sum(number.to_be()))
    }

    /// The sum of this and of a 128-bit number at an even place.
    #[inline]
    #[must_use]
    pub const fn add_u128(self, number: u128) -> Sum {
        self.add_u64((number >> 64) as u64).add_u64(number as u64)
    }

    /// What is left of this sum when a piece at an even place is taken out of it again. What was never in it can be
    /// taken out too: the sum then owes it.
    #[inline]
    #[must_use]
    pub const fn without(self, piece: Sum) -> Sum {
        self.add(Sum(!piece.0))
    }

    /// The 16-bit ones' complement sum. Zero comes only of zeros; where zeros and ones cancelled it is all ones.
    #[inline]
    pub const fn fold(self) -> u16 {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        // Below 2^33 / 2^16 + 2^16, so two more rounds leave 16 bits.
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        u16::from_be(sum as u16)
    }

    /// The checksum: what makes the sum of everything, itself included, come out as all ones.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Whether this is the sum of bytes that hold their own right checksum.
    #[inline]
    pub const fn is_right(self) -> bool {
        self.fold() == 0xffff
    }

    /// The checksum that replaces `checksum` when the piece that summed to `was` is overwritten by one that sums to `is`
    /// (RFC 1624, equation 3, which is the one that gets the two zeros right). Both begin at an even place.
    #[inline]
    pub const fn update(checksum: u16, was: Sum, is: Sum) -> u16 {
        Sum::ZERO.add_u16(!checksum).add_u16(!was.fold()).add(is).checksum()
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Sum) -> bool {
        self.fold() == other.fold()
    }
}

impl Eq for Sum {}

/// The same as [`Sum::copy`], under the name by which it is usually looked for.
#[inline]
pub fn copy_and_sum(from: &[u8], to: &mut [u8]) -> Sum {
    Sum::copy(from, to)
}

/// Bytes that the fast loop takes at a time.
const BLOCK: usize = 64;

/// Words in a block.
const WORDS: usize = BLOCK / 8;

/// Below so many bytes a word at a time is quicker: adding up the lanes costs as much as some twenty words.
const FEW: usize = 192;

/// Blocks after which the lanes are added up. All lanes together hold less than 2^36 a block, so this many fit 64 bits.
const BLOCKS_MAX: usize = 1 << 20;
const _: () = assert!((1 << 36) * (BLOCKS_MAX as u128) < 1 << 64);

/// Adds up whole blocks. Each lane takes its own word of every block, halves apart, so that no addition carries and none
/// waits for another: the compiler makes vector instructions of it.
fn sum_of_blocks(blocks: &[[u8; BLOCK]]) -> Sum {
    let mut sum = Sum::ZERO;
    for stretch in blocks.chunks(BLOCKS_MAX) {
        let mut lanes = Lanes::default();
        for block in stretch {
            lanes.add(block);
        }
        sum = sum.add(lanes.sum());
    }
    sum
}

/// [`sum_of_blocks`], storing each block while it is at hand.
fn copy_of_blocks(blocks: &[[u8; BLOCK]], places: &mut [[u8; BLOCK]]) -> Sum {
    let mut sum = Sum::ZERO;
    for (stretch, places) in blocks.chunks(BLOCKS_MAX).zip(places.chunks_mut(BLOCKS_MAX)) {
        let mut lanes = Lanes::default();
        for (block, place) in stretch.iter().zip(places) {
            *place = *block;
            lanes.add(block);
        }
        sum = sum.add(lanes.sum());
    }
    sum
}

#[derive(Default)]
struct Lanes {
    low: [u64; WORDS],
    high: [u64; WORDS],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, block: &[u8; BLOCK]) {
        let (words, _) = block.as_chunks::<8>();
        for ((low, high), word) in self.low.iter_mut().zip(&mut self.high).zip(words) {
            let word = u64::from_ne_bytes(*word);
            *low += word & 0xffff_ffff;
            *high += word >> 32;
        }
    }

    /// Both halves of a word weigh the same, because 2^32 leaves 1 when divided by 2^16 - 1.
    #[inline(always)]
    fn sum(self) -> Sum {
        let pairs = self.low.into_iter().zip(self.high);
        Sum(pairs.map(|(low, high)| low + high).sum())
    }
}

/// Adds up a few bytes: words, then what is left of one in halves, quarters and a last byte with a zero behind.
/// Halving costs three tests; copying the rest into a padded word costs a call of memcpy, twice the time for 20 bytes.
#[inline]
fn sum_of_few(bytes: &[u8]) -> Sum {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = words.iter().fold(Sum::ZERO, |sum, word| sum.add(Sum(u64::from_ne_bytes(*word))));
    let (half, rest) = rest.as_chunks::<4>();
    if let [half] = half {
        sum = sum.add(Sum(u64::from(u32::from_ne_bytes(*half))));
    }
    let (quarter, rest) = rest.as_chunks::<2>();
    if let [quarter] = quarter {
        sum = sum.add(Sum(u64::from(u16::from_ne_bytes(*quarter))));
    }
    if let [last] = rest {
        sum = sum.add(Sum(u64::from(u16::from_ne_bytes([*last, 0]))));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;

    /// The definition, a word at a time (RFC 1071, section 1).
    fn slow(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..3000),
            prop::collection::vec(any::<u8>(), 0..300),
            prop::collection::vec(Just(0xff), 0..3000),
            prop::collection::vec(prop_oneof![Just(0), Just(0xff)], 0..300),
        ]
    }

    proptest! {
        #[test]
        fn the_fast_sum_is_the_slow_one(bytes in some_bytes(), skipped in 0..70_usize) {
            let bytes = bytes.get(skipped..).unwrap_or_default();
            prop_assert_eq!(Sum::of(bytes).fold(), slow(bytes));
            let mut copied = vec![0; bytes.len()];
            prop_assert_eq!(copy_and_sum(bytes, &mut copied).fold(), slow(bytes));
            prop_assert_eq!(copied, bytes);
        }

        #[test]
        fn pieces_combine_at_any_place_and_in_any_order(bytes in some_bytes(), cuts in prop::array::uniform3(0..3000_usize)) {
            let mut cuts = cuts.map(|cut| cut.min(bytes.len()));
            cuts.sort_unstable();
            let borders = [0, cuts[0], cuts[1], cuts[2], bytes.len()];
            let piece = |sum: Sum, index: usize| {
                sum.add_at(borders[index], Sum::of(&bytes[borders[index]..borders[index + 1]]))
            };
            prop_assert_eq!((0..4).fold(Sum::ZERO, piece).fold(), slow(&bytes));
            prop_assert_eq!((0..4).rev().fold(Sum::ZERO, piece).fold(), slow(&bytes));
        }

        #[test]
        fn an_updated_checksum_is_the_one_of_the_new_bytes(
            bytes in prop::collection::vec(any::<u8>(), 20..60), place in 0..5_usize, new in any::<u32>()
        ) {
            let mut changed = bytes.clone();
            changed[place * 4..place * 4 + 4].copy_from_slice(&new.to_be_bytes());
            let was = Sum::of(&bytes[place * 4..place * 4 + 4]);
            let updated = Sum::update(Sum::of(&bytes).checksum(), was, Sum::of(&new.to_be_bytes()));
            prop_assert_eq!(updated, Sum::of(&changed).checksum());
        }

        #[test]
        fn what_is_taken_out_is_out(bytes in prop::collection::vec(any::<u8>(), 4..100), even in 0..2_usize) {
            // A byte that is not zero keeps the sum off the place where the two zeros differ.
            let bytes = [&bytes[..], &[1]].concat();
            let left = Sum::of(&bytes).without(Sum::of(&bytes[..even * 2]));
            prop_assert_eq!(left.fold() % 0xffff, slow(&bytes[even * 2..]) % 0xffff);
        }

        #[test]
        fn numbers_sum_like_their_bytes(a in any::<u16>(), b in any::<u32>(), c in any::<u64>(), d in any::<u128>()) {
            let bytes = [&a.to_be_bytes()[..], &b.to_be_bytes(), &c.to_be_bytes(), &d.to_be_bytes()].concat();
            let sum = Sum::ZERO.add_u16(a).add_u32(b).add_u64(c).add_u128(d);
            prop_assert_eq!(sum.fold(), slow(&bytes));
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 1071, section 3, and RFC 1624, section 4.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).fold(), 0xddf2);
        assert_eq!(Sum::update(0xdd2f, Sum::ZERO.add_u16(0x5555), Sum::ZERO.add_u16(0x3285)), 0x0000);
    }

    #[test]
    fn long_sums_do_not_overflow() {
        // More blocks of ones than the lanes take at a time.
        let bytes = vec![0xff; (BLOCKS_MAX + 2) * BLOCK];
        assert_eq!((Sum::of(&bytes).fold(), Sum::of(&[]).fold()), (0xffff, 0));
        assert_eq!(Sum(u64::MAX).add(Sum(u64::MAX)).fold(), 0xffff);
        assert_eq!(Sum(u64::MAX - 1).fold(), 0xfffe_u16.swap_bytes());
    }

    #[test]
    fn pseudo_headers() {
        let v4 = [10, 0, 0, 1, 10, 0, 0, 2, 0, 17, 0, 12];
        let (source, destination) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        assert_eq!(Sum::pseudo(source, destination, IpProtocol::UDP, 12).fold(), slow(&v4));
        let (source, destination) = (Ipv6Addr::new(0xfe80, 1, 2, 3, 4, 5, 6, 7), Ipv6Addr::LOCALHOST);
        let v6 = [&source.octets()[..], &destination.octets(), &70000_u32.to_be_bytes(), &[0, 0, 0, 6]].concat();
        assert_eq!(Sum::pseudo(source.into(), destination.into(), IpProtocol::TCP, 70000).fold(), slow(&v6));
    }

    #[test]
    #[should_panic(expected = "two IP versions")]
    fn no_packet_has_two_versions() {
        Sum::pseudo(Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into(), IpProtocol::UDP, 8);
    }
}
