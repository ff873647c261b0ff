//! A TAP as a device of a stack. A frame crosses in one system call in either direction, whatever it stands for: it is
//! received into a small buffer with the rest in a large one, so that a short frame takes no large buffer, and it is
//! sent from wherever its bytes lie. Cutting and checksums are left to the kernel, or to nobody when both ends need none.

use super::{Device, offload};
use crate::interface::InterfaceError;
use crate::lock;
use crate::tap::{Tap, VnetHeaderLength};
use smallvec::SmallVec;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use xylem_core::{Buffer, HEADROOM, Message, Pool, Slice, pool};
use xylem_graph::instance::DeviceFacts;
use xylem_wire::{EthernetHeader, Header, VnetHeader};

/// See the module's text.
pub struct TapDevice {
    tap: Tap,
    /// The same open file. Its reads and writes need no lock of ours: the kernel takes and gives whole frames.
    file: File,
    facts: DeviceFacts,
    /// Buffers for the next frame.
    ready: Mutex<Ready>,
    unread: AtomicU64,
    unreadable: AtomicU64,
    /// The interface has gone: there is nothing to wait for any more.
    gone: AtomicBool,
}

#[derive(Default)]
struct Ready {
    small: Option<Buffer>,
    large: Option<Buffer>,
}

/// The longest vnet header in bytes.
const VNET_BYTES_MAX: usize = VnetHeaderLength::Twelve.bytes();
/// Frames of so few bytes are copied together and sent in one piece: the kernel takes longer to look at a list of pieces
/// than a copy takes.
const GATHERED_MAX: usize = 256;
/// The slices of a frame that are sent without allocating: a header, a vnet header, and the chunks of 64 KB.
const SLICES: usize = 24;

impl TapDevice {
    /// Our end of `tap`. The kernel's side keeps the MTU it has now.
    ///
    /// # Errors
    /// The interface has gone, or the process has too many open files.
    pub fn new(tap: Tap) -> Result<TapDevice, TapDeviceError> {
        let mtu = tap.mtu().map_err(TapDeviceError::Interface)?;
        let file = tap.fd().try_clone_to_owned().map_err(TapDeviceError::Descriptor)?;
        let facts = DeviceFacts {
            name: tap.name(),
            frame_max: mtu + EthernetHeader::LEN,
            // What we hand to the kernel may be unfinished and uncut whatever it hands to us.
            checksum_offload: true,
            segment_offload: true,
        };
        let (ready, unread, unreadable) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        Ok(TapDevice { tap, file: file.into(), facts, ready, unread, unreadable, gone: AtomicBool::new(false) })
    }

    /// The TAP.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Frames that were thrown away because the pool had no buffer for them.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// Reads one frame into the buffers at hand: how many bytes with the vnet header, or `None` if there is no frame.
    fn read(&self, slices: &mut [IoSliceMut<'_>]) -> Option<usize> {
        loop {
            match (&self.file).read_vectored(slices) {
                Ok(count) => return Some(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {
                    // A descriptor without its interface is readable for ever.
                    self.gone.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
    }

    /// Writes one frame; `false`: full, down or gone, and the frame is lost as on any link.
    fn write(&self, attempt: impl Fn(&mut &File) -> io::Result<usize>) -> bool {
        loop {
            match attempt(&mut &self.file) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Takes a frame off the TAP for which there is no buffer.
    fn throw_away(&self) -> bool {
        let mut bytes = [0; VNET_BYTES_MAX + EthernetHeader::LEN];
        let read = self.read(&mut [IoSliceMut::new(&mut bytes)]);
        self.unread.fetch_add(u64::from(read.is_some()), Ordering::Relaxed);
        read.is_some()
    }
}

impl Device for TapDevice {
    fn facts(&self) -> DeviceFacts {
        self.facts.clone()
    }

    fn receive(&self, pool: &Pool) -> Option<Message> {
        let mut ready = lock(&self.ready);
        loop {
            let (Some(mut small), Some(mut large)) = (
                ready.small.take().or_else(|| pool.take(pool::SMALL)),
                ready.large.take().or_else(|| pool.take(pool::LARGE)),
            ) else {
                if self.throw_away() {
                    continue;
                }
                return None;
            };
            // The kernel puts the vnet header before every frame: it comes to lie in the headroom.
            let vnet_length = self.tap.vnet_header().bytes();
            let vnet_at = HEADROOM - vnet_length;
            let slices = &mut [IoSliceMut::new(&mut small[vnet_at..]), IoSliceMut::new(&mut large)];
            let Some(count) = self.read(slices) else {
                *ready = Ready { small: Some(small), large: Some(large) };
                return None;
            };
            let header = VnetHeader::parse(&small[vnet_at..]).expect("the headroom holds a vnet header");
            let frame = count.saturating_sub(vnet_length);
            let in_small = frame.min(small.len() - HEADROOM);
            let mut message = Message::from_buffer(small, HEADROOM, HEADROOM + in_small);
            if frame > in_small {
                message.append_slice(Slice::new(large.share(), 0, frame - in_small));
            } else {
                ready.large = Some(large);
            }
            if offload::note(&header, &mut message) {
                return Some(message);
            }
            self.unreadable.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn transmit(&self, frame: &mut Message) -> bool {
        let Some(header) = offload::vnet_header_of(frame) else {
            debug_assert!(false, "a frame whose attributes contradict its bytes");
            return false;
        };
        let mut vnet = [0; VNET_BYTES_MAX];
        header.build(&mut vnet);
        let vnet_length = self.tap.vnet_header().bytes();
        if vnet_length + frame.len() <= GATHERED_MAX {
            let mut bytes = [0; GATHERED_MAX];
            bytes[..vnet_length].copy_from_slice(&vnet[..vnet_length]);
            let length = vnet_length + frame.copy_to(&mut bytes[vnet_length..]);
            return self.write(|file| file.write(&bytes[..length]));
        }
        let mut slices: SmallVec<[IoSlice<'_>; SLICES]> = SmallVec::new();
        slices.push(IoSlice::new(&vnet[..vnet_length]));
        slices.extend(frame.slices().map(IoSlice::new));
        if slices.len() > crate::tap::SLICES_MAX {
            return false;
        }
        self.write(|file| file.write_vectored(&slices))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.gone.load(Ordering::Relaxed)).then(|| self.file.as_fd())
    }

    fn drops(&self) -> Vec<(&'static str, u64)> {
        vec![("the pool had no buffer", self.unread()), ("unreadable", self.unreadable.load(Ordering::Relaxed))]
    }
}

/// A TAP that could not become a device.
#[derive(Debug)]
pub enum TapDeviceError {
    /// The kernel's side did not say its MTU.
    Interface(InterfaceError),
    /// The descriptor could not be doubled.
    Descriptor(io::Error),
}

impl fmt::Display for TapDeviceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapDeviceError::Interface(error) => error.fmt(formatter),
            TapDeviceError::Descriptor(error) => write!(formatter, "double the descriptor of the TAP: {error}"),
        }
    }
}

impl std::error::Error for TapDeviceError {}
