//! The common face of networks over a device without a descriptor: whoever sleeps in `Net::wait` has to be woken by what
//! arrives there.

mod host;

use host::{pair, right, within};
use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;
use xylem::net::xylem::{Idle, Xylem};
use xylem::net::{Net, Token};
use xylem_host::net::TcpStream;
use xylem_host::shell::Shell;

/// A server with an inline stack that waits without a limit: its only work is what comes over the wire.
#[test]
fn a_server_that_sleeps_is_woken_by_frames_of_a_wire() {
    within(Duration::from_secs(60), || {
        let (left, right_stack) = pair(Shell::Inline);
        let (ready, listens) = mpsc::channel();
        let server = std::thread::spawn(move || {
            let mut net = Xylem::new(&right_stack, Idle::Sleep).expect("a descriptor is free");
            let listener = net.listen(right(7), 16, Token(0)).expect("nobody has the port");
            ready.send(()).expect("the client waits for it");
            let (mut stream, mut tokens) = (None, Vec::new());
            loop {
                net.wait(&mut tokens, None).expect("the network stays");
                tokens.clear();
                if stream.is_none() {
                    stream = net.accept(&listener, Token(1)).ok().map(|(stream, _)| stream);
                }
                let mut byte = [0];
                match stream.as_mut().map(|stream| stream.read(&mut byte)) {
                    Some(Ok(0)) => return,
                    Some(Ok(_)) => stream.as_mut().expect("it was read from").write_all(&byte).expect("there is room"),
                    _ => {}
                }
            }
        });
        listens.recv().expect("it listens");
        let mut client = TcpStream::connect_on(&left, right(7)).expect("somebody listens");
        for round in 0..50 {
            client.write_all(&[round]).expect("open");
            let mut byte = [0];
            client.read_exact(&mut byte).expect("an answer");
            assert_eq!(byte, [round]);
        }
        client.shutdown(std::net::Shutdown::Write).expect("open");
        // Its end is the client's: without turns of ours the FIN would be the last to leave.
        while !server.is_finished() {
            left.turn();
        }
        server.join().expect("no panic");
    });
}
