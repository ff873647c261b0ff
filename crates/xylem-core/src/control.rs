//! Control: the typed facts, events, advice, questions and answers that travel beside messages. What a session needs for
//! every message it gets as facts when it opens and again when they change; it never peeks at a neighbour's header.

use std::net::IpAddr;
use std::time::Duration;
use xylem_wire::FastOpenCookie;

/// Whether a session or protocol has dealt with a control. What is not handled travels on in its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Handled {
    /// Dealt with; it goes no further.
    Yes,
    /// Not mine, or mine and others'; it goes on.
    No,
}

/// What the layers below offer the one above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The largest message, in bytes, that goes down without being broken up.
    pub mtu: usize,
    /// The largest message that may be handed down to stand for several segments.
    pub segment_max: usize,
    /// Bytes of headers the layers below will put in front.
    pub headroom: usize,
    /// This host's address in this conversation.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: Option<IpAddr>,
    /// The number by which the layer below knows the one above (its protocol number or type).
    pub number: u32,
}

impl Facts {
    /// The facts for the layer above one that puts `header` bytes in front.
    pub fn less(mut self, header: usize) -> Facts {
        self.mtu = self.mtu.saturating_sub(header);
        self.segment_max = self.segment_max.saturating_sub(header);
        self.headroom += header;
        self
    }
}

/// What travels beside messages. Up: facts, events, errors, answers. Down: confirmation, questions, settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Control {
    /// Upward: the facts have changed. Each layer takes its header off and lets it go on.
    Facts(Facts),
    /// Upward: there is room again after a refusal.
    Writable,
    /// Upward: something happened to the conversation as a whole.
    Event(Event),
    /// Upward: an error message from the network that quotes this conversation (RFC 1122, section 3.2.2).
    NetworkError(NetworkError),
    /// Downward: the peer has just made progress, so whoever forwards to it is alive (RFC 4861, section 7.3.1).
    Confirmed,
    /// Downward: the delivery of data is in trouble; a cached route or neighbour may be stale (RFC 9293, MUST-20).
    Doubted,
    /// Downward: a question; the first who knows fills in the answer.
    Question(Question, Option<Answer>),
    /// Upward: the answer to an earlier question.
    Answer(Answer),
    /// Downward: the application's wish.
    Set(Setting),
    /// Downward: the path takes network packets of so many bytes and no larger, as the transport believes (RFC 5927,
    /// section 7).
    PathMtu(usize),
    /// Downward: a session has learnt something that its protocol shall remember for those that come after it.
    Learnt(Learnt),
    /// From one protocol to another: a message could not be delivered, and whoever reports such things may tell its
    /// sender.
    Undeliverable(NetworkErrorKind, Box<Undeliverable>),
}

/// The front of a message that could not be delivered, from its network header on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeliverable {
    /// At most [`Undeliverable::QUOTE_MAX`] bytes.
    pub quote: Vec<u8>,
    /// It was sent to a group or to everybody, on the link or on the network.
    pub broadcast: bool,
}

impl Undeliverable {
    /// So many bytes make an error message of 576 bytes with its two headers (RFC 1812, section 4.3.2.3).
    pub const QUOTE_MAX: usize = 576 - 20 - 8;
}

impl Control {
    /// Whether it travels from the application toward the wire. All others travel the other way.
    pub fn travels_down(&self) -> bool {
        match self {
            Control::Confirmed
            | Control::Doubted
            | Control::Question(..)
            | Control::Set(_)
            | Control::PathMtu(_)
            | Control::Learnt(_)
            | Control::Undeliverable(..) => true,
            Control::Facts(_)
            | Control::Writable
            | Control::Event(_)
            | Control::NetworkError(_)
            | Control::Answer(_) => false,
        }
    }
}

/// What a session hands on to its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Learnt {
    /// A server has granted a cookie, by which it will take data with the first segment (RFC 7413, section 4.1.3).
    FastOpen {
        /// Which server.
        server: IpAddr,
        /// What to show it next time.
        cookie: FastOpenCookie,
        /// The largest segment it takes, payload bytes.
        segment_size: u16,
    },
    /// A server, or the way to it, does not take data with the first segment.
    NoFastOpen {
        /// Which server.
        server: IpAddr,
    },
}

/// What happened to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The connection is open for data.
    Opened,
    /// The peer will send no more.
    PeerClosed,
    /// The peer refused the connection.
    Refused,
    /// The peer reset the connection, or we did on its account.
    Reset,
    /// The peer did not answer for too long.
    TimedOut,
    /// The network says that the peer cannot be reached.
    Unreachable,
    /// Urgent data is on its way.
    Urgent,
    /// Delivery is in trouble but goes on being tried (RFC 9293, MUST-47, SHLD-9).
    InTrouble,
}

/// An error the network reported about a message of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError {
    /// Which error.
    pub kind: NetworkErrorKind,
    /// The sequence number quoted from our message, if its protocol has one: who cannot quote it did not see it
    /// (RFC 5927, section 4.1).
    pub sequence: Option<u32>,
}

/// Which error the network reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkErrorKind {
    /// The network cannot be reached.
    NetworkUnreachable,
    /// The host cannot be reached.
    HostUnreachable,
    /// The host has no such protocol.
    ProtocolUnreachable,
    /// Nobody has this port.
    PortUnreachable,
    /// Too large to pass undivided; the next hop takes packets of `mtu` bytes (0: it did not say).
    TooLarge {
        /// The next hop's MTU in bytes.
        mtu: u16,
    },
    /// The hop limit or the time for reassembly ran out.
    TimeExceeded,
    /// A header field was wrong.
    ParameterProblem,
}

/// What a session may ask of those below.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Which link address does this neighbour have?
    Neighbour(IpAddr),
    /// How large may a message be?
    Mtu,
    /// How is the conversation doing?
    Status,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// The neighbour's entry has an address now, or never will; look at it again.
    Neighbour {
        /// Whose.
        address: IpAddr,
        /// Whether it answered.
        found: bool,
    },
    /// The largest message in bytes.
    Mtu(usize),
    /// How the conversation is doing. In a box: few ask, and what is asked travels with every message's work.
    Status(Box<Status>),
}

/// How a conversation is doing, as far as its transport can say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The state by its RFC name.
    pub state: &'static str,
    /// Smoothed round-trip time.
    pub round_trip: Option<Duration>,
    /// Retransmission timeout.
    pub retransmission_timeout: Duration,
    /// What controls congestion, by name.
    pub congestion_control: &'static str,
    /// Congestion window in bytes.
    pub congestion_window: usize,
    /// Bytes of the congestion window below which slow start goes on (ssthresh; RFC 5681, section 2).
    pub slow_start_threshold: usize,
    /// Bytes sent and not acknowledged.
    pub in_flight: usize,
    /// How much round trips vary (RTTVAR).
    pub round_trip_variation: Option<Duration>,
    /// The shortest round trip of late.
    pub round_trip_least: Option<Duration>,
    /// Bytes the application has written and nobody has sent yet.
    pub unsent: usize,
    /// Bytes in flight that have arrived behind a hole.
    pub selectively_acknowledged: usize,
    /// How often the retransmission timer went off in a row.
    pub timeouts: u32,
    /// A fast recovery is going on.
    pub is_recovering: bool,
    /// What a timeout held for lost is not all acknowledged.
    pub is_timed_out: bool,
    /// The largest segment that has arrived, payload bytes.
    pub segment_size_received: usize,
    /// The largest segment we said we take, payload bytes.
    pub segment_size_announced: usize,
    /// The largest message that goes down undivided, in bytes.
    pub mtu: usize,
    /// Bytes received in order that the application has not read.
    pub unread: usize,
    /// Our window as the peer knows it, in bytes.
    pub window: usize,
    /// Timestamps are agreed upon.
    pub timestamps: bool,
    /// Selective acknowledgments are.
    pub selective: bool,
    /// How far the peer shifts its windows and how far we do, if they are scaled.
    pub window_scales: Option<(u8, u8)>,
    /// Probes of an idle peer without an answer.
    pub keep_alive_probes: u32,
    /// How long ago data was last sent.
    pub since_sent: Duration,
    /// How long ago the peer was last heard of.
    pub since_heard: Duration,
    /// Bytes in the network, as far as is known: not acknowledged in any way, and not held for lost (pipe; RFC 6675,
    /// section 2).
    pub pipe: usize,
    /// Bytes found lost that have not been sent again yet.
    pub lost: usize,
    /// Segments retransmitted so far.
    pub retransmitted: u64,
    /// Largest segment sent, payload bytes.
    pub segment_size: usize,
    /// Bytes that are received at most before the application reads them.
    pub receive_buffer: usize,
    /// Bytes of buffers that hold what was sent and not acknowledged, at most.
    pub send_buffer: usize,
    /// The peer's advertised window in bytes.
    pub peer_window: usize,
    /// Urgent bytes not read yet.
    pub urgent: usize,
    /// Data went with the first segment and was taken (RFC 7413).
    pub fast_open: bool,
    /// Congestion marks are used on this connection (RFC 3168).
    pub ecn: bool,
    /// Segments that arrived with a congestion mark.
    pub marks: u64,
}

/// A name that can be copied: at most [`ShortName::LENGTH_MAX`] bytes of text, as other hosts name their congestion
/// controls (TCP_CONGESTION).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShortName {
    bytes: [u8; ShortName::LENGTH_MAX],
    length: u8,
}

impl ShortName {
    /// The most bytes of one.
    pub const LENGTH_MAX: usize = 15;

    /// `name`, if it is not too long.
    pub fn new(name: &str) -> Option<ShortName> {
        let mut bytes = [0; ShortName::LENGTH_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        // The length fits: it is at most fifteen.
        Some(ShortName { bytes, length: name.len() as u8 })
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("it was made of text")
    }
}

impl std::fmt::Debug for ShortName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// What an application may wish for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// Send small segments at once (switches Nagle's algorithm off; RFC 9293, MUST-17).
    NoDelay(bool),
    /// Probe an idle peer after this time; `None` switches it off, which is the default (RFC 9293, MUST-24, MUST-25,
    /// MUST-27).
    KeepAlive(Option<Duration>),
    /// Give up when data stays unacknowledged this long (RFC 9293, MUST-21; RFC 5482). `None` is the default.
    UserTimeout(Option<Duration>),
    /// Between the probes of an idle peer that does not answer (RFC 1122, section 4.2.3.6).
    KeepAliveInterval(Duration),
    /// So many of them unanswered end the connection.
    KeepAliveProbes(u8),
    /// How often the first segment of an opening is sent again before it is given up (RFC 9293, MUST-23).
    OpenTries(u8),
    /// No segment carries more than so many payload bytes, neither way.
    SegmentSize(u16),
    /// What was pushed before the opening goes with the first segment, or not at all (RFC 7413, section 4.2.1): a server whose
    /// cookie is not known is asked for one, and the bytes are forgotten.
    EarlyOrNever,
    /// What does not fill a segment waits for more, until this is taken back.
    Cork(bool),
    /// Bytes the receiver buffers at most.
    ReceiveBuffer(usize),
    /// Bytes the sender buffers at most.
    SendBuffer(usize),
    /// Time to live or hop limit of what is sent (RFC 9293, MUST-49).
    HopLimit(u8),
    /// Differentiated-services field of what is sent (RFC 9293, MUST-48).
    TrafficClass(u8),
    /// Congestion is controlled by the algorithm of this name from now on; a transport that knows none of that name does
    /// not handle it.
    Congestion(ShortName),
    /// The application will read no more: what still arrives is not for anybody.
    ReceiveClosed,
    /// The application will send no more.
    SendClosed,
    /// End it at once, with a reset.
    Abort,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_at_most_fifteen_bytes() {
        for name in ["", "bbr", "fifteen letters"] {
            assert_eq!(ShortName::new(name).map(|it| it.as_str().to_owned()), Some(name.to_owned()));
        }
        assert_eq!(ShortName::new("sixteen letters!"), None);
        assert_eq!(format!("{:?}", ShortName::new("bbr").expect("short")), "\"bbr\"");
    }
}
