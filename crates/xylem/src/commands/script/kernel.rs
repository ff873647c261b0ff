//! The kernel's TCP as the subject of scripts: a namespace with a TAP, whose other end is in the runner's hands, and kernel
//! sockets in that namespace. Time is real, so what the kernel does is seen when this thread runs.

use super::sysctls;
use super::verdict::{Verdict, judge};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};
use xylem_host::namespace::{Level, Namespace, privilege};
use xylem_host::poll::{self, Source};
use xylem_host::tap::{RECEIVE_BYTES, Tap, TapOptions};
use xylem_sim::script::{
    Arm, Claim, Ends, Outcome, PEER, PREFIX_BITS, Run, SERVER_PORT, SUBJECT, Script, Subject, Tolerance, Verb, Way,
    Wish, content_sent, content_written, run,
};
use xylem_wire::{EtherType, EthernetAddress, EthernetHeader, Header};

/// The peer's address on the link.
const PEER_HARDWARE: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 2]);
/// How long an answer of a socket may take that is due at once.
const PATIENCE: Duration = Duration::from_millis(150);
/// Between two looks at a socket.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// What our own keep-alive does, said to the kernel: seconds between probes, and how many.
const KEEP_ALIVE: (Duration, u32) = (Duration::from_secs(75), 9);

/// Whether this process can make namespaces and TAPs.
///
/// # Errors
/// Why not.
pub fn is_able() -> Result<(), String> {
    let privilege = privilege();
    if privilege.level != Level::Root {
        return Err(privilege.reason);
    }
    let node = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    node.map(|_| ()).map_err(|error| format!("/dev/net/tun: {error}"))
}

/// Runs a script against the kernel's TCP, if it claims anything about it, in a namespace of its own: what came of it, and
/// what happened if it was tried.
pub fn try_kernel(script: &Script) -> (Verdict, Option<Run>) {
    if let Claim::Skip(reason) = &script.linux {
        return (Verdict::Skipped(reason.clone()), None);
    }
    let unable = |reason: String| (Verdict::Unable(reason), None);
    let namespace = match Namespace::create() {
        Ok(namespace) => namespace,
        Err(error) => return unable(error.to_string()),
    };
    let inside = || match Kernel::new(script) {
        Ok(mut subject) => {
            let run = run(script, &mut subject);
            (judge(&script.linux, run.failure.clone()), Some(run))
        }
        Err(reason) => (Verdict::Unable(reason), None),
    };
    namespace.enter(inside).unwrap_or_else(|error| unable(error.to_string()))
}

/// See the module's text.
struct Kernel {
    tap: Tap,
    hardware: EthernetAddress,
    begin: Instant,
    listener: Option<OwnedFd>,
    sockets: BTreeMap<Ends, Socket>,
    /// Which of them have opened and were not accepted by the script yet.
    fresh: BTreeSet<Ends>,
    frame: Vec<u8>,
}

struct Socket {
    /// `None` once it was closed.
    socket: Option<OwnedFd>,
    read: u64,
    written: u64,
    /// The error it was told, which the kernel tells once.
    error: Option<Errno>,
}

impl Kernel {
    /// The calling thread is in the namespace.
    fn new(script: &Script) -> Result<Kernel, String> {
        let listing = fs::read_to_string("/proc/thread-self/net/dev").map_err(|error| error.to_string())?;
        let others = listing.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).count();
        if others > 0 {
            return Err("the namespace is not a new one; nothing was changed in it".to_owned());
        }
        sysctls::apply(&script.settings)?;
        let tap = Tap::open("xylem0", TapOptions { offloads: false, ..TapOptions::default() });
        let tap = tap.map_err(|error| error.to_string())?;
        let side = tap.kernel_side();
        let ready = || {
            side.set_mtu(script.settings.mtu.into())?;
            side.add_address(SUBJECT.into(), PREFIX_BITS)?;
            side.set_up(true)?;
            side.set_neighbour(PEER.into(), PEER_HARDWARE.0)?;
            side.hardware_address()
        };
        let hardware = EthernetAddress(ready().map_err(|error| error.to_string())?);
        let (sockets, fresh, frame) = (BTreeMap::new(), BTreeSet::new(), vec![0; RECEIVE_BYTES]);
        Ok(Kernel { tap, hardware, begin: Instant::now(), listener: None, sockets, fresh, frame })
    }

    /// The next frame that is there.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, String> {
        let vnet = self.tap.vnet_header().bytes();
        let count = self.tap.receive(&mut [IoSliceMut::new(&mut self.frame)]);
        let Some(count) = count.map_err(|error| format!("the TAP: {error}"))? else { return Ok(None) };
        let frame = self.frame.get(vnet..count).unwrap_or_default();
        Ok(match EthernetHeader::parse(frame) {
            Ok(header) if header.kind == EtherType::IPV4 => Some(frame[EthernetHeader::LEN..].to_vec()),
            // What is not IPv4 is no script's affair.
            _ => Some(Vec::new()),
        })
    }

    fn listen(&mut self, backlog: usize) -> Result<(), Errno> {
        let socket = stream_socket()?;
        net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT))?;
        net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
        self.listener = Some(socket);
        Ok(())
    }

    /// Takes over the connections that have opened.
    fn gather_opened(&mut self) -> Result<(), String> {
        let listener = self.listener.as_ref().ok_or("it does not listen")?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            match net::acceptfrom_with(listener, flags) {
                Ok((socket, Some(address))) => {
                    let address = SocketAddrV4::try_from(address).map_err(said)?;
                    sockopt::set_socket_oobinline(&socket, true).map_err(said)?;
                    let ends = Ends { subject: SERVER_PORT, peer: address.port() };
                    self.sockets.insert(ends, Socket::new(socket));
                    self.fresh.insert(ends);
                }
                Ok((_, None)) | Err(Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(said(error)),
            }
        }
    }

    fn connect(&mut self, ends: Ends) -> Result<(), Errno> {
        let socket = stream_socket()?;
        sockopt::set_socket_oobinline(&socket, true)?;
        net::bind(&socket, &SocketAddrV4::new(SUBJECT, ends.subject))?;
        match net::connect(&socket, &SocketAddrV4::new(PEER, ends.peer)) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        self.sockets.insert(ends, Socket::new(socket));
        Ok(())
    }
}

fn stream_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

fn said(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

/// Asks until the answer is yes, or patience ends: then the last answer is it.
fn patiently(mut ask: impl FnMut() -> Result<bool, String>) -> Result<bool, String> {
    let end = Instant::now() + PATIENCE;
    loop {
        if ask()? {
            return Ok(true);
        }
        if Instant::now() > end {
            return Ok(false);
        }
        thread::sleep(LOOK_EVERY);
    }
}

impl Subject for Kernel {
    fn arm(&self) -> Arm {
        Arm::Linux
    }

    /// Its timers go off on ticks of 4 ms or 10 ms; and this thread is one among many.
    fn tolerance(&self) -> Tolerance {
        Tolerance { early: Duration::from_millis(15), late: Duration::from_millis(120) }
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn next(&mut self, until: Duration) -> Result<Option<(Duration, Vec<u8>)>, String> {
        loop {
            match self.receive()? {
                Some(packet) if packet.is_empty() => continue,
                Some(packet) => return Ok(Some((self.now(), packet))),
                None => {}
            }
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                return Ok(None);
            }
            poll::wait(&mut [Source::readable(&self.tap)], Some(left)).map_err(|error| error.to_string())?;
        }
    }

    fn deliver(&mut self, packet: &[u8]) -> Result<(), String> {
        let vnet = [0; 12];
        let mut header = [0; EthernetHeader::LEN];
        let ethernet = EthernetHeader { destination: self.hardware, source: PEER_HARDWARE, kind: EtherType::IPV4 };
        ethernet.build(&mut header);
        let vnet = &vnet[..self.tap.vnet_header().bytes()];
        let slices = [IoSlice::new(vnet), IoSlice::new(&header), IoSlice::new(packet)];
        match self.tap.transmit(&slices) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the TAP takes no more".to_owned()),
            Err(error) => Err(format!("the TAP: {error}")),
        }
    }

    fn ask(&mut self, ends: Ends, verb: &Verb) -> Result<(), String> {
        match verb {
            Verb::Listen { backlog } => self.listen(*backlog).map_err(said),
            Verb::ListenNoMore => {
                self.listener = None;
                Ok(())
            }
            Verb::Accept => {
                let opened = || self.gather_opened().map(|()| self.fresh.remove(&ends));
                if patiently(opened)? { Ok(()) } else { Err("no connection has opened".to_owned()) }
            }
            Verb::AcceptNothing => {
                self.gather_opened()?;
                if self.fresh.is_empty() { Ok(()) } else { Err("a connection has opened".to_owned()) }
            }
            Verb::Connect => self.connect(ends).map_err(said),
            other => self.sockets.get_mut(&ends).ok_or("no connection")?.ask(ends, other),
        }
    }

    fn look(&mut self, ends: Ends) -> Result<(String, u32), String> {
        let table = fs::read_to_string("/proc/thread-self/net/tcp").map_err(|error| error.to_string())?;
        Ok(table.lines().find_map(|line| row(line, ends)).unwrap_or(("CLOSED".to_owned(), 0)))
    }
}

/// What a row of the kernel's table says, if it is about the connection between `ends`: its state and its congestion window.
fn row(line: &str, ends: Ends) -> Option<(String, u32)> {
    const STATES: [&str; 12] = [
        "ESTABLISHED",
        "SYN-SENT",
        "SYN-RECEIVED",
        "FIN-WAIT-1",
        "FIN-WAIT-2",
        "TIME-WAIT",
        "CLOSED",
        "CLOSE-WAIT",
        "LAST-ACK",
        "LISTEN",
        "CLOSING",
        "SYN-RECEIVED",
    ];
    let fields: Vec<&str> = line.split_whitespace().collect();
    let port = |at: usize| u16::from_str_radix(fields.get(at)?.rsplit_once(':')?.1, 16).ok();
    if (port(1)?, port(2)?) != (ends.subject, ends.peer) {
        return None;
    }
    let state = usize::from_str_radix(fields.get(3)?, 16).ok()?;
    // Connections in TIME-WAIT have no such column.
    let window = fields.get(15).and_then(|window| window.parse().ok()).unwrap_or(0);
    Some((STATES.get(state.checked_sub(1)?)?.to_string(), window))
}

impl Socket {
    fn new(socket: OwnedFd) -> Socket {
        Socket { socket: Some(socket), read: 0, written: 0, error: None }
    }

    fn fd(&self) -> Result<&OwnedFd, String> {
        self.socket.as_ref().ok_or_else(|| "it was closed".to_owned())
    }

    fn ask(&mut self, ends: Ends, verb: &Verb) -> Result<(), String> {
        match verb {
            Verb::Write { bytes, urgent } => self.write(ends, *bytes, *urgent),
            Verb::WriteFails => match net::send(self.fd()?, &[0], SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(_) => Err("it may still write".to_owned()),
                Err(_) => Ok(()),
            },
            Verb::Read(bytes) => self.read(ends, *bytes),
            Verb::ReadNothing => match self.peek()? {
                Err(Errno::AGAIN) => Ok(()),
                Ok(0) => Err("the end".to_owned()),
                Ok(_) => Err("bytes to read".to_owned()),
                Err(error) => Err(said(error)),
            },
            Verb::ReadEnd => match patiently(|| Ok(self.peek()? != Err(Errno::AGAIN))).and(self.peek())? {
                Ok(0) => Ok(()),
                Ok(_) => Err("bytes to read".to_owned()),
                Err(error) => Err(said(error)),
            },
            Verb::Close => {
                self.socket = None;
                Ok(())
            }
            Verb::Abort => {
                sockopt::set_socket_linger(self.fd()?, Some(Duration::ZERO)).map_err(said)?;
                self.socket = None;
                Ok(())
            }
            Verb::Shutdown(Way::Read) => net::shutdown(self.fd()?, Shutdown::Read).map_err(said),
            Verb::Shutdown(Way::Write) => net::shutdown(self.fd()?, Shutdown::Write).map_err(said),
            Verb::Set(wish) => self.set(*wish).map_err(said),
            Verb::Told(outcome) => self.was_told(*outcome),
            Verb::Listen { .. }
            | Verb::ListenNoMore
            | Verb::Accept
            | Verb::AcceptNothing
            | Verb::Connect
            | Verb::Opened { .. } => unreachable!("these have no socket yet"),
        }
    }

    fn write(&mut self, ends: Ends, bytes: usize, urgent: bool) -> Result<(), String> {
        let mut content = vec![0; bytes];
        content_written(ends).fill(self.written, &mut content);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let flags = if urgent { flags | SendFlags::OOB } else { flags };
        let count = net::send(self.fd()?, &content, flags).map_err(said)?;
        self.written += count as u64;
        if count < bytes { Err(format!("room for {count} bytes")) } else { Ok(()) }
    }

    fn read(&mut self, ends: Ends, bytes: usize) -> Result<(), String> {
        let mut taken = Vec::new();
        patiently(|| {
            let mut buffer = vec![0; bytes - taken.len()];
            match net::recv(self.fd()?, buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((count, _)) => taken.extend_from_slice(&buffer[..count]),
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(said(error)),
            }
            Ok(taken.len() == bytes)
        })?;
        if let Some(at) = content_sent(ends, false).differs(self.read, &taken) {
            return Err(format!("byte {} is not the one sent", at + 1));
        }
        self.read += taken.len() as u64;
        if taken.len() < bytes { Err(format!("{} bytes to read", taken.len())) } else { Ok(()) }
    }

    /// How much there is to read, without taking it.
    fn peek(&self) -> Result<Result<usize, Errno>, String> {
        let mut byte = [MaybeUninit::uninit(); 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        Ok(net::recv(self.fd()?, &mut byte[..], flags).map(|(_, count)| count))
    }

    fn set(&self, wish: Wish) -> Result<(), Errno> {
        let Some(socket) = &self.socket else { return Err(Errno::BADF) };
        match wish {
            Wish::NoDelay(on) => sockopt::set_tcp_nodelay(socket, on),
            Wish::KeepAlive(after) => {
                sockopt::set_tcp_keepidle(socket, after)?;
                sockopt::set_tcp_keepintvl(socket, KEEP_ALIVE.0)?;
                sockopt::set_tcp_keepcnt(socket, KEEP_ALIVE.1)?;
                sockopt::set_socket_keepalive(socket, true)
            }
            Wish::UserTimeout(after) => {
                sockopt::set_tcp_user_timeout(socket, u32::try_from(after.as_millis()).unwrap_or(u32::MAX))
            }
            Wish::ReceiveBuffer(bytes) => sockopt::set_socket_recv_buffer_size(socket, bytes),
            Wish::HopLimit(hops) => sockopt::set_ip_ttl(socket, hops.into()),
            Wish::TrafficClass(class) => sockopt::set_ip_tos(socket, class),
        }
    }

    fn was_told(&mut self, outcome: Outcome) -> Result<(), String> {
        let fails = !matches!(outcome, Outcome::Open | Outcome::NoError);
        let wants = |error: Option<Errno>| match outcome {
            Outcome::Open | Outcome::NoError => error.is_none(),
            Outcome::Refused => error == Some(Errno::CONNREFUSED),
            Outcome::Reset => matches!(error, Some(Errno::CONNRESET | Errno::PIPE)),
            Outcome::TimedOut => error == Some(Errno::TIMEDOUT),
            Outcome::Unreachable => matches!(error, Some(Errno::HOSTUNREACH | Errno::NETUNREACH)),
            Outcome::Failed => error.is_some(),
        };
        patiently(|| {
            if self.error.is_none() {
                self.error = sockopt::socket_error(self.fd()?).map_err(said)?.err();
            }
            Ok(!fails || self.error.is_some())
        })?;
        if outcome == Outcome::Open && self.error.is_none() {
            net::getpeername(self.fd()?).map_err(|error| format!("not open: {}", said(error)))?;
        }
        match (wants(self.error), self.error) {
            (true, _) => Ok(()),
            (false, None) => Err("told nothing".to_owned()),
            (false, Some(error)) => Err(format!("told {}", said(error))),
        }
    }
}
