//! Our own addresses on the link: announced when we start, and defended, seldom enough that two who both believe they are
//! right do not fill the link (RFC 5227, sections 2.3 and 2.4).

use super::ArpConfig;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use xylem_core::{Instant, time::earlier};

#[derive(Debug)]
struct Claim {
    announcements_left: u32,
    next: Instant,
    defended: Option<Instant>,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Claims(BTreeMap<Ipv4Addr, Claim>);

impl Claims {
    pub fn new(config: &ArpConfig) -> Claims {
        let claim = || Claim { announcements_left: config.announcements, next: Instant::ZERO, defended: None };
        Claims(config.addresses.iter().map(|address| (*address, claim())).collect())
    }

    pub fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.0.contains_key(&address)
    }

    /// The next address whose announcement is due; it counts as announced.
    pub fn announce(&mut self, config: &ArpConfig, now: Instant) -> Option<Ipv4Addr> {
        let due = |claim: &Claim| claim.announcements_left > 0 && claim.next <= now;
        let (address, claim) = self.0.iter_mut().find(|(_, claim)| due(claim))?;
        claim.announcements_left -= 1;
        claim.next = now + config.announce_every;
        Some(*address)
    }

    /// Somebody else claims `address`: whether to announce it again.
    pub fn defend(&mut self, address: Ipv4Addr, config: &ArpConfig, now: Instant) -> bool {
        let Some(claim) = self.0.get_mut(&address) else { return false };
        if claim.defended.is_some_and(|last| now < last + config.defend_every) {
            return false;
        }
        claim.defended = Some(now);
        true
    }

    pub fn deadline(&self) -> Option<Instant> {
        let waiting = self.0.values().filter(|claim| claim.announcements_left > 0);
        waiting.fold(None, |soonest, claim| earlier(soonest, Some(claim.next)))
    }
}
