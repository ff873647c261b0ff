//! The kernel's side of a network: its interfaces, their addresses, routes and neighbours, set up without any program's
//! aid. A test or a demonstration gives the kernel an address to talk from; the stack itself never needs this.

use crate::netlink::{Netlink, Request, value_of};
use crate::system::{ioctl, socket};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often [`Interface::wait_until_running`] looks.
const RUNNING_PAUSE: Duration = Duration::from_millis(1);

/// The longest name an interface may have, in bytes.
pub const NAME_BYTES_MAX: usize = ioctl::NAME_BYTES - 1;

/// An interface of the kernel's.
///
/// It is an interface of the network namespace of the thread that opened it, and stays so whichever thread uses it. The
/// verbs need CAP_NET_ADMIN there, the questions nothing.
#[derive(Debug)]
pub struct Interface {
    name: ioctl::InterfaceName,
    index: u32,
    control: OwnedFd,
    netlink: Mutex<Netlink>,
}

impl Interface {
    /// The interface called `name` in the calling thread's network namespace.
    ///
    /// # Errors
    /// There is none of that name, the name cannot be one, or the process has too many open files.
    pub fn open(name: &str) -> Result<Interface, InterfaceError> {
        let wrong = |source| InterfaceError { interface: name.into(), step: "open it".into(), source };
        let Some(known) = ioctl::InterfaceName::new(name) else {
            let expected = format!("a name of 1 to {NAME_BYTES_MAX} bytes without `/`, `:` and spaces");
            return Err(wrong(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("expected {expected}, got `{name}`"),
            )));
        };
        let open = || {
            let control = socket::control_socket()?;
            let index = ioctl::index(control.as_fd(), known)?;
            Ok(Interface { name: known, index, control, netlink: Mutex::new(Netlink::open()?) })
        };
        open().map_err(wrong)
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// The number the kernel knows it by.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// True if it is up.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn is_up(&self) -> Result<bool, InterfaceError> {
        ioctl::is_up(self.control(), self.name).map_err(self.failed("ask whether it is up"))
    }

    /// Brings it up or down.
    ///
    /// # Errors
    /// The interface is gone, or this process may not.
    pub fn set_up(&self, up: bool) -> Result<(), InterfaceError> {
        let step = if up { "bring it up" } else { "bring it down" };
        ioctl::set_up(self.control(), self.name, up).map_err(self.failed(step))
    }

    /// Waits until it carries frames, at most `limit`: true if it does. After both ends of a cable were brought up the
    /// kernel takes some milliseconds until it does, and what is sent meanwhile is lost without a word.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn wait_until_running(&self, limit: Duration) -> Result<bool, InterfaceError> {
        let begun = Instant::now();
        loop {
            if ioctl::is_running(self.control(), self.name).map_err(self.failed("ask whether it runs"))? {
                // The flag is raised just before the queues are opened, both under the lock that this question takes.
                self.joined_here()?;
                return Ok(true);
            }
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            thread::sleep(RUNNING_PAUSE);
        }
    }

    /// Its MTU in bytes, the Ethernet header not counted.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn mtu(&self) -> Result<usize, InterfaceError> {
        ioctl::mtu(self.control(), self.name).map_err(self.failed("ask its MTU"))
    }

    /// Sets its MTU in bytes; what a device takes is between 68 and 65 535.
    ///
    /// # Errors
    /// The device does not take that MTU, the interface is gone, or this process may not.
    pub fn set_mtu(&self, mtu: usize) -> Result<(), InterfaceError> {
        // What does not fit the kernel's number is refused as the kernel refuses what does.
        let number = i32::try_from(mtu).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
        let set = number.and_then(|mtu| ioctl::set_mtu(self.control(), self.name, mtu));
        set.map_err(self.failed(&format!("set its MTU to {mtu} bytes")))
    }

    /// Its Ethernet address.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn hardware_address(&self) -> Result<[u8; 6], InterfaceError> {
        ioctl::hardware_address(self.control(), self.name).map_err(self.failed("ask its hardware address"))
    }

    /// Sets its Ethernet address.
    ///
    /// # Errors
    /// The address is a group address, the device must be down for it, the interface is gone, or this process may not.
    pub fn set_hardware_address(&self, address: [u8; 6]) -> Result<(), InterfaceError> {
        ioctl::set_hardware_address(self.control(), self.name, address)
            .map_err(self.failed(&format!("set its hardware address to {address:02x?}")))
    }

    /// Gives it an address, beside those it has, and a route to the network of the first `prefix_bits` bits.
    ///
    /// # Errors
    /// It has the address already, the prefix is longer than the address, the interface is gone, or this process may
    /// not.
    pub fn add_address(&self, address: IpAddr, prefix_bits: u8) -> Result<(), InterfaceError> {
        let (family, bytes) = family_and_bytes(address);
        // struct ifaddrmsg: family, prefix length, flags, scope (0: everywhere), interface. An IPv6 address is used at
        // once: who sets up a test does not wait for duplicate detection (RFC 4862, section 5.4).
        let mut fixed = vec![family, prefix_bits, libc::IFA_F_NODAD as u8, 0];
        fixed.extend_from_slice(&self.index.to_ne_bytes());
        let request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &fixed)
            .with(libc::IFA_LOCAL, &bytes)
            .with(libc::IFA_ADDRESS, &bytes);
        self.order(request, format!("add the address {address}/{prefix_bits}"))
    }

    /// Sends what is for `destination`'s first `prefix_bits` bits out of this interface, to `gateway` if there is one.
    ///
    /// # Errors
    /// The route exists, the gateway cannot be reached directly, the interface is down or gone, the gateway is of the
    /// other address family, or this process may not.
    pub fn add_route(
        &self,
        destination: IpAddr,
        prefix_bits: u8,
        gateway: Option<IpAddr>,
    ) -> Result<(), InterfaceError> {
        let (family, bytes) = family_and_bytes(destination);
        let scope = if gateway.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        // struct rtmsg: family, destination and source prefix lengths, type of service, table, origin, scope, kind of
        // route, then four bytes of flags.
        let mut fixed = vec![family, prefix_bits, 0, 0, libc::RT_TABLE_MAIN];
        fixed.extend_from_slice(&[libc::RTPROT_STATIC, scope, libc::RTN_UNICAST, 0, 0, 0, 0]);
        let mut request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &fixed)
            .with(libc::RTA_DST, &bytes)
            .with(libc::RTA_OIF, &self.index.to_ne_bytes());
        if let Some(gateway) = gateway {
            request = request.with(libc::RTA_GATEWAY, &family_and_bytes(gateway).1);
        }
        let by = gateway.map_or(String::new(), |gateway| format!(" by {gateway}"));
        self.order(request, format!("add a route to {destination}/{prefix_bits}{by}"))
    }

    /// Fixes the hardware address of a neighbour, so that the kernel never asks for it; replaces what it knew.
    ///
    /// # Errors
    /// The interface is gone, or this process may not.
    pub fn set_neighbour(&self, neighbour: IpAddr, hardware_address: [u8; 6]) -> Result<(), InterfaceError> {
        let (family, bytes) = family_and_bytes(neighbour);
        // struct ndmsg: family, three bytes of padding, interface, two bytes of state, flags, kind.
        let mut fixed = vec![family, 0, 0, 0];
        fixed.extend_from_slice(&self.index.to_ne_bytes());
        fixed.extend_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        fixed.extend_from_slice(&[0, 0]);
        let request = Request::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .with(libc::NDA_DST, &bytes)
            .with(libc::NDA_LLADDR, &hardware_address);
        self.order(request, format!("fix the neighbour {neighbour}"))
    }

    /// True if the kernel takes what is for `address` as its own in the interface's network namespace, on whichever
    /// interface it arrives: a stack beside the kernel's with the same address would have its connections reset.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn kernel_has(&self, address: IpAddr) -> Result<bool, InterfaceError> {
        let (family, bytes) = family_and_bytes(address);
        let width = (bytes.len() * 8) as u8;
        // struct rtmsg, as for a new route; of what it asks only the destination counts.
        let fixed = [family, width, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let request = Request::new(libc::RTM_GETROUTE, 0, &fixed).with(libc::RTA_DST, &bytes);
        match self.lock().ask(request) {
            // The eighth byte is the kind of route: to somebody else, or to here.
            Ok(answer) => Ok(answer.get(7) == Some(&libc::RTN_LOCAL)),
            // Nowhere is not here.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => Ok(false),
            Err(source) => Err(self.failed(&format!("ask whether the kernel has {address}"))(source)),
        }
    }

    /// The index of the interface at the other end of a veth pair, if this is one whose other end lies in the same
    /// network namespace.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn joined_here(&self) -> Result<Option<u32>, InterfaceError> {
        // struct ifinfomsg: family, padding, kind of device, index, flags, change.
        let mut fixed = [0; 16];
        fixed[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let asked = self.lock().ask(Request::new(libc::RTM_GETLINK, 0, &fixed));
        let answer = asked.map_err(self.failed("ask what it is joined to"))?;
        let attributes = answer.get(fixed.len()..).unwrap_or_default();
        let elsewhere = value_of(attributes, libc::IFLA_LINK_NETNSID).is_some();
        let link = value_of(attributes, libc::IFLA_LINK).and_then(|value| value.try_into().ok());
        Ok(link.map(u32::from_ne_bytes).filter(|&link| !elsewhere && link != self.index && link != 0))
    }

    /// The kind of its hardware (`ARPHRD_*` of linux/if_arp.h; 1 is Ethernet).
    ///
    /// # Errors
    /// The interface is gone.
    pub fn hardware_kind(&self) -> Result<u16, InterfaceError> {
        ioctl::hardware_kind(self.control(), self.name).map_err(self.failed("ask the kind of its hardware"))
    }

    /// Whether it does something to frames by itself; false also where its driver does not say.
    pub(crate) fn has_feature(&self, feature: ioctl::Feature) -> bool {
        ioctl::has_feature(self.control(), self.name, feature).unwrap_or(false)
    }

    fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    fn order(&self, request: Request, step: String) -> Result<(), InterfaceError> {
        self.lock().order(request).map_err(self.failed(&step))
    }

    fn lock(&self) -> MutexGuard<'_, Netlink> {
        // A panic between order and answer leaves an answer unread, and those carry the number of their order.
        self.netlink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, step: &str) -> impl FnOnce(io::Error) -> InterfaceError {
        move |source| InterfaceError { interface: self.name(), step: step.into(), source }
    }
}

/// The address family and the bytes of an address, in network order, as netlink takes both.
fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// Something that could not be done to an interface: what, the kernel's answer, and the mend where there is one.
#[derive(Debug)]
pub struct InterfaceError {
    /// The interface's name.
    pub interface: String,
    /// What was tried.
    pub step: String,
    /// The kernel's answer.
    pub source: io::Error,
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "interface `{}`: {}: {}", self.interface, self.step, self.source)?;
        match self.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => formatter.write_str("; needs CAP_NET_ADMIN in its network namespace"),
            Some(libc::ENODEV) => formatter.write_str("; no such interface in this network namespace"),
            Some(libc::EEXIST) => formatter.write_str("; it is there already"),
            Some(libc::ENETDOWN) => formatter.write_str("; bring the interface up first"),
            Some(libc::ENETUNREACH) => formatter.write_str("; the gateway must be on a network of this interface"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for InterfaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

    fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
        Ipv4Addr::new(a, b, c, d).into()
    }

    #[test]
    fn what_is_set_is_what_is_read() {
        let Some(namespace) = testing::namespace("what_is_set_is_what_is_read") else {
            return;
        };
        let loopback = namespace.enter(|| Interface::open("lo").expect("it is always there")).expect("root enters");
        // From here on outside: the interface stays one of the namespace.
        assert_eq!((loopback.name().as_str(), loopback.index()), ("lo", 1));
        assert!(loopback.is_up().expect("it is there"));
        loopback.set_up(false).expect("root may");
        assert!(!loopback.is_up().expect("it is there"));
        loopback.set_up(true).expect("root may");
        assert!(loopback.is_up().expect("it is there"));
        loopback.set_mtu(9000).expect("root may");
        assert_eq!(loopback.mtu().expect("it is there"), 9000);
        assert_eq!(loopback.hardware_address().expect("it is there"), [0; 6]);
        let error = loopback.set_mtu(usize::MAX).expect_err("no such MTU").to_string();
        assert!(error.contains("`lo`") && error.contains("MTU"), "{error}");
    }

    #[test]
    fn addresses_add_up_and_routes_and_neighbours_are_used() {
        let Some(namespace) = testing::namespace("addresses_add_up_and_routes_and_neighbours_are_used") else {
            return;
        };
        let local = || {
            let loopback = Interface::open("lo").expect("it is always there");
            loopback.add_address(v4(10, 99, 0, 1), 24).expect("root may");
            loopback.add_address(v4(10, 98, 0, 1), 24).expect("a second one beside the first");
            loopback.add_address(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into(), 64).expect("root may");
            for address in ["10.99.0.1", "10.98.0.1", "fd00::1"] {
                UdpSocket::bind((address, 0)).unwrap_or_else(|error| panic!("{address}: {error}"));
            }
            let error = loopback.add_address(v4(10, 99, 0, 1), 24).expect_err("it has it").to_string();
            assert!(error.contains("10.99.0.1/24") && error.contains("already"), "{error}");
            loopback.add_address(v4(10, 97, 0, 1), 33).expect_err("an address has 32 bits");

            let socket = UdpSocket::bind("10.99.0.1:0").expect("the address is there");
            socket.connect("192.0.2.9:9").expect_err("no route yet");
            loopback.add_route(v4(192, 0, 2, 0), 24, None).expect("root may");
            socket.connect("192.0.2.9:9").expect("there is a route");
            let error = loopback.add_route(v4(198, 51, 100, 0), 24, Some(v4(203, 0, 113, 1)));
            let error = error.expect_err("the gateway is nowhere").to_string();
            assert!(error.contains("203.0.113.1") && error.contains("gateway"), "{error}");
            loopback.set_neighbour(v4(192, 0, 2, 9), [2, 0, 0, 0, 0, 9]).expect("root may");

            // Its own addresses, a neighbour's, and one to which there is no way.
            let has = |address: &str| loopback.kernel_has(address.parse().expect("an address")).expect("it says");
            assert_eq!(["10.99.0.1", "10.98.0.1", "127.0.0.1"].map(has), [true; 3]);
            // The kernel takes up an address of version six in its own time.
            let begun = Instant::now();
            while !has("fd00::1") {
                assert!(begun.elapsed() < Duration::from_secs(20), "the kernel never took fd00::1 up");
                thread::sleep(RUNNING_PAUSE);
            }
            assert_eq!(["192.0.2.9", "203.0.113.1", "fd01::1"].map(has), [false; 3]);
            assert_eq!(loopback.joined_here().expect("it is there"), None);
        };
        namespace.enter(local).expect("root enters");
    }

    #[test]
    fn a_missing_interface_and_an_impossible_name_are_told_apart() {
        let error = Interface::open("no-such-thing").expect_err("there is none").to_string();
        assert!(error.contains("no such interface"), "{error}");
        let error = Interface::open("a-name-of-20-letters").expect_err("it cannot be").to_string();
        assert!(error.contains("1 to 15 bytes"), "{error}");
    }
}
