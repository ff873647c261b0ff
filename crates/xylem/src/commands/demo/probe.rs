//! Probes at the seams of a graph: a virtual session on top of each protocol's session notes when a message passes, and
//! a wrapper around each protocol notes how long its demux takes. No session calls another, so the time between two
//! neighbouring notes is what one layer took, the linker's carrying included. Nothing in a protocol knows of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use xylem_core::{
    Control, Demux, EnableError, Enabling, Facts, Handled, Message, OpenError, Opening, Outbox, Protocol, Session,
    Verdict, View,
};
use xylem_graph::instance::{Instance, Limits, Node};

/// The most notes kept of one request.
const NOTES_MAX: usize = 256;

/// What was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A frame was taken from the device.
    Received,
    /// The node of this number has said where a message belongs.
    Demultiplexed(usize),
    /// A message has passed the seam above this node, toward the application.
    Popped(usize),
    /// The application has begun.
    Application,
    /// The application has pushed its answer.
    Answered,
    /// A message has passed the seam above this node, toward the wire.
    Pushed(usize),
    /// A frame was given to the device.
    Transmitted,
}

/// A note with its time.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// What.
    pub what: What,
    /// When.
    pub at: Instant,
}

/// Where notes are taken, while it is armed.
#[derive(Debug, Default)]
pub struct Notes {
    armed: AtomicBool,
    notes: Mutex<Vec<Note>>,
}

impl Notes {
    /// Takes a note.
    pub fn take(&self, what: What) {
        if !self.armed.load(Ordering::Relaxed) {
            return;
        }
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.push(Note { what, at: Instant::now() });
        }
    }

    /// Takes notes from now on, or no more.
    pub fn arm(&self, armed: bool) {
        self.armed.store(armed, Ordering::Relaxed);
    }

    /// The notes taken since this was asked last; `into` is emptied first.
    pub fn collect(&self, into: &mut Vec<Note>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        into.clear();
        into.append(&mut notes);
        notes.reserve(NOTES_MAX);
    }
}

/// The same instance, with a probe on every seam.
pub fn probed(instance: &Instance, notes: &Arc<Notes>, seed: u64) -> Instance {
    let probe = |(number, node): (usize, &Node)| {
        let mut node = node.clone();
        node.protocol = node
            .protocol
            .map(|protocol| Arc::new(Watched { protocol, number, notes: Arc::clone(notes) }) as Arc<dyn Protocol>);
        node
    };
    let nodes = instance.nodes().iter().enumerate().map(probe).collect();
    Instance::new(nodes, instance.devices().to_vec(), Limits::default(), seed)
}

/// A protocol that is watched.
struct Watched {
    protocol: Arc<dyn Protocol>,
    number: usize,
    notes: Arc<Notes>,
}

impl Protocol for Watched {
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let facts = self.protocol.open(opening)?;
        opening.stand(Probe { number: self.number, notes: Arc::clone(&self.notes) });
        Ok(facts)
    }
    fn demux(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let demux = self.protocol.demux(view, out);
        self.notes.take(What::Demultiplexed(self.number));
        demux
    }
    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        self.protocol.open_enable(enabling)
    }
    fn control(&self, control: &mut Control, out: &mut Outbox) -> Handled {
        self.protocol.control(control, out)
    }
    fn quoted(&self, view: &mut View<'_>, sequence: &mut Option<u32>) -> Demux {
        self.protocol.quoted(view, sequence)
    }
    fn linger(&self, entry: &[u8], now: xylem_core::Instant) -> Handled {
        self.protocol.linger(entry, now)
    }
    fn deadline(&self) -> Option<xylem_core::Instant> {
        self.protocol.deadline()
    }
    fn timeout(&self, out: &mut Outbox) {
        self.protocol.timeout(out);
    }
    fn is_trunk(&self) -> bool {
        self.protocol.is_trunk()
    }
}

/// A virtual session: it adds no header and lets everything pass.
struct Probe {
    number: usize,
    notes: Arc<Notes>,
}

impl Session for Probe {
    fn pop(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        self.notes.take(What::Popped(self.number));
        Verdict::Pass
    }
    fn push(&mut self, _message: &mut Message, _out: &mut Outbox) -> Verdict {
        self.notes.take(What::Pushed(self.number));
        Verdict::Pass
    }
}
