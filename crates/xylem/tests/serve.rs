//! `xylem serve` from a user's view: the real program on a TAP in a namespace, the kernel's sockets as its clients, and
//! what it says when it cannot serve.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}

use kernel::place::{cable, skipped};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xylem_host::interface::Interface;
use xylem_host::namespace::Namespace;

const PROGRAM: &str = env!("CARGO_BIN_EXE_xylem");
const ADDRESS: &str = "10.79.0.2";

/// A running `xylem serve` in a namespace of its own, with the line it said when it was ready.
struct Running {
    namespace: Namespace,
    child: Child,
    ready: String,
}

impl Running {
    fn start(test: &str, arguments: &[&str]) -> Option<Running> {
        // Whether TAPs can be had here is found out by having one.
        drop(cable(test, true)?);
        let namespace = Namespace::create().expect("root makes namespaces");
        let mut command = namespace.command(PROGRAM).expect("a descriptor");
        command.args(["serve", "--device", "tap:xserve", "--address", &format!("{ADDRESS}/24")]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut ready).expect("a line");
        let address = || {
            let interface = Interface::open("xserve").expect("it was made");
            let address: IpAddr = "10.79.0.1".parse().expect("an address");
            interface.add_address(address, 24).expect("root may");
        };
        namespace.enter(address).expect("root enters");
        Some(Running { namespace, child, ready })
    }

    fn stop(mut self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
        let begun = Instant::now();
        let status = self.child.wait().expect("it was started");
        assert_eq!(status.code(), Some(0), "{signal:?}");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(port: u16) -> TcpStream {
    let at = format!("{ADDRESS}:{port}").parse().expect("an address");
    let stream = TcpStream::connect_timeout(&at, Duration::from_secs(5)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

#[test]
fn all_services_serve_many_clients_at_once_and_sigterm_ends_them_in_order() {
    let test = "all_services_serve_many_clients_at_once_and_sigterm_ends_them_in_order";
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("index.html"), "<p>here").expect("the disk has room");
    let site = format!("http={}@80", folder.path().display());
    let services = ["echo@7", "discard@9", "daytime@13", "chargen@19", &site];
    let Some(running) = Running::start(test, &services) else { return };
    assert!(running.ready.starts_with("ready: echo@7 discard@9"), "{}", running.ready);
    assert!(running.ready.contains("ip address add 10.79.0.1/24 dev xserve"), "{}", running.ready);
    let clients = || {
        let mut streams: Vec<TcpStream> = (0..400).map(|_| connect(7)).collect();
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.write_all(format!("client {number}\n").as_bytes()).expect("it reads");
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            assert_eq!(answer, format!("client {number}\n"));
        }
        let mut answer = String::new();
        connect(13).read_to_string(&mut answer).expect("a line");
        assert!(answer.ends_with("GMT\r\n"), "{answer}");
        let mut lines = vec![0; 148];
        connect(19).read_exact(&mut lines).expect("lines without end");
        assert!(lines.starts_with(b" !\"#") && lines[74..].starts_with(b"!\"#$"));
        let mut discard = connect(9);
        discard.write_all(&[0; 500_000]).expect("it reads");
        let mut web = connect(80);
        web.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        web.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("<p>here"), "{answer}");
        let socket = UdpSocket::bind("10.79.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        socket.send_to(&[3; 4000], (ADDRESS, 7)).expect("it is near");
        let mut buffer = [0; 5000];
        assert_eq!(socket.recv_from(&mut buffer).expect("it comes back").0, 4000);
    };
    running.namespace.enter(clients).expect("root enters");
    running.stop(rustix::process::Signal::TERM);
}

#[test]
fn spinning_it_serves_too_and_says_so_in_json_and_sigint_ends_it() {
    let test = "spinning_it_serves_too_and_says_so_in_json_and_sigint_ends_it";
    let Some(running) = Running::start(test, &["--spin", "--json", "--mtu", "1400", "echo@7"]) else { return };
    let ran: serde_json::Value = serde_json::from_str(&running.ready).expect("an object");
    assert_eq!((&ran["ready"], &ran["spin"], &ran["device"]["mtu"]), (&true.into(), &true.into(), &1400.into()));
    let client = || {
        let mut stream = connect(7);
        stream.write_all(b"hi").expect("it reads");
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).expect("it answers");
        assert_eq!(&answer, b"hi");
    };
    running.namespace.enter(client).expect("root enters");
    running.stop(rustix::process::Signal::INT);
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected_and_the_mend() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(PROGRAM).arg("serve").args(arguments).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for (arguments, words) in [
        (&["--device", "tap:x", "--address", "10.0.0.2/24", "ecko@7"][..], ["expected echo", "got `ecko`"]),
        (
            &["--device", "tap:x", "--address", "10.0.0.2/24", "echo@7", "discard@7"],
            ["a port of its own", "choose another"],
        ),
        (
            &["--device", "xdp:x", "--address", "10.0.0.2/24", "echo@7"],
            ["expected tap:NAME or packet:INTERFACE", "got `xdp:x`"],
        ),
        (&["--device", "tap:a name", "--address", "10.0.0.2/24", "echo@7"], ["TAP name: expected", "choose another"]),
    ] {
        let error = refused(arguments);
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
    // The rest needs a TAP to come that far.
    let test = "what_is_wrong_is_said_with_what_was_expected_and_the_mend";
    let Some((namespace, _tap)) = cable(test, true) else { return };
    for (arguments, words) in [
        (&["--device", "tap:free", "echo@7"][..], ["--address: expected one, got none", "--address 10.0.0.2/24"]),
        (&["--device", "tap:free", "--address", "10.0.0.300/24", "echo@7"], ["--address: expected", "10.0.0.300/24"]),
        (
            &["--device", "tap:xylem0", "--address", "10.0.0.2/24", "echo@7"],
            ["TAP `xylem0`", "another process holds it"],
        ),
        (&["--device", "tap:lo", "--address", "10.0.0.2/24", "echo@7"], ["`lo`", "TAP"]),
    ] {
        let mut command = namespace.command(PROGRAM).expect("a descriptor");
        let output = command.arg("serve").args(arguments).output().expect("the program starts");
        let error = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    }
    let _ = skipped;
}
