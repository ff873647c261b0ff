//! Where these tests take place: a namespace of their own with a cable in it, the kernel's sockets at one end and Xylem at
//! the other. What a cable is made of, how large its packets are and what is left to it are a [`Plan`]; the suites are
//! written over plans, so that another kind of device is one more row. Gone with the test.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use xylem::commands::serve::addressed::{self, Addresses};
use xylem::{catalogue, graphs};
use xylem_core::{Message, Pool};
use xylem_graph::file::{Graph, Value};
use xylem_graph::instance::DeviceFacts;
use xylem_graph::link::LinkModel;
use xylem_host::clock::Clock;
use xylem_host::device::{Alarm, Device, Impaired, PacketDevice, TapDevice};
use xylem_host::interface::Interface;
use xylem_host::namespace::{Level, Namespace, privilege};
use xylem_host::packet::{PacketOptions, PacketSocket};
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};
use xylem_host::veth;

pub const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
pub const XYLEM: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
/// An address of the same network that nobody has.
pub const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 77);

/// The MTUs of the matrix in bytes: the least that every host takes whole (RFC 1122, section 3.3.2), Ethernet's, and
/// what is called jumbo.
pub const MTUS: [usize; 3] = [576, 1500, 9000];

/// What a cable is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A TAP.
    Tap,
    /// A pair of joined interfaces, with packet sockets on the far one.
    Packet,
}

/// Every kind of cable there is.
pub const KINDS: [Kind; 2] = [Kind::Tap, Kind::Packet];

/// What a cable is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub kind: Kind,
    /// The largest IP packet in bytes.
    pub mtu: usize,
    /// Whether both ends may leave checksums and cutting to the cable. Without, every frame on it is complete.
    pub offloads: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { kind: Kind::Tap, mtu: 1500, offloads: true }
    }
}

impl Plan {
    /// Every kind of cable, with every MTU, with and without offloads.
    pub fn all() -> impl Iterator<Item = Plan> {
        let mtus = KINDS.into_iter().flat_map(|kind| MTUS.map(|mtu| (kind, mtu)));
        mtus.flat_map(|(kind, mtu)| [true, false].map(|offloads| Plan { kind, mtu, offloads }))
    }

    /// Whether it is the cable on which everything is tried; a sample is enough on the others.
    pub fn is_usual(self) -> bool {
        self == Plan::default()
    }

    /// The same without offloads: what a capture sees is what a wire would carry.
    pub fn whole(self) -> Plan {
        Plan { offloads: false, ..self }
    }
}

/// Says that a test did not run. Where CI is set that is a failure.
pub fn skipped(test: &str, reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{test} could not run: {reason}");
    // Past the harness, which swallows what passing tests print.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {reason}\n").as_bytes());
}

/// Whether cables can be laid here; says that the test is skipped if not.
pub fn can_run(test: &str) -> bool {
    let privilege = privilege();
    if privilege.level != Level::Root {
        skipped(test, &privilege.reason);
        return false;
    }
    let node = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = node {
        skipped(test, &format!("/dev/net/tun: {error}"));
        return false;
    }
    true
}

/// A cable whose one end the kernel has in `namespace`, with an address; the other is for Xylem.
pub struct Cable {
    pub namespace: Namespace,
    pub plan: Plan,
    device: Box<dyn Device>,
    name: &'static str,
}

impl Cable {
    /// Lays a cable in a namespace of its own, or says why the test cannot run here.
    pub fn lay(test: &str, plan: Plan) -> Option<Cable> {
        can_run(test)
            .then(|| Cable::lay_in(Namespace::create().expect("root makes namespaces"), plan, "xylem0", KERNEL))
    }

    /// Lays a cable in a namespace where there may be others; the kernel's interface gets this name and address.
    pub fn lay_in(namespace: Namespace, plan: Plan, name: &'static str, address: Ipv4Addr) -> Cable {
        let outside = Namespace::current().expect("/proc is mounted");
        namespace.enter(|| assert_apart(&outside)).expect("root enters");
        let device = match plan.kind {
            Kind::Tap => namespace.enter(|| tap(name, plan, address)).expect("root enters"),
            Kind::Packet => packet(&namespace, name, plan, address),
        };
        Cable { namespace, plan, device, name }
    }

    /// The kernel's end.
    pub fn kernel_side(&self) -> Interface {
        self.namespace.enter(|| Interface::open(self.name).expect("it was made")).expect("root enters")
    }

    /// Xylem's end, for a test that turns an instance itself, and the namespace.
    pub fn into_device(self) -> (Namespace, Box<dyn Device>) {
        (self.namespace, self.device)
    }

    /// Xylem on the cable, as the usual host.
    pub fn stack(self) -> (Namespace, Stack) {
        let graph = graph_for(self.plan.mtu);
        self.stack_of(graph)
    }

    /// Xylem on the cable, as a graph of the test's.
    pub fn stack_of(self, graph: Graph) -> (Namespace, Stack) {
        let stack = start(graph, self.device);
        (self.namespace, stack)
    }

    /// Xylem on the cable behind a link of this model, and what the links did.
    pub fn stack_behind(self, model: &str, seed: u64) -> (Namespace, Stack, Behind) {
        let model: LinkModel = model.parse().expect("a model");
        let graph = graph_for(self.plan.mtu);
        let impaired = Impaired::new(self.device, &model, seed).expect("within its limits");
        let behind = Behind(std::sync::Arc::new(impaired));
        (self.namespace, start(graph, behind.clone()), behind)
    }
}

/// The tests change interfaces, routes and settings of the namespace they are in: never of the machine's.
fn assert_apart(outside: &Namespace) {
    use std::os::fd::AsFd;
    let identity = |namespace: &Namespace| {
        let status = rustix::fs::fstat(namespace.as_fd()).expect("it is open");
        (status.st_dev, status.st_ino)
    };
    let inside = Namespace::current().expect("/proc is mounted");
    assert_ne!(identity(&inside), identity(outside), "this is not a namespace of the test's own");
}

/// A namespace with a TAP as it is, or `None` if the test cannot run here.
pub fn cable(test: &str, offloads: bool) -> Option<(Namespace, Tap)> {
    can_run(test).then(|| {
        let namespace = Namespace::create().expect("root makes namespaces");
        let tap = namespace.enter(|| open_tap("xylem0", Plan { offloads, ..Plan::default() }, KERNEL));
        (namespace, tap.expect("root enters"))
    })
}

/// The calling thread's TAP as a device.
fn tap(name: &str, plan: Plan, address: Ipv4Addr) -> Box<dyn Device> {
    let device = TapDevice::new(open_tap(name, plan, address)).expect("a descriptor");
    if plan.offloads { Box::new(device) } else { Box::new(Whole(device)) }
}

/// Packet sockets at the far end of a pair of joined interfaces, in a namespace that lives as long as they do.
fn packet(namespace: &Namespace, name: &str, plan: Plan, address: Ipv4Addr) -> Box<dyn Device> {
    let ours = Namespace::create().expect("root makes namespaces");
    let (far, near) = veth::join((namespace, name), (&ours, "xylem")).expect("root may");
    far.add_address(IpAddr::V4(address), 24).expect("root may");
    for end in [&far, &near] {
        end.set_mtu(plan.mtu).expect("joined interfaces take it");
        end.set_up(true).expect("root may");
    }
    for end in [&far, &near] {
        assert!(end.wait_until_running(Duration::from_secs(20)).expect("it is there"));
    }
    if !plan.offloads {
        // The kernel's end finishes its frames before they are on the cable.
        run(namespace, "ethtool", &["-K", name, "tx", "off"]);
    }
    let open = || PacketSocket::open("xylem", PacketOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let device = PacketDevice::new(ours.enter(open).expect("root enters")).expect("it is there");
    Box::new(if plan.offloads { device } else { device.without_offloads() })
}

/// A TAP in the calling thread's namespace, the kernel's side up and with an address.
fn open_tap(name: &str, plan: Plan, address: Ipv4Addr) -> Tap {
    let options = TapOptions { offloads: plan.offloads, ..TapOptions::default() };
    let tap = Tap::open(name, options).expect("root makes TAPs");
    tap.kernel_side().set_mtu(plan.mtu).expect("a TAP takes it");
    // A TAP that stayed when Xylem went has its address already.
    let up = tap.kernel_side().is_up().expect("it is there");
    if !up {
        tap.kernel_side().add_address(IpAddr::V4(address), 24).expect("root may");
        tap.kernel_side().set_up(true).expect("root may");
    }
    tap
}

/// The usual host's graph with the address of these tests, on a link of Ethernet's MTU.
pub fn graph() -> Graph {
    graph_for(Plan::default().mtu)
}

/// The usual host's graph with the address of these tests, on a link of this MTU.
pub fn graph_for(mtu: usize) -> Graph {
    let mut graph = graphs::builtin("host").expect("it comes with the program");
    let address = Some(format!("{XYLEM}/24").parse().expect("a network"));
    addressed::say(&mut graph, &Addresses { address, mtu: Some(mtu), ..Addresses::default() })
        .expect("one node of each");
    graph
}

/// The usual host's graph with other values for some options: `(node, option, value)`.
pub fn graph_with(mtu: usize, options: &[(&str, &str, Value)]) -> Graph {
    let mut graph = graph_for(mtu);
    for (node, option, value) in options {
        graph.set(node, option, value.clone()).expect("the node is there");
    }
    graph
}

/// A stack with a thread of its own.
pub fn start(graph: Graph, device: impl Device + 'static) -> Stack {
    let builder = Stack::builder().graph(graph).catalogue(catalogue::builtin()).shell(Shell::Thread);
    builder.device(device).build().unwrap_or_else(|error| panic!("{error}"))
}

pub fn at_xylem(port: u16) -> SocketAddr {
    SocketAddr::from((XYLEM, port))
}

pub fn at_kernel(port: u16) -> SocketAddr {
    SocketAddr::from((KERNEL, port))
}

/// Bytes that differ from place to place and from seed to seed.
pub fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    xylem_core::Random::seeded(seed).fill(&mut bytes);
    bytes
}

/// Reads everything, then answers with its digest and the bytes themselves.
pub fn answer(mut stream: impl Read + Write) {
    use sha2::Digest;
    let mut length = [0; 8];
    stream.read_exact(&mut length).expect("a length");
    let mut bytes = vec![0; u64::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).expect("as many bytes");
    stream.write_all(&sha2::Sha256::digest(&bytes)).expect("the peer reads");
    stream.write_all(&bytes).expect("the peer reads");
}

/// Sends `bytes` to a peer that [`answer`]s, and compares what comes back.
pub fn ask(mut stream: impl Read + Write, bytes: &[u8]) {
    use sha2::Digest;
    stream.write_all(&(bytes.len() as u64).to_be_bytes()).expect("the peer reads");
    stream.write_all(bytes).expect("the peer reads");
    let mut digest = [0; 32];
    stream.read_exact(&mut digest).expect("the peer answers");
    assert_eq!(digest[..], sha2::Sha256::digest(bytes)[..], "{} bytes arrived changed", bytes.len());
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).expect("the peer answers");
    assert!(back == bytes, "{} bytes came back changed", bytes.len());
}

/// A device to which nothing is left: it gets frames cut and with their checksums.
struct Whole<D>(D);

impl<D: Device> Device for Whole<D> {
    fn facts(&self) -> DeviceFacts {
        DeviceFacts { checksum_offload: false, segment_offload: false, ..self.0.facts() }
    }
    fn receive(&self, pool: &Pool) -> Option<Message> {
        self.0.receive(pool)
    }
    fn transmit(&self, frame: &mut Message) -> bool {
        self.0.transmit(frame)
    }
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.0.descriptor()
    }
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }
    fn deadline(&self) -> Option<xylem_core::Instant> {
        self.0.deadline()
    }
    fn attach(&self, alarm: Alarm, clock: Clock) {
        self.0.attach(alarm, clock);
    }
}

/// A device behind an impaired link, in the hands of a stack and of the test that watches it.
#[derive(Clone)]
pub struct Behind(std::sync::Arc<Impaired<Box<dyn Device>>>);

impl Behind {
    pub fn link(&self) -> &Impaired<Box<dyn Device>> {
        &self.0
    }
}

impl Device for Behind {
    fn facts(&self) -> DeviceFacts {
        self.0.facts()
    }
    fn receive(&self, pool: &Pool) -> Option<Message> {
        self.0.receive(pool)
    }
    fn transmit(&self, frame: &mut Message) -> bool {
        self.0.transmit(frame)
    }
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.0.descriptor()
    }
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }
    fn deadline(&self) -> Option<xylem_core::Instant> {
        self.0.deadline()
    }
    fn attach(&self, alarm: Alarm, clock: Clock) {
        self.0.attach(alarm, clock);
    }
}

/// Runs a program in the namespace and returns what it printed; a failure is the test's.
pub fn run(namespace: &Namespace, program: &str, arguments: &[&str]) -> String {
    let mut command = namespace.command(program).expect("a descriptor");
    let output = command.args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error} (see .ci/packages)"));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {}: {}: {said}", arguments.join(" "), output.status);
    said
}

/// Whether a program is installed; says that the test is skipped if not.
pub fn has(test: &str, program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|folder| folder.join(program).is_file());
    if !found {
        skipped(test, &format!("`{program}` is not installed; see .ci/packages"));
    }
    found
}
