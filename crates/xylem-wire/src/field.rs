//! What can stand in a header's field: a type that turns into so many bits and back. The bits travel as a number whose
//! most significant bit is sent first, so a field type never sees bytes, offsets or byte order. Newtypes over these
//! give each number its meaning.

use core::fmt::Debug;
use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};

/// A type that can be declared as a header's field.
///
/// Law: `to_bits(from_bits(b)) == b` for every `b` below `2^BITS`, and every such `b` is a value: what may not stand on
/// the wire is said with `== constant` in the declaration, or judged by the protocol.
pub trait FieldValue: Copy + Debug + Eq + Hash {
    /// Width in bits unless the declaration narrows it; at most 128.
    const BITS: usize;

    /// The value that these bits stand for. The caller has masked them to the field's width.
    fn from_bits(bits: u128) -> Self;

    /// The bits that stand for this value.
    fn to_bits(self) -> u128;
}

/// Unsigned numbers are their own bits.
macro_rules! number_fields {
    ($($number:ty),*) => { $(
        impl FieldValue for $number {
            const BITS: usize = <$number>::BITS as usize;

            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                bits as $number
            }

            #[inline(always)]
            fn to_bits(self) -> u128 {
                u128::from(self)
            }
        }
    )* };
}

number_fields!(u8, u16, u32, u64, u128);

/// A newtype over another field value, such as `Port(u16)`, is a field of the same width.
#[macro_export]
macro_rules! newtype_field {
    ($($newtype:ident($inner:ty)),* $(,)?) => { $(
        impl $crate::FieldValue for $newtype {
            const BITS: usize = <$inner as $crate::FieldValue>::BITS;

            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                $newtype($crate::FieldValue::from_bits(bits))
            }

            #[inline(always)]
            fn to_bits(self) -> u128 {
                $crate::FieldValue::to_bits(self.0)
            }
        }
    )* };
}

impl FieldValue for bool {
    const BITS: usize = 1;

    #[inline(always)]
    fn from_bits(bits: u128) -> Self {
        bits != 0
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        u128::from(self)
    }
}

impl FieldValue for Ipv4Addr {
    const BITS: usize = 32;

    #[inline(always)]
    fn from_bits(bits: u128) -> Self {
        Ipv4Addr::from_bits(bits as u32)
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        u128::from(Ipv4Addr::to_bits(self))
    }
}

impl FieldValue for Ipv6Addr {
    const BITS: usize = 128;

    #[inline(always)]
    fn from_bits(bits: u128) -> Self {
        Ipv6Addr::from_bits(bits)
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        Ipv6Addr::to_bits(self)
    }
}

/// A 16-bit number sent least significant byte first, as in the virtio headers. It cannot be narrowed: its bits are not
/// contiguous on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LittleU16(pub u16);

impl FieldValue for LittleU16 {
    const BITS: usize = 16;

    #[inline(always)]
    fn from_bits(bits: u128) -> Self {
        LittleU16((bits as u16).swap_bytes())
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        u128::from(self.0.swap_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returns<T: FieldValue>(samples: &[u128]) {
        let mask = if T::BITS == 128 { u128::MAX } else { (1 << T::BITS) - 1 };
        for sample in samples {
            assert_eq!(T::from_bits(sample & mask).to_bits(), sample & mask);
        }
    }

    #[test]
    fn bits_return() {
        let samples = [0, 1, 0x1234_5678_9abc_def0_0fed_cba9_8765_4321, u128::MAX];
        returns::<bool>(&samples);
        returns::<u8>(&samples);
        returns::<u16>(&samples);
        returns::<u32>(&samples);
        returns::<u64>(&samples);
        returns::<u128>(&samples);
        returns::<LittleU16>(&samples);
        returns::<Ipv4Addr>(&samples);
        returns::<Ipv6Addr>(&samples);
        returns::<crate::Port>(&samples);
        returns::<crate::SequenceNumber>(&samples);
        returns::<crate::EthernetAddress>(&samples);
        returns::<crate::EtherType>(&samples);
        returns::<crate::IpProtocol>(&samples);
        returns::<crate::Ecn>(&samples);
        returns::<crate::FragmentOffset>(&samples);
        returns::<crate::TcpFlags>(&samples);
    }

    #[test]
    fn a_little_endian_number_has_its_low_byte_first() {
        assert_eq!(LittleU16(0x1234).to_bits(), 0x3412);
    }
}
