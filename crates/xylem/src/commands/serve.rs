//! `xylem serve`: small services on Xylem's own TCP and UDP over a TAP. One thread takes the stack's turns and serves
//! every client; it sleeps on the device, or with `--spin` never. What really runs stands in the line that says `ready`.

pub mod addressed;
pub mod wish;

use crate::cli::{Ending, complain, note, say};
use crate::net::xylem::{Idle, Xylem};
use crate::services::{Limits, Server, Stop};
use crate::{catalogue, graphs};
use addressed::Addresses;
use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wish::Wish;
use xylem_graph::file::{self, Graph};
use xylem_host::device::TapDevice;
use xylem_host::interface::Interface;
use xylem_host::pin;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};
use xylem_wire::Cidr;

/// How long what is unsent may take to leave when the program is told to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_millis(300);

/// See the module's text.
#[derive(Debug, Args)]
#[command(
    after_help = "Services: echo (TCP and UDP), discard, daytime, chargen, iperf3, http=DIR (files below DIR, read only),\n\
        http+put=DIR (takes uploads too). The last @ comes before the port.\n\n\
        Examples:\n  \
        xylem serve --device tap:xylem0 --address 10.0.0.2/24 echo@7 http=/srv/www@80\n  \
        ip address add 10.0.0.1/24 dev xylem0         the kernel's side, in another terminal\n  \
        curl http://10.0.0.2/"
)]
pub struct ServeCommand {
    /// The device, as tap:NAME: a TAP that is there is used as it is, otherwise one is made and brought up
    #[arg(long, value_name = "tap:NAME")]
    device: String,
    /// The address of Xylem's side and the bits of its network, as 10.0.0.2/24 (default: the graph file's)
    #[arg(long, value_name = "CIDR")]
    address: Option<String>,
    /// The router for everything beyond that network
    #[arg(long, value_name = "ADDR")]
    gateway: Option<Ipv4Addr>,
    /// A graph file, or the name of a graph that comes with Xylem
    #[arg(long, value_name = "FILE", default_value = "host")]
    graph: String,
    /// The largest IP packet in bytes (default: the device's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(68..))]
    mtu: Option<u16>,
    /// Never sleep: the lowest latency, for a processor
    #[arg(long)]
    spin: bool,
    /// Say what runs as a JSON object instead of a line
    #[arg(long)]
    json: bool,
    /// What to serve, as SERVICE@PORT
    #[arg(required = true, value_name = "SERVICE@PORT")]
    services: Vec<String>,
}

impl ServeCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        match self.serve() {
            Ok(()) => Ending::Right,
            Err(wrong) => {
                wrong.iter().for_each(complain);
                Ending::Unasked
            }
        }
    }

    fn serve(&self) -> Result<(), Vec<String>> {
        let one = |error: String| vec![error];
        let wishes = Wish::read_all(&self.services)?;
        let (device, made) = self.open_tap().map_err(one)?;
        let graph = self.graph(&device)?;
        let address = addressed::address_of(&graph)
            .ok_or_else(|| one("address: expected one, got none; say --address 10.0.0.2/24".into()))?;
        let facts = (device.tap().name(), device.tap().notes().to_vec());
        let up = device.tap().kernel_side().is_up().unwrap_or(true);
        let mtu = device.tap().mtu().unwrap_or_default();
        let choices = (graph.demux.value.to_string(), graph.data.value.to_string());
        let stack = Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).shell(Shell::Inline);
        let stack = stack.build().map_err(|error| one(error.to_string()))?;
        let mut server = self.server(&stack, &wishes, address).map_err(one)?;
        let stop = server.stop().map_err(|error| one(format!("start to serve: {error}")))?;
        stop_on_signals(stop).map_err(|error| one(format!("wait for signals: {error}")))?;

        let (name, mut notes) = facts;
        if made {
            let mend = format!(
                "{name} was made here and is up; give the kernel's side an address of its own: \
                ip address add {} dev {name}",
                neighbour_of(address)
            );
            notes.push(mend);
        } else if !up {
            notes.push(format!("{name} is down: ip link set {name} up"));
        }
        let ran = Ran { address, device: name, made, mtu, demux: choices.0, data: choices.1, spin: self.spin, notes };
        say(if self.json { ran.json(&wishes) } else { ran.line(&wishes) });
        server.run().map_err(|error| one(format!("serve: {error}")))?;
        // Connections close in order, as far as their peers still listen.
        drop(server);
        stack.drain(DRAIN_TIME_MAX);
        Ok(())
    }

    /// Opens the TAP; true if it was not there before.
    fn open_tap(&self) -> Result<(TapDevice, bool), String> {
        let name = match self.device.split_once(':') {
            Some(("tap", name)) if !name.is_empty() => name,
            _ => return Err(format!("--device: expected tap:NAME, got `{}`; write --device tap:xylem0", self.device)),
        };
        let made = Interface::open(name).is_err();
        let tap = Tap::open(name, TapOptions::default()).map_err(|error| error.to_string())?;
        if made {
            let side = tap.kernel_side();
            let mtu = self.mtu.map_or(Ok(()), |mtu| side.set_mtu(usize::from(mtu)));
            mtu.and_then(|()| side.set_up(true)).map_err(|error| error.to_string())?;
        }
        let device = TapDevice::new(tap).map_err(|error| error.to_string())?;
        Ok((device, made))
    }

    /// The graph with what the command line says.
    fn graph(&self, device: &TapDevice) -> Result<Graph, Vec<String>> {
        let one = |error: String| vec![error];
        let text = graphs::read(&self.graph).map_err(|error| one(error.to_string()))?;
        let catalogue = catalogue::builtin();
        let problems = |problems: Vec<file::Problem>| one(file::report(&self.graph, &problems).trim_end().into());
        let mut graph = file::load(&text, &catalogue).map_err(problems)?;
        // The address of a graph that comes with Xylem is an example's; taking it unsaid would surprise.
        let is_file = graphs::text(&self.graph).is_none();
        let address = match &self.address {
            Some(text) => Some(text.parse::<Cidr>().map_err(|error| {
                one(format!(
                    "--address: expected an address and its network's bits such as 10.0.0.2/24, got `{text}`: {error}"
                ))
            })?),
            None if is_file => None,
            None => return Err(one("--address: expected one, got none; say --address 10.0.0.2/24".into())),
        };
        let mtu = match (self.mtu, device.tap().mtu()) {
            (Some(mtu), _) => Some(usize::from(mtu)),
            (None, Ok(mtu)) if !is_file => Some(mtu),
            (None, _) => None,
        };
        let interface = Some(device.tap().name());
        addressed::say(&mut graph, &Addresses { address, gateway: self.gateway, mtu, interface, congestion: None })
            .map_err(one)?;
        match file::check(&graph, &catalogue) {
            wrong if wrong.is_empty() => Ok(graph),
            wrong => Err(problems(wrong)),
        }
    }

    fn server(&self, stack: &Stack, wishes: &[Wish], address: Cidr) -> Result<Server<Xylem>, String> {
        let idle = if self.spin { Idle::Spin } else { Idle::Sleep };
        if self.spin {
            note(format!("spinning: {}\n", pin::raise_priority()));
        }
        let net = Xylem::new(stack, idle).map_err(|error| format!("start to serve: {error}"))?;
        let mut server = Server::new(net, Limits::default());
        for wish in wishes {
            let at = SocketAddr::new(address.address(), wish.port);
            let refused = |error| format!("service `{wish}` at {at}: {error}");
            server.offer(at, wish.service.clone()).map_err(refused)?;
            if let Some(datagrams) = &wish.datagrams {
                server.offer_datagrams(at, datagrams.clone()).map_err(refused)?;
            }
        }
        Ok(server)
    }
}

/// What really runs.
struct Ran {
    address: Cidr,
    device: String,
    made: bool,
    mtu: usize,
    demux: String,
    data: String,
    spin: bool,
    notes: Vec<String>,
}

impl Ran {
    fn idle(&self) -> &'static str {
        if self.spin { "spins" } else { "sleeps on the device" }
    }

    fn line(&self, wishes: &[Wish]) -> String {
        let wishes: Vec<String> = wishes.iter().map(Wish::to_string).collect();
        let mut line = format!(
            "ready: {} on {} by tap {} (mtu {}, placement app, demux {}, data {}, shell inline: {})",
            wishes.join(" "),
            self.address,
            self.device,
            self.mtu,
            self.demux,
            self.data,
            self.idle()
        );
        for note in &self.notes {
            line.push_str("; ");
            line.push_str(note);
        }
        line.push('\n');
        line
    }

    fn json(&self, wishes: &[Wish]) -> String {
        let services: Vec<_> = wishes.iter().map(|wish| json!({ "service": wish.what, "port": wish.port })).collect();
        let ran = json!({
            "ready": true,
            "services": services,
            "address": self.address.to_string(),
            "device": { "kind": "tap", "name": self.device, "made": self.made, "mtu": self.mtu },
            "placement": "app",
            "demux": self.demux,
            "data": self.data,
            "shell": "inline",
            "spin": self.spin,
            "notes": self.notes,
        });
        format!("{ran}\n")
    }
}

/// An address for the kernel's side: the first host of the network that is not ours.
fn neighbour_of(ours: Cidr) -> String {
    let IpAddr::V4(network) = ours.network().address() else { return "ADDRESS/BITS".into() };
    let first = Ipv4Addr::from_bits(network.to_bits().wrapping_add(1));
    let other = if IpAddr::V4(first) == ours.address() { first.to_bits().wrapping_add(1) } else { first.to_bits() };
    format!("{}/{}", Ipv4Addr::from_bits(other), ours.prefix())
}

/// SIGTERM and SIGINT stop the server, in order.
fn stop_on_signals(stop: Stop) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    let wait = move || {
        if signals.forever().next().is_some() {
            stop.stop();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(|_| ())
}
