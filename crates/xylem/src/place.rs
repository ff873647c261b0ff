//! Where a demonstration or a measurement takes place: namespaces, the TAP whose other end is Xylem's, the veth pair that
//! joins the kernel to itself, and the processors of both ends. Nothing here has a name in the file system; it all goes
//! when its values go.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use xylem_host::interface::Interface;
use xylem_host::namespace::Namespace;
use xylem_host::packet::{PacketOptions, PacketSocket};
use xylem_host::pin;
use xylem_host::tap::{Tap, TapOptions};
use xylem_host::veth;

/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The bits of both addresses that name their network.
pub const PREFIX_BITS: u8 = 24;
/// The server's port.
pub const PORT: u16 = 80;
/// What the interfaces are called, each in its own namespace.
const INTERFACE: &str = "xylem0";

/// How long a new cable may take until it carries frames.
const RUNNING_TIME_MAX: Duration = Duration::from_secs(10);

/// Where the server listens.
pub fn server_at() -> SocketAddr {
    SocketAddr::from((SERVER, PORT))
}

/// The processors of both ends, the same in every turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// The client's.
    pub client: Option<usize>,
    /// The server's, and the cable's where a program carries it.
    pub server: Option<usize>,
}

impl Processors {
    /// The first two that this process may use; none are pinned where there is only one.
    pub fn choose() -> Processors {
        match pin::allowed_cpus().unwrap_or_default()[..] {
            [client, server, ..] => Processors { client: Some(client), server: Some(server) },
            _ => Processors { client: None, server: None },
        }
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.client, self.server) {
            (Some(client), Some(server)) => write!(formatter, "client on CPU {client}, server on CPU {server}"),
            _ => formatter.write_str("not pinned: this process may use one CPU only"),
        }
    }
}

/// Makes an error of `step` and what went wrong.
pub fn failed(step: &str) -> impl FnOnce(&dyn fmt::Display) -> io::Error + '_ {
    move |error| io::Error::other(format!("{step}: {error}"))
}

/// A namespace with loopback, whose TCP uses `congestion` by default.
///
/// # Errors
/// This process may not make namespaces, or the kernel has no such congestion control.
pub fn namespace(congestion: &str) -> io::Result<Namespace> {
    let namespace = Namespace::create().map_err(|error| failed("make a namespace")(&error))?;
    set(&namespace, "tcp_congestion_control", congestion)?;
    Ok(namespace)
}

/// Sets a variable of the namespace's IPv4, by its name below `net.ipv4` (ip-sysctl of the kernel's documentation).
///
/// # Errors
/// The kernel has no such variable, or does not take the value.
pub fn set(namespace: &Namespace, name: &str, value: &str) -> io::Result<()> {
    // The file shows the namespace of whoever opens it.
    let set = || std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    let answer = namespace.enter(set).map_err(|error| failed("enter a namespace")(&error))?;
    answer.map_err(|error| failed(&format!("set net.ipv4.{name} to {value}"))(&error))
}

/// A TAP in `namespace`, up, whose kernel side has the address.
///
/// # Errors
/// There are no TAPs for this process; the message says why and what to do.
pub fn tap(namespace: &Namespace, address: Ipv4Addr, offloads: bool) -> io::Result<Tap> {
    let make = || {
        let tap = Tap::open(INTERFACE, TapOptions { offloads, ..TapOptions::default() })
            .map_err(|error| error.to_string())?;
        dress(tap.kernel_side(), address).map_err(|error| error.to_string())?;
        Ok(tap)
    };
    let made = namespace.enter(make).map_err(|error| failed("enter a namespace")(&error))?;
    made.map_err(|error: String| io::Error::other(error))
}

/// Joins the two namespaces by a veth pair with the two addresses.
///
/// # Errors
/// The kernel has no veth.
pub fn veth(client: &Namespace, server: &Namespace) -> io::Result<()> {
    let ends = veth::join((client, INTERFACE), (server, INTERFACE)).map_err(io::Error::other)?;
    for (interface, address) in [(&ends.0, CLIENT), (&ends.1, SERVER)] {
        dress(interface, address).map_err(|error| failed("set up veth")(&error))?;
    }
    wait_until_running([&ends.0, &ends.1])
}

/// Joins the kernel's namespace, which has the address, to `bare`, whose end has none and is left to packet sockets.
///
/// # Errors
/// The kernel has no veth, or this process may not.
pub fn veth_without((kernel, address): (&Namespace, Ipv4Addr), bare: &Namespace) -> io::Result<()> {
    let ends = veth::join((kernel, INTERFACE), (bare, INTERFACE)).map_err(io::Error::other)?;
    dress(&ends.0, address).and_then(|()| ends.1.set_up(true)).map_err(|error| failed("set up veth")(&error))?;
    wait_until_running([&ends.0, &ends.1])
}

/// Packet sockets in `bare`, on the interface that [`veth_without`] left without an address.
///
/// # Errors
/// There is no such interface, or this process may not; the message says what to do.
pub fn packet_in(bare: &Namespace) -> io::Result<PacketSocket> {
    let opened = bare.enter(|| PacketSocket::open(INTERFACE, PacketOptions::default()));
    opened.map_err(|error| failed("enter a namespace")(&error))?.map_err(io::Error::other)
}

/// Packet sockets in `server`, on an interface without an address that is joined to the client's.
///
/// # Errors
/// The kernel has no veth, or this process may not.
pub fn packet(client: &Namespace, server: &Namespace) -> io::Result<PacketSocket> {
    veth_without((client, CLIENT), server)?;
    packet_in(server)
}

/// Waits until both ends of a cable carry frames.
fn wait_until_running(ends: [&Interface; 2]) -> io::Result<()> {
    for end in ends {
        if !end.wait_until_running(RUNNING_TIME_MAX).map_err(io::Error::other)? {
            return Err(io::Error::other(format!("`{}` is up and does not carry frames", end.name())));
        }
    }
    Ok(())
}

/// Gives an interface its address and brings it up.
fn dress(interface: &Interface, address: Ipv4Addr) -> Result<(), xylem_host::interface::InterfaceError> {
    interface.add_address(IpAddr::V4(address), PREFIX_BITS)?;
    interface.set_up(true)
}
