//! Xylem's own services on a stack of a test's, in a thread of their own: what `xylem serve` runs, without the program.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use xylem::commands::serve::wish::Wish;
use xylem::net::xylem::{Idle, Xylem};
use xylem::services::{Limits, Server, Stop};
use xylem_host::stack::Stack;

use super::place::XYLEM;

/// A running server; it ends with its value.
pub struct Serving {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves each of `wishes`, `SERVICE@PORT`.
    pub fn start(stack: &Stack, wishes: &[&str]) -> Serving {
        let net = Xylem::new(stack, Idle::Sleep).expect("a descriptor is free");
        let mut server = Server::new(net, Limits::default());
        for wish in wishes {
            let wish = Wish::read(wish).unwrap_or_else(|error| panic!("{error}"));
            let at = SocketAddr::from((XYLEM, wish.port));
            server.offer(at, wish.service).expect("the port is free");
            if let Some(datagrams) = wish.datagrams {
                server.offer_datagrams(at, datagrams).expect("the port is free");
            }
        }
        let stop = server.stop().expect("a descriptor is free");
        let thread = std::thread::spawn(move || server.run().expect("the stack stays"));
        Serving { stop, thread: Some(thread) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it is joined once").expect("the server does not panic");
        }
    }
}
