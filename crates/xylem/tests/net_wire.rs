//! The common face of networks over a device without a descriptor: whoever sleeps in `Net::wait` has to be woken by what
//! arrives there.

mod host;

use host::{pair, right, within};
use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::Duration;
use xylem::net::xylem::{Idle, Xylem};
use xylem::net::{Net, Token};
use xylem_host::net::UdpSocket;
use xylem_host::shell::Shell;

/// The last datagram.
const LAST: u8 = 9;
/// What the server has before a datagram comes, to fall asleep.
const PAUSE: Duration = Duration::from_millis(20);

/// A server with an inline stack that waits without a limit. Once its protocols have started they set hardly a timer, so
/// that nothing but what comes over the wire wakes it: without that it sleeps longer than the test may take.
#[test]
fn a_server_that_sleeps_is_woken_by_frames_of_a_wire() {
    within(Duration::from_secs(60), || {
        let (left, right_stack) = pair(Shell::Inline);
        let (ready, listens) = mpsc::channel();
        let its = right_stack.clone();
        let server = std::thread::spawn(move || {
            let mut net = Xylem::new(&right_stack, Idle::Sleep).expect("a descriptor is free");
            let socket = net.datagrams(right(7), Token(0)).expect("nobody has the port");
            ready.send(()).expect("the client waits for it");
            let mut tokens = Vec::new();
            loop {
                net.wait(&mut tokens, None).expect("the network stays");
                tokens.clear();
                let mut byte = [0];
                loop {
                    match socket.recv_from(&mut byte) {
                        Ok((_, from)) => socket.send_to(&byte, from).expect("there is room"),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => panic!("receive: {error}"),
                    };
                    if byte == [LAST] {
                        return;
                    }
                }
            }
        });
        listens.recv().expect("it listens");
        while its.instance().deadline_count() > 0 {
            std::thread::sleep(PAUSE);
        }
        let client = UdpSocket::bind_on(&left, ("10.0.0.1", 0)).expect("a port is free");
        for round in 0..=LAST {
            std::thread::sleep(PAUSE);
            client.send_to(&[round], right(7)).expect("there is a way");
            let mut byte = [0];
            client.recv_from(&mut byte).expect("an answer");
            assert_eq!(byte, [round]);
        }
        server.join().expect("no panic");
    });
}
