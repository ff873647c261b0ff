//! Whether the window was used. A window that the application, or the peer's window, left empty was not tested, and does
//! not grow (RFC 7661, section 4.3); one that held something back in the last round trip was. What
//! counts is the round and not the moment: of a burst only the first acknowledgment meets a full window.

/// See the module's text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// In this round, and in the one before.
    this: Round,
    last: Round,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The most that was in flight, in bytes.
    most: u32,
    /// The window held something back.
    held: bool,
}

impl Usage {
    /// So many bytes are in flight.
    pub fn in_flight(&mut self, bytes: u32) {
        self.this.most = self.this.most.max(bytes);
    }

    /// The window held something back.
    pub fn held(&mut self) {
        self.this.held = true;
    }

    /// A round is over.
    pub fn next_round(&mut self) {
        (self.last, self.this) = (self.this, Round::default());
    }

    /// Whether `window` was used: it held something back, or in slow start, whose window runs ahead of what is sent, at
    /// least half of it was in flight.
    pub fn is_used(&self, window: u32, slow_start: bool) -> bool {
        let most = self.this.most.max(self.last.most);
        self.this.held || self.last.held || (slow_start && most.saturating_mul(2) >= window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_back_counts_for_this_round_and_the_next() {
        let mut usage = Usage::default();
        assert!(!usage.is_used(10_000, false));
        usage.held();
        assert!(usage.is_used(10_000, false));
        usage.next_round();
        assert!(usage.is_used(10_000, false), "its acknowledgments come in the round after");
        usage.next_round();
        assert!(!usage.is_used(10_000, false));
    }

    #[test]
    fn in_slow_start_half_of_the_window_is_enough() {
        let mut usage = Usage::default();
        usage.in_flight(5_000);
        usage.in_flight(1_000);
        assert!(usage.is_used(10_000, true) && !usage.is_used(10_001, true));
        assert!(!usage.is_used(10_000, false));
    }
}
