//! Where a transfer over the long link takes place: a namespace for each end, joined by two veth pairs to a third one in
//! which a carrier of this process takes frames from the one to the other, by the simulator's model of a link. It says how
//! much of a processor it took, second by second: a link without processor enough has not done what its model says.

use super::super::order::{CLIENT, SERVER};
use super::cell::Cell;
use super::order::{BUFFER_BYTES, Side};
use crate::place::{self, failed};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use xylem_host::carrier::{Carrier, WayCounters};
use xylem_host::interface::Interface;
use xylem_host::namespace::Namespace;
use xylem_host::packet::{PacketOptions, PacketSocket};
use xylem_host::{pin, veth};

/// What every namespace of an end is set to, in equal shares with Xylem's graph: buffers that may grow as far, and nothing
/// remembered of earlier connections, as Xylem remembers nothing.
pub const TUNING: [(&str, &str); 4] = [
    ("tcp_rmem", "4096 131072 33554432"),
    ("tcp_wmem", "4096 65536 33554432"),
    ("tcp_no_metrics_save", "1"),
    ("ip_local_port_range", "1024 65535"),
];
const _: () = assert!(BUFFER_BYTES == 33_554_432, "the kernel's buffers grow as far as Xylem's");

/// What the interfaces of the ends are called, and those of the carrier.
const END: &str = "xylem0";
const CARRIED: [&str; 2] = ["left", "right"];

/// How long a new cable may take until it carries frames.
const RUNNING_TIME_MAX: Duration = Duration::from_secs(10);

/// How long the link's processor share is averaged.
const SHARE_SPAN: Duration = Duration::from_secs(1);

/// Two ends and the link between them.
pub struct Place {
    sender: Namespace,
    receiver: Namespace,
    /// The carrier's interfaces go with it.
    _middle: Namespace,
    stop: Arc<AtomicBool>,
    carrier: Option<JoinHandle<io::Result<Carried>>>,
}

/// What the link did and what it cost.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// From the sender to the receiver, and back.
    pub ways: [WayCounters; 2],
    /// The largest share of a processor that it took in any second, in thousandths.
    pub per_mille_max: u64,
}

impl Place {
    /// Makes it, with `xylem` at that end: its interface then has no address of the kernel's.
    ///
    /// # Errors
    /// This process may not make namespaces, veth pairs or packet sockets.
    pub fn make(cell: &Cell, seed: u64, xylem: Option<Side>) -> io::Result<Place> {
        let namespace = || Namespace::create().map_err(|error| failed("make a namespace")(&error));
        let (sender, receiver, middle) = (namespace()?, namespace()?, namespace()?);
        let mut ends = Vec::new();
        for (side, own, address, carried) in
            [(Side::Sender, &sender, SERVER, CARRIED[0]), (Side::Receiver, &receiver, CLIENT, CARRIED[1])]
        {
            for (name, value) in TUNING {
                place::set(own, name, value)?;
            }
            let (end, middle_end) = veth::join((own, END), (&middle, carried)).map_err(io::Error::other)?;
            let text = |error| failed("set up veth")(&error);
            if xylem != Some(side) {
                end.add_address(IpAddr::V4(address), place::PREFIX_BITS).map_err(text)?;
            }
            end.set_up(true).map_err(text)?;
            middle_end.set_up(true).map_err(text)?;
            ends.extend([end, middle_end]);
        }
        running(&ends)?;
        let open = |name: &'static str| {
            let opened = middle.enter(|| PacketSocket::open(name, PacketOptions::default()));
            opened.map_err(|error| failed("enter a namespace")(&error))?.map_err(io::Error::other)
        };
        let link = cell.link();
        let sockets = [open(CARRIED[0])?, open(CARRIED[1])?];
        let carrier = Carrier::new(sockets, [&link, &link], seed, false).map_err(io::Error::other)?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let carrier = std::thread::spawn(move || carry(carrier, &told));
        Ok(Place { sender, receiver, _middle: middle, stop, carrier: Some(carrier) })
    }

    /// The namespace of an end.
    pub fn of(&self, side: Side) -> &Namespace {
        match side {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        }
    }

    /// Ends the link, and says what it did.
    ///
    /// # Errors
    /// It could not wait for frames.
    pub fn finish(mut self) -> io::Result<Carried> {
        self.stop.store(true, Ordering::Relaxed);
        let carrier = self.carrier.take().ok_or_else(|| io::Error::other("the link has ended already"))?;
        carrier.join().map_err(|_| io::Error::other("the link's thread panicked"))?
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(carrier) = self.carrier.take() {
            // Whoever wants to know how it went calls `finish`.
            let _ = carrier.join();
        }
    }
}

fn running(ends: &[Interface]) -> io::Result<()> {
    for end in ends {
        if !end.wait_until_running(RUNNING_TIME_MAX).map_err(io::Error::other)? {
            return Err(io::Error::other(format!("`{}` is up and does not carry frames", end.name())));
        }
    }
    Ok(())
}

fn carry(mut carrier: Carrier, stop: &AtomicBool) -> io::Result<Carried> {
    // Refused for an ordinary user; then the link is late more often, and its report says so.
    let _ = pin::raise_priority();
    let mut per_mille_max = 0;
    while !stop.load(Ordering::Relaxed) {
        let before = carrier.cost();
        carrier.carry(SHARE_SPAN, || stop.load(Ordering::Relaxed))?;
        let after = carrier.cost();
        let (wall, worked) = (after.wall - before.wall, after.processor - before.processor);
        // The last span may be too short to say anything.
        if wall >= SHARE_SPAN / 2 {
            per_mille_max = per_mille_max.max((worked.as_nanos() * 1000 / wall.as_nanos().max(1)) as u64);
        }
    }
    Ok(Carried { ways: carrier.counters(), per_mille_max })
}
