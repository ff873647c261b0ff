//! Addresses in the layouts of C: `sockaddr_in` and `sockaddr_in6` (ip(7), ipv6(7)). Inside this crate an address is a
//! value of the standard library and IPv4 is IPv4: a socket of AF_INET6 that talks to such a host sees it mapped
//! (RFC 4291, section 2.5.5.2).

use crate::errno::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The most bytes of an address that this crate writes.
pub const ADDRESS_BYTES_MAX: usize = 28;

/// The bytes of `sockaddr_in` that mean something, and of `sockaddr_in6` without and with its scope.
const IN_BYTES: usize = 16;
const IN6_BYTES_MIN: usize = 24;

/// An address as C lays it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; ADDRESS_BYTES_MAX],
    length: usize,
}

impl Name {
    /// `address` as a socket of `domain` sees it.
    pub fn new(address: SocketAddr, domain: i32) -> Name {
        let mut out = Name { bytes: [0; ADDRESS_BYTES_MAX], length: 0 };
        out.put(&(domain as u16).to_ne_bytes());
        out.put(&address.port().to_be_bytes());
        match (domain, address.ip()) {
            (libc::AF_INET6, ip) => {
                let ip = match ip {
                    IpAddr::V4(ip) if ip.is_unspecified() => Ipv6Addr::UNSPECIFIED,
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                // No flow, no scope.
                out.put(&[0; 4]);
                out.put(&ip.octets());
                out.put(&[0; 4]);
            }
            (_, IpAddr::V4(ip)) => {
                out.put(&ip.octets());
                out.put(&[0; 8]);
            }
            // A socket of AF_INET never meets one.
            (_, IpAddr::V6(_)) => out.put(&[0; 12]),
        }
        out
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What family an address says it is of.
pub(crate) fn family(bytes: &[u8]) -> Result<i32, Errno> {
    bytes.first_chunk().map(|family| i32::from(u16::from_ne_bytes(*family))).ok_or(Errno(libc::EINVAL))
}

/// The address in `bytes`, for a socket of `domain`.
///
/// # Errors
/// EINVAL if it is too short; EAFNOSUPPORT if it is of another family; ENETUNREACH if it is of IPv6 alone, which no stack
/// has yet.
pub(crate) fn read(bytes: &[u8], domain: i32) -> Result<SocketAddr, Errno> {
    let family = family(bytes)?;
    let (Some(port), Some(rest)) = (bytes.get(2..4), bytes.get(4..)) else { return Err(Errno(libc::EINVAL)) };
    let port = u16::from_be_bytes([port[0], port[1]]);
    match (family, domain) {
        (libc::AF_INET, libc::AF_INET) if bytes.len() >= IN_BYTES => {
            let octets: [u8; 4] = *rest.first_chunk().ok_or(Errno(libc::EINVAL))?;
            Ok(SocketAddr::new(Ipv4Addr::from(octets).into(), port))
        }
        (libc::AF_INET6, libc::AF_INET6) if bytes.len() >= IN6_BYTES_MIN => {
            let octets: [u8; 16] = *rest.get(4..).and_then(|rest| rest.first_chunk()).ok_or(Errno(libc::EINVAL))?;
            let ip = Ipv6Addr::from(octets);
            match ip.to_ipv4_mapped() {
                Some(ip) => Ok(SocketAddr::new(ip.into(), port)),
                None if ip.is_unspecified() => Ok(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)),
                None => Err(Errno(libc::ENETUNREACH)),
            }
        }
        (libc::AF_INET, libc::AF_INET) | (libc::AF_INET6, libc::AF_INET6) => Err(Errno(libc::EINVAL)),
        _ => Err(Errno(libc::EAFNOSUPPORT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let address: SocketAddr = "192.0.2.1:8080".parse().expect("an address");
        let any: SocketAddr = "0.0.0.0:7".parse().expect("an address");
        for domain in [libc::AF_INET, libc::AF_INET6] {
            for address in [address, any] {
                let name = Name::new(address, domain);
                assert_eq!(read(name.as_bytes(), domain), Ok(address));
                assert_eq!(name.as_bytes().len(), if domain == libc::AF_INET { 16 } else { 28 });
            }
        }
        assert_eq!(&Name::new(address, libc::AF_INET).as_bytes()[2..8], [0x1f, 0x90, 192, 0, 2, 1]);
    }

    #[test]
    fn what_is_no_address_of_ours_says_why() {
        let name = Name::new("192.0.2.1:80".parse().expect("an address"), libc::AF_INET);
        let bytes = name.as_bytes();
        for length in 0..16 {
            assert_eq!(read(&bytes[..length], libc::AF_INET), Err(Errno(libc::EINVAL)), "{length} bytes");
        }
        assert_eq!(read(bytes, libc::AF_INET6), Err(Errno(libc::EAFNOSUPPORT)));
        let local = SocketAddr::new("::1".parse().expect("an address"), 80);
        let name = Name::new(local, libc::AF_INET6);
        assert_eq!(read(name.as_bytes(), libc::AF_INET6), Err(Errno(libc::ENETUNREACH)));
        assert_eq!(read(&name.as_bytes()[..23], libc::AF_INET6), Err(Errno(libc::EINVAL)));
    }
}
