//! Packet sockets (packet(7)): whole frames from and to one interface, several in one call where there are several. The
//! frame's parts are named by slices of the caller's, so that nothing is copied on the way; what the kernel took off a
//! frame (its VLAN tag) comes beside it.
#![allow(unsafe_code)]

use super::checked;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The most frames that one call takes or gives.
pub(crate) const BATCH_MAX: usize = 32;

/// Every kind of frame, in network order as the calls want it.
const ALL_KINDS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet socket that receives nothing before it is bound; no call on it waits.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) takes no pointers. The protocol 0 means: no frames yet.
    let descriptor = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Binds the socket to the interface of this index: from here on it receives every frame that arrives there.
pub(crate) fn bind(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    // SAFETY: an all-zero `sockaddr_ll` is one without an interface.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ALL_KINDS;
    address.sll_ifindex = interface as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of `address`, which the call only reads.
    checked(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) }).map(drop)
}

/// The options of a packet socket that are one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketOption {
    /// A vnet header before every frame, both ways.
    VnetHeader,
    /// Nothing of what the machine sends.
    IgnoreOutgoing,
    /// Frames go to the driver past the queueing discipline.
    Bypass,
    /// What was taken off a frame is told beside it.
    Auxiliary,
    /// Frames are shared out among the sockets of a group.
    Fanout,
}

/// Sets an option.
pub(crate) fn set(socket: BorrowedFd<'_>, option: PacketOption, value: i32) -> io::Result<()> {
    let name = match option {
        PacketOption::VnetHeader => libc::PACKET_VNET_HDR,
        PacketOption::IgnoreOutgoing => libc::PACKET_IGNORE_OUTGOING,
        PacketOption::Bypass => libc::PACKET_QDISC_BYPASS,
        PacketOption::Auxiliary => libc::PACKET_AUXDATA,
        PacketOption::Fanout => libc::PACKET_FANOUT,
    };
    // SAFETY: each of these options is an int, which the value is.
    unsafe { set_option(socket, libc::SOL_PACKET, name, &value) }
}

/// Founds a group of sockets that nobody else has, with this one in it, and says the word by which others join
/// ([`PacketOption::Fanout`]). Frames go by the hash of their conversation, so that each conversation stays with one
/// socket.
pub(crate) fn found_group(socket: BorrowedFd<'_>) -> io::Result<i32> {
    // The group has a hook of its own, which must be told again to leave out what the machine sends.
    let kind = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    set(socket, PacketOption::Fanout, ((kind | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16) as i32)?;
    let mut word: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an int, and the pointer and the length are those of `word`.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_FANOUT,
            std::ptr::from_mut(&mut word).cast(),
            &mut length,
        )
    })?;
    Ok(word)
}

/// Makes the interface take in frames for other stations too, as long as the socket lives.
pub(crate) fn be_promiscuous(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the option is a `packet_mreq`, which the request is.
    unsafe { set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request) }
}

/// Asks for buffers of so many bytes in each direction: past the system's limit where this process may, else up to it.
/// Says whether it was past it.
pub(crate) fn set_buffers(socket: BorrowedFd<'_>, receive_bytes: i32, send_bytes: i32) -> io::Result<bool> {
    let mut forced = true;
    for (force, ask, bytes) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, receive_bytes), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, send_bytes)]
    {
        // SAFETY: each of these options is an int, which the value is.
        if unsafe { set_option(socket, libc::SOL_SOCKET, force, &bytes) }.is_err() {
            forced = false;
            // SAFETY: as above.
            unsafe { set_option(socket, libc::SOL_SOCKET, ask, &bytes) }?;
        }
    }
    Ok(forced)
}

/// The frames that went by the socket, and those it lost because its buffer was full, since this was asked last.
pub(crate) fn statistics(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the option is a `tpacket_stats`, and the pointer and the length are those of one.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            std::ptr::from_mut(&mut statistics).cast(),
            &mut length,
        )
    })?;
    Ok((statistics.tp_packets, statistics.tp_drops))
}

/// # Safety
/// The option must be one whose value is a `T`.
unsafe fn set_option<T>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of `value`, which the call only reads.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) })
        .map(drop)
}

/// A VLAN tag: its kind and its value (IEEE 802.1Q).
pub(crate) type Tag = (u16, u16);

/// Room for one frame, and what came into it.
pub(crate) struct Slot<'slices, 'bytes> {
    parts: &'slices mut [IoSliceMut<'bytes>],
    /// Bytes that came, the vnet header included.
    pub(crate) length: usize,
    /// False if the frame was longer than its room.
    pub(crate) whole: bool,
    /// The VLAN tag that stood in the frame.
    pub(crate) tag: Option<Tag>,
}

impl<'slices, 'bytes> Slot<'slices, 'bytes> {
    /// Room in these parts, filled one after the other.
    pub(crate) fn new(parts: &'slices mut [IoSliceMut<'bytes>]) -> Slot<'slices, 'bytes> {
        Slot { parts, length: 0, whole: true, tag: None }
    }
}

/// `CMSG_SPACE` of one `tpacket_auxdata`, in words: header and data are both multiples of eight bytes with padding.
const CONTROL_WORDS: usize = (size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>()).div_ceil(8);

/// What is told beside a frame: one control message.
#[repr(C, align(8))]
struct Control([MaybeUninit<u64>; CONTROL_WORDS]);

/// Receives frames into `slots`, as many as are there and have room: how many. Never waits: with none there it is an
/// error of the kind `WouldBlock`.
pub(crate) fn receive(socket: BorrowedFd<'_>, slots: &mut [Slot<'_, '_>]) -> io::Result<usize> {
    let count = slots.len().min(BATCH_MAX);
    let mut controls = [const { Control([const { MaybeUninit::uninit() }; CONTROL_WORDS]) }; BATCH_MAX];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
    for ((slot, message), control) in slots.iter_mut().zip(&mut messages).zip(&mut controls).take(count) {
        // SAFETY: an all-zero `mmsghdr` is one of nothing.
        let message = message.write(unsafe { std::mem::zeroed() });
        // `IoSliceMut` has the layout of `iovec` (its documentation promises that).
        message.msg_hdr.msg_iov = slot.parts.as_mut_ptr().cast();
        message.msg_hdr.msg_iovlen = slot.parts.len() as _;
        message.msg_hdr.msg_control = std::ptr::from_mut(control).cast();
        message.msg_hdr.msg_controllen = size_of::<Control>() as _;
    }
    // SAFETY: the first `count` headers were written above. They point to slices that are borrowed mutably for longer
    // than the call, and to controls of the length they say. No timeout is given.
    let answer = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            count as _,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    let got = checked(answer)? as usize;
    for ((slot, message), control) in slots.iter_mut().zip(&messages).zip(&controls).take(got) {
        // SAFETY: the first `count` headers were written above, and no more than those are received.
        let message = unsafe { message.assume_init_ref() };
        slot.length = message.msg_len as usize;
        slot.whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
        slot.tag = tag(control, message.msg_hdr.msg_controllen);
    }
    Ok(got)
}

/// The VLAN tag that the first `length` bytes of a control message tell of.
fn tag(control: &Control, length: usize) -> Option<Tag> {
    // The data begin behind the header, whose size is a multiple of its alignment (CMSG_DATA).
    const DATA: usize = size_of::<libc::cmsghdr>();
    if length < DATA + size_of::<libc::tpacket_auxdata>() {
        return None;
    }
    let bytes: *const u8 = std::ptr::from_ref(control).cast();
    // SAFETY: the kernel has written `length` bytes, which hold a header and auxiliary data; both are plain numbers, and
    // the control is aligned for the header.
    let (header, data) = unsafe {
        (bytes.cast::<libc::cmsghdr>().read(), bytes.add(DATA).cast::<libc::tpacket_auxdata>().read_unaligned())
    };
    let ours = header.cmsg_level == libc::SOL_PACKET && header.cmsg_type == libc::PACKET_AUXDATA;
    if !ours || data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = if data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        libc::ETH_P_8021Q as u16
    } else {
        data.tp_vlan_tpid
    };
    Some((kind, data.tp_vlan_tci))
}

const _: () = assert!(offset_of!(libc::tpacket_auxdata, tp_vlan_tpid) + 2 == size_of::<libc::tpacket_auxdata>());

/// Sends one frame from its parts. Never waits.
pub(crate) fn send(socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: an all-zero `msghdr` is one of nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the header points to slices that outlive the call, with the layout of `iovec`; the call only reads them.
    let answer = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Sends frames, each from its parts: how many were sent. Never waits; the error is the first frame's.
pub(crate) fn send_all(socket: BorrowedFd<'_>, frames: &[[IoSlice<'_>; 2]]) -> io::Result<usize> {
    let count = frames.len().min(BATCH_MAX);
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_MAX];
    for (frame, message) in frames.iter().zip(&mut messages).take(count) {
        // SAFETY: an all-zero `mmsghdr` is one of nothing.
        let message = message.write(unsafe { std::mem::zeroed() });
        message.msg_hdr.msg_iov = frame.as_ptr().cast_mut().cast();
        message.msg_hdr.msg_iovlen = frame.len() as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers were written above and point to slices that outlive the call, with the layout of
    // `iovec`; the call reads the bytes and writes the headers only.
    let answer = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr().cast(), count as _, flags as _) };
    checked(answer).map(|sent| sent as usize)
}

/// One descriptor that is readable while any of `descriptors` is (epoll(7)).
pub(crate) fn any_of(descriptors: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1(2) takes no pointers.
    let all = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the kernel has just made this descriptor for us, so nobody else owns it.
    let all = unsafe { OwnedFd::from_raw_fd(all) };
    for descriptor in descriptors {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: both descriptors are open, and the event is a local that the call only reads.
        checked(unsafe { libc::epoll_ctl(all.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor.as_raw_fd(), &mut event) })?;
    }
    Ok(all)
}
