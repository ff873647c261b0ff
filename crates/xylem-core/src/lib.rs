//! Floor 1 of Xylem: the uniform protocol interface. A [`Session`] is one end of one connection at one layer, a
//! [`Protocol`] opens sessions and finds the path of a message, a [`Path`] is the sessions of one conversation, and a
//! [`Message`] moves through them.
//!
//! Read [`session`] first, then [`stack`]: the one idea is that a session never calls its neighbour.

pub mod anchor;
pub mod attributes;
pub mod batch;
pub mod branches;
pub mod control;
pub mod drop;
pub mod map;
pub mod message;
pub mod neighbours;
pub mod opening;
pub mod outbox;
pub mod participants;
pub mod path;
pub mod pool;
pub mod protocol;
pub mod random;
pub mod record;
pub mod session;
pub mod stack;
pub mod stage;
pub mod time;
pub mod timers;
pub mod view;

pub use anchor::{Acceptor, Anchor};
pub use attributes::{Attributes, Checksum, Endpoint};
pub use batch::Batch;
pub use branches::Branches;
pub use control::{
    Answer, Control, Event, Facts, Handled, Learnt, NetworkError, NetworkErrorKind, Question, Setting, ShortName,
    Status, Undeliverable,
};
pub use drop::{DropReason, Drops};
pub use map::{BindError, Keyed, Map};
pub use message::{HEADROOM, Message, Slice};
pub use neighbours::{Neighbour, Neighbours};
pub use opening::{
    Binding, EnableError, EnableLinker, EnableWish, Enabled, Enabling, Linker, OpenError, Opened, Opening,
};
pub use outbox::{Levels, Outbox, Reply};
pub use participants::{Part, Participants, Side};
pub use path::{EnableId, End, HEIGHT_MAX, Leaf, Path, PathId, Resting};
pub use pool::{Buffer, Pool, SharedBuffer};
pub use protocol::{Demux, Protocol};
pub use random::Random;
pub use record::{BadRecord, Record};
pub use session::{Piece, Session, Verdict};
pub use stack::{Chain, Stack};
pub use stage::Sealed;
pub use time::{Duration, Instant};
pub use timers::Wheel;
pub use view::View;
