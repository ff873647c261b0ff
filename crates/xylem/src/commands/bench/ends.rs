//! The benchmark's hold on the processes of both ends. Each is started in its namespace, tells what it has to tell line by
//! line, and is ended by its number if it takes too long, if the user has had enough, or if this process dies.

use super::end::READY;
use crate::commands::interruption::Interruption;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use xylem_host::namespace::Namespace;

/// How often the waiting looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a process may take to end behind its last line.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// The process of one end, or of both; dropped, it has ended.
pub struct Ends {
    child: Child,
    lines: Receiver<String>,
}

impl Ends {
    /// Starts it: `xylem bench` with the hidden command `kind` and its order. Called on a thread that stays: the kernel
    /// ties the process to the thread.
    ///
    /// # Errors
    /// The program could not be started, or not in this namespace.
    pub fn start(namespace: Option<&Namespace>, kind: &str, order: &impl Serialize) -> io::Result<Ends> {
        // This very program, whatever has happened to its file since.
        const PROGRAM: &str = "/proc/self/exe";
        let mut command = match namespace {
            Some(namespace) => namespace.command(PROGRAM).map_err(io::Error::other)?,
            None => Command::new(PROGRAM),
        };
        let order = serde_json::to_string(order).map_err(io::Error::other)?;
        command.args(["bench", kind, &order]).stdin(Stdio::null()).stdout(Stdio::piped());
        xylem_host::child::die_with_parent(&mut command);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take();
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Ends { child, lines })
    }

    /// Waits until its server listens.
    ///
    /// # Errors
    /// It failed before, said nothing by `until`, or the user has had enough.
    pub fn ready(&self, until: Instant, interruption: &Interruption) -> io::Result<()> {
        match self.line(until, interruption)? {
            line if line == READY => Ok(()),
            line => Err(failure(&line)?.unwrap_or_else(|| io::Error::other(format!("expected {READY}, got {line}")))),
        }
    }

    /// Waits for its answer and its end.
    ///
    /// # Errors
    /// It failed, said nothing by `until`, or the user has had enough.
    pub fn answer<A: DeserializeOwned>(mut self, until: Instant, interruption: &Interruption) -> io::Result<A> {
        let answer = self.hear(until, interruption);
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() && begun.elapsed() < END_TIME_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
        answer
    }

    /// Waits for its answer and leaves it running.
    ///
    /// # Errors
    /// As [`answer`](Ends::answer).
    pub fn hear<A: DeserializeOwned>(&self, until: Instant, interruption: &Interruption) -> io::Result<A> {
        let mut line = self.line(until, interruption)?;
        if line == READY {
            line = self.line(until, interruption)?;
        }
        failure(&line)?.map_or_else(|| judge(&line), Err)
    }

    /// What it says went wrong, if it has said so by now.
    pub fn excuse(&self) -> Option<String> {
        let line = self.lines.recv_timeout(LOOK_EVERY).ok()?;
        failure(&line).ok()?.map(|error| format!("the server: {error}"))
    }

    fn line(&self, until: Instant, interruption: &Interruption) -> io::Result<String> {
        loop {
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("expected an answer of its process, got its end"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            interruption.check()?;
            if Instant::now() >= until {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "expected an answer of its process in time, got none; it was ended",
                ));
            }
        }
    }
}

/// The part of every answer that says why there is none.
#[derive(Deserialize)]
struct Failure {
    error: Option<String>,
}

/// What the answer says went wrong.
fn failure(line: &str) -> io::Result<Option<io::Error>> {
    judge::<Failure>(line).map(|answer| answer.error.map(io::Error::other))
}

fn judge<A: DeserializeOwned>(line: &str) -> io::Result<A> {
    serde_json::from_str(line).map_err(|error| io::Error::other(format!("expected an answer, got {line:?}: {error}")))
}

impl Drop for Ends {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // It may have ended in between, and then there is nothing to end.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
