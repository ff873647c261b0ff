//! `xylem wire`: a cable between two interfaces that may be slow, long, lossy or out of order, with the model, the text and
//! the seeds of the simulator's links. It carries until it is interrupted or its time is over, and then says what it did
//! to every frame, how late it was, and whether it had processor enough for its word to count.

mod report;

use super::interruption::Interruption;
use crate::cli::{Ending, complain, note, say};
use clap::Args;
use report::Report;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xylem_graph::link::{LINK_HEADER_BYTES, LinkModel};
use xylem_host::carrier::Carrier;
use xylem_host::interface::{Interface, InterfaceError};
use xylem_host::namespace::Namespace;
use xylem_host::packet::{PacketOptions, PacketSocket};

/// How often it says how far it is.
const PROGRESS_SPAN: Duration = Duration::from_secs(1);

/// How long an interface that has just been brought up may take until it carries frames.
const RUNNING_TIME_MAX: Duration = Duration::from_secs(5);

/// See the module's text.
#[derive(Debug, Args)]
#[command(
    after_help = "LINK is `perfect` or NAME=VALUE: rate=100Mb/s delay=20ms jitter=1ms loss=1% duplicate=0.1% reorder=1%\n\
        corrupt=0.01% mtu=1500 queue=1000 seed=7, in any order. The same text and seed do the same to the same frames in\n\
        `xylem sim`. Frames are cut to their segments and their checksums finished before the link.\n\n\
        Both interfaces should be without addresses; the hosts are at their other ends.\n\n\
        Examples:\n  \
        xylem wire left right delay=20ms loss=1%\n  \
        xylem wire left right rate=100Mb/s queue=100 --back rate=10Mb/s --seed 7 --seconds 30 --json\n  \
        xylem wire eth1 eth1 delay=5ms --left-namespace one --right-namespace two\n\n\
        Exit codes: 0 it carried, 2 it could not."
)]
pub struct WireCommand {
    /// The interface at the left end
    #[arg(value_name = "LEFT")]
    left: String,
    /// The interface at the right end
    #[arg(value_name = "RIGHT")]
    right: String,
    /// What the link does to frames, from left to right and back (default: perfect)
    #[arg(value_name = "LINK")]
    link: Vec<String>,
    /// What it does from right to left, where that is something else
    #[arg(long, value_name = "LINK")]
    back: Option<String>,
    /// The seed of both directions' chance, unless a link says its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Carry for so long
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Do not sleep through the last microseconds before a frame is due: exact to a few of them, for a processor
    #[arg(long)]
    spin: bool,
    /// The network namespace of the left interface: a name of `ip netns`, a process, or a file
    #[arg(long, value_name = "NAMESPACE")]
    left_namespace: Option<String>,
    /// The network namespace of the right interface
    #[arg(long, value_name = "NAMESPACE")]
    right_namespace: Option<String>,
    /// Say what runs and what happened as two JSON objects, a line each
    #[arg(long)]
    json: bool,
}

/// One end as the command line names it.
struct End<'a> {
    name: &'a str,
    namespace: Option<&'a str>,
}

impl WireCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        match self.carry() {
            Ok(()) => Ending::Right,
            Err(wrong) => {
                complain(wrong);
                Ending::Unasked
            }
        }
    }

    fn carry(&self) -> Result<(), String> {
        let models = self.models()?;
        let ends = [
            End { name: &self.left, namespace: self.left_namespace.as_deref() },
            End { name: &self.right, namespace: self.right_namespace.as_deref() },
        ];
        let [left, right] = &ends;
        if left.name == right.name && left.namespace == right.namespace {
            return Err(format!("RIGHT: expected another interface than LEFT, got `{}` twice", left.name));
        }
        let sockets = [left.open()?, right.open()?];
        if left.namespace == right.namespace {
            refuse_a_loop(&sockets)?;
        }
        let mut notes: Vec<String> = sockets.iter().flat_map(|socket| socket.notes().iter().cloned()).collect();
        notes.extend(sockets.iter().zip(&models).filter_map(|(socket, model)| too_long(socket.interface(), model)));
        let carrier = Carrier::new(sockets, [&models[0], &models[1]], self.seed, self.spin);
        let carrier = carrier.map_err(|error| error.to_string())?;
        let interruption = Interruption::on_signals().map_err(|error| format!("wait for signals: {error}"))?;
        let report = Report { ends: [self.left.clone(), self.right.clone()], models, seed: self.seed, notes };
        say(if self.json { report.ready_json(self.spin) } else { report.ready(self.spin) });
        let carrier = self.carry_on(carrier, &interruption, &report)?;
        say(if self.json { report.json(&carrier) } else { report.text(&carrier) });
        Ok(())
    }

    /// The links from left to right and back.
    fn models(&self) -> Result<[LinkModel; 2], String> {
        let read = |text: &str| {
            text.parse::<LinkModel>().map_err(|error| format!("{error}; `xylem wire --help` has examples"))
        };
        let there = read(&self.link.join(" "))?;
        let back = self.back.as_deref().map_or_else(|| Ok(there.clone()), read)?;
        Ok([there, back])
    }

    /// Carries until the time is over or the user has had enough.
    fn carry_on(&self, mut carrier: Carrier, interruption: &Interruption, report: &Report) -> Result<Carrier, String> {
        let begun = Instant::now();
        let end = self.seconds.map(|seconds| begun + Duration::from_secs(seconds.into()));
        let shows = std::io::stderr().is_terminal();
        while !interruption.is_raised() {
            let left = end.map_or(PROGRESS_SPAN, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            carrier
                .carry(left.min(PROGRESS_SPAN), || interruption.is_raised())
                .map_err(|error| format!("wait for frames: {error}"))?;
            if shows {
                // Back to the first column, and the rest of the older line away (ECMA-48: CR, EL).
                note(format!("\r\x1b[K{}", report.progress(&carrier)));
            }
        }
        if shows {
            note("\r\x1b[K");
        }
        Ok(carrier)
    }
}

impl End<'_> {
    /// Packet sockets on the interface.
    fn open(&self) -> Result<PacketSocket, String> {
        let open = || {
            let socket = PacketSocket::open(self.name, PacketOptions::default()).map_err(|error| error.to_string())?;
            let text = |error: InterfaceError| error.to_string();
            let interface = socket.interface();
            if !interface.is_up().map_err(text)? {
                return Err(format!("`{0}`: expected an interface that is up; ip link set {0} up", self.name));
            }
            // The other end may come up later: a cable without anybody at its end is a cable.
            let _running = interface.wait_until_running(RUNNING_TIME_MAX).map_err(text)?;
            Ok(socket)
        };
        let Some(text) = self.namespace else { return open() };
        let path = match text {
            text if text.contains('/') => PathBuf::from(text),
            text if text.bytes().all(|byte| byte.is_ascii_digit()) => PathBuf::from(format!("/proc/{text}/ns/net")),
            text => PathBuf::from("/run/netns").join(text),
        };
        let wrong = |error| format!("namespace `{text}`: expected a name of `ip netns`, a process or a file: {error}");
        Namespace::open(path).and_then(|namespace| namespace.enter(open)).map_err(wrong)?
    }
}

/// Two ends of one cable, joined, would carry every frame round for ever.
fn refuse_a_loop([left, right]: &[PacketSocket; 2]) -> Result<(), String> {
    let (left, right) = (left.interface(), right.interface());
    match left.joined_here().map_err(|error| error.to_string())? {
        Some(index) if index == right.index() => Err(format!(
            "LEFT and RIGHT: expected the ends of two cables, got both ends of one: `{}` and `{}` are joined already; make \
             a second pair (ip link add NAME type veth peer name OTHER)",
            left.name(),
            right.name()
        )),
        _ => Ok(()),
    }
}

/// What to say where an interface's frames are longer than its link's.
fn too_long(interface: &Interface, model: &LinkModel) -> Option<String> {
    let mtu = interface.mtu().ok().filter(|&mtu| mtu > model.mtu)?;
    let (name, limit) = (interface.name(), model.mtu);
    Some(format!(
        "`{name}` has an MTU of {mtu} bytes and its link one of {limit}: frames of more than {} bytes are dropped and counted \
         as too big; say mtu={mtu}, or at the hosts ip link set DEVICE mtu {limit}",
        limit + LINK_HEADER_BYTES
    ))
}
