//! Packet sockets on an interface (packet(7)): every frame that arrives there, and frames sent there as they are, behind
//! a vnet header (VIRTIO 1.2, section 5.1.6) that leaves checksums and cutting to the kernel. They need no device node
//! and work for an ordinary user in a user namespace. The kernel's own stack sees the same frames; what must be true of
//! it stands at [`PacketOptions::promiscuous`] and [`PacketSocket::open`].

use crate::interface::{Interface, InterfaceError};
use crate::system::ioctl::Feature;
use crate::system::packet::{self, BATCH_MAX, PacketOption, Slot};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most sockets on one interface: the processors of a large machine.
pub const QUEUES_MAX: usize = 64;

/// The receive buffer asked for by default, in bytes for each queue: 25 ms at 5 Gb/s.
pub const RECEIVE_BYTES: usize = 16 << 20;

/// The largest buffer that can be asked for, in bytes: the kernel doubles the number and keeps it signed.
pub const BUFFER_BYTES_MAX: usize = 512 << 20;

/// The send buffer asked for, in bytes: what a driver holds until it has sent.
const SEND_BYTES: usize = 8 << 20;

/// How to open packet sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOptions {
    /// How many sockets, each with a queue of its own; the kernel shares conversations out by their hash. One queue's
    /// buffer is usually enough for a stack, which receives on one thread; several take the kernel's processors out of
    /// each other's way.
    pub queues: usize,
    /// The receive buffer of each queue in bytes, the kernel's bookkeeping included; at most [`BUFFER_BYTES_MAX`]. A
    /// frame that finds it full is dropped and counted.
    pub receive_bytes: usize,
    /// Whether to take in frames for other stations. A stack with a link address of its own needs it, and that is the
    /// usual case: the kernel drops what is for another station before it looks at addresses, so it neither answers nor
    /// forwards what is ours. Where the network delivers to the interface's own address only (wireless links, clouds),
    /// give the stack that address and leave this out; then the kernel must not forward.
    pub promiscuous: bool,
    /// Whether to send past the queueing discipline. It saves next to nothing where there is none (veth) and loses
    /// frames where the driver is busy; frames that the interface cannot cut by itself are lost too, so none are then
    /// given to it.
    pub bypass: bool,
}

impl Default for PacketOptions {
    fn default() -> PacketOptions {
        PacketOptions { queues: 1, receive_bytes: RECEIVE_BYTES, promiscuous: true, bypass: false }
    }
}

/// What the interface does to frames by itself, as ethtool(8) shows it. The kernel does for it what it does not do,
/// unless it is bypassed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceOffloads {
    /// It finishes TCP and UDP checksums.
    pub checksum: bool,
    /// It cuts TCP into segments.
    pub tcp_segments: bool,
}

/// Room for a frame, its parts filled one after the other, and what came into it.
pub(crate) type Room<'slices, 'bytes> = Slot<'slices, 'bytes>;

/// One or several packet sockets on one interface. No call waits.
#[derive(Debug)]
pub struct PacketSocket {
    interface: Interface,
    queues: Vec<OwnedFd>,
    /// Readable while a queue is; only where there are several.
    any: Option<OwnedFd>,
    options: PacketOptions,
    offloads: InterfaceOffloads,
    tail_drops: AtomicU64,
    notes: Vec<String>,
}

impl PacketSocket {
    /// Sockets on the interface `name` of the calling thread's network namespace, for good.
    ///
    /// The kernel's own stack goes on seeing the interface's frames. So it must not have the stack's IP address there
    /// ([`Interface::kernel_has`]): it would answer ARP with its own link address and connections with resets.
    ///
    /// # Errors
    /// See [`PacketError`].
    pub fn open(name: &str, options: PacketOptions) -> Result<PacketSocket, PacketError> {
        if !(1..=QUEUES_MAX).contains(&options.queues) {
            return Err(PacketError::Queues { got: options.queues });
        }
        if options.receive_bytes > BUFFER_BYTES_MAX {
            return Err(PacketError::BufferBytes { got: options.receive_bytes });
        }
        let interface = Interface::open(name).map_err(PacketError::Interface)?;
        let kind = interface.hardware_kind().map_err(PacketError::Interface)?;
        if kind != libc::ARPHRD_ETHER {
            return Err(PacketError::NotEthernet { name: name.into(), kind });
        }
        let offloads = InterfaceOffloads {
            checksum: interface.has_feature(Feature::Checksum),
            tcp_segments: interface.has_feature(Feature::TcpSegments),
        };
        let mut notes = Vec::new();
        let mut queues: Vec<OwnedFd> = Vec::new();
        let mut group = None;
        for _ in 0..options.queues {
            let socket = open_queue(&interface, &options, &mut notes)?;
            match group {
                None if options.queues > 1 => {
                    group = Some(packet::found_group(socket.as_fd()).map_err(failed(FANOUT))?)
                }
                None => {}
                Some(word) => {
                    packet::set(socket.as_fd(), PacketOption::Fanout, word).map_err(failed(FANOUT))?;
                    // What came between binding and joining came to the others too.
                    throw_away_all(socket.as_fd());
                }
            }
            queues.push(socket);
        }
        let several: Vec<BorrowedFd<'_>> = queues.iter().map(OwnedFd::as_fd).collect();
        let any = (several.len() > 1).then(|| packet::any_of(&several)).transpose();
        let any = any.map_err(failed("wait for several queues at once"))?;
        let tail_drops = AtomicU64::new(0);
        Ok(PacketSocket { interface, queues, any, options, offloads, tail_drops, notes })
    }

    /// The interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// How it was opened.
    pub fn options(&self) -> PacketOptions {
        self.options
    }

    /// What the interface did by itself when it was opened.
    pub fn offloads(&self) -> InterfaceOffloads {
        self.offloads
    }

    /// What was asked for and not given, a sentence each; empty if all is as asked.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What becomes readable when a frame arrives.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match (&self.any, &self.queues[..]) {
            (Some(any), _) => any.as_fd(),
            (None, queues) => queues.first().expect("there is at least one queue").as_fd(),
        }
    }

    /// Frames that found a receive buffer full since the sockets were opened.
    pub fn tail_drops(&self) -> u64 {
        let mut count = 0;
        for queue in &self.queues {
            // The kernel counts from its last answer on; asked about an open socket of ours it has one.
            count += packet::statistics(queue.as_fd()).map_or(0, |(_, drops)| u64::from(drops));
        }
        self.tail_drops.fetch_add(count, Ordering::Relaxed) + count
    }

    /// Receives frames of one queue, vnet header first, as many as are there and have room: how many; zero if none is
    /// there.
    ///
    /// # Errors
    /// A frame the kernel could not hand over (it is gone; there may be others), or the interface is down.
    pub(crate) fn receive(&self, queue: usize, rooms: &mut [Room<'_, '_>]) -> io::Result<usize> {
        loop {
            match packet::receive(self.queues[queue].as_fd(), rooms) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => return answer,
            }
        }
    }

    /// Sends a frame, vnet header first. False if the interface or the socket takes no more at the moment, or not such a
    /// frame: it is gone.
    pub(crate) fn transmit(&self, parts: &[IoSlice<'_>]) -> bool {
        // One queue serves all senders: sending takes no lock of the socket's.
        let Some(socket) = self.queues.first() else { return false };
        loop {
            match packet::send(socket.as_fd(), parts) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Sends frames, each a vnet header and its bytes, with as few calls as the system allows: how many were sent. One
    /// that is not taken is gone, and those behind it are sent all the same.
    pub(crate) fn transmit_all(&self, frames: &[[IoSlice<'_>; 2]]) -> usize {
        let Some(socket) = self.queues.first() else { return 0 };
        let (mut at, mut sent) = (0, 0);
        while at < frames.len() {
            match packet::send_all(socket.as_fd(), &frames[at..]) {
                Ok(count) => {
                    at += count;
                    sent += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => at += 1,
            }
        }
        sent
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}

const FANOUT: &str = "share frames out among several queues";

/// A socket with the options, bound to the interface.
fn open_queue(interface: &Interface, options: &PacketOptions, notes: &mut Vec<String>) -> Result<OwnedFd, PacketError> {
    let socket = packet::socket().map_err(|source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => PacketError::NoPermission { name: interface.name(), source },
        _ => PacketError::Refused { step: "open a packet socket", source },
    })?;
    let fd = socket.as_fd();
    let set = |option, step| packet::set(fd, option, 1).map_err(failed(step));
    set(PacketOption::VnetHeader, "ask for vnet headers")?;
    set(PacketOption::Auxiliary, "ask for VLAN tags")?;
    set(PacketOption::IgnoreOutgoing, "leave out what the machine sends")?;
    if options.bypass {
        set(PacketOption::Bypass, "send past the queueing discipline")?;
    }
    let bytes = options.receive_bytes as i32;
    let forced = packet::set_buffers(fd, bytes, SEND_BYTES as i32).map_err(failed("set its buffers"))?;
    if !forced && notes.is_empty() {
        notes.push(format!(
            "the receive buffer of {} bytes was not given in full: sysctl net.core.rmem_max={bytes}, or run as root",
            options.receive_bytes
        ));
    }
    if options.promiscuous {
        packet::be_promiscuous(fd, interface.index()).map_err(failed("take in frames for other stations"))?;
    }
    packet::bind(fd, interface.index()).map_err(failed("bind to it"))?;
    Ok(socket)
}

/// Empties a queue.
fn throw_away_all(socket: BorrowedFd<'_>) {
    let mut byte = [0; 1];
    for _ in 0..THROWN_AWAY_MAX {
        let parts = &mut [IoSliceMut::new(&mut byte)];
        if packet::receive(socket, &mut [Slot::new(parts)]).is_err() {
            return;
        }
    }
}

/// The most frames thrown away at the opening of a queue; a second copy of more is no harm, only work.
const THROWN_AWAY_MAX: usize = 64 * BATCH_MAX;

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> PacketError {
    move |source| PacketError::Refused { step, source }
}

/// Packet sockets that could not be opened; printed with what to do about it.
#[derive(Debug)]
pub enum PacketError {
    /// There is no such interface, or it does not answer.
    Interface(InterfaceError),
    /// It is another kind of interface.
    NotEthernet {
        /// Its name.
        name: String,
        /// Its kind (`ARPHRD_*`).
        kind: u16,
    },
    /// Not 1 to [`QUEUES_MAX`] queues.
    Queues {
        /// What was asked.
        got: usize,
    },
    /// More than [`BUFFER_BYTES_MAX`].
    BufferBytes {
        /// What was asked.
        got: usize,
    },
    /// This process may not open packet sockets here.
    NoPermission {
        /// The interface's name.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refused a step for a reason not listed here.
    Refused {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::Interface(error) => error.fmt(formatter),
            PacketError::NotEthernet { name, kind } => write!(
                formatter,
                "interface `{name}`: expected an Ethernet, got hardware of kind {kind}; use a veth, a bridge or a network \
                 card"
            ),
            PacketError::Queues { got } => {
                write!(formatter, "queues: expected 1 to {QUEUES_MAX}, got {got}; leave it out for one")
            }
            PacketError::BufferBytes { got } => {
                write!(formatter, "receive buffer: expected at most {BUFFER_BYTES_MAX} bytes, got {got}; ask for less")
            }
            PacketError::NoPermission { name, source } => write!(
                formatter,
                "packet sockets on `{name}`: {source}; needs CAP_NET_RAW in its network namespace: run as root, or be \
                 root in a user namespace (unshare --user --map-root-user --net)"
            ),
            PacketError::Refused { step, source } => write!(formatter, "packet sockets: {step}: {source}"),
        }
    }
}

impl std::error::Error for PacketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PacketError::Interface(error) => Some(error),
            PacketError::NoPermission { source, .. } | PacketError::Refused { source, .. } => Some(source),
            PacketError::NotEthernet { .. } | PacketError::Queues { .. } | PacketError::BufferBytes { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
