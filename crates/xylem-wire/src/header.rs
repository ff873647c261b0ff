//! A header is declared once. From the declaration come the struct, parse, build, the field table (demultiplexing keys,
//! template checks, traces, dissectors) and a generator of valid headers, so that no byte offset exists outside it.
//! Everything that depends on a position is a constant: parse and build compile to plain loads and stores.

use crate::Malformed;
use core::fmt::Debug;

/// What a field means to whoever demultiplexes, as seen by the receiver of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Names our end: part of the key of enables and paths.
    Local,
    /// Names the peer's end: part of the key of paths.
    Remote,
    /// Names the protocol above.
    Next,
    /// Names the path itself: an application identifier learnt in the open exchange (direct application access).
    Path,
    /// Means nothing to demultiplexing.
    Data,
}

/// One line of a header declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The field's name in the declaration.
    pub name: &'static str,
    /// Bits before this field, counted from the header's first bit on the wire.
    pub bit_offset: usize,
    /// Width in bits.
    pub bits: usize,
    /// What demultiplexing makes of it.
    pub role: Role,
    /// The constant that must stand here, if the declaration requires one.
    pub required: Option<u64>,
}

/// How long a header with a variable part is, as its own bytes say: the value of a field, times a unit, and some more.
///
/// It is data and not code so that a demultiplexing plan, in whatever language it runs, can advance by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariableLength {
    /// Which of the header's [`Header::FIELDS`] counts.
    pub field: usize,
    /// Bytes that each count stands for.
    pub unit: usize,
    /// Bytes that are not counted.
    pub more: usize,
}

impl VariableLength {
    /// Bytes of a header whose counting field holds `count`. A peer wrote the count, so the arithmetic saturates: what
    /// cannot be is refused by parse for being beyond the bytes.
    #[inline(always)]
    pub const fn bytes(self, count: u128) -> usize {
        let count = if count > usize::MAX as u128 { usize::MAX } else { count as usize };
        count.saturating_mul(self.unit).saturating_add(self.more)
    }
}

/// Values of bytes at the front of a message; made by [`header!`](crate::header!), which derives everything from one
/// declaration.
pub trait Header: Sized + Clone + Debug + PartialEq {
    /// The name of the declared struct.
    const NAME: &'static str;
    /// Bytes of the fixed part.
    const LEN: usize;
    /// Every field in wire order, constants and reserved bits included; together they cover the fixed part exactly.
    const FIELDS: &'static [Field];
    /// Where the header's length is written, if it has a variable part.
    const LENGTH: Option<VariableLength> = None;

    /// Reads the header at the front of `bytes`, which may go on beyond it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes end too early, a required constant differs, or the length written in the header is
    /// below the fixed part or beyond the bytes.
    fn parse(bytes: &[u8]) -> Result<Self, Malformed>;

    /// Writes the fixed part: exactly [`Header::LEN`] bytes at the front of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter, or a value does not fit a field that the declaration narrowed: both are our bugs, never
    /// the peer's.
    fn build(&self, bytes: &mut [u8]);

    /// Bytes of the header with its variable part.
    #[inline(always)]
    fn header_length(&self) -> usize {
        Self::LEN
    }

    /// A random valid header from a source of random bits: built into [`Header::header_length`] bytes it parses to
    /// itself. Zeros and all-ones come up more often than chance would have it, since mistakes live there.
    fn generate(next: &mut dyn FnMut() -> u64) -> Self;
}

/// Declares a header: see [`mod@header`](mod@crate::header) for what comes of it.
///
/// Each field is `name: Type = Role`, most significant bit first, in wire order. Three additions:
///
/// - `name: Type [bits] = Role` narrows the field to so many bits.
/// - `… = Role == constant` requires a constant: build writes it and parse refuses anything else. The struct has no such
///   member, since it could only hold one value.
/// - `… = Role sent constant` is for reserved bits: build writes the constant and parse ignores what comes. The struct
///   has no such member either.
///
/// A header whose length is written inside it says so after the braces, in bytes: `length = member * unit + more;`, where
/// the last part, or the last two, may be left out (see [`VariableLength`](crate::VariableLength)).
///
/// ```
/// use xylem_wire::{Header, Port, header};
///
/// header! {
///     /// A toy.
///     pub struct Toy {
///         version: u8 [4] = Data == 1,
///         /// Length of the header in units of two bytes.
///         pairs: u8 [4] = Data,
///         reserved: u8 = Data sent 0,
///         /// Whom it is for.
///         port: Port = Local,
///     }
///     length = pairs * 2;
/// }
///
/// let toy = Toy { pairs: 2, port: Port(7) };
/// let mut bytes = [0; 4];
/// toy.build(&mut bytes);
/// assert_eq!(bytes, [0x12, 0, 0, 7]);
/// assert_eq!(Toy::parse(&bytes), Ok(toy));
/// ```
#[macro_export]
macro_rules! header {
    // The declaration. Its fields are sorted one at a time into two lists: all of them (positions), and the members of
    // the struct (those without a constant).
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident { $($fields:tt)* }
        $(length = $count:ident $(* $unit:literal $(+ $more:literal)?)?;)?
    ) => {
        $crate::header!(@sort [$(#[$meta])* $visibility struct $name] [$($count $(* $unit $(+ $more)?)?)?] [] []
            $($fields)*);
    };

    (@sort $head:tt $length:tt [$($all:tt)*] [$($members:tt)*]
        $(#[$meta:meta])* $field:ident : $type:ty $([$bits:expr])? = $role:ident == $constant:expr
        $(, $($rest:tt)*)?
    ) => {
        $crate::header!(@sort $head $length
            [$($all)* { $field ($crate::header!(@bits $type $(, $bits)?)) $role required ($constant) }]
            [$($members)*]
            $($($rest)*)?);
    };
    (@sort $head:tt $length:tt [$($all:tt)*] [$($members:tt)*]
        $(#[$meta:meta])* $field:ident : $type:ty $([$bits:expr])? = $role:ident sent $constant:expr
        $(, $($rest:tt)*)?
    ) => {
        $crate::header!(@sort $head $length
            [$($all)* { $field ($crate::header!(@bits $type $(, $bits)?)) $role sent ($constant) }]
            [$($members)*]
            $($($rest)*)?);
    };
    (@sort $head:tt $length:tt [$($all:tt)*] [$($members:tt)*]
        $(#[$meta:meta])* $field:ident : $type:ty $([$bits:expr])? = $role:ident
        $(, $($rest:tt)*)?
    ) => {
        $crate::header!(@sort $head $length
            [$($all)* { $field ($crate::header!(@bits $type $(, $bits)?)) $role member (0) }]
            [$($members)* { [$(#[$meta])*] $field $type }]
            $($($rest)*)?);
    };
    (@sort $head:tt $length:tt $all:tt $members:tt) => {
        $crate::header!(@struct $head $members);
        $crate::header!(@implement $head $length $all $members);
    };

    (@bits $type:ty) => { <$type as $crate::FieldValue>::BITS };
    (@bits $type:ty, $bits:expr) => { $bits };

    (@struct [$(#[$meta:meta])* $visibility:vis struct $name:ident]
        [$({ [$($attribute:tt)*] $member:ident $type:ty })*]
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visibility struct $name {
            $( $($attribute)* pub $member: $type, )*
        }
    };

    (@implement [$(#[$meta:meta])* $visibility:vis struct $name:ident] $length:tt
        [$({ $field:ident $bits:tt $role:ident $kind:ident $constant:tt })*]
        [$({ $attributes:tt $member:ident $type:ty })*]
    ) => {
        const _: () = {
            // A field's place in the declaration, so that positions can be looked up by name in constants. It also makes
            // two fields of one name a compile error.
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            #[derive(Clone, Copy)]
            enum Place { $($field),* }

            const BITS: &[usize] = &[$($bits),*];
            const FIXED: usize = $crate::declared::bytes_of(BITS);

            // A member's type is at least as wide as its field.
            $( assert!(BITS[Place::$member as usize] <= <$type as $crate::FieldValue>::BITS, "a field wider than its type"); )*

            #[allow(unused_variables)] // A header of nothing but reserved bits neither reads nor draws any.
            impl $crate::Header for $name {
                const NAME: &'static str = stringify!($name);
                const LEN: usize = FIXED;
                const FIELDS: &'static [$crate::Field] = &[$(
                    $crate::Field {
                        name: stringify!($field),
                        bit_offset: $crate::declared::bits_before(BITS, Place::$field as usize),
                        bits: BITS[Place::$field as usize],
                        role: $crate::Role::$role,
                        required: $crate::header!(@required $kind $constant),
                    }
                ),*];

                #[inline]
                fn parse(bytes: &[u8]) -> Result<Self, $crate::Malformed> {
                    let Some(wire) = bytes.first_chunk::<FIXED>() else {
                        return Err($crate::Malformed::Short { expected: FIXED, got: bytes.len() });
                    };
                    $( $crate::header!(@admit $kind $field $constant wire); )*
                    let header = $name {
                        $( $member: $crate::FieldValue::from_bits(
                            $crate::header!(@position load $member)(wire)
                        ), )*
                    };
                    let length = $crate::Header::header_length(&header);
                    if length < FIXED || length > bytes.len() {
                        return Err($crate::Malformed::Length { minimum: FIXED, maximum: bytes.len(), got: length });
                    }
                    Ok(header)
                }

                #[inline]
                fn build(&self, bytes: &mut [u8]) {
                    let Some(place) = bytes.first_chunk_mut::<FIXED>() else {
                        $crate::declared::no_room_to_build(stringify!($name), FIXED, bytes.len())
                    };
                    // Fields are or-ed into zeros that never leave the registers, then stored at once.
                    let mut wire = [0; FIXED];
                    $( $crate::header!(@constant $kind $field $constant wire); )*
                    $( $crate::header!(@position store $member)(
                        &mut wire,
                        $crate::FieldValue::to_bits(self.$member),
                    ); )*
                    *place = wire;
                }

                $crate::header!(@length $length);

                fn generate(next: &mut dyn FnMut() -> u64) -> Self {
                    $crate::declared::generate_valid(next, |draw| $name {
                        $( $member: $crate::FieldValue::from_bits(draw(BITS[Place::$member as usize])), )*
                    })
                }
            }
        };
    };

    // Where a field stands, as constant arguments of `load` and `store`.
    (@position $access:ident $field:ident) => {
        $crate::declared::$access::<
            { $crate::declared::bits_before(BITS, Place::$field as usize) },
            { BITS[Place::$field as usize] },
            FIXED,
        >
    };

    (@required required $constant:tt) => { Some($constant as u64) };
    (@required $kind:ident $constant:tt) => { None };

    (@admit required $field:ident $constant:tt $wire:ident) => {
        let got = $crate::header!(@position load $field)($wire) as u64;
        if got != $constant as u64 {
            return Err($crate::Malformed::Value { field: stringify!($field), expected: $constant as u64, got });
        }
    };
    (@admit $kind:ident $field:ident $constant:tt $wire:ident) => {};

    (@constant member $field:ident $constant:tt $wire:ident) => {};
    (@constant $kind:ident $field:ident $constant:tt $wire:ident) => {
        $crate::header!(@position store $field)(&mut $wire, $constant as u128);
    };

    (@length []) => {};
    (@length [$count:ident $(* $unit:literal $(+ $more:literal)?)?]) => {
        #[allow(clippy::identity_op)] // A unit of one and nothing more are what is meant where they are left out.
        const LENGTH: Option<$crate::VariableLength> = Some($crate::VariableLength {
            field: Place::$count as usize,
            unit: 1 $(* $unit)?,
            more: 0 $($(+ $more)?)?,
        });

        #[inline(always)]
        fn header_length(&self) -> usize {
            match Self::LENGTH {
                Some(length) => length.bytes($crate::FieldValue::to_bits(self.$count)),
                None => Self::LEN,
            }
        }
    };
}

/// What the expansion of [`header!`](crate::header!) calls; no part of the interface.
#[doc(hidden)]
pub mod declared {
    use super::Header;

    /// Longest variable header that [`generate_valid`] makes, in bytes.
    const GENERATED_LENGTH_MAX: usize = 4096;
    /// Drawings before [`generate_valid`] says that the declaration admits next to nothing.
    const DRAWINGS_MAX: u64 = 100_000;

    /// Bits before the field at `place`.
    pub const fn bits_before(bits: &[usize], place: usize) -> usize {
        let mut sum = 0;
        let mut index = 0;
        while index < place {
            sum += bits[index];
            index += 1;
        }
        sum
    }

    /// Bytes of a header whose fields are so wide.
    pub const fn bytes_of(bits: &[usize]) -> usize {
        let sum = bits_before(bits, bits.len());
        assert!(sum.is_multiple_of(8), "a header's fields fill whole bytes");
        sum / 8
    }

    /// The field's bits as a number. Whole bytes at a byte's border are one load; what lies across borders is gathered
    /// from at most nine bytes. All positions are constants, so each call compiles to the one case it is.
    #[inline(always)]
    pub fn load<const OFFSET: usize, const BITS: usize, const LEN: usize>(bytes: &[u8; LEN]) -> u128 {
        const { check_position(OFFSET, BITS, LEN) };
        let first = OFFSET / 8;
        match (OFFSET % 8, BITS) {
            (0, 8) => u128::from(bytes[first]),
            (0, 16) => u128::from(u16::from_be_bytes(chunk(bytes, first))),
            (0, 32) => u128::from(u32::from_be_bytes(chunk(bytes, first))),
            (0, 48) => {
                let high = u64::from(u32::from_be_bytes(chunk(bytes, first)));
                let low = u64::from(u16::from_be_bytes(chunk(bytes, first + 4)));
                u128::from(high << 16 | low)
            }
            (0, 64) => u128::from(u64::from_be_bytes(chunk(bytes, first))),
            (0, 128) => u128::from_be_bytes(chunk(bytes, first)),
            _ => {
                let last = (OFFSET + BITS - 1) / 8;
                let mut gathered = 0_u128;
                for &byte in &bytes[first..=last] {
                    gathered = gathered << 8 | u128::from(byte);
                }
                (gathered >> bits_behind(OFFSET, BITS)) & mask(BITS)
            }
        }
    }

    /// Puts the field's bits into bytes that are zero there.
    #[inline(always)]
    pub fn store<const OFFSET: usize, const BITS: usize, const LEN: usize>(bytes: &mut [u8; LEN], value: u128) {
        const { check_position(OFFSET, BITS, LEN) };
        if value & !mask(BITS) != 0 {
            too_wide(BITS, value);
        }
        let first = OFFSET / 8;
        match (OFFSET % 8, BITS) {
            (0, 8) => bytes[first] = value as u8,
            (0, 16) => bytes[first..first + 2].copy_from_slice(&(value as u16).to_be_bytes()),
            (0, 32) => bytes[first..first + 4].copy_from_slice(&(value as u32).to_be_bytes()),
            (0, 48) => bytes[first..first + 6].copy_from_slice(&(value as u64).to_be_bytes()[2..]),
            (0, 64) => bytes[first..first + 8].copy_from_slice(&(value as u64).to_be_bytes()),
            (0, 128) => bytes[first..first + 16].copy_from_slice(&value.to_be_bytes()),
            _ => {
                let last = (OFFSET + BITS - 1) / 8;
                let mut spread = value << bits_behind(OFFSET, BITS);
                for byte in bytes[first..=last].iter_mut().rev() {
                    *byte |= spread as u8;
                    spread >>= 8;
                }
            }
        }
    }

    /// Refuses, when the declaration is compiled, positions that load and store cannot serve.
    const fn check_position(offset: usize, bits: usize, len: usize) {
        assert!(bits >= 1 && bits <= 128, "a field has 1 to 128 bits");
        assert!(
            bits <= 64 || (offset.is_multiple_of(8) && bits == 128),
            "a field beyond 64 bits has 128, at a byte's border"
        );
        assert!(offset + bits <= len * 8, "a field ends with its header");
    }

    /// Bits between the field's end and the end of the byte it ends in.
    const fn bits_behind(offset: usize, bits: usize) -> usize {
        (8 - (offset + bits) % 8) % 8
    }

    const fn mask(bits: usize) -> u128 {
        u128::MAX >> (128 - bits)
    }

    #[inline(always)]
    fn chunk<const N: usize>(bytes: &[u8], first: usize) -> [u8; N] {
        // The position was checked against the header's length when the declaration was compiled.
        *bytes[first..].first_chunk().expect("a field ends with its header")
    }

    /// Out of the way of the packets: only a bug comes here.
    #[cold]
    #[inline(never)]
    pub fn no_room_to_build(name: &str, expected: usize, got: usize) -> ! {
        panic!("{name} was built into too few bytes: expected {expected}, got {got}")
    }

    /// Out of the way of the packets: only a bug comes here.
    #[cold]
    #[inline(never)]
    fn too_wide(bits: usize, value: u128) -> ! {
        panic!("a value does not fit its field of {bits} bits: {value}")
    }

    /// Draws headers until one has a possible length. Even a source that repeats itself for ever gets there: each new
    /// drawing mixes in its number.
    pub fn generate_valid<H: Header>(
        next: &mut dyn FnMut() -> u64,
        draw_header: impl Fn(&mut dyn FnMut(usize) -> u128) -> H,
    ) -> H {
        for drawing in 0..DRAWINGS_MAX {
            let header = draw_header(&mut |bits| draw(&mut || mixed(next(), drawing), bits));
            if (H::LEN..=GENERATED_LENGTH_MAX.max(H::LEN)).contains(&header.header_length()) {
                return header;
            }
        }
        panic!("{}: no valid header in {DRAWINGS_MAX} drawings; its length admits next to nothing", H::NAME)
    }

    /// `bits` random bits; one time in eight each all zeros and all ones.
    fn draw(next: &mut dyn FnMut() -> u64, bits: usize) -> u128 {
        let value = match next() % 8 {
            0 => 0,
            1 => u128::MAX,
            _ => u128::from(next()) << 64 | u128::from(next()),
        };
        value & mask(bits)
    }

    /// The drawn number itself in the first drawing, an unrelated one in each later one (the finalizer of splitmix64).
    fn mixed(value: u64, drawing: u64) -> u64 {
        if drawing == 0 {
            return value;
        }
        let mut mixed = value.wrapping_add(drawing.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
