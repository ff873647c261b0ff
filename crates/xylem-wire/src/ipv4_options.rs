//! A walk over IPv4's options. Their lengths come from the peer, so each is checked before it is believed; a wrong one
//! ends the walk with an error, because nothing behind it can be found.

use crate::{Header, Malformed, header};

header! {
    /// What every option but the two single bytes begins with (RFC 791, section 3.1).
    struct OptionHeader {
        /// Which option; its top bit says that fragments carry it too.
        kind: u8 = Data,
        /// Bytes of the option, these two included.
        octets: u8 = Data,
    }
    length = octets;
}

/// The options of an IPv4 header (RFC 791, section 3.1), in wire order: each as its kind and the data behind its length.
///
/// Padding is passed over and the end of the list ends the walk. A length that cannot be yields one error, then nothing.
#[derive(Clone, Debug)]
pub struct Ipv4Options<'a> {
    rest: &'a [u8],
}

impl<'a> Ipv4Options<'a> {
    /// Ends the list; what follows is padding.
    pub const END: u8 = 0;
    /// One byte of padding between options.
    pub const NO_OPERATION: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Timestamps of the hops.
    pub const TIMESTAMP: u8 = 68;
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Routers look at the packet (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;

    /// Walks `bytes`: what stands between the fixed part and the payload.
    pub fn new(bytes: &'a [u8]) -> Ipv4Options<'a> {
        Ipv4Options { rest: bytes }
    }
}

impl<'a> Iterator for Ipv4Options<'a> {
    type Item = Result<(u8, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while let [Self::NO_OPERATION, rest @ ..] = self.rest {
            self.rest = rest;
        }
        if matches!(self.rest, [] | [Self::END, ..]) {
            self.rest = &[];
            return None;
        }
        match OptionHeader::parse(self.rest) {
            Ok(option) => {
                // Parse has held the option's length against the bytes that are left.
                let (option_bytes, rest) = self.rest.split_at(option.header_length());
                self.rest = rest;
                Some(Ok((option.kind, &option_bytes[OptionHeader::LEN..])))
            }
            Err(malformed) => {
                self.rest = &[];
                Some(Err(malformed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> Vec<Result<(u8, &[u8]), Malformed>> {
        Ipv4Options::new(bytes).collect()
    }

    #[test]
    fn options_come_in_order_and_padding_does_not() {
        let bytes = [1, 148, 4, 0, 0, 1, 7, 3, 4, 0, 99];
        assert_eq!(walk(&bytes), [Ok((148, &[0, 0][..])), Ok((7, &[4][..]))]);
        assert_eq!(walk(&[]), []);
        assert_eq!(walk(&[1, 1, 1]), []);
    }

    #[test]
    fn an_impossible_length_is_one_error_and_the_end() {
        for (bytes, malformed) in [
            (&[7, 0, 1, 1][..], Malformed::Length { minimum: 2, maximum: 4, got: 0 }),
            (&[7, 1, 1, 1][..], Malformed::Length { minimum: 2, maximum: 4, got: 1 }),
            (&[7, 5, 1, 1][..], Malformed::Length { minimum: 2, maximum: 4, got: 5 }),
            (&[7][..], Malformed::Short { expected: 2, got: 1 }),
        ] {
            assert_eq!(walk(bytes), [Err(malformed)]);
        }
    }
}
