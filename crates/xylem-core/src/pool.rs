//! Pools of buffers, fixed in number when they are made. A full pool is a counted drop or a refusal, never growth.
//! A buffer goes home by itself when its last holder lets go of it, on whichever thread that is.

use crossbeam_queue::ArrayQueue;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use triomphe::UniqueArc;

/// Bytes in a small buffer: one Ethernet frame of the usual size with its headroom.
pub const SMALL: usize = 2048;
/// Bytes in a large buffer: the payload of one message as large as IP allows.
pub const LARGE: usize = 65_536;

/// A source of buffers in two sizes. Cloning gives another handle on the same pool.
#[derive(Clone)]
pub struct Pool(Arc<Shelves>);

struct Shelves {
    small: Shelf,
    large: Shelf,
}

struct Shelf {
    size: usize,
    limit: usize,
    made: AtomicUsize,
    free: ArrayQueue<UniqueArc<Block>>,
}

struct Block {
    bytes: Box<[u8]>,
    /// The pool this block returns to; `None` while it lies in the pool, and for ever for a block of no pool.
    home: Option<Pool>,
}

impl Pool {
    /// A pool of at most `small` buffers of [`SMALL`] bytes and `large` ones of [`LARGE`] bytes. Memory is taken from the
    /// system when a buffer is first needed, and kept.
    ///
    /// # Panics
    /// If either number is zero: a pool without buffers serves nobody.
    pub fn new(small: usize, large: usize) -> Pool {
        Pool(Arc::new(Shelves { small: Shelf::new(SMALL, small), large: Shelf::new(LARGE, large) }))
    }

    /// A buffer of at least `size` bytes, or `None` if the pool has none left. Its contents are whatever its last holder
    /// left there.
    ///
    /// # Panics
    /// If `size` exceeds [`LARGE`].
    pub fn take(&self, size: usize) -> Option<Buffer> {
        assert!(size <= LARGE, "a buffer of {size} bytes was asked for; the largest has {LARGE}");
        let mut block = if size <= SMALL { &self.0.small } else { &self.0.large }.take()?;
        block.home = Some(self.clone());
        Some(Buffer(Some(block)))
    }

    /// Whether more than half of the buffers of this size are still free: below that, a path copies what it wants to
    /// keep into its own budget.
    pub fn more_than_half_free(&self, size: usize) -> bool {
        let shelf = if size <= SMALL { &self.0.small } else { &self.0.large };
        shelf.held() * 2 < shelf.limit
    }

    /// How many small and large buffers are in somebody's hands.
    pub fn held(&self) -> (usize, usize) {
        (self.0.small.held(), self.0.large.held())
    }
}

impl Shelf {
    fn new(size: usize, limit: usize) -> Shelf {
        Shelf { size, limit, made: AtomicUsize::new(0), free: ArrayQueue::new(limit) }
    }

    fn take(&self) -> Option<UniqueArc<Block>> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        let mine = |made| (made < self.limit).then_some(made + 1);
        self.made.fetch_update(Ordering::AcqRel, Ordering::Acquire, mine).ok()?;
        Some(UniqueArc::new(Block { bytes: vec![0; self.size].into_boxed_slice(), home: None }))
    }

    fn held(&self) -> usize {
        self.made.load(Ordering::Acquire).saturating_sub(self.free.len())
    }
}

fn go_home(mut block: UniqueArc<Block>) {
    let Some(pool) = block.home.take() else { return };
    let shelf = if block.bytes.len() <= SMALL { &pool.0.small } else { &pool.0.large };
    let back = shelf.free.push(block);
    assert!(back.is_ok(), "more buffers came home than the pool ever gave out");
}

/// A buffer with one holder, who may write to it.
pub struct Buffer(Option<UniqueArc<Block>>);

impl Buffer {
    /// A buffer that belongs to no pool: for the control plane and for tests.
    pub fn unpooled(size: usize) -> Buffer {
        Buffer(Some(UniqueArc::new(Block { bytes: vec![0; size].into_boxed_slice(), home: None })))
    }

    /// Gives up writing for sharing.
    pub fn share(mut self) -> SharedBuffer {
        SharedBuffer(self.0.take().map(UniqueArc::shareable))
    }

    fn block(&self) -> &UniqueArc<Block> {
        self.0.as_ref().expect("a buffer has its block until it is dropped or shared")
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (small, large) = self.held();
        write!(f, "Pool({small} of {} small and {large} of {} large held)", self.0.small.limit, self.0.large.limit)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBuffer({} bytes)", self.len())
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.block().bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0.as_mut().expect("a buffer has its block until it is dropped or shared").bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(block) = self.0.take() {
            go_home(block);
        }
    }
}

/// A buffer with any number of holders, who may only read it.
#[derive(Clone)]
pub struct SharedBuffer(Option<triomphe::Arc<Block>>);

impl SharedBuffer {
    /// The bytes for writing, if this is the only holder.
    pub fn writable(&mut self) -> Option<&mut [u8]> {
        self.0.as_mut().and_then(triomphe::Arc::get_mut).map(|block| &mut *block.bytes)
    }
}

impl Deref for SharedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0.as_ref().expect("a shared buffer has its block until it is dropped").bytes
    }
}

impl Drop for SharedBuffer {
    fn drop(&mut self) {
        // Of all holders exactly one gets the block back, however they race.
        if let Some(block) = self.0.take().and_then(triomphe::Arc::into_unique) {
            go_home(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_what_it_has_and_gets_it_back() {
        let pool = Pool::new(2, 1);
        let (one, two) = (pool.take(10), pool.take(SMALL));
        assert!(one.is_some() && two.is_some());
        assert!(pool.take(1).is_none(), "a third small buffer came out of a pool of two");
        assert_eq!(pool.held(), (2, 0));
        drop(one);
        assert!(pool.take(1).is_some());
        let large = pool.take(SMALL + 1).expect("the pool has one large buffer");
        assert_eq!(large.len(), LARGE);
        assert!(pool.take(LARGE).is_none());
    }

    #[test]
    fn the_last_of_racing_holders_sends_the_buffer_home() {
        let pool = Pool::new(1, 1);
        for _ in 0..2_000 {
            let shared = pool.take(1).expect("everything came home in the round before").share();
            let other = shared.clone();
            std::thread::scope(|scope| {
                scope.spawn(move || drop(other));
                drop(shared);
            });
            assert_eq!(pool.held(), (0, 0));
        }
    }

    #[test]
    fn only_a_sole_holder_may_write() {
        let mut shared = Buffer::unpooled(4).share();
        let other = shared.clone();
        assert!(shared.writable().is_none());
        drop(other);
        assert!(shared.writable().is_some());
    }

    #[test]
    fn half_free_is_told() {
        let pool = Pool::new(4, 1);
        let one = pool.take(1);
        assert!(pool.more_than_half_free(1));
        let two = pool.take(1);
        assert!(!pool.more_than_half_free(1));
        drop((one, two));
    }
}
