//! Whether a segment that was sent is the one that was to be sent. All that differs is said.

use super::conversation::Conversation;
use super::packet::{Seen, runs};
use super::segment::{OptionWish, Place, Segment, Stamp};
use super::simulated::content_written;
use xylem_wire::{TcpFlags, TcpOptions};

/// What of `seen` differs from `wanted`, in words; empty if nothing does.
pub(super) fn differences(wanted: &Segment, seen: &Seen, conversation: &Conversation) -> Vec<String> {
    let mut found = Vec::new();
    let (flags, wanted_flags) = match wanted.flags.contains(TcpFlags::PSH) {
        true => (seen.header.flags, wanted.flags),
        false => (seen.header.flags.without(TcpFlags::PSH), wanted.flags),
    };
    if flags != wanted_flags {
        found.push(format!("flags {flags}, not {wanted_flags}"));
    }
    if wanted.sequence != Place::Any && seen.header.sequence.0 != conversation.subject_number(wanted.sequence) {
        found.push("the sequence number".to_owned());
    }
    if seen.payload.len() != wanted.payload as usize {
        found.push(format!("{} bytes of payload, not {}", seen.payload.len(), wanted.payload));
    }
    if let Some(place) = wanted.acknowledgment
        && place != Place::Any
        && seen.header.acknowledgment.0 != conversation.peer_number(place)
    {
        found.push("the acknowledgment".to_owned());
    }
    if let Some(window) = wanted.window
        && !window.holds(seen.header.window.into())
    {
        found.push(format!("window {}, not {window}", seen.header.window));
    }
    if let Some(pointer) = wanted.urgent
        && pointer != seen.header.urgent
    {
        found.push(format!("urgent pointer {}, not {pointer}", seen.header.urgent));
    }
    if let Some(ecn) = wanted.ecn
        && ecn != seen.ecn
    {
        found.push(format!("congestion bits {:?}, not {ecn:?}", seen.ecn));
    }
    if let Some(hops) = wanted.hop_limit
        && hops != seen.hop_limit
    {
        found.push(format!("time to live {}, not {hops}", seen.hop_limit));
    }
    if let Some(dscp) = wanted.dscp
        && dscp != seen.dscp
    {
        found.push(format!("code point {}, not {dscp}", seen.dscp));
    }
    if let Some(options) = &wanted.options {
        compare_options(options, wanted.others, seen, conversation, &mut found);
    }
    found
}

fn compare_options(
    wanted: &[OptionWish],
    others: bool,
    seen: &Seen,
    conversation: &Conversation,
    found: &mut Vec<String>,
) {
    let mut left = seen.options;
    for option in wanted {
        let is_there = match option {
            OptionWish::SegmentSize(size) => left.mss.take().is_some_and(|got| size.is_none_or(|size| size == got)),
            OptionWish::WindowScale(shift) => {
                left.window_scale.take().is_some_and(|got| shift.is_none_or(|shift| shift == got))
            }
            OptionWish::SackPermitted => std::mem::take(&mut left.sack_permitted),
            OptionWish::Timestamps(value, echo) => left.timestamps.take().is_some_and(|got| {
                let value_is = match value {
                    Stamp::Counted(value) => conversation.counted_stamp(got.value.0) == *value,
                    Stamp::Any => true,
                };
                let echo_is = match echo {
                    Stamp::Counted(echo) => got.echo.0 == *echo as u32,
                    Stamp::Any => true,
                };
                value_is && echo_is
            }),
            OptionWish::Sack(wanted) => runs(&std::mem::take(&mut left.sack), conversation) == *wanted,
            OptionWish::Cookie(bytes) => left
                .fast_open
                .take()
                .is_some_and(|got| bytes.as_ref().map_or(!got.is_empty(), |bytes| got.as_bytes() == bytes)),
            // Padding is the sender's affair, and what has no meaning is not sent.
            OptionWish::NoOperation | OptionWish::End => true,
            OptionWish::Raw(_) => false,
        };
        if !is_there {
            found.push(format!("option `{option}` is not there"));
        }
    }
    if !others && left != TcpOptions::NONE {
        found.push("further options".to_owned());
    }
}

/// What no TCP may send, whatever a script says: options of a SYN on another segment (RFC 9293, MUST-65; RFC 7323,
/// section 2.2), an acknowledgment number of a segment without ACK that is not zero, bytes other than those written.
pub(super) fn faults(seen: &Seen, conversation: &Conversation) -> Vec<String> {
    let mut found = Vec::new();
    let is_syn = seen.header.flags.contains(TcpFlags::SYN);
    let syn_only = seen.options.mss.is_some() || seen.options.window_scale.is_some() || seen.options.sack_permitted;
    if syn_only && !is_syn {
        found.push("options that belong to a SYN".to_owned());
    }
    if let Some(first) = conversation.subject_isn {
        let place = seen.header.sequence.0.wrapping_sub(first).wrapping_add(u32::from(is_syn));
        // The first byte has number 1.
        let offset = u64::from(place.wrapping_sub(1));
        if let Some(at) = content_written(conversation.ends).differs(offset, &seen.payload) {
            found.push(format!("byte {} is not the one written", at + 1));
        }
    }
    found
}
