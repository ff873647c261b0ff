//! Cutting a packet that is longer than the next link takes (RFC 791, section 3.2). The pieces share the payload's
//! buffers; only headers are made.

use super::header::{FIXED, build};
use xylem_core::Message;
use xylem_wire::{FragmentOffset, Ipv4Header, Ipv4Options};

/// Bytes of payload in each piece but the last, for headers of `header` bytes.
fn piece(header: usize, mtu: usize) -> usize {
    mtu.saturating_sub(header) / FragmentOffset::UNIT * FragmentOffset::UNIT
}

/// How many pieces `payload` bytes make; `None` if the link takes no payload at all.
pub(super) fn count(payload: usize, header: usize, mtu: usize) -> Option<usize> {
    match piece(header, mtu) {
        0 => None,
        piece => Some(payload.div_ceil(piece)),
    }
}

/// Cuts `payload` into packets of at most `mtu` bytes and hands them to `send` in order. `header` is that of the whole,
/// which may be a fragment itself; `options` are its options, of which only those marked for it are repeated.
///
/// # Panics
/// If the link takes no payload ([`count`] has been asked).
pub(super) fn cut(
    header: &Ipv4Header,
    options: &[u8],
    mut payload: Message,
    mtu: usize,
    mut send: impl FnMut(Message),
) {
    // One size for all pieces: with the first one's options it is at most 40 bytes less than it could be.
    let size = piece(FIXED + options.len(), mtu);
    assert!(size > 0, "a link of {mtu} bytes carries no fragments");
    let repeated = repeated(options);
    let mut offset = header.fragment_offset.bytes();
    let mut options = options;
    loop {
        let last = payload.len() <= size;
        let rest = if last { Message::default() } else { payload.split_off(size) };
        let length = FIXED + options.len();
        let piece = Ipv4Header {
            header_words: (length / 4) as u8,
            total_length: (length + payload.len()) as u16,
            dont_fragment: false,
            more_fragments: header.more_fragments || !last,
            fragment_offset: FragmentOffset::of_bytes(offset).expect("a packet has at most 8192 units of eight bytes"),
            ..*header
        };
        offset += payload.len();
        build(&piece, options, payload.prepend(length));
        send(payload);
        if last {
            return;
        }
        payload = rest;
        options = &repeated;
    }
}

/// The options that every fragment carries: those whose kind has its top bit set (RFC 791, section 3.1), padded to whole
/// words.
fn repeated(options: &[u8]) -> Vec<u8> {
    const COPIED: u8 = 0x80;
    let mut repeated = Vec::new();
    for (kind, data) in Ipv4Options::new(options).map_while(Result::ok) {
        if kind & COPIED != 0 {
            repeated.extend([kind, data.len() as u8 + 2]);
            repeated.extend(data);
        }
    }
    repeated.resize(repeated.len().next_multiple_of(4), Ipv4Options::END);
    repeated
}
