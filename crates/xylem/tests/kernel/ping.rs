//! Echo requests both ways: the kernel's through a raw socket, and Xylem's through its own ICMP in an instance that the
//! test turns itself.

use super::capture::is_full;
use super::place::{Plan, XYLEM, content, graph_for};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recv, sendto, socket_with};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use xylem::catalogue;
use xylem_core::{Message, Part, Participants};
use xylem_graph::build::build;
use xylem_graph::instance::{Instance, Limits, Shepherd, Work, World};
use xylem_host::clock::Clock;
use xylem_host::device::Device;
use xylem_host::namespace::Namespace;
use xylem_host::poll::{Source, wait};
use xylem_sim::End;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bytes of an IP header without options and of an echo's header.
const HEADERS: usize = 20 + 8;

/// The kernel's side of an echo.
pub struct Pinger {
    socket: OwnedFd,
    number: u16,
}

impl Pinger {
    pub fn open(namespace: &Namespace) -> Pinger {
        let open = || socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::ICMP));
        let socket = namespace.enter(open).expect("root enters").expect("root pings");
        rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, Some(PATIENCE))
            .expect("a timeout");
        Pinger { socket, number: 0 }
    }

    /// Sends an echo request with `size` bytes of content, and says what is wrong with the answer, if anything is.
    pub fn ping(&mut self, size: usize) -> Result<(), String> {
        self.number = self.number.wrapping_add(1);
        // RFC 792: type 8, code 0, checksum, identifier, sequence number, data.
        let mut request = vec![8, 0, 0, 0, 0x5a, 0x5a];
        request.extend_from_slice(&self.number.to_be_bytes());
        request.extend_from_slice(&content(size, u64::from(self.number)));
        let sum = checksum_of(&request);
        request[2..4].copy_from_slice(&sum.to_be_bytes());
        let to = SocketAddrV4::new(XYLEM, 0);
        sendto(&self.socket, &request, SendFlags::empty(), &to).map_err(|error| format!("{size}: send: {error}"))?;
        let (mut packet, begun) = (vec![0; 65_536], Instant::now());
        while begun.elapsed() < PATIENCE {
            let (length, _) = recv(&self.socket, &mut packet[..], RecvFlags::empty())
                .map_err(|error| format!("{size} bytes: no answer: {error}"))?;
            let answer = &packet[..length];
            // Another answer, or our own request on its way through loopback.
            if length < HEADERS || answer[20] != 0 || answer[24..28] != request[4..8] {
                continue;
            }
            if answer[28..] != request[8..] {
                return Err(format!("{size} bytes came back as {} and changed", length - HEADERS));
            }
            return Ok(());
        }
        Err(format!("{size} bytes: no answer"))
    }
}

/// Xylem's side of an echo.
pub struct XylemPinger {
    instance: Instance,
    shepherd: Shepherd,
    wire: Wire,
}

struct Wire {
    device: Box<dyn Device>,
    clock: Clock,
    pool: xylem_core::Pool,
}

impl World for Wire {
    fn now(&self) -> xylem_core::Instant {
        self.clock.now()
    }
    fn receive(&self, arrivals: &mut Vec<(u16, Message)>, limit: usize) {
        arrivals.extend(std::iter::from_fn(|| self.device.receive(&self.pool)).take(limit).map(|frame| (0, frame)));
    }
    fn transmit(&self, _device: u16, frame: &mut Message) -> bool {
        self.device.transmit(frame)
    }
}

impl XylemPinger {
    pub fn new(device: Box<dyn Device>, mtu: usize) -> XylemPinger {
        let instance = build(&graph_for(mtu), &catalogue::builtin(), vec![device.facts()], Limits::default(), 3);
        let instance = instance.expect("the graph is right");
        let clock = Clock::start();
        let wire = Wire { device, clock, pool: instance.pool().clone() };
        XylemPinger { shepherd: instance.shepherd(), instance, wire }
    }

    /// Pings `peer` with each of `sizes` in turn.
    pub fn ping(&mut self, peer: Ipv4Addr, sizes: impl Iterator<Item = usize>) -> Result<usize, String> {
        let node = self.instance.node_of_kind("icmp").expect("the usual host has ICMP");
        let end = End::new();
        let participants = Participants::new([], [Part::Host(IpAddr::V4(peer))]);
        let anchor = std::sync::Arc::clone(&end) as _;
        let path = self.instance.open(&self.wire, &mut self.shepherd, node, participants, anchor);
        let path = path.map_err(|error| error.to_string())?;
        let mut count = 0;
        for (number, size) in sizes.enumerate() {
            let bytes = content(size, number as u64);
            let mut message = Message::from_bytes(&bytes);
            message.attributes.activity = number as u32 & 0xffff;
            self.instance.request(&self.wire, &mut self.shepherd, path, Work::Push(message));
            let begun = Instant::now();
            loop {
                self.instance.turn(&self.wire, &mut self.shepherd);
                if let Some(answer) = end.state().arrived.pop_front() {
                    let back = answer.to_vec();
                    if back != bytes {
                        return Err(format!("{size} bytes came back as {} and changed", back.len()));
                    }
                    self.instance.request(&self.wire, &mut self.shepherd, path, Work::Credit(size));
                    count += 1;
                    break;
                }
                if begun.elapsed() > PATIENCE {
                    return Err(format!("{size} bytes: no answer"));
                }
                let descriptor = self.wire.device.descriptor().expect("a TAP has one");
                wait(&mut [Source::readable(&descriptor.as_fd())], Some(Duration::from_millis(2))).expect("a poll");
            }
        }
        Ok(count)
    }
}

/// The most bytes an echo carries, and a datagram: the largest IPv4 packet less its two headers.
pub const SIZE_MAX: usize = 65_507;

/// The sizes for a cable of this plan: all up to 2048 bytes, those around every border of fragments, and five hundred
/// others. Where the link is not the usual one, a sample of the small and of the others is enough, unless the long matrix
/// is asked for.
pub fn sizes(plan: Plan, seed: u64) -> Vec<usize> {
    let (step, others) = if plan.is_usual() || is_full() { (1, 500) } else { (7, 60) };
    // Every fragment but the last carries a multiple of eight bytes (RFC 791, section 3.2) behind 20 of header; of the
    // first, 8 are the echo's or UDP's header.
    let carried = (plan.mtu - 20) / 8 * 8;
    let fragments = SIZE_MAX.div_ceil(carried) + 1;
    let borders = (1..=fragments).flat_map(|count| (0..=4).map(move |off| count * carried - 8 - 2 + off));
    let mut random = xylem_core::Random::seeded(seed);
    let others = (0..others).map(|_| 2049 + random.below((SIZE_MAX - 2048) as u64) as usize);
    let small = (0..=2048).step_by(step);
    let mut sizes: Vec<usize> = small.chain(borders).chain(others).chain([SIZE_MAX - 1, SIZE_MAX]).collect();
    sizes.retain(|size| *size <= SIZE_MAX);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The Internet checksum (RFC 1071), written once more here: the judge shares no code with the judged.
fn checksum_of(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
