//! How large segments may be on the way: what routers say, as far as they can be believed (RFC 1191; RFC 5927, section 7),
//! and what the connection finds out by itself. Where large segments vanish repeatedly, small ones go instead; after
//! a while larger ones are tried with data that would have gone anyhow (RFC 4821; RFC 8899, section 5).

use super::send::Limits;
use super::session::{Sizes, TcpSession};
use xylem_core::{Control, Duration, Instant, Outbox};
use xylem_wire::{Header, SequenceNumber, TcpHeader};

/// Whether a connection looks for the largest segments by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MtuProbing {
    /// Never: routers alone are heard.
    Off,
    /// When large segments seem to vanish.
    #[default]
    BlackHole,
    /// From the beginning: small ones first.
    On,
}

/// MTUs that are common, for errors that do not say one (RFC 1191, section 7.1).
const PLATEAUS: [u32; 9] = [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508];
/// An MTU that every way should take, in bytes of a network packet (RFC 8899, section 5.1.2).
pub(crate) const BASE_MTU: u32 = 1200;
/// Timeouts in a row that mean a black hole, if no segment so large has ever arrived; one more if one has.
const TIMEOUTS_MAX: u8 = 3;
/// So many more, and the least MTU is tried.
const TIMEOUTS_MORE: u8 = 2;
/// How often a size is tried before it counts as too large (RFC 8899, section 5.1.2, MAX_PROBES).
const TRIES_MAX: u8 = 3;
/// How long a size that was found is kept before larger ones are tried again (RFC 8899, section 5.1.1; RFC 1191, section
/// 6.3).
pub(crate) const RAISE_AFTER: Duration = Duration::from_secs(600);
/// The search ends where this many bytes are left to gain.
const STEP_MIN: u32 = 16;

/// A search for the largest size. All sizes are bytes of TCP's header and payload.
#[derive(Debug)]
pub(crate) struct Search {
    /// A size that arrives.
    works: u32,
    /// The largest that is still tried.
    limit: u32,
    /// How often `limit`, or what is tried below it, was tried.
    tries: u8,
    /// Nothing is tried before.
    not_before: Instant,
    probe: Option<Probe>,
}

/// A segment of a size that may be too large.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: u32,
    start: SequenceNumber,
    end: SequenceNumber,
    /// Segments sent again before it.
    repeated: u32,
    /// It alone seems to be lost, which says nothing of congestion.
    alone: bool,
}

impl Search {
    /// The next size to try: the largest, and if that is too large halfway.
    fn next(&self, largest: u32) -> Option<u32> {
        if self.limit >= largest {
            return (largest > self.works).then_some(largest);
        }
        (self.limit >= self.works + STEP_MIN).then(|| (self.works + self.limit).div_ceil(2))
    }

    /// A size has not arrived.
    fn failed(&mut self, size: u32) {
        self.tries += 1;
        if self.tries >= TRIES_MAX {
            (self.limit, self.tries) = (size - 1, 0);
        }
    }
}

impl Sizes {
    /// The largest that any segment may have: what is below takes no more, and the peer wants no more.
    fn largest(&self) -> u32 {
        self.mtu.min(u32::from(self.peer) + TcpHeader::LEN as u32)
    }
}

impl TcpSession {
    /// What the network's header takes.
    fn overhead(&self) -> u32 {
        65_535 - self.ends.below_network(65_535) as u32
    }

    /// A router says that the path takes network packets of `mtu` bytes only (0: it did not say), of a segment in flight.
    /// Nothing so small can be true while larger ones arrive: then it counts when the timer says so too (RFC 5927, section
    /// 7.2).
    pub(super) fn path_takes(&mut self, mtu: u16, out: &mut Outbox) {
        let now = self.sizes.mtu.min(u32::from(self.sizes.cap)) + self.overhead();
        let said = match mtu {
            0 => PLATEAUS.into_iter().find(|plateau| *plateau < now).unwrap_or(now),
            mtu => u32::from(mtu),
        };
        // What is less than the least changes nothing twice: it is taken as the least.
        if said.max(self.config.path_mtu_min as u32) >= now {
            return;
        }
        let segment = said.saturating_sub(self.overhead() + TcpHeader::LEN as u32 + self.clock.option_length());
        if segment < u32::from(self.sizes.proven) {
            self.rare().claimed_mtu = Some(said as u16);
        } else {
            self.shrink_to(said, out);
        }
    }

    /// The path takes network packets of `mtu` bytes. What was too large goes out again at once, which is no sign of
    /// congestion (RFC 1191, section 6.5).
    fn shrink_to(&mut self, mtu: u32, out: &mut Outbox) {
        // Those below cut, or ask routers to, where this is below what they believe.
        out.advise(Control::PathMtu(mtu as usize));
        self.sizes.mtu = mtu.max(self.config.path_mtu_min as u32).saturating_sub(self.overhead());
        self.sizes.proven = 0;
        self.resize();
        if self.state.transmits() {
            self.recovery.lose_all();
            self.retransmission.sent_again(0);
        }
    }

    /// `bytes` of new data are acknowledged.
    pub(super) fn path_progress(&mut self, bytes: u32, now: Instant) {
        if bytes >= self.sizes.segment && self.state.transmits() {
            self.sizes.proven = self.sizes.proven.max(self.sizes.segment.min(u32::from(u16::MAX)) as u16);
        }
        let (unacknowledged, repeated) = (self.send.unacknowledged, self.retransmission.count);
        let Some(rare) = &mut self.rare else { return };
        rare.claimed_mtu = None;
        let Some(search) = &mut rare.search else { return };
        let Some(probe) = search.probe.filter(|probe| unacknowledged.is_at_or_after(probe.end)) else { return };
        search.probe = None;
        if probe.repeated == repeated {
            (search.works, search.tries) = (probe.size, 0);
            self.sizes.cap = probe.size as u16;
            self.resize();
        } else {
            search.failed(probe.size);
            if probe.alone {
                // RFC 4821, section 7.6.2: no congestion made it vanish.
                self.congestion.undo();
            }
        }
        self.search_on(now);
    }

    /// Ends the search, or lets it rest, where nothing is left to gain.
    fn search_on(&mut self, now: Instant) {
        let largest = self.sizes.largest();
        let Some(search) = self.rare.as_mut().and_then(|rare| rare.search.as_mut()) else { return };
        if search.works >= largest {
            self.rare().search = None;
            self.sizes.cap = u16::MAX;
            self.resize();
        } else if search.next(largest).is_none() {
            (search.limit, search.tries, search.not_before) = (u32::MAX, 0, now + RAISE_AFTER);
        }
    }

    /// A loss was found, of `lost` bytes: perhaps the probe alone.
    pub(super) fn path_lost(&mut self, lost: u32) {
        let unacknowledged = self.send.unacknowledged;
        let search = self.rare.as_mut().and_then(|rare| rare.search.as_mut());
        if let Some(probe) = search.and_then(|search| search.probe.as_mut()) {
            probe.alone = probe.start == unacknowledged && lost <= probe.end.since(probe.start) as u32;
        }
    }

    /// The retransmission timer has gone off: what a router said may have been true, and large segments may vanish.
    pub(super) fn path_timed_out(&mut self, out: &mut Outbox) {
        if let Some(claimed) = self.rare.as_mut().and_then(|rare| rare.claimed_mtu.take()) {
            return self.shrink_to(u32::from(claimed), out);
        }
        let attempts = self.retransmission.attempts;
        // What was proven is so no longer once the search has begun; the count goes on.
        let is_proven = u32::from(self.sizes.proven) >= self.sizes.segment;
        let mtu = if attempts == TIMEOUTS_MAX + u8::from(is_proven) {
            BASE_MTU
        } else if attempts > TIMEOUTS_MAX + TIMEOUTS_MORE {
            self.config.path_mtu_min as u32
        } else {
            return;
        };
        // A packet may be too large though its segment is not a whole one.
        let packet = self.send.in_flight() + self.clock.option_length() + TcpHeader::LEN as u32 + self.overhead();
        if self.config.mtu_probing != MtuProbing::Off && packet > mtu {
            self.begin_search(mtu, out.now + RAISE_AFTER);
        }
    }

    /// Goes back to network packets of `mtu` bytes, and tries larger ones, but not before `not_before`.
    pub(super) fn begin_search(&mut self, mtu: u32, not_before: Instant) {
        let base = mtu.saturating_sub(self.overhead());
        if base >= self.sizes.largest().min(u32::from(self.sizes.cap)) {
            return;
        }
        let search = Search { works: base, limit: u32::MAX, tries: 0, not_before, probe: None };
        self.rare().search = Some(search);
        self.sizes.cap = base as u16;
        self.sizes.proven = 0;
        self.resize();
    }

    /// Sends a larger segment than usual, if one is to be tried and there is data for it. `false`: nothing went.
    pub(super) fn send_size_probe(&mut self, out: &mut Outbox) -> bool {
        let largest = self.sizes.largest();
        let Some(search) = self.rare.as_ref().and_then(|rare| rare.search.as_ref()) else { return false };
        let is_calm = self.retransmission.attempts == 0 && self.recovery.flight.lost() == 0 && !self.recovery.is_fast();
        if search.probe.is_some() || out.now < search.not_before || !is_calm {
            return false;
        }
        let Some(size) = search.next(largest) else { return false };
        let length = size.saturating_sub(TcpHeader::LEN as u32 + self.clock.option_length());
        let (window, governs) = (self.congestion.window(), self.congestion.governs_recovery());
        let allowance = self.recovery.allowance(window, governs);
        let limits = Limits { allowance, segment: length, message: length, no_delay: true, corked: false };
        let Some(piece) = self.send.plan(&limits).filter(|piece| piece.length == length) else { return false };
        // For this one segment the size is another.
        let usual = std::mem::replace(&mut self.sizes.segment, length);
        let repeated = self.retransmission.count;
        let sent = self.send_piece(&piece, out);
        self.sizes.segment = usual;
        if sent && let Some(search) = self.rare().search.as_mut() {
            let (start, end) = (piece.sequence, piece.sequence + length);
            search.probe = Some(Probe { size, start, end, repeated, alone: false });
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every limit the path may have is found to within a step, in few probes.
    #[test]
    fn a_search_ends_close_below_what_the_path_takes() {
        for path in (1180..9000).step_by(7) {
            let largest = 8980;
            let mut search = Search { works: 1180, limit: u32::MAX, tries: 0, not_before: Instant::ZERO, probe: None };
            let mut probes = 0;
            while let Some(size) = search.next(largest) {
                probes += 1;
                if size <= path {
                    (search.works, search.tries) = (size, 0);
                } else {
                    search.failed(size);
                }
                assert!(probes < 60, "{path}: {search:?}");
            }
            assert!(
                search.works <= path.max(1180) && path.min(largest) - search.works <= STEP_MIN + 1,
                "{path}: {search:?}"
            );
        }
    }
}
