//! A segment as a value: what a TCP header and its options say, once the bytes have been judged. Parsing strips the
//! header; building puts one in front and leaves the checksum to whoever puts the message on a wire.

use super::drops;
use super::ends::{CHECKSUM_AT, Ends};
use xylem_core::{Checksum, DropReason, Message, View};
use xylem_wire::{
    FastOpenCookie, Header, Malformed, Port, SackBlocks, SequenceNumber, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

/// What arrived, without its payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    pub sequence: SequenceNumber,
    /// Means something only with ACK.
    pub acknowledgment: SequenceNumber,
    pub flags: TcpFlags,
    /// As it stands in the header, not scaled.
    pub window: u16,
    pub urgent: u16,
    /// Payload bytes.
    pub payload: u32,
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub timestamps: Option<Timestamps>,
    pub sack_permitted: bool,
    pub sack: SackBlocks,
    pub fast_open: Option<FastOpenCookie>,
}

impl Segment {
    /// Judges the message whose TCP header stands in front, and strips it: its options, whatever it is (RFC 9293 MUST-5).
    ///
    /// # Errors
    /// The reason to drop it: no header, a bad checksum (RFC 9293, MUST-3), impossible options (MUST-7).
    pub fn pop(message: &mut Message, ends: &Ends) -> Result<Segment, &'static DropReason> {
        let header = read_header(message).ok_or(&drops::MALFORMED)?;
        if !checksum_is_right(message, 0, ends) {
            return Err(&drops::BAD_CHECKSUM);
        }
        let length = header.header_length();
        let front = message.front(length).ok_or(&drops::MALFORMED)?;
        let options = TcpOptions::parse(header.options(front)).map_err(|_| &drops::BAD_OPTIONS)?;
        message.trim_front(length);
        Ok(Segment::of(&header, &options, message.len()))
    }

    /// As [`pop`](Segment::pop), for a message that is only looked at.
    pub fn view(view: &mut View<'_>, header: &TcpHeader, ends: &Ends) -> Result<Segment, &'static DropReason> {
        if !checksum_is_right(view.message, view.at(), ends) {
            return Err(&drops::BAD_CHECKSUM);
        }
        let length = header.header_length();
        let payload = view.ahead().checked_sub(length).ok_or(&drops::MALFORMED)?;
        let front = view.bytes(length).ok_or(&drops::MALFORMED)?;
        let options = TcpOptions::parse(header.options(front)).map_err(|_| &drops::BAD_OPTIONS)?;
        Ok(Segment::of(header, &options, payload))
    }

    fn of(header: &TcpHeader, options: &TcpOptions, payload: usize) -> Segment {
        Segment {
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            flags: header.flags,
            window: header.window,
            urgent: header.urgent,
            // A merged message has at most a batch of the largest packets: far below 2^31 bytes.
            payload: payload as u32,
            mss: options.mss,
            window_scale: options.window_scale,
            timestamps: options.timestamps,
            sack_permitted: options.sack_permitted,
            sack: options.sack,
            fast_open: options.fast_open,
        }
    }

    /// Whether all of `flags` are set.
    pub fn has(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }

    /// Sequence numbers it takes: payload, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.payload + u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN))
    }

    /// The number behind its last one.
    pub fn end(&self) -> SequenceNumber {
        self.sequence + self.length()
    }

    /// The reset that answers it where there is no connection (RFC 9293, section 3.10.7.1); a reset gets none.
    pub fn answering_reset(&self) -> Option<Answer> {
        if self.has(TcpFlags::RST) {
            return None;
        }
        Some(if self.has(TcpFlags::ACK) {
            Answer { sequence: self.acknowledgment, flags: TcpFlags::RST, ..Answer::default() }
        } else {
            let flags = TcpFlags::RST | TcpFlags::ACK;
            Answer { sequence: SequenceNumber(0), acknowledgment: self.end(), flags, ..Answer::default() }
        })
    }
}

/// What stands in a header of ours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    pub sequence: SequenceNumber,
    pub acknowledgment: SequenceNumber,
    pub flags: TcpFlags,
    pub window: u16,
    pub urgent: u16,
    pub options: TcpOptions,
}

impl Answer {
    /// Puts the header in front of `message`. The checksum holds the pseudo header's sum, for the device's edge to
    /// complete (RFC 9293, MUST-2).
    pub fn push(&self, message: &mut Message, ends: &Ends) {
        let options = self.options.length();
        let length = TcpHeader::LEN + options;
        let header = TcpHeader {
            source: ends.local.port,
            destination: ends.remote.port,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            header_words: TcpHeader::words_with(options),
            flags: self.flags,
            window: self.window,
            checksum: ends.pseudo(message.len() + length).fold(),
            urgent: self.urgent,
        };
        let front = message.prepend(length);
        header.build(front);
        if options > 0 {
            self.options.build(&mut front[TcpHeader::LEN..]);
        }
        message.attributes.checksum = Checksum::Partial { start: 0, field: CHECKSUM_AT as u16 };
    }
}

/// The TCP header in front of `message`, its options in one piece with it.
pub(crate) fn read_header(message: &mut Message) -> Option<TcpHeader> {
    match message.header::<TcpHeader>() {
        Err(Malformed::Length { got, .. }) if got >= TcpHeader::LEN => TcpHeader::parse(message.front(got)?).ok(),
        other => other.ok(),
    }
}

/// The TCP header the view stands at, its options in one piece with it.
pub(crate) fn view_header(view: &mut View<'_>) -> Option<TcpHeader> {
    match view.header::<TcpHeader>() {
        Err(Malformed::Length { got, .. }) if got >= TcpHeader::LEN => TcpHeader::parse(view.bytes(got)?).ok(),
        other => other.ok(),
    }
}

/// Whether the bytes from offset `from` on, a TCP header first, hold their right checksum. One that is still to be
/// completed never was on a wire, so it is right.
pub(crate) fn checksum_is_right(message: &Message, from: usize, ends: &Ends) -> bool {
    match message.attributes.checksum {
        Checksum::Verified | Checksum::Partial { .. } => true,
        Checksum::None => ends.pseudo(message.len() - from).add(message.sum(from)).is_right(),
    }
}

/// The front of a quoted header: all that an error message must quote (RFC 792).
pub(crate) struct Quotation {
    pub source: Port,
    pub destination: Port,
    pub sequence: SequenceNumber,
}

xylem_wire::header! {
    /// The first eight bytes of a TCP header.
    struct Front {
        source: Port = Remote,
        destination: Port = Local,
        sequence: SequenceNumber = Data,
    }
}

impl Quotation {
    /// What the view quotes, if there is enough of it.
    pub fn view(view: &mut View<'_>) -> Option<Quotation> {
        let Front { source, destination, sequence } = view.header::<Front>().ok()?;
        Some(Quotation { source, destination, sequence })
    }
}
