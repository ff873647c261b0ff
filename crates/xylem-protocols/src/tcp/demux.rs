//! Whose segment is it? A connection's, one in TIME-WAIT, a half-open one's, an enable's, or nobody's, who is answered with
//! a reset (RFC 9293, sections 3.10.7.1 and 3.10.7.2).

use super::drops;
use super::ends::Ends;
use super::protocol::{TcpProtocol, lock};
use super::segment::{Answer, Segment, view_header};
use super::time_wait::Entry;
use xylem_core::{Demux, Endpoint, Outbox, Part, View};
use xylem_wire::{SequenceNumber, TcpFlags, TcpOptions, Timestamps};

impl TcpProtocol {
    /// Finds where the segment at the view belongs.
    pub(super) fn seek(&self, view: &mut View<'_>, out: &mut Outbox) -> Demux {
        let Some(header) = view_header(view) else { return Demux::Drop(&drops::MALFORMED) };
        let hosts = (view.participants.local.find_host(), view.participants.remote.find_host());
        let (Some(local), Some(remote)) = hosts else { return Demux::Drop(&drops::MALFORMED) };
        view.participants.local.push(Part::Port(header.destination));
        view.participants.remote.push(Part::Port(header.source));
        let ends = Ends {
            local: Endpoint { address: local, port: header.destination },
            remote: Endpoint { address: remote, port: header.source },
        };
        if let Some(path) = self.paths.find(&ends) {
            return Demux::Path(path);
        }
        if view.message.attributes.broadcast || !ends.are_peers() {
            return Demux::Drop(&drops::NOT_A_PEER);
        }
        // Nothing is answered before the checksum is known to be right.
        let segment = match Segment::view(view, &header, &ends) {
            Ok(segment) => segment,
            Err(reason) => return Demux::Drop(reason),
        };
        let waiting = lock(&self.time_waits).find(&ends);
        if let Some(verdict) = waiting.and_then(|entry| self.in_time_wait(&entry, &segment, &ends, out)) {
            return verdict;
        }
        let embryo = lock(&self.embryos).find(&ends);
        if let Some(embryo) = embryo {
            return self.to_embryo(&embryo, &segment, &ends, out);
        }
        // Another shepherd may have made a path of the embryo since the first look, and it must not be reset.
        if let Some(path) = self.paths.find(&ends) {
            return Demux::Path(path);
        }
        let Some(listener) = self.listener(&ends.local) else {
            answer_with_reset(&segment, &ends, out);
            return Demux::Drop(&drops::NO_CONNECTION);
        };
        // RFC 9293, section 3.10.7.2, in its order: resets, acknowledgments, SYNs, the rest.
        if segment.has(TcpFlags::RST) {
            return Demux::Drop(&drops::NOT_FOR_ENABLE);
        }
        if segment.has(TcpFlags::ACK) {
            if let Some(verdict) = self.cookie_returned(listener, &segment, &ends, out) {
                return verdict;
            }
            answer_with_reset(&segment, &ends, out);
            return Demux::Drop(&drops::NO_CONNECTION);
        }
        if !segment.has(TcpFlags::SYN) || segment.has(TcpFlags::FIN) {
            return Demux::Drop(&drops::NOT_FOR_ENABLE);
        }
        self.conceive(listener, &segment, &ends, waiting.map(|entry| entry.next), out)
    }

    /// A segment for a connection in TIME-WAIT. `None`: it opens a new one, whose numbers begin beyond `entry.next`.
    fn in_time_wait(&self, entry: &Entry, segment: &Segment, ends: &Ends, out: &mut Outbox) -> Option<Demux> {
        if segment.has(TcpFlags::RST) {
            // RFC 1337: the wait goes on.
            return Some(Demux::Drop(&drops::TIME_WAIT));
        }
        if entry.is_reopened_by(segment) && self.listener(&ends.local).is_some() {
            return None;
        }
        // The peer's FIN again: our last acknowledgment was lost. Any other would let a stranger prolong the wait.
        if segment.has(TcpFlags::FIN) && segment.end() == entry.expected {
            lock(&self.time_waits).add(*entry, out.now + 2 * self.config.segment_lifetime_max);
        }
        let value = SequenceNumber((out.now.as_millis() as u32).wrapping_add(entry.clock_offset));
        let answer = Answer {
            sequence: entry.next,
            acknowledgment: entry.expected,
            flags: TcpFlags::ACK,
            options: TcpOptions { timestamps: entry.recent.map(|echo| Timestamps { value, echo }), ..TcpOptions::NONE },
            ..Answer::default()
        };
        // An acknowledgment without news is not answered, or two of these would go on for ever.
        if segment.length() > 0 {
            reply(&answer, ends, out);
        }
        Some(Demux::Drop(&drops::TIME_WAIT))
    }
}

/// Sends a header without a path.
pub(super) fn reply(answer: &Answer, ends: &Ends, out: &mut Outbox) {
    match out.message() {
        None => out.dropped(&drops::NO_BUFFER),
        Some(mut message) => {
            answer.push(&mut message, ends);
            out.reply(ends.hosts(), message);
        }
    }
}

pub(super) fn answer_with_reset(segment: &Segment, ends: &Ends, out: &mut Outbox) {
    if let Some(answer) = segment.answering_reset() {
        reply(&answer, ends, out);
    }
}
