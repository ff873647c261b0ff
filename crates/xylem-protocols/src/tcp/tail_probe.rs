//! Tail loss probes (RFC 8985, section 7): when nothing has come back for two round trips, one segment goes out, a new one
//! or the last one again, so that its acknowledgment tells what became of the others long before the retransmission
//! timer would. If the probe itself repaired a loss, that is found out and answered as a loss.

use xylem_core::Duration;

/// How long a peer may keep back the acknowledgment of a lone segment (TLP.max_ack_delay; RFC 8985 7.2-1).
const PEER_DELAY_MAX: Duration = Duration::from_millis(200);
/// What is waited for before a round trip was measured (section 7.2).
const UNMEASURED: Duration = Duration::from_secs(1);
/// What is waited for besides: two ticks of the timer wheels that call us. Where a round trip takes less, a peer that was
/// not scheduled in time is no loss.
const SLACK: Duration = Duration::from_millis(2);

/// The probe that is out, if one is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// The place behind all that was sent when it went out, itself included (TLP.end_seq).
    end: Option<u64>,
    /// It was data sent before (TLP.is_retrans).
    is_again: bool,
}

/// What an acknowledgment says about a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// The place acknowledged.
    pub base: u64,
    /// The last byte before this place is reported to have come twice.
    pub doubled_to: Option<u64>,
    /// It acknowledges what is acknowledged already, and says nothing else.
    pub is_bare_duplicate: bool,
}

impl TailProbe {
    /// How long after the last news a probe goes out (PTO; RFC 8985 7.2-1). `is_lone`: no more than a segment is in flight, whose
    /// acknowledgment the peer may keep back.
    pub fn wait(smoothed: Option<Duration>, is_lone: bool) -> Duration {
        let Some(smoothed) = smoothed else { return UNMEASURED };
        2 * smoothed + if is_lone { PEER_DELAY_MAX } else { SLACK }
    }

    /// Whether one is out.
    pub fn is_out(&self) -> bool {
        self.end.is_some()
    }

    /// A probe went out; all that is sent ends before the place `end`.
    pub fn sent(&mut self, end: u64, is_again: bool) {
        *self = TailProbe { end: Some(end), is_again };
    }

    /// Nothing is expected of a probe any more: a recovery has begun, or a timeout.
    pub fn forget(&mut self) {
        self.end = None;
    }

    /// An acknowledgment has come. Says whether the probe has repaired a loss, of which nobody else will hear
    /// (RFC 8985 7.4).
    pub fn acknowledged(&mut self, reply: &Reply) -> bool {
        let Some(end) = self.end.filter(|end| reply.base >= *end) else { return false };
        if !self.is_again || reply.doubled_to == Some(end) || (reply.base == end && reply.is_bare_duplicate) {
            // New data, or the original arrived as well.
            self.end = None;
            return false;
        }
        let is_repaired = reply.base > end;
        if is_repaired {
            self.end = None;
        }
        is_repaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(base: u64) -> Reply {
        Reply { base, doubled_to: None, is_bare_duplicate: false }
    }

    /// RFC 8985 7.2-1.
    #[test]
    fn a_probe_waits_two_round_trips_and_for_a_lone_segment_longer() {
        let ms = Duration::from_millis;
        assert_eq!(TailProbe::wait(None, false), ms(1000));
        assert_eq!(TailProbe::wait(Some(ms(30)), false), ms(62));
        assert_eq!(TailProbe::wait(Some(ms(30)), true), ms(260));
        assert_eq!(TailProbe::wait(Some(Duration::from_micros(50)), false), Duration::from_micros(2100));
    }

    /// RFC 8985 7.4.
    #[test]
    fn a_probe_that_repaired_a_loss_is_noticed() {
        let sent = |is_again| {
            let mut probe = TailProbe::default();
            probe.sent(5000, is_again);
            probe
        };
        let mut probe = sent(true);
        assert!(!probe.acknowledged(&reply(4000)) && probe.is_out(), "not all of it");
        assert!(!probe.acknowledged(&reply(5000)) && probe.is_out(), "the original's acknowledgment, or the probe's");
        assert!(probe.acknowledged(&reply(6000)), "the peer went on, and never said that it had it twice");
        assert!(!probe.is_out());
        let mut probe = sent(true);
        assert!(!probe.acknowledged(&Reply { doubled_to: Some(5000), ..reply(5000) }) && !probe.is_out());
        let mut probe = sent(true);
        assert!(!probe.acknowledged(&Reply { is_bare_duplicate: true, ..reply(5000) }) && !probe.is_out());
        let mut probe = sent(false);
        assert!(!probe.acknowledged(&reply(5000)) && !probe.is_out(), "new data repairs nothing");
    }
}
