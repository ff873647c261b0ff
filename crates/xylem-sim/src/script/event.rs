//! What a line of a script says: when, about which connection, and what happens or must happen.

use super::segment::Segment;
use std::time::Duration;

/// A stack under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Ours.
    Xylem,
    /// The kernel's.
    Linux,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Only this stack does it.
    pub only: Option<Arm>,
    /// When.
    pub when: When,
    /// Which connection; the empty name is the first.
    pub who: String,
    /// What.
    pub event: Event,
}

/// When something happens, or from when to when it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after the line before.
    After {
        /// At least.
        least: Duration,
        /// At most.
        most: Duration,
    },
    /// So long after the script began.
    At {
        /// At the earliest.
        least: Duration,
        /// At the latest.
        most: Duration,
    },
}

impl When {
    /// At once.
    pub const NOW: When = When::After { least: Duration::ZERO, most: Duration::ZERO };
}

/// What happens, or must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer sends a segment, or its payload in so many equal pieces.
    Send {
        /// Which.
        segment: Segment,
        /// How many segments it is cut into.
        pieces: u32,
    },
    /// The network reports an error.
    Report(Report),
    /// The subject must send a segment, or its payload in so many pieces.
    Expect {
        /// Which.
        segment: Segment,
        /// How many segments it comes in; `None`: however many.
        pieces: Option<u32>,
    },
    /// The subject may send a segment before the next line has happened, and need not.
    May {
        /// Which.
        segment: Segment,
    },
    /// The application asks something.
    Ask(Verb),
    /// The connection must look like this.
    Look(Vec<Fact>),
    /// Nothing happens until then.
    Quiet,
    /// The peer begins anew, its numbers so many later than before; ours are whatever comes next.
    Anew {
        /// How many later.
        later: u32,
    },
}

/// Who opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// The peer: the subject listens and accepts.
    Peer,
    /// The subject connects.
    Us,
}

/// What an application asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Listens at the server's port.
    Listen {
        /// Half-open and not accepted connections.
        backlog: usize,
    },
    /// Listens no more.
    ListenNoMore,
    /// Takes the connection, which must have opened.
    Accept,
    /// No connection has opened.
    AcceptNothing,
    /// Connects, without waiting.
    Connect,
    /// The whole handshake, as the one asks and the other answers, up to an open connection.
    Opened {
        /// Who began.
        by: Opener,
        /// The peer's SYN, or its answer: its window and options.
        segment: Segment,
        /// How long the last answer takes: the round trip the subject measures.
        after: Duration,
    },
    /// Writes so many bytes, all of which must be taken.
    Write {
        /// How many.
        bytes: usize,
        /// The last of them is urgent.
        urgent: bool,
    },
    /// Cannot write any more.
    WriteFails,
    /// Reads so many bytes, which must be there, and be right.
    Read(usize),
    /// There is nothing to read now.
    ReadNothing,
    /// The peer has sent its last byte, and all were read.
    ReadEnd,
    /// Closes both directions.
    Close,
    /// Closes one direction.
    Shutdown(Way),
    /// Ends the connection with a reset.
    Abort,
    /// Wishes for something.
    Set(Wish),
    /// Has been told of this.
    Told(Outcome),
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Toward the application.
    Read,
    /// Toward the peer.
    Write,
}

/// What an application may wish for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Small segments go at once.
    NoDelay(bool),
    /// An idle peer is probed after this time, and then every second.
    KeepAlive(Duration),
    /// Data unacknowledged so long ends the connection.
    UserTimeout(Duration),
    /// Bytes received and kept.
    ReceiveBuffer(usize),
    /// Time to live of what is sent.
    HopLimit(u8),
    /// Differentiated-services field of what is sent, its two lowest bits zero.
    TrafficClass(u8),
}

/// What an application is told of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is open.
    Open,
    /// The peer refused it.
    Refused,
    /// It was reset.
    Reset,
    /// The peer did not answer for too long.
    TimedOut,
    /// The network says that the peer cannot be reached.
    Unreachable,
    /// It has ended with an error, whichever.
    Failed,
    /// No error.
    NoError,
}

/// Something about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Its state by its RFC name.
    State(&'static str),
    /// Congestion window in segments, from and to.
    Window {
        /// At least.
        least: u32,
        /// At most.
        most: u32,
    },
}

/// An error from the network, which quotes a segment of the subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which.
    pub kind: ReportKind,
    /// The number of the segment quoted.
    pub quotes: super::segment::Place,
}

/// Which error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// Destination unreachable, with this code (RFC 792).
    Unreachable(u8),
    /// Too large for the next link (RFC 1191).
    TooLarge {
        /// What the next link takes, in bytes; 0: not said.
        mtu: u16,
    },
    /// The time to live ran out.
    TimeExceeded,
    /// A header field is wrong.
    ParameterProblem,
    /// Long out of use (RFC 6633).
    SourceQuench,
}
