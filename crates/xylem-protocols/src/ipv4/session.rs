//! One conversation's end at the internet layer: a header template and the size of the path. What it is handed it sends
//! whole if that fits, stands for segments, or is cut here into fragments.

use super::drops;
use super::fragment;
use super::header::{FIXED, PACKET_MAX, build, in_front, judge};
use super::path_mtu::PathMtu;
use std::net::IpAddr;
use xylem_core::{
    Answer, Control, Facts, Handled, Instant, Message, NetworkErrorKind, Outbox, Piece, Question, Record, Session,
    Setting, Verdict,
};
use xylem_wire::{Ecn, Header, Ipv4Header};

/// What another instance goes on from.
pub(super) type Carried = (u8, u8, u16);

/// See the module's text.
#[derive(Debug)]
pub(super) struct Ipv4Session {
    template: Ipv4Header,
    mtu: PathMtu,
    /// What the link offers.
    link: Facts,
}

impl Ipv4Session {
    /// The conversation that `template` describes, over a link that offers `link`.
    pub fn new(template: Ipv4Header, link: Facts) -> Ipv4Session {
        Ipv4Session { template, mtu: PathMtu::new(link.mtu), link }
    }

    /// What those above may count on.
    pub fn offered(&self) -> Facts {
        let mut facts = self.link.clone();
        facts.mtu = self.mtu.bytes();
        facts.segment_max = facts.segment_max.min(PACKET_MAX);
        facts.local = Some(IpAddr::V4(self.template.source));
        facts.remote = Some(IpAddr::V4(self.template.destination));
        facts.number = u32::from(self.template.protocol.0);
        facts.less(FIXED)
    }

    /// The header for a message of `length` bytes, headers included. Identifications count on from a random start: they
    /// need differ only among packets that may be cut (RFC 6864), and never repeat sooner than they must.
    fn header(&mut self, length: usize, pieces: usize, ecn_capable: bool) -> Ipv4Header {
        let identification = self.template.identification;
        self.template.identification = identification.wrapping_add(pieces as u16);
        let dont_fragment = self.mtu.forbids_cutting();
        let ecn = if ecn_capable { Ecn::Capable0 } else { Ecn::NotCapable };
        Ipv4Header { total_length: length as u16, identification, dont_fragment, ecn, ..self.template }
    }

    /// Sends the message in fragments.
    fn push_fragments(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let mtu = self.mtu.bytes();
        if fragment::count(message.len(), FIXED, mtu).is_none_or(|count| count > out.room()) {
            return Verdict::Drop(&drops::TOO_MANY_PIECES);
        }
        // A sum over all of it must be complete before it is cut; no device completes it across fragments.
        message.complete_checksum();
        let header = self.header(FIXED + message.len(), 1, message.attributes.ecn_capable);
        fragment::cut(&header, &[], std::mem::take(message), mtu, |piece| out.push(piece));
        Verdict::Keep
    }
}

impl Session for Ipv4Session {
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        let header = match in_front(message) {
            Ok(header) => header,
            Err(reason) => return Verdict::Drop(reason),
        };
        let (length, available) = (header.header_length(), message.len());
        let bytes = message.front(length).expect("parse has seen the whole header");
        if let Err(reason) = judge(&header, bytes, available) {
            return Verdict::Drop(reason);
        }
        let ends = (header.source, header.destination, header.protocol);
        if ends != (self.template.destination, self.template.source, self.template.protocol) {
            return Verdict::Drop(&drops::OTHER_PATH);
        }
        if header.is_fragment() {
            return Verdict::Drop(&drops::FRAGMENT_ON_PATH);
        }
        message.truncate(usize::from(header.total_length));
        message.trim_front(length);
        let marks = &mut message.attributes.congestion_marks;
        if header.ecn == Ecn::Experienced && *marks == 0 {
            // Whoever merged segments and did not count the marked ones says that all may have been.
            *marks = message.attributes.segments.max(1);
        }
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let length = FIXED + message.len();
        if length > PACKET_MAX {
            return Verdict::Drop(&drops::TOO_LONG);
        }
        let segment = usize::from(message.attributes.segment_size);
        if segment == 0 && length > self.mtu.bytes() {
            return self.push_fragments(message, out);
        }
        let pieces = if segment == 0 { 1 } else { message.len().div_ceil(segment) };
        let header = self.header(length, pieces, message.attributes.ecn_capable);
        build(&header, &[], message.prepend(FIXED));
        message.attributes.checksum = message.attributes.checksum.moved_back(FIXED);
        Verdict::Pass
    }

    /// `headers` ends where the message's headers end, so a piece is as long as they are and its payload.
    fn cut(&self, headers: &mut [u8], piece: &Piece) -> usize {
        let whole = Ipv4Header::parse(headers).expect("the header that is cut is the one that push has built");
        let header = Ipv4Header {
            total_length: u16::try_from(headers.len() + piece.length).expect("a piece is no longer than the whole"),
            identification: whole.identification.wrapping_add(piece.index as u16),
            ..whole
        };
        build(&header, &[], headers);
        FIXED
    }

    fn deadline(&self) -> Option<Instant> {
        self.mtu.deadline()
    }

    fn timeout(&mut self, out: &mut Outbox) {
        if self.mtu.expire(out.now) {
            out.tell(Control::Facts(self.offered()));
        }
    }

    fn control(&mut self, control: &mut Control, out: &mut Outbox) -> Handled {
        match control {
            Control::Facts(facts) => {
                self.link = facts.clone();
                self.mtu.link_changed(facts.mtu);
                *facts = self.offered();
                Handled::No
            }
            Control::NetworkError(error) => {
                // Where the transport numbers what it sends, it knows better whether to believe this (RFC 5927, section
                // 4.1), and says so.
                if let NetworkErrorKind::TooLarge { mtu } = error.kind
                    && error.sequence.is_none()
                    && self.mtu.too_large(usize::from(mtu), out.now)
                {
                    out.tell(Control::Facts(self.offered()));
                }
                Handled::No
            }
            Control::PathMtu(mtu) => {
                if self.mtu.too_large((*mtu).max(1), out.now) {
                    out.tell(Control::Facts(self.offered()));
                }
                Handled::Yes
            }
            Control::Question(Question::Mtu, answer) => {
                *answer = Some(Answer::Mtu(self.mtu.bytes() - FIXED));
                Handled::Yes
            }
            // RFC 9293 MUST-49.
            Control::Set(Setting::HopLimit(hops)) => {
                // None at all would reach nobody.
                self.template.time_to_live = (*hops).max(1);
                Handled::Yes
            }
            // RFC 9293 MUST-48, SHLD-21, SHLD-22.
            Control::Set(Setting::TrafficClass(class)) => {
                // The low two bits of the class belong to congestion notification, not to the application (RFC 3168).
                self.template.dscp = *class >> 2;
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    fn export(&self, record: &mut Record) {
        let carried: Carried = (self.template.time_to_live, self.template.dscp, self.template.identification);
        record.put(&carried);
    }

    fn may_rest(&self) -> bool {
        // What was learnt about the way is not in the record.
        self.mtu.bytes() == self.link.mtu && !self.mtu.is_timed()
    }
}
