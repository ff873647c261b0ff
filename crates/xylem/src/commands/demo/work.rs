//! The work of a turn, from the client's side: fetch a large file, upload one, make many small requests. The real curl
//! transfers the files where the machine has it; without it a few lines over the same kernel's sockets do. Every byte is
//! compared by its digest, and what both processors did meanwhile is written down.

use super::child;
use super::content::{Content, Shelf, sum_of, wipe};
use super::load::Load;
use super::mill::{self, Milled, Order};
use super::parallel::{self, Parallel};
use crate::commands::interruption::Interruption;
use crate::net::kernel::Kernel;
use crate::net::xylem::{Idle, Xylem};
use crate::place::{Processors, failed, server_at};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xylem_host::namespace::Namespace;
use xylem_host::pin;
use xylem_host::stack::Stack;

/// How long one transfer may take before it is given up.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(100);

/// How the files are transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    /// By the curl that stands here.
    Curl(PathBuf),
    /// By sockets of this program.
    BuiltIn,
}

impl Tool {
    /// The curl on the search path, if there is one.
    pub fn find() -> Tool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let curl = std::env::split_paths(&path).map(|folder| folder.join("curl")).find(|file| file.is_file());
        curl.map_or(Tool::BuiltIn, Tool::Curl)
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Curl(_) => "curl",
            Tool::BuiltIn => "built-in client",
        }
    }
}

/// One transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The bytes of the file.
    pub bytes: u64,
    /// The client's time for it, from its first step to its last byte.
    pub seconds: f64,
    /// Every byte arrived, and none other.
    pub right: bool,
    /// What the client's and the server's processors did meanwhile, where they are known.
    pub loads: Option<[Load; 2]>,
}

impl Transfer {
    /// Bits of the file per second, in millions.
    pub fn megabits(&self) -> f64 {
        self.bytes as f64 * 8.0 / 1e6 / self.seconds.max(1e-9)
    }
}

/// Where a client lives.
#[derive(Clone, Copy)]
pub enum Home<'a> {
    /// On the kernel's sockets of this namespace.
    Kernel(&'a Namespace),
    /// On this stack, where there is no TAP to the kernel.
    Xylem(&'a Stack),
}

/// The client's side of a turn.
pub struct Client<'a> {
    /// Where it lives.
    pub home: Home<'a>,
    /// How it transfers files, if it lives on the kernel's sockets.
    pub tool: &'a Tool,
    /// Where both ends run.
    pub processors: Processors,
    /// Whether the user has had enough.
    pub interruption: &'a Interruption,
    /// Memory for what is fetched.
    pub room: &'a Content,
}

impl Client<'_> {
    /// Fetches the file of this name, which should be `expected`.
    ///
    /// # Errors
    /// The transfer failed.
    pub fn download(&self, name: &str, expected: &Content) -> io::Result<Transfer> {
        wipe(&self.room.file, expected.length)?;
        let into = OpenOptions::new().write(true).open(self.room.path())?;
        let fetch = || match (self.home, self.tool) {
            (Home::Kernel(_), Tool::Curl(curl)) => {
                let mut command = Command::new(curl);
                command.stdout(Stdio::from(into));
                self.curl(command, &[], name)
            }
            (Home::Kernel(_), Tool::BuiltIn) => fetch(|| TcpStream::connect(server_at()), name, expected.length, &into),
            (Home::Xylem(stack), _) => {
                fetch(|| xylem_host::net::TcpStream::connect_on(stack, server_at()), name, expected.length, &into)
            }
        };
        let (seconds, loads) = self.measured(fetch)?;
        let right = sum_of(&self.room.file, expected.length)? == expected.sum;
        Ok(Transfer { bytes: expected.length, seconds, right, loads })
    }

    /// Uploads `content` to `shelf`'s server.
    ///
    /// # Errors
    /// The transfer failed.
    pub fn upload(&self, content: &Content, shelf: &Shelf) -> io::Result<Transfer> {
        let send = || match (self.home, self.tool) {
            (Home::Kernel(_), Tool::Curl(curl)) => {
                let mut command = Command::new(curl);
                command.stdout(Stdio::null());
                let path = content.path();
                self.curl(command, &["--upload-file", path.to_str().unwrap_or_default()], "upload")
            }
            (Home::Kernel(_), Tool::BuiltIn) => send(|| TcpStream::connect(server_at()), content),
            (Home::Xylem(stack), _) => send(|| xylem_host::net::TcpStream::connect_on(stack, server_at()), content),
        };
        let (seconds, loads) = self.measured(send)?;
        let right = shelf.take_upload()? == Some((content.length, content.sum));
        Ok(Transfer { bytes: content.length, seconds, right, loads })
    }

    /// Makes many small requests at once.
    ///
    /// # Errors
    /// A connection failed.
    pub fn requests(&self, name: &str, content: &Content, requests: usize, connections: usize) -> io::Result<Milled> {
        let body = body_of(content)?;
        let order = Order { to: server_at(), path: &format!("/{name}"), body: &body, requests, connections };
        self.inside(|| match self.home {
            Home::Kernel(_) => mill::run(&mut Kernel::new()?, &order, self.interruption),
            Home::Xylem(stack) => mill::run(&mut Xylem::new(stack, Idle::Sleep)?, &order, self.interruption),
        })
    }

    /// Makes many small requests at once with the real curl; or says why there is no such work here.
    ///
    /// # Errors
    /// curl failed.
    pub fn requests_by_curl(
        &self,
        name: &str,
        content: &Content,
        requests: usize,
        connections: usize,
    ) -> io::Result<Result<Parallel, String>> {
        let curl = match (self.home, self.tool) {
            (Home::Kernel(_), Tool::Curl(curl)) => curl,
            (Home::Kernel(_), Tool::BuiltIn) => return Ok(Err("this machine has no curl".into())),
            (Home::Xylem(_), _) => return Ok(Err("curl does not reach an in-process wire".into())),
        };
        let body = body_of(content)?;
        let order = Order { to: server_at(), path: &format!("/{name}"), body: &body, requests, connections };
        self.inside(|| parallel::run(curl, &order, self.interruption))
    }

    /// Runs `work` on the client's processor, in its namespace.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let pinned = || {
            if let Some(cpu) = self.processors.client {
                pin::pin(cpu).map_err(|error| io::Error::other(error.to_string()))?;
            }
            work()
        };
        self.interruption.check()?;
        match self.home {
            Home::Kernel(namespace) => {
                namespace.enter(pinned).map_err(|error| failed("enter the client's namespace")(&error))?
            }
            Home::Xylem(_) => pinned(),
        }
    }

    fn measured(&self, work: impl FnOnce() -> io::Result<f64> + Send) -> io::Result<(f64, Option<[Load; 2]>)> {
        let Processors { client, server } = self.processors;
        let loads = || Some([Load::of(client?)?, Load::of(server?)?]);
        let before = loads();
        let seconds = self.inside(work)?;
        let span = |(before, after): ([Load; 2], [Load; 2])| [after[0] - before[0], after[1] - before[1]];
        Ok((seconds, before.zip(loads()).map(span)))
    }

    /// Runs curl; the seconds it took by its own clock.
    fn curl(&self, mut command: Command, arguments: &[&str], name: &str) -> io::Result<f64> {
        // The user's own settings (a proxy, a rate) are not for this.
        command.args(["--disable", "--silent", "--show-error", "--fail", "--noproxy", "*"]);
        command.args(["--max-time", &TRANSFER_TIME_MAX.as_secs().to_string()]);
        command.args(["--write-out", "%{stderr}\ntook %{time_total}\n"]);
        command.args(arguments).arg(format!("http://{}/{name}", server_at()));
        let ended = child::run(command, self.interruption)?;
        if !ended.status.success() {
            let said = ended.said.lines().find(|line| line.starts_with("curl")).unwrap_or("it said nothing");
            return Err(io::Error::other(format!("curl, {}: {said}", ended.status)));
        }
        let took = ended.said.lines().find_map(|line| line.strip_prefix("took ")?.parse().ok());
        took.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "this curl does not say how long it took"))
    }
}

/// The bytes of a small file.
fn body_of(content: &Content) -> io::Result<Vec<u8>> {
    let mut body = vec![0; usize::try_from(content.length).map_err(io::Error::other)?];
    content.file.read_exact_at(&mut body, 0)?;
    Ok(body)
}

/// Fetches a file over a blocking stream.
fn fetch<S: Read + Write>(
    connect: impl FnOnce() -> io::Result<S>,
    name: &str,
    length: u64,
    into: &File,
) -> io::Result<f64> {
    let begun = Instant::now();
    let mut stream = connect()?;
    stream.write_all(format!("GET /{name} HTTP/1.0\r\n\r\n").as_bytes())?;
    let (mut buffer, mut filled) = (vec![0; 256 << 10], 0);
    // The head first: it ends within the first buffer.
    let front = loop {
        let count = stream.read(&mut buffer[filled..])?;
        filled += count;
        if let Some(at) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if count == 0 || filled == buffer.len() {
            return Err(ErrorKind::InvalidData.into());
        }
    };
    into.write_all_at(&buffer[front..filled], 0)?;
    let mut at = (filled - front) as u64;
    while at < length {
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => {
                into.write_all_at(&buffer[..count], at)?;
                at += count as u64;
            }
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Uploads a file over a blocking stream.
fn send<S: Read + Write>(connect: impl FnOnce() -> io::Result<S>, content: &Content) -> io::Result<f64> {
    let begun = Instant::now();
    let mut stream = connect()?;
    let head =
        format!("PUT /upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", content.length);
    stream.write_all(head.as_bytes())?;
    let (mut buffer, mut at) = (vec![0; 256 << 10], 0);
    while at < content.length {
        let count = content.file.read_at(&mut buffer, at)?;
        stream.write_all(&buffer[..count])?;
        at += count as u64;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.starts_with("HTTP/1.1 201 ") {
        return Err(io::Error::other(format!(
            "the upload was answered `{}`",
            answer.lines().next().unwrap_or_default()
        )));
    }
    Ok(begun.elapsed().as_secs_f64())
}
