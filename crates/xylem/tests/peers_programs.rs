//! Programs that everybody has, on the kernel's stack, against Xylem: curl, nc, socat and iperf3 as clients, nc and
//! socat as servers. None of them knows whom it talks to, and what arrives is compared byte for byte.

#[allow(dead_code)]
mod kernel {
    pub mod capture;
    pub mod place;
    pub mod server;
    pub mod streams;
}

use kernel::capture::{Capture, Checksums};
use kernel::place::{Cable, KERNEL, Plan, XYLEM, at_kernel, at_xylem, content, has, run};
use kernel::server::Serving;
use kernel::streams::{PATIENCE, catch, pour};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xylem_host::namespace::Namespace;
use xylem_host::net as x;
use xylem_host::stack::Stack;

/// A program at work; it does not outlive its test.
struct Working(Child);

impl Working {
    fn start(mut command: Command) -> Working {
        Working(command.spawn().expect("it is installed"))
    }

    /// Waits until it ends by itself.
    fn finish(mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().expect("it was started") {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        // It has ended already, unless the test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects to a program that has just been started and may not listen yet.
fn connect_when_it_listens(stack: &Stack, to: SocketAddr) -> x::TcpStream {
    let begun = Instant::now();
    loop {
        match x::TcpStream::connect_on(stack, to) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).expect("above zero");
                return stream;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{to}: {error}"),
        }
    }
}

fn digest(path: &Path) -> Vec<u8> {
    Sha256::digest(std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).to_vec()
}

const SIZES: [usize; 6] = [0, 1, 1448, 65_536, 1_000_003, 20 << 20];

#[test]
fn curl_fetches_and_uploads() {
    let test = "curl_fetches_and_uploads";
    for plan in [Plan::default(), Plan::default().whole()] {
        let Some(cable) = Cable::lay(test, plan) else { return };
        if !has(test, "curl") {
            return;
        }
        let (namespace, stack) = cable.stack();
        let capture = Capture::begin(&namespace);
        let site = tempfile::tempdir().expect("a directory");
        let desk = tempfile::tempdir().expect("a directory");
        for (seed, size) in SIZES.iter().enumerate() {
            std::fs::write(site.path().join(size.to_string()), content(*size, seed as u64)).expect("the disk has room");
        }
        let _serving = Serving::start(&stack, &[&format!("http+put={}@42080", site.path().display())]);
        let url = |name: &str| format!("http://{XYLEM}:42080/{name}");
        let desk_path = |name: &str| desk.path().join(name).display().to_string();
        let curl = |arguments: &[&str]| run(&namespace, "curl", &[&["-sS", "-f", "-m", "60"], arguments].concat());
        for size in SIZES.map(|size| size.to_string()) {
            curl(&["-o", &desk_path(&size), &url(&size)]);
            assert_eq!(digest(&desk.path().join(&size)), digest(&site.path().join(&size)), "{size} bytes fetched");
            curl(&["-T", &desk_path(&size), &url(&format!("up-{size}"))]);
            let up = site.path().join(format!("up-{size}"));
            assert_eq!(digest(&desk.path().join(&size)), digest(&up), "{size} bytes uploaded");
        }
        // One connection for all.
        let said = curl(&["-v", "-o", "/dev/null", "-o", "/dev/null", &url("1448"), &url("65536")]);
        assert!(said.contains("Re-using existing connection"), "{said}");
        // Many at once.
        let many: Vec<String> = (0..24).flat_map(|number| [desk_path(&format!("m{number}")), url("1000003")]).collect();
        let many = many.chunks(2).flat_map(|pair| ["-o", &pair[0], &pair[1]]);
        curl(&["-Z"].into_iter().chain(many).collect::<Vec<_>>());
        let right = digest(&site.path().join("1000003"));
        for number in 0..24 {
            assert_eq!(digest(&desk.path().join(format!("m{number}"))), right, "the {number}th at once");
        }
        // Nobody listens there.
        let mut command = namespace.command("curl").expect("a descriptor");
        let refused = command.args(["-sS", "-m", "30", &format!("http://{XYLEM}:81/")]).output().expect("it is there");
        assert_eq!(refused.status.code(), Some(7), "curl's number for a refused connection");
        capture.end_well(test, 1000, if plan.offloads { Checksums::Unfinished } else { Checksums::Right });
    }
}

/// A program's command with files as its input and output.
fn with_files(namespace: &Namespace, words: &str, input: Option<&Path>, output: Option<&Path>) -> Command {
    let mut words = words.split_whitespace();
    let mut command = namespace.command(words.next().expect("a program")).expect("a descriptor");
    command.args(words);
    command.stdin(input.map_or_else(Stdio::null, |path| File::open(path).expect("it is there").into()));
    command.stdout(output.map_or_else(Stdio::null, |path| File::create(path).expect("the disk has room").into()));
    command
}

/// The bytes of each transfer by nc and socat.
const BULK: usize = 8 << 20;

#[test]
fn netcat_is_understood_as_client_and_as_server() {
    let test = "netcat_is_understood_as_client_and_as_server";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    if !has(test, "nc") {
        return;
    }
    let (namespace, stack) = cable.stack();
    let capture = Capture::begin(&namespace);
    let folder = tempfile::tempdir().expect("a directory");
    let (theirs, got) = (folder.path().join("theirs"), folder.path().join("got"));
    let mut bytes = Vec::new();
    pour(&mut bytes, 5, BULK).expect("memory takes it");
    std::fs::write(&theirs, &bytes).expect("the disk has room");

    // nc is the client: its file comes, ours goes back.
    let listener = x::TcpListener::bind_on(&stack, at_xylem(41_101)).expect("the port is free");
    let words = format!("nc -N {XYLEM} 41101");
    let client = Working::start(with_files(&namespace, &words, Some(&theirs), Some(&got)));
    let (stream, _) = listener.accept().expect("it connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("above zero");
    assert_eq!(catch(&stream, 5).expect("it sends"), BULK);
    pour(&stream, 6, BULK).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    client.finish();
    assert_eq!(catch(File::open(&got).expect("it is there"), 6).expect("a file"), BULK);
    drop(stream);

    // nc is the server.
    let server = Working::start(with_files(&namespace, &format!("nc -N -l {KERNEL} 41102"), Some(&theirs), Some(&got)));
    let stream = connect_when_it_listens(&stack, at_kernel(41_102));
    // In this order: nc sends no more when it has seen the other end's FIN.
    assert_eq!(catch(&stream, 5).expect("it sends"), BULK);
    pour(&stream, 7, BULK).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    server.finish();
    assert_eq!(catch(File::open(&got).expect("it is there"), 7).expect("a file"), BULK);

    // Datagrams: what nc reads at once it sends as one.
    let socket = x::UdpSocket::bind_on(&stack, at_xylem(41_103)).expect("the port is free");
    socket.set_read_timeout(Some(PATIENCE)).expect("above zero");
    let mut command = with_files(&namespace, &format!("nc -u {XYLEM} 41103"), None, None);
    let mut client = Working::start({
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    });
    client.0.stdin.as_mut().expect("it is piped").write_all(b"forth").expect("it reads");
    let (mut buffer, mut answer) = ([0; 64], [0; 4]);
    let (length, from) = socket.recv_from(&mut buffer).expect("a datagram");
    assert_eq!(&buffer[..length], b"forth");
    socket.send_to(b"back", from).expect("there is room");
    client.0.stdout.as_mut().expect("it is piped").read_exact(&mut answer).expect("it prints");
    assert_eq!(&answer, b"back");
    capture.end_well(test, 500, Checksums::Right);
}

#[test]
fn socat_is_understood_as_client_and_as_server() {
    let test = "socat_is_understood_as_client_and_as_server";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    if !has(test, "socat") {
        return;
    }
    let (namespace, stack) = cable.stack();
    let capture = Capture::begin(&namespace);
    let mut bytes = Vec::new();
    pour(&mut bytes, 8, BULK).expect("memory takes it");
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("file");
    std::fs::write(&file, &bytes).expect("the disk has room");

    // A program behind a connection: it answers when it has seen our end.
    let words = format!("socat TCP-LISTEN:41111,bind={KERNEL},reuseaddr EXEC:sha256sum");
    let server = Working::start(with_files(&namespace, &words, None, None));
    let mut stream = connect_when_it_listens(&stack, at_kernel(41_111));
    pour(&stream, 8, BULK).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("text");
    let hexadecimal: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(said.starts_with(&hexadecimal), "{said} is not {hexadecimal}");
    server.finish();

    // A file by a client with options of its own: small segments, a small send buffer, Nagle off.
    let listener = x::TcpListener::bind_on(&stack, at_xylem(41_112)).expect("the port is free");
    let words = format!("socat -u -b 700 OPEN:{} TCP:{XYLEM}:41112,mss=500,sndbuf=8000,nodelay", file.display());
    let client = Working::start(with_files(&namespace, &words, None, None));
    let (stream, _) = listener.accept().expect("it connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("above zero");
    assert_eq!(catch(&stream, 8).expect("it sends"), BULK);
    drop(stream);
    client.finish();
    capture.end_well(test, 500, Checksums::Right);
}

/// What an iperf3 client says as JSON.
fn iperf3(namespace: &Namespace, arguments: &[&str]) -> serde_json::Value {
    let mut command = namespace.command("iperf3").expect("a descriptor");
    let output = command
        .args(["-c", &XYLEM.to_string(), "-p", "42201", "-J"])
        .args(arguments)
        .output()
        .expect("it is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"))
}

#[test]
fn iperf3_measures_both_ways_and_with_many_streams() {
    let test = "iperf3_measures_both_ways_and_with_many_streams";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    if !has(test, "iperf3") {
        return;
    }
    let (namespace, stack) = cable.stack();
    let capture = Capture::begin(&namespace);
    let _serving = Serving::start(&stack, &["iperf3@42201"]);
    let rows: [&[&str]; 5] = [
        &["-n", "64M"],
        &["-n", "64M", "-R"],
        &["-n", "64M", "-P", "4"],
        &["-n", "64M", "-R", "-P", "4"],
        &["-n", "1M", "-M", "536", "-l", "1000"],
    ];
    for row in rows {
        let said = iperf3(&namespace, row);
        assert!(said["error"].is_null(), "{row:?}: {}", said["error"]);
        let bytes = |side: &str| said["end"][side]["bytes"].as_u64().unwrap_or(0);
        let wanted = if row[1] == "64M" { 64 << 20 } else { 1 << 20 };
        let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
        assert!(sent >= wanted, "{row:?}: {sent} bytes sent of {wanted}");
        // The client ends before what is on the way has been counted at the other end.
        assert!(received > 0 && received <= sent, "{row:?}: {received} bytes received of {sent} sent");
    }
    let said = iperf3(&namespace, &["-u", "-n", "1M"]);
    assert!(said["error"].as_str().is_some_and(|error| !error.is_empty()), "UDP is not served, and the client is told");
    assert!(iperf3(&namespace, &["-n", "1M"])["error"].is_null(), "and the next one is served again");
    capture.end_well(test, 1000, Checksums::Unfinished);
}
