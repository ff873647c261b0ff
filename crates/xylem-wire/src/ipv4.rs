//! The IPv4 header. Its length is written inside it, in words of four bytes, because options may follow the fixed part;
//! they are walked by [`Ipv4Options`]. The fields by which a packet is cut and put together again
//! are values with units, so that nobody adds eighths to bytes.

use crate::{Ecn, FieldValue, Header, IpProtocol, Ipv4Options, Malformed, Sum, header};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

header! {
    /// The IPv4 header (RFC 791, section 3.1), options not included.
    pub struct Ipv4Header {
        version: u8 [4] = Data == 4,
        /// Length of the header with its options, in words of four bytes: 5 to 15.
        header_words: u8 [4] = Data,
        /// Differentiated services code point (RFC 2474, section 3).
        dscp: u8 [6] = Data,
        /// What routers say of their queues.
        ecn: Ecn = Data,
        /// Bytes of the packet, header included.
        total_length: u16 = Data,
        /// Common to all fragments of one packet (RFC 6864).
        identification: u16 = Data,
        reserved: bool = Data sent 0,
        /// Routers may not cut the packet.
        dont_fragment: bool = Data,
        /// This fragment is not the packet's last.
        more_fragments: bool = Data,
        /// Where this fragment stands in the packet.
        fragment_offset: FragmentOffset = Data,
        /// Hops the packet may still take.
        time_to_live: u8 = Data,
        /// What the packet carries.
        protocol: IpProtocol = Next,
        /// The Internet checksum of the header, options included.
        checksum: u16 = Data,
        /// Who sent it.
        source: Ipv4Addr = Remote,
        /// Whom it is for.
        destination: Ipv4Addr = Local,
    }
    length = header_words * 4;
}

impl Ipv4Header {
    /// [`Ipv4Header::header_words`] of a header without options.
    pub const WORDS: u8 = 5;
    /// Longest header with options, in bytes: fifteen words.
    pub const LENGTH_MAX: usize = 60;
    /// Packets up to this many bytes must be taken by every host (RFC 791, section 3.1).
    pub const PACKET_TAKEN_BY_ALL: usize = 576;
    /// Smallest MTU of a link that carries IPv4, in bytes (RFC 791, section 3.2).
    pub const MTU_MIN: usize = 68;

    /// Whether this is a part of a packet that was cut.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != FragmentOffset::FIRST
    }

    /// Bytes of payload behind the header, where `available` bytes arrived in all, header included. The link may have
    /// padded the packet; what lies beyond its total length is not part of it.
    ///
    /// # Errors
    /// [`Malformed::Length`] if the packet claims less than its own header, or more than arrived.
    #[inline]
    pub fn payload_length(&self, available: usize) -> Result<usize, Malformed> {
        let claimed = usize::from(self.total_length);
        if claimed < self.header_length() || claimed > available {
            return Err(Malformed::Length { minimum: self.header_length(), maximum: available, got: claimed });
        }
        Ok(claimed - self.header_length())
    }

    /// The options between the fixed part and the payload, where `bytes` are those the header was parsed from. If they
    /// end before the options do, so does the walk.
    pub fn options<'a>(&self, bytes: &'a [u8]) -> Ipv4Options<'a> {
        let end = self.header_length().min(bytes.len());
        Ipv4Options::new(bytes.get(Ipv4Header::LEN..end).unwrap_or_default())
    }

    /// The checksum to send for this header followed by `options`.
    #[inline]
    pub fn checksum_to_send(&self, options: &[u8]) -> u16 {
        let mut bytes = [0; Ipv4Header::LEN];
        Ipv4Header { checksum: 0, ..*self }.build(&mut bytes);
        Sum::of(&bytes).add(Sum::of(options)).checksum()
    }
}

/// Where a fragment stands in its packet, in units of eight bytes; 13 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct FragmentOffset(u16);

impl FragmentOffset {
    /// The front of the packet.
    pub const FIRST: FragmentOffset = FragmentOffset(0);
    /// Bytes in a unit.
    pub const UNIT: usize = 8;
    /// The last place a fragment can stand, in units.
    pub const UNITS_MAX: u16 = (1 << 13) - 1;

    /// The offset of that many units of eight bytes; `None` beyond [`FragmentOffset::UNITS_MAX`].
    pub const fn of_units(units: u16) -> Option<FragmentOffset> {
        if units <= FragmentOffset::UNITS_MAX { Some(FragmentOffset(units)) } else { None }
    }

    /// The offset of that many bytes; `None` if they are not whole units or too many.
    pub const fn of_bytes(bytes: usize) -> Option<FragmentOffset> {
        let units = bytes / FragmentOffset::UNIT;
        if !bytes.is_multiple_of(FragmentOffset::UNIT) || units > FragmentOffset::UNITS_MAX as usize {
            return None;
        }
        Some(FragmentOffset(units as u16))
    }

    /// In units of eight bytes.
    pub const fn units(self) -> u16 {
        self.0
    }

    /// In bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize * FragmentOffset::UNIT
    }
}

/// For serde, which may read what we did not write.
impl TryFrom<u16> for FragmentOffset {
    type Error = &'static str;

    fn try_from(units: u16) -> Result<FragmentOffset, &'static str> {
        FragmentOffset::of_units(units).ok_or("expected a fragment offset of at most 8191 units, got more")
    }
}

impl From<FragmentOffset> for u16 {
    fn from(offset: FragmentOffset) -> u16 {
        offset.units()
    }
}

impl FieldValue for FragmentOffset {
    const BITS: usize = 13;

    #[inline(always)]
    fn from_bits(bits: u128) -> FragmentOffset {
        FragmentOffset(bits as u16 & FragmentOffset::UNITS_MAX)
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        u128::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first packet of a ping: 84 bytes from 192.168.0.1 to 192.168.0.199, as a capture shows it.
    const KNOWN: [u8; 20] =
        [0x45, 0x00, 0x00, 0x54, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x01, 0x9c, 0x4a, 192, 168, 0, 1, 192, 168, 0, 199];

    #[test]
    fn a_known_header() {
        let header = Ipv4Header::parse(&KNOWN).unwrap();
        assert_eq!(header.total_length, 84);
        assert_eq!(header.protocol, IpProtocol::ICMP);
        assert!(header.dont_fragment && !header.is_fragment());
        assert_eq!(header.destination, Ipv4Addr::new(192, 168, 0, 199));
        assert_eq!(header.checksum, header.checksum_to_send(&[]));
        assert!(Sum::of(&KNOWN).is_right());
        let mut built = [0; 20];
        header.build(&mut built);
        assert_eq!(built, KNOWN);
    }

    #[test]
    fn the_evil_bit_is_ignored_and_never_sent() {
        let mut evil = KNOWN;
        evil[6] |= 0x80;
        let header = Ipv4Header::parse(&evil).unwrap();
        let mut built = [0; 20];
        header.build(&mut built);
        assert_eq!(built, KNOWN);
    }

    #[test]
    fn a_header_length_below_the_fixed_part_or_beyond_the_bytes_is_refused() {
        let mut bytes = [KNOWN.as_slice(), &[0; 40]].concat();
        for words in 0..16 {
            bytes[0] = 0x40 | words as u8;
            let got = words * 4;
            match Ipv4Header::parse(&bytes[..40]) {
                Ok(header) => assert!((20..=40).contains(&got) && header.header_length() == got),
                Err(malformed) => {
                    assert_eq!(malformed, Malformed::Length { minimum: 20, maximum: 40, got });
                    assert!(!(20..=40).contains(&got));
                }
            }
        }
    }

    #[test]
    fn the_total_length_is_believed_only_within_what_arrived() {
        let header = Ipv4Header::parse(&KNOWN).unwrap();
        assert_eq!(header.payload_length(100), Ok(64));
        assert_eq!(header.payload_length(84), Ok(64));
        assert_eq!(header.payload_length(83), Err(Malformed::Length { minimum: 20, maximum: 83, got: 84 }));
        let short = Ipv4Header { total_length: 19, ..header };
        assert_eq!(short.payload_length(100), Err(Malformed::Length { minimum: 20, maximum: 100, got: 19 }));
    }

    #[test]
    fn offsets_know_their_unit() {
        assert_eq!(FragmentOffset::of_bytes(1480).unwrap().units(), 185);
        assert_eq!(FragmentOffset::of_bytes(1481), None);
        assert_eq!(FragmentOffset::of_bytes(65536), None);
        assert_eq!(FragmentOffset::of_units(8191).unwrap().bytes(), 65528);
        assert_eq!(FragmentOffset::of_units(8192), None);
        assert!(serde_json::from_str::<FragmentOffset>("8192").is_err());
        let fragment = Ipv4Header { fragment_offset: FragmentOffset(1), ..Ipv4Header::parse(&KNOWN).unwrap() };
        assert!(fragment.is_fragment());
    }
}
