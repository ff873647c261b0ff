//! Network namespaces: a network stack of one's own for a test, a demonstration or an instance. One made here has no
//! name and leaves no trace in the file system; it lives as long as its value, or a thread, process or socket in it.
//! Without root a whole process can move into one; [`privilege`] says what this process may do.

use crate::system::namespaces;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic;
use std::path::Path;
use std::process::Command;
use std::thread;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
}

impl Namespace {
    /// A new network namespace with nothing in it but a loopback interface that is up.
    ///
    /// # Errors
    /// This process may not make namespaces, or has too many threads or open files.
    pub fn create() -> Result<Namespace, NamespaceError> {
        // A thread of its own, so that the caller stays where it is.
        on_a_thread(|| {
            namespaces::enter_new_network()?;
            Namespace::current()
        })
    }

    /// The network namespace of the calling thread.
    ///
    /// # Errors
    /// /proc is not mounted, or the process has too many open files.
    pub fn current() -> Result<Namespace, NamespaceError> {
        Namespace::open("/proc/thread-self/ns/net")
    }

    /// The network namespace that a file names: `/run/netns/NAME` of `ip netns`, or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// There is no such file, or it may not be read. That it is a network namespace is seen on entering.
    pub fn open(path: impl AsRef<Path>) -> Result<Namespace, NamespaceError> {
        let path = path.as_ref();
        match File::open(path) {
            Ok(file) => Ok(Namespace { descriptor: file.into() }),
            Err(source) => Err(NamespaceError::new(format!("open the namespace {}", path.display()), source)),
        }
    }

    /// A second value for the same namespace, for another thread.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn try_clone(&self) -> Result<Namespace, NamespaceError> {
        let descriptor = self.descriptor.try_clone();
        let descriptor = descriptor.map_err(|source| NamespaceError::new("hold the namespace".into(), source))?;
        Ok(Namespace { descriptor })
    }

    /// Runs `work` on a thread inside the namespace and returns its value. Sockets and devices opened there stay in the
    /// namespace whoever uses them later. A panic of `work` is the caller's.
    ///
    /// # Errors
    /// The thread could not be started or may not enter; then `work` did not run.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        on_a_thread(|| {
            namespaces::enter_network(self.as_fd())
                .map_err(|source| NamespaceError::new("enter the network namespace".into(), source))?;
            Ok(work())
        })
    }

    /// A command whose program runs inside the namespace. The file system it sees is unchanged: `/sys/class/net` there
    /// still lists the interfaces of the namespace in which it was mounted.
    ///
    /// # Errors
    /// The process has too many open files. That the child may not enter is the error of starting the command.
    pub fn command(&self, program: &str) -> Result<Command, NamespaceError> {
        let mut command = Command::new(program);
        namespaces::enter_before_start(&mut command, self.try_clone()?.descriptor);
        Ok(command)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, NamespaceError> + Send) -> Result<T, NamespaceError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work);
        let thread = thread.map_err(|source| NamespaceError::new("start a thread for the namespace".into(), source))?;
        thread.join().unwrap_or_else(|reason| panic::resume_unwind(reason))
    })
}

/// Moves this process, whoever runs it, into a user namespace of its own where it is root, and a new network namespace
/// in that. To be called first thing in `main`: the kernel refuses a process that has started threads.
///
/// # Errors
/// The process has threads, is in a chroot, or the system forbids user namespaces; what to do is in the message. If the
/// namespaces were made and only their setup failed, the process is in them and should end.
pub fn enter_unprivileged() -> Result<(), NamespaceError> {
    Ok(namespaces::enter_new_user_and_network()?)
}

/// What this process may do about networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Make network namespaces and everything in them, beside the existing ones.
    Root,
    /// Move itself into a user namespace by [`enter_unprivileged`] and be root there. What belongs to the machine stays
    /// closed: real interfaces, and eBPF on most systems.
    UserNamespace,
    /// Neither.
    Nothing,
}

/// What this process may do, and the line that says why.
#[derive(Clone, Debug)]
pub struct Privilege {
    /// How much it may do.
    pub level: Level,
    /// Why that much, in one line; where it is not all, with what would give more.
    pub reason: String,
}

/// Finds out what this process may do, by trying it in a child process that ends at once: capabilities alone do not
/// tell, since containers and security modules take away what they seem to give.
pub fn privilege() -> Privilege {
    let root = match namespaces::tried_in_a_child(namespaces::enter_new_network) {
        Ok(()) => return Privilege { level: Level::Root, reason: "may make network namespaces".into() },
        Err(error) => format!("not root (network namespace: {error}; needs CAP_SYS_ADMIN and CAP_NET_ADMIN)"),
    };
    match namespaces::tried_in_a_child(namespaces::enter_new_user_and_network) {
        Ok(()) => Privilege {
            level: Level::UserNamespace,
            reason: format!("{root}, but may make a user namespace to be root in"),
        },
        Err(error) => {
            let mend = mend(&error);
            Privilege {
                level: Level::Nothing,
                reason: format!("{root}, and no user namespace either ({error}): {mend}"),
            }
        }
    }
}

/// A namespace that could not be made, entered or held: what was tried, the kernel's answer, and the mend.
#[derive(Debug)]
pub struct NamespaceError {
    /// What was tried.
    pub step: String,
    /// The system call's error.
    pub source: io::Error,
}

impl NamespaceError {
    fn new(step: String, source: io::Error) -> NamespaceError {
        NamespaceError { step, source }
    }
}

impl From<namespaces::Failed> for NamespaceError {
    fn from(failed: namespaces::Failed) -> NamespaceError {
        NamespaceError::new(failed.step.into(), failed.error)
    }
}

impl fmt::Display for NamespaceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.step, self.source, mend(&self.source))
    }
}

impl std::error::Error for NamespaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// What to do about an error, as unshare(2) and setns(2) explain them.
fn mend(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN), or allow user namespaces \
             (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, a container's filter)"
        }
        Some(libc::EINVAL) => {
            "call it before any thread is started, with a namespace of the right kind, on a kernel with namespaces"
        }
        Some(libc::ENOSPC | libc::EUSERS) => "raise user.max_user_namespaces and user.max_net_namespaces",
        Some(libc::ENOENT) => "the name must exist, and /proc be mounted",
        Some(libc::EMFILE | libc::ENFILE) => "allow more open files (ulimit -n)",
        Some(libc::EAGAIN) => "allow more threads (ulimit -u)",
        _ => "see unshare(2) and setns(2)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::namespaces::tests::enter_unprivileged_before_start;
    use crate::testing;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
    use std::os::unix::process::CommandExt;

    /// The interfaces of a namespace: /proc/net/dev has two lines of headings, then a line each.
    fn interfaces(listing: &str) -> Vec<String> {
        listing.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_string())).collect()
    }

    #[test]
    fn a_new_namespace_has_a_loopback_that_is_up_and_nothing_else() {
        let Some(namespace) = testing::namespace("a_new_namespace_has_a_loopback_that_is_up_and_nothing_else") else {
            return;
        };
        let heard = namespace.enter(|| {
            let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 4000)).expect("the address is there");
            let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the address is there");
            sender.send_to(b"hello", (Ipv4Addr::LOCALHOST, 4000)).expect("loopback is up");
            let mut bytes = [0u8; 16];
            let count = receiver.recv(&mut bytes).expect("loopback delivers");
            let listing = std::fs::read_to_string("/proc/thread-self/net/dev").expect("/proc is mounted");
            assert_eq!(interfaces(&listing), ["lo"]);
            bytes[..count].to_vec()
        });
        assert_eq!(heard.expect("root enters"), b"hello");
    }

    #[test]
    fn the_same_port_is_free_in_two_namespaces_and_sockets_stay_where_they_were_made() {
        let test = "the_same_port_is_free_in_two_namespaces_and_sockets_stay_where_they_were_made";
        let (Some(one), Some(two)) = (testing::namespace(test), testing::namespace(test)) else {
            return;
        };
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, 4000).into();
        let listen = || TcpListener::bind(address).expect("the port is free");
        let (_first, second) = (one.enter(listen).expect("root enters"), two.enter(listen).expect("root enters"));
        let connected = two.enter(|| TcpStream::connect(address).expect("it listens")).expect("root enters");
        let (_, peer) = second.accept().expect("the connection is in the second namespace");
        assert_eq!(peer, connected.local_addr().expect("it is connected"));
    }

    #[test]
    fn a_command_runs_inside_and_the_caller_stays_outside() {
        let Some(namespace) = testing::namespace("a_command_runs_inside_and_the_caller_stays_outside") else {
            return;
        };
        let outside = std::fs::read_link("/proc/thread-self/ns/net").expect("/proc is mounted");
        let mut command = namespace.command("readlink").expect("descriptors are free");
        let same = namespace.enter(|| std::fs::read_link("/proc/thread-self/ns/net")).expect("root enters");
        drop(namespace);
        let output = command.arg("/proc/self/ns/net").output().expect("the command keeps the namespace alive");
        let inside = String::from_utf8(output.stdout).expect("a link of ASCII");
        assert_eq!(inside.trim(), same.expect("/proc is mounted").to_str().expect("a link of ASCII"));
        assert_ne!(inside.trim(), outside.to_str().expect("a link of ASCII"));
        assert_eq!(std::fs::read_link("/proc/thread-self/ns/net").expect("/proc is mounted"), outside);
    }

    #[test]
    fn a_panic_inside_is_the_callers() {
        let Some(namespace) = testing::namespace("a_panic_inside_is_the_callers") else {
            return;
        };
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| namespace.enter(|| panic!("inside"))));
        assert_eq!(outcome.expect_err("it panics").downcast_ref::<&str>(), Some(&"inside"));
    }

    #[test]
    fn an_ordinary_user_becomes_root_in_a_namespace_of_its_own() {
        let test = "an_ordinary_user_becomes_root_in_a_namespace_of_its_own";
        let privilege = privilege();
        if privilege.level == Level::Nothing {
            return testing::skipped(test, &privilege.reason);
        }
        let mut command = Command::new("cat");
        command.args(["/proc/self/uid_map", "/proc/self/net/dev"]);
        if privilege.level == Level::Root {
            command.uid(65_534).gid(65_534);
        }
        enter_unprivileged_before_start(&mut command);
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => return testing::skipped(test, &format!("no user namespaces for nobody here: {error}")),
        };
        let text = String::from_utf8(output.stdout).expect("both files are ASCII");
        let (map, listing) = text.split_once('\n').expect("a map of one line");
        let map: Vec<&str> = map.split_whitespace().collect();
        assert_eq!((map[0], map[2]), ("0", "1"), "one user, who is root inside");
        assert_eq!(interfaces(listing), ["lo"]);
    }

    #[test]
    fn a_process_with_threads_is_refused_with_the_reason() {
        let outcome = thread::spawn(enter_unprivileged).join().expect("a refusal is no panic");
        let error = outcome.expect_err("this process has two threads").to_string();
        assert!(error.contains("before any thread"), "{error}");
    }

    #[test]
    fn a_missing_or_wrong_namespace_is_an_error_not_a_run() {
        let error = Namespace::open("/proc/self/ns/nothing").expect_err("no such kind").to_string();
        assert!(error.contains("/proc/self/ns/nothing"), "{error}");
        let wrong = Namespace::open("/proc/self/ns/uts").expect("it opens");
        let outcome = wrong.enter(|| unreachable!("the thread is not inside"));
        let error = outcome.expect_err("a host name namespace is not a network").to_string();
        assert!(error.contains("right kind") || error.contains("root"), "{error}");
    }
}
