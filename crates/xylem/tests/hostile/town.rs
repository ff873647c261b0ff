//! One link with a server, an honest client, and a station that sends whatever a test likes. The station sees what the server
//! sends to it and answers ARP for itself; everything else is the test's.

use super::shop::{Doings, Shop, Visitor, Visits};
use super::station::{self, CLIENT, EVIL, SERVER};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use xylem::{catalogue, graphs};
use xylem_graph::build::build;
use xylem_graph::file::{Value, check, report};
use xylem_graph::instance::{DeviceFacts, Instance, Limits};
use xylem_sim::{Host, HostId, Sim};
use xylem_wire::{ArpHeader, ArpOperation, EtherType, EthernetHeader, Header};

/// What the server may hold.
pub const LIMITS: Limits = Limits { paths: 4096, enables: 16, small_buffers: 8192, large_buffers: 128 };
/// The delay of the link, one way.
const DELAY: &str = "delay=200us";
/// Between two visits of the honest client, if a test says nothing else.
const PAUSE: Duration = Duration::from_millis(20);
/// Longer than any deadline: TIME-WAIT, embryos, neighbours, reassembly.
const QUIET: Duration = Duration::from_secs(400);

pub struct Town {
    sim: Sim,
    /// Frames that the server sent to the station or to everybody.
    heard: Rc<RefCell<Vec<Vec<u8>>>>,
    /// The last frames that the client sent.
    client_sent: Rc<RefCell<VecDeque<Vec<u8>>>>,
    pub shop: Rc<RefCell<Doings>>,
    pub visits: Rc<RefCell<Visits>>,
}

/// So many frames of the client are remembered.
const REMEMBERED_MAX: usize = 64;
const SERVER_ID: HostId = HostId(0);
const CLIENT_ID: HostId = HostId(1);

impl Town {
    /// A town whose server runs `shop`; `tcp` says more options of its TCP.
    pub fn new(seed: u64, shop: Shop, tcp: &[(&str, Value)]) -> Town {
        let mut sim = Sim::new(seed);
        let server = instance(sim.seed_for(0), SERVER, tcp);
        sim.add(Host::new("server", server));
        let client = instance(sim.seed_for(1), CLIENT, &[]);
        sim.add(Host::new("client", client));
        sim.join((SERVER_ID, 0), (CLIENT_ID, 0), &DELAY.parse().expect("a link")).expect("within its limits");
        let heard = Rc::<RefCell<Vec<Vec<u8>>>>::default();
        let client_sent = Rc::<RefCell<VecDeque<Vec<u8>>>>::default();
        let (ear, other_ear) = (Rc::clone(&heard), Rc::clone(&client_sent));
        sim.watch(Box::new(move |sight| {
            let to = sight.frame.get(..6);
            if sight.host == SERVER_ID && !sight.arrives && (to == Some(&EVIL.1.0) || to == Some(&[0xff; 6])) {
                ear.borrow_mut().push(sight.frame.to_vec());
            }
            if sight.host == CLIENT_ID && !sight.arrives {
                let mut sent = other_ear.borrow_mut();
                sent.push_back(sight.frame.to_vec());
                if sent.len() > REMEMBERED_MAX {
                    sent.pop_front();
                }
            }
        }));
        let (doings, visits) = (Rc::clone(&shop.doings), Rc::<RefCell<Visits>>::default());
        sim.drive(shop);
        sim.drive(Visitor::new(CLIENT_ID, SERVER.0.into(), Rc::clone(&visits)));
        visits.borrow_mut().pause = PAUSE;
        let mut town = Town { sim, heard, client_sent, shop: doings, visits };
        // The station makes itself known, as a host that wants something does.
        town.attack(station::arp(ArpOperation::REQUEST, EVIL, SERVER.0));
        town.pass(Duration::from_millis(10));
        town
    }

    /// The station sends a frame.
    pub fn attack(&mut self, frame: Vec<u8>) {
        self.sim.inject((SERVER_ID, 0), frame);
    }

    /// Time passes; what the server sent to the station meanwhile, its questions for the station's address answered.
    pub fn pass(&mut self, span: Duration) -> Vec<Vec<u8>> {
        self.sim.pass(span);
        let heard = std::mem::take(&mut *self.heard.borrow_mut());
        let (questions, others): (Vec<_>, Vec<_>) = heard.into_iter().partition(|frame| is_arp(frame));
        let asks = |frame: &Vec<u8>| {
            let arp = ArpHeader::parse(&frame[EthernetHeader::LEN..]);
            arp.is_ok_and(|arp| arp.operation == ArpOperation::REQUEST && arp.target_protocol == EVIL.0)
        };
        if questions.iter().any(asks) {
            self.attack(station::arp(ArpOperation::REPLY, EVIL, SERVER.0));
        }
        others
    }

    /// The last frames that the client sent, as the station overheard them.
    pub fn of_the_client(&self) -> Vec<Vec<u8>> {
        self.client_sent.borrow().iter().cloned().collect()
    }

    pub fn server(&mut self) -> &Instance {
        &self.sim.host(SERVER_ID).instance
    }

    /// How often the server's `protocol` dropped for this reason.
    pub fn dropped(&mut self, protocol: &str, why: &str) -> u64 {
        let drops = self.server().reading().drops;
        drops.iter().find(|(by, reason, _)| (*by, *reason) == (protocol, why)).map_or(0, |(_, _, count)| count)
    }

    /// All drops by name, for messages.
    pub fn drops(&mut self) -> String {
        let drops = self.server().reading().drops;
        drops.iter().map(|(protocol, why, count)| format!("\n  {protocol}: {why}: {count}")).collect()
    }

    pub fn now(&self) -> xylem_core::Instant {
        self.sim.now()
    }

    /// The honest client was served all the while: at least `count` visits, none failed, none took longer than `most`.
    #[track_caller]
    pub fn honest_were_served(&mut self, count: usize, most: Duration) {
        let drops = self.drops();
        let visits = self.visits.borrow();
        assert_eq!(visits.failures, [""; 0], "{drops}");
        assert!(visits.served >= count, "only {} visits in {:?}{drops}", visits.served, self.sim.now());
        assert!(visits.longest <= most, "a visit took {:?}{drops}", visits.longest);
    }

    /// Everybody goes, and after a while nothing is left.
    #[track_caller]
    pub fn nothing_is_left(mut self) {
        self.shop.borrow_mut().closing = true;
        self.visits.borrow_mut().closing = true;
        self.pass(QUIET);
        for host in [SERVER_ID, CLIENT_ID] {
            let instance = &self.sim.host(host).instance;
            let (reading, kept) = (instance.reading(), instance.kept_path_count());
            assert_eq!(reading.buffers_held, (0, 0), "buffers of {host:?}");
            assert_eq!(instance.path_count(), kept, "paths of {host:?}");
            // At most one a protocol that looks at the time again and again, whatever came.
            assert!(instance.deadline_count() <= instance.nodes().len(), "deadlines of {host:?}");
        }
        assert_eq!(self.shop.borrow().present, 0);
    }
}

fn is_arp(frame: &[u8]) -> bool {
    EthernetHeader::parse(frame).is_ok_and(|header| header.kind == EtherType::ARP)
}

/// A host of `graphs/host.graph` on a wide network: whoever has an address in 10.0.0.0/8 is a neighbour.
fn instance(seed: u64, place: station::Place, tcp: &[(&str, Value)]) -> Instance {
    let mut graph = graphs::builtin("host").expect("it comes with the program");
    let text = |text: String| Value::Text(text);
    graph.set("link0", "address", text(place.1.to_string())).expect("the node is there");
    graph.set("ip", "address", text(format!("{}/8", place.0))).expect("the node is there");
    graph.set("ip", "gateway", text(CLIENT.0.to_string())).expect("the node is there");
    if place == CLIENT {
        graph.set("ip", "gateway", text(SERVER.0.to_string())).expect("the node is there");
    }
    for (option, value) in tcp {
        graph.set("tcp", option, value.clone()).expect("the node is there");
    }
    let catalogue = catalogue::builtin();
    let problems = check(&graph, &catalogue);
    assert!(problems.is_empty(), "{}", report("host", &problems));
    build(&graph, &catalogue, vec![DeviceFacts::plain("wire", 1514)], LIMITS, seed).expect("the graph is right")
}
