//! Law 5 for every header this crate declares: what is built parses to itself, what is accepted and built again says
//! the same, what is cut short or breaks a required constant is refused, and no bytes at all make a panic.

use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use xylem_wire::*;

/// Longest run of bytes a header is read from.
const BYTES_MAX: usize = 128;

/// Splitmix64: a reproducible stream of numbers from one seed.
fn stream(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The header built into its own length, over bytes that are not zero.
fn built<H: Header>(header: &H) -> Vec<u8> {
    let mut bytes = vec![0xa5; header.header_length()];
    header.build(&mut bytes);
    assert!(bytes[H::LEN..].iter().all(|byte| *byte == 0xa5), "{}: build writes the fixed part only", H::NAME);
    bytes
}

/// A field of at most 64 bits read a bit at a time: the oracle of the loads that the declaration compiles to.
fn slow_bits(bytes: &[u8], field: &Field) -> u64 {
    let bit = |index: usize| u64::from(bytes[index / 8] >> (7 - index % 8) & 1);
    (field.bit_offset..field.bit_offset + field.bits).fold(0, |value, index| value << 1 | bit(index))
}

fn fields_cover_the_fixed_part<H: Header>() {
    let end = H::FIELDS.iter().fold(0, |end, field| {
        assert_eq!(field.bit_offset, end, "{}: {} stands where the field before it ends", H::NAME, field.name);
        end + field.bits
    });
    assert_eq!(end, H::LEN * 8, "{}", H::NAME);
}

fn built_headers_parse_to_themselves<H: Header>(seed: u64) {
    let header = H::generate(&mut stream(seed));
    let bytes = built(&header);
    assert_eq!(H::parse(&bytes).as_ref(), Ok(&header));
    let longer = [&bytes[..], &[0x5a; 9]].concat();
    assert_eq!(H::parse(&longer).as_ref(), Ok(&header), "bytes may go on beyond the header");
    for field in H::FIELDS {
        if let Some(required) = field.required {
            assert_eq!(slow_bits(&bytes, field), required, "{}: {}", H::NAME, field.name);
        }
    }
}

fn a_header_cut_anywhere_is_refused<H: Header>(seed: u64) {
    let bytes = built(&H::generate(&mut stream(seed)));
    for got in 0..bytes.len() {
        let expected = if got < H::LEN {
            Malformed::Short { expected: H::LEN, got }
        } else {
            Malformed::Length { minimum: H::LEN, maximum: got, got: bytes.len() }
        };
        assert_eq!(H::parse(&bytes[..got]), Err(expected), "{}", H::NAME);
    }
}

fn a_changed_constant_is_refused<H: Header>(seed: u64) {
    let bytes = built(&H::generate(&mut stream(seed)));
    for field in H::FIELDS {
        let Some(expected) = field.required else { continue };
        for bit in field.bit_offset..field.bit_offset + field.bits {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 0x80 >> (bit % 8);
            let got = slow_bits(&changed, field);
            let refused = Malformed::Value { field: field.name, expected, got };
            assert_eq!(H::parse(&changed), Err(refused), "{}", H::NAME);
        }
    }
}

/// Bytes of a valid header with a few bits turned over: nearly right, which is where mistakes hide.
fn nearly<H: Header>(seed: u64) -> Vec<u8> {
    let mut next = stream(seed);
    let mut bytes = built(&H::generate(&mut next));
    for _ in 0..next() % 4 {
        let bit = (next() % (bytes.len() as u64 * 8)) as usize;
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
    }
    bytes
}

fn what_is_accepted_says_the_same_when_built_again<H: Header>(bytes: &[u8]) {
    if let Ok(header) = H::parse(bytes) {
        assert!((H::LEN..=bytes.len()).contains(&header.header_length()), "{}", H::NAME);
        let mut again = bytes.to_vec();
        header.build(&mut again);
        assert_eq!(H::parse(&again).as_ref(), Ok(&header), "{}", H::NAME);
        assert_eq!(again[H::LEN..], bytes[H::LEN..], "{}", H::NAME);
    }
}

fn the_length_in_the_table_is_the_headers<H: Header>(seed: u64) {
    let header = H::generate(&mut stream(seed));
    let bytes = built(&header);
    let said = H::LENGTH.map_or(H::LEN, |length| length.bytes(slow_bits(&bytes, &H::FIELDS[length.field]).into()));
    assert_eq!(header.header_length(), said, "{}", H::NAME);
}

/// Each law holds for each header: a test a law, and a line a header to be held to all of them.
macro_rules! laws_hold_for {
    ($($header:ty),* $(,)?) => {
        #[test]
        fn the_fields_of_every_header_cover_it() {
            $( fields_cover_the_fixed_part::<$header>(); )*
        }

        proptest! {
            #[test]
            fn every_header_parses_to_what_was_built(seed in any::<u64>()) {
                $( built_headers_parse_to_themselves::<$header>(seed); )*
            }

            #[test]
            fn every_header_is_refused_when_cut(seed in any::<u64>()) {
                $( a_header_cut_anywhere_is_refused::<$header>(seed); )*
            }

            #[test]
            fn every_required_constant_is_required(seed in any::<u64>()) {
                $( a_changed_constant_is_refused::<$header>(seed); )*
            }

            #[test]
            fn every_accepted_header_says_the_same_when_built_again(
                seed in any::<u64>(), bytes in prop::collection::vec(any::<u8>(), 0..BYTES_MAX)
            ) {
                $(
                    what_is_accepted_says_the_same_when_built_again::<$header>(&bytes);
                    what_is_accepted_says_the_same_when_built_again::<$header>(&nearly::<$header>(seed));
                )*
            }

            #[test]
            fn every_length_stands_in_the_table(seed in any::<u64>()) {
                $( the_length_in_the_table_is_the_headers::<$header>(seed); )*
            }
        }
    };
}

laws_hold_for! {
    ArpHeader, EthernetHeader, IcmpEcho, IcmpHeader, IcmpParameterProblem, IcmpRedirect, IcmpTimeExceeded,
    IcmpUnreachable, Ipv4Header, Ipv6Header, SackBlock, TcpHeader, UdpHeader, VnetBuffers, VnetHeader,
    Toy, Moved, EveryWidth, Counted,
}

header! {
    /// A toy with a constant, reserved bits, and a field that crosses a byte's border.
    struct Toy {
        magic: u8 = Data == 0x58,
        small: u8 [3] = Data,
        crossing: u16 [10] = Path,
        reserved: u8 [3] = Data sent 0b101,
        port: Port = Local,
    }
}

header! {
    /// The toy with its port moved to the front and its crossing field behind the reserved bits.
    struct Moved {
        port: Port = Local,
        magic: u8 = Data == 0x58,
        small: u8 [3] = Data,
        reserved: u8 [3] = Data sent 0b101,
        crossing: u16 [10] = Path,
    }
}

header! {
    /// Whole bytes, odd widths and every type of field.
    struct EveryWidth {
        flag: bool = Data,
        seven: u8 [7] = Data,
        wide: u64 [63] = Data,
        last: bool = Data,
        three_bytes: u32 [24] = Data,
        a: u8 = Data,
        b: u16 = Data,
        c: u32 = Data,
        d: u64 = Data,
        e: u128 = Data,
        little: LittleU16 = Data,
        v4: Ipv4Addr = Data,
        v6: Ipv6Addr = Data,
        ethernet: EthernetAddress = Data,
        odd_front: u8 [4] = Data,
        sequence: SequenceNumber = Data,
        offset: FragmentOffset = Data,
        ecn: Ecn = Data,
        odd_back: u8 [5] = Data,
    }
}

header! {
    /// A count too wide for its product to fit a word, with a constant part.
    struct Counted {
        units: u64 [16] = Data,
        rest: u64 [16] = Data,
    }
    length = units * 8 + 8;
}

header! {
    /// A count that no product should overflow on.
    struct Enormous {
        units: u64 = Data,
    }
    length = units * 4;
}

#[test]
fn a_moved_field_moves_everywhere_at_once() {
    let toy = Toy { small: 0b110, crossing: 0b10_1100_1101, port: Port(0x1234) };
    let moved = Moved { port: toy.port, small: toy.small, crossing: toy.crossing };
    assert_eq!(built(&toy), [0x58, 0b1101_0110, 0b0110_1101, 0x12, 0x34]);
    assert_eq!(built(&moved), [0x12, 0x34, 0x58, 0b1101_0110, 0b1100_1101]);

    let place = |fields: &[Field], name| fields.iter().find(|field| field.name == name).map(|field| field.bit_offset);
    assert_eq!((place(Toy::FIELDS, "port"), place(Moved::FIELDS, "port")), (Some(24), Some(0)));
    assert_eq!((place(Toy::FIELDS, "crossing"), place(Moved::FIELDS, "crossing")), (Some(11), Some(30)));
    let values = |fields: &[Field], bytes: &[u8]| {
        let mut values: Vec<_> = fields.iter().map(|field| (field.name, slow_bits(bytes, field))).collect();
        values.sort_unstable();
        values
    };
    assert_eq!(values(Toy::FIELDS, &built(&toy)), values(Moved::FIELDS, &built(&moved)));
    assert_eq!(Toy::parse(&built(&moved)), Err(Malformed::Value { field: "magic", expected: 0x58, got: 0x12 }));
}

#[test]
fn the_table_holds_what_was_declared() {
    let expected = [
        Field { name: "magic", bit_offset: 0, bits: 8, role: Role::Data, required: Some(0x58) },
        Field { name: "small", bit_offset: 8, bits: 3, role: Role::Data, required: None },
        Field { name: "crossing", bit_offset: 11, bits: 10, role: Role::Path, required: None },
        Field { name: "reserved", bit_offset: 21, bits: 3, role: Role::Data, required: None },
        Field { name: "port", bit_offset: 24, bits: 16, role: Role::Local, required: None },
    ];
    assert_eq!((Toy::NAME, Toy::LEN, Toy::FIELDS, Toy::LENGTH), ("Toy", 5, &expected[..], None));
    assert_eq!(Ipv4Header::LENGTH, Some(VariableLength { field: 1, unit: 4, more: 0 }));
    assert_eq!(Counted::LENGTH, Some(VariableLength { field: 0, unit: 8, more: 8 }));
}

#[test]
fn the_known_headers_are_as_long_as_their_standards_say() {
    let lengths =
        [EthernetHeader::LEN, ArpHeader::LEN, Ipv4Header::LEN, Ipv6Header::LEN, UdpHeader::LEN, TcpHeader::LEN];
    assert_eq!(lengths, [14, 28, 20, 40, 8, 20]);
    let bodies = [IcmpEcho::LEN, IcmpUnreachable::LEN, IcmpTimeExceeded::LEN, IcmpParameterProblem::LEN];
    assert_eq!((IcmpHeader::LEN, bodies), (4, [4; 4]));
    assert_eq!((VnetHeader::LEN, VnetBuffers::LEN), (10, 2));
}

#[test]
fn the_demux_keys_of_udp_are_its_ports() {
    let keys: Vec<_> = UdpHeader::FIELDS.iter().filter(|field| field.role != Role::Data).collect();
    assert_eq!(
        keys.iter().map(|field| (field.name, field.role)).collect::<Vec<_>>(),
        [("source", Role::Remote), ("destination", Role::Local)]
    );
}

#[test]
fn a_length_is_the_count_times_its_unit_and_some_more() {
    assert_eq!(Counted { units: 3, rest: 0 }.header_length(), 32);
    let mut bytes = [0; 32];
    bytes[1] = 3;
    assert_eq!(Counted::parse(&bytes), Ok(Counted { units: 3, rest: 0 }));
    assert_eq!(Counted::parse(&bytes[..31]), Err(Malformed::Length { minimum: 4, maximum: 31, got: 32 }));
}

#[test]
fn no_count_overflows_a_length() {
    for units in [0, 1, 2, 1 << 62, u64::MAX] {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&units.to_be_bytes());
        let parsed = Enormous::parse(&bytes);
        assert_eq!(parsed.is_ok(), units == 2, "{parsed:?}");
    }
}

#[test]
fn a_source_that_repeats_itself_still_generates() {
    for number in [0, 1, 2, u64::MAX] {
        let header = Ipv4Header::generate(&mut || number);
        assert_eq!(Ipv4Header::parse(&built(&header)), Ok(header));
    }
}

#[test]
#[should_panic(expected = "UdpHeader was built into too few bytes: expected 8, got 7")]
fn building_into_too_few_bytes_is_our_bug() {
    UdpHeader { source: Port(1), destination: Port(2), length: 8, checksum: 0 }.build(&mut [0; 7]);
}

#[test]
#[should_panic(expected = "a value does not fit its field of 3 bits: 8")]
fn a_value_too_wide_for_its_field_is_our_bug() {
    Toy { small: 8, crossing: 0, port: Port(0) }.build(&mut [0; 5]);
}

/// Headers written by hand with a fault each, to show that the law's checks notice.
mod planted {
    use super::*;
    use std::panic::catch_unwind;

    /// A header that is like `H` but for its faults.
    macro_rules! faulty {
        ($name:ident like $real:ty, parse = $parse:expr, build = $build:expr) => {
            #[derive(Clone, Debug, PartialEq)]
            struct $name($real);

            impl Header for $name {
                const NAME: &'static str = stringify!($name);
                const LEN: usize = <$real as Header>::LEN;
                const FIELDS: &'static [Field] = <$real as Header>::FIELDS;
                fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
                    let parse: fn(&[u8]) -> Result<$real, Malformed> = $parse;
                    parse(bytes).map($name)
                }
                fn build(&self, bytes: &mut [u8]) {
                    let build: fn(&$real, &mut [u8]) = $build;
                    build(&self.0, bytes);
                }
                fn header_length(&self) -> usize {
                    self.0.header_length()
                }
                fn generate(next: &mut dyn FnMut() -> u64) -> Self {
                    $name(<$real as Header>::generate(next))
                }
            }
        };
    }

    faulty!(Honest like UdpHeader, parse = UdpHeader::parse, build = UdpHeader::build);
    faulty!(ForgetsTheChecksum like UdpHeader, parse = UdpHeader::parse, build = |header, bytes| {
        UdpHeader { checksum: 0, ..*header }.build(bytes);
    });
    faulty!(SwapsThePorts like UdpHeader, parse = |bytes| {
        let header = UdpHeader::parse(bytes)?;
        Ok(UdpHeader { source: header.destination, destination: header.source, ..header })
    }, build = UdpHeader::build);
    faulty!(ReadsPastTheEnd like UdpHeader, parse = |bytes| {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().max(UdpHeader::LEN), 0);
        UdpHeader::parse(&padded)
    }, build = UdpHeader::build);
    faulty!(TakesAnyVersion like Ipv4Header, parse = |bytes| {
        let mut mended = bytes.to_vec();
        if let Some(first) = mended.first_mut() {
            *first = 0x40 | *first & 0x0f;
        }
        Ipv4Header::parse(&mended)
    }, build = Ipv4Header::build);

    fn notices(check: fn(u64)) -> bool {
        (0..20).any(|seed| catch_unwind(|| check(seed)).is_err())
    }

    #[test]
    fn a_faulty_header_is_noticed_and_an_honest_one_is_not() {
        assert!(!notices(built_headers_parse_to_themselves::<Honest>));
        assert!(!notices(a_header_cut_anywhere_is_refused::<Honest>));
        assert!(notices(built_headers_parse_to_themselves::<ForgetsTheChecksum>));
        assert!(notices(built_headers_parse_to_themselves::<SwapsThePorts>));
        assert!(notices(a_header_cut_anywhere_is_refused::<ReadsPastTheEnd>));
        assert!(notices(a_changed_constant_is_refused::<TakesAnyVersion>));
        let accepted =
            |seed| what_is_accepted_says_the_same_when_built_again::<ForgetsTheChecksum>(&nearly::<UdpHeader>(seed));
        assert!(notices(accepted));
    }
}
