//! Proportional rate reduction (RFC 9937, before it RFC 6937): how much goes out during a fast recovery. For what arrives,
//! a proportional part is sent, so that what is in flight comes down to the reduced window over one round trip instead
//! of in one silence and one burst; when losses have brought it below, it is brought up again, carefully.

/// See the module's text. Everything is bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// What was in flight when the recovery began (RecoverFS).
    flight: u32,
    /// Delivered since (prr_delivered).
    delivered: u64,
    /// Sent since (prr_out).
    out: u64,
    /// What may go now (sndcnt).
    allowance: u32,
    /// The recovery has not sent anything yet: the first segment goes in any case.
    is_new: bool,
}

/// What one acknowledgment brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Newly known to be delivered (DeliveredData).
    pub delivered: u32,
    /// In flight now, what was found lost not counted (pipe).
    pub in_flight: u32,
    /// The window to come to (ssthresh).
    pub threshold: u32,
    /// Payload of a segment (SMSS).
    pub segment: u32,
    /// It acknowledged new data and told of no further loss (SafeACK).
    pub is_safe: bool,
}

impl Prr {
    /// A recovery begins with so many bytes in flight.
    pub fn new(flight: u32) -> Prr {
        Prr { flight: flight.max(1), delivered: 0, out: 0, allowance: 0, is_new: true }
    }

    /// Bytes that may go now.
    pub fn allowance(&self) -> u32 {
        self.allowance
    }

    /// An acknowledgment has come (RFC 9937, section 6.2).
    pub fn acknowledged(&mut self, arrival: &Arrival) {
        let Arrival { delivered, in_flight, threshold, segment, is_safe } = *arrival;
        if delivered == 0 && !self.is_new {
            return;
        }
        self.delivered += u64::from(delivered);
        let allowance = if in_flight > threshold {
            let share = self.delivered * u64::from(threshold);
            share.div_ceil(u64::from(self.flight)).saturating_sub(self.out)
        } else {
            let mut limit = self.delivered.saturating_sub(self.out).max(u64::from(delivered));
            if is_safe {
                limit += u64::from(segment);
            }
            limit.min(u64::from(threshold - in_flight))
        };
        let first = if self.is_new { u64::from(segment) } else { 0 };
        // Below the threshold, which is a window, or a share of it.
        self.allowance = u32::try_from(allowance.max(first)).unwrap_or(u32::MAX);
    }

    /// So many bytes went out.
    pub fn sent(&mut self, bytes: u32) {
        self.is_new = false;
        self.out += u64::from(bytes);
        self.allowance = self.allowance.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u32 = 1000;

    /// One lost of twenty in flight, a threshold of ten: every second arrival sends one until ten are in flight, then every one, and at the end ten are in flight
    /// (the example of RFC 6937, section 4, in round numbers).
    #[test]
    fn sending_is_spread_over_the_round_trip() {
        let mut prr = Prr::new(20 * S);
        let mut in_flight = 19 * S;
        let mut sent = Vec::new();
        for arrival in 0..19 {
            in_flight -= S;
            prr.acknowledged(&Arrival { delivered: S, in_flight, threshold: 10 * S, segment: S, is_safe: false });
            while prr.allowance() >= S {
                prr.sent(S);
                in_flight += S;
                sent.push(arrival);
            }
        }
        assert_eq!(sent, [0, 3, 5, 7, 9, 11, 13, 16, 17, 18]);
        assert_eq!(in_flight, 10 * S, "the threshold");
    }

    /// RFC 9937, section 6.2: below the threshold no more goes than arrives, but for a segment where that is safe.
    #[test]
    fn heavy_losses_are_mended_carefully() {
        let mut prr = Prr::new(20 * S);
        let arrive = |prr: &mut Prr, in_flight, is_safe| {
            prr.acknowledged(&Arrival { delivered: S, in_flight, threshold: 10 * S, segment: S, is_safe });
            prr.allowance()
        };
        assert_eq!(arrive(&mut prr, 2 * S, false), S, "packet conservation");
        prr.sent(S);
        assert_eq!(arrive(&mut prr, 2 * S, false), S);
        prr.sent(S);
        assert_eq!(arrive(&mut prr, 2 * S, true), 2 * S, "slow start, where nothing more is lost");
        prr.sent(2 * S);
        assert_eq!(arrive(&mut prr, 9 * S, true), S, "never beyond the threshold");
    }

    #[test]
    fn the_first_segment_goes_at_once() {
        let mut prr = Prr::new(20 * S);
        prr.acknowledged(&Arrival { delivered: 0, in_flight: 19 * S, threshold: 10 * S, segment: S, is_safe: false });
        assert_eq!(prr.allowance(), S);
        prr.sent(S);
        prr.acknowledged(&Arrival { delivered: 0, in_flight: 19 * S, threshold: 10 * S, segment: S, is_safe: false });
        assert_eq!(prr.allowance(), 0, "what delivers nothing sends nothing");
    }
}
