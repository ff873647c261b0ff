//! One end of a churn, a process of its own: the kernel's server, or Xylem's client, beside which Xylem's server runs in
//! a second thread where both ends are Xylem's. The command `xylem bench churn` starts it.

use super::super::end::READY;
use super::super::idle::allow_files;
use super::client::{Client, Look};
use super::order::{Answer, CLIENT, Order, PREFIX_BITS, Peer, Side, ports, servers};
use super::server::serve;
use crate::cli::{Ending, complain, say};
use crate::commands::serve::addressed::{self, Addresses};
use crate::net::kernel::Kernel;
use crate::net::xylem::{Idle, Xylem};
use crate::{catalogue, place};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use xylem_graph::file;
use xylem_graph::instance::Limits;
use xylem_host::device::{Device, TapDevice, WireDevice};
use xylem_host::namespace::Namespace;
use xylem_host::pin;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_wire::Cidr;

/// Standing passive opens and more.
const ENABLES_MAX: usize = 256;

/// Does what the order says.
pub fn run(order: &str) -> Ending {
    let order: Order = match serde_json::from_str(order) {
        Ok(order) => order,
        Err(error) => {
            complain(format!(
                "expected an order of `xylem bench churn`, which starts its ends by itself, got: {error}"
            ));
            return Ending::Unasked;
        }
    };
    // As for the ends of the other measurements: a session of its own, so that the priority counts.
    let _ = rustix::process::setsid();
    let _ = pin::raise_priority();
    let answer = match (order.side, order.peer) {
        (Side::Server, _) => kernel_server(&order),
        (Side::Client, Peer::Kernel) => beside_the_kernel(&order),
        (Side::Client, Peer::Xylem) => among_ourselves(&order),
    };
    let answer = answer.unwrap_or_else(|error| Answer { error: Some(error.to_string()), ..Answer::default() });
    let ending = if answer.error.is_none() { Ending::Right } else { Ending::Unasked };
    // An answer is numbers and text, which JSON has.
    say(format!("{}\n", serde_json::to_string(&answer).expect("numbers and text")));
    ending
}

/// The kernel's server: it serves until it is ended.
fn kernel_server(order: &Order) -> io::Result<Answer> {
    allow_files(order.descriptors_max())?;
    // Everywhere, for the interface is made after this.
    let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, order.port));
    serve(&mut Kernel::new()?, &[at], || say(format!("{READY}\n")), || false)?;
    Ok(Answer::default())
}

/// Xylem's client on a TAP whose other side is the kernel's, with all the server's addresses.
fn beside_the_kernel(order: &Order) -> io::Result<Answer> {
    let here = Namespace::current().map_err(io::Error::other)?;
    let [first, others @ ..] = &servers()[..] else { return Err(io::Error::other("expected an address, got none")) };
    let tap = place::tap(&here, *first, true)?;
    for address in others {
        let added = tap.kernel_side().add_address(IpAddr::V4(*address), PREFIX_BITS);
        added.map_err(|error| place::failed("add an address")(&error))?;
    }
    let notes = tap.notes().to_vec();
    let stack = stack(order, CLIENT, TapDevice::new(tap).map_err(io::Error::other)?)?;
    Ok(Answer { notes, ..client(order, &stack)? })
}

/// Both ends in this process, each with a stack and a thread.
fn among_ourselves(order: &Order) -> io::Result<Answer> {
    let (one, other) = WireDevice::pair();
    let ends = Arc::new(AtomicBool::new(false));
    let (its, told) = (order.clone(), Arc::clone(&ends));
    let (tell, listens) = mpsc::channel();
    let server = thread::spawn(move || {
        let at = servers()[0];
        let stack = stack(&its, at, other)?;
        let at: Vec<SocketAddr> = ports().map(|port| SocketAddr::from((at, port))).collect();
        let mut net = Xylem::new(&stack, Idle::Sleep)?;
        // Nobody listens to it only if the client has failed.
        let ready = || {
            let _ = tell.send(());
        };
        serve(&mut net, &at, ready, || told.load(Ordering::Relaxed))
    });
    let answer = match listens.recv() {
        Ok(()) => stack(order, CLIENT, one).and_then(|stack| client(order, &stack)),
        // The server has failed, and says why.
        Err(_) => Ok(Answer::default()),
    };
    ends.store(true, Ordering::Relaxed);
    server.join().map_err(|_| io::Error::other("the server's thread panicked"))??;
    answer
}

fn client(order: &Order, stack: &Stack) -> io::Result<Answer> {
    let look = || {
        let (instance, (small, large)) = (stack.instance(), stack.reading().buffers_held);
        Look {
            time_waits: instance.lingering_count(),
            paths: instance.path_count().saturating_sub(instance.kept_path_count()),
            deadlines: instance.deadline_count(),
            buffers: small + large,
        }
    };
    let mut net = Xylem::new(stack, Idle::Sleep)?;
    Client::new(&mut net, order).run(order, look)
}

fn stack(order: &Order, own: Ipv4Addr, device: impl Device + 'static) -> io::Result<Stack> {
    let mut graph = file::load(&order.graph, &catalogue::builtin())
        .map_err(|problems| io::Error::other(file::report("the graph", &problems)))?;
    let address = Cidr::new(own, PREFIX_BITS).map_err(|error| io::Error::other(error.to_string()))?;
    addressed::say(&mut graph, &Addresses { address: Some(address), ..Addresses::default() })
        .map_err(io::Error::other)?;
    let limits = Limits { paths: order.connections_max(), enables: ENABLES_MAX, ..Limits::default() };
    let stack = Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).limits(limits);
    stack.shell(Shell::Inline).build().map_err(io::Error::other)
}
