//! The test host itself: a graph of one or two links with everything over them.

use super::linker::{Below, EnableWay, Node, PathLinker};
use crate::arp::{ArpConfig, ArpProtocol};
use crate::ethernet::{EthernetConfig, EthernetProtocol};
use crate::icmp::{IcmpConfig, IcmpProtocol};
use crate::ipv4::{Interface, Ipv4Config, Ipv4Protocol};
use crate::udp::{UdpConfig, UdpProtocol};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use xylem_core::{
    Answer, Binding, Control, Demux, Drops, EnableError, EnableId, EnableWish, End, Handled, Instant, Message,
    Neighbours, NetworkError, NetworkErrorKind, OpenError, Outbox, Participants, Path, PathId, Pool, Question, Random,
    View, drop::linker,
};
use xylem_wire::{Cidr, EthernetAddress};

/// What a test host is made of.
pub struct Setup {
    pub links: Vec<(EthernetAddress, Cidr)>,
    pub ipv4: Ipv4Config,
    pub arp: fn(ArpConfig) -> ArpConfig,
    pub icmp: IcmpConfig,
    pub frame_max: usize,
    pub seed: u64,
}

impl Setup {
    /// Host `number` of 10.0.0.0/24, its link address 02:00:00:00:00:`number`. It announces nothing by itself.
    pub fn host(number: u8) -> Setup {
        Setup::links(vec![super::station(number, 0)])
    }

    /// A host on these links.
    pub fn links(links: Vec<(EthernetAddress, Cidr)>) -> Setup {
        let interface = |(lower, (_, cidr)): (usize, &(EthernetAddress, Cidr))| Interface::new(*cidr, lower);
        let ipv4 = Ipv4Config::new(links.iter().enumerate().map(interface).collect());
        let arp = |config| ArpConfig { announcements: 0, ..config };
        Setup { links, ipv4, arp, icmp: IcmpConfig::default(), frame_max: 1514, seed: 1 }
    }
}

/// A path with what its application has seen.
pub struct Conversation {
    pub path: Path,
    pub delivered: Vec<Message>,
    pub told: Vec<Control>,
    pub finished: bool,
}

/// An enable with what its application has seen.
#[derive(Default)]
pub struct Listening {
    pub participants: Participants,
    pub delivered: Vec<Message>,
    pub told: Vec<Control>,
    pub accepted: Vec<PathId>,
    bindings: Vec<Binding>,
}

/// See the module's text.
pub struct Host {
    pub nodes: Arc<Vec<Node>>,
    pub pages: Vec<Arc<Neighbours>>,
    pub ethernet: usize,
    pub ipv4: usize,
    pub icmp: usize,
    pub udp: usize,
    pub paths: Vec<Conversation>,
    pub listening: Vec<Listening>,
    /// What has been sent: the device, and the frame.
    pub sent: Vec<(u16, Vec<u8>)>,
    pub drops: Drops,
    /// What protocols have told and no path took.
    pub told: Vec<Control>,
    pub now: Instant,
    pub random: Random,
    replies: Vec<((usize, usize, Participants), usize)>,
    pool: Pool,
    frame_max: usize,
}

impl Host {
    pub fn new(setup: Setup) -> Host {
        let mut random = Random::seeded(setup.seed);
        let (mut nodes, mut pages, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (device, (address, cidr)) in setup.links.iter().enumerate() {
            let page = Arc::new(Neighbours::default());
            let IpAddr::V4(ours) = cidr.address() else { panic!("a test host has IPv4 addresses") };
            let ethernet = EthernetConfig { address: *address, mtu: None };
            let below = vec![(Below::Device(device as u16), 0)];
            let ethernet = EthernetProtocol::new(ethernet, Arc::clone(&page));
            nodes.push(Node { protocol: Arc::new(ethernet), lowers: below });
            ends.push((Below::Node(nodes.len() - 1), 0x0800));
            let arp = (setup.arp)(ArpConfig::new(*address, vec![ours]));
            let lowers = vec![(Below::Node(nodes.len() - 1), 0x0806)];
            nodes.push(Node { protocol: Arc::new(ArpProtocol::new(arp, Arc::clone(&page))), lowers });
            pages.push(page);
        }
        let ipv4 = nodes.len();
        let protocol = Ipv4Protocol::new(setup.ipv4).expect("a test's set-up is right");
        nodes.push(Node { protocol: Arc::new(protocol), lowers: ends });
        let icmp = IcmpProtocol::new(setup.icmp);
        nodes.push(Node { protocol: Arc::new(icmp), lowers: vec![(Below::Node(ipv4), 1)] });
        let udp = UdpProtocol::new(UdpConfig::default(), &mut random);
        nodes.push(Node { protocol: Arc::new(udp), lowers: vec![(Below::Node(ipv4), 17)] });
        Host {
            nodes: Arc::new(nodes),
            pages,
            ethernet: 0,
            ipv4,
            icmp: ipv4 + 1,
            udp: ipv4 + 2,
            paths: Vec::new(),
            listening: Vec::new(),
            sent: Vec::new(),
            drops: Drops::default(),
            told: Vec::new(),
            now: Instant::ZERO,
            random,
            replies: Vec::new(),
            pool: Pool::new(4096, 64),
            frame_max: setup.frame_max,
        }
    }

    /// Writes a neighbour on the first link's page, as if ARP had found it.
    pub fn knows(&mut self, number: u8) {
        self.pages[0].entry(super::ip(number)).expect("the page has room").set(Some(super::mac(number)));
    }

    pub fn open(&mut self, node: usize, participants: Participants) -> Result<usize, OpenError> {
        self.open_numbered(node, 0, participants, None)
    }

    pub fn open_numbered(
        &mut self,
        node: usize,
        number: u32,
        participants: Participants,
        enable: Option<EnableId>,
    ) -> Result<usize, OpenError> {
        let path = PathId { index: self.paths.len() as u32, generation: 0 };
        let enable = enable.map(|enable| (node, enable));
        let nodes = Arc::clone(&self.nodes);
        let linker = PathLinker { nodes, node, path, now: self.now, frame_max: self.frame_max, enable };
        let mut random = self.random.child();
        let opened = linker.open_node(node, number, participants, &mut random, None)?;
        let path = Path::new(opened, random);
        self.paths.push(Conversation { path, delivered: Vec::new(), told: Vec::new(), finished: false });
        Ok(self.paths.len() - 1)
    }

    /// Opens a UDP conversation from a port of ours, or any, to a port of 10.0.0.`number`.
    pub fn open_udp(&mut self, local: Option<u16>, number: u8, port: u16) -> Result<usize, OpenError> {
        let local = (None, local.map(Into::into));
        self.open(self.udp, Participants::internet(local, (super::ip(number), port.into())))
    }

    pub fn enable(&mut self, node: usize, wish: EnableWish) -> Result<usize, EnableError> {
        let id = EnableId { index: self.listening.len() as u32, generation: 0 };
        let way = EnableWay { nodes: Arc::clone(&self.nodes), node, id };
        let enabled = way.enable_node(node, wish, &mut self.random)?;
        let listening = Listening {
            participants: enabled.participants,
            bindings: enabled.bindings.into_iter().collect(),
            ..Listening::default()
        };
        self.listening.push(listening);
        Ok(self.listening.len() - 1)
    }

    /// Ends an enable.
    pub fn disable(&mut self, enable: usize) {
        self.listening[enable].bindings.clear();
    }

    pub fn push(&mut self, path: usize, message: Message) -> bool {
        let mut message = message;
        self.path_verb(path, |path, out| path.push(&mut message, out))
    }

    pub fn control(&mut self, path: usize, mut control: Control) -> Handled {
        self.path_verb(path, |path, out| path.control(&mut control, out))
    }

    pub fn close(&mut self, path: usize) {
        self.path_verb(path, |path, out| path.close(out));
    }

    /// A frame arrives by a device.
    pub fn receive(&mut self, device: u16, frame: &[u8]) {
        self.receive_message(device, Message::from_bytes(frame));
    }

    pub fn receive_message(&mut self, device: u16, mut message: Message) {
        message.attributes.arrived = self.now;
        let mut node = self.above(Below::Device(device), None).expect("something stands on every device");
        let nodes = Arc::clone(&self.nodes);
        let mut view = View::new(&mut message, self.now);
        let (path, enables) = loop {
            match self.node_verb(node, |out| nodes[node].protocol.demux(&mut view, out)) {
                Demux::Up(number) => match self.above(Below::Node(node), Some(number)) {
                    Some(above) => node = above,
                    None => {
                        self.drops.count(&linker::NO_UPPER);
                        let kind = NetworkErrorKind::ProtocolUnreachable;
                        return self.node_verb(node, |out| out.undeliverable(kind, &mut view));
                    }
                },
                Demux::Path(id) => break (Some(id.index as usize), vec![]),
                Demux::Open(enable) => {
                    let participants = view.participants.clone();
                    let path = self.open_numbered(node, 0, participants, Some(enable)).expect("a passive open opens");
                    let id = PathId { index: path as u32, generation: 0 };
                    self.listening[enable.index as usize].accepted.push(id);
                    break (Some(path), vec![]);
                }
                Demux::Enable(enable) => break (None, vec![enable]),
                Demux::Each(enables) => break (None, enables.to_vec()),
                Demux::Quoted(kind) => return self.quoted(node, kind, &mut view),
                Demux::Keep => return,
                Demux::Drop(reason) => return self.drops.count(reason),
            }
        };
        let mut message = view.take();
        if let Some(path) = path {
            self.path_verb(path, |path, out| path.pop(&mut message, out));
            return;
        }
        for enable in enables {
            self.listening[enable.index as usize].delivered.push(message.share());
        }
    }

    fn quoted(&mut self, node: usize, kind: NetworkErrorKind, view: &mut View<'_>) {
        let Some((Below::Node(mut node), _)) = self.nodes[node].lowers.first().copied() else { return };
        view.participants = Participants::default();
        let mut sequence = None;
        loop {
            match self.nodes[node].protocol.quoted(view, &mut sequence) {
                Demux::Up(number) => match self.above(Below::Node(node), Some(number)) {
                    Some(above) => node = above,
                    None => return self.drops.count(&linker::NOT_QUOTED),
                },
                Demux::Path(id) => {
                    let mut error = Control::NetworkError(NetworkError { kind, sequence });
                    let index = id.index as usize;
                    if self.path_verb(index, |path, out| path.control(&mut error, out)) == Handled::No {
                        self.paths[index].told.push(error);
                    }
                    return;
                }
                Demux::Enable(enable) => {
                    let error = Control::NetworkError(NetworkError { kind, sequence });
                    return self.listening[enable.index as usize].told.push(error);
                }
                _ => return self.drops.count(&linker::NOT_QUOTED),
            }
        }
    }

    /// Sets the time and expires what is due, paths before protocols.
    pub fn at(&mut self, now: Instant) {
        self.now = now;
        for path in 0..self.paths.len() {
            while self.paths[path].path.deadline().is_some_and(|deadline| deadline <= now) {
                self.path_verb(path, |path, out| path.timeout(out));
            }
        }
        let nodes = Arc::clone(&self.nodes);
        for (index, node) in nodes.iter().enumerate() {
            while node.protocol.deadline().is_some_and(|deadline| deadline <= now) {
                self.node_verb(index, |out| node.protocol.timeout(out));
            }
        }
    }

    /// The frames sent since the last look, but for which device.
    pub fn frames(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.sent).into_iter().map(|(_, frame)| frame).collect()
    }

    /// Offers a question or a report to the protocols, as if a session had left it.
    pub fn offer(&mut self, mut control: Control) -> Control {
        let nodes = Arc::clone(&self.nodes);
        for (index, node) in nodes.iter().enumerate() {
            if self.node_verb(index, |out| node.protocol.control(&mut control, out)) == Handled::Yes {
                break;
            }
        }
        control
    }

    /// Asks for a neighbour.
    pub fn ask(&mut self, address: Ipv4Addr) -> Option<Answer> {
        match self.offer(Control::Question(Question::Neighbour(address.into()), None)) {
            Control::Question(_, answer) => answer,
            _ => None,
        }
    }

    fn above(&self, below: Below, number: Option<u32>) -> Option<usize> {
        let stands = |lower: &(Below, u32)| lower.0 == below && number.is_none_or(|number| lower.1 == number);
        self.nodes.iter().position(|node| node.lowers.iter().any(stands))
    }

    fn outbox(&mut self) -> Outbox {
        Outbox::new(self.now, self.random.child(), self.pool.clone())
    }

    fn path_verb<R>(&mut self, index: usize, verb: impl FnOnce(&mut Path, &mut Outbox) -> R) -> R {
        let mut out = self.outbox();
        let result = verb(&mut self.paths[index].path, &mut out);
        let conversation = &mut self.paths[index];
        conversation.finished |= out.take_levels().finished;
        conversation.delivered.extend(out.drain_up());
        conversation.told.extend(out.drain_told());
        out.drain_dropped().for_each(|reason| self.drops.count(reason));
        for mut frame in out.drain_down() {
            let End::Device(device) = conversation.path.leaves[usize::from(frame.attributes.branch)].end else {
                panic!("test hosts have no trunks")
            };
            frame.complete_checksum();
            assert_eq!(frame.attributes.segment_size, 0, "nothing here stands for segments");
            assert!(frame.len() <= self.frame_max, "a frame of {} bytes was sent", frame.len());
            self.sent.push((device, frame.to_vec()));
        }
        let advice: Vec<Control> = out.drain_advice().collect();
        for control in advice {
            if let Control::Question(_, Some(answer)) = self.offer(control) {
                self.answer(index, answer);
            }
        }
        result
    }

    fn answer(&mut self, path: usize, answer: Answer) {
        let mut control = Control::Answer(answer);
        if self.path_verb(path, |path, out| path.control(&mut control, out)) == Handled::No {
            self.paths[path].told.push(control);
        }
    }

    fn node_verb<R>(&mut self, node: usize, verb: impl FnOnce(&mut Outbox) -> R) -> R {
        let mut out = self.outbox();
        let result = verb(&mut out);
        out.drain_dropped().for_each(|reason| self.drops.count(reason));
        let replies: Vec<_> = out.drain_replies().collect();
        let told: Vec<Control> = out.drain_told().collect();
        let advice: Vec<Control> = out.drain_advice().collect();
        assert!(out.is_empty(), "a protocol pushed or raised without a path");
        for reply in replies {
            self.reply((node, reply.lower, reply.participants), reply.message);
        }
        for control in told {
            if let Control::Answer(answer) = &control {
                (0..self.paths.len()).for_each(|path| self.answer(path, answer.clone()));
            }
            self.told.push(control);
        }
        for control in advice {
            self.offer(control);
        }
        result
    }

    fn reply(&mut self, key: (usize, usize, Participants), message: Message) {
        let known = self.replies.iter().find(|(other, _)| *other == key).map(|(_, path)| *path);
        let path = known.or_else(|| {
            let (node, lower, participants) = key.clone();
            let (Below::Node(below), number) = self.nodes[node].lowers[lower] else { return None };
            let path = self.open_numbered(below, number, participants, None).ok()?;
            self.replies.push((key, path));
            Some(path)
        });
        match path {
            Some(path) => assert!(self.push(path, message), "a reply was refused"),
            None => self.drops.count(&linker::NO_WAY),
        }
    }
}

/// Brings frames to and fro between the first links of two hosts until there are none. Returns how many.
pub fn exchange(one: &mut Host, two: &mut Host) -> usize {
    let mut count = 0;
    loop {
        let (from_one, from_two) = (one.frames(), two.frames());
        if from_one.is_empty() && from_two.is_empty() {
            return count;
        }
        count += from_one.len() + from_two.len();
        from_one.iter().for_each(|frame| two.receive(0, frame));
        from_two.iter().for_each(|frame| one.receive(0, frame));
    }
}
