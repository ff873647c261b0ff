//! The server of a turn: the same services and the same loop over either network, in a thread of its own on the server's
//! processor. What the thread costs is read from the kernel's scheduler, to the nanosecond.

use super::content::Shelf;
use crate::http::Http;
use crate::net::Net;
use crate::net::kernel::Kernel;
use crate::net::xylem::{Idle, Xylem};
use crate::place::{failed, server_at};
use crate::services::{Limits, Server, Stop};
use std::io;
use std::ops::Sub;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use xylem_host::namespace::Namespace;
use xylem_host::pin;
use xylem_host::stack::Stack;

/// A running server; dropped, it stops.
pub struct Serving {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    task: i32,
}

impl Serving {
    /// The server on the kernel's sockets in `namespace`.
    ///
    /// # Errors
    /// It could not start.
    pub fn on_kernel(
        namespace: Namespace,
        congestion: &str,
        shelf: Arc<Shelf>,
        cpu: Option<usize>,
    ) -> io::Result<Serving> {
        let congestion = congestion.to_owned();
        let make = move || {
            let make = || {
                let mut kernel = Kernel::new()?;
                kernel.set_congestion(&congestion);
                server(kernel, shelf)
            };
            namespace.enter(make).map_err(|error| failed("enter the server's namespace")(&error))?
        };
        Serving::start(make, cpu)
    }

    /// The server on Xylem's sockets on `stack`.
    ///
    /// # Errors
    /// It could not start.
    pub fn on_xylem(stack: Stack, shelf: Arc<Shelf>, cpu: Option<usize>) -> io::Result<Serving> {
        Serving::start(move || server(Xylem::new(&stack, Idle::Sleep)?, shelf), cpu)
    }

    fn start<N: Net>(
        make: impl FnOnce() -> io::Result<Server<N>> + Send + 'static,
        cpu: Option<usize>,
    ) -> io::Result<Serving> {
        let (tell, told) = mpsc::channel();
        let work = move || {
            let pinned = cpu.map_or(Ok(()), |cpu| pin::pin(cpu).map_err(|error| io::Error::other(error.to_string())));
            let made = pinned.and_then(|()| make()).and_then(|mut server| Ok((server.stop()?, server)));
            // Whoever started the thread waits for exactly one word; if it has gone there is nobody to serve.
            match made {
                Ok((stop, mut server)) => {
                    if tell.send(Ok((stop, rustix::thread::gettid().as_raw_nonzero().get()))).is_ok() {
                        // A network that has gone ends the server; the client's next step says so.
                        let _ = server.run();
                    }
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        };
        let thread = std::thread::Builder::new().name("server".into()).spawn(work)?;
        let gone = |_| io::Error::other("the server's thread ended before it began");
        let (stop, task) = told.recv().map_err(gone)??;
        Ok(Serving { stop, thread: Some(thread), task })
    }

    /// What its thread has had of the processor so far.
    pub fn share(&self) -> Share {
        let text = std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.task)).unwrap_or_default();
        let mut fields = text.split_whitespace().map(|field| Duration::from_nanos(field.parse().unwrap_or(0)));
        Share { ran: fields.next().unwrap_or_default(), waited: fields.next().unwrap_or_default() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // If it panicked the message has been printed, and the client saw a broken connection.
            let _ = thread.join();
        }
    }
}

/// What a thread has had of the processor; zero where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// It ran.
    pub ran: Duration,
    /// It could have run, but others had the processor.
    pub waited: Duration,
}

impl Sub for Share {
    type Output = Share;
    fn sub(self, earlier: Share) -> Share {
        Share { ran: self.ran.saturating_sub(earlier.ran), waited: self.waited.saturating_sub(earlier.waited) }
    }
}

fn server<N: Net>(net: N, shelf: Arc<Shelf>) -> io::Result<Server<N>> {
    let mut server = Server::new(net, Limits::default());
    server.offer(server_at(), Arc::new(Http::new(shelf)))?;
    Ok(server)
}
