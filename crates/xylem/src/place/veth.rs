//! A pair of joined interfaces in two namespaces (veth(4)): the kernel's own cable, for the kernel's own turn. One order
//! by route netlink (rtnetlink(7)); everything else about an interface is asked of `xylem_host::interface`.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use xylem_host::namespace::Namespace;

// linux/rtnetlink.h, linux/netlink.h, linux/if_link.h and linux/veth.h.
const RTM_NEWLINK: u16 = 16;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// `struct ifinfomsg` of an interface about which nothing else is said.
const INTERFACE_BYTES: [u8; 16] = [0; 16];
/// The bytes of an attribute's front: its length and its kind.
const ATTRIBUTE_BYTES: usize = 4;

/// Joins two new interfaces of the same name, one in each namespace. Both are down and without addresses.
///
/// # Errors
/// The kernel has no veth, the name is taken there, or this process may not.
pub fn join(name: &str, one: &Namespace, other: &Namespace) -> io::Result<()> {
    let mut peer = INTERFACE_BYTES.to_vec();
    put(&mut peer, IFLA_IFNAME, &text(name));
    put(&mut peer, IFLA_NET_NS_FD, &other.as_fd().as_raw_fd().to_ne_bytes());
    let (mut data, mut info, mut body) = (Vec::new(), Vec::new(), INTERFACE_BYTES.to_vec());
    put(&mut data, VETH_INFO_PEER, &peer);
    put(&mut info, IFLA_INFO_KIND, &text("veth"));
    put(&mut info, IFLA_INFO_DATA, &data);
    put(&mut body, IFLA_IFNAME, &text(name));
    put(&mut body, IFLA_LINKINFO, &info);
    let order = || order(&body);
    one.enter(order).map_err(|error| io::Error::other(error.to_string()))?
}

fn text(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// Appends an attribute: length, kind, value, and zeros up to a multiple of four.
fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_BYTES + value.len()).expect("a name and a few numbers");
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Gives the order in the calling thread's namespace, and waits for the kernel's word on it.
fn order(body: &[u8]) -> io::Result<()> {
    // The protocol 0 of netlink is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut socket = File::from(socket);
    let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    // struct nlmsghdr: length, kind, flags, sequence number, port.
    let mut message = Vec::new();
    let length = 16 + body.len() as u32;
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(body);
    socket.write_all(&message)?;
    let mut answer = [0; 4096];
    let count = socket.read(&mut answer)?;
    let too_short = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is too short");
    let kind = answer[..count].get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    let error = answer[..count].get(16..20).and_then(|word| word.try_into().ok()).map(i32::from_ne_bytes);
    match (kind.ok_or_else(too_short)?, error.ok_or_else(too_short)?) {
        (NLMSG_ERROR, 0) => Ok(()),
        (NLMSG_ERROR, error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        (kind, _) => Err(io::Error::new(io::ErrorKind::InvalidData, format!("an answer of kind {kind}"))),
    }
}
