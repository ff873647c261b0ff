//! How large the packets of one conversation may be: what the link takes, until a router on the way says that it takes
//! less (RFC 1191). What a router said is forgotten after a while, since the way may have changed.

use std::time::Duration;
use xylem_core::Instant;

/// Packets are not made smaller than this for a router's word, which anybody could have forged; if it really takes less,
/// routers may cut (RFC 791 obliges them to). In bytes.
pub const PATH_MTU_MIN: usize = 552;
/// How long a router's word counts (RFC 1191, section 6.3).
pub const PATH_MTU_LIFETIME: Duration = Duration::from_secs(600);

/// Sizes to try when a router does not say what it takes, largest first (RFC 1191, section 7).
const PLATEAUS: [usize; 8] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, PATH_MTU_MIN];

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathMtu {
    link: usize,
    known: usize,
    routers_may_cut: bool,
    until: Option<Instant>,
}

impl PathMtu {
    /// A path over a link that takes packets of `link` bytes.
    pub fn new(link: usize) -> PathMtu {
        PathMtu { link, known: link, routers_may_cut: false, until: None }
    }

    /// The largest packet, in bytes.
    pub fn bytes(&self) -> usize {
        self.known
    }

    /// Whether something that was learnt holds for a time.
    pub fn is_timed(&self) -> bool {
        self.until.is_some()
    }

    /// Whether routers are asked not to cut.
    pub fn forbids_cutting(&self) -> bool {
        !self.routers_may_cut
    }

    /// The link takes packets of `link` bytes from now on.
    pub fn link_changed(&mut self, link: usize) {
        *self = PathMtu::new(link);
    }

    /// A router takes packets of `told` bytes (0: it did not say) and no larger. Whether that is news.
    pub fn too_large(&mut self, told: usize, now: Instant) -> bool {
        let told = match told {
            0 => PLATEAUS.into_iter().find(|plateau| *plateau < self.known).unwrap_or(PATH_MTU_MIN),
            told => told,
        };
        if told >= self.known {
            return false;
        }
        self.routers_may_cut |= told < PATH_MTU_MIN;
        self.known = told.max(PATH_MTU_MIN).min(self.known);
        self.until = Some(now + PATH_MTU_LIFETIME);
        true
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// Forgets what has been known for long enough. Whether anything was.
    pub fn expire(&mut self, now: Instant) -> bool {
        if self.until.is_none_or(|until| now < until) {
            return false;
        }
        *self = PathMtu::new(self.link);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routers_word_counts_downward_only_and_not_for_ever() {
        let mut mtu = PathMtu::new(1500);
        assert!(!mtu.too_large(1500, Instant::ZERO) && !mtu.too_large(9000, Instant::ZERO));
        assert!(mtu.too_large(1400, Instant::ZERO));
        assert_eq!((mtu.bytes(), mtu.forbids_cutting()), (1400, true));
        assert!(!mtu.expire(Instant::ZERO + PATH_MTU_LIFETIME / 2));
        assert!(mtu.expire(Instant::ZERO + PATH_MTU_LIFETIME));
        assert_eq!((mtu.bytes(), mtu.deadline()), (1500, None));
    }

    #[test]
    fn a_router_that_does_not_say_is_tried_with_ever_less() {
        let mut mtu = PathMtu::new(1500);
        let mut sizes = Vec::new();
        while mtu.too_large(0, Instant::ZERO) {
            sizes.push(mtu.bytes());
        }
        assert_eq!(sizes, [1492, 1006, PATH_MTU_MIN]);
        assert!(mtu.forbids_cutting());
    }

    #[test]
    fn a_forged_word_makes_packets_no_smaller_than_the_minimum() {
        let mut mtu = PathMtu::new(1500);
        assert!(mtu.too_large(68, Instant::ZERO));
        assert_eq!((mtu.bytes(), mtu.forbids_cutting()), (PATH_MTU_MIN, false));
        let mut narrow = PathMtu::new(296);
        assert!(narrow.too_large(100, Instant::ZERO));
        assert_eq!(narrow.bytes(), 296, "a link that takes less than the minimum is believed");
    }
}
