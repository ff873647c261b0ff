//! What the tests of this crate share: a namespace of their own, and one way to say that a test could not run.

use crate::interface::Interface;
use crate::namespace::{Level, Namespace, privilege};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

/// How often a waker was called.
#[derive(Default)]
pub(crate) struct Called(std::sync::atomic::AtomicUsize);

impl Called {
    pub fn count(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl std::task::Wake for Called {
    fn wake(self: std::sync::Arc<Called>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A waker that counts its calls.
pub(crate) fn counting_waker() -> (std::task::Waker, std::sync::Arc<Called>) {
    let called = std::sync::Arc::<Called>::default();
    (std::sync::Arc::clone(&called).into(), called)
}

/// Says on stderr that `test` did not run and why. Where CI is set a test that cannot run has failed.
pub(crate) fn skipped(test: &str, reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{test} could not run: {reason}");
    // Past the test harness, which swallows what passing tests print; in one write, so that lines stay whole.
    let line = format!("SKIPPED: {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// True if this process may do everything; otherwise the test has been reported as skipped.
pub(crate) fn is_root(test: &str) -> bool {
    let privilege = privilege();
    let root = privilege.level == Level::Root;
    if !root {
        skipped(test, &privilege.reason);
    }
    root
}

/// A network namespace for one test, gone with it; `None` if the test has been reported as skipped.
pub(crate) fn namespace(test: &str) -> Option<Namespace> {
    if !is_root(test) {
        return None;
    }
    let namespace = Namespace::create().expect("root makes namespaces");
    // Tests pull cables and change addresses: an error of ours may not do that to the machine they run on.
    let network = || std::fs::read_link("/proc/thread-self/ns/net").expect("/proc is mounted");
    assert_ne!(namespace.enter(network).expect("root enters"), network(), "a test would change the machine's network");
    Some(namespace)
}

/// The same for a test that opens TAPs: root in a user namespace may still not open the device node.
pub(crate) fn namespace_with_taps(test: &str) -> Option<Namespace> {
    let node = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = node {
        skipped(test, &format!("/dev/net/tun: {error}"));
        return None;
    }
    namespace(test)
}

/// The same, where the kernel says nothing of its own on a new cable, so that every frame is one of the test's.
pub(crate) fn quiet_namespace(test: &str) -> Option<Namespace> {
    let namespace = namespace(test)?;
    let quiet = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    // A kernel without IPv6 has nothing to say either.
    let _ = namespace.enter(quiet).expect("root enters");
    Some(namespace)
}

/// Brings both ends of a cable up and waits until it carries frames.
pub(crate) fn plug_in(ends: [&Interface; 2]) {
    for end in ends {
        end.set_up(true).expect("root may");
    }
    for end in ends {
        assert!(end.wait_until_running(Duration::from_secs(20)).expect("it is there"), "`{}` does not run", end.name());
    }
}
