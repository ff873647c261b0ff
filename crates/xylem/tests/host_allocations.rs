//! In steady state a stack allocates nothing for a message: queues are used again, buffers come from the pool. Counted
//! by the allocator of this program, which therefore has one test only.
#![allow(unsafe_code, reason = "a counting allocator is an unsafe trait around the system's")]

mod host;

use host::{pair_with, right};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use xylem_host::net::{TcpListener, TcpStream};
use xylem_host::shell::Shell;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged, which keeps the trait's promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are the ones this call needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Round trips of `size` bytes; how many allocations they made.
fn round_trips(client: &TcpStream, size: usize, rounds: usize) -> u64 {
    let mut client = client;
    let mut bytes = vec![1; size];
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..rounds {
        client.write_all(&bytes).expect("open");
        client.read_exact(&mut bytes).expect("open");
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn messages_in_steady_state_allocate_nothing() {
    let (left, right_stack) = pair_with(Shell::Thread, "");
    let listener = TcpListener::bind_on(&right_stack, right(7)).expect("free");
    let echo = thread::spawn(move || {
        let mut stream = listener.accept().expect("a client").0;
        stream.set_nodelay(true).expect("open");
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer).expect("ends in order") {
                0 => return,
                count => stream.write_all(&buffer[..count]).expect("open"),
            }
        }
    });
    let client = TcpStream::connect_on(&left, right(7)).expect("somebody listens");
    client.set_nodelay(true).expect("open");
    client.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    for (size, rounds, messages) in [(1, 2000, 4000), (1000, 2000, 4000), (50_000, 400, 800)] {
        round_trips(&client, size, rounds);
        // Where the machine keeps a thread from running for long, the peer's timers go off, and what they cause is not the
        // steady state: the quietest of some attempts is.
        let made = (0..5).map(|_| round_trips(&client, size, rounds)).min().expect("five attempts");
        println!("{made} allocations for {messages} messages of {size} bytes");
        // A queue may still grow now and then; that is not one for each message.
        assert!(made < messages / 20, "{made} allocations for {messages} messages of {size} bytes");
    }
    drop(client);
    echo.join().expect("no panic");
}
