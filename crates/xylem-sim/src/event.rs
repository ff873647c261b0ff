//! The hash over everything that happens on the links. Two runs with the same hash sent the same bytes at the same times;
//! golden hashes are committed and may change only when the protocols mean to behave differently.

use siphasher::sip::SipHasher13;
use std::fmt;
use std::hash::Hasher;
use xylem_core::Instant;

/// A running hash (SipHash-1-3 with a zero key, chosen because it is specified and so never changes).
#[derive(Clone, Debug)]
pub struct EventHash {
    hasher: SipHasher13,
    events: u64,
}

impl Default for EventHash {
    fn default() -> EventHash {
        EventHash { hasher: SipHasher13::new_with_keys(0, 0), events: 0 }
    }
}

impl EventHash {
    /// A frame left host `host` by its device `device`.
    pub fn sent(&mut self, now: Instant, host: usize, device: u16, frame: &[u8]) {
        self.add(1, now, host, device, frame);
    }

    /// A frame reached host `host` by its device `device`.
    pub fn arrived(&mut self, now: Instant, host: usize, device: u16, frame: &[u8]) {
        self.add(2, now, host, device, frame);
    }

    /// How many events it covers.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn add(&mut self, kind: u8, now: Instant, host: usize, device: u16, frame: &[u8]) {
        self.events += 1;
        self.hasher.write_u8(kind);
        self.hasher.write(&now.as_nanos().to_le_bytes());
        self.hasher.write(&(host as u32).to_le_bytes());
        self.hasher.write(&device.to_le_bytes());
        self.hasher.write(&(frame.len() as u32).to_le_bytes());
        self.hasher.write(frame);
    }
}

impl fmt::Display for EventHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hasher.finish())
    }
}
