//! Ethernet addresses: six bytes, written as hexadecimal pairs between colons.

use crate::FieldValue;
use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An Ethernet address (IEEE 802), in wire order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EthernetAddress(pub [u8; 6]);

impl EthernetAddress {
    /// Every station on the link.
    pub const BROADCAST: EthernetAddress = EthernetAddress([0xff; 6]);
    /// No address: what ARP puts where it asks.
    pub const UNSPECIFIED: EthernetAddress = EthernetAddress([0; 6]);

    /// Whether the address names a group of stations; the broadcast address is one too.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether it names every station.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }

    /// Whether it names exactly one station: neither a group nor [`EthernetAddress::UNSPECIFIED`].
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast() && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }

    /// Where frames for an IPv4 group go: 01:00:5e and the group's low 23 bits (RFC 1112, section 6.4). 32 groups share
    /// each address, so the receiver still looks at the group itself.
    pub const fn for_ipv4_group(group: Ipv4Addr) -> EthernetAddress {
        let [_, b, c, d] = group.octets();
        EthernetAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }
}

impl FieldValue for EthernetAddress {
    const BITS: usize = 48;

    #[inline(always)]
    fn from_bits(bits: u128) -> EthernetAddress {
        let [_, _, a, b, c, d, e, f] = (bits as u64).to_be_bytes();
        EthernetAddress([a, b, c, d, e, f])
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        let [a, b, c, d, e, f] = self.0;
        u128::from(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
}

impl fmt::Display for EthernetAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// A text that is no Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetAddressError {
    /// The text as it came.
    pub got: String,
}

impl fmt::Display for EthernetAddressError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "expected an Ethernet address such as 02:00:00:00:00:01, got {:?}", self.got)
    }
}

impl core::error::Error for EthernetAddressError {}

impl FromStr for EthernetAddress {
    type Err = EthernetAddressError;

    fn from_str(text: &str) -> Result<EthernetAddress, EthernetAddressError> {
        let wrong = || EthernetAddressError { got: text.to_owned() };
        let mut address = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut address {
            let pair = pairs.next().ok_or_else(wrong)?;
            // from_str_radix alone would take "+1" for a pair.
            if pair.len() != 2 || !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        if pairs.next().is_some() {
            return Err(wrong());
        }
        Ok(EthernetAddress(address))
    }
}

/// Text where people read it, six bytes where they do not, as serde does for the standard library's addresses.
impl Serialize for EthernetAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for EthernetAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EthernetAddress, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            Ok(EthernetAddress(<[u8; 6]>::deserialize(deserializer)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: EthernetAddress = EthernetAddress([0x02, 0, 0, 0, 0xab, 0x01]);

    #[test]
    fn text_returns_and_other_text_is_refused() {
        assert_eq!(SAMPLE.to_string(), "02:00:00:00:ab:01");
        assert_eq!("02:00:00:00:AB:01".parse(), Ok(SAMPLE));
        for wrong in
            ["", "02:00:00:00:ab", "02:00:00:00:ab:01:02", "2:0:0:0:ab:1", "02:00:00:00:ab:+1", "02-00-00-00-ab-01"]
        {
            let error = wrong.parse::<EthernetAddress>().unwrap_err();
            assert_eq!(error, EthernetAddressError { got: wrong.to_owned() });
        }
        assert_eq!(serde_json::to_string(&SAMPLE).unwrap(), "\"02:00:00:00:ab:01\"");
        assert_eq!(serde_json::from_str::<EthernetAddress>("\"02:00:00:00:ab:01\"").unwrap(), SAMPLE);
    }

    #[test]
    fn kinds_of_address() {
        assert!(SAMPLE.is_unicast() && !SAMPLE.is_multicast() && !SAMPLE.is_broadcast());
        assert!(EthernetAddress::BROADCAST.is_multicast() && EthernetAddress::BROADCAST.is_broadcast());
        assert!(!EthernetAddress::UNSPECIFIED.is_unicast());
        let group = EthernetAddress::for_ipv4_group(Ipv4Addr::new(239, 255, 1, 2));
        assert_eq!(group, EthernetAddress([0x01, 0x00, 0x5e, 0x7f, 1, 2]));
        assert!(group.is_multicast() && !group.is_broadcast());
    }
}
