//! The device that `xylem serve` is told of: a TAP, or packet sockets on an interface. An ordinary user who may have
//! neither here gets them in a user namespace of the program's own, with the kernel's side set up for him; what was done,
//! and how to reach it, is said.

use std::io;
use std::net::IpAddr;
use std::time::Duration;
use xylem_graph::link::MTU_MAX;
use xylem_host::device::{Device, PacketDevice, TapDevice};
use xylem_host::interface::{Interface, InterfaceError};
use xylem_host::namespace::{self, Namespace};
use xylem_host::packet::{PacketOptions, PacketSocket};
use xylem_host::tap::{Tap, TapError, TapOptions};
use xylem_host::veth;
use xylem_wire::Cidr;

/// How long a cable of our own may take until it carries frames.
const RUNNING_TIME_MAX: Duration = Duration::from_secs(10);

/// The kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A TAP.
    Tap,
    /// Packet sockets.
    Packet,
}

impl Kind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Tap => "tap",
            Kind::Packet => "packet",
        }
    }
}

/// What stands behind `--device`, before the graph is known.
pub struct Ground {
    /// Its kind.
    pub kind: Kind,
    /// The interface's name.
    pub name: String,
    /// Its MTU in bytes.
    pub mtu: usize,
    /// It was made here and goes with the program.
    pub made: bool,
    tap: Option<Tap>,
    /// The kernel's end of a cable that was made here.
    far: Option<Interface>,
    /// The program moved into a namespace of its own.
    moved: bool,
    queues: usize,
}

impl Ground {
    /// Finds or makes what `text` names. Nothing may have been started yet: moving into a user namespace wants a process
    /// without threads.
    ///
    /// # Errors
    /// What was expected, what there is, and the mend.
    pub fn find(text: &str, mtu: Option<u16>, queues: usize) -> Result<Ground, String> {
        let (kind, name) = match text.split_once(':') {
            Some(("tap", name)) if !name.is_empty() => (Kind::Tap, name),
            Some(("packet", name)) if !name.is_empty() => (Kind::Packet, name),
            _ => {
                return Err(format!(
                    "--device: expected tap:NAME or packet:INTERFACE, got `{text}`; write --device tap:xylem0"
                ));
            }
        };
        if kind == Kind::Tap && queues > 1 {
            return Err(format!(
                "--queues: expected 1 with a TAP, got {queues}; leave it out, or use packet:INTERFACE"
            ));
        }
        let ground = match kind {
            Kind::Tap => Ground::tap(name, mtu)?,
            Kind::Packet => Ground::packet(name, mtu, queues)?,
        };
        Ok(ground)
    }

    fn tap(name: &str, mtu: Option<u16>) -> Result<Ground, String> {
        let made = Interface::open(name).is_err();
        let (tap, moved) = match Tap::open(name, TapOptions::default()) {
            Ok(tap) => (tap, false),
            // The node is open to everybody, so that a TAP can be had where one is root.
            Err(error @ TapError::NoPermission { .. }) => {
                move_away(&error.to_string())?;
                (Tap::open(name, TapOptions::default()).map_err(|error| error.to_string())?, true)
            }
            Err(error @ TapError::DeviceNodeClosed { .. }) => {
                return Err(format!("{error}; or use --device packet:NAME, which needs no device node"));
            }
            Err(error) => return Err(error.to_string()),
        };
        let made = made || moved;
        let side = tap.kernel_side();
        if made {
            dress(side, mtu).and_then(|()| side.set_up(true)).map_err(|error| error.to_string())?;
        }
        let mtu = tap.mtu().map_err(|error| error.to_string())?;
        let name = tap.name();
        Ok(Ground { kind: Kind::Tap, name, mtu, made, tap: Some(tap), far: None, moved, queues: 1 })
    }

    fn packet(name: &str, mtu: Option<u16>, queues: usize) -> Result<Ground, String> {
        let plain = |interface: &Interface| {
            Ok(Ground {
                kind: Kind::Packet,
                name: interface.name(),
                // The loopback's is one more than a packet can have; that it is no Ethernet is said when it is opened.
                mtu: interface.mtu().map_err(|error: InterfaceError| error.to_string())?.min(MTU_MAX),
                made: false,
                tap: None,
                far: None,
                moved: false,
                queues,
            })
        };
        match Interface::open(name) {
            Ok(interface) => return plain(&interface),
            // Root makes his cables himself; a misspelt name shall not make one.
            Err(error) if error.source.raw_os_error() != Some(NO_SUCH_DEVICE) || is_root_here() => {
                return Err(format!("{error}; to make one: ip link add {name} type veth peer name {}", far_name(name)));
            }
            Err(error) => move_away(&error.to_string())?,
        }
        let here = Namespace::current().map_err(|error| error.to_string())?;
        let ends = veth::join((&here, name), (&here, &far_name(name))).map_err(|error| error.to_string())?;
        for end in [&ends.0, &ends.1] {
            dress(end, mtu).and_then(|()| end.set_up(true)).map_err(|error| error.to_string())?;
        }
        // A cable that is not ready yet loses what is sent first, and everybody sends again.
        let _ready = ends.0.wait_until_running(RUNNING_TIME_MAX).map_err(|error| error.to_string())?;
        Ok(Ground { made: true, far: Some(ends.1), moved: true, ..plain(&ends.0)? })
    }

    /// The device, for a stack with this address; `hardware` is the link address that its graph says. Notes say what the
    /// user should know or do.
    ///
    /// # Errors
    /// What was expected, what there is, and the mend.
    pub fn device(self, address: Cidr, hardware: Option<[u8; 6]>) -> Result<(Box<dyn Device>, Vec<String>), String> {
        let text = |error: InterfaceError| error.to_string();
        let mut notes = Vec::new();
        if self.moved {
            let neighbour = neighbour_of(address);
            if let (Some(far), Some(address)) =
                (self.far.as_ref().or(self.tap.as_ref().map(Tap::kernel_side)), neighbour)
            {
                far.add_address(address.address(), address.prefix()).map_err(text)?;
            }
            notes.push(format!(
                "not root: {} was made in a user namespace of this program's own; reach it as the same user by \
                 `nsenter --preserve-credentials --user --net --target {} COMMAND`",
                self.name,
                std::process::id()
            ));
        }
        let Some(tap) = self.tap else { return self.packet_device(address, hardware, notes) };
        notes.extend(tap.notes().iter().cloned());
        let name = &self.name;
        if self.made && !self.moved {
            let neighbour = neighbour_of(address).map_or("ADDRESS/BITS".into(), |neighbour| neighbour.to_string());
            notes.push(format!(
                "{name} was made here and is up; give the kernel's side an address of its own: \
                 ip address add {neighbour} dev {name}"
            ));
        } else if !tap.kernel_side().is_up().unwrap_or(true) {
            notes.push(format!("{name} is down: ip link set {name} up"));
        }
        let device = TapDevice::new(tap).map_err(|error| error.to_string())?;
        Ok((Box::new(device), notes))
    }

    fn packet_device(
        self,
        address: Cidr,
        hardware: Option<[u8; 6]>,
        mut notes: Vec<String>,
    ) -> Result<(Box<dyn Device>, Vec<String>), String> {
        let text = |error: InterfaceError| error.to_string();
        let name = &self.name;
        let interface = Interface::open(name).map_err(text)?;
        if interface.kernel_has(address.address()).map_err(text)? {
            return Err(format!(
                "--address: expected one that the kernel does not have, got {address}, which it has: it would answer ARP \
                 with its own link address and reset the connections; take it away (ip address del {address} dev {name}) \
                 or choose another"
            ));
        }
        // With the interface's own link address nothing for others is wanted, but then the kernel takes what is ours for
        // its own, and may forward it.
        let own = interface.hardware_address().map_err(text)?;
        let promiscuous = hardware != Some(own);
        if !promiscuous && forwards() {
            notes.push(
                "the kernel forwards what is for this link address: sysctl net.ipv4.ip_forward=0, or give the stack an \
                 address of its own"
                    .into(),
            );
        }
        let options = PacketOptions { queues: self.queues, promiscuous, ..PacketOptions::default() };
        let socket = PacketSocket::open(name, options).map_err(|error| error.to_string())?;
        notes.extend(socket.notes().iter().cloned());
        if !interface.is_up().unwrap_or(true) {
            notes.push(format!("{name} is down: ip link set {name} up"));
        }
        let device = PacketDevice::new(socket).map_err(text)?;
        Ok((Box::new(device), notes))
    }
}

/// `ENODEV`.
const NO_SUCH_DEVICE: i32 = rustix::io::Errno::NODEV.raw_os_error();

/// True if this process may make interfaces where it is.
fn is_root_here() -> bool {
    rustix::process::geteuid().is_root()
}

/// Moves the program into a user namespace; `why` it must.
fn move_away(why: &str) -> Result<(), String> {
    namespace::enter_unprivileged().map_err(|error| {
        format!("{why}; and in a user namespace of its own this program may not be root either: {error}")
    })
}

/// The name of the other end of a cable.
fn far_name(name: &str) -> String {
    // Fifteen bytes are the most; a name cut in the middle of a letter is cut before it.
    let mut end = name.len().min(13);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-k", &name[..end])
}

fn dress(interface: &Interface, mtu: Option<u16>) -> Result<(), InterfaceError> {
    mtu.map_or(Ok(()), |mtu| interface.set_mtu(usize::from(mtu)))
}

/// Whether the kernel forwards IPv4 here.
fn forwards() -> bool {
    let read: io::Result<String> = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward");
    read.is_ok_and(|text| text.trim() == "1")
}

/// An address for the kernel's side: the first host of the network that is not ours.
pub fn neighbour_of(ours: Cidr) -> Option<Cidr> {
    let IpAddr::V4(network) = ours.network().address() else { return None };
    let first = network.to_bits().wrapping_add(1);
    let other = if IpAddr::from(std::net::Ipv4Addr::from_bits(first)) == ours.address() { first + 1 } else { first };
    Cidr::new(std::net::Ipv4Addr::from_bits(other), ours.prefix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_side_gets_another_address_of_the_same_network_and_another_name() {
        for (ours, others) in
            [("10.0.0.2/24", "10.0.0.1/24"), ("10.0.0.1/24", "10.0.0.2/24"), ("10.9.8.7/8", "10.0.0.1/8")]
        {
            let neighbour = neighbour_of(ours.parse().expect("a network")).expect("there is one");
            assert_eq!(neighbour.to_string(), others);
        }
        assert_eq!((far_name("x0"), far_name("fifteen-letters")), ("x0-k".into(), "fifteen-lette-k".into()));
    }
}
