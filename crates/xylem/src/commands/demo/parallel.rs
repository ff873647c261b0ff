//! Many small requests by one real curl on many connections at once: the check that the built-in client, whose times a
//! request are reported, did not shape the result. Bodies and what curl says of each answer come to one file in memory,
//! which is read again from front to back: every byte is compared.

use super::child::{self, Ended};
use super::content::Content;
use super::mill::Order;
use crate::commands::interruption::Interruption;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long one request may take before all are given up, in seconds.
const REQUEST_SECONDS_MAX: &str = "20";

/// The most bytes of a line that curl says after an answer; longer ones are none of its lines.
const LINE_BYTES_MAX: usize = 64;

/// curl's status for options that it does not know.
const STATUS_USAGE: i32 = 2;

/// What such a line begins with.
const MARK: &[u8] = b"\nanswer ";

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parallel {
    /// The answers that were asked for.
    pub requests: usize,
    /// Answers whose status, length or bytes were not what was expected, or that did not come.
    pub wrong: usize,
    /// The connections curl made for them.
    pub connections: u64,
    /// From the start of the program to its end, in seconds.
    pub seconds: f64,
    /// The processor time of curl, in programs and in the kernel, where the system says it.
    pub processor: Option<Duration>,
}

impl Parallel {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds.max(1e-9)
    }

    /// The part of the time in which curl, which is one thread, had a processor.
    pub fn busy(&self) -> Option<f64> {
        self.processor.map(|processor| processor.as_secs_f64() / self.seconds.max(1e-9))
    }
}

/// Runs `curl` for the order; or says why this curl cannot.
///
/// # Errors
/// curl failed, or the user has had enough.
pub fn run(curl: &Path, order: &Order<'_>, interruption: &Interruption) -> io::Result<Result<Parallel, String>> {
    // A new file, so that nothing of an earlier run is in it.
    let output = Content::blank(0)?;
    let mut command = Command::new(curl);
    command.stdout(Stdio::from(output.file.try_clone()?));
    // The user's own settings are not for this. One failure ends all of it: a demonstration with holes is none.
    command.args(["--disable", "--silent", "--show-error", "--no-progress-meter", "--noproxy", "*"]);
    command.args(["--http1.1", "--fail", "--fail-early", "--max-time", REQUEST_SECONDS_MAX]);
    command.args(["--parallel", "--parallel-max", &order.connections.to_string()]);
    command.args(["--write-out", "\nanswer %{http_code} %{size_download} %{num_connects}\n"]);
    // The number stands in the fragment, which is never sent: all requests are for the same file.
    command.arg(format!("http://{}{}#[1-{}]", order.to, order.path, order.requests));
    let (before, begun) = (processor_of_children(), Instant::now());
    let ended = child::run(command, interruption)?;
    let seconds = begun.elapsed().as_secs_f64();
    let processor = before.zip(processor_of_children()).map(|(before, after)| after.saturating_sub(before));
    if let Some(reason) = unable(&ended) {
        return Ok(Err(reason));
    }
    if !ended.status.success() {
        let said = ended.said.lines().find(|line| line.starts_with("curl")).unwrap_or("it said nothing");
        return Err(io::Error::other(format!("curl --parallel, {}: {said}", ended.status)));
    }
    let length = usize::try_from(output.file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    std::os::unix::fs::FileExt::read_exact_at(&*output.file, &mut bytes, 0)?;
    let (wrong, connections) = judge(&bytes, order.body, order.requests);
    Ok(Ok(Parallel { requests: order.requests, wrong, connections, seconds, processor }))
}

/// The option that this curl does not know, as a reason.
fn unable(ended: &Ended) -> Option<String> {
    let said = ended.said.lines().find(|line| line.ends_with("is unknown"))?;
    (ended.status.code() == Some(STATUS_USAGE))
        .then(|| format!("this curl cannot make parallel requests, 7.67 or later can ({said})"))
}

/// Reads what curl wrote: how many answers were wrong, and the connections it says it made.
///
/// A body is far shorter than a segment and is asked for only after the last one on its connection, so curl reads and
/// writes it in one piece, and its line some time later: the file is a row of whole bodies and whole lines in any order.
/// If a curl should mingle two bodies, both count as wrong; nothing wrong can pass for right.
fn judge(mut bytes: &[u8], body: &[u8], requests: usize) -> (usize, u64) {
    let (mut bodies, mut lines, mut connections) = (0, 0, 0);
    while !bytes.is_empty() {
        if let Some(rest) = bytes.strip_prefix(body).filter(|_| !body.is_empty()) {
            (bodies, bytes) = (bodies + 1, rest);
        } else if let Some(([code, size, made], rest)) = line(bytes) {
            lines += usize::from(code == 200 && size == body.len() as u64);
            (connections, bytes) = (connections + made, rest);
        } else {
            // Neither: where the next one begins is not known, so all that follow count as wrong, at least one.
            return (requests.saturating_sub(bodies.min(lines)).max(1), connections);
        }
    }
    // More answers than requests are wrong as well.
    (requests.abs_diff(bodies).max(requests.abs_diff(lines)), connections)
}

/// Status, size and new connections of one answer, if a line of curl's stands here; and what follows it.
fn line(bytes: &[u8]) -> Option<([u64; 3], &[u8])> {
    let rest = bytes.strip_prefix(MARK)?;
    let end = rest.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n')?;
    let mut numbers = std::str::from_utf8(&rest[..end]).ok()?.split(' ').map(str::parse);
    let mut next = || numbers.next()?.ok();
    let three = [next()?, next()?, next()?];
    numbers.next().is_none().then_some((three, &rest[end + 1..]))
}

/// The processor time of this process's children that have ended, from /proc/self/stat (proc_stat(5): cutime, cstime).
fn processor_of_children() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    ticks_of_children(&text).map(|ticks| Duration::from_secs(1) * ticks / TICKS_PER_SECOND)
}

/// The unit of these fields: Linux shows 1/100 s to programs on every architecture this runs on.
const TICKS_PER_SECOND: u32 = 100;

/// The 16th and 17th field together. The second is the program's name, which may have spaces and parentheses itself.
fn ticks_of_children(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13).map(str::parse::<u32>);
    fields.next()?.ok()?.checked_add(fields.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::content::Shelf;
    use crate::commands::demo::work::Tool;
    use crate::http::Http;
    use crate::net::kernel::Kernel;
    use crate::services::{Limits, Server};
    use std::net::SocketAddr;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    const GOOD: &[u8] = b"\nanswer 200 4 1\n";

    #[test]
    fn every_byte_between_bodies_and_lines_is_judged() {
        let two = [b"body", GOOD, b"body", b"\nanswer 200 4 0\n"].concat();
        assert_eq!(judge(&two, b"body", 2), (0, 1));
        let mixed = [b"body".as_slice(), b"body", GOOD, GOOD].concat();
        assert_eq!(judge(&mixed, b"body", 2), (0, 2));
        for (wrong, bytes) in [
            (2, [b"bodx", GOOD, b"body", GOOD].concat()),
            (1, [b"body", GOOD, b"bodx", GOOD].concat()),
            (1, [b"body", GOOD, b"body", b"\nanswer 404 4 0\n"].concat()),
            (1, [b"body", GOOD, b"body", b"\nanswer 200 3 0\n"].concat()),
            (1, [b"body", GOOD].concat()),
            (1, [b"body", GOOD, b"body", GOOD, b"x"].concat()),
            (1, [b"body", GOOD, b"body", GOOD, b"body", GOOD].concat()),
            (2, Vec::new()),
        ] {
            assert_eq!(judge(&bytes, b"body", 2).0, wrong, "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn the_time_of_children_is_found_behind_a_name_with_spaces_and_parentheses() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 2 3 4 50 60 70 80 20 0 1 0 100";
        assert_eq!(ticks_of_children(stat), Some(150));
        assert_eq!(ticks_of_children("7 (x) S 1"), None);
    }

    #[test]
    fn a_program_that_does_not_know_the_option_is_a_reason_and_not_a_failure() {
        let run_script = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            child::run(command, &Interruption::default()).expect("there is a shell")
        };
        let reason = unable(&run_script("echo 'curl: option --parallel: is unknown' >&2; exit 2"));
        assert!(reason.is_some_and(|reason| reason.contains("--parallel") && reason.contains("7.67")));
        assert_eq!(unable(&run_script("echo 'curl: (7) refused' >&2; exit 7")), None);
    }

    #[test]
    fn curl_makes_the_requests_and_a_wrong_body_is_seen() {
        let Tool::Curl(curl) = Tool::find() else {
            eprintln!("skipped: this machine has no curl");
            return;
        };
        let content = Content::random(512, 3).expect("a little memory");
        let shelf = Shelf::new([("small".into(), content.clone())], 0).expect("a little memory");
        let mut server = Server::new(Kernel::new().expect("an epoll"), Limits::default());
        let to = SocketAddr::from(([127, 0, 0, 1], 41_403));
        server.offer(to, Arc::new(Http::new(Arc::new(shelf)))).expect("the port is free");
        let stop = server.stop().expect("a waker");
        let thread = std::thread::spawn(move || server.run().expect("the network stays"));
        let mut body = vec![0; 512];
        content.file.read_exact_at(&mut body, 0).expect("memory");
        let interruption = Interruption::default();
        let ask = |path: &str, body: &[u8]| {
            run(&curl, &Order { to, path, body, requests: 333, connections: 10 }, &interruption)
        };
        match ask("/small", &body).expect("the server answers") {
            Ok(parallel) => {
                assert_eq!((parallel.requests, parallel.wrong), (333, 0));
                assert!(parallel.connections >= 1 && parallel.rate() > 0.0, "{parallel:?}");
                body[511] ^= 1;
                let spoilt = ask("/small", &body).expect("the server answers").expect("it could before");
                assert_eq!(spoilt.wrong, 333);
                assert!(ask("/none", &body).is_err());
            }
            Err(reason) => eprintln!("skipped: {reason}"),
        }
        stop.stop();
        thread.join().expect("it ended");
    }
}
