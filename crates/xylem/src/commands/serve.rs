//! `xylem serve`: small services on Xylem's own TCP and UDP over a TAP or packet sockets on an interface. One thread takes the stack's turns and serves
//! every client; it sleeps on the device, or with `--spin` never. What really runs stands in the line that says `ready`.

pub mod addressed;
pub mod device;
pub mod wish;

use crate::cli::{Ending, complain, note, say};
use crate::net::xylem::{Idle, Xylem};
use crate::services::{Limits, Server, Stop};
use crate::{catalogue, graphs};
use addressed::Addresses;
use clap::Args;
use device::{Ground, Kind};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wish::Wish;
use xylem_graph::file::{self, Graph};
use xylem_host::pin;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_wire::{Cidr, EthernetAddress};

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
        curl http://10.0.0.2/\n  \
        xylem serve --device packet:veth0 --address 10.0.0.2/24 echo@7    on an interface that is there; its peers\n                                                are at its other end, and the kernel has no\n                                                such address\n\n\
        Without root it runs in a user namespace of its own and says how to reach it there."
)]
pub struct ServeCommand {
    /// The device. tap:NAME: a TAP that is there is used as it is, otherwise one is made and brought up. packet:INTERFACE:
    /// packet sockets on an interface that is there
    #[arg(long, value_name = "KIND:NAME")]
    device: String,
    /// Packet sockets on the interface, each with a queue of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    queues: usize,
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
        let ground = Ground::find(&self.device, self.mtu, self.queues).map_err(one)?;
        let graph = self.graph(&ground)?;
        let address = addressed::address_of(&graph)
            .ok_or_else(|| one("address: expected one, got none; say --address 10.0.0.2/24".into()))?;
        let facts = (ground.kind, ground.name.clone(), ground.made, ground.mtu);
        let (device, notes) = ground.device(address, hardware_of(&graph)).map_err(one)?;
        let choices = (graph.demux.value.to_string(), graph.data.value.to_string());
        let stack = Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).shell(Shell::Inline);
        let stack = stack.build().map_err(|error| one(error.to_string()))?;
        let mut server = self.server(&stack, &wishes, address).map_err(one)?;
        let stop = server.stop().map_err(|error| one(format!("start to serve: {error}")))?;
        stop_on_signals(stop).map_err(|error| one(format!("wait for signals: {error}")))?;

        let (kind, device, made, mtu) = facts;
        let (demux, data) = choices;
        let ran = Ran { address, kind, device, made, mtu, demux, data, spin: self.spin, notes };
        say(if self.json { ran.json(&wishes) } else { ran.line(&wishes) });
        server.run().map_err(|error| one(format!("serve: {error}")))?;
        // Connections close in order, as far as their peers still listen.
        drop(server);
        stack.drain(DRAIN_TIME_MAX);
        for (reason, count) in stack.device(0).map(|device| device.drops()).unwrap_or_default() {
            if count > 0 {
                note(format!("lost on the way in: {count} frames: {reason}\n"));
            }
        }
        Ok(())
    }

    /// The graph with what the command line says.
    fn graph(&self, ground: &Ground) -> Result<Graph, Vec<String>> {
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
        let mtu = match self.mtu {
            Some(mtu) => Some(usize::from(mtu)),
            None => (!is_file).then_some(ground.mtu),
        };
        let interface = Some(ground.name.clone());
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
    kind: Kind,
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
            "ready: {} on {} by {} {} (mtu {}, placement app, demux {}, data {}, shell inline: {})",
            wishes.join(" "),
            self.address,
            self.kind.word(),
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
            "device": { "kind": self.kind.word(), "name": self.device, "made": self.made, "mtu": self.mtu },
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

/// The link address that the graph says its only Ethernet has.
fn hardware_of(graph: &Graph) -> Option<[u8; 6]> {
    let mut nodes = graph.nodes.iter().filter(|node| &*node.protocol.value == "ethernet");
    let said = nodes.next()?.option("address")?;
    said.text().and_then(|text| text.parse::<EthernetAddress>().ok()).map(|address| address.0)
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
