//! The repetitions: all contestants take their turns one after the other, A B C A B C, so that whatever the machine does
//! meanwhile happens to all of them, and a ratio is taken within a repetition. Who fails is out, and its row says why.

use super::contestant::{Contestant, Terms};
use super::ends::Ends;
use super::order::{Answer, Latency, Memory, Outcome, Task};
use super::samples::Middle;
use super::work::Work;
use crate::commands::interruption::{Interrupted, Interruption};
use serde::Serialize;
use std::io;
use std::time::{Duration, Instant};

/// What a repetition may take beyond the time in which it is measured: its place, its processes, its closing.
pub const AROUND: Duration = Duration::from_secs(20);

/// How long a connection may take to be made, for the bound of a repetition: some hundred times what it takes.
const CONNECTION_TIME_MAX: Duration = Duration::from_millis(5);

/// What one contestant did in one repetition.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figures {
    /// Times of single operations.
    pub latency: Option<Latency>,
    /// Operations a second.
    pub per_second: Option<f64>,
    /// Thousand million bits a second, at the receiver.
    pub gbps: Option<f64>,
    /// Processor time of client and server for an operation, in microseconds.
    pub cpu_us: Option<[f64; 2]>,
    /// Processor time of sender and receiver for a byte, in nanoseconds.
    pub cpu_ns_per_byte: Option<[f64; 2]>,
    /// Frames that Xylem's end received and sent for an operation; of two such ends the client's.
    pub frames: Option<[f64; 2]>,
    /// Bytes of the stream in a frame that Xylem's end sent, or received: many segments' worth where the device cuts.
    pub bytes_per_frame: Option<f64>,
    /// Wrong answers or bytes.
    pub strays: u64,
    /// Operations that counted.
    pub operations: u64,
    /// The memory of client and server.
    pub memory: Option<[Memory; 2]>,
}

impl Figures {
    /// Of the answers of both ends.
    pub fn of(task: Task, client: &Outcome, server: &Outcome) -> Figures {
        let strays = client.strays + server.strays;
        let per = |outcome: &Outcome, count: u64| outcome.cpu_seconds / count.max(1) as f64;
        let common = Figures { strays, operations: client.operations, ..Figures::default() };
        match task {
            Task::Rr | Task::Crr => Figures {
                latency: client.latency,
                per_second: Some(client.operations as f64 / client.seconds.max(1e-9)),
                cpu_us: Some([client, server].map(|end| 1e6 * per(end, end.operations))),
                frames: [client, server]
                    .into_iter()
                    .find_map(|end| Some(end.frames?.map(|frames| frames as f64 / end.operations.max(1) as f64))),
                ..common
            },
            Task::Stream => Figures {
                gbps: Some(8e-9 * server.bytes as f64 / server.seconds.max(1e-9)),
                bytes_per_frame: match (client.frames, server.frames) {
                    (Some([_, sent]), _) => Some(client.bytes as f64 / sent.max(1) as f64),
                    (None, Some([received, _])) => Some(server.bytes as f64 / received.max(1) as f64),
                    (None, None) => None,
                },
                cpu_ns_per_byte: Some([client, server].map(|end| 1e9 * per(end, end.bytes))),
                ..common
            },
            Task::Idle => Figures {
                memory: client.memory.zip(server.memory).map(<[Memory; 2]>::from),
                per_second: Some(client.operations as f64 / client.seconds.max(1e-9)),
                ..common
            },
        }
    }

    /// What is divided for this task: its name in the JSON and its value.
    pub fn measure(&self, task: Task) -> (&'static str, Option<f64>) {
        match task {
            Task::Rr => ("p50_us", self.latency.map(|latency| latency.p50)),
            Task::Stream => ("gbps", self.gbps),
            Task::Crr => ("per_second", self.per_second),
            Task::Idle => ("resident_bytes_per_connection", None),
        }
    }
}

/// One row: a contestant, its work, and what it did.
pub struct Row {
    /// Who.
    pub contestant: Contestant,
    /// What it did, in words.
    pub work: Work,
    /// One a repetition.
    pub figures: Vec<Figures>,
    /// Why it did not go on.
    pub failure: Option<String>,
    /// What priority its ends were given.
    pub tuned: String,
    /// What its devices asked for and were not given, each once.
    pub notes: Vec<String>,
}

impl Row {
    /// A row before its first repetition.
    pub fn new(contestant: Contestant, terms: &Terms) -> Row {
        let work = contestant.work(terms);
        Row { contestant, work, figures: Vec::new(), failure: None, tuned: String::new(), notes: Vec::new() }
    }

    /// The middle of a figure over the repetitions.
    pub fn middle(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<Middle> {
        Middle::of(self.figures.iter().filter_map(figure))
    }

    /// One repetition.
    ///
    /// # Errors
    /// The user has had enough. Whatever else goes wrong is the row's own failure.
    pub fn repeat(&mut self, terms: &Terms, end: Instant, interruption: &Interruption) -> io::Result<()> {
        if self.failure.is_some() {
            return Ok(());
        }
        match self.repetition(terms, end, interruption) {
            Ok(figures) => {
                if figures.strays > 0 {
                    let strays = figures.strays;
                    self.failure = Some(format!("expected every answer to be the right one, got {strays} others"));
                }
                self.figures.push(figures);
                Ok(())
            }
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Interrupted>()) => Err(error),
            Err(error) => {
                self.failure = Some(error.to_string());
                Ok(())
            }
        }
    }

    fn repetition(&mut self, terms: &Terms, end: Instant, interruption: &Interruption) -> io::Result<Figures> {
        interruption.check()?;
        if Instant::now() >= end {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "expected all repetitions within the run's time bound, got no time for this one: the machine is busy; ask \
                 for fewer rows (--device, --shell, --waiting) or repetitions",
            ));
        }
        let span = match terms.task {
            // It ends with its last connection, the others with their time.
            Task::Idle => CONNECTION_TIME_MAX * terms.connections as u32,
            _ => Duration::from_secs_f64(terms.seconds),
        } + AROUND;
        let until = (Instant::now() + span).min(end);
        let place = self.contestant.place(terms)?;
        let orders = self.contestant.orders(terms);
        let start = |index: usize| Ends::start(place.of(orders[index].side), "end", &orders[index]);
        let first = start(0)?;
        let answers: Vec<Answer> = if orders.len() == 1 {
            vec![first.answer(until, interruption)?]
        } else {
            first.ready(until, interruption)?;
            match start(1)?.answer(until, interruption) {
                Ok(client) => vec![client, first.answer(until, interruption)?],
                // The server may be the one that went wrong, and then it says why.
                Err(error) => return Err(first.excuse().map_or(error, io::Error::other)),
            }
        };
        let part = |of: fn(&Answer) -> &Option<Outcome>| answers.iter().find_map(|answer| of(answer).clone());
        let missing = || io::Error::other("expected figures of both ends, got those of one");
        let client = part(|answer| &answer.client).ok_or_else(missing)?;
        let server = part(|answer| &answer.server).ok_or_else(missing)?;
        self.tuned.clone_from(&answers[0].tuned);
        for note in answers.into_iter().flat_map(|answer| answer.notes) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(Figures::of(terms.task, &client, &server))
    }
}

/// A row's ratio to the kernel's.
pub enum Ratio {
    /// The quotients within each repetition.
    Of {
        /// What was divided, by its name in the JSON.
        measure: &'static str,
        /// Both wires, as `tap/veth`.
        names: String,
        /// The stack that was divided by.
        base: &'static str,
        /// One a repetition.
        each: Vec<f64>,
        /// Their middle.
        middle: Middle,
    },
    /// Why there is none.
    Refused(String),
}

/// The ratio of `row` to the kernel's row that did the same work.
pub fn ratio(task: Task, row: &Row, rows: &[Row]) -> Ratio {
    if row.contestant.xylem.is_none() {
        return Ratio::Refused("it is the kernel's own row".into());
    }
    if task == Task::Idle {
        return Ratio::Refused("the kernel's memory is not its process's".into());
    }
    let mut refusal = "no row of the kernel's sockets in this run".to_owned();
    for base in rows.iter().filter(|base| base.contestant.xylem.is_none()) {
        match row.work.ratio_to(&base.work) {
            Err(reason) => refusal = format!("{}: {reason}", base.contestant.stack()),
            Ok(names) => {
                let pairs = row.figures.iter().zip(&base.figures);
                let of = |figures: &Figures| figures.measure(task).1.filter(|value| *value > 0.0);
                let each: Vec<f64> = pairs.filter_map(|(own, other)| Some(of(own)? / of(other)?)).collect();
                let failed = row.failure.is_some() || base.failure.is_some();
                let Some(middle) = Middle::of(each.iter().copied()).filter(|_| !failed) else {
                    return Ratio::Refused("a repetition failed".into());
                };
                let measure = Figures::default().measure(task).0;
                return Ratio::Of { measure, names, base: base.contestant.stack(), each, middle };
            }
        }
    }
    Ratio::Refused(refusal)
}
