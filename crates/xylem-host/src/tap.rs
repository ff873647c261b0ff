//! TAP devices: a virtual cable whose one end is an interface of the kernel and whose other end is a descriptor of ours
//! (the kernel's Documentation/networking/tuntap.rst). Every frame has a vnet header before it (VIRTIO 1.2, section
//! 5.1.6), so that a message of 64 KB with an unfinished checksum crosses in one system call and the kernel cuts or
//! finishes it only if it must.

use crate::interface::{Interface, InterfaceError, NAME_BYTES_MAX};
use crate::system::ioctl::{self, InterfaceName};
use crate::system::socket;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use xylem_core::random::Random;

/// The file that TAPs come from.
const DEVICE_NODE: &str = "/dev/net/tun";

/// The most slices a frame may be sent from or received into: what one writev or readv takes.
pub const SLICES_MAX: usize = libc::UIO_MAXIOV as usize;

/// The bytes to offer a receive so that no frame arrives cut: the longer vnet header, an Ethernet header, a VLAN tag
/// (IEEE 802.1Q), the largest IP packet, and one byte more, since a frame that fills its room to the last byte may be
/// longer.
pub const RECEIVE_BYTES: usize = 12 + 14 + 4 + 65_535 + 1;

/// How long the vnet header before each frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VnetHeaderLength {
    /// Ten bytes: flags, offload, lengths and checksum position.
    Ten,
    /// Twelve bytes: the same and a count of buffers, which devices of VIRTIO 1.0 and later always have.
    #[default]
    Twelve,
}

impl VnetHeaderLength {
    /// The length in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            VnetHeaderLength::Ten => 10,
            VnetHeaderLength::Twelve => 12,
        }
    }
}

/// How to open a TAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapOptions {
    /// The vnet header's length.
    pub vnet_header: VnetHeaderLength,
    /// Whether the kernel may hand us frames with unfinished checksums and of many segments; without, it finishes and
    /// cuts all it sends. What we hand to the kernel may be of that kind in either case.
    pub offloads: bool,
}

impl Default for TapOptions {
    fn default() -> TapOptions {
        TapOptions { vnet_header: VnetHeaderLength::default(), offloads: true }
    }
}

/// What the kernel leaves to us in the frames it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// TCP and UDP checksums.
    pub checksum: bool,
    /// Cutting TCP over IPv4 and IPv6 into segments, those with congestion marks (RFC 3168) too.
    pub tcp_segments: bool,
    /// Cutting UDP into datagrams; kernels since Linux 6.2.
    pub udp_segments: bool,
}

/// The offloads to ask for, best first; a kernel that does not know one of a set refuses the set.
const OFFLOADS: [Offloads; 4] = [
    Offloads { checksum: true, tcp_segments: true, udp_segments: true },
    Offloads { checksum: true, tcp_segments: true, udp_segments: false },
    Offloads { checksum: true, tcp_segments: false, udp_segments: false },
    Offloads { checksum: false, tcp_segments: false, udp_segments: false },
];

impl Offloads {
    /// As the kernel takes them (`TUN_F_*`).
    fn flags(self) -> u32 {
        let mut flags = 0;
        if self.checksum {
            flags |= libc::TUN_F_CSUM;
        }
        if self.tcp_segments {
            flags |= libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        }
        if self.udp_segments {
            flags |= libc::TUN_F_USO4 | libc::TUN_F_USO6;
        }
        flags
    }
}

/// Our end of a TAP. Frames start with the vnet header, then the Ethernet header. No call waits.
#[derive(Debug)]
pub struct Tap {
    device: File,
    kernel_side: Interface,
    vnet_header: VnetHeaderLength,
    offloads: Offloads,
    persistent: bool,
    notes: Vec<String>,
}

impl Tap {
    /// Attaches to the TAP `name` in the calling thread's network namespace, or makes it if there is none; a `%d` in
    /// the name becomes the first free number. A TAP made here goes away with its last descriptor; one that was there
    /// is used as it is, and [`Tap::notes`] say what it would not give us. The kernel's side is left as it is: bring it
    /// up, and give it an address, with [`Tap::kernel_side`].
    ///
    /// # Errors
    /// See [`TapError`].
    pub fn open(name: &str, options: TapOptions) -> Result<Tap, TapError> {
        let known = known_name(name)?;
        let device = open_device_node()?;
        let fd = device.as_fd();
        let mut notes = Vec::new();
        let known = attach(fd, known, &mut notes)?;
        let name = known.to_string();
        let refused = |step| move |source| TapError::Refused { step, source };
        ioctl::set_vnet_header_bytes(fd, options.vnet_header.bytes() as i32).map_err(refused("set the vnet header"))?;
        let offloads = agree_offloads(fd, options.offloads, &mut notes)?;
        let flags = ioctl::tap_flags(fd).map_err(refused("read its flags"))?;
        let kernel_side = Interface::open(&name).map_err(TapError::KernelSide)?;
        let persistent = flags & libc::IFF_PERSIST != 0;
        Ok(Tap { device, kernel_side, vnet_header: options.vnet_header, offloads, persistent, notes })
    }

    /// The next frame from the kernel in one readv: the vnet header in the first bytes, the frame behind it. The answer
    /// is the bytes written into the slices, or `None` if no frame is there.
    ///
    /// Offer [`RECEIVE_BYTES`]: a longer frame arrives cut, and all that shows it is that the last byte was used.
    ///
    /// # Errors
    /// The device is gone, or the slices have no room for the vnet header or are more than [`SLICES_MAX`].
    pub fn receive(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        check_slices(slices.len())?;
        without_waiting(|| (&self.device).read_vectored(slices))
    }

    /// Sends one frame, vnet header first, in one writev. False if it would have to wait, and then it was not sent: more
    /// of our bytes are in the kernel than the TAP's send buffer allows. A new TAP's has no limit.
    ///
    /// # Errors
    /// The kernel's side is down (EIO) or gone, the vnet header contradicts the frame (EINVAL), or the slices are more
    /// than [`SLICES_MAX`].
    pub fn transmit(&mut self, slices: &[IoSlice<'_>]) -> io::Result<bool> {
        check_slices(slices.len())?;
        let sent = without_waiting(|| (&self.device).write_vectored(slices))?;
        // A TAP takes a frame whole or not at all.
        debug_assert!(sent.is_none_or(|count| count == slices.iter().map(|slice| slice.len()).sum::<usize>()));
        Ok(sent.is_some())
    }

    /// The descriptor, to wait for frames on ([`crate::poll::Source`]) or to hand to another process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// The interface at the kernel's end of the cable.
    pub fn kernel_side(&self) -> &Interface {
        &self.kernel_side
    }

    /// Its name, the number in place of `%d`.
    pub fn name(&self) -> String {
        self.kernel_side.name()
    }

    /// The MTU of the kernel's side in bytes, the Ethernet header not counted: what we may send and will receive, in
    /// frames of one segment.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn mtu(&self) -> Result<usize, InterfaceError> {
        self.kernel_side.mtu()
    }

    /// The Ethernet address of the kernel's side. Ours is another: [`local_hardware_address`] makes one.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn hardware_address(&self) -> Result<[u8; 6], InterfaceError> {
        self.kernel_side.hardware_address()
    }

    /// The length of the vnet header before each frame.
    pub fn vnet_header(&self) -> VnetHeaderLength {
        self.vnet_header
    }

    /// What the kernel leaves to us in frames we receive.
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// What we asked for and did not get, and what to beware of, a sentence each; empty if all is as asked.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// True if the TAP stays when its last descriptor is closed.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Makes the TAP stay when its last descriptor is closed, or go away with it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_persistent(&mut self, persistent: bool) -> io::Result<()> {
        ioctl::set_persistent(self.fd(), persistent)?;
        self.persistent = persistent;
        Ok(())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

/// An Ethernet address for our end of the cable: a random one of those that everybody may choose for himself (locally
/// administered, one station; IEEE 802, section 8.4).
pub fn local_hardware_address(random: &mut Random) -> [u8; 6] {
    let mut address = [0u8; 6];
    random.fill(&mut address);
    address[0] = address[0] & !0b01 | 0b10;
    address
}

/// One call that must not wait: `None` for "would block", and again if a signal came first.
fn without_waiting(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match call() {
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The standard library would silently use the first slices only, and a frame would arrive or leave cut.
fn check_slices(count: usize) -> io::Result<()> {
    if count <= SLICES_MAX {
        return Ok(());
    }
    let message = format!("a frame in slices: expected at most {SLICES_MAX}, got {count}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

fn known_name(name: &str) -> Result<InterfaceName, TapError> {
    if name.len() > NAME_BYTES_MAX {
        return Err(TapError::NameTooLong { got: name.into() });
    }
    // Any other percent sign is a pattern that the kernel refuses, or none.
    let pattern = name.replacen("%d", "", 1);
    match InterfaceName::new(name) {
        Some(known) if !name.is_empty() && !pattern.contains('%') => Ok(known),
        _ => Err(TapError::NameIllegal { got: name.into() }),
    }
}

fn open_device_node() -> Result<File, TapError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    options.open(DEVICE_NODE).map_err(device_node_error)
}

fn device_node_error(source: io::Error) -> TapError {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => TapError::NoDeviceNode { source },
        Some(libc::EACCES | libc::EPERM) => TapError::DeviceNodeClosed { source },
        _ => TapError::Refused { step: "open /dev/net/tun", source },
    }
}

fn attach(fd: BorrowedFd<'_>, name: InterfaceName, notes: &mut Vec<String>) -> Result<InterfaceName, TapError> {
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    let named = || name.to_string();
    let source = match ioctl::attach_tap(fd, name, flags) {
        Ok(name) => return Ok(name),
        Err(source) => source,
    };
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Err(TapError::NoPermission { name: named(), source }),
        Some(libc::EBUSY) => Err(TapError::Busy { name: named(), source }),
        Some(libc::EINVAL) if exists(name) => {
            // An existing TAP for several queues takes only those who say so; of it we use one queue.
            let attached = ioctl::attach_tap(fd, name, flags | libc::IFF_MULTI_QUEUE);
            let attached = attached.map_err(|_| TapError::NotATap { name: named(), source })?;
            notes.push(format!(
                "`{name}` has several queues: frames may go to the others, and who holds one can reconfigure all"
            ));
            Ok(attached)
        }
        _ => Err(TapError::Refused { step: "attach to it with vnet headers", source }),
    }
}

fn exists(name: InterfaceName) -> bool {
    socket::control_socket().and_then(|socket| ioctl::index(socket.as_fd(), name)).is_ok()
}

/// Settles on the best offloads the kernel takes.
fn agree_offloads(fd: BorrowedFd<'_>, wanted: bool, notes: &mut Vec<String>) -> Result<Offloads, TapError> {
    let choices = if wanted { &OFFLOADS[..] } else { &OFFLOADS[OFFLOADS.len() - 1..] };
    let mut refusal = None;
    for &offloads in choices {
        match ioctl::set_offloads(fd, offloads.flags()) {
            Ok(()) => {
                if wanted && offloads != OFFLOADS[0] {
                    notes.push(format!("this kernel does not offer all offloads: {offloads:?}"));
                }
                return Ok(offloads);
            }
            Err(source) => refusal = Some(source),
        }
    }
    let source = refusal.expect("there is at least one choice, and each was refused");
    Err(TapError::Refused { step: "set its offloads", source })
}

/// A TAP that could not be opened; printed with what to do about it.
#[derive(Debug)]
pub enum TapError {
    /// The kernel has no TAPs, or not here.
    NoDeviceNode {
        /// The error of opening /dev/net/tun.
        source: io::Error,
    },
    /// This user may not open /dev/net/tun.
    DeviceNodeClosed {
        /// The error of opening /dev/net/tun.
        source: io::Error,
    },
    /// This user may neither make the TAP nor attach to it.
    NoPermission {
        /// The TAP's name.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The name has more than [`NAME_BYTES_MAX`] bytes.
    NameTooLong {
        /// The name.
        got: String,
    },
    /// The name has characters an interface's name cannot have, or none.
    NameIllegal {
        /// The name.
        got: String,
    },
    /// Somebody else holds the TAP.
    Busy {
        /// The TAP's name.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There is an interface of that name and it is no TAP.
    NotATap {
        /// The interface's name.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The TAP is there, but its kernel side could not be opened.
    KernelSide(InterfaceError),
    /// The kernel refused a step for a reason not listed here.
    Refused {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl fmt::Display for TapError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapError::NoDeviceNode { source } => write!(
                formatter,
                "{DEVICE_NODE}: {source}; load the module (modprobe tun), or make the node \
                 (mkdir -p /dev/net; mknod {DEVICE_NODE} c 10 200), or hand the device to this container"
            ),
            TapError::DeviceNodeClosed { source } => write!(
                formatter,
                "{DEVICE_NODE}: {source}; run as root, or open the node to this user (chmod 0666 {DEVICE_NODE})"
            ),
            TapError::NoPermission { name, source } => write!(
                formatter,
                "TAP `{name}`: {source}; needs CAP_NET_ADMIN in the network namespace, or a TAP that root made for this \
                 user (ip tuntap add dev {name} mode tap user NAME)"
            ),
            TapError::NameTooLong { got } => write!(
                formatter,
                "TAP name: expected at most {NAME_BYTES_MAX} bytes, got {} in `{got}`; choose a shorter one",
                got.len()
            ),
            TapError::NameIllegal { got } => write!(
                formatter,
                "TAP name: expected letters, digits or such without `/`, `:` and spaces, with at most one `%d` for a \
                 number, got `{got}`; choose another one"
            ),
            TapError::Busy { name, source } => {
                write!(formatter, "TAP `{name}`: {source}; another process holds it: end that, or choose another name")
            }
            TapError::NotATap { name, source } => write!(
                formatter,
                "TAP `{name}`: {source}; there is an interface of that name which is no TAP: choose another name"
            ),
            TapError::KernelSide(error) => write!(formatter, "TAP: {error}"),
            TapError::Refused { step, source } => write!(formatter, "TAP: {step}: {source}"),
        }
    }
}

impl std::error::Error for TapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TapError::NameTooLong { .. } | TapError::NameIllegal { .. } => None,
            TapError::KernelSide(error) => Some(error),
            TapError::NoDeviceNode { source }
            | TapError::DeviceNodeClosed { source }
            | TapError::NoPermission { source, .. }
            | TapError::Busy { source, .. }
            | TapError::NotATap { source, .. }
            | TapError::Refused { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests;
