//! Connections that come and go leave nothing behind: not a byte on the heap, counted by the allocator of this program,
//! and not a path, a deadline or an entry of TIME-WAIT. And what one costs does not depend on how many others stand. Two
//! stacks on a wire, both run by the test's own thread, which therefore has one test only.
#![allow(unsafe_code, reason = "a counting allocator is an unsafe trait around the system's")]

mod host;

use host::{pair_with, right};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use xylem_host::net::{TcpListener, TcpStream};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged, which keeps the trait's promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are the ones this call needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Connections of a round, and rounds.
const ROUND: usize = 500;
const ROUNDS: usize = 12;
/// Connections under way at a time.
const AT_ONCE: usize = 50;
/// Connections that stand meanwhile: few, and many.
const STANDING: [usize; 2] = [10, 1500];
/// Deadlines that protocols themselves have on a wheel.
const DEADLINES_OF_NODES: usize = 8;
/// How long anything may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts, and whoever stands between them.
struct Town {
    left: Stack,
    right: Stack,
    listener: TcpListener,
}

impl Town {
    fn turn(&self) {
        self.left.turn();
        self.right.turn();
    }

    /// Turns until `attempt` gives something.
    fn until<T>(&self, what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(answer) = attempt() {
                return answer;
            }
            self.turn();
            assert!(begun.elapsed() < PATIENCE, "{what}: nothing moves");
        }
    }

    /// So many connections, both ends of each.
    fn connect(&self, count: usize) -> Vec<(TcpStream, TcpStream)> {
        let mut ends = Vec::with_capacity(count);
        for _ in 0..count {
            let client = TcpStream::open(&self.left, None, right(7)).expect("a port is free");
            client.set_nonblocking(true).expect("it can be");
            let server = self.until("accept", || match self.listener.accept() {
                Ok((stream, _)) => Some(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) => panic!("accept: {error}"),
            });
            server.set_nonblocking(true).expect("it can be");
            self.until("open", || match client.poll_opened(Waker::noop()) {
                Poll::Ready(answer) => {
                    answer.expect("somebody listens");
                    Some(())
                }
                Poll::Pending => None,
            });
            ends.push((client, server));
        }
        ends
    }

    /// Bytes from one end to the other.
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream) {
        assert_eq!(from.write(&[7; 64]).expect("there is room"), 64);
        let mut bytes = [0; 64];
        let count = self.until("read", || match to.read(&mut bytes) {
            Ok(count) => Some(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("read: {error}"),
        });
        assert_eq!(bytes[..count], [7; 64]);
    }

    /// Connections that are made, used and closed, and have waited: until none of them is left beside those that stand.
    fn round(&self, standing: usize) {
        for _ in 0..ROUND / AT_ONCE {
            for (client, server) in self.connect(AT_ONCE) {
                self.carry(&client, &server);
                self.carry(&server, &client);
                // The client closes first, and its end waits.
                drop((client, server));
            }
        }
        self.until("leave", || {
            let paths = |stack: &Stack| stack.instance().path_count() - stack.instance().kept_path_count();
            let lingering = |stack: &Stack| stack.instance().lingering_count();
            // Deadlines of paths that have gone stay on the wheel until they come.
            let deadlines = |stack: &Stack| stack.instance().deadline_count() > standing + DEADLINES_OF_NODES;
            let left = [&self.left, &self.right].map(|stack| (paths(stack), lingering(stack), deadlines(stack)));
            (left == [(standing, 0, false); 2]).then_some(())
        });
    }
}

/// Live bytes after each round, and allocations of the last one, with so many connections standing.
fn rounds(standing: usize) -> (Vec<i64>, u64) {
    // TIME-WAIT lasts two milliseconds, and no timer is set far ahead.
    let (left, right_stack) = pair_with(Shell::Inline, "msl = 1ms, rto_initial = 20ms, rto_min = 20ms");
    let listener = TcpListener::bind_on(&right_stack, right(7)).expect("free");
    listener.set_nonblocking(true).expect("it can be");
    let town = Town { left, right: right_stack, listener };
    let stands = town.connect(standing);
    let mut live = Vec::with_capacity(ROUNDS);
    let mut made = 0;
    for _ in 0..ROUNDS {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        town.round(standing);
        made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        live.push(LIVE.load(Ordering::Relaxed));
    }
    // Those that stood still do.
    for (client, server) in &stands {
        town.carry(client, server);
    }
    (live, made)
}

#[test]
fn connections_that_come_and_go_leave_nothing_and_cost_the_same_among_few_and_many() {
    let mut costs = Vec::new();
    for standing in STANDING {
        let (live, made) = rounds(standing);
        println!("{standing} stand: live bytes {live:?}, {made} allocations in the last round");
        // The first rounds fill pools, queues and tables, and the slots of the wheels keep a little each; of the three
        // thousand connections that follow, forty bytes left of each would be more than this.
        let (settled, last) = (live[ROUNDS / 2 - 1], live[ROUNDS - 1]);
        assert!(last - settled < 100 << 10, "{standing} stand: {live:?}");
        costs.push(made as f64 / ROUND as f64);
    }
    println!("allocations for a connection: {costs:?}");
    // Look-ups and timers take as many steps; what differs are paths that come to rest or wake by the real clock.
    assert!((costs[0] - costs[1]).abs() < 0.25 * costs[0], "{costs:?}");
}
