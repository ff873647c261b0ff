//! Packet sockets as a device of a stack: what a TAP is where TAPs cannot be had, and the way onto an interface that is
//! there already. One system call sends a frame, whatever it stands for; one receives as many as came together, each into
//! a small buffer with the rest in a large one. Frames with a VLAN tag belong to another network and are dropped.

use super::cut::cut;
use super::{Device, offload};
use crate::interface::InterfaceError;
use crate::lock;
use crate::packet::{PacketSocket, Room};
use crate::system::packet::BATCH_MAX;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use xylem_core::{Buffer, HEADROOM, Message, Pool, Slice, pool};
use xylem_graph::instance::DeviceFacts;
use xylem_wire::{EthernetHeader, Header, VnetHeader, VnetOffload};

/// See the module's text.
pub struct PacketDevice {
    socket: PacketSocket,
    facts: DeviceFacts,
    inbox: Mutex<Inbox>,
    counters: Counted,
}

/// Why frames were lost on the way in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketDrops {
    /// The socket's receive buffer was full.
    pub tail: u64,
    /// The pool had no buffer.
    pub no_buffer: u64,
    /// They had a VLAN tag.
    pub tagged: u64,
    /// They were longer than a buffer, or the kernel could not hand them over, or they contradicted themselves.
    pub unreadable: u64,
}

#[derive(Default)]
struct Counted {
    no_buffer: AtomicU64,
    tagged: AtomicU64,
    unreadable: AtomicU64,
}

/// What arrived and was not asked for yet, and memory for what comes next.
struct Inbox {
    arrived: VecDeque<Message>,
    rooms: Vec<Buffers>,
    /// How many frames to ask for: few while frames come alone, more while they come together.
    batch: usize,
    /// The queue that is asked next, and how many in a row have been seen empty.
    queue: usize,
    dry: usize,
    /// Memory to cut a frame in; only where the stack gets whole frames only.
    bench: Vec<u8>,
}

/// Room for one frame. What a frame has used is replaced before the next call.
#[derive(Default)]
struct Buffers {
    vnet: [u8; VnetHeader::LEN],
    small: Option<Buffer>,
    large: Option<Buffer>,
}

/// What the kernel said of a frame.
struct Arrival {
    length: usize,
    whole: bool,
    tagged: bool,
}

/// The slices of a frame that are sent without allocating: a header, a vnet header, and the chunks of 64 KB.
const SLICES: usize = 24;

/// The longest frame that fits a small and a large buffer, in bytes.
const FRAME_MAX: usize = pool::SMALL - HEADROOM + pool::LARGE;

/// The most frames of one call. Each has a large buffer waiting for it, and those are few in a pool.
const ROOMS_MAX: usize = 16;
const _: () = assert!(ROOMS_MAX <= BATCH_MAX, "a batch is one call");

/// The most calls in one `receive` that may bring nothing to hand up, so that a flood of what is dropped here does not
/// keep the stack from its other work.
const VAIN_CALLS_MAX: usize = 64;

impl PacketDevice {
    /// The interface's frames. Its MTU is what it is now.
    ///
    /// The kernel finishes and cuts what the stack sends, in the interface where that can and else by itself, so the facts
    /// promise both; past the queueing discipline only the interface does, and they promise what it can.
    ///
    /// # Errors
    /// The interface has gone.
    pub fn new(socket: PacketSocket) -> Result<PacketDevice, InterfaceError> {
        let mtu = socket.interface().mtu()?;
        let facts = DeviceFacts {
            name: socket.interface().name(),
            frame_max: mtu + EthernetHeader::LEN,
            checksum_offload: true,
            segment_offload: !socket.options().bypass || socket.offloads().tcp_segments,
        };
        let inbox =
            Inbox { arrived: VecDeque::new(), rooms: Vec::new(), batch: 1, queue: 0, dry: 0, bench: Vec::new() };
        Ok(PacketDevice { socket, facts, inbox: Mutex::new(inbox), counters: Counted::default() })
    }

    /// The same device, whose stack finishes checksums and cuts messages by itself and gets whole frames only, as behind
    /// a real cable: what the kernel's side left undone is done here.
    pub fn without_offloads(mut self) -> PacketDevice {
        (self.facts.checksum_offload, self.facts.segment_offload) = (false, false);
        lock(&self.inbox).bench = vec![0; FRAME_MAX];
        self
    }

    /// The sockets.
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// What was lost on the way in so far.
    pub fn lost(&self) -> PacketDrops {
        PacketDrops {
            tail: self.socket.tail_drops(),
            no_buffer: self.counters.no_buffer.load(Ordering::Relaxed),
            tagged: self.counters.tagged.load(Ordering::Relaxed),
            unreadable: self.counters.unreadable.load(Ordering::Relaxed),
        }
    }

    /// One call on the next queue.
    fn fill(&self, inbox: &mut Inbox, pool: &Pool) {
        let asked = inbox.furnish(pool);
        let got = if asked == 0 { self.throw_away(inbox.queue) } else { self.receive_batch(inbox, asked, pool) };
        let Ok(got) = got else {
            // One frame is gone, or the interface went down; either is told once.
            self.counters.unreadable.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if got == asked.max(1) {
            inbox.batch = (inbox.batch * 2).min(ROOMS_MAX);
            inbox.dry = 0;
            return;
        }
        // A call that got less than it asked for has seen the queue empty.
        inbox.batch = got + 1;
        inbox.dry += 1;
        inbox.queue = (inbox.queue + 1) % self.socket.options().queues;
    }

    /// Receives at most `asked` frames and makes messages of them: how many came.
    fn receive_batch(&self, inbox: &mut Inbox, asked: usize, pool: &Pool) -> io::Result<usize> {
        let mut arrivals: SmallVec<[Arrival; ROOMS_MAX]> = SmallVec::new();
        {
            let mut parts: SmallVec<[[IoSliceMut<'_>; 3]; ROOMS_MAX]> =
                inbox.rooms[..asked].iter_mut().map(Buffers::parts).collect();
            let mut rooms: SmallVec<[Room<'_, '_>; ROOMS_MAX]> = parts.iter_mut().map(|it| Room::new(it)).collect();
            let got = self.socket.receive(inbox.queue, &mut rooms)?;
            let arrival =
                |room: &Room<'_, '_>| Arrival { length: room.length, whole: room.whole, tagged: room.tag.is_some() };
            arrivals.extend(rooms[..got].iter().map(arrival));
        }
        for (index, arrival) in arrivals.iter().enumerate() {
            self.take_in(inbox, index, arrival, pool);
        }
        Ok(arrivals.len())
    }

    /// Makes a message of the frame in the room of this index, if it is one for the stack.
    fn take_in(&self, inbox: &mut Inbox, index: usize, arrival: &Arrival, pool: &Pool) {
        let room = &mut inbox.rooms[index];
        let count = |counter: &AtomicU64| _ = counter.fetch_add(1, Ordering::Relaxed);
        if arrival.tagged {
            return count(&self.counters.tagged);
        }
        let (true, Some(frame)) = (arrival.whole, arrival.length.checked_sub(VnetHeader::LEN)) else {
            return count(&self.counters.unreadable);
        };
        let Some(small) = room.small.take() else { unreachable!("a call gets rooms with both buffers only") };
        let in_small = frame.min(small.len() - HEADROOM);
        let mut message = Message::from_buffer(small, HEADROOM, HEADROOM + in_small);
        if frame > in_small
            && let Some(large) = room.large.take()
        {
            message.append_slice(Slice::new(large.share(), 0, frame - in_small));
        }
        let header = VnetHeader::parse(&room.vnet).expect("its bytes are as many as a vnet header has");
        if inbox.bench.is_empty() {
            match offload::note(&header, &mut message) {
                true => inbox.arrived.push_back(message),
                false => count(&self.counters.unreadable),
            }
        } else if !header.needs_checksum() && header.offload.kind() == VnetOffload::NONE {
            inbox.arrived.push_back(message);
        } else {
            self.finish(inbox, &header, &message, pool);
        }
    }

    /// Makes whole frames of one that its sender left unfinished.
    fn finish(&self, inbox: &mut Inbox, header: &VnetHeader, message: &Message, pool: &Pool) {
        let Inbox { bench, arrived, .. } = inbox;
        let length = message.copy_to(bench);
        let done = cut(header, &mut bench[..length], |head, rest| {
            let end = HEADROOM + head.len() + rest.len();
            let Some(mut buffer) = (if end <= pool::LARGE { pool.take(end) } else { None }) else {
                self.counters.no_buffer.fetch_add(1, Ordering::Relaxed);
                return;
            };
            buffer[HEADROOM..HEADROOM + head.len()].copy_from_slice(head);
            buffer[HEADROOM + head.len()..end].copy_from_slice(rest);
            arrived.push_back(Message::from_buffer(buffer, HEADROOM, end));
        });
        if done.is_err() {
            self.counters.unreadable.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a frame off a queue for which there is no buffer: one, or none if none is there.
    fn throw_away(&self, queue: usize) -> io::Result<usize> {
        let mut bytes = [0; VnetHeader::LEN + EthernetHeader::LEN];
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        let got = self.socket.receive(queue, &mut [Room::new(parts)])?;
        self.counters.no_buffer.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

impl Inbox {
    /// Gives the first rooms their buffers: how many have them, at most as many as a batch.
    fn furnish(&mut self, pool: &Pool) -> usize {
        if self.rooms.len() < self.batch {
            self.rooms.resize_with(self.batch, Buffers::default);
        }
        let furnished = |room: &mut Buffers| {
            room.small = room.small.take().or_else(|| pool.take(pool::SMALL));
            room.large = room.large.take().or_else(|| pool.take(pool::LARGE));
            room.small.is_some() && room.large.is_some()
        };
        let batch = self.batch;
        self.rooms[..batch].iter_mut().map(furnished).position(|both| !both).unwrap_or(batch)
    }
}

impl Buffers {
    fn parts(&mut self) -> [IoSliceMut<'_>; 3] {
        let (Some(small), Some(large)) = (&mut self.small, &mut self.large) else {
            unreachable!("a call gets rooms with both buffers only")
        };
        [IoSliceMut::new(&mut self.vnet), IoSliceMut::new(&mut small[HEADROOM..]), IoSliceMut::new(large)]
    }
}

impl Device for PacketDevice {
    fn facts(&self) -> DeviceFacts {
        self.facts.clone()
    }

    fn receive(&self, pool: &Pool) -> Option<Message> {
        let mut inbox = lock(&self.inbox);
        for _ in 0..VAIN_CALLS_MAX {
            if let Some(message) = inbox.arrived.pop_front() {
                return Some(message);
            }
            if inbox.dry >= self.socket.options().queues {
                inbox.dry = 0;
                return None;
            }
            self.fill(&mut inbox, pool);
        }
        inbox.arrived.pop_front()
    }

    fn transmit(&self, frame: &mut Message) -> bool {
        let Some(header) = offload::vnet_header_of(frame) else {
            debug_assert!(false, "a frame whose attributes contradict its bytes");
            return false;
        };
        let mut vnet = [0; VnetHeader::LEN];
        header.build(&mut vnet);
        let mut slices: SmallVec<[IoSlice<'_>; SLICES]> = SmallVec::new();
        slices.push(IoSlice::new(&vnet));
        slices.extend(frame.slices().map(IoSlice::new));
        // Full, down or gone: the frame is lost as on any link.
        slices.len() <= crate::tap::SLICES_MAX && self.socket.transmit(&slices)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    /// What came together with a frame that was handed up waits here, and the descriptor does not tell of it.
    fn is_ready(&self) -> bool {
        !lock(&self.inbox).arrived.is_empty()
    }

    fn drops(&self) -> Vec<(&'static str, u64)> {
        let PacketDrops { tail, no_buffer, tagged, unreadable } = self.lost();
        vec![
            ("the socket's receive buffer was full", tail),
            ("the pool had no buffer", no_buffer),
            ("a VLAN tag", tagged),
            ("unreadable", unreadable),
        ]
    }
}

#[cfg(test)]
mod tests;
