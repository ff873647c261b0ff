//! TCP_INFO as Linux lays it out (tcp(7), linux/tcp.h), from what our TCP says of itself. What it does not count stands
//! as zero.

use std::time::Duration;
use xylem_core::Status;

/// The bytes of the whole of it, as Linux 6.7 has it; older programs ask for fewer.
pub const INFO_BYTES: usize = 248;

/// The states by their numbers (linux/tcp_states.h).
const STATES: [(&str, u8); 10] = [
    ("ESTABLISHED", 1),
    ("SYN-SENT", 2),
    ("SYN-RECEIVED", 3),
    ("FIN-WAIT-1", 4),
    ("FIN-WAIT-2", 5),
    ("TIME-WAIT", 6),
    ("CLOSED", CLOSED),
    ("CLOSE-WAIT", 8),
    ("LAST-ACK", 9),
    ("CLOSING", 11),
];
pub(crate) const CLOSED: u8 = 7;
pub(crate) const LISTENS: u8 = 10;

/// What congestion control is at (TCP_CA_Open, TCP_CA_Recovery, TCP_CA_Loss).
const AT_EASE: u8 = 0;
const RECOVERING: u8 = 3;
const LOST: u8 = 4;

/// Which options are in use (TCPI_OPT_…).
const TIMESTAMPS: u8 = 1;
const SELECTIVE: u8 = 2;
const SCALES: u8 = 4;
const ECN: u8 = 8;
const EARLY_DATA: u8 = 32;

/// Stands where there is no limit: a slow start that has not ended.
const ENDLESS: u32 = 0x7fff_ffff;

/// A segment's numbers are of its payload; a path's MTU counts the header of IPv4 as well.
const IPV4_HEADER_BYTES: usize = 20;

struct Layout {
    bytes: Vec<u8>,
}

impl Layout {
    fn bytes(mut self, bytes: &[u8]) -> Layout {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn words<const COUNT: usize>(self, words: [u32; COUNT]) -> Layout {
        words.into_iter().fold(self, |out, word| out.bytes(&word.to_ne_bytes()))
    }

    fn longs<const COUNT: usize>(self, longs: [u64; COUNT]) -> Layout {
        longs.into_iter().fold(self, |out, long| out.bytes(&long.to_ne_bytes()))
    }
}

/// The layout for a socket in `state` without a connection.
pub(crate) fn without_connection(state: u8) -> Vec<u8> {
    let mut bytes = vec![0; INFO_BYTES];
    bytes[0] = state;
    bytes
}

/// The layout for a connection.
pub(crate) fn layout(status: &Status) -> Vec<u8> {
    let word = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let micros = |span: Option<Duration>| span.map_or(0, |span| word(span.as_micros() as usize));
    let millis = |span: Duration| word(span.as_millis() as usize);
    let segments = |bytes: usize| word(bytes.div_ceil(status.segment_size.max(1)));
    let state = STATES.iter().find(|(name, _)| *name == status.state).map_or(CLOSED, |(_, number)| *number);
    let phase = match (status.is_timed_out, status.is_recovering) {
        (true, _) => LOST,
        (false, true) => RECOVERING,
        (false, false) => AT_EASE,
    };
    let option = |is_used: bool, bit: u8| if is_used { bit } else { 0 };
    let options = option(status.timestamps, TIMESTAMPS)
        | option(status.selective, SELECTIVE)
        | option(status.window_scales.is_some(), SCALES)
        | option(status.ecn, ECN)
        | option(status.fast_open, EARLY_DATA);
    let (theirs, ours) = status.window_scales.unwrap_or_default();
    let timeouts = u8::try_from(status.timeouts).unwrap_or(u8::MAX);
    let probes = u8::try_from(status.keep_alive_probes).unwrap_or(u8::MAX);
    // Two fields of four bits in a byte; the first stands in the lower half on little-endian machines.
    let scales = if cfg!(target_endian = "little") { theirs | ours << 4 } else { theirs << 4 | ours };
    let threshold = match status.slow_start_threshold {
        bytes if bytes >= ENDLESS as usize => ENDLESS,
        bytes => segments(bytes),
    };
    let out = Layout { bytes: Vec::with_capacity(INFO_BYTES) }
        .bytes(&[state, phase, timeouts, probes, timeouts, options, scales, 0])
        .words([
            micros(Some(status.retransmission_timeout)),
            0, // the delay of acknowledgments
            word(status.segment_size),
            word(status.segment_size_received),
            segments(status.in_flight),
            segments(status.selectively_acknowledged),
            segments(status.lost),
            0, // of those in flight, sent again
            0, // was once forward acknowledgments
            millis(status.since_sent),
            0, // never said
            millis(status.since_heard),
            millis(status.since_heard),
            word(status.mtu + IPV4_HEADER_BYTES),
            word(status.receive_buffer),
            micros(status.round_trip),
            micros(status.round_trip_variation),
            threshold,
            word(status.congestion_window / status.segment_size.max(1)),
            word(status.segment_size_announced),
            3, // duplicates that tell a loss
            0, // the receiver's own estimate of the round trip
            word(status.receive_buffer),
            u32::try_from(status.retransmitted).unwrap_or(u32::MAX),
        ])
        .longs([0; 4]) // pacing and its limit, bytes acknowledged and received
        .words([
            0,
            0, // segments out and in
            word(status.unsent),
            micros(status.round_trip_least),
            0,
            0, // segments of data in and out
        ])
        .longs([0; 4]) // the rate of delivery, and what limited it
        .words([0, u32::try_from(status.marks).unwrap_or(u32::MAX)])
        .longs([0; 2]) // bytes sent and sent again
        .words([
            0, // reports of duplicates
            0, // times reordering was seen
            0, // what came out of order
            word(status.peer_window),
            word(status.window),
            0,
        ])
        .bytes(&[0; 8]); // timeouts and recoveries from them
    debug_assert_eq!(out.bytes.len(), INFO_BYTES);
    out.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places are those of `struct tcp_info`; the C compiler agrees in the test of the library that plays scripts.
    #[test]
    fn the_layout_is_linuxs() {
        let status = Status {
            state: "CLOSE-WAIT",
            segment_size: 1000,
            congestion_window: 10_000,
            in_flight: 2500,
            unsent: 77,
            round_trip: Some(Duration::from_micros(1234)),
            window_scales: Some((7, 8)),
            peer_window: 5555,
            slow_start_threshold: usize::MAX,
            is_recovering: true,
            selective: true,
            ..Status::default()
        };
        let bytes = layout(&status);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((bytes.len(), bytes[0], bytes[1], bytes[5]), (INFO_BYTES, 8, 3, SELECTIVE | SCALES));
        // snd_mss, unacked, rtt, snd_ssthresh, snd_cwnd, notsent_bytes, snd_wnd.
        assert_eq!([16, 24, 68, 76, 80, 144, 228].map(word), [1000, 3, 1234, ENDLESS, 10, 77, 5555]);
    }
}
