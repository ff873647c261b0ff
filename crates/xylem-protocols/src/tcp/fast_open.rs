//! TCP Fast Open, the side that listens (RFC 7413, sections 4.1.2 and 5.1): cookies by which a peer proves that it has been
//! at its address before, and how many peers may bring data before they prove that they are there now. Nothing is
//! remembered of a cookie; its key changes with the hours, and the last one still counts.

use super::ends::Ends;
use siphasher::sip::SipHasher24;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use xylem_core::{Duration, Instant, Random};
use xylem_wire::FastOpenCookie;

/// Which side of fast open is played. Either also needs the application's word: data for the SYN, or a listener that
/// takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FastOpenUse {
    /// Neither.
    Off,
    /// Data goes with our SYNs.
    Client,
    /// Data is taken with the peers' SYNs.
    Server,
    /// Both.
    #[default]
    Both,
}

impl FastOpenUse {
    pub(crate) fn is_client(self) -> bool {
        matches!(self, FastOpenUse::Client | FastOpenUse::Both)
    }

    pub(crate) fn is_server(self) -> bool {
        matches!(self, FastOpenUse::Server | FastOpenUse::Both)
    }
}

/// How long a key makes cookies; as long again they count.
const KEY_LIFETIME: Duration = Duration::from_secs(3600);
/// How long a reset handshake goes on counting as pending, so that resets with forged addresses free nothing (RFC 7413,
/// section 5.1).
const FORFEIT: Duration = Duration::from_secs(60);
/// How long a connection that brought data with its SYN waits for the end of its handshake.
pub(crate) const EARLY_WAIT: Duration = Duration::from_secs(60);

/// The secret behind the cookies.
#[derive(Debug)]
pub(crate) struct Granting {
    key: (u64, u64),
}

/// What a cookie is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It is right.
    Right,
    /// It is right, and will soon not be: the peer gets another.
    Old,
    /// Nothing.
    Wrong,
}

impl Granting {
    pub fn new(random: &mut Random) -> Granting {
        Granting { key: (random.next(), random.next()) }
    }

    /// The cookie of the peer at `ends` now: it names hosts, not ports (RFC 7413, section 4.1.2).
    pub fn grant(&self, ends: &Ends, now: Instant) -> FastOpenCookie {
        self.cookie(ends, period_of(now))
    }

    pub fn judge(&self, ends: &Ends, cookie: &FastOpenCookie, now: Instant) -> Worth {
        let period = period_of(now);
        if *cookie == self.cookie(ends, period) {
            Worth::Right
        } else if period > 0 && *cookie == self.cookie(ends, period - 1) {
            Worth::Old
        } else {
            Worth::Wrong
        }
    }

    fn cookie(&self, ends: &Ends, period: u64) -> FastOpenCookie {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        let hosts: (IpAddr, IpAddr) = (ends.local.address, ends.remote.address);
        (hosts, period).hash(&mut hasher);
        FastOpenCookie::new(&hasher.finish().to_be_bytes()).expect("cookies may have eight bytes")
    }
}

fn period_of(now: Instant) -> u64 {
    now.as_nanos() / KEY_LIFETIME.as_nanos() as u64
}

/// How many connections of one enable may have brought data and not yet proven that their peer is there.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    limit: usize,
    count: AtomicUsize,
    /// Those of `count` whose connections were reset, and when they are forgiven, in nanoseconds.
    forfeited: AtomicUsize,
    forgiven_at: AtomicU64,
}

/// One of them; it counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Option<Arc<Pending>>);

impl Pending {
    /// At most `limit` at once; none at all for zero.
    pub fn new(limit: usize) -> Arc<Pending> {
        Arc::new(Pending { limit, ..Pending::default() })
    }

    /// Whether there is room for another at `now`.
    pub fn has_room(&self, now: Instant) -> bool {
        self.forgive(now);
        self.count.load(Ordering::Relaxed) < self.limit
    }

    /// Takes up one, if there is room.
    pub fn take(self: &Arc<Pending>, now: Instant) -> Option<Ticket> {
        self.forgive(now);
        let more = |count: usize| (count < self.limit).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Ticket(Some(Arc::clone(self))))
    }

    fn forgive(&self, now: Instant) {
        if self.forfeited.load(Ordering::Relaxed) > 0 && now.as_nanos() >= self.forgiven_at.load(Ordering::Relaxed) {
            let forgiven = self.forfeited.swap(0, Ordering::Relaxed);
            self.count.fetch_sub(forgiven, Ordering::Relaxed);
        }
    }
}

impl Ticket {
    /// The connection was reset: it goes on counting for a while.
    pub fn forfeit(mut self, now: Instant) {
        if let Some(pending) = self.0.take() {
            pending.forfeited.fetch_add(1, Ordering::Relaxed);
            pending.forgiven_at.fetch_max((now + FORFEIT).as_nanos(), Ordering::Relaxed);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(pending) = &self.0 {
            pending.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xylem_core::Endpoint;
    use xylem_wire::Port;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_cookie_names_two_hosts_and_dies_with_its_key() {
        let granting = Granting::new(&mut Random::seeded(1));
        let ends = |port, host: [u8; 4]| Ends {
            local: Endpoint { port: Port(port), ..Endpoint::default() },
            remote: Endpoint { address: host.into(), port: Port(port) },
        };
        let cookie = granting.grant(&ends(1, [10, 0, 0, 1]), at(3000));
        let judge = |ends: &Ends, seconds| granting.judge(ends, &cookie, at(seconds));
        assert_eq!(judge(&ends(2, [10, 0, 0, 1]), 3500), Worth::Right, "whatever the ports");
        assert_eq!(judge(&ends(1, [10, 0, 0, 1]), 3700), Worth::Old);
        assert_eq!(judge(&ends(1, [10, 0, 0, 1]), 7300), Worth::Wrong);
        assert_eq!(judge(&ends(1, [10, 0, 0, 2]), 3000), Worth::Wrong);
        let other = Granting::new(&mut Random::seeded(2));
        assert_eq!(other.judge(&ends(1, [10, 0, 0, 1]), &cookie, at(3000)), Worth::Wrong);
    }

    #[test]
    fn tickets_are_counted_and_a_reset_one_for_a_while_longer() {
        let pending = Pending::new(2);
        let first = pending.take(at(0)).unwrap();
        let second = pending.take(at(0)).unwrap();
        assert!(pending.take(at(0)).is_none() && !pending.has_room(at(0)));
        drop(first);
        assert!(pending.has_room(at(1)));
        second.forfeit(at(1));
        let third = pending.take(at(2)).unwrap();
        assert!(pending.take(at(60)).is_none(), "the reset one still counts");
        assert!(pending.take(at(61)).is_some());
        drop(third);
        assert_eq!(pending.count.load(Ordering::Relaxed), 0);
        assert!(Pending::new(0).take(at(0)).is_none());
    }
}
