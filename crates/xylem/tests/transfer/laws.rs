//! What a connection says of itself, held against the laws of congestion control and of memory.

use super::plan::Plan;
use xylem_core::Status;
use xylem_core::pool::{LARGE, SMALL};
use xylem_graph::instance::Reading;
use xylem_protocols::tcp::congestion::WINDOW_MAX;

/// What may be held besides a connection's buffers: headers on their way, neighbours, what the device has not taken yet.
const HELD_BESIDES: usize = 256 << 10;
/// Segments beyond the window that limited transmit lets out (RFC 3042), or a probe of the tail (RFC 8985, section 7.3),
/// and a FIN.
const BEYOND: usize = 2;

/// One host's, from step to step.
#[derive(Debug, Default)]
pub struct Laws {
    before: Option<Status>,
    /// The smallest segments so far.
    least_segment: usize,
    /// The window before the last reduction, until what is in the network has followed.
    reduced_from: usize,
    /// Places acknowledged when that was.
    acknowledged: u64,
    /// Places that were known to have arrived then.
    delivered: u64,
    /// The largest window there can have been so far, between two looks too: what an undone reduction may come back to.
    largest: usize,
}

impl Laws {
    /// The window is within its law, and so is what is in flight; `acknowledged` places are acknowledged. Of a peer that is
    /// not `is_selective` only duplicates tell what has left the network, and progress ends what they let guess.
    pub fn judge(&mut self, status: &Status, acknowledged: u64, is_selective: bool) -> Result<(), String> {
        let (window, segment) = (status.congestion_window, status.segment_size);
        let fail = |wrong: String| Err(format!("{wrong}: {status:?}, before {:?}", self.before));
        if segment == 0 || segment > 65_535 {
            return fail(format!("segments of {segment} bytes"));
        }
        if window < segment || window > WINDOW_MAX as usize {
            return fail("a window of less than a segment, or beyond all windows".into());
        }
        self.least_segment = if self.least_segment == 0 { segment } else { self.least_segment.min(segment) };
        // BBR has no threshold of that kind.
        let counts = status.congestion_control != "bbr";
        if counts && status.slow_start_threshold < 2 * self.least_segment {
            return fail("a threshold below two segments (RFC 5681, equation 4)".into());
        }
        if status.pipe > status.in_flight + 1 || status.pipe + status.lost > status.in_flight + 1 {
            return fail("more in the network than was sent".into());
        }
        let news = (acknowledged - self.acknowledged) as usize;
        // What the peer has beyond a hole, counted once, counts too.
        let beyond = status.in_flight.saturating_sub(status.pipe + status.lost);
        let delivered = acknowledged + beyond as u64;
        let told = (delivered.saturating_sub(self.delivered) as usize).max(news);
        if let Some(before) = &self.before {
            // No algorithm that is driven by losses opens a window faster than slow start (RFC 5681, section 3.1; RFC 9438,
            // section 4.10), or than to where it once was; more segments' worth only where segments grow.
            let is_same = before.congestion_control == status.congestion_control;
            let most = self.largest.max(before.congestion_window).max(segment) + told + segment;
            self.largest = self.largest.max(before.congestion_window + told);
            if counts && is_same && window > most {
                return fail(format!("the window grew to {window} with {told} bytes delivered"));
            }
            // A reduction is spread over the round trip that follows (RFC 9937): until then what is in the network falls from
            // the window before to the one behind it.
            if window < before.congestion_window {
                self.reduced_from = before.congestion_window + told;
            } else if status.pipe <= window {
                self.reduced_from = 0;
            }
            // New data went out: what is in the network is what the window, or a recovery, allows.
            let went = (status.in_flight + news).saturating_sub(before.in_flight);
            let was = if is_selective { before.pipe } else { before.in_flight };
            let window_most = (before.congestion_window + told).max(window);
            let allowed = [window_most, status.slow_start_threshold.min(window * 2), was, self.reduced_from];
            let allowed = allowed.into_iter().max().unwrap_or(window) + BEYOND * segment + 1;
            if went > 0 && status.pipe > allowed {
                return fail(format!("{went} bytes went out and {} are in the network", status.pipe));
            }
        }
        self.largest = self.largest.max(window);
        self.delivered = delivered;
        (self.before, self.acknowledged) = (Some(status.clone()), acknowledged);
        Ok(())
    }
}

/// What a host holds of its pool is within its one connection's limits, besides `unread` messages that wait for its
/// application and keep a buffer each.
pub fn memory(plan: &Plan, host: usize, reading: &Reading, unread: usize) -> Result<(), String> {
    let (small, large) = reading.buffers_held;
    let held = small * SMALL + large * LARGE;
    // Early segments keep up to twice the window in buffers.
    let most = plan.buffer(host, "send_buffer").max(2048) + 2 * plan.buffer(host, "receive_buffer").max(2048);
    let most = most + unread * SMALL + HELD_BESIDES;
    if held > most {
        return Err(format!("host {host} holds {held} bytes of buffers, {most} at most: {unread} messages unread"));
    }
    Ok(())
}
