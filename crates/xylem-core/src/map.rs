//! Maps from external keys to paths and enables. Keys come from the wire, where they are chosen by others, so the hash is
//! keyed (SipHash-1-3); the map is concurrent, bounded, and an entry goes when its binding is dropped.

use crate::opening::Binding;
use crate::random::Random;
use siphasher::sip::SipHasher13;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, PoisonError, RwLock};

const SHARDS: usize = 16;

/// A hasher keyed with a secret of this map.
#[derive(Clone, Debug)]
pub struct Keyed(u64, u64);

impl Keyed {
    /// Keyed from `random`.
    pub fn new(random: &mut Random) -> Keyed {
        Keyed(random.next(), random.next())
    }
}

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

type Shard<K, V> = RwLock<HashMap<K, SmallVec<[V; 1]>, Keyed>>;

/// See the module's text. Cloning gives another handle on the same map.
#[derive(Debug)]
pub struct Map<K, V>(Arc<Shards<K, V>>);

#[derive(Debug)]
struct Shards<K, V> {
    hash: Keyed,
    limit: usize,
    shards: [Shard<K, V>; SHARDS],
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Map(Arc::clone(&self.0))
    }
}

/// Why a key was not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindError {
    /// The key has a value already.
    InUse,
    /// The map is full.
    Full,
}

/// Holds one value under one key; dropping it removes the value.
struct Held<K: Hash + Eq + Copy, V: PartialEq + Copy> {
    map: Map<K, V>,
    key: K,
    value: V,
}

impl<K: Hash + Eq + Copy, V: PartialEq + Copy> Drop for Held<K, V> {
    fn drop(&mut self) {
        let mut shard = self.map.shard(&self.key).write().unwrap_or_else(PoisonError::into_inner);
        if let Some(values) = shard.get_mut(&self.key) {
            if let Some(at) = values.iter().position(|value| *value == self.value) {
                values.remove(at);
            }
            if values.is_empty() {
                shard.remove(&self.key);
            }
        }
    }
}

impl<K: Hash + Eq + Copy + Send + Sync + 'static, V: PartialEq + Copy + Send + Sync + 'static> Map<K, V> {
    /// An empty map of at most about `limit` keys (a sixteenth of it in each shard, rounded up).
    pub fn new(limit: usize, random: &mut Random) -> Map<K, V> {
        let hash = Keyed::new(random);
        let shards = std::array::from_fn(|_| RwLock::new(HashMap::with_hasher(Keyed::new(random))));
        Map(Arc::new(Shards { hash, limit: limit.div_ceil(SHARDS), shards }))
    }

    /// Binds `key` to `value`, alone.
    pub fn bind(&self, key: K, value: V) -> Result<Binding, BindError> {
        self.insert(key, value, false)
    }

    /// Binds `key` to `value` beside the others it is bound to.
    pub fn bind_another(&self, key: K, value: V) -> Result<Binding, BindError> {
        self.insert(key, value, true)
    }

    fn insert(&self, key: K, value: V, beside: bool) -> Result<Binding, BindError> {
        let mut shard = self.shard(&key).write().unwrap_or_else(PoisonError::into_inner);
        let full = shard.len() >= self.0.limit;
        match shard.get_mut(&key) {
            Some(_) if !beside => return Err(BindError::InUse),
            Some(values) => values.push(value),
            None if full => return Err(BindError::Full),
            None => {
                shard.insert(key, SmallVec::from_buf([value]));
            }
        }
        Ok(Box::new(Held { map: self.clone(), key, value }))
    }
}

impl<K: Hash + Eq + Copy, V: PartialEq + Copy> Map<K, V> {
    /// The (first) value under `key`.
    pub fn find(&self, key: &K) -> Option<V> {
        let shard = self.shard(key).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(key).map(|values| values[0])
    }

    /// All values under `key`, in the order they were bound.
    pub fn find_all(&self, key: &K) -> SmallVec<[V; 4]> {
        let shard = self.shard(key).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(key).map(|values| values.iter().copied().collect()).unwrap_or_default()
    }

    /// How many keys are bound.
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    /// Whether no key is bound.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, key: &K) -> &Shard<K, V> {
        &self.0.shards[self.0.hash.hash_one(key) as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_bound_until_its_binding_goes() {
        let map: Map<u32, u8> = Map::new(100, &mut Random::seeded(1));
        let one = map.bind(7, 1).unwrap();
        assert_eq!(map.bind(7, 2).err(), Some(BindError::InUse));
        let two = map.bind_another(7, 2).unwrap();
        assert_eq!(map.find_all(&7).as_slice(), [1, 2]);
        drop(one);
        assert_eq!(map.find(&7), Some(2));
        drop(two);
        assert_eq!(map.find(&7), None);
        assert!(map.is_empty());
    }

    #[test]
    fn a_full_map_refuses() {
        let map: Map<u32, u8> = Map::new(SHARDS, &mut Random::seeded(1));
        let held: Vec<_> = (0..1000).filter_map(|key| map.bind(key, 0).ok()).collect();
        assert_eq!(held.len(), SHARDS, "one key a shard");
        assert_eq!(map.len(), SHARDS);
    }
}
