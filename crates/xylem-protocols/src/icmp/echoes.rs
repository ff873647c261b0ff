//! Which echo conversations there are: our address, the peer's, and the identifier that tells several apart. Only we open
//! them, so the keys are ours and the map needs no keyed hash.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use xylem_core::{BindError, Binding, PathId};

/// One echo conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub local: IpAddr,
    pub remote: IpAddr,
    pub identifier: u16,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(super) struct Echoes(Arc<RwLock<BTreeMap<Key, PathId>>>);

struct Held {
    echoes: Echoes,
    key: Key,
}

impl Echoes {
    /// Takes a key for a path, as long as the binding is kept.
    pub fn bind(&self, key: Key, path: PathId, limit: usize) -> Result<Binding, BindError> {
        let mut paths = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if paths.contains_key(&key) {
            return Err(BindError::InUse);
        }
        if paths.len() >= limit {
            return Err(BindError::Full);
        }
        paths.insert(key, path);
        Ok(Box::new(Held { echoes: self.clone(), key }))
    }

    /// The path of a conversation.
    pub fn find(&self, key: &Key) -> Option<PathId> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.echoes.0.write().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
