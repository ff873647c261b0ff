//! What is known of servers that we opened connections to with data (RFC 7413, section 4.1.3): the cookie each has
//! granted, how large a segment it takes, and which of them, or which ways to them, had better be left alone for a while.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use xylem_core::{Duration, Instant, Keyed, Random};
use xylem_wire::FastOpenCookie;

/// Servers remembered at once; the one not heard of for longest makes way.
pub(crate) const SERVERS_MAX: usize = 1024;
/// How long a server that does not take part, or a way that swallows such SYNs, is left alone.
pub(crate) const REFUSED_FOR: Duration = Duration::from_secs(3600);

/// What is known of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has granted this cookie, and takes segments of so many bytes.
    Cookie(FastOpenCookie, u16),
    /// It is left alone until then.
    Refused(Instant),
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Servers {
    all: HashMap<IpAddr, (Known, u64), Keyed>,
    by_age: BTreeMap<u64, IpAddr>,
    clock: u64,
}

impl Servers {
    pub fn new(random: &mut Random) -> Servers {
        Servers { all: HashMap::with_hasher(Keyed::new(random)), by_age: BTreeMap::new(), clock: 0 }
    }

    pub fn find(&self, server: &IpAddr, now: Instant) -> Option<Known> {
        let (known, _) = *self.all.get(server)?;
        match known {
            Known::Refused(until) if now >= until => None,
            Known::Refused(_) | Known::Cookie(..) => Some(known),
        }
    }

    pub fn learn(&mut self, server: IpAddr, known: Known) {
        if let Some((_, age)) = self.all.remove(&server) {
            self.by_age.remove(&age);
        }
        if self.all.len() >= SERVERS_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.all.remove(&oldest);
        }
        self.clock += 1;
        self.by_age.insert(self.clock, server);
        self.all.insert(server, (known, self.clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn it_is_bounded_and_forgets_refusals() {
        let mut servers = Servers::new(&mut Random::seeded(1));
        let host = |number: u32| IpAddr::V4(Ipv4Addr::from(number));
        let cookie = FastOpenCookie::new(&[1; 8]).unwrap();
        for number in 0..3 * SERVERS_MAX as u32 {
            servers.learn(host(number), Known::Cookie(cookie, 1460));
            servers.learn(host(0), Known::Refused(Instant::ZERO + REFUSED_FOR));
        }
        assert_eq!((servers.all.len(), servers.by_age.len()), (SERVERS_MAX, SERVERS_MAX));
        assert_eq!(servers.find(&host(1), Instant::ZERO), None, "the oldest has made way");
        assert!(matches!(servers.find(&host(0), Instant::ZERO), Some(Known::Refused(_))), "this one was heard of");
        assert_eq!(servers.find(&host(0), Instant::ZERO + REFUSED_FOR), None);
    }
}
