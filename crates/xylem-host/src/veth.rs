//! Pairs of joined interfaces (veth(4)): the kernel's own cable, whose ends may lie in two namespaces. Tests, the
//! demonstration and a server without root build their networks of these; an ordinary user may make them in a user
//! namespace.

use crate::interface::{Interface, InterfaceError};
use crate::namespace::{Namespace, NamespaceError};
use crate::netlink::{Netlink, Request, attribute};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `VETH_INFO_PEER` (linux/veth.h).
const PEER: u16 = 1;

/// `struct ifinfomsg` of an interface about which nothing else is said.
const INTERFACE: [u8; 16] = [0; 16];

/// Joins two new interfaces, `(namespace, name)` each. Both are down and without addresses; they go with either end's
/// namespace.
///
/// # Errors
/// See [`VethError`].
pub fn join(
    (one, one_name): (&Namespace, &str),
    (other, other_name): (&Namespace, &str),
) -> Result<(Interface, Interface), VethError> {
    let mut peer = INTERFACE.to_vec();
    attribute(&mut peer, libc::IFLA_IFNAME, &text(other_name));
    attribute(&mut peer, libc::IFLA_NET_NS_FD, &other.as_fd().as_raw_fd().to_ne_bytes());
    let (mut data, mut information) = (Vec::new(), Vec::new());
    attribute(&mut data, PEER, &peer);
    attribute(&mut information, libc::IFLA_INFO_KIND, &text("veth"));
    attribute(&mut information, libc::IFLA_INFO_DATA, &data);
    let request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &INTERFACE)
        .with(libc::IFLA_IFNAME, &text(one_name))
        .with(libc::IFLA_LINKINFO, &information);
    let refused = |source| VethError::Refused { names: (one_name.into(), other_name.into()), source };
    let make = || {
        Netlink::open().and_then(|mut netlink| netlink.order(request)).map_err(refused)?;
        Interface::open(one_name).map_err(VethError::Interface)
    };
    let one = one.enter(make).map_err(VethError::Namespace)??;
    let other = other.enter(|| Interface::open(other_name)).map_err(VethError::Namespace)?;
    Ok((one, other.map_err(VethError::Interface)?))
}

/// A name with the zero that ends it.
fn text(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// Interfaces that could not be joined.
#[derive(Debug)]
pub enum VethError {
    /// The kernel refused the pair.
    Refused {
        /// The names of both ends.
        names: (String, String),
        /// Its answer.
        source: io::Error,
    },
    /// A namespace could not be entered.
    Namespace(NamespaceError),
    /// An end was made and could not be opened.
    Interface(InterfaceError),
}

impl fmt::Display for VethError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VethError::Refused { names: (one, other), source } => {
                write!(formatter, "join `{one}` and `{other}` by veth: {source}")?;
                formatter.write_str(match source.raw_os_error() {
                    Some(libc::EPERM | libc::EACCES) => "; needs CAP_NET_ADMIN in both namespaces",
                    Some(libc::EEXIST) => "; an interface has that name already: choose another",
                    Some(libc::EOPNOTSUPP) => "; the kernel has no veth (modprobe veth)",
                    Some(libc::EINVAL | libc::ERANGE) => {
                        "; a name has 1 to 15 bytes without `/`, `:` and spaces, and the two differ in one namespace"
                    }
                    _ => "",
                })
            }
            VethError::Namespace(error) => error.fmt(formatter),
            VethError::Interface(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for VethError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            VethError::Refused { source, .. } => Some(source),
            VethError::Namespace(error) => Some(error),
            VethError::Interface(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};

    #[test]
    fn what_is_sent_at_one_end_arrives_at_the_other_in_another_namespace() {
        let test = "what_is_sent_at_one_end_arrives_at_the_other_in_another_namespace";
        let (Some(one), Some(other)) = (testing::namespace(test), testing::namespace(test)) else {
            return;
        };
        let (left, right) = join((&one, "left"), (&other, "right")).expect("root may");
        assert_eq!((left.name(), right.name()), ("left".into(), "right".into()));
        for (interface, last) in [(&left, 1), (&right, 2)] {
            interface.add_address(IpAddr::V4(Ipv4Addr::new(10, 71, 0, last)), 24).expect("root may");
        }
        testing::plug_in([&left, &right]);
        let receiver = other.enter(|| UdpSocket::bind("10.71.0.2:9").expect("the address is there"));
        let receiver = receiver.expect("root enters");
        let sent = one.enter(|| {
            let socket = UdpSocket::bind("10.71.0.1:0").expect("the address is there");
            socket.send_to(b"across", "10.71.0.2:9").expect("there is a route")
        });
        assert_eq!(sent.expect("root enters"), 6);
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a timeout");
        let mut bytes = [0; 16];
        assert_eq!(receiver.recv(&mut bytes).expect("it arrives"), 6);

        let error = join((&one, "left"), (&other, "new")).expect_err("the name is taken").to_string();
        assert!(error.contains("`left`") && error.contains("choose another"), "{error}");
        let error = join((&one, "a-name-of-20-letters"), (&other, "new")).expect_err("too long").to_string();
        assert!(error.contains("1 to 15 bytes"), "{error}");
    }
}
