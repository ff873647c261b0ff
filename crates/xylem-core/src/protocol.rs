//! A protocol is the static object of a layer: it opens sessions, keeps the standing passive opens (enables), and finds
//! the path of a message. Its maps are concurrent and its verbs take `&self`, so several shepherds share it. Like a
//! session it calls nobody: it asks the linker through the [`Opening`] it is handed, and sends through the outbox.

use crate::control::{Control, Facts, Handled, NetworkErrorKind};
use crate::drop;
use crate::drop::DropReason;
use crate::opening::{EnableError, Enabling, OpenError, Opening};
use crate::outbox::Outbox;
use crate::path::{EnableId, PathId};
use crate::time::Instant;
use crate::view::View;
use smallvec::SmallVec;

/// Where a message belongs, as one protocol sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Demux {
    /// To the protocol above that has this number.
    Up(u32),
    /// To this path.
    Path(PathId),
    /// To this wild enable: delivered without a path, participants attached.
    Enable(EnableId),
    /// To each of these wild enables: a copy each (groups).
    Each(SmallVec<[EnableId; 4]>),
    /// The last message of a handshake with this enable: the path is made now, and then gets the message.
    Open(EnableId),
    /// It is an error message, and the view now stands at the network header it quotes.
    Quoted(NetworkErrorKind),
    /// The protocol has taken what it wanted from it (and perhaps put a reply into the outbox).
    Keep,
    /// It ends here.
    Drop(&'static DropReason),
}

/// The static object of one layer in one graph. `open` and `demux` are all that a simple protocol writes; over one that finds
/// the paths of those above itself (by ports, on a stream), `open` is.
pub trait Protocol: Send + Sync {
    /// Opens one end of a connection: takes its part of the participants, opens what is below, learns its facts, leaves
    /// its session and its key. Also called when a path opens passively: then what is below is open already.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError>;

    /// Where does this message belong? The view stands at this protocol's header. Nobody asks a protocol whose lower has
    /// named the path already.
    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        Demux::Drop(&drop::linker::NO_UPPER)
    }

    /// A standing passive open. Whoever has no keys of its own passes it on.
    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        enabling.below(0)
    }

    /// A question, fact or advice that no session handled, or one from a neighbouring protocol.
    fn control(&self, _control: &mut Control, _out: &mut Outbox) -> Handled {
        Handled::No
    }

    /// An error message quotes the front of a message of ours: whose was it? The view stands at this protocol's header in
    /// the quotation, whose source is therefore our side. Fills in the sequence number if its protocol has one.
    fn quoted(&self, _view: &mut View<'_>, _sequence: &mut Option<u32>) -> Demux {
        Demux::Drop(&drop::linker::NOT_QUOTED)
    }

    /// A session of this protocol has left this entry when its path went (see `Outbox::linger`).
    fn linger(&self, _entry: &[u8], _now: Instant) -> Handled {
        Handled::No
    }

    /// How many such entries it keeps: conversations that are over and not yet forgotten (TIME-WAIT), counted apart from
    /// paths.
    fn lingering(&self) -> usize {
        0
    }

    /// When `timeout` wants to be called next.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Time has passed: a late or spurious call does no harm.
    fn timeout(&self, _out: &mut Outbox) {}

    /// Whether paths stand on this protocol's path instead of containing its session (BLAST, a tunnel). The linker then
    /// keeps one path for each pair of participants and demultiplexes its messages at the protocol above.
    fn is_trunk(&self) -> bool {
        false
    }
}
