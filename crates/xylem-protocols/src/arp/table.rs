//! What is known of each neighbour: asked for, reachable, probed, or failed, each state with the facts that belong to it.
//! The table decides and says what to send; it sends nothing itself. Times are compared with `now` as it is handed in, so
//! a late look does no harm.

use super::ArpConfig;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use xylem_core::{Instant, time::earlier};
use xylem_wire::EthernetAddress;

#[derive(Clone, Copy, Debug)]
enum Entry {
    /// Requests are out; nobody has answered yet.
    Asking { tries: u32, next: Instant },
    /// The address is believed until then.
    Reachable { address: EthernetAddress, since: Instant, until: Instant },
    /// It has been quiet for long: still used, and asked whether it is there.
    Probing { address: EthernetAddress, since: Instant, tries: u32, next: Instant },
    /// It did not answer, and is left in peace until then.
    Failed { until: Instant },
}

impl Entry {
    fn next(&self) -> Instant {
        match *self {
            Entry::Asking { next, .. } | Entry::Probing { next, .. } => next,
            Entry::Reachable { until, .. } | Entry::Failed { until } => until,
        }
    }
}

/// What somebody who asks is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It has this address.
    Known(EthernetAddress),
    /// It does not answer, or the table is full of others who may yet.
    Unknown,
    /// Requests are out; this one is new, so one shall be sent.
    Begun,
    /// Requests are out.
    Waiting,
}

/// What hearing from a neighbour has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing that anybody would want to know.
    Nothing,
    /// The neighbour has this address now, and may have been waited for.
    Learnt,
    /// It was not believed: the address it had before is too young.
    Refused,
}

/// What is due for one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask everybody for it.
    Request(Ipv4Addr),
    /// Ask itself.
    Probe(Ipv4Addr, EthernetAddress),
    /// It does not answer: those who wait are told.
    Failed(Ipv4Addr),
    /// It has gone quiet and is forgotten.
    Forgotten(Ipv4Addr),
    /// Its failure is forgotten.
    Forgiven,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Table(BTreeMap<Ipv4Addr, Entry>);

impl Table {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Somebody wants the neighbour's address. An entry may have to make room: `forget` learns which.
    pub fn ask(
        &mut self,
        neighbour: Ipv4Addr,
        config: &ArpConfig,
        now: Instant,
        forget: impl FnOnce(Ipv4Addr),
    ) -> Asked {
        match self.0.get(&neighbour) {
            Some(Entry::Reachable { address, .. } | Entry::Probing { address, .. }) => Asked::Known(*address),
            Some(Entry::Asking { .. }) => Asked::Waiting,
            Some(Entry::Failed { until }) if now < *until => Asked::Unknown,
            Some(Entry::Failed { .. }) => self.begin(neighbour, config, now),
            None if self.asking_is_full(config) => Asked::Unknown,
            None if self.len() < config.entries => self.begin(neighbour, config, now),
            None => match self.dispensable() {
                Some(other) => {
                    self.0.remove(&other);
                    forget(other);
                    self.begin(neighbour, config, now)
                }
                None => Asked::Unknown,
            },
        }
    }

    /// Questions take half of the table at most: whoever makes us ask for hosts that are not there, by writing as if from
    /// them, must not push out those that are.
    fn asking_is_full(&self, config: &ArpConfig) -> bool {
        let most = config.entries.div_ceil(2);
        let asking = || self.0.values().filter(|entry| matches!(entry, Entry::Asking { .. })).count();
        self.len() >= most && asking() >= most
    }

    fn begin(&mut self, neighbour: Ipv4Addr, config: &ArpConfig, now: Instant) -> Asked {
        self.0.insert(neighbour, Entry::Asking { tries: 1, next: now + config.retry });
        Asked::Begun
    }

    /// The entry that is missed least: a failed one, else the one that has been quiet longest. Never one that is asked
    /// for, or questions to many silent neighbours would push each other out for ever.
    fn dispensable(&self) -> Option<Ipv4Addr> {
        let rank = |entry: &Entry| match entry {
            Entry::Failed { until } => Some((0, *until)),
            Entry::Probing { next, .. } => Some((1, *next)),
            Entry::Reachable { until, .. } => Some((2, *until)),
            Entry::Asking { .. } => None,
        };
        let ranked = self.0.iter().filter_map(|(neighbour, entry)| rank(entry).map(|rank| (rank, *neighbour)));
        ranked.min().map(|(_, neighbour)| neighbour)
    }

    /// The neighbour was heard from `address`. A neighbour we know nothing of is learnt only if `for_us`, and only while
    /// there is room: strangers push nobody out (RFC 826, "packet reception", with the merge flag; RFC 1122, 2.3.2).
    pub fn hear(
        &mut self,
        neighbour: Ipv4Addr,
        address: EthernetAddress,
        for_us: bool,
        config: &ArpConfig,
        now: Instant,
    ) -> Heard {
        let fresh = Entry::Reachable { address, since: now, until: now + config.reachable };
        let full = self.len() >= config.entries;
        let Some(entry) = self.0.get_mut(&neighbour) else {
            if !for_us || full {
                return Heard::Nothing;
            }
            self.0.insert(neighbour, fresh);
            return Heard::Learnt;
        };
        match *entry {
            Entry::Asking { .. } | Entry::Failed { .. } => {
                *entry = fresh;
                Heard::Learnt
            }
            Entry::Reachable { address: known, since, .. } | Entry::Probing { address: known, since, .. } => {
                if known == address {
                    *entry = Entry::Reachable { address, since, until: now + config.reachable };
                    Heard::Nothing
                } else if now < since + config.settled {
                    Heard::Refused
                } else {
                    *entry = fresh;
                    Heard::Learnt
                }
            }
        }
    }

    /// The next thing that is due, if there is one; the entry counts as served.
    pub fn due(&mut self, config: &ArpConfig, now: Instant) -> Option<Due> {
        let (neighbour, entry) = self.0.iter_mut().find(|(_, entry)| entry.next() <= now)?;
        let neighbour = *neighbour;
        let next = now + config.retry;
        Some(match *entry {
            Entry::Asking { tries, .. } if tries < config.tries => {
                *entry = Entry::Asking { tries: tries + 1, next };
                Due::Request(neighbour)
            }
            Entry::Asking { .. } => {
                *entry = Entry::Failed { until: now + config.failed };
                Due::Failed(neighbour)
            }
            Entry::Reachable { address, since, .. } => {
                *entry = Entry::Probing { address, since, tries: 1, next };
                Due::Probe(neighbour, address)
            }
            Entry::Probing { address, since, tries, .. } if tries < config.tries => {
                *entry = Entry::Probing { address, since, tries: tries + 1, next };
                // The last try is for everybody to hear: it may have another address now.
                if tries + 1 == config.tries { Due::Request(neighbour) } else { Due::Probe(neighbour, address) }
            }
            Entry::Probing { .. } => {
                self.0.remove(&neighbour);
                Due::Forgotten(neighbour)
            }
            Entry::Failed { .. } => {
                self.0.remove(&neighbour);
                Due::Forgiven
            }
        })
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.0.values().fold(None, |soonest, entry| earlier(soonest, Some(entry.next())))
    }
}
