//! An address together with the network it lives on: what an interface is given, and what a route leads to.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// An IP address and the length of its network's prefix in bits (RFC 4632, section 3.1), written `10.0.0.2/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// An address on a network whose prefix has that many bits.
    ///
    /// # Errors
    /// [`CidrError::Prefix`] if the address has fewer bits than that.
    pub fn new(address: impl Into<IpAddr>, prefix: u8) -> Result<Cidr, CidrError> {
        let address = address.into();
        if prefix > bits(address) {
            return Err(CidrError::Prefix { maximum: bits(address), got: prefix.to_string() });
        }
        Ok(Cidr { address, prefix })
    }

    /// A network of this one address.
    pub fn host(address: impl Into<IpAddr>) -> Cidr {
        let address = address.into();
        Cidr { address, prefix: bits(address) }
    }

    /// The address, its bits beyond the prefix included.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// Bits of the prefix.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether `other` is on this network. Addresses of the other IP version never are.
    pub fn contains(self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()) & self.mask_v4() == 0,
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()) & self.mask_v6() == 0,
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// The network itself: the same prefix, the other bits zero.
    pub fn network(self) -> Cidr {
        let address = match self.address {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & self.mask_v4())),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & self.mask_v6())),
        };
        Cidr { address, prefix: self.prefix }
    }

    /// The address of everyone on the network: the bits beyond the prefix all ones. IPv6 has none, nor have IPv4
    /// networks of one or two addresses (RFC 3021).
    pub fn broadcast(self) -> Option<Ipv4Addr> {
        match self.address {
            IpAddr::V4(address) if self.prefix < 31 => Some(Ipv4Addr::from_bits(address.to_bits() | !self.mask_v4())),
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    /// Ones where the prefix is. A shift by all 32 bits is how a prefix of none comes out as zero.
    fn mask_v4(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0)
    }

    fn mask_v6(self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0)
    }
}

/// Bits of an address.
fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.prefix)
    }
}

/// What is wrong with an address and prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CidrError {
    /// There is no slash, so no prefix.
    Slash {
        /// The text as it came.
        got: String,
    },
    /// What stands before the slash is no IP address.
    Address {
        /// What stands there.
        got: String,
    },
    /// The prefix is no number, or the address has not that many bits.
    Prefix {
        /// Bits of the address.
        maximum: u8,
        /// What stands there.
        got: String,
    },
}

impl fmt::Display for CidrError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CidrError::Slash { got } => {
                write!(out, "expected an address and a prefix length such as 10.0.0.2/24, got {got:?}")
            }
            CidrError::Address { got } => write!(out, "expected an IP address before the slash, got {got:?}"),
            CidrError::Prefix { maximum, got } => {
                write!(out, "expected a prefix length of 0 to {maximum} bits, got {got:?}")
            }
        }
    }
}

impl core::error::Error for CidrError {}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let (address, prefix) = text.split_once('/').ok_or_else(|| CidrError::Slash { got: text.to_owned() })?;
        let address: IpAddr = address.parse().map_err(|_| CidrError::Address { got: address.to_owned() })?;
        let wrong = || CidrError::Prefix { maximum: bits(address), got: prefix.to_owned() };
        // The number parser alone would take "+8".
        if !prefix.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(wrong());
        }
        Cidr::new(address, prefix.parse().map_err(|_| wrong())?)
    }
}

impl TryFrom<String> for Cidr {
    type Error = CidrError;

    fn try_from(text: String) -> Result<Cidr, CidrError> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> String {
        cidr.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn text_returns_and_errors_say_expected_and_got() {
        for text in ["10.0.0.2/24", "0.0.0.0/0", "fe80::1/64", "::/0", "192.0.2.1/32"] {
            assert_eq!(cidr(text).to_string(), text);
        }
        for (wrong, message) in [
            ("10.0.0.2", "expected an address and a prefix length such as 10.0.0.2/24, got \"10.0.0.2\""),
            ("10.0.0/24", "expected an IP address before the slash, got \"10.0.0\""),
            ("10.0.0.2/33", "expected a prefix length of 0 to 32 bits, got \"33\""),
            ("fe80::1/129", "expected a prefix length of 0 to 128 bits, got \"129\""),
            ("10.0.0.2/", "expected a prefix length of 0 to 32 bits, got \"\""),
            ("10.0.0.2/+8", "expected a prefix length of 0 to 32 bits, got \"+8\""),
        ] {
            assert_eq!(wrong.parse::<Cidr>().unwrap_err().to_string(), message);
        }
        assert_eq!(serde_json::to_string(&cidr("10.0.0.2/24")).unwrap(), "\"10.0.0.2/24\"");
        assert!(serde_json::from_str::<Cidr>("\"10.0.0.2/40\"").is_err());
    }

    #[test]
    fn networks_contain_their_own() {
        let net = cidr("10.1.2.3/20");
        assert!(net.contains([10, 1, 0, 0].into()) && net.contains([10, 1, 15, 255].into()));
        assert!(!net.contains([10, 1, 16, 0].into()) && !net.contains(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(net.network(), cidr("10.1.0.0/20"));
        assert_eq!(net.broadcast(), Some([10, 1, 15, 255].into()));
        assert!(cidr("0.0.0.0/0").contains([255, 1, 2, 3].into()) && cidr("::/0").contains(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(cidr("fe80::1:2/64").network(), cidr("fe80::/64"));
        assert_eq!((cidr("10.0.0.0/31").broadcast(), cidr("fe80::/64").broadcast()), (None, None));
        assert!(Cidr::host(Ipv4Addr::LOCALHOST).contains(Ipv4Addr::LOCALHOST.into()));
    }
}
