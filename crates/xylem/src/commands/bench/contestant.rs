//! Who takes part: the kernel's sockets over a veth pair, and Xylem's over each device, with each shell, in both roles. A
//! contestant knows its work in words, the place it needs and the orders of its ends.

use super::order::{CLIENT, Carrier, Order, SERVER, Side, Sockets, Task, Turns, Waiting};
use super::work::{MTU, Work};
use crate::place::{self, Processors};
use std::io;
use xylem_host::namespace::Namespace;
use xylem_host::pin;

/// One contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// How the application waits.
    pub waiting: Waiting,
    /// What is Xylem's; `None` for the kernel's sockets at both ends.
    pub xylem: Option<Entry>,
}

/// What is Xylem's about a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What carries its frames.
    pub carrier: Carrier,
    /// How it gets its turns.
    pub turns: Turns,
    /// Which end it is.
    pub side: Side,
}

/// What a user asked for; nothing asked for means everything.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Devices of Xylem's.
    pub carriers: Vec<Carrier>,
    /// Shells of Xylem's.
    pub turns: Vec<Turns>,
    /// Ways to wait.
    pub waiting: Vec<Waiting>,
}

impl Choice {
    fn has<T: PartialEq>(list: &[T], one: T) -> bool {
        list.is_empty() || list.contains(&one)
    }

    /// Whether it was asked for.
    pub fn admits(&self, contestant: &Contestant) -> bool {
        let waits = Choice::has(&self.waiting, contestant.waiting);
        let xylem = contestant
            .xylem
            .is_none_or(|entry| Choice::has(&self.carriers, entry.carrier) && Choice::has(&self.turns, entry.turns));
        waits && xylem
    }
}

/// Everybody who can take part in a task, the kernel first.
pub fn all(task: Task) -> Vec<Contestant> {
    let linux = |waiting| Contestant { waiting, xylem: None };
    let mut all = match task {
        // Memory does not depend on how an end waits.
        Task::Idle => vec![linux(Waiting::Block)],
        _ => vec![linux(Waiting::Spin), linux(Waiting::Block)],
    };
    let ways: &[(Turns, Waiting)] = match task {
        Task::Idle => &[(Turns::Inline, Waiting::Block)],
        _ => &[
            (Turns::Inline, Waiting::Spin),
            (Turns::Inline, Waiting::Block),
            (Turns::Thread, Waiting::Block),
            (Turns::Spin, Waiting::Block),
        ],
    };
    for carrier in [Carrier::Tap, Carrier::Packet] {
        for &(turns, waiting) in ways {
            for side in [Side::Client, Side::Server] {
                all.push(Contestant { waiting, xylem: Some(Entry { carrier, turns, side }) });
            }
        }
    }
    if task != Task::Idle {
        // One process is both ends, so memory cannot be told apart there.
        let entry = Entry { carrier: Carrier::Wire, turns: Turns::Inline, side: Side::Both };
        all.push(Contestant { waiting: Waiting::Spin, xylem: Some(entry) });
    }
    all
}

/// What all contestants of a run have in common.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What is measured.
    pub task: Task,
    /// Bytes of a request, a response or a write.
    pub bytes: usize,
    /// How long a repetition is measured, in seconds.
    pub seconds: f64,
    /// The most connections of a repetition.
    pub connections: usize,
    /// The processors of both ends.
    pub processors: Processors,
    /// The congestion control of all ends.
    pub congestion: &'static str,
    /// The text of Xylem's graph.
    pub graph: String,
    /// How its frames find their path, as the graph says.
    pub demux: String,
    /// How its data is touched, as the graph says.
    pub data: String,
}

/// Where a contestant runs.
pub enum Place {
    /// Two namespaces joined by veth: the kernel at both ends, or at one and Xylem's packet sockets at the other.
    Two(Namespace, Namespace),
    /// One: the kernel's side of Xylem's device, and the process that holds the device.
    One(Namespace),
    /// Inside one process.
    Process,
}

impl Place {
    /// The namespace of one end's process.
    pub fn of(&self, side: Side) -> Option<&Namespace> {
        match (self, side) {
            (Place::Two(client, _), Side::Client) => Some(client),
            (Place::Two(_, server), _) => Some(server),
            (Place::One(namespace), _) => Some(namespace),
            (Place::Process, _) => None,
        }
    }
}

impl Contestant {
    /// As the JSON names its stack.
    pub fn stack(&self) -> &'static str {
        match (self.xylem, self.waiting) {
            (Some(_), _) => "xylem",
            (None, Waiting::Spin) => "linux-spin",
            (None, Waiting::Block) => "linux-block",
        }
    }

    /// What its stack gets its frames from.
    pub fn device(&self) -> &'static str {
        match self.xylem.map(|entry| entry.carrier) {
            None => "veth",
            Some(Carrier::Tap) => "tap",
            Some(Carrier::Packet) => "packet",
            Some(Carrier::Wire) => "wire",
        }
    }

    /// What joins the two ends: packet sockets look at a veth pair, every other device is its own wire.
    pub fn wire(&self) -> &'static str {
        match self.xylem.map(|entry| entry.carrier) {
            Some(Carrier::Packet) => "veth",
            _ => self.device(),
        }
    }

    /// Xylem's role, if it is at one end.
    pub fn role(&self) -> Option<&'static str> {
        match self.xylem?.side {
            Side::Client => Some("client"),
            Side::Server => Some("server"),
            Side::Both => None,
        }
    }

    /// How many ends are Xylem's.
    pub fn ends(&self) -> Option<u8> {
        self.xylem.map(|entry| if entry.side == Side::Both { 2 } else { 1 })
    }

    /// A line for people, for the progress and for errors.
    pub fn title(&self) -> String {
        match self.xylem {
            None => format!("{} over veth", self.stack()),
            Some(Entry { carrier, turns, side }) => {
                let role = match side {
                    Side::Client => ", client",
                    Side::Server => ", server",
                    Side::Both => ", both ends",
                };
                format!("xylem over {carrier}, shell {turns}, {}{role}", self.waiting)
            }
        }
    }

    /// A fresh place for one repetition.
    ///
    /// # Errors
    /// This process may not make it; the message says what to do.
    pub fn place(&self, terms: &Terms) -> io::Result<Place> {
        let namespace = || {
            let namespace = place::namespace(terms.congestion)?;
            for (name, value) in TUNING {
                place::set(&namespace, name, value)?;
            }
            Ok(namespace)
        };
        let Some(Entry { carrier, side, .. }) = self.xylem else {
            let (client, server) = (namespace()?, namespace()?);
            place::veth(&client, &server)?;
            return Ok(Place::Two(client, server));
        };
        match carrier {
            Carrier::Tap => namespace().map(Place::One),
            Carrier::Packet => {
                let (client, server) = (namespace()?, namespace()?);
                match side {
                    Side::Client => place::veth_without((&server, SERVER), &client)?,
                    Side::Server | Side::Both => place::veth_without((&client, CLIENT), &server)?,
                }
                Ok(Place::Two(client, server))
            }
            Carrier::Wire => Ok(Place::Process),
        }
    }

    /// The orders of its processes, the one to be started first in front.
    pub fn orders(&self, terms: &Terms) -> Vec<Order> {
        let order = |side| {
            let ours = self.xylem.filter(|entry| entry.side == side || entry.side == Side::Both);
            let sockets = match ours {
                None => Sockets::Kernel,
                Some(Entry { carrier, turns, .. }) => Sockets::Xylem { carrier, turns, graph: terms.graph.clone() },
            };
            let Processors { client, server } = terms.processors;
            Order {
                task: terms.task,
                side,
                sockets,
                waiting: self.waiting,
                bytes: terms.bytes,
                seconds: terms.seconds,
                connections: terms.connections,
                processors: [client, server, third(terms.processors)],
            }
        };
        match self.xylem.map(|entry| entry.carrier) {
            Some(Carrier::Wire) => vec![order(Side::Both)],
            _ => vec![order(Side::Server), order(Side::Client)],
        }
    }

    /// What it does.
    pub fn work(&self, terms: &Terms) -> Work {
        let own_thread = self.xylem.is_some_and(|entry| entry.turns != Turns::Inline);
        let never_sleeps = self.xylem.is_some_and(|entry| entry.turns == Turns::Spin);
        let checks = match terms.task {
            Task::Rr | Task::Crr => "every response compared with its request",
            Task::Stream => "a sample of every read compared with what was sent",
            Task::Idle => "the length of the response",
        };
        let close_order = match terms.task {
            Task::Crr => "the client closes each connection first",
            Task::Idle => "none closes while it is measured",
            Task::Rr | Task::Stream => "the client closes first, behind the measurement",
        };
        let mut waiting = self.waiting.to_string();
        if never_sleeps {
            waiting += ", and the stack's own thread spins";
        }
        let mut pinning = terms.processors.to_string();
        match (own_thread, third(terms.processors)) {
            (false, _) => {}
            (true, Some(cpu)) => pinning += &format!(", the stack's own thread on CPU {cpu}"),
            (true, None) if never_sleeps => {
                pinning += "; three parties on two CPUs: the stack's own thread has its end's, the application is free";
            }
            (true, None) => pinning += "; three parties on two CPUs: the stack's own thread shares its end's",
        }
        Work {
            bytes: terms.bytes,
            mtu: MTU,
            offloads: "checksums and segmentation, both ends".into(),
            copies: "one into the sender's socket, one out of the receiver's".into(),
            checks: format!("{checks}; checksums left to the device, which has no cable"),
            close_order: close_order.into(),
            waiting,
            peer: if self.ends() == Some(2) { "xylem" } else { "linux" }.into(),
            wire: self.wire().into(),
            shell: self.xylem.map(|entry| entry.turns.to_string()),
            pinning,
            congestion: terms.congestion.into(),
            tuning: TUNING.map(|(name, value)| format!("{name}={value}")).join(", "),
            buffers: match self.ends() {
                None => "the kernel's own tuning at both ends",
                Some(1) => "the kernel's own tuning at its end, the graph's at Xylem's",
                Some(_) => "the graph's at both ends",
            }
            .into(),
            connections: matches!(terms.task, Task::Crr | Task::Idle).then_some(terms.connections),
            seconds: terms.seconds,
        }
    }
}

/// A processor that neither end has, for a stack's own thread.
fn third(processors: Processors) -> Option<usize> {
    let taken = [processors.client, processors.server];
    pin::allowed_cpus().ok()?.into_iter().find(|cpu| !taken.contains(&Some(*cpu)) && processors.client.is_some())
}

/// What every namespace is set to, beside the congestion control. All ports but those of the services may be a client's.
const TUNING: [(&str, &str); 2] = [("ip_local_port_range", "1024 65535"), ("tcp_slow_start_after_idle", "1")];

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let processors = Processors { client: Some(0), server: Some(1) };
        Terms {
            task: Task::Rr,
            bytes: 1,
            seconds: 1.0,
            connections: 1,
            processors,
            congestion: "reno",
            graph: String::new(),
            demux: "layered".into(),
            data: "layered".into(),
        }
    }

    #[test]
    fn who_waits_alike_is_divided_and_a_thread_that_never_sleeps_is_not() {
        let all = all(Task::Rr);
        let of = |waiting| all.iter().find(|it| it.xylem.is_none() && it.waiting == waiting).expect("it is there");
        let (spin, block) = (of(Waiting::Spin).work(&terms()), of(Waiting::Block).work(&terms()));
        for contestant in all.iter().filter(|it| it.xylem.is_some()) {
            let entry = contestant.xylem.expect("filtered");
            let work = contestant.work(&terms());
            let (may_spin, may_block) = (work.ratio_to(&spin).is_ok(), work.ratio_to(&block).is_ok());
            match (entry.turns, contestant.waiting) {
                (Turns::Spin, _) => assert!(!may_spin && !may_block, "{work:?}"),
                (_, Waiting::Spin) => assert!(may_spin && !may_block, "{work:?}"),
                (_, Waiting::Block) => assert!(!may_spin && may_block, "{work:?}"),
            }
        }
        assert!(spin.ratio_to(&block).is_err());
    }

    #[test]
    fn each_end_gets_its_own_sockets() {
        for contestant in all(Task::Stream) {
            let kernel = |order: &Order| order.sockets == Sockets::Kernel;
            let orders = contestant.orders(&terms());
            let ours = |side| contestant.xylem.is_some_and(|entry| entry.side == side || entry.side == Side::Both);
            assert!(orders.iter().all(|order| kernel(order) != ours(order.side)), "{}", contestant.title());
            assert_eq!(orders.len(), if contestant.device() == "wire" { 1 } else { 2 });
        }
    }

    #[test]
    fn a_ratio_names_what_joins_the_ends_and_not_the_device() {
        let all = all(Task::Stream);
        let linux = all[0].work(&terms());
        let names = |carrier| {
            let is_it = |it: &&Contestant| it.xylem.is_some_and(|entry| entry.carrier == carrier);
            all.iter().find(is_it).expect("it takes part").work(&terms()).ratio_to(&linux)
        };
        assert_eq!(names(Carrier::Tap), Ok("tap/veth".into()));
        assert_eq!(names(Carrier::Packet), Ok("veth/veth".into()));
        assert_eq!(names(Carrier::Wire), Ok("wire/veth".into()));
    }

    #[test]
    fn a_choice_keeps_the_kernel_and_takes_what_was_asked_for() {
        let choice = Choice { turns: vec![Turns::Inline], waiting: vec![Waiting::Spin], ..Choice::default() };
        let chosen: Vec<_> = all(Task::Rr).into_iter().filter(|it| choice.admits(it)).collect();
        assert_eq!(chosen[0].stack(), "linux-spin");
        assert_eq!(chosen.len(), 1 + 2 + 2 + 1, "{chosen:?}");
    }
}
