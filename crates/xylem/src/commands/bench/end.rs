//! One end of a measurement: a process that gets its order, takes its processor and its priority, opens its sockets or
//! its stack, does its part and answers. Hidden behind `xylem bench end`; the benchmark starts it.

use super::network::{Kernel, Network, Xylem};
use super::order::{Answer, CLIENT, Carrier, Order, Outcome, SERVER, Side, Sockets, Task, Turns, server_at};
use super::{connections, idle, round_trips, stream};
use crate::cli::{Ending, complain, say};
use crate::commands::serve::addressed::{self, Addresses};
use crate::{catalogue, place};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread;
use xylem_graph::file;
use xylem_host::device::{Device, PacketDevice, TapDevice, WireDevice};
use xylem_host::namespace::Namespace;
use xylem_host::pin;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_wire::Cidr;

/// What an end says when its server listens.
pub const READY: &str = "ready";

/// The processor time of an end, by its clock: its process's, or where both ends are threads of one process its thread's.
#[derive(Clone, Copy, Debug)]
pub struct Meter(pub ClockId);

impl Meter {
    /// User and system time so far, in seconds.
    pub fn read(self) -> f64 {
        let time = clock_gettime(self.0);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
}

/// Does what the order says.
pub fn run(order: &str) -> Ending {
    let order: Order = match serde_json::from_str(order) {
        Ok(order) => order,
        Err(error) => {
            complain(format!("expected an order of `xylem bench`, which starts its ends by itself, got: {error}"));
            return Ending::Unasked;
        }
    };
    // A session of its own, so that its priority is not weighed against the rest of this one; it fails only for a
    // process that leads one already.
    let _ = rustix::process::setsid();
    let tuned = pin::raise_priority().to_string();
    let mut answer = act(&order).unwrap_or_else(|error| Answer { error: Some(error.to_string()), ..Answer::default() });
    answer.tuned = tuned;
    let ending = if answer.error.is_none() { Ending::Right } else { Ending::Unasked };
    // An answer is numbers and text, which JSON has.
    say(format!("{}\n", serde_json::to_string(&answer).expect("numbers and text")));
    ending
}

fn act(order: &Order) -> io::Result<Answer> {
    let process = Meter(ClockId::ProcessCPUTime);
    let ready = || say(format!("{READY}\n"));
    match (&order.sockets, order.side) {
        (Sockets::Kernel, side) => {
            settle_on(order.processors[usize::from(side == Side::Server)])?;
            part(&Kernel { waiting: order.waiting }, order, side, process, ready)
        }
        (Sockets::Xylem { .. }, Side::Both) => both(order),
        (Sockets::Xylem { .. }, side) => {
            let mut notes = Vec::new();
            let network = xylem(order, side, |own| device(order, own, &mut notes))?;
            Ok(Answer { notes, ..part(&network, order, side, process, ready)? })
        }
    }
}

/// Both ends on an in-process wire, a thread each. If the client fails nobody joins the server, which may wait for it for
/// ever: the process ends with its answer.
fn both(order: &Order) -> io::Result<Answer> {
    let (one, other) = WireDevice::pair();
    let meter = Meter(ClockId::ThreadCPUTime);
    let (tell, told) = mpsc::channel();
    let its = order.clone();
    let server = thread::spawn(move || {
        let network = xylem(&its, Side::Server, |_| Ok(Box::new(other)))?;
        part(&network, &its, Side::Server, meter, || {
            // The client may have failed, and then nobody listens.
            let _ = tell.send(());
        })
    });
    let network = xylem(order, Side::Client, |_| Ok(Box::new(one)))?;
    // If the server failed the channel is closed; its error is the one to tell.
    let client = match told.recv() {
        Ok(()) => part(&network, order, Side::Client, meter, || {})?,
        Err(_) => Answer::default(),
    };
    let server = server.join().map_err(|_| io::Error::other("the server's thread panicked"))??;
    Ok(Answer { client: client.client, ..server })
}

/// The part of one side.
fn part<N: Network>(network: &N, order: &Order, side: Side, meter: Meter, ready: impl Fn()) -> io::Result<Answer> {
    if side == Side::Server {
        let listener = network.listen(server_at())?;
        ready();
        let outcome = serve(network, &listener, order, meter)?;
        drop(listener);
        network.settle();
        return Ok(Answer { server: Some(outcome), ..Answer::default() });
    }
    let outcome = match order.task {
        Task::Rr => round_trips::client(network, order, meter),
        Task::Stream => stream::client(network, order, meter),
        Task::Crr => connections::client(network, order, meter),
        Task::Idle => idle::client(network, order),
    }?;
    network.settle();
    Ok(Answer { client: Some(outcome), ..Answer::default() })
}

fn serve<N: Network>(network: &N, listener: &N::Listener, order: &Order, meter: Meter) -> io::Result<Outcome> {
    match order.task {
        Task::Rr => round_trips::server(network, listener, order, meter),
        Task::Stream => stream::server(network, listener, order, meter),
        Task::Crr => connections::server(network, listener, order, meter),
        Task::Idle => idle::server(network, listener, order),
    }
}

/// Puts the calling thread on its processor, if it has one.
fn settle_on(processor: Option<usize>) -> io::Result<()> {
    processor.map_or(Ok(()), |cpu| pin::pin(cpu).map_err(|error| io::Error::other(error.to_string())))
}

/// Xylem's sockets for one side, over the device that `open` makes.
fn xylem(order: &Order, side: Side, open: impl FnOnce(Ipv4Addr) -> io::Result<Box<dyn Device>>) -> io::Result<Xylem> {
    let Sockets::Xylem { turns, graph, .. } = &order.sockets else {
        return Err(io::Error::other("expected an order for Xylem's sockets, got one for the kernel's"));
    };
    let [client, server, third] = order.processors;
    let (own, processor) = if side == Side::Server { (SERVER, server) } else { (CLIENT, client) };
    let mut graph = file::load(graph, &catalogue::builtin())
        .map_err(|problems| io::Error::other(file::report("the graph", &problems)))?;
    let address = Cidr::new(own, place::PREFIX_BITS).map_err(|error| io::Error::other(error.to_string()))?;
    let addresses = Addresses { address: Some(address), mtu: Some(super::work::MTU), ..Addresses::default() };
    addressed::say(&mut graph, &addresses).map_err(io::Error::other)?;
    let shell = match turns {
        Turns::Inline => Shell::Inline,
        Turns::Thread => Shell::Thread,
        Turns::Spin => Shell::Spin,
    };
    let device = open(own)?;
    let catalogue = catalogue::builtin();
    let build = move || {
        // The stack's own thread inherits the processor of the thread that starts it.
        settle_on(if shell == Shell::Inline { None } else { third.or(processor) })?;
        let stack = Stack::builder().graph(graph).catalogue(catalogue).device(device).shell(shell);
        stack.build().map_err(io::Error::other)
    };
    let stack = thread::spawn(build).join().map_err(|_| io::Error::other("building the stack panicked"))??;
    // A stack's thread that never sleeps leaves its processor to nobody: without a third one the application runs
    // where the scheduler finds room.
    settle_on(if shell == Shell::Spin && third.is_none() { None } else { processor })?;
    Ok(Xylem { stack, waiting: order.waiting })
}

/// The device of an end in a namespace: the process runs in it already. What the device asked for and was not given is
/// added to `notes`.
fn device(order: &Order, own: Ipv4Addr, notes: &mut Vec<String>) -> io::Result<Box<dyn Device>> {
    let carrier = match &order.sockets {
        Sockets::Xylem { carrier, .. } => *carrier,
        Sockets::Kernel => return Err(io::Error::other("expected an order for Xylem's sockets, got the kernel's")),
    };
    let peer = if own == SERVER { CLIENT } else { SERVER };
    let here = || Namespace::current().map_err(io::Error::other);
    match carrier {
        Carrier::Tap => {
            let tap = place::tap(&here()?, peer, true)?;
            notes.extend_from_slice(tap.notes());
            Ok(Box::new(TapDevice::new(tap).map_err(io::Error::other)?))
        }
        Carrier::Packet => {
            let socket = place::packet_in(&here()?)?;
            notes.extend_from_slice(socket.notes());
            Ok(Box::new(PacketDevice::new(socket).map_err(io::Error::other)?))
        }
        Carrier::Wire => Err(io::Error::other("a wire has both its ends in one process: expected side both, got one")),
    }
}
