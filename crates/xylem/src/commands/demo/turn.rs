//! A turn: one contestant's place, server and client, and the work done there. Both contestants have the same server
//! code, client, files, processors and congestion control; what differs is said in [`Ran`].

use super::cable::Cable;
use super::content::{Content, Shelf};
use super::mill::Milled;
use super::parallel::Parallel;
use super::serving::{Serving, Share};
use super::work::{Client, Home, Tool, Transfer};
use crate::catalogue;
use crate::commands::interruption::Interruption;
use crate::commands::serve::addressed::{self, Addresses};
use crate::place::{self, CLIENT, PREFIX_BITS, Processors, SERVER};
use serde_json::{Value as Json, json};
use std::io;
use std::sync::Arc;
use xylem_graph::file::Graph;
use xylem_graph::link::LinkModel;
use xylem_host::device::{Device, Impaired, PacketDevice, TapDevice, WireDevice};
use xylem_host::namespace::Namespace;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_wire::Cidr;

/// What everybody works with.
pub struct Common {
    /// Xylem's graph.
    pub graph: Graph,
    /// Where both ends run.
    pub processors: Processors,
    /// How files are transferred.
    pub tool: Tool,
    /// Memory for what is fetched.
    pub room: Content,
    /// The files.
    pub shelf: Arc<Shelf>,
    /// Whether the user has had enough.
    pub interruption: Interruption,
    /// The seed of the links.
    pub seed: u64,
}

/// What really ran, for the report.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Whose TCP the server used.
    pub stack: &'static str,
    /// The device between the two ends.
    pub device: String,
    /// Placement, demux, data and shell.
    pub mode: String,
    /// What the server's end of TCP controls congestion with.
    pub congestion: String,
    /// The impairments, if there are any.
    pub link: Option<String>,
    /// Who was the client.
    pub client: String,
}

impl Ran {
    /// As JSON.
    pub fn json(&self) -> Json {
        json!({
            "stack": self.stack,
            "device": self.device,
            "mode": self.mode,
            "congestion": self.congestion,
            "link": self.link,
            "client": self.client,
        })
    }
}

/// A contestant with its place.
pub struct Turn<'a> {
    common: &'a Common,
    /// What really runs.
    pub ran: Ran,
    /// Before the place: the server stops first.
    serving: Serving,
    end: End,
    _cable: Option<Cable>,
    /// Xylem's own.
    stack: Option<Stack>,
}

/// Where the client lives.
enum End {
    Kernel(Namespace),
    Xylem(Stack),
}

/// The result of one transfer, and what the server's thread had of the processor meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The transfer.
    pub transfer: Transfer,
    /// The server's thread.
    pub server: Share,
}

impl<'a> Turn<'a> {
    /// Xylem's turn: over a TAP, with the link model between TAP and stack if there is one.
    ///
    /// # Errors
    /// There is no TAP for this process, or the graph does not fit.
    pub fn of_xylem(common: &'a Common, link: Option<&LinkModel>) -> io::Result<Turn<'a>> {
        let namespace = place::namespace(CONGESTION)?;
        let tap = place::tap(&namespace, CLIENT, link.is_none())?;
        let device = TapDevice::new(tap).map_err(io::Error::other)?;
        let name = if link.is_none() { "tap" } else { "tap, offloads off" };
        Turn::of_xylem_on(common, link, Box::new(device), name, namespace)
    }

    /// Xylem's turn over packet sockets at the other end of the client's cable: what is left where there is no TAP.
    ///
    /// # Errors
    /// This process may not have namespaces, veths or packet sockets, or the graph does not fit.
    pub fn of_xylem_by_packet(common: &'a Common, link: Option<&LinkModel>) -> io::Result<Turn<'a>> {
        let (client, server) = (place::namespace(CONGESTION)?, place::namespace(CONGESTION)?);
        let device = PacketDevice::new(place::packet(&client, &server)?).map_err(io::Error::other)?;
        let (device, name) =
            if link.is_none() { (device, "packet") } else { (device.without_offloads(), "packet, offloads off") };
        Turn::of_xylem_on(common, link, Box::new(device), name, client)
    }

    fn of_xylem_on(
        common: &'a Common,
        link: Option<&LinkModel>,
        device: Box<dyn Device>,
        name: &str,
        client: Namespace,
    ) -> io::Result<Turn<'a>> {
        let builder = Stack::builder().catalogue(catalogue::builtin()).shell(Shell::Inline);
        let graph = xylem_graph(common, SERVER)?;
        let builder = match link {
            None => builder.device(device),
            Some(model) => builder.device(Impaired::new(device, model, common.seed).map_err(io::Error::other)?),
        };
        let mode = mode(&graph, "inline, sleeping on the device");
        let stack = builder.graph(graph).build().map_err(io::Error::other)?;
        let serving = Serving::on_xylem(stack.clone(), Arc::clone(&common.shelf), common.processors.server)?;
        let ran = Ran {
            stack: "xylem",
            device: name.into(),
            mode,
            congestion: CONGESTION.into(),
            link: link.map(LinkModel::to_string),
            client: common.tool.name().into(),
        };
        Ok(Turn { common, ran, serving, end: End::Kernel(client), _cable: None, stack: Some(stack) })
    }

    /// Xylem at both ends of an in-process wire: what is left where there is neither a TAP nor
    /// a packet socket.
    ///
    /// # Errors
    /// The graph does not fit.
    pub fn of_xylem_alone(common: &'a Common, link: Option<&LinkModel>) -> io::Result<Turn<'a>> {
        let (one, other) = WireDevice::pair();
        // The wire has no descriptor to sleep on, so each stack has a thread that its neighbour wakes.
        let builder = || Stack::builder().catalogue(catalogue::builtin()).shell(Shell::Thread);
        let graph = xylem_graph(common, SERVER)?;
        let mode = mode(&graph, "a thread of each stack's own, not pinned");
        let server = match link {
            None => builder().device(one),
            Some(model) => {
                let device = Impaired::new(one.without_offloads(), model, common.seed);
                builder().device(device.map_err(io::Error::other)?)
            }
        };
        let other = if link.is_none() { other } else { other.without_offloads() };
        let stack = server.graph(graph).build().map_err(io::Error::other)?;
        let client = builder().device(other).graph(xylem_graph(common, CLIENT)?).build().map_err(io::Error::other)?;
        let serving = Serving::on_xylem(stack.clone(), Arc::clone(&common.shelf), common.processors.server)?;
        let ran = Ran {
            stack: "xylem",
            device: "wire".into(),
            mode,
            congestion: CONGESTION.into(),
            link: link.map(LinkModel::to_string),
            client: "built-in, on Xylem".into(),
        };
        Ok(Turn { common, ran, serving, end: End::Xylem(client), _cable: None, stack: Some(stack) })
    }

    /// The kernel's turn: over a veth pair, or over an impaired cable between two TAPs.
    ///
    /// # Errors
    /// There are no namespaces, veths or TAPs for this process.
    pub fn of_kernel(common: &'a Common, congestion: &str, link: Option<&LinkModel>) -> io::Result<Turn<'a>> {
        let (client, server) = (place::namespace(CONGESTION)?, place::namespace(CONGESTION)?);
        let cable = match link {
            None => {
                place::veth(&client, &server)?;
                None
            }
            Some(model) => Some(Cable::between(&client, &server, model, common.seed, common.processors.server)?),
        };
        let serving = Serving::on_kernel(server, congestion, Arc::clone(&common.shelf), common.processors.server)?;
        let ran = Ran {
            stack: "kernel",
            device: if link.is_none() { "veth" } else { "tap to tap, offloads off" }.into(),
            mode: "the kernel's sockets, one thread and one epoll".into(),
            congestion: congestion.into(),
            link: link.map(LinkModel::to_string),
            client: common.tool.name().into(),
        };
        Ok(Turn { common, ran, serving, end: End::Kernel(client), _cable: cable, stack: None })
    }

    /// Xylem's stack, in its turn.
    pub fn stack(&self) -> Option<&Stack> {
        self.stack.as_ref()
    }

    /// The client's namespace, if it lives in one.
    pub fn namespace(&self) -> Option<&Namespace> {
        match &self.end {
            End::Kernel(namespace) => Some(namespace),
            End::Xylem(_) => None,
        }
    }

    /// Fetches a file.
    ///
    /// # Errors
    /// The transfer failed, or the user has had enough.
    pub fn download(&self, name: &str, expected: &Content) -> io::Result<Measured> {
        self.measured(|client| client.download(name, expected))
    }

    /// Uploads a file.
    ///
    /// # Errors
    /// As [`download`](Turn::download).
    pub fn upload(&self, content: &Content) -> io::Result<Measured> {
        self.measured(|client| client.upload(content, &self.common.shelf))
    }

    /// Makes many small requests at once: how it went, and what the server's thread had of the processor.
    ///
    /// # Errors
    /// As [`download`](Turn::download).
    pub fn requests(&self, name: &str, content: &Content, count: usize, wide: usize) -> io::Result<(Milled, Share)> {
        let before = self.serving.share();
        let milled = self.client().requests(name, content, count, wide)?;
        Ok((milled, self.serving.share() - before))
    }

    /// The same with the real curl; or why not.
    ///
    /// # Errors
    /// As [`download`](Turn::download).
    pub fn requests_by_curl(
        &self,
        name: &str,
        content: &Content,
        count: usize,
        wide: usize,
    ) -> io::Result<Result<(Parallel, Share), String>> {
        let before = self.serving.share();
        let made = self.client().requests_by_curl(name, content, count, wide)?;
        Ok(made.map(|parallel| (parallel, self.serving.share() - before)))
    }

    fn measured(&self, work: impl FnOnce(&Client<'_>) -> io::Result<Transfer>) -> io::Result<Measured> {
        let before = self.serving.share();
        let transfer = work(&self.client())?;
        Ok(Measured { transfer, server: self.serving.share() - before })
    }

    fn client(&self) -> Client<'_> {
        Client {
            home: match &self.end {
                End::Kernel(namespace) => Home::Kernel(namespace),
                End::Xylem(stack) => Home::Xylem(stack),
            },
            tool: &self.common.tool,
            processors: self.common.processors,
            interruption: &self.common.interruption,
            room: &self.common.room,
        }
    }
}

/// What all clients, and all servers but the kernel's in the extra column, control congestion with.
pub const CONGESTION: &str = "reno";

/// The graph with the address of one end.
fn xylem_graph(common: &Common, address: std::net::Ipv4Addr) -> io::Result<Graph> {
    let mut graph = common.graph.clone();
    let address = Cidr::new(address, PREFIX_BITS).map_err(|error| io::Error::other(error.to_string()))?;
    let addresses = Addresses {
        address: Some(address),
        mtu: Some(1500),
        interface: Some("xylem0".into()),
        congestion: Some(CONGESTION),
        gateway: None,
    };
    addressed::say(&mut graph, &addresses).map_err(io::Error::other)?;
    Ok(graph)
}

fn mode(graph: &Graph, shell: &str) -> String {
    format!("placement app, demux {}, data {}, shell {shell}", graph.demux.value, graph.data.value)
}
