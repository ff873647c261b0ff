//! The groups we are in: those that enables have joined, and the one of all hosts (RFC 1112, section 4). Membership lasts
//! as long as the enable that wanted it. Routers are not told (no IGMP is spoken here).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError, RwLock};
use xylem_core::Binding;

/// The most groups at a time.
pub(super) const GROUPS_MAX: usize = 256;

/// All hosts on the link: everybody is in it.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// See the module's text. How many want each group.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(Arc<RwLock<BTreeMap<Ipv4Addr, usize>>>);

struct Membership {
    groups: Groups,
    group: Ipv4Addr,
}

impl Groups {
    /// Joins a group for as long as the binding is kept; `None` if we are in too many.
    pub fn join(&self, group: Ipv4Addr) -> Option<Binding> {
        let mut members = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if members.len() >= GROUPS_MAX && !members.contains_key(&group) {
            return None;
        }
        *members.entry(group).or_default() += 1;
        Some(Box::new(Membership { groups: self.clone(), group }))
    }

    /// Whether we are in it.
    pub fn contains(&self, group: Ipv4Addr) -> bool {
        group == ALL_HOSTS || self.0.read().unwrap_or_else(PoisonError::into_inner).contains_key(&group)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut members = self.groups.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(wanted) = members.get_mut(&self.group) {
            *wanted -= 1;
            if *wanted == 0 {
                members.remove(&self.group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_left_when_the_last_who_wanted_it_goes() {
        let groups = Groups::default();
        let group = Ipv4Addr::new(239, 1, 2, 3);
        assert!(groups.contains(ALL_HOSTS) && !groups.contains(group));
        let (one, two) = (groups.join(group), groups.join(group));
        drop(one);
        assert!(groups.contains(group));
        drop(two);
        assert!(!groups.contains(group));
    }

    #[test]
    fn more_groups_than_the_limit_are_refused() {
        let groups = Groups::default();
        let joined = |n: usize| groups.join(Ipv4Addr::new(239, 0, (n >> 8) as u8, n as u8));
        let held: Vec<_> = (0..=GROUPS_MAX).filter_map(joined).collect();
        assert_eq!(held.len(), GROUPS_MAX);
        assert!(joined(0).is_some(), "a group we are in already has room");
    }
}
