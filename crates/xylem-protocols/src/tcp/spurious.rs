//! Whether what was sent again had been lost at all. Three witnesses: the timestamp an acknowledgment echoes is older than
//! the first retransmission (Eifel, RFC 3522 and RFC 4015); the peer reports everything that went again as having come
//! twice (RFC 2883, as RFC 3708 uses it); or after a timeout, before anything else goes again, what was never sent again is
//! acknowledged (F-RTO, RFC 5682, section 3). A peer that lies here wins back a window it had before, and no more.

use super::flight::Delivered;
use xylem_wire::SequenceNumber;

/// The retransmissions of one recovery, and what is known of their need.
#[derive(Clone, Debug)]
pub(crate) struct Suspicion {
    /// Where the recovery began: duplicates of what lies before it are none of its own.
    from: u64,
    /// Bytes that went again and were not reported to have come twice.
    unexplained: u32,
    /// Something went again.
    is_any: bool,
    /// The clock's value on the first of it, where timestamps are agreed.
    first_stamp: Option<SequenceNumber>,
    late: Late,
}

/// How far F-RTO has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// Not asked, or answered.
    Settled,
    /// The oldest segment went again after a timeout (step 1).
    Waiting,
    /// It was acknowledged, and new data goes out to see what is acknowledged next (step 2b).
    Trying,
}

/// What F-RTO says to an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing yet, or not asked.
    Nothing,
    /// The timeout was spurious.
    Spurious,
}

impl Suspicion {
    /// A recovery begins at the place `from`; `after_timeout`: with a timeout of which F-RTO shall judge.
    pub fn new(from: u64, after_timeout: bool) -> Suspicion {
        let late = if after_timeout { Late::Waiting } else { Late::Settled };
        Suspicion { from, unexplained: 0, is_any: false, first_stamp: None, late }
    }

    /// So many bytes went again, stamped `stamp`.
    pub fn sent_again(&mut self, bytes: u32, stamp: Option<SequenceNumber>) {
        self.unexplained = self.unexplained.saturating_add(bytes);
        if !self.is_any {
            (self.is_any, self.first_stamp) = (true, stamp);
        }
    }

    /// New data was acknowledged, with an echo: whether it answers what was sent before the first retransmission.
    pub fn answers_original(&self, echo: Option<SequenceNumber>) -> bool {
        matches!((self.first_stamp, echo), (Some(stamp), Some(echo)) if echo.is_before(stamp))
    }

    /// The peer reports the bytes from `left` to before `right` to have come twice. Says whether that explains all that
    /// went again.
    pub fn doubled(&mut self, left: u64, right: u64) -> bool {
        if left < self.from || !self.is_any {
            return false;
        }
        let bytes = u32::try_from(right.saturating_sub(left)).unwrap_or(u32::MAX);
        self.unexplained = self.unexplained.saturating_sub(bytes);
        self.unexplained == 0
    }

    /// Whether retransmissions wait for F-RTO's answer.
    pub fn holds_back(&self) -> bool {
        self.late == Late::Trying
    }

    /// F-RTO has nothing to send, or the timeout was real.
    pub fn settle(&mut self) {
        self.late = Late::Settled;
    }

    /// An acknowledgment after a timeout that does not end the recovery (RFC 5682, section 3.1, steps 2 and 3).
    /// `has_advanced`: it acknowledges new data. `original`: it tells that something arrived that never went again and was
    /// sent before the timeout. `can_try`: there is new data that may go.
    pub fn judge(&mut self, has_advanced: bool, original: bool, can_try: bool) -> Finding {
        match self.late {
            Late::Settled => return Finding::Nothing,
            Late::Waiting if has_advanced && can_try => self.late = Late::Trying,
            Late::Waiting => self.late = Late::Settled,
            Late::Trying if original => {
                self.late = Late::Settled;
                return Finding::Spurious;
            }
            Late::Trying => self.late = Late::Settled,
        }
        Finding::Nothing
    }
}

/// Whether the part was sent before `end`, once.
pub(crate) fn is_original(delivered: &Delivered, end: u64) -> bool {
    delivered.again == 0 && delivered.end <= end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u32) -> Option<SequenceNumber> {
        Some(SequenceNumber(number))
    }

    /// RFC 3522, section 3.2.
    #[test]
    fn an_echo_older_than_the_first_retransmission_answers_an_original() {
        let mut suspicion = Suspicion::new(0, false);
        assert!(!suspicion.answers_original(at(0)), "nothing went again");
        suspicion.sent_again(1000, at(50));
        suspicion.sent_again(1000, at(60));
        assert!(suspicion.answers_original(at(49)));
        assert!(!suspicion.answers_original(at(50)) && !suspicion.answers_original(at(55)));
        assert!(!suspicion.answers_original(None));
        let mut wrapping = Suspicion::new(0, false);
        wrapping.sent_again(1, at(3));
        assert!(wrapping.answers_original(at(u32::MAX)), "the clock goes round");
    }

    #[test]
    fn all_that_went_again_must_have_come_twice() {
        let mut suspicion = Suspicion::new(5000, false);
        assert!(!suspicion.doubled(5000, 6000), "nothing went again");
        suspicion.sent_again(2000, None);
        assert!(!suspicion.doubled(4000, 5000), "of an earlier recovery");
        assert!(!suspicion.doubled(5000, 6000));
        assert!(suspicion.doubled(6000, 7000));
    }

    /// RFC 5682, section 3.1.
    #[test]
    fn a_timeout_is_spurious_if_what_never_went_again_arrives() {
        let waiting = || Suspicion::new(0, true);
        let mut suspicion = waiting();
        assert_eq!(suspicion.judge(true, false, true), Finding::Nothing);
        assert!(suspicion.holds_back());
        assert_eq!(suspicion.judge(true, true, true), Finding::Spurious);
        assert!(!suspicion.holds_back());

        let mut suspicion = waiting();
        suspicion.judge(true, true, true);
        assert_eq!(suspicion.judge(false, false, true), Finding::Nothing, "a duplicate: the loss was real");
        assert_eq!(suspicion.judge(true, true, true), Finding::Nothing, "and stays so");
        let mut suspicion = waiting();
        suspicion.judge(false, true, true);
        assert!(!suspicion.holds_back(), "the first acknowledgment was a duplicate");
        let mut suspicion = waiting();
        suspicion.judge(true, false, false);
        assert!(!suspicion.holds_back(), "nothing new to send");
    }
}
