//! A capture of everything that crosses the TAP, and the judgement of an independent program on it. The capture is an
//! AF_PACKET socket on the kernel's side, written in the format every such program reads.

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::Path;
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

/// A capture going on.
pub struct Capture {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Capture {
    /// Captures what crosses the interfaces of `namespace` into a file.
    pub fn begin(namespace: &Namespace, file: &Path) -> Capture {
        let protocol = rustix::net::Protocol::from_raw(NonZeroU32::new(EVERY_PROTOCOL).expect("three is not zero"));
        let open = || socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol));
        let socket = namespace.enter(open).expect("root enters").expect("root captures");
        // Room for bursts: what is lost here would not be judged.
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 64 << 20).expect("a buffer");
        let timeout = Some(Duration::from_millis(50));
        rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, timeout)
            .expect("a timeout");
        let file = BufWriter::new(File::create(file).expect("a file"));
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        Capture { stopped, thread: std::thread::spawn(move || write(socket, file, &flag)) }
    }

    /// Ends it: how many frames were written.
    pub fn end(self) -> usize {
        // The last frames are on their way to the socket.
        std::thread::sleep(Duration::from_millis(100));
        self.stopped.store(true, Ordering::SeqCst);
        self.thread.join().expect("the capture does not panic")
    }
}

fn write(socket: OwnedFd, mut file: impl Write, stopped: &AtomicBool) -> usize {
    // The header of a pcap file: magic, version 2.4, two zeros, the longest frame, Ethernet.
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, FRAME_BYTES_MAX as u32, 1];
    words.iter().for_each(|word| file.write_all(&word.to_ne_bytes()).expect("the disk has room"));
    let (mut frames, mut buffer) = (0, vec![0; FRAME_BYTES_MAX]);
    loop {
        let length = match recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((length, _)) => length,
            Err(_) if stopped.load(Ordering::SeqCst) => break,
            Err(_) => continue,
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let words = [time.as_secs() as u32, time.subsec_micros(), length as u32, length as u32];
        words.iter().for_each(|word| file.write_all(&word.to_ne_bytes()).expect("the disk has room"));
        file.write_all(&buffer[..length]).expect("the disk has room");
        frames += 1;
    }
    file.flush().expect("the disk has room");
    frames
}

/// What is wrong with a capture in the eyes of tshark or tcpdump: a line a frame, none if nothing is. `None` if the
/// machine has neither.
pub fn judge(file: &Path) -> Option<Vec<String>> {
    let wrong = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0 \
                 || icmp.checksum.status == 0";
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    tshark.args(["-o", "udp.check_checksum:TRUE", "-Y", wrong]);
    if let Ok(output) = tshark.output() {
        assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
        return Some(lines(&output.stdout, |_| true));
    }
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-n", "-vv", "-r"]).arg(file);
    let output = tcpdump.output().ok()?;
    assert!(output.status.success(), "tcpdump: {}", String::from_utf8_lossy(&output.stderr));
    let marks = ["bad cksum", "(incorrect", "wrong cksum", "truncated", "[|", "bad hdr"];
    Some(lines(&output.stdout, |line| marks.iter().any(|mark| line.contains(mark))))
}

fn lines(bytes: &[u8], keep: impl Fn(&str) -> bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter(|line| !line.trim().is_empty() && keep(line)).map(String::from).collect()
}
