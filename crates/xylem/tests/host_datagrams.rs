//! UDP sockets between two stacks on an in-process wire.

mod host;

use host::{LEFT, pair, right, within};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use xylem_host::net::UdpSocket;
use xylem_host::shell::Shell;

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn datagrams_are_echoed_whole_in_every_shell() {
    for shell in [Shell::Thread, Shell::Spin, Shell::Inline] {
        within(LIMIT, move || {
            let (left, right_stack) = pair(shell);
            let server = UdpSocket::bind_on(&right_stack, right(7)).expect("free");
            let echo = thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                loop {
                    let Ok((count, from)) = server.recv_from(&mut buffer) else { return };
                    server.send_to(&buffer[..count], from).expect("a way back");
                }
            });
            let client = UdpSocket::bind_on(&left, "0.0.0.0:0").expect("a free port");
            assert_ne!(client.local_addr().expect("bound").port(), 0);
            client.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
            for size in [0, 1, 1000, 1472, 1473, 9000, 40_000, 65_507] {
                let bytes: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
                assert_eq!(client.send_to(&bytes, right(7)).expect("a way"), size);
                let mut back = vec![0; size + 10];
                let (count, from) = client.recv_from(&mut back).unwrap_or_else(|e| panic!("{shell:?}, {size}: {e}"));
                assert_eq!((count, from), (size, right(7)), "{shell:?}");
                assert_eq!(&back[..count], &bytes[..], "{shell:?}, {size} bytes");
            }
            right_stack.stop();
            echo.join().expect("no panic");
        });
    }
}

#[test]
fn a_connected_socket_hears_its_peer_only() {
    within(LIMIT, || {
        let (left, right_stack) = pair(Shell::Thread);
        let one = UdpSocket::bind_on(&right_stack, right(1)).expect("free");
        let two = UdpSocket::bind_on(&right_stack, right(2)).expect("free");
        let client = UdpSocket::bind_on(&left, (LEFT, 9)).expect("free");
        let address: SocketAddr = client.local_addr().expect("bound");
        assert_eq!(client.send(b"x").expect_err("no peer").kind(), ErrorKind::NotConnected);
        assert_eq!(client.recv(&mut [0; 1]).expect_err("no peer").kind(), ErrorKind::NotConnected);
        client.connect(right(1)).expect("an address");
        assert_eq!(client.peer_addr().expect("connected"), right(1));
        two.send_to(b"stranger", address).expect("a way");
        one.send_to(b"friend", address).expect("a way");
        let mut buffer = [0; 16];
        assert_eq!(client.peek(&mut buffer).expect("it comes"), 6);
        assert_eq!(client.peek_from(&mut buffer[..3]).expect("it stays"), (3, right(1)));
        assert_eq!(client.recv(&mut buffer).expect("it stays"), 6);
        assert_eq!(&buffer[..6], b"friend");
        client.send(b"hello").expect("a way");
        assert_eq!(one.recv_from(&mut buffer).expect("it comes"), (5, address));
        client.set_nonblocking(true).expect("it can");
        assert_eq!(client.recv(&mut buffer).expect_err("nothing").kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_closed_port_is_told_to_a_connected_socket() {
    within(LIMIT, || {
        let (left, _right) = pair(Shell::Thread);
        let client = UdpSocket::bind_on(&left, "0.0.0.0:0").expect("free");
        client.connect(right(99)).expect("an address");
        client.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        client.send(b"anybody?").expect("a way");
        assert_eq!(client.recv(&mut [0; 1]).expect_err("nobody").kind(), ErrorKind::ConnectionRefused);
        assert!(client.take_error().expect("it has been told").is_none());
    });
}

#[test]
fn what_cannot_be_sent_says_so() {
    within(LIMIT, || {
        let (left, _right) = pair(Shell::Thread);
        let client = UdpSocket::bind_on(&left, "0.0.0.0:5").expect("free");
        assert_eq!(UdpSocket::bind_on(&left, "0.0.0.0:5").expect_err("taken").kind(), ErrorKind::AddrInUse);
        assert_eq!(client.send_to(&[0; 65_508], right(7)).expect_err("too long").kind(), ErrorKind::InvalidInput);
        let everybody = "255.255.255.255:7";
        assert_eq!(client.send_to(b"x", everybody).expect_err("not allowed").kind(), ErrorKind::PermissionDenied);
        assert_eq!(client.send_to(b"x", "10.9.9.9:7").expect_err("no route").kind(), ErrorKind::NetworkUnreachable);
        client.set_read_timeout(Some(Duration::from_millis(30))).expect("a timeout");
        let start = Instant::now();
        assert_eq!(client.recv_from(&mut [0; 1]).expect_err("nothing").kind(), ErrorKind::WouldBlock);
        assert!(start.elapsed() >= Duration::from_millis(30));
    });
}

#[test]
fn a_socket_nobody_reads_drops_what_is_too_much() {
    within(LIMIT, || {
        let (left, right_stack) = pair(Shell::Thread);
        let server = UdpSocket::bind_on(&right_stack, right(7)).expect("free");
        let client = UdpSocket::bind_on(&left, "0.0.0.0:0").expect("free");
        client.send_to(b"first", right(7)).expect("a way");
        let mut buffer = [0; 1500];
        assert_eq!(server.recv_from(&mut buffer).expect("it comes").0, 5);
        let deadline = Instant::now() + Duration::from_secs(10);
        while server.dropped() == 0 {
            client.send_to(&[1; 1000], right(7)).expect("a way");
            assert!(Instant::now() < deadline, "nothing was dropped");
        }
        let (_, held) = (0, right_stack.reading().buffers_held.0 + left.reading().buffers_held.0);
        assert!(held < 2000, "{held} buffers wait at a socket that nobody reads");
        assert_eq!(server.recv_from(&mut buffer).expect("the oldest are there").0, 1000);
    });
}
