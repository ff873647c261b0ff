//! One run of a script: a stack on a link to the script, the descriptors on it, and the clock. Time passes when the script
//! waits for it, from one thing that is due to the next, and a microsecond with every look at the clock; meanwhile
//! threads that are blocked in a call see each moment before the next one comes.

use crate::flags::Flags;
use crate::lock;
use crate::sysctl::Choices;
use crate::wire::{Wire, WireEnd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xylem::{catalogue, graphs};
use xylem_core::Instant;
use xylem_core::time::earlier;
use xylem_graph::file::Value;
use xylem_graph::instance::{Limits, Wake};
use xylem_host::clock::Hands;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_posix::{Descriptors, Errno};

/// When runs begin, by the stack's clock: not at its zero, as real hosts do not.
const BEGIN: Duration = Duration::from_secs(1000);
/// What passes with every look at the clock, so that whoever waits by looking sees it move.
const LOOK: Duration = Duration::from_micros(1);
/// How far time moves when nobody has anything to do.
const IDLE_STEP: Duration = Duration::from_millis(50);
/// How long, of real time, a thread that was called may take to see what for.
const SETTLE_MAX: Duration = Duration::from_secs(2);
/// Where descriptors begin: behind the three that every process has.
const FIRST_DESCRIPTOR: i32 = 3;
/// The file with Linux's settings by name.
const SYSCTL_VARIABLE: &str = "PD_SYSCTL";
/// What one run may take.
const LIMITS: Limits = Limits { paths: 1024, enables: 256, small_buffers: 16_384, large_buffers: 512 };
/// The most turns in a row at one moment: more is a stack that never comes to an end.
const TURNS_MAX: usize = 10_000;

/// See the module's text.
pub(crate) struct Instance {
    flags: Flags,
    hands: Arc<Hands>,
    wire: Arc<Wire>,
    /// The time of day when the clock stood at its beginning.
    began: Duration,
    running: Mutex<Arc<Running>>,
    /// Held by whoever moves the clock.
    driving: Mutex<()>,
}

/// A stack with its descriptors, and the settings it was made with.
pub(crate) struct Running {
    pub table: Descriptors,
    settings: Choices,
}

impl Instance {
    /// A run with these flags.
    ///
    /// # Errors
    /// Why there is no stack of that kind, in words.
    pub fn new(flags: Flags) -> Result<Instance, String> {
        let hands = Hands::new();
        hands.advance(Instant::ZERO + BEGIN);
        let wire = Arc::<Wire>::default();
        let running = Running::new(&flags, &hands, &wire, read_settings())?;
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let running = Mutex::new(Arc::new(running));
        Ok(Instance { flags, hands, wire, began, running, driving: Mutex::default() })
    }

    /// The descriptors as they are now.
    pub fn running(&self) -> Arc<Running> {
        Arc::clone(&lock(&self.running))
    }

    /// Lets a call do its work on the descriptors, and what follows from it at this moment.
    pub fn call<T>(&self, work: impl FnOnce(&Descriptors) -> Result<T, Errno>) -> Result<T, Errno> {
        let running = self.running();
        running.table.stack().arrive();
        let answer = work(&running.table);
        self.turn();
        answer
    }

    /// socket(2), by the settings as they are now: other ones make another stack, unless the one there is in use.
    pub fn socket(&self, domain: i32, kind: i32, protocol: i32) -> Result<i32, Errno> {
        let settings = read_settings();
        let mut running = lock(&self.running);
        if running.settings != settings && running.table.is_empty() {
            match Running::new(&self.flags, &self.hands, &self.wire, settings) {
                Ok(fresh) => *running = Arc::new(fresh),
                Err(reason) => {
                    eprintln!("libxylem_packetdrill: {SYSCTL_VARIABLE}: {reason}");
                    return Err(Errno(libc::EINVAL));
                }
            }
        }
        drop(running);
        self.call(|table| table.socket(domain, kind, protocol))
    }

    /// A packet of the script arrives.
    pub fn send(&self, packet: &[u8]) -> Result<(), Errno> {
        let running = self.here();
        if packet.is_empty() {
            return Err(Errno(libc::EINVAL));
        }
        if !self.wire.send(packet.to_vec()) {
            return Err(Errno(libc::ENOBUFS));
        }
        self.turn();
        running.table.stack().settle(SETTLE_MAX);
        Ok(())
    }

    /// The next packet that leaves, with its time of day in microseconds. If none is on its way, time goes on to the next
    /// thing that is due, and so on, for as long as the flags have patience; a moment passes if nothing is due at all.
    pub fn receive(&self) -> Option<(i64, Vec<u8>)> {
        let running = self.here();
        let _driving = lock(&self.driving);
        let end = self.hands.now() + self.flags.patience;
        loop {
            self.finish_moment(&running);
            if let Some((left, packet)) = self.wire.receive() {
                return Some((self.time_of_day(left), packet));
            }
            match self.next(&running).filter(|next| *next <= end) {
                Some(next) => self.hands.advance(next),
                None => {
                    let idle = self.hands.now() + IDLE_STEP;
                    self.hands.advance(self.next(&running).map_or(idle, |next| next.min(idle)));
                    return None;
                }
            }
        }
    }

    /// Lets time pass.
    pub fn sleep(&self, span: Duration) {
        let running = self.here();
        let _driving = lock(&self.driving);
        self.pass(&running, span);
    }

    /// The time of day by this clock, in microseconds. Looking takes one.
    pub fn look(&self) -> i64 {
        let running = self.running();
        let before = self.hands.now();
        if running.table.stack().arrive() {
            // A thread that comes back from a call it was blocked in asks when that was: before it was waited for no more.
            return self.time_of_day(before);
        }
        // Whoever moves the clock at the moment lets it pass anyway.
        if let Ok(_driving) = self.driving.try_lock() {
            self.pass(&running, LOOK);
        }
        self.time_of_day(self.hands.now())
    }

    /// Ends the run: blocked calls return, and nothing is left.
    pub fn end(&self) {
        let running = self.running();
        running.table.stack().stop();
        running.table.close_all();
    }

    /// The descriptors, for a call of the thread that moves the clock.
    fn here(&self) -> Arc<Running> {
        let running = self.running();
        running.table.stack().arrive();
        running.table.stack().drive_from_here();
        running
    }

    fn pass(&self, running: &Running, span: Duration) {
        let end = self.hands.now() + span;
        loop {
            self.finish_moment(running);
            match self.next(running).filter(|next| *next < end) {
                Some(next) => self.hands.advance(next),
                None => break,
            }
        }
        self.hands.advance(end);
        self.finish_moment(running);
    }

    /// Everything happens that happens now, in the stack and in the threads that wait for it.
    fn finish_moment(&self, running: &Running) {
        let stack = running.table.stack();
        for _ in 0..TURNS_MAX {
            stack.turn();
            stack.settle(SETTLE_MAX);
            let is_due = match stack.wake() {
                Wake::Now => true,
                Wake::At(at) => at <= self.hands.now(),
                Wake::Never => false,
            };
            if !is_due {
                return;
            }
        }
    }

    /// What the stack has to do now, unless somebody sees to that.
    fn turn(&self) {
        if let Ok(_driving) = self.driving.try_lock() {
            self.running().table.stack().turn();
        }
    }

    /// When something is due next.
    fn next(&self, running: &Running) -> Option<Instant> {
        let stack = match running.table.stack().wake() {
            Wake::Now => Some(self.hands.now()),
            Wake::At(at) => Some(at),
            Wake::Never => None,
        };
        earlier(stack, self.hands.next())
    }

    fn time_of_day(&self, at: Instant) -> i64 {
        let since = at.since(Instant::ZERO + BEGIN);
        i64::try_from((self.began + since).as_micros()).unwrap_or(i64::MAX)
    }
}

impl Running {
    fn new(flags: &Flags, hands: &Arc<Hands>, wire: &Arc<Wire>, settings: Choices) -> Result<Running, String> {
        let mut graph = graphs::builtin("point").ok_or("the graph `point` is missing")?;
        let mut options = vec![
            ("ip", "address", Value::Text(format!("{}/{}", flags.address, network_bits(flags)))),
            ("ip", "gateway", Value::Text(neighbour(flags).to_string())),
            ("link0", "mtu", Value::Size(flags.mtu.into())),
        ];
        options.extend(settings.options.iter().map(|(option, value)| ("tcp", *option, value.clone())));
        for (node, option, value) in options {
            graph.set(node, option, value).map_err(|error| error.to_string())?;
        }
        let stack = Stack::builder()
            .graph(graph)
            .catalogue(catalogue::builtin())
            .device(WireEnd::new(Arc::clone(wire), flags.mtu))
            .limits(LIMITS)
            .clock(hands.clock())
            .shell(Shell::Driven);
        let stack = stack.build().map_err(|error| error.to_string())?;
        let table = Descriptors::new(stack, FIRST_DESCRIPTOR);
        table.set_defaults(settings.defaults.clone());
        Ok(Running { table, settings })
    }
}

/// A network needs a second host, which is where everything else is sent: to the one other end, whatever it is called.
fn network_bits(flags: &Flags) -> u8 {
    flags.prefix.clamp(1, 30)
}

/// Some other host of our network: the one whose number differs in the last bit but one, which is never all ones or
/// zeros where ours is not.
fn neighbour(flags: &Flags) -> std::net::Ipv4Addr {
    let ours = u32::from(flags.address);
    let mask = u32::MAX >> network_bits(flags);
    let is_host = |address: u32| address & mask != 0 && address & mask != mask;
    let other = [1, 2, 3, 4].map(|bits| ours ^ bits).into_iter().find(|other| is_host(*other));
    std::net::Ipv4Addr::from(other.unwrap_or(ours ^ 1))
}

/// Linux's settings by name, if there is a file of them that can be read.
fn read_settings() -> Choices {
    let path = std::env::var_os(SYSCTL_VARIABLE);
    let text = path.and_then(|path| std::fs::read_to_string(path).ok());
    text.map_or_else(Choices::default, |text| Choices::read(&text))
}
