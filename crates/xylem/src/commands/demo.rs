//! `xylem demo`: two hosts and a wire in namespaces of its own, a file server on Xylem's TCP/IP, clients on the kernel's;
//! the same work with the kernel's own stack; an impaired link; one request through its layers; and a table of it all.
//! It needs nothing and leaves nothing: namespaces, devices and files have no names and go with the process.

pub mod cable;
pub mod child;
pub mod content;
pub mod load;
pub mod mill;
pub mod parallel;
pub mod probe;
pub mod report;
pub mod serving;
pub mod turn;
pub mod walk;
pub mod work;

use crate::cli::{Ending, complain, say};
use crate::commands::interruption::{self, Interrupted, Interruption};
use crate::commands::progress::Progress;
use crate::place::{self, Processors};
use crate::{catalogue, graphs};
use clap::Args;
use content::{Content, Shelf};
use mill::Milled;
use parallel::Parallel;
use report::{Report, Row, Unit, beside, beside_parallel, beside_requests, cause, cause_by_curl, median};
use serving::Share;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use turn::{Common, Measured, Turn};
use work::Tool;
use xylem_graph::file;
use xylem_graph::link::LinkModel;
use xylem_host::namespace::{self, Level};
use xylem_host::stack::Stack;

/// The file that is fetched.
const LARGE_BYTES: u64 = 256 << 20;
/// The file that is uploaded, and fetched through the impaired link.
const MIDDLE_BYTES: u64 = 64 << 20;
/// The file of the small requests.
const SMALL_BYTES: u64 = 512;
/// The small requests, in all.
const REQUESTS: usize = 2000;
/// On so many connections.
const CONNECTIONS: usize = 50;
/// Rounds on the clean link, the contestants taking turns; the median counts.
const ROUNDS: usize = 3;
/// The impaired link, in each direction.
const IMPAIRMENTS: &str = "loss=1% reorder=1% corrupt=0.1% delay=1ms";
/// The seed of files and links.
const SEED: u64 = 1991;

/// See the module's text.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  xylem demo                    the whole of it, in less than two minutes\n  \
        xylem demo --json > run.json   the result for a program; what happens is told on standard error\n  \
        xylem demo --keep              the server stays, to be tried by hand\n\n\
        Exit codes: 0 every byte was right, 1 not, 2 it could not be run.")]
pub struct DemoCommand {
    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
    /// A graph file for Xylem's host, or the name of a graph that comes with Xylem; its address is set here
    #[arg(long, value_name = "FILE", default_value = "host")]
    graph: String,
    /// Leave the server running until interrupted, and say how to try it
    #[arg(long)]
    keep: bool,
}

impl DemoCommand {
    /// Does it.
    pub fn run(self) -> Ending {
        match self.demonstrate() {
            Ok(true) => Ending::Right,
            Ok(false) => Ending::Wrong,
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Interrupted>()) => {
                complain("interrupted; nothing is left behind");
                // Everything that was started has ended: the values that held it are gone.
                std::process::exit(interruption::EXIT_STATUS)
            }
            Err(error) => {
                complain(error.to_string());
                Ending::Unasked
            }
        }
    }

    fn demonstrate(&self) -> io::Result<bool> {
        let begun = Instant::now();
        // Before any thread: a user namespace takes a process without.
        let privilege = namespace::privilege();
        let mut report = Report::default();
        if privilege.level == Level::UserNamespace {
            namespace::enter_unprivileged().map_err(io::Error::other)?;
            report.notes.push(format!("{}: it ran in a user namespace", privilege.reason));
        }
        let interruption = Interruption::on_signals()?;
        let graph = self.graph()?;
        let mut progress = Progress::new(5);
        progress.say(&file::draw(&graph));
        progress.step("one request through its layers, in the simulator");
        let walk = walk::walk(&graph)?;
        progress.say(&walk.text());
        report.walk = walk.json();

        progress.step("files of random bytes, and their digests");
        let files = Files::make()?;
        let tool = Tool::find();
        if tool == Tool::BuiltIn {
            report.notes.push("this machine has no curl: files were transferred by a client of this program".into());
        }
        let shelf = files.shelf()?;
        let room = Content::blank(LARGE_BYTES)?;
        let processors = Processors::choose();
        report.processors = processors.to_string();
        let common = Common { graph, processors, tool, room, shelf, interruption, seed: SEED };
        let moved = privilege.level == Level::UserNamespace;
        let mut stage = Stage { moved, common: &common, files: &files, report, progress };
        let xylem = stage.run(privilege.level)?;
        stage.report.seconds = begun.elapsed().as_secs_f64();
        stage.progress.clear();
        say(if self.json { format!("{:#}\n", stage.report.json()) } else { stage.report.table() });
        if self.keep {
            keep(&xylem, &common, &mut stage.progress)?;
        }
        Ok(stage.report.is_right())
    }

    fn graph(&self) -> io::Result<file::Graph> {
        let text = graphs::read(&self.graph).map_err(|error| io::Error::other(error.to_string()))?;
        let loaded = file::load(&text, &catalogue::builtin());
        loaded.map_err(|problems| io::Error::other(file::report(&self.graph, &problems)))
    }
}

/// The files of all turns.
struct Files {
    large: Content,
    middle: Content,
    small: Content,
}

impl Files {
    fn make() -> io::Result<Files> {
        Ok(Files {
            large: Content::random(LARGE_BYTES, SEED)?,
            middle: Content::random(MIDDLE_BYTES, SEED + 1)?,
            small: Content::random(SMALL_BYTES, SEED + 2)?,
        })
    }

    fn shelf(&self) -> io::Result<Arc<Shelf>> {
        let file = |name: &str, content: &Content| (name.to_owned(), content.clone());
        let files = [file("large", &self.large), file("middle", &self.middle), file("small", &self.small)];
        Ok(Arc::new(Shelf::new(files, MIDDLE_BYTES)?))
    }
}

/// What one contestant did on the clean link.
#[derive(Default)]
struct Clean {
    downloads: Vec<Measured>,
    uploads: Vec<Measured>,
    requests: Vec<(Milled, Share)>,
    /// Only those that could be made.
    by_curl: Vec<(Parallel, Share)>,
}

/// The device that Xylem's turns found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Tap,
    Packet,
    Wire,
}

/// The demonstration while it runs.
struct Stage<'a> {
    /// It runs in a user namespace, where root may not do everything.
    moved: bool,
    common: &'a Common,
    files: &'a Files,
    report: Report,
    progress: Progress,
}

impl<'a> Stage<'a> {
    /// All turns; Xylem's on the clean link stays.
    fn run(&mut self, level: Level) -> io::Result<Turn<'a>> {
        let link: LinkModel = IMPAIRMENTS.parse().map_err(|error| io::Error::other(format!("{error}")))?;
        let (xylem, device) = self.xylem(None)?;
        let kernel = self.kernel(level);
        self.progress.step(&format!("{ROUNDS} rounds on a clean link: fetch, upload, {REQUESTS} requests"));
        let (mut of_xylem, mut of_kernel) = (Clean::default(), Clean::default());
        for _ in 0..ROUNDS {
            self.round(&xylem, &mut of_xylem)?;
            if let Some(kernel) = &kernel {
                self.round(kernel, &mut of_kernel)?;
            }
        }
        self.report.ran.push(xylem.ran.clone());
        self.report.ran.extend(kernel.iter().map(|kernel| kernel.ran.clone()));
        drop(kernel);
        let ratio = match device {
            Found::Tap => "tap/veth",
            Found::Packet => "packet/veth",
            Found::Wire => "wire/veth",
        };
        self.clean_rows(of_xylem, of_kernel, ratio);

        self.progress.step(&format!("{} MiB through a link with {IMPAIRMENTS}: Xylem", MIDDLE_BYTES >> 20));
        let (turn, _) = self.xylem(Some(&link))?;
        let impaired = self.impaired(&turn)?;
        let mut measured = vec![beside("Xylem", &impaired)];
        measured.extend(turn.stack().map(drops_of));
        measured.extend(turn.stack().map(|stack| sent_again_text(stack, &link)));
        let stack = turn.stack().cloned();
        drop(turn);
        let (mut kernel, mut cubic) = (None, None);
        if device == Found::Tap {
            self.progress.step("the same with the kernel at both ends: reno, then cubic");
            let turn = Turn::of_kernel(self.common, turn::CONGESTION, Some(&link))?;
            let reno = self.impaired(&turn)?;
            measured.push(beside("kernel", &reno));
            measured.push(cause_behind(stack.as_ref(), &impaired, &reno, &link));
            kernel = Some(reno.transfer.megabits());
            drop(turn);
            // The kernel may have been built without it; then the column is empty and a note says why.
            match Turn::of_kernel(self.common, "cubic", Some(&link)) {
                Ok(turn) => cubic = Some(self.impaired(&turn)?.transfer.megabits()),
                Err(error) => self.report.notes.push(format!("the kernel had no turn with cubic: {error}")),
            }
        }
        self.report.rows.push(Row {
            what: format!("fetch {} MiB, {IMPAIRMENTS}", MIDDLE_BYTES >> 20),
            unit: Unit::Megabits,
            xylem: impaired.transfer.megabits(),
            kernel,
            cubic,
            ratio: match device {
                Found::Tap => "tap/tap",
                Found::Packet => "packet/tap",
                Found::Wire => "wire/tap",
            },
            measured,
        });
        Ok(xylem)
    }

    /// Xylem's turn over the best device there is. A fallback is said.
    fn xylem(&mut self, link: Option<&LinkModel>) -> io::Result<(Turn<'a>, Found)> {
        let no_tap = match Turn::of_xylem(self.common, link) {
            Ok(turn) => return Ok((turn, Found::Tap)),
            Err(error) => error,
        };
        // Where everything is there, a fallback is a fault.
        if std::env::var_os("CI").is_some() && rustix::process::geteuid().is_root() && !self.moved {
            return Err(io::Error::other(format!("a fallback as root where CI is set: {no_tap}")));
        }
        match Turn::of_xylem_by_packet(self.common, link) {
            Ok(turn) => {
                self.fell_back(format!("no TAP ({no_tap}): Xylem ran on packet sockets at the client's cable"));
                Ok((turn, Found::Packet))
            }
            Err(error) => {
                self.fell_back(format!(
                    "no TAP ({no_tap}) and no packet socket ({error}): Xylem ran at both ends of an in-process wire"
                ));
                Ok((Turn::of_xylem_alone(self.common, link)?, Found::Wire))
            }
        }
    }

    /// Says once that it ran on something else.
    fn fell_back(&mut self, note: String) {
        if !self.report.notes.contains(&note) {
            self.progress.say(&format!("note: {note}"));
            self.report.notes.push(note);
        }
    }

    /// The kernel's turn on the clean link, if this process may have namespaces.
    fn kernel(&mut self, level: Level) -> Option<Turn<'a>> {
        let made = match level {
            Level::Nothing => Err("this process may not make namespaces".to_owned()),
            _ => Turn::of_kernel(self.common, turn::CONGESTION, None).map_err(|error| error.to_string()),
        };
        made.map_err(|error| self.report.notes.push(format!("the kernel had no turn: {error}"))).ok()
    }

    fn round(&mut self, turn: &Turn<'_>, clean: &mut Clean) -> io::Result<()> {
        let download = turn.download("large", &self.files.large)?;
        let upload = turn.upload(&self.files.middle)?;
        let requests = turn.requests("small", &self.files.small, REQUESTS, CONNECTIONS)?;
        self.compared(&[download, upload]);
        self.report.compared += requests.0.latencies.len();
        self.report.wrong += requests.0.wrong;
        clean.downloads.push(download);
        clean.uploads.push(upload);
        clean.requests.push(requests);
        match turn.requests_by_curl("small", &self.files.small, REQUESTS, CONNECTIONS)? {
            Ok((parallel, share)) => {
                self.report.compared += parallel.requests;
                self.report.wrong += parallel.wrong;
                clean.by_curl.push((parallel, share));
            }
            Err(reason) => {
                let note = format!("no row of {REQUESTS} requests by curl for the {}: {reason}", turn.ran.stack);
                if !self.report.notes.contains(&note) {
                    self.report.notes.push(note);
                }
            }
        }
        Ok(())
    }

    fn impaired(&mut self, turn: &Turn<'_>) -> io::Result<Measured> {
        let download = turn.download("middle", &self.files.middle)?;
        self.compared(&[download]);
        self.report.ran.push(turn.ran.clone());
        Ok(download)
    }

    fn compared(&mut self, transfers: &[Measured]) {
        self.report.compared += transfers.len();
        self.report.wrong += transfers.iter().filter(|measured| !measured.transfer.right).count();
    }

    fn clean_rows(&mut self, xylem: Clean, kernel: Clean, ratio: &'static str) {
        for (what, xylem, kernel) in [
            (format!("fetch {} MiB", LARGE_BYTES >> 20), xylem.downloads, kernel.downloads),
            (format!("upload {} MiB", MIDDLE_BYTES >> 20), xylem.uploads, kernel.uploads),
        ] {
            let (Some(xylem), kernel) = (median(xylem), median(kernel)) else { continue };
            let mut measured = vec![beside("Xylem", &xylem)];
            measured.extend(kernel.iter().map(|kernel| beside("kernel", kernel)));
            measured.push(cause(xylem.server, kernel.map(|kernel| kernel.server), xylem.transfer.seconds));
            let kernel = kernel.map(|kernel| kernel.transfer.megabits());
            let xylem = xylem.transfer.megabits();
            self.report.rows.push(Row { what, unit: Unit::Megabits, xylem, kernel, cubic: None, ratio, measured });
        }
        let (xylem_by_curl, kernel_by_curl) = (xylem.by_curl, kernel.by_curl);
        let middle = |mut requests: Vec<(Milled, Share)>| {
            requests.sort_by_key(|(milled, _)| milled.span);
            let at = requests.len() / 2;
            (at < requests.len()).then(|| requests.swap_remove(at))
        };
        let Some((of_xylem, share)) = middle(xylem.requests) else { return };
        let kernel = middle(kernel.requests);
        let mut measured = vec![beside_requests("Xylem", &of_xylem, share)];
        measured.extend(kernel.iter().map(|(milled, share)| beside_requests("kernel", milled, *share)));
        measured.push(cause(share, kernel.as_ref().map(|(_, share)| *share), of_xylem.span.as_secs_f64()));
        let kernel = kernel.map(|(milled, _)| milled);
        let rate = |milled: &Milled| milled.latencies.len() as f64 / milled.span.as_secs_f64().max(1e-9);
        let within = |per_mille| move |milled: &Milled| milled.within(per_mille).as_secs_f64() * 1e6;
        let mut row = |what: String, unit, figure: &dyn Fn(&Milled) -> f64| {
            let (xylem, kernel) = (figure(&of_xylem), kernel.as_ref().map(figure));
            self.report.rows.push(Row { what, unit, xylem, kernel, cubic: None, ratio, measured: measured.clone() });
        };
        row(format!("{REQUESTS} requests on {CONNECTIONS} connections"), Unit::Rate, &rate);
        row("  half of them within".into(), Unit::Micros, &within(500));
        row("  99 % within".into(), Unit::Micros, &within(990));
        row("  all within".into(), Unit::Micros, &within(1000));
        self.row_by_curl(xylem_by_curl, kernel_by_curl, ratio);
    }

    /// The same requests by the real curl: the check on the built-in client.
    fn row_by_curl(&mut self, xylem: Vec<(Parallel, Share)>, kernel: Vec<(Parallel, Share)>, ratio: &'static str) {
        let middle = |mut made: Vec<(Parallel, Share)>| {
            made.sort_by(|(one, _), (other, _)| one.seconds.total_cmp(&other.seconds));
            made.get(made.len() / 2).copied()
        };
        let (Some(xylem), kernel) = (middle(xylem), middle(kernel)) else { return };
        let mut measured = vec![beside_parallel("Xylem", &xylem.0, xylem.1)];
        measured.extend(kernel.iter().map(|(parallel, share)| beside_parallel("kernel", parallel, *share)));
        measured.push(cause_by_curl(xylem, kernel));
        self.report.rows.push(Row {
            what: format!("{REQUESTS} requests on {CONNECTIONS} connections, by curl"),
            unit: Unit::Rate,
            xylem: xylem.0.rate(),
            kernel: kernel.map(|(parallel, _)| parallel.rate()),
            cubic: None,
            ratio,
            measured,
        });
    }
}

/// What Xylem dropped, most often first.
fn drops_of(stack: &Stack) -> String {
    let reading = stack.reading();
    let mut drops: Vec<(String, u64)> =
        reading.drops.iter().map(|(protocol, why, count)| (format!("{protocol}: {why}"), count)).collect();
    drops.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let drops: Vec<String> = drops.iter().take(5).map(|(reason, count)| format!("{reason} {count}")).collect();
    let drops = if drops.is_empty() { "none".into() } else { drops.join(", ") };
    format!("Xylem: {} frames in, {} out; dropped: {drops}", reading.frames_in, reading.frames_out)
}

/// The bytes of a full segment: an MTU of 1500 without the headers of IPv4 and TCP and the timestamps option.
const SEGMENT_BYTES: u64 = 1500 - 20 - 20 - 12;

/// Frames beyond those the file needs, and how many of all the link loses or breaks, and reorders: the first less the
/// second is what TCP sent in vain.
fn sent_again(stack: &Stack, link: &LinkModel) -> (u64, u64, u64) {
    let frames = stack.reading().frames_out;
    let of = |parts: u32| frames * u64::from(parts) / u64::from(xylem_graph::link::MILLION);
    let spoilt = of(link.loss_per_million + link.corrupt_per_million);
    (frames.saturating_sub(MIDDLE_BYTES.div_ceil(SEGMENT_BYTES)), spoilt, of(link.reorder_per_million))
}

fn sent_again_text(stack: &Stack, link: &LinkModel) -> String {
    let (again, spoilt, reordered) = sent_again(stack, link);
    format!(
        "Xylem: {again} frames were sent beyond those the file needs; of all frames the link loses or breaks about \
         {spoilt} and reorders about {reordered}"
    )
}

/// Why Xylem was slower behind the impaired link, as far as the measurements say.
fn cause_behind(stack: Option<&Stack>, xylem: &Measured, kernel: &Measured, link: &LinkModel) -> String {
    let cause = match stack.map(|stack| sent_again(stack, link)) {
        Some((again, spoilt, _)) if 2 * again > 3 * spoilt => format!(
            "cause: TCP sent about {} frames in vain: it takes reordering for loss, and each time halves its window",
            again - spoilt
        ),
        _ => cause(xylem.server, Some(kernel.server), xylem.transfer.seconds),
    };
    format!("{cause}; known difference: {RECOVERY_DIFFERENCE}")
}

/// What the two TCPs do not have in common behind a link that loses and reorders (RFC 2018, RFC 8985).
const RECOVERY_DIFFERENCE: &str = "the kernel has SACK and RACK, which tell loss from reordering and mend several losses \
    in one round trip; Xylem's TCP has neither yet";

/// Leaves the server running until the user has had enough.
fn keep(turn: &Turn<'_>, common: &Common, progress: &mut Progress) -> io::Result<()> {
    let at = place::server_at();
    match turn.namespace() {
        Some(namespace) => progress.say(&format!(
            "The server stays. In another terminal, as the same user:\n  \
             nsenter --net=/proc/{}/fd/{} curl -o /dev/null http://{at}/large\nInterrupt (Ctrl-C) to end.",
            std::process::id(),
            namespace.as_fd().as_raw_fd(),
        )),
        None => progress.say("The server stays, but only this process reaches it: there is no TAP. Interrupt to end."),
    }
    while !common.interruption.is_raised() {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
