//! A protocol of one's own, from its header to the wire: LETTER (`letter.rs`), composed by `letter.graph`, tried in the
//! simulator on a link that loses every third frame, and then run on TAP devices. docs/own-protocol.md walks through it.
//!
//! ```text
//! cargo run --example own-protocol
//! ```

mod letter;

use std::sync::Arc;
use xylem_core::{Duration, Part, Participants, PathId};
use xylem_graph::build::Catalogue;
use xylem_graph::file::{Graph, Value, parse, report};
use xylem_graph::instance::{Hosting, Work};
use xylem_host::device::{Device, Impaired, TapDevice, WireDevice};
use xylem_host::namespace::Namespace;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};
use xylem_sim::{End, Host, HostId, Listener, Sim};
use xylem_wire::Port;

/// What a link does that the letters must survive.
const LINK: &str = "loss=33% delay=5ms";
const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
const PORT: Port = Port(2000);
const COUNT: usize = 20;

/// Whatever may go wrong, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs it all and says how it went.
pub fn main() -> Result<(), Failure> {
    for node in ["udp", "letter"] {
        println!("{node:>6} in the simulator, {LINK}: {}", simulated(node, LINK, 3)?);
    }
    let (devices, carried): (Devices, _) = match taps() {
        Ok([one, other]) => ([Box::new(one), Box::new(other)], "two TAPs, Linux forwarding".to_owned()),
        Err(error) => {
            let (one, other) = WireDevice::pair();
            ([Box::new(one), Box::new(other)], format!("a wire in this process, as a TAP is not allowed ({error})"))
        }
    };
    println!("letter over {carried}, {LINK}: {}", real(devices)?);
    Ok(())
}

/// The protocols a graph may name: those that come with Xylem, and ours.
fn catalogue() -> Catalogue {
    let mut catalogue = xylem::catalogue::builtin();
    catalogue.register(letter::ENTRY);
    catalogue
}

fn graph(address: &str) -> Result<Graph, Failure> {
    let mut graph = parse(include_str!("letter.graph")).map_err(|problems| report("letter.graph", &problems))?;
    graph.set("ip", "address", Value::Text(format!("{address}/24")))?;
    Ok(graph)
}

/// Ready for whoever writes.
fn listen(host: &mut impl Hosting, node: &str) -> Result<Arc<Listener>, Failure> {
    let listener = Listener::new();
    host.enable(node, Participants::new([Part::Port(PORT)], []), listener.clone())?;
    Ok(listener)
}

/// A path to whoever listens on the other host.
fn open(host: &mut impl Hosting, node: &str) -> Result<(PathId, Arc<End>), Failure> {
    let (end, address) = (End::new(), ADDRESSES[1].parse()?);
    let path = host.open(node, Participants::internet((None, None), (address, PORT)), end.clone())?;
    Ok((path, end))
}

/// What has arrived, in words.
fn arrived(listener: &Listener) -> String {
    let ends = std::iter::from_fn(|| listener.accept());
    let texts = ends.flat_map(|accepted| std::mem::take(&mut accepted.end.state().arrived));
    let numbers: Vec<String> = texts.map(|text| String::from_utf8_lossy(&text.to_vec()).into_owned()).collect();
    format!("{} of {COUNT} arrived: {}", numbers.len(), numbers.join(" "))
}

/// Letters from one simulated host to another, on a link of this model.
pub fn simulated(node: &str, link: &str, seed: u64) -> Result<String, Failure> {
    let mut sim = Sim::new(seed);
    let hosts = [sim.seed_for(0), sim.seed_for(1)].into_iter().zip(ADDRESSES);
    for (seed, address) in hosts {
        sim.add(Host::of(address, &graph(address)?, &catalogue(), seed)?);
    }
    let [ann, bob] = [HostId(0), HostId(1)];
    sim.join((ann, 0), (bob, 0), &link.parse()?)?;
    let listener = listen(sim.host(bob), node)?;
    let (path, end) = open(sim.host(ann), node)?;
    for number in 0..COUNT {
        sim.host(ann).push(path, number.to_string().as_bytes());
        sim.pass(Duration::from_millis(100));
    }
    sim.host(ann).request(path, Work::Close);
    while !end.state().gone {
        sim.pass(Duration::from_millis(100));
    }
    Ok(arrived(&listener))
}

/// What joins two real hosts.
pub type Devices = [Box<dyn Device>; 2];

/// Letters from one stack to another, on real devices; the link of the first is as bad as the simulated one.
pub fn real([one, other]: Devices) -> Result<String, Failure> {
    let stack = |address: &str, device: Box<dyn Device>| -> Result<Stack, Failure> {
        Ok(Stack::builder().graph(graph(address)?).catalogue(catalogue()).device(device).build()?)
    };
    let impaired = Box::new(Impaired::new(one, &LINK.parse()?, 1)?);
    let (mut ann, mut bob) = (stack(ADDRESSES[0], impaired)?, stack(ADDRESSES[1], other)?);
    let listener = listen(&mut bob, "letter")?;
    let (path, end) = open(&mut ann, "letter")?;
    (0..COUNT).for_each(|number| ann.push(path, number.to_string().as_bytes()));
    ann.request(path, Work::Close);
    while !end.state().gone {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(arrived(&listener))
}

/// Two TAPs in a network namespace of their own, whose kernel forwards between them and answers ARP for the other side.
fn taps() -> Result<[TapDevice; 2], Failure> {
    let join = || -> Result<[Tap; 2], Failure> {
        for setting in ["conf/all/forwarding", "conf/all/proxy_arp"] {
            std::fs::write(format!("/proc/sys/net/ipv4/{setting}"), "1")?;
        }
        let tap = |at: usize| -> Result<Tap, Failure> {
            let tap = Tap::open(&format!("tap{at}"), TapOptions { offloads: false, ..TapOptions::default() })?;
            tap.kernel_side().set_up(true)?;
            tap.kernel_side().add_route(ADDRESSES[at].parse()?, 32, None)?;
            Ok(tap)
        };
        Ok([tap(0)?, tap(1)?])
    };
    let [one, other] = Namespace::create()?.enter(join)??;
    Ok([TapDevice::new(one)?, TapDevice::new(other)?])
}
