//! The facts page of one link's neighbours: which link address each has. Its master (ARP, later neighbour discovery)
//! writes it; link sessions hold the entry of their neighbour and read it with one load for each message, so a change
//! reaches every path at no cost, however many there are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use xylem_wire::EthernetAddress;

/// The most entries on one page: more neighbours than a link of ordinary size has.
pub const NEIGHBOURS_MAX: usize = 4096;

/// The entry of one neighbour. Cloning gives another handle on the same entry.
///
/// One word: the link address in the low 48 bits, above it a generation that is odd while the address is known.
#[derive(Clone, Debug)]
pub struct Neighbour(Arc<AtomicU64>);

impl Neighbour {
    fn unresolved() -> Neighbour {
        Neighbour(Arc::new(AtomicU64::new(0)))
    }

    /// The link address, while it is known.
    pub fn link_address(&self) -> Option<EthernetAddress> {
        let word = self.0.load(Ordering::Acquire);
        let bytes = word.to_be_bytes();
        let address = [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]];
        (word >> 48 & 1 == 1).then_some(EthernetAddress(address))
    }

    /// How often the entry has changed, modulo 2^16.
    pub fn generation(&self) -> u16 {
        (self.0.load(Ordering::Acquire) >> 48) as u16
    }

    /// The master's: sets or forgets the link address.
    pub fn set(&self, address: Option<EthernetAddress>) {
        let before = self.0.load(Ordering::Acquire) >> 48;
        let step = if (before & 1 == 1) == address.is_some() { 2 } else { 1 };
        let generation = (before + step) & 0xffff;
        let address = address.map_or([0; 6], |address| address.0);
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&address);
        self.0.store(generation << 48 | u64::from_be_bytes(bytes), Ordering::Release);
    }

    /// Whether somebody beside the page holds the entry.
    pub fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// One link's page.
#[derive(Debug, Default)]
pub struct Neighbours(RwLock<BTreeMap<IpAddr, Neighbour>>);

impl Neighbours {
    /// The entry of `address`, made if there is none; `None` if the page is full of entries that are in use.
    pub fn entry(&self, address: IpAddr) -> Option<Neighbour> {
        if let Some(entry) = self.find(address) {
            return Some(entry);
        }
        let mut page = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if page.len() >= NEIGHBOURS_MAX {
            page.retain(|_, entry| entry.is_held());
            if page.len() >= NEIGHBOURS_MAX {
                return None;
            }
        }
        Some(page.entry(address).or_insert_with(Neighbour::unresolved).clone())
    }

    /// The entry of `address`, if there is one.
    pub fn find(&self, address: IpAddr) -> Option<Neighbour> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    /// The master's: removes an entry. Whoever holds it keeps an unresolved one.
    pub fn remove(&self, address: IpAddr) {
        if let Some(entry) = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&address) {
            entry.set(None);
        }
    }

    /// All entries, by address.
    pub fn all(&self) -> Vec<(IpAddr, Option<EthernetAddress>)> {
        let page = self.0.read().unwrap_or_else(PoisonError::into_inner);
        page.iter().map(|(address, entry)| (*address, entry.link_address())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_change_reaches_every_holder_and_a_full_page_forgets_only_what_nobody_holds() {
        let page = Neighbours::default();
        let host = |n: usize| IpAddr::V4(Ipv4Addr::from(n as u32));
        let held = page.entry(host(0)).unwrap();
        assert_eq!(held.link_address(), None);
        let mac = EthernetAddress([2, 0, 0, 0, 0, 9]);
        page.find(host(0)).unwrap().set(Some(mac));
        assert_eq!(held.link_address(), Some(mac));
        let before = held.generation();
        held.set(Some(mac));
        assert_ne!(held.generation(), before);
        for n in 1..=NEIGHBOURS_MAX {
            assert!(page.entry(host(n)).is_some());
        }
        assert!(page.all().len() <= NEIGHBOURS_MAX);
        assert_eq!(page.find(host(0)).and_then(|entry| entry.link_address()), Some(mac));
        page.remove(host(0));
        assert_eq!(held.link_address(), None);
    }
}
