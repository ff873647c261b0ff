//! A program run for the demonstration. It never outlives this process: the kernel ends it if this process dies
//! however it dies (PR_SET_PDEATHSIG), and an interruption or a panic ends it by its number.

use crate::commands::interruption::{Interrupted, Interruption};
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often the end of a program is looked for. The times in the tables are the program's own.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// As much of what a program says is kept.
const SAID_BYTES_MAX: u64 = 64 << 10;

/// What a program left behind: how it ended, and what it said on its standard error.
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// What it said.
    pub said: String,
}

/// Runs `command` to its end. Called on a thread that lives until then: the kernel ties the child to the thread.
///
/// # Errors
/// The program could not be started, or the demonstration was interrupted; the program has ended then.
pub fn run(mut command: Command, interruption: &Interruption) -> io::Result<Ended> {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    xylem_host::child::die_with_parent(&mut command);
    let mut child = Guard(command.spawn()?);
    let listener = child.0.stderr.take().map(|stderr| std::thread::spawn(move || listen(stderr)));
    let status = loop {
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        if interruption.is_raised() {
            return Err(io::Error::other(Interrupted));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let said = listener.map(|listener| listener.join().expect("listening does not panic")).transpose()?;
    Ok(Ended { status, said: said.unwrap_or_default() })
}

/// Reads to the end, so that a program that says much is not stopped by a full pipe, and keeps the beginning.
fn listen(mut stderr: impl Read) -> io::Result<String> {
    let mut said = Vec::new();
    stderr.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut said)?;
    io::copy(&mut stderr, &mut io::sink())?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Ends the child when the caller gives up.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // It may have ended in between, and then there is nothing to end.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_program_runs_to_its_end_and_an_interrupted_one_is_ended() {
        let interruption = Interruption::default();
        let mut command = Command::new("sh");
        command.args(["-c", "echo said >&2; exit 3"]);
        let ended = run(command, &interruption).expect("there is a shell");
        assert_eq!((ended.status.code(), ended.said.as_str()), (Some(3), "said\n"));

        let mut command = Command::new("sh");
        command.args(["-c", "head -c 1000000 /dev/zero >&2"]);
        let ended = run(command, &interruption).expect("there is a shell");
        assert_eq!((ended.status.code(), ended.said.len() as u64), (Some(0), SAID_BYTES_MAX), "it was not stopped");

        let mut command = Command::new("sleep");
        command.arg("60");
        let begun = Instant::now();
        let raise = interruption.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            raise.raise();
        });
        assert!(run(command, &interruption).is_err());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
