//! A capture of everything that crosses the TAP, and the judgement of an independent program on it. The capture is an
//! AF_PACKET socket on the kernel's side, written in the format every such program reads.

use super::place::skipped;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use xylem_host::namespace::Namespace;

/// The largest frame: 64 KB of IP and a link header.
const FRAME_BYTES_MAX: usize = 65_535 + 14;
/// ETH_P_ALL, as the kernel wants it: in network order.
const EVERY_PROTOCOL: u32 = 0x0003_u16.to_be() as u32;

/// So many frames of one capture are judged unless all are asked for: tshark reads some ten thousand a second, and a
/// gigabyte in frames of 576 bytes has two million.
const FRAMES_JUDGED_MAX: usize = 20_000;

/// The servers' ports behind which bytes are random.
const RANDOM_PORTS: &str = "41000-42999";

/// The environment variable by which every suite runs its whole matrix and judges every frame.
pub const FULL: &str = "XYLEM_PEERS";

/// Whether the long matrices were asked for, by `XYLEM_PEERS=full`.
pub fn is_full() -> bool {
    std::env::var_os(FULL).is_some_and(|value| value == "full")
}

/// A capture going on, and the file it goes to.
pub struct Capture {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
    folder: tempfile::TempDir,
}

impl Capture {
    /// Captures what crosses the interfaces of `namespace`: the first frames, or all of them in the long matrix.
    pub fn begin(namespace: &Namespace) -> Capture {
        Capture::of(namespace, if is_full() { usize::MAX } else { FRAMES_JUDGED_MAX })
    }

    /// Captures everything that crosses the interfaces of `namespace`.
    pub fn all(namespace: &Namespace) -> Capture {
        Capture::of(namespace, usize::MAX)
    }

    fn of(namespace: &Namespace, frames_max: usize) -> Capture {
        let protocol = rustix::net::Protocol::from_raw(NonZeroU32::new(EVERY_PROTOCOL).expect("three is not zero"));
        let open = || socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol));
        let socket = namespace.enter(open).expect("root enters").expect("root captures");
        // Room for bursts: what is lost here would not be judged.
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20).expect("a buffer");
        let timeout = Some(Duration::from_millis(50));
        rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, timeout)
            .expect("a timeout");
        let folder = tempfile::tempdir().expect("a directory");
        let file = BufWriter::new(File::create(Capture::file_in(&folder)).expect("a file"));
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || write(socket, file, frames_max, &flag));
        Capture { stopped, thread, folder }
    }

    fn file_in(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("frames.pcap")
    }

    /// Ends it: how many frames were written, and where they are for as long as the folder is kept.
    pub fn end(self) -> (usize, PathBuf, tempfile::TempDir) {
        // The last frames are on their way to the socket.
        std::thread::sleep(Duration::from_millis(100));
        self.stopped.store(true, Ordering::SeqCst);
        let frames = self.thread.join().expect("the capture does not panic");
        (frames, Capture::file_in(&self.folder), self.folder)
    }

    /// Ends it, and fails if fewer frames than these came or any of them is wrong.
    pub fn end_well(self, test: &str, frames_min: usize, checksums: Checksums) {
        let (frames, file, folder) = self.end();
        assert!(frames >= frames_min, "{test}: the capture has {frames} frames only");
        let Some(wrong) = judge(&file, checksums) else {
            return skipped(test, "neither tshark nor tcpdump is installed (apt install tshark)");
        };
        if wrong.is_empty() {
            return;
        }
        // Whoever looks for the cause wants to see it.
        let (few, kept) = (&wrong[..wrong.len().min(10)], folder.keep());
        panic!("{test}: {} of {frames} frames are wrong: {few:#?}; they are kept in {}", wrong.len(), kept.display());
    }
}

/// What a judge expects of TCP's and UDP's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// They are those of a wire.
    Right,
    /// They are left to a device behind the place where the capture is made (CHECKSUM_PARTIAL in the kernel's words), so
    /// that the field holds the pseudo-header's sum only. IPv4's and ICMP's are right all the same.
    Unfinished,
}

fn write(socket: OwnedFd, mut file: impl Write, frames_max: usize, stopped: &AtomicBool) -> usize {
    // The header of a pcap file: magic, version 2.4, two zeros, the longest frame, Ethernet.
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, FRAME_BYTES_MAX as u32, 1];
    words.iter().for_each(|word| file.write_all(&word.to_ne_bytes()).expect("the disk has room"));
    let (mut frames, mut buffer) = (0, vec![0; FRAME_BYTES_MAX]);
    while frames < frames_max {
        let length = match recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(_) if stopped.load(Ordering::SeqCst) => break,
            Err(_) => continue,
        };
        // The kernel's talk with itself has no addresses and unfinished checksums.
        if buffer[..length.min(12)].iter().all(|byte| *byte == 0) {
            continue;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let words = [time.as_secs() as u32, time.subsec_micros(), length as u32, length as u32];
        words.iter().for_each(|word| file.write_all(&word.to_ne_bytes()).expect("the disk has room"));
        file.write_all(&buffer[..length]).expect("the disk has room");
        frames += 1;
    }
    file.flush().expect("the disk has room");
    frames
}

/// Where each frame of a capture begins in its file, and how long it is.
pub fn frames_of(file: &[u8]) -> Vec<(usize, usize)> {
    // The file's header has 24 bytes, each frame's has 16, with the length in the third word.
    let (mut frames, mut at) = (Vec::new(), 24);
    while let Some(header) = file.get(at..at + 16) {
        let length = u32::from_ne_bytes(header[8..12].try_into().expect("four bytes")) as usize;
        frames.push((at + 16, length));
        at += 16 + length;
    }
    frames
}

/// What is wrong with a capture in the eyes of tshark or tcpdump: a line a frame, none if nothing is. `None` if the
/// machine has neither. Wrong is a frame that is malformed, has a wrong checksum, or which the program holds to be an
/// error of its sender for another reason.
pub fn judge(file: &Path, checksums: Checksums) -> Option<Vec<String>> {
    // What an ICMP error quotes is cut short, so that no sum of it can be right.
    let quotes = "(icmp.type == 3 || icmp.type == 11 || icmp.type == 12)";
    // PI_ERROR of Wireshark's expert information: worse than notes (retransmissions) and warnings (resets).
    let mut wrong = format!(
        "_ws.malformed || ip.checksum.status == 0 || icmp.checksum.status == 0 \
         || (_ws.expert.severity >= 0x00800000 && !{quotes})"
    );
    let checked = match checksums {
        Checksums::Right => "TRUE",
        Checksums::Unfinished => "FALSE",
    };
    if checksums == Checksums::Right {
        // A TCP checksum of all ones where RFC 1624 would have zero means the same to whoever adds it up, and is what
        // the kernel's own checksums in software are too (CSUM_MANGLED_0).
        let same = "(tcp.checksum == 0xffff && tcp.checksum_calculated == 0)";
        wrong
            .push_str(&format!(" || ((tcp.checksum.status == 0 || udp.checksum.status == 0) && !{same} && !{quotes})"));
    }
    let mut tshark = Command::new("tshark");
    tshark.arg("-n").arg("-r").arg(file).args(["-o", "ip.check_checksum:TRUE"]);
    tshark.args(["-o", &format!("tcp.check_checksum:{checked}"), "-o", &format!("udp.check_checksum:{checked}")]);
    // Every segment is judged, not what they make together: putting large bodies together takes tshark very long.
    tshark.args(["-o", "tcp.desegment_tcp_streams:FALSE"]);
    // What streams and datagrams carry here is random: no protocol is to be guessed from it.
    tshark.args(["-d", &format!("tcp.port=={RANDOM_PORTS},data"), "-d", &format!("udp.port=={RANDOM_PORTS},data")]);
    if let Ok(output) = tshark.args(["-Y", &wrong]).output() {
        assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
        return Some(lines(&output.stdout, |_| true));
    }
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-n", "-vv", "-r"]).arg(file);
    if checksums == Checksums::Unfinished {
        tcpdump.arg("-K");
    }
    let output = tcpdump.output().ok()?;
    assert!(output.status.success(), "tcpdump: {}", String::from_utf8_lossy(&output.stderr));
    let marks = ["bad cksum", "(incorrect", "wrong cksum", "truncated", "[|", "bad hdr"];
    Some(lines(&output.stdout, |line| marks.iter().any(|mark| line.contains(mark))))
}

fn lines(bytes: &[u8], keep: impl Fn(&str) -> bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter(|line| !line.trim().is_empty() && keep(line)).map(String::from).collect()
}
