//! Maps from external keys to paths and enables. Keys come from the wire, where they are chosen by others, so the hash is
//! keyed (SipHash-1-3); the map is concurrent, bounded, and an entry goes when its binding is dropped.

use crate::opening::Binding;
use crate::random::Random;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use siphasher::sip::SipHasher13;
use smallvec::SmallVec;
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

/// A key and what is bound to it. One hash names the shard and the place in it.
type Bound<K, V> = (K, Values<V>);

/// The values of one key, in the order they were bound. Few keys have more than one.
#[derive(Debug)]
struct Values<V> {
    first: V,
    #[allow(clippy::box_collection, reason = "a pointer is all that a key pays that has one value")]
    others: Option<Box<Vec<V>>>,
}

impl<V: PartialEq + Copy> Values<V> {
    fn iter(&self) -> impl Iterator<Item = V> + '_ {
        std::iter::once(self.first).chain(self.others.iter().flat_map(|others| others.iter().copied()))
    }

    /// Takes out one that equals `value`; `false` if nothing would be left.
    fn remove(&mut self, value: V) -> bool {
        let others = self.others.as_mut().filter(|others| !others.is_empty());
        let Some(others) = others else { return self.first != value };
        if self.first == value {
            self.first = others.remove(0);
        } else if let Some(at) = others.iter().position(|other| *other == value) {
            others.remove(at);
        }
        true
    }
}

type Shard<K, V> = RwLock<HashTable<Bound<K, V>>>;

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
        let (hash, shard) = self.map.place(&self.key);
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if let Ok(mut entry) = shard.find_entry(hash, |(key, _)| *key == self.key)
            && !entry.get_mut().1.remove(self.value)
        {
            entry.remove();
        }
    }
}

impl<K: Hash + Eq + Copy + Send + Sync + 'static, V: PartialEq + Copy + Send + Sync + 'static> Map<K, V> {
    /// An empty map of at most about `limit` keys (a sixteenth of it in each shard, rounded up).
    pub fn new(limit: usize, random: &mut Random) -> Map<K, V> {
        let shards = std::array::from_fn(|_| RwLock::new(HashTable::new()));
        Map(Arc::new(Shards { hash: Keyed::new(random), limit: limit.div_ceil(SHARDS), shards }))
    }

    /// Binds `key` to `value`, alone; or once more to the same value, for a holder that takes over from another.
    pub fn bind(&self, key: K, value: V) -> Result<Binding, BindError> {
        self.insert(key, value, false)
    }

    /// Binds `key` to `value` beside the others it is bound to.
    pub fn bind_another(&self, key: K, value: V) -> Result<Binding, BindError> {
        self.insert(key, value, true)
    }

    fn insert(&self, key: K, value: V, beside: bool) -> Result<Binding, BindError> {
        let (hash, shard) = self.place(&key);
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        let full = shard.len() >= self.0.limit;
        self.clear_of_gone(&mut shard);
        match shard.entry(hash, |(known, _)| *known == key, |(key, _)| self.0.hash.hash_one(key)) {
            Entry::Occupied(mut entry) => {
                let values = &mut entry.get_mut().1;
                if !beside && values.iter().any(|other| other != value) {
                    return Err(BindError::InUse);
                }
                values.others.get_or_insert_default().push(value);
            }
            Entry::Vacant(_) if full => return Err(BindError::Full),
            Entry::Vacant(entry) => {
                entry.insert((key, Values { first: value, others: None }));
            }
        }
        Ok(Box::new(Held { map: self.clone(), key, value }))
    }
}

impl<K: Hash + Eq + Copy, V: PartialEq + Copy> Map<K, V> {
    /// The (first) value under `key`.
    pub fn find(&self, key: &K) -> Option<V> {
        let (hash, shard) = self.place(key);
        let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
        shard.find(hash, |(known, _)| known == key).map(|(_, values)| values.first)
    }

    /// All values under `key`, in the order they were bound.
    pub fn find_all(&self, key: &K) -> SmallVec<[V; 4]> {
        let (hash, shard) = self.place(key);
        let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
        let found = shard.find(hash, |(known, _)| known == key);
        found.map(|(_, values)| values.iter().collect()).unwrap_or_default()
    }

    /// Takes the traces out of a shard that keys have left when they went, where they leave no room and are many. The table
    /// would double instead where it is more than half full, shard by shard and long after the last key came to stay: a host
    /// whose connections come and go would go on growing for a minute. Entries are moved once for each sixteenth of
    /// the table that has gone, so a binding costs the same however many there are.
    fn clear_of_gone(&self, shard: &mut HashTable<Bound<K, V>>) {
        let buckets = shard.num_buckets();
        // What a table of so many buckets holds before it grows.
        let most = buckets / 8 * 7;
        if shard.len() < shard.capacity() || shard.len() + buckets / 16 > most {
            return;
        }
        let hash_of = |(key, _): &Bound<K, V>| self.0.hash.hash_one(key);
        let old = std::mem::replace(shard, HashTable::with_capacity(most));
        for entry in old {
            shard.insert_unique(hash_of(&entry), entry, hash_of);
        }
    }

    /// How many keys are bound.
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    /// Whether no key is bound.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A key's hash and its shard. The table within the shard uses the lowest and the highest bits, so these are others.
    fn place(&self, key: &K) -> (u64, &Shard<K, V>) {
        let hash = self.0.hash.hash_one(key);
        (hash, &self.0.shards[(hash >> 32) as usize % SHARDS])
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
        let again = map.bind(7, 1).expect("its own value may be bound once more");
        drop(one);
        assert_eq!(map.find(&7), Some(1), "the second holder still holds it");
        let one = again;
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

    /// A key that counts how often it is hashed and compared.
    #[derive(Clone, Copy, Debug)]
    struct Counted(u64);

    thread_local! {
        static HASHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
        static COMPARED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    impl Hash for Counted {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            HASHED.set(HASHED.get() + 1);
            self.0.hash(state);
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    /// Hashes and comparisons of a thousand look-ups among `count` keys.
    fn look_ups(count: u64) -> (u64, u64) {
        let map: Map<Counted, u8> = Map::new(2 * count as usize, &mut Random::seeded(1));
        let held: Vec<_> = (0..count).map(|key| map.bind(Counted(key), 0).expect("there is room")).collect();
        HASHED.set(0);
        COMPARED.set(0);
        for key in (0..1000).map(|step| step * (count / 1000)) {
            assert_eq!(map.find(&Counted(key)), Some(0));
            assert_eq!(map.find(&Counted(key + count)), None);
        }
        let counts = (HASHED.get(), COMPARED.get());
        drop(held);
        counts
    }

    #[test]
    fn a_look_up_takes_as_many_steps_among_a_hundred_thousand_as_among_a_thousand() {
        let (few, many) = (look_ups(1_000), look_ups(100_000));
        assert_eq!((few.0, many.0), (2000, 2000), "each is hashed once");
        // One comparison that holds, and by chance a few whose seven bits of the hash are the same.
        assert!(few.1 >= 1000 && few.1 <= 1150 && many.1 >= 1000 && many.1 <= 1150, "{few:?} {many:?}");
    }

    /// Keys that come and go beside many that stay: the tables neither grow nor lose anybody.
    #[test]
    fn tables_of_keys_that_come_and_go_stay_as_large_as_they_are() {
        let mut random = Random::seeded(3);
        // Some 656 in each of sixteen shards of 1024 places, which hold 896: no shard is close to that by chance.
        let map: Map<u64, u8> = Map::new(1 << 20, &mut random);
        let stays: Vec<_> = (0..10_500).map(|key| map.bind(key, 1).expect("there is room")).collect();
        let buckets = || map.0.shards.iter().map(|shard| shard.read().unwrap().num_buckets()).collect::<Vec<_>>();
        let before = buckets();
        let mut key = 1 << 32;
        for _ in 0..4_000 {
            let come: Vec<_> = (0..50).map(|step| map.bind(key + step, 2).expect("there is room")).collect();
            key += 50;
            assert_eq!(map.find(&(key - 1)), Some(2));
            drop(come);
        }
        assert_eq!(buckets(), before);
        assert!((0..10_500).all(|key| map.find(&key) == Some(1)));
        drop(stays);
        assert!(map.is_empty());
    }
}
