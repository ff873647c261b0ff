//! `xylem wire` from a user's view: two kernel hosts in namespaces of their own with the real program between them, and what
//! it says when it cannot carry. That a seed decides as in the simulator is the carrier's own test, frame by frame.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}

use kernel::place::{answer, ask, content, skipped};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use xylem_host::namespace::{Level, Namespace, privilege};
use xylem_host::veth;

const PROGRAM: &str = env!("CARGO_BIN_EXE_xylem");
const HOSTS: [&str; 2] = ["10.80.0.1", "10.80.0.2"];

/// Two hosts, each on a cable to the middle, where the wire's interfaces `left` and `right` are.
struct Place {
    hosts: [Namespace; 2],
    middle: Namespace,
}

fn place(test: &str) -> Option<Place> {
    let privilege = privilege();
    if privilege.level != Level::Root {
        skipped(test, &privilege.reason);
        return None;
    }
    let namespace = || {
        let namespace = Namespace::create().expect("root makes namespaces");
        // The kernel says nothing of its own there, so that every frame is one of the test's.
        let quiet = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let _ = namespace.enter(quiet).expect("root enters");
        namespace
    };
    let place = Place { hosts: [namespace(), namespace()], middle: namespace() };
    for ((host, address), name) in place.hosts.iter().zip(HOSTS).zip(["left", "right"]) {
        let (near, far) = veth::join((host, "host"), (&place.middle, name)).expect("root may");
        near.add_address(address.parse::<IpAddr>().expect("an address"), 24).expect("root may");
        for end in [&near, &far] {
            end.set_up(true).expect("root may");
        }
        assert!(near.wait_until_running(Duration::from_secs(20)).expect("it is there"));
    }
    Some(place)
}

/// A running wire that has said it is ready.
struct Wire {
    child: Child,
    lines: BufReader<ChildStdout>,
    ready: Value,
}

impl Wire {
    fn start(place: &Place, arguments: &[&str]) -> Wire {
        let mut command = place.middle.command(PROGRAM).expect("a descriptor");
        command.args(["wire", "left", "right", "--json"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
        Wire { child, lines, ready }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// What it says at its end.
    fn result(mut self) -> Value {
        let mut text = String::new();
        self.lines.read_to_string(&mut text).expect("it ends");
        assert_eq!(self.child.wait().expect("it was started").code(), Some(0));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("expected a number, got {value}"))
}

#[test]
fn the_kernels_tcp_survives_and_every_frame_is_accounted_for() {
    let test = "the_kernels_tcp_survives_and_every_frame_is_accounted_for";
    let Some(place) = place(test) else { return };
    let link = ["delay=1ms", "jitter=200us", "loss=1%", "duplicate=0.5%", "reorder=1%", "corrupt=0.2%", "seed=11"];
    let wire = Wire::start(&place, &link);
    assert_eq!((&wire.ready["ready"], &wire.ready["left"]), (&true.into(), &"left".into()));
    assert!(wire.ready["links"][0].as_str().expect("text").contains("loss=1%"), "{}", wire.ready);
    let bytes = content(8 << 20, 3);
    let at: SocketAddr = format!("{}:7", HOSTS[1]).parse().expect("an address");
    let listener = place.hosts[1].enter(|| TcpListener::bind(at).expect("the port is free")).expect("root enters");
    std::thread::scope(|scope| {
        let server = scope.spawn(move || answer(listener.accept().expect("a connection").0));
        let stream = place.hosts[0].enter(|| TcpStream::connect(at).expect("it listens")).expect("root enters");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        ask(stream, &bytes);
        server.join().expect("the server does not panic");
    });
    wire.signal(rustix::process::Signal::TERM);
    let result = wire.result();
    for way in result["ways"].as_array().expect("two ways") {
        let of = |name: &str| number(&way[name]);
        assert_eq!(of("frames_in") + of("duplicated"), of("frames_out") + of("lost") + of("in_flight"), "{way}");
        // Some five thousand full frames one way and their acknowledgments back: each was cut before the link.
        assert!(of("frames_in") > 500 && of("too_big") == 0 && of("unreadable") == 0, "{way}");
        let (lost, sent) = (of("lost") * 1000, of("frames_in"));
        assert!(lost > sent * 4 && lost < sent * 20, "1 % of {sent} were lost as {lost} thousandths");
        assert!(of("duplicated") > 0 && of("reordered") > 0, "{way}");
    }
    let cut = number(&result["ways"][0]["cut"]) + number(&result["ways"][1]["cut"]);
    assert!(cut > 0, "the kernel's large messages were cut: {result}");
    assert!(result["processor_share"].as_f64().is_some_and(|share| share > 0.0), "{result}");
}

#[test]
fn ways_differ_where_they_are_told_to_and_a_seed_loses_the_same_datagrams_again() {
    let test = "ways_differ_where_they_are_told_to_and_a_seed_loses_the_same_datagrams_again";
    // So few that the receivers' own buffers hold them all: the kernel counts near a kilobyte for each.
    const COUNT: u16 = 150;
    let run = |arguments: &[&str]| {
        let place = place(test)?;
        let sockets = [0, 1].map(|host| {
            let bind = || UdpSocket::bind((HOSTS[host], 9)).expect("the port is free");
            place.hosts[host].enter(bind).expect("root enters")
        });
        // Who has which link address is said, so that no question of the kernel's draws on the link's chance.
        let know = |host: usize| {
            let hardware = |of: usize| {
                let open = || xylem_host::interface::Interface::open("host").expect("it is there");
                place.hosts[of].enter(open).expect("root enters")
            };
            let other = hardware(1 - host).hardware_address().expect("it has one");
            hardware(host).set_neighbour(HOSTS[1 - host].parse().expect("an address"), other).expect("root may");
        };
        [0, 1].into_iter().for_each(know);
        let wire = Wire::start(&place, arguments);
        for from in [0, 1] {
            for number in 0..COUNT {
                let sent = sockets[from].send_to(&number.to_be_bytes(), (HOSTS[1 - from], 9)).expect("it is near");
                assert_eq!(sent, 2);
            }
        }
        // Each way says how many to wait for; what was lost never comes.
        let heard = sockets.each_ref().map(|socket| {
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout");
            let mut numbers = Vec::new();
            let mut bytes = [0; 2];
            while numbers.last() != Some(&(COUNT - 1)) && socket.recv(&mut bytes).is_ok() {
                numbers.push(u16::from_be_bytes(bytes));
            }
            numbers
        });
        wire.signal(rustix::process::Signal::INT);
        Some((heard, wire.result()))
    };
    let Some((heard, result)) = run(&["loss=20%", "--back", "loss=5%", "--seed", "7", "--spin"]) else { return };
    assert_eq!([0, 1].map(|way| number(&result["ways"][way]["frames_in"])), [u64::from(COUNT); 2]);
    let lost = [0, 1].map(|way| number(&result["ways"][way]["lost"]));
    assert!((15..50).contains(&lost[0]) && (1..20).contains(&lost[1]), "{lost:?} of {COUNT}");
    assert_eq!([heard[1].len(), heard[0].len()].map(|got| u64::from(COUNT) - got as u64), lost);
    let again = run(&["loss=20%", "--back", "loss=5%", "--seed", "7"]).expect("it ran before");
    assert_eq!(again.0, heard, "the same seed lost others");
    let other = run(&["loss=20%", "--back", "loss=5%", "--seed", "8"]).expect("it ran before");
    assert_ne!(other.0, heard, "another seed lost the same");
}

#[test]
fn it_ends_by_itself_and_says_for_people_what_it_did() {
    let test = "it_ends_by_itself_and_says_for_people_what_it_did";
    let Some(place) = place(test) else { return };
    let mut command = place.middle.command(PROGRAM).expect("a descriptor");
    let output = command.args(["wire", "left", "right", "mtu=1000", "--seconds", "1"]).output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    for words in
        ["ready: left and right joined: mtu=1000 (seed 1", "note: `left` has an MTU of 1500", "left > right: 0"]
    {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    assert!(text.contains("of a processor") && output.stderr.is_empty(), "{text}");
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected_and_the_mend() {
    let refused = |mut command: Command, arguments: &[&str], words: &[&str]| {
        let output = command.arg("wire").args(arguments).output().expect("the program starts");
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty() && words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    };
    for (arguments, words) in [
        (&["one", "one"][..], &["another interface", "`one` twice"][..]),
        (&["one", "two", "loss=2"], &["expected a percentage", "got `2`", "--help"]),
        (&["one", "two", "--back", "rate=fast"], &["expected a rate", "got `fast`"]),
        (&["one", "two", "speed=1"], &["NAME=VALUE", "got `speed=1`"]),
        (&["one", "two", "--seconds", "0"], &["--seconds", "0"]),
        (&["one", "two", "--left-namespace", "no-such"], &["namespace `no-such`", "ip netns"]),
    ] {
        refused(Command::new(PROGRAM), arguments, words);
    }
    let Some(place) = place("what_is_wrong_is_said_with_what_was_expected_and_the_mend") else { return };
    veth::join((&place.middle, "one"), (&place.middle, "two")).expect("root may").0.set_up(true).expect("root may");
    let inside = || place.middle.command(PROGRAM).expect("a descriptor");
    refused(inside(), &["left", "nowhere"], &["`nowhere`", "no such interface"]);
    refused(inside(), &["left", "lo"], &["`lo`", "expected an Ethernet"]);
    refused(inside(), &["left", "two"], &["`two`", "ip link set two up"]);
    let up = || xylem_host::interface::Interface::open("two").expect("it is there").set_up(true).expect("root may");
    place.middle.enter(up).expect("root enters");
    refused(inside(), &["one", "two"], &["ends of two cables", "second pair"]);
}
