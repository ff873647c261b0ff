//! The ioctls on interfaces and TAP descriptors (netdevice(7), the kernel's Documentation/networking/tuntap.rst), a
//! function each, so that no request can be paired with the wrong kind of argument.
#![allow(unsafe_code)]

use super::checked;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The bytes an interface name takes in a request, its ending zero included.
pub(crate) const NAME_BYTES: usize = libc::IFNAMSIZ;

/// An interface's name as the kernel takes it: checked, zero at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceName([u8; NAME_BYTES]);

impl InterfaceName {
    /// The loopback interface.
    pub(crate) const LOOPBACK: InterfaceName = {
        let mut bytes = [0; NAME_BYTES];
        (bytes[0], bytes[1]) = (b'l', b'o');
        InterfaceName(bytes)
    };

    /// The name, or `None` if it does not fit or holds what the kernel refuses (`/`, spaces, zero).
    pub(crate) fn new(name: &str) -> Option<InterfaceName> {
        let legal = |byte: u8| byte != b'/' && byte != b':' && byte != 0 && !byte.is_ascii_whitespace();
        if name.len() >= NAME_BYTES || name == "." || name == ".." || !name.bytes().all(legal) {
            return None;
        }
        let mut bytes = [0; NAME_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(InterfaceName(bytes))
    }
}

impl std::fmt::Display for InterfaceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        formatter.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

/// `struct ifreq`: a name and a union, kept as bytes. The union's largest member, `struct ifmap`, has 24 bytes; on
/// 32-bit machines the kernel reads and writes fewer.
#[repr(C, align(8))]
struct Request {
    name: InterfaceName,
    value: [u8; 24],
}

const _: () = assert!(size_of::<Request>() >= size_of::<libc::ifreq>(), "the kernel may write the whole request");

impl Request {
    fn new(name: InterfaceName) -> Request {
        Request { name, value: [0; 24] }
    }

    fn with_short(mut self, value: i16) -> Request {
        self.value[..2].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn with_int(mut self, value: i32) -> Request {
        self.value[..4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn short(&self) -> i16 {
        i16::from_ne_bytes([self.value[0], self.value[1]])
    }

    fn int(&self) -> i32 {
        i32::from_ne_bytes([self.value[0], self.value[1], self.value[2], self.value[3]])
    }

    /// The address in the `sockaddr` that the union holds: two bytes of family, then the bytes.
    fn hardware_address(&self) -> [u8; 6] {
        let value = &self.value;
        [value[2], value[3], value[4], value[5], value[6], value[7]]
    }

    /// Hands the request to the kernel, which answers in it.
    ///
    /// # Safety
    /// `number` must be an ioctl whose argument is a pointer to `struct ifreq`.
    unsafe fn ask(&mut self, descriptor: BorrowedFd<'_>, number: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the request is at least as large and as aligned as `ifreq`, and the caller vouches for the number.
        checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), number as _, std::ptr::from_mut(self)) }).map(drop)
    }
}

/// The number the kernel knows the interface by.
pub(crate) fn index(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<u32> {
    let mut request = Request::new(name);
    // SAFETY: SIOCGIFINDEX takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCGIFINDEX) }?;
    Ok(request.int().unsigned_abs())
}

/// True if the interface is up.
pub(crate) fn is_up(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<bool> {
    Ok(flags(socket, name)? & libc::IFF_UP as i16 != 0)
}

/// True if the interface is up and there is somebody at the other end of its cable.
pub(crate) fn is_running(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<bool> {
    Ok(flags(socket, name)? & libc::IFF_RUNNING as i16 != 0)
}

/// Brings the interface up or down.
pub(crate) fn set_up(socket: BorrowedFd<'_>, name: InterfaceName, up: bool) -> io::Result<()> {
    let bit = libc::IFF_UP as i16;
    let flags = flags(socket, name)?;
    let mut request = Request::new(name).with_short(if up { flags | bit } else { flags & !bit });
    // SAFETY: SIOCSIFFLAGS takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCSIFFLAGS) }
}

fn flags(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<i16> {
    let mut request = Request::new(name);
    // SAFETY: SIOCGIFFLAGS takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCGIFFLAGS) }?;
    Ok(request.short())
}

/// The interface's MTU in bytes.
pub(crate) fn mtu(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<usize> {
    let mut request = Request::new(name);
    // SAFETY: SIOCGIFMTU takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCGIFMTU) }?;
    Ok(request.int().unsigned_abs() as usize)
}

/// Sets the interface's MTU in bytes.
pub(crate) fn set_mtu(socket: BorrowedFd<'_>, name: InterfaceName, mtu: i32) -> io::Result<()> {
    let mut request = Request::new(name).with_int(mtu);
    // SAFETY: SIOCSIFMTU takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCSIFMTU) }
}

/// The interface's Ethernet address.
pub(crate) fn hardware_address(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<[u8; 6]> {
    let mut request = Request::new(name);
    // SAFETY: SIOCGIFHWADDR takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCGIFHWADDR) }?;
    Ok(request.hardware_address())
}

/// Sets the interface's Ethernet address.
pub(crate) fn set_hardware_address(socket: BorrowedFd<'_>, name: InterfaceName, address: [u8; 6]) -> io::Result<()> {
    let mut request = Request::new(name).with_short(libc::ARPHRD_ETHER as i16);
    request.value[2..8].copy_from_slice(&address);
    // SAFETY: SIOCSIFHWADDR takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCSIFHWADDR) }
}

/// The kind of the interface's hardware (`ARPHRD_*`).
pub(crate) fn hardware_kind(socket: BorrowedFd<'_>, name: InterfaceName) -> io::Result<u16> {
    let mut request = Request::new(name);
    // SAFETY: SIOCGIFHWADDR takes an `ifreq`.
    unsafe { request.ask(socket, libc::SIOCGIFHWADDR) }?;
    // The family of the `sockaddr` in the answer says it.
    Ok(request.short() as u16)
}

/// What an interface may do to frames by itself, as the older requests of ethtool name it (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// It finishes checksums.
    Checksum,
    /// It cuts TCP into segments.
    TcpSegments,
}

/// True if the interface has the feature and it is on.
pub(crate) fn has_feature(socket: BorrowedFd<'_>, name: InterfaceName, feature: Feature) -> io::Result<bool> {
    /// `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    // ETHTOOL_GTXCSUM and ETHTOOL_GTSO.
    let command = match feature {
        Feature::Checksum => 0x16,
        Feature::TcpSegments => 0x1e,
    };
    let mut value = Value { command, data: 0 };
    let mut request = Request::new(name);
    let pointer = std::ptr::from_mut(&mut value) as usize;
    request.value[..size_of::<usize>()].copy_from_slice(&pointer.to_ne_bytes());
    // SAFETY: SIOCETHTOOL takes an `ifreq` whose union points to what the command wants, which for these two commands is
    // an `ethtool_value`; it is a local that outlives the call and that nobody else looks at meanwhile.
    unsafe { request.ask(socket, libc::SIOCETHTOOL as libc::c_ulong) }?;
    Ok(value.data != 0)
}

/// Makes or attaches to the TAP `name` with these flags (`IFF_*`); the answer is its name, the kernel's choice where
/// the name left one.
pub(crate) fn attach_tap(tap: BorrowedFd<'_>, name: InterfaceName, flags: i32) -> io::Result<InterfaceName> {
    // The flags have bits up to 15, which the signed field holds as its sign.
    let mut request = Request::new(name).with_short(flags as u16 as i16);
    // SAFETY: TUNSETIFF takes an `ifreq`.
    unsafe { request.ask(tap, libc::TUNSETIFF as libc::c_ulong) }?;
    Ok(request.name)
}

/// The flags (`IFF_*`) of the attached TAP.
pub(crate) fn tap_flags(tap: BorrowedFd<'_>) -> io::Result<i32> {
    let mut request = Request::new(InterfaceName([0; NAME_BYTES]));
    // SAFETY: TUNGETIFF takes an `ifreq`.
    unsafe { request.ask(tap, libc::TUNGETIFF as libc::c_ulong) }?;
    Ok(i32::from(request.short() as u16))
}

/// The length in bytes of the vnet header before every frame.
pub(crate) fn set_vnet_header_bytes(tap: BorrowedFd<'_>, bytes: i32) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ takes a pointer to an int.
    unsafe { with_pointer_to_int(tap, libc::TUNSETVNETHDRSZ as libc::c_ulong, bytes) }
}

/// What the kernel may leave to us in frames it sends (`TUN_F_*`).
pub(crate) fn set_offloads(tap: BorrowedFd<'_>, offloads: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number in place of a pointer.
    unsafe { with_number(tap, libc::TUNSETOFFLOAD as libc::c_ulong, offloads.into()) }
}

/// Whether the TAP stays when its last descriptor is closed.
pub(crate) fn set_persistent(tap: BorrowedFd<'_>, persistent: bool) -> io::Result<()> {
    // SAFETY: TUNSETPERSIST takes a number in place of a pointer.
    unsafe { with_number(tap, libc::TUNSETPERSIST as libc::c_ulong, persistent.into()) }
}

/// # Safety
/// `number` must be an ioctl whose argument is a pointer to an int that it only reads.
unsafe fn with_pointer_to_int(descriptor: BorrowedFd<'_>, number: libc::c_ulong, value: i32) -> io::Result<()> {
    let value: libc::c_int = value;
    // SAFETY: the pointer is to a local int, and the caller vouches for the number.
    checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), number as _, std::ptr::from_ref(&value)) }).map(drop)
}

/// # Safety
/// `number` must be an ioctl whose argument is a number, not a pointer.
unsafe fn with_number(descriptor: BorrowedFd<'_>, number: libc::c_ulong, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: no pointer is passed, and the caller vouches for the number.
    checked(unsafe { libc::ioctl(descriptor.as_raw_fd(), number as _, value) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_refuse_are_refused_here() {
        for name in ["", "eth0", "tap%d", "fifteen-letters"] {
            assert_eq!(InterfaceName::new(name).map(|name| name.to_string()).as_deref(), Some(name));
        }
        for name in ["sixteen-letters!", "a/b", "a b", ".", "..", "a\0b", "a:1"] {
            assert!(InterfaceName::new(name).is_none(), "`{name}`");
        }
        assert_eq!(InterfaceName::LOOPBACK.to_string(), "lo");
    }
}
