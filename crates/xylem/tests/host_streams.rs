//! TCP sockets between two stacks on an in-process wire, in every shell.

mod host;

use host::content::{receive, send};
use host::{pair, pair_with, right, within};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use xylem_host::net::{TcpListener, TcpStream};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;

const LIMIT: Duration = Duration::from_secs(20);
const SHELLS: [Shell; 3] = [Shell::Thread, Shell::Spin, Shell::Inline];

/// A connection between two stacks, both ends.
fn connected(left: &Stack, right_stack: &Stack) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind_on(right_stack, right(0)).expect("the port is free");
    let address = listener.local_addr().expect("it has one");
    let (server, client) = thread::scope(|scope| {
        let server = scope.spawn(|| listener.accept().expect("a client comes").0);
        let client = TcpStream::connect_on(left, address).expect("somebody listens");
        (server.join().expect("accepting does not panic"), client)
    });
    assert_eq!(server.peer_addr().expect("connected"), client.local_addr().expect("connected"));
    assert_eq!(client.peer_addr().expect("connected"), address);
    (client, server)
}

#[test]
fn an_echo_comes_back_in_every_shell() {
    for shell in SHELLS {
        within(LIMIT, move || {
            let (left, right) = pair(shell);
            let (mut client, mut server) = connected(&left, &right);
            let echo = thread::spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    match server.read(&mut buffer).expect("the client closes in order") {
                        0 => return,
                        count => server.write_all(&buffer[..count]).expect("the client reads"),
                    }
                }
            });
            for round in 0..200u32 {
                let bytes = vec![round as u8; 1 + round as usize * 17 % 3000];
                client.write_all(&bytes).expect("the server reads");
                let mut back = vec![0; bytes.len()];
                client.read_exact(&mut back).expect("the server answers");
                assert_eq!(back, bytes, "{shell:?}, round {round}");
            }
            client.shutdown(Shutdown::Write).expect("it is open");
            assert_eq!(client.read(&mut [0; 10]).expect("the server closes in order"), 0);
            echo.join().expect("the echo does not panic");
        });
    }
}

/// After everything is closed nothing is left: no path but those kept for replies, no buffer in anybody's hands.
fn nothing_is_left(stacks: &[&Stack]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    for stack in stacks {
        loop {
            stacks.iter().for_each(|stack| stack.turn());
            let paths = stack.instance().path_count() - stack.instance().kept_path_count();
            let held = stack.reading().buffers_held;
            if paths == 0 && held == (0, 0) {
                break;
            }
            assert!(Instant::now() < deadline, "{paths} paths and {held:?} buffers are left: {:?}", stack.reading());
            thread::sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn megabytes_go_both_ways_at_once_and_arrive_whole() {
    const TOTAL: usize = 64 << 20;
    for (shell, piece) in [(Shell::Thread, 100_000), (Shell::Spin, 64 << 10), (Shell::Thread, 5000)] {
        let total = if piece < 10_000 { TOTAL / 8 } else { TOTAL };
        within(LIMIT, move || {
            let (left, right) = pair(shell);
            let (client, server) = connected(&left, &right);
            let both = |stream: TcpStream, seed: u64| {
                let writer = stream.try_clone().expect("handles are free");
                let sent = thread::spawn(move || {
                    let digest = send(&writer, seed, total, piece);
                    writer.shutdown(Shutdown::Write).expect("it is open");
                    digest
                });
                let received = thread::spawn(move || receive(&stream));
                (sent, received)
            };
            let ((client_sent, client_received), (server_sent, server_received)) = (both(client, 1), both(server, 2));
            let results = [(client_sent, server_received), (server_sent, client_received)];
            for (sent, received) in results {
                let (sent, received) = (sent.join().expect("sends"), received.join().expect("receives"));
                assert_eq!(received, (sent, total), "{shell:?}");
            }
            let frames = left.reading().frames_out + right.reading().frames_out;
            let segments = 2 * total as u64 / 1460;
            assert!(frames < segments / 2, "{frames} frames for {segments} segments: they did not go as long messages");
            nothing_is_left(&[&left, &right]);
        });
    }
}

#[test]
fn an_inline_stack_moves_megabytes_on_its_callers_threads() {
    const TOTAL: usize = 16 << 20;
    within(LIMIT, || {
        let (left, right) = pair(Shell::Inline);
        let (client, server) = connected(&left, &right);
        let sent = thread::spawn(move || {
            let digest = send(&client, 3, TOTAL, 50_000);
            client.shutdown(Shutdown::Write).expect("it is open");
            // Somebody has to take the turns until the last byte is acknowledged.
            assert_eq!((&client).read(&mut [0; 1]).expect("the server closes in order"), 0);
            digest
        });
        let received = thread::spawn(move || receive(&server));
        let (sent, received) = (sent.join().expect("sends"), received.join().expect("receives"));
        assert_eq!(received, (sent, TOTAL));
        nothing_is_left(&[&left, &right]);
    });
}

#[test]
fn one_direction_closes_and_the_other_goes_on() {
    within(LIMIT, || {
        let (left, right) = pair(Shell::Thread);
        let (mut client, mut server) = connected(&left, &right);
        client.write_all(b"question").expect("open");
        client.shutdown(Shutdown::Write).expect("open");
        assert_eq!(client.write(b"more").expect_err("closed for writing").kind(), ErrorKind::BrokenPipe);
        let mut question = String::new();
        server.read_to_string(&mut question).expect("ends in order");
        assert_eq!(question, "question");
        assert_eq!(server.read(&mut [0; 8]).expect("the end stays the end"), 0);
        server.write_all(&[7; 100_000]).expect("this direction is open");
        drop(server);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("ends in order");
        assert_eq!(answer, [7; 100_000]);
        drop(client);
        nothing_is_left(&[&left]);
    });
}

#[test]
fn shutting_the_reading_side_wakes_the_reader() {
    for shell in SHELLS {
        within(LIMIT, move || {
            let (left, right) = pair(shell);
            let (client, _server) = connected(&left, &right);
            let reader = client.try_clone().expect("handles are free");
            let waits = thread::spawn(move || (&reader).read(&mut [0; 8]));
            thread::sleep(Duration::from_millis(30));
            client.shutdown(Shutdown::Read).expect("open");
            assert_eq!(waits.join().expect("reading does not panic").expect("the end"), 0, "{shell:?}");
        });
    }
}

#[test]
fn many_threads_share_a_listener_and_a_stack() {
    const CLIENTS: usize = 12;
    const ROUNDS: usize = 12;
    for shell in SHELLS {
        within(LIMIT, move || {
            let (left, right_stack) = pair_with(shell, "msl = 10ms");
            let listener = TcpListener::bind_on(&right_stack, right(7)).expect("the port is free");
            let served = Arc::new(AtomicUsize::new(0));
            let servers: Vec<_> = (0..3)
                .map(|_| {
                    let (listener, served) = (listener.try_clone().expect("free"), Arc::clone(&served));
                    thread::spawn(move || {
                        while let Ok((mut stream, _)) = listener.accept() {
                            let mut bytes = Vec::new();
                            stream.read_to_end(&mut bytes).expect("the client closes its side");
                            stream.write_all(&bytes).expect("the client reads");
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            thread::scope(|scope| {
                for client in 0..CLIENTS {
                    let left = &left;
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            let mut stream = TcpStream::connect_on(left, right(7)).expect("somebody listens");
                            let bytes = vec![(client * ROUNDS + round) as u8; 100 + 997 * round];
                            stream.write_all(&bytes).expect("open");
                            stream.shutdown(Shutdown::Write).expect("open");
                            let mut back = Vec::new();
                            stream.read_to_end(&mut back).expect("the server answers");
                            assert!(back == bytes, "{shell:?}, client {client}, round {round}");
                        }
                    });
                }
            });
            assert_eq!(served.load(Ordering::Relaxed), CLIENTS * ROUNDS);
            right_stack.stop();
            for server in servers {
                server.join().expect("a stopped stack ends the accept");
            }
        });
    }
}

/// Readers, writers and deadlines of many connections on one stack without a thread: whoever takes the turns hands them
/// on, whenever it leaves.
#[test]
fn inline_threads_hand_the_turns_on() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 400;
    within(LIMIT, || {
        let (left, right) = pair(Shell::Inline);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (mut client, mut server) = connected(&left, &right);
                scope.spawn(move || {
                    let mut byte = [0; 1];
                    while server.read(&mut byte).expect("ends in order") > 0 {
                        server.write_all(&byte).expect("open");
                    }
                });
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let byte = [(number + round) as u8];
                        client.write_all(&byte).expect("open");
                        let mut back = [0; 1];
                        client.read_exact(&mut back).expect("open");
                        assert_eq!(back, byte);
                    }
                });
            }
        });
    });
}

#[test]
fn timeouts_end_reads_and_writes_and_zero_is_refused() {
    for shell in SHELLS {
        within(LIMIT, move || {
            let (left, right) = pair(shell);
            let (mut client, server) = connected(&left, &right);
            let error = client.set_read_timeout(Some(Duration::ZERO)).expect_err("no time at all");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            client.set_read_timeout(Some(Duration::from_millis(40))).expect("a timeout");
            let start = Instant::now();
            assert_eq!(client.read(&mut [0; 1]).expect_err("nothing comes").kind(), ErrorKind::WouldBlock);
            assert!(start.elapsed() >= Duration::from_millis(40) && start.elapsed() < Duration::from_secs(5));
            client.set_write_timeout(Some(Duration::from_millis(40))).expect("a timeout");
            let chunk = vec![1; 50_000];
            let error = loop {
                // Nobody reads: the buffers of both ends fill.
                match client.write(&chunk) {
                    Ok(count) => assert!(count > 0),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::WouldBlock, "{shell:?}");
            drop(server);
        });
    }
}

#[test]
fn what_cannot_be_reached_says_so_as_the_standard_library_does() {
    within(LIMIT, || {
        let (left, right_stack) = pair(Shell::Thread);
        let error = TcpStream::connect_on(&left, right(9)).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = TcpStream::connect_on(&left, "10.9.9.9:80").expect_err("no route");
        assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
        let nobody = "10.0.0.77:80".parse().expect("an address");
        let start = Instant::now();
        let error = TcpStream::connect_timeout_on(&left, &nobody, Duration::from_millis(50)).expect_err("no such host");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(3));
        let patient = Duration::from_secs(15);
        let error = TcpStream::connect_timeout_on(&left, &nobody, patient).expect_err("no such host");
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        let first = TcpListener::bind_on(&right_stack, right(7)).expect("free");
        let error = TcpListener::bind_on(&right_stack, right(7)).expect_err("taken");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let error = TcpListener::bind_on(&right_stack, "10.0.0.9:7").expect_err("not ours");
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        drop(first);
        TcpListener::bind_on(&right_stack, right(7)).expect("free again");
        nothing_is_left(&[&left]);
    });
}

#[test]
fn a_call_that_may_not_wait_does_not() {
    for shell in SHELLS {
        within(LIMIT, move || {
            let (left, right_stack) = pair(shell);
            let listener = TcpListener::bind_on(&right_stack, right(7)).expect("free");
            listener.set_nonblocking(true).expect("it can");
            assert_eq!(listener.accept().expect_err("nobody there").kind(), ErrorKind::WouldBlock);
            let client = thread::spawn(move || TcpStream::connect_on(&left, right(7)).map(|stream| (stream, left)));
            let server = loop {
                match listener.accept() {
                    Ok((stream, _)) => break stream,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            };
            let (client, left) = client.join().expect("connecting does not panic").expect("somebody listens");
            client.set_nonblocking(true).expect("it can");
            server.set_nonblocking(true).expect("it can");
            assert_eq!((&client).read(&mut [0; 4]).expect_err("nothing there").kind(), ErrorKind::WouldBlock);
            let (mut sent, mut got) = (0usize, 0usize);
            let (chunk, mut buffer) = (vec![9; 30_000], vec![0; 30_000]);
            while (&client).write(&chunk).map(|count| sent += count).is_ok() {}
            assert!(!client.readiness().writable, "{shell:?}: it would wait");
            let deadline = Instant::now() + Duration::from_secs(10);
            while got < sent {
                match (&server).read(&mut buffer) {
                    Ok(count) => got += count,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
                left.turn();
                assert!(Instant::now() < deadline, "{shell:?}: {got} of {sent} bytes came");
            }
            while !client.readiness().writable {
                left.turn();
                right_stack.turn();
                assert!(Instant::now() < deadline, "{shell:?}: the window did not open");
            }
        });
    }
}

#[test]
fn a_peek_leaves_the_bytes_there() {
    within(LIMIT, || {
        let (left, right) = pair(Shell::Thread);
        let (mut client, mut server) = connected(&left, &right);
        server.write_all(b"abcdef").expect("open");
        let mut four = [0; 4];
        for _ in 0..2 {
            assert_eq!(client.peek(&mut four).expect("open"), 4);
            assert_eq!(&four, b"abcd");
        }
        let (mut one, mut two) = ([0; 2], [0; 8]);
        let pieces = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(client.read_vectored(pieces).expect("open"), 6);
        assert_eq!((&one, &two[..4]), (b"ab", &b"cdef"[..]));
        assert_eq!(
            client.write_vectored(&[IoSlice::new(b"12"), IoSlice::new(b""), IoSlice::new(b"345")]).expect("open"),
            5
        );
        let mut five = [0; 5];
        server.read_exact(&mut five).expect("open");
        assert_eq!(&five, b"12345");
    });
}

#[test]
fn a_full_backlog_keeps_the_rest_out_until_somebody_accepts() {
    const BACKLOG: usize = 3;
    within(LIMIT, || {
        let (left, right_stack) = pair(Shell::Thread);
        let listener = TcpListener::bind_with_backlog(&right_stack, right(7), BACKLOG).expect("free");
        let short = Duration::from_millis(300);
        let clients: Vec<_> =
            (0..3 * BACKLOG).map(|_| TcpStream::connect_timeout_on(&left, &right(7), short)).collect();
        thread::sleep(Duration::from_millis(50));
        let open = |stream: &TcpStream| {
            let ready = stream.readiness();
            !ready.peer_closed && !ready.gone && !ready.failed
        };
        let kept = clients.iter().flatten().filter(|stream| open(stream)).count();
        assert!((1..=BACKLOG).contains(&kept), "{kept} connections wait behind a backlog of {BACKLOG}");
        listener.set_nonblocking(true).expect("it can");
        let accepted = std::iter::from_fn(|| listener.accept().ok()).count();
        assert_eq!(accepted, kept);
        drop(clients);
        listener.set_nonblocking(false).expect("it can");
        let again = thread::spawn(move || TcpStream::connect_on(&left, right(7)));
        listener.accept().expect("there is room again");
        again.join().expect("connecting does not panic").expect("there is room again");
    });
}

#[test]
fn a_stream_that_is_dropped_sends_what_is_unsent() {
    within(LIMIT, || {
        // Less buffer than data, and a reader that comes late: most is unsent when the sender lets go.
        let (left, right) = pair_with(Shell::Thread, "receive_buffer = 32KiB");
        let (client, server) = connected(&left, &right);
        let digest = send(&client, 5, 150_000, 150_000);
        drop(client);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(receive(&server), (digest, 150_000));
        drop(server);
        nothing_is_left(&[&right]);
    });
}

#[test]
fn a_stream_that_is_dropped_with_bytes_unread_resets() {
    within(LIMIT, || {
        let (left, right) = pair(Shell::Thread);
        let (mut client, server) = connected(&left, &right);
        client.write_all(b"for nobody").expect("open");
        while server.peek(&mut [0; 16]).expect("open") < 10 {}
        drop(server);
        let error = client.read(&mut [0; 1]).expect_err("the bytes were lost");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(client.read(&mut [0; 1]).expect("then it is over"), 0);
        assert_eq!(client.write(b"x").expect_err("it is over").kind(), ErrorKind::BrokenPipe);
        assert_eq!(client.shutdown(Shutdown::Both).expect_err("it is over").kind(), ErrorKind::NotConnected);
        assert!(client.take_error().expect("it has been told").is_none());
        drop(client);
        nothing_is_left(&[&left, &right]);
    });
}

#[test]
fn a_listener_that_goes_resets_whom_nobody_accepted() {
    within(LIMIT, || {
        let (left, right_stack) = pair(Shell::Thread);
        let listener = TcpListener::bind_on(&right_stack, right(7)).expect("free");
        let mut client = TcpStream::connect_on(&left, right(7)).expect("somebody listens");
        drop(listener);
        assert_eq!(client.read(&mut [0; 1]).expect_err("reset").kind(), ErrorKind::ConnectionReset);
        let error = TcpStream::connect_on(&left, right(7)).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        drop(client);
        nothing_is_left(&[&left, &right_stack]);
    });
}

#[test]
fn a_stopped_stack_ends_every_wait() {
    for shell in SHELLS {
        within(LIMIT, move || {
            let (left, right_stack) = pair(shell);
            let (client, _server) = connected(&left, &right_stack);
            let listener = TcpListener::bind_on(&left, "0.0.0.0:80").expect("free");
            assert_eq!(listener.local_addr().expect("it has one").port(), 80);
            let reads = thread::spawn(move || (&client).read(&mut [0; 1]).map_err(|error| error.kind()));
            let accepts = thread::spawn(move || listener.accept().map(drop).map_err(|error| error.kind()));
            thread::sleep(Duration::from_millis(30));
            left.stop();
            assert_eq!(reads.join().expect("no panic"), Err(ErrorKind::NotConnected), "{shell:?}");
            assert_eq!(accepts.join().expect("no panic"), Err(ErrorKind::NotConnected), "{shell:?}");
            let error = TcpStream::connect_on(&left, right(7)).expect_err("it is stopped");
            assert_eq!(error.kind(), ErrorKind::NotConnected);
        });
    }
}

#[test]
fn settings_and_status_reach_the_connection() {
    within(LIMIT, || {
        let (left, right) = pair(Shell::Thread);
        let (mut client, mut server) = connected(&left, &right);
        client.set_nodelay(true).expect("open");
        assert!(client.nodelay().expect("it was set"));
        client.set_ttl(9).expect("open");
        assert_eq!(client.ttl().expect("it was set"), 9);
        assert_eq!(client.set_ttl(256).expect_err("too many hops").kind(), ErrorKind::InvalidInput);
        client.set_keepalive(Some(Duration::from_secs(60))).expect("open");
        client.set_user_timeout(Some(Duration::from_secs(60))).expect("open");
        client.write_all(b"x").expect("open");
        server.read_exact(&mut [0; 1]).expect("open");
        let status = client.status().expect("open");
        assert_eq!(status.state, "ESTABLISHED");
        assert!(status.segment_size > 1000 && status.congestion_window > 1000, "{status:?}");
        client.shutdown(Shutdown::Write).expect("open");
        assert!(client.status().expect("half open").state.starts_with("FIN-WAIT"));
    });
}

#[test]
fn a_watcher_hears_of_bytes_room_and_connections() {
    within(LIMIT, || {
        let (left, right_stack) = pair(Shell::Thread);
        let calls = Arc::new(AtomicUsize::new(0));
        let count = || {
            let calls = Arc::clone(&calls);
            let watcher: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
                calls.fetch_add(1, Ordering::SeqCst);
            });
            Some(watcher)
        };
        let until_called = |what: &str| {
            let deadline = Instant::now() + Duration::from_secs(5);
            while calls.swap(0, Ordering::SeqCst) == 0 {
                assert!(Instant::now() < deadline, "nobody heard of {what}");
                thread::sleep(Duration::from_millis(1));
            }
        };
        let listener = TcpListener::bind_on(&right_stack, right(7)).expect("free");
        listener.watch(count());
        let client = TcpStream::connect_on(&left, right(7)).expect("somebody listens");
        until_called("a connection");
        assert!(listener.is_ready());
        let (server, _) = listener.accept().expect("it is there");
        listener.watch(None);
        server.watch(count());
        calls.store(0, Ordering::SeqCst);
        (&client).write_all(b"x").expect("open");
        until_called("a byte");
        assert!(server.readiness().readable);
    });
}
