//! Embryos: half-open connections, which their enable owns until the handshake ends. They are small and bounded, by
//! each enable's backlog and over all; the oldest makes way (RFC 4987, section 3), unless cookies stand in for them. A SYN-ACK that
//! is not answered is sent again, more and more rarely, and then given up.

use super::ends::Ends;
use super::options::Offer;
use super::soonest::Soonest;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xylem_core::{Duration, EnableId, Instant, Keyed, Random};
use xylem_wire::SequenceNumber;

/// One half-open connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Embryo {
    pub enable: EnableId,
    /// The number of our SYN.
    pub initial: SequenceNumber,
    /// The number of the peer's SYN.
    pub peer: SequenceNumber,
    /// What the peer's SYN said.
    pub offer: Offer,
    /// The window of the peer's SYN.
    pub window: u16,
    /// The segment size we announced.
    pub announced: u16,
    /// How often the SYN-ACK was sent again.
    pub attempts: u8,
    /// Its SYN brought data that may be taken at once.
    pub early: bool,
    /// The SYN-ACK grants a cookie for fast open.
    pub grants: bool,
    /// When the SYN-ACK is sent again.
    pub due: Instant,
    /// Which embryo it is, in order of birth.
    serial: u64,
}

const _: () = assert!(size_of::<Embryo>() + size_of::<Ends>() <= 128, "a flood of SYNs makes many embryos");

/// All embryos of one protocol.
#[derive(Debug)]
pub(crate) struct Embryos {
    all: HashMap<Ends, Embryo, Keyed>,
    by_due: BTreeSet<(Instant, Ends)>,
    by_age: BTreeMap<(EnableId, u64), Ends>,
    by_enable: BTreeMap<EnableId, usize>,
    limit: usize,
    born: u64,
    soonest: Soonest,
}

impl Embryos {
    /// None yet, and at most `limit` of them ever at once.
    pub fn new(limit: usize, random: &mut Random) -> Embryos {
        Embryos {
            all: HashMap::with_hasher(Keyed::new(random)),
            by_due: BTreeSet::new(),
            by_age: BTreeMap::new(),
            by_enable: BTreeMap::new(),
            limit,
            born: 0,
            soonest: Soonest::never(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is room for another one of `enable`, which may have `backlog` of them.
    pub fn has_room(&self, enable: EnableId, backlog: usize) -> bool {
        self.all.len() < self.limit && self.by_enable.get(&enable).copied().unwrap_or(0) < backlog
    }

    /// Whether there is room for another one of `enable` whose peer has shown that it is there.
    pub fn has_proven_room(&self, enable: EnableId, backlog: usize) -> bool {
        self.by_enable.get(&enable).copied().unwrap_or(0) < backlog.saturating_mul(2)
    }

    pub fn find(&self, ends: &Ends) -> Option<Embryo> {
        self.all.get(ends).copied()
    }

    /// Adds one, for an enable that may have `backlog` of them. Says whether an older one of the same enable made way;
    /// `None`: there is no room at all.
    pub fn add(&mut self, ends: Ends, embryo: Embryo, backlog: usize) -> Option<bool> {
        if backlog == 0 {
            return None;
        }
        let made_way = !self.has_room(embryo.enable, backlog);
        if made_way {
            let (_, oldest) = self.oldest_of(embryo.enable)?;
            self.remove(&oldest);
        }
        self.insert(ends, embryo);
        Some(made_way)
    }

    /// Adds one whose peer has shown that it is there: beside those that have not, each enable has room for `backlog` of
    /// these, whatever others have taken up. Beyond that it is refused: `false`.
    #[must_use]
    pub fn add_proven(&mut self, ends: Ends, embryo: Embryo, backlog: usize) -> bool {
        let has_room = self.has_proven_room(embryo.enable, backlog);
        if has_room {
            self.insert(ends, embryo);
        }
        has_room
    }

    fn insert(&mut self, ends: Ends, mut embryo: Embryo) {
        let enable = embryo.enable;
        embryo.serial = self.born;
        self.born += 1;
        self.by_due.insert((embryo.due, ends));
        self.by_age.insert((enable, embryo.serial), ends);
        *self.by_enable.entry(enable).or_default() += 1;
        self.all.insert(ends, embryo);
        self.tell_soonest();
    }

    /// Takes one out.
    pub fn remove(&mut self, ends: &Ends) -> Option<Embryo> {
        let embryo = self.all.remove(ends)?;
        self.by_due.remove(&(embryo.due, *ends));
        self.by_age.remove(&(embryo.enable, embryo.serial));
        if let Some(count) = self.by_enable.get_mut(&embryo.enable) {
            *count -= 1;
            if *count == 0 {
                self.by_enable.remove(&embryo.enable);
            }
        }
        self.tell_soonest();
        Some(embryo)
    }

    fn oldest_of(&self, enable: EnableId) -> Option<(u64, Ends)> {
        let mut of_enable = self.by_age.range((enable, 0)..=(enable, u64::MAX));
        of_enable.next().map(|((_, serial), ends)| (*serial, *ends))
    }

    /// Takes out all of one enable: it stands no longer.
    pub fn remove_all(&mut self, enable: EnableId) {
        while let Some((_, ends)) = self.oldest_of(enable) {
            self.remove(&ends);
        }
    }

    /// When the next one wants attention, for those who do not hold the table.
    pub fn soonest(&self) -> Soonest {
        self.soonest.clone()
    }

    fn tell_soonest(&self) {
        self.soonest.set(self.by_due.first().map(|(due, _)| *due));
    }

    /// One whose time has come at `now`.
    pub fn due(&self, now: Instant) -> Option<(Ends, Embryo)> {
        let (_, ends) = self.by_due.first().filter(|(due, _)| *due <= now)?;
        self.all.get(ends).map(|embryo| (*ends, *embryo))
    }

    /// The peer has sent its SYN again: the answer echoes the newer timestamp, so that the peer measures the round trip and
    /// not its own timeout (RFC 7323, section 4.3).
    pub fn renew(&mut self, ends: &Ends, stamp: SequenceNumber) -> Option<Embryo> {
        let embryo = self.all.get_mut(ends)?;
        if embryo.offer.timestamp.is_some_and(|before| before.is_at_or_before(stamp)) {
            embryo.offer.timestamp = Some(stamp);
        }
        Some(*embryo)
    }

    /// What its SYN brought was not taken with the SYN: now it is as any other.
    pub fn forget_early(&mut self, ends: &Ends) {
        if let Some(embryo) = self.all.get_mut(ends) {
            embryo.early = false;
        }
    }

    /// Its SYN-ACK went out again, or could not: the next time comes after `wait`.
    pub fn postpone(&mut self, ends: &Ends, attempts: u8, now: Instant, wait: Duration) {
        if let Some(embryo) = self.all.get_mut(ends) {
            self.by_due.remove(&(embryo.due, *ends));
            (embryo.attempts, embryo.due) = (attempts, now + wait);
            self.by_due.insert((embryo.due, *ends));
            self.tell_soonest();
        }
    }
}

impl Embryo {
    /// A new one; its serial number is given when it is added.
    #[allow(clippy::too_many_arguments)] // Each is a fact of the SYN or of our answer; a struct would repeat this one.
    pub fn new(
        enable: EnableId,
        initial: SequenceNumber,
        peer: SequenceNumber,
        offer: Offer,
        window: u16,
        announced: u16,
        due: Instant,
    ) -> Embryo {
        Embryo {
            enable,
            initial,
            peer,
            offer,
            window,
            announced,
            attempts: 0,
            early: false,
            grants: false,
            due,
            serial: 0,
        }
    }
}
