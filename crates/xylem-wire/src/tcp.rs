//! The TCP header's fixed part. Options follow it (see [`tcp_options`](crate::tcp_options)), so its length is written
//! inside it, in words of four bytes; the flags are one value that can be asked and combined.

use crate::{Header, IpProtocol, Port, SequenceNumber, Sum, header};
use core::fmt;
use core::net::IpAddr;
use core::ops::{BitOr, BitOrAssign};
use serde::{Deserialize, Serialize};

header! {
    /// The TCP header (RFC 9293, section 3.1), options not included.
    pub struct TcpHeader {
        /// The sender's port.
        source: Port = Remote,
        /// The port the segment is for.
        destination: Port = Local,
        /// The first payload byte's place in the stream; with SYN, the number of the SYN itself.
        sequence: SequenceNumber = Data,
        /// The next byte the sender expects; means something only with ACK.
        acknowledgment: SequenceNumber = Data,
        /// Length of the header with its options, in words of four bytes: 5 to 15.
        header_words: u8 [4] = Data,
        reserved: u8 [4] = Data sent 0,
        /// What the segment is about.
        flags: TcpFlags = Data,
        /// Bytes the sender will take, not yet scaled; a number without a sign (RFC 9293 MUST-1).
        window: u16 = Data,
        /// The Internet checksum of pseudo header, header, options and payload.
        checksum: u16 = Data,
        /// Where urgent data ends, counted from `sequence`; means something only with URG.
        urgent: u16 = Data,
    }
    length = header_words * 4;
}

impl TcpHeader {
    /// [`TcpHeader::header_words`] of a header without options.
    pub const WORDS: u8 = 5;
    /// Longest header with options, in bytes: fifteen words.
    pub const LENGTH_MAX: usize = 60;
    /// Most bytes of options: what is left of the longest header.
    pub const OPTIONS_MAX: usize = TcpHeader::LENGTH_MAX - TcpHeader::LEN;

    /// The header's words where `options` bytes of options follow it.
    ///
    /// # Panics
    /// If they are not whole words or more than [`TcpHeader::OPTIONS_MAX`]: whoever built them has a bug.
    #[inline]
    pub const fn words_with(options: usize) -> u8 {
        assert!(options.is_multiple_of(4) && options <= TcpHeader::OPTIONS_MAX, "options are 0 to 10 whole words");
        TcpHeader::WORDS + (options / 4) as u8
    }

    /// The options between the fixed part and the payload, where `bytes` are those the header was parsed from.
    #[inline]
    pub fn options<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        // Fewer bytes than were parsed would be the caller's mistake; it gets what there is.
        bytes.get(TcpHeader::LEN..self.header_length().min(bytes.len())).unwrap_or_default()
    }

    /// The checksum to send, where `behind` is the sum of options and payload and `length` their bytes together with
    /// the fixed part's (RFC 9293, section 3.1).
    #[inline]
    pub fn checksum_to_send(&self, source: IpAddr, destination: IpAddr, behind: Sum, length: u32) -> u16 {
        let mut bytes = [0; TcpHeader::LEN];
        TcpHeader { checksum: 0, ..*self }.build(&mut bytes);
        Sum::pseudo(source, destination, IpProtocol::TCP, length).add(Sum::of(&bytes)).add(behind).checksum()
    }
}

/// The eight control bits of a TCP header (RFC 9293, section 3.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No flag.
    pub const NONE: TcpFlags = TcpFlags(0);
    /// The sender has sent its last byte.
    pub const FIN: TcpFlags = TcpFlags(1 << 0);
    /// The sender says where its sequence numbers start.
    pub const SYN: TcpFlags = TcpFlags(1 << 1);
    /// The connection is gone, or never was.
    pub const RST: TcpFlags = TcpFlags(1 << 2);
    /// Hand over what you have: the sender has no more for now.
    pub const PSH: TcpFlags = TcpFlags(1 << 3);
    /// The acknowledgment number means something.
    pub const ACK: TcpFlags = TcpFlags(1 << 4);
    /// The urgent pointer means something.
    pub const URG: TcpFlags = TcpFlags(1 << 5);
    /// A congestion mark arrived (RFC 3168, section 6.1).
    pub const ECE: TcpFlags = TcpFlags(1 << 6);
    /// The sender has slowed down (RFC 3168, section 6.1).
    pub const CWR: TcpFlags = TcpFlags(1 << 7);

    /// Whether every flag of `flags` is set.
    #[inline]
    pub const fn contains(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether at least one flag of `flags` is set.
    #[inline]
    pub const fn intersects(self, flags: TcpFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// These flags and those; the `|` that constants can use.
    #[inline]
    pub const fn with(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | flags.0)
    }

    /// These flags but for those.
    #[inline]
    pub const fn without(self, flags: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !flags.0)
    }
}

crate::newtype_field!(TcpFlags(u8));

impl BitOr for TcpFlags {
    type Output = TcpFlags;

    #[inline]
    fn bitor(self, flags: TcpFlags) -> TcpFlags {
        self.with(flags)
    }
}

impl BitOrAssign for TcpFlags {
    #[inline]
    fn bitor_assign(&mut self, flags: TcpFlags) {
        *self = self.with(flags);
    }
}

/// As packet dumps write them: one letter a flag, a dot for ACK, `-` for none.
impl fmt::Display for TcpFlags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: [(TcpFlags, &str); 8] = [
            (TcpFlags::FIN, "F"),
            (TcpFlags::SYN, "S"),
            (TcpFlags::RST, "R"),
            (TcpFlags::PSH, "P"),
            (TcpFlags::URG, "U"),
            (TcpFlags::ECE, "E"),
            (TcpFlags::CWR, "W"),
            (TcpFlags::ACK, "."),
        ];
        if *self == TcpFlags::NONE {
            return out.write_str("-");
        }
        for (flag, letter) in LETTERS {
            if self.contains(flag) {
                out.write_str(letter)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TcpFlags({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    /// A SYN from 10.0.0.1:40000 to 10.0.0.2:80 without options.
    const KNOWN: [u8; 20] =
        [0x9c, 0x40, 0x00, 0x50, 0x01, 0x02, 0x03, 0x04, 0, 0, 0, 0, 0x50, 0x02, 0xfa, 0xf0, 0x00, 0x00, 0, 0];

    #[test]
    fn a_known_header() {
        let header = TcpHeader::parse(&KNOWN).unwrap();
        assert_eq!((header.source, header.destination), (Port(40000), Port(80)));
        assert_eq!(header.sequence, SequenceNumber(0x0102_0304));
        assert_eq!(header.flags, TcpFlags::SYN);
        assert_eq!((header.window, header.header_length()), (64240, 20));
        let mut built = [0xff; 20];
        header.build(&mut built);
        assert_eq!(built, KNOWN);
    }

    #[test]
    fn a_sent_checksum_is_right() {
        let (source, destination) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
        let behind = Sum::of(b"hello");
        let mut header = TcpHeader::parse(&KNOWN).unwrap();
        header.checksum = header.checksum_to_send(source, destination, behind, 25);
        let mut segment = [0; 25];
        header.build(&mut segment);
        segment[20..].copy_from_slice(b"hello");
        assert!(Sum::pseudo(source, destination, IpProtocol::TCP, 25).add(Sum::of(&segment)).is_right());
    }

    #[test]
    fn reserved_bits_are_ignored() {
        let mut bytes = KNOWN;
        bytes[12] |= 0x0f;
        assert_eq!(TcpHeader::parse(&bytes), TcpHeader::parse(&KNOWN));
    }

    #[test]
    fn flags_combine_and_print() {
        let flags = TcpFlags::SYN | TcpFlags::ACK;
        assert!(flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::SYN | TcpFlags::FIN));
        assert!(flags.intersects(TcpFlags::SYN | TcpFlags::FIN) && !flags.intersects(TcpFlags::RST));
        assert_eq!(flags.without(TcpFlags::ACK), TcpFlags::SYN);
        assert_eq!((flags.to_string(), TcpFlags::NONE.to_string()), ("S.".to_owned(), "-".to_owned()));
    }

    #[test]
    fn words_count_the_options() {
        assert_eq!((TcpHeader::words_with(0), TcpHeader::words_with(12), TcpHeader::words_with(40)), (5, 8, 15));
    }
}
