//! The kernel's impaired cable: two TAPs in two namespaces and one thread that carries frames between them through the
//! same link model that stands in front of Xylem's own device. Neither kernel end may leave checksums or cutting to the
//! cable, so that a loss is the loss of one frame for every contestant.

use crate::place::{self, CLIENT, SERVER};
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use xylem_graph::link::{Link, LinkCounters, LinkModel};
use xylem_host::clock::Clock;
use xylem_host::namespace::Namespace;
use xylem_host::pin;
use xylem_host::poll::{self, Source, Waker};
use xylem_host::tap::{RECEIVE_BYTES, Tap};

/// Frames carried from one end before the other gets its turn.
const BURST_FRAMES_MAX: usize = 64;

/// A cable in use; dropped, it is pulled.
pub struct Cable {
    stopped: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<[LinkCounters; 2]>>,
}

impl Cable {
    /// Joins the two namespaces by a cable between two TAPs, one in each.
    ///
    /// # Errors
    /// There are no TAPs for this process; or as [`join`](Cable::join).
    pub fn between(
        client: &Namespace,
        server: &Namespace,
        model: &LinkModel,
        seed: u64,
        cpu: Option<usize>,
    ) -> io::Result<Cable> {
        let (one, other) = (place::tap(client, CLIENT, false)?, place::tap(server, SERVER, false)?);
        Cable::join(one, other, model, seed, cpu)
    }

    /// Joins the two TAPs by a cable of this model in both directions, carried by a thread on `cpu`.
    ///
    /// # Errors
    /// The process has too many threads or open files, or the model is out of its limits.
    pub fn join(one: Tap, other: Tap, model: &LinkModel, seed: u64, cpu: Option<usize>) -> io::Result<Cable> {
        let waker = Waker::new()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let links = Link::both_ways([model, model], seed).map_err(io::Error::other)?;
        let carrier = Carrier { taps: [one, other], links, clock: Clock::start(), buffer: vec![0; RECEIVE_BYTES] };
        let (rest, flag) = (waker.clone(), Arc::clone(&stopped));
        let work = move || {
            if let Some(cpu) = cpu {
                // A cable that is not pinned carries all the same; the report says what the server's thread got.
                let _ = pin::pin(cpu);
            }
            carrier.carry(&rest, &flag)
        };
        let thread = std::thread::Builder::new().name("cable".into()).spawn(work)?;
        Ok(Cable { stopped, waker, thread: Some(thread) })
    }

    /// Pulls the cable: what it did to the frames of each end.
    pub fn pull(mut self) -> [LinkCounters; 2] {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<[LinkCounters; 2]> {
        self.stopped.store(true, Ordering::SeqCst);
        self.waker.wake();
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.end();
    }
}

struct Carrier {
    taps: [Tap; 2],
    /// `links[0]` carries from `taps[0]` to `taps[1]`.
    links: [Link<Vec<u8>>; 2],
    clock: Clock,
    buffer: Vec<u8>,
}

impl Carrier {
    fn carry(mut self, waker: &Waker, stopped: &AtomicBool) -> [LinkCounters; 2] {
        while !stopped.load(Ordering::SeqCst) {
            let more = self.round();
            let next = self.links.iter().filter_map(Link::next).min();
            let timeout = if more { Some(std::time::Duration::ZERO) } else { next.map(|next| self.clock.until(next)) };
            let [one, other] = &self.taps;
            let mut sources = [Source::readable(waker), Source::readable(one), Source::readable(other)];
            if poll::wait(&mut sources, timeout).is_err() {
                break;
            }
        }
        [self.links[0].counters(), self.links[1].counters()]
    }

    /// Takes what the ends send, hands out what is due; true if an end may have more.
    fn round(&mut self) -> bool {
        let mut more = false;
        for from in [0, 1] {
            for count in 1..=BURST_FRAMES_MAX {
                let header = self.taps[from].vnet_header().bytes();
                // The frame's own offloads were switched off, so the header before it says nothing.
                let Ok(Some(length)) = self.taps[from].receive(&mut [IoSliceMut::new(&mut self.buffer)]) else { break };
                let frame = self.buffer.get(header..length).unwrap_or_default().to_vec();
                self.links[from].send(self.clock.now(), frame);
                more |= count == BURST_FRAMES_MAX;
            }
            let to = 1 - from;
            while let Some(frame) = self.links[from].receive(self.clock.now()) {
                let header = [0; 12];
                let slices = [IoSlice::new(&header[..self.taps[to].vnet_header().bytes()]), IoSlice::new(&frame)];
                // A TAP that takes no more has lost the frame, as a cable would.
                let _ = self.taps[to].transmit(&slices);
            }
        }
        more
    }
}
